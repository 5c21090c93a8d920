// SPDX-License-Identifier: Apache-2.0
//! Putting objects into the server: what an installation needs, and the first camp.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bivouac_runtime::reconcile::{APPLIED_ANNOTATION, fingerprint, plain};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Discovery,
    api::{Patch, PatchParams},
    core::{DynamicObject, TypeMeta},
    discovery::Scope,
};
use serde_json::{Value, json};

use crate::{cli, print};

const MANAGER: &str = "bivouac-up";
/// Where the controllers have their account, as in a cluster.
pub const NAMESPACE: &str = "bivouac-system";
pub const ACCOUNT: &str = "bivouac";
/// How long the first camp waits for a namespace of its Workspaces.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first camp, in the order in which it is pitched. Part of the binary: it needs no checkout.
const CAMP: [(&str, &str); 5] = [
    ("05-nodes.yaml", include_str!("../../../../examples/first-camp/05-nodes.yaml")),
    ("10-workspaces.yaml", include_str!("../../../../examples/first-camp/10-workspaces.yaml")),
    ("20-notebook.yaml", include_str!("../../../../examples/first-camp/20-notebook.yaml")),
    ("30-training.yaml", include_str!("../../../../examples/first-camp/30-training.yaml")),
    ("40-inference.yaml", include_str!("../../../../examples/first-camp/40-inference.yaml")),
];

/// Kinds, rights and policies, as `bivouac crds`, `rbac` and `policies` print them. What is there already is left alone.
pub async fn install(client: &Client) -> Result<()> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    for mut object in installation()? {
        let hash = fingerprint(&object);
        let api = place(client, &discovery, &object)?;
        let name = text(&object, "/metadata/name");
        let there = api.get_metadata_opt(name).await?.and_then(|meta| meta.metadata.annotations);
        if there.is_some_and(|all| all.get(APPLIED_ANNOTATION) == Some(&hash)) {
            continue;
        }
        if let Some(meta) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            let notes = meta.entry("annotations").or_insert_with(|| json!({}));
            if let Some(notes) = notes.as_object_mut() {
                notes.insert(APPLIED_ANNOTATION.to_owned(), hash.into());
            }
        }
        apply(&api, &object).await?;
    }
    Ok(())
}

fn installation() -> Result<Vec<Value>> {
    let output = || cli::PrintOptions { output: cli::Output::Json };
    let (namespace, service_account) = (NAMESPACE.to_owned(), ACCOUNT.to_owned());
    let rbac = cli::RbacOptions {
        print: output(),
        controllers: "*".to_owned(),
        namespace: namespace.clone(),
        service_account: service_account.clone(),
    };
    let policies = cli::PolicyOptions { print: output(), namespace, service_account, without_mutating: false };
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}),
    ];
    for crd in bivouac_api::crds() {
        all.push(serde_json::to_value(crd)?);
    }
    all.extend(print::rbac_objects(&rbac)?);
    all.extend(print::policy_objects(&policies)?);
    Ok(all)
}

/// Pitches the first camp. Whatever lives in a namespace waits for the Workspace that makes it.
pub async fn pitch(client: &Client) -> Result<()> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    for (file, object) in camp()? {
        let about =
            || format!("examples/first-camp/{file}: {} {}", text(&object, "/kind"), text(&object, "/metadata/name"));
        let api = place(client, &discovery, &object).with_context(about)?;
        if let Some(namespace) = object.pointer("/metadata/namespace").and_then(Value::as_str) {
            namespace_made(client, namespace).await.with_context(about)?;
        }
        apply(&api, &object).await.with_context(about)?;
    }
    Ok(())
}

fn camp() -> Result<Vec<(&'static str, Value)>> {
    let mut all = Vec::new();
    for (file, yaml) in CAMP {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(yaml).with_context(|| format!("examples/first-camp/{file}"))?;
        all.extend(objects.into_iter().map(|object| (file, object)));
    }
    Ok(all)
}

async fn namespace_made(client: &Client, name: &str) -> Result<()> {
    let api = Api::<Namespace>::all(client.clone());
    let made = kube::runtime::wait::await_condition(api, name, |found: Option<&Namespace>| found.is_some());
    let waited = tokio::time::timeout(PATIENCE, made).await;
    waited.map_err(|_| anyhow!("the namespace {name} was not made within {} seconds", PATIENCE.as_secs()))??;
    Ok(())
}

/// Where objects of this kind live.
fn place(client: &Client, discovery: &Discovery, object: &Value) -> Result<Api<DynamicObject>> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let types = TypeMeta { api_version: version.to_owned(), kind: kind.to_owned() };
    let found = discovery.resolve_typemeta(&types);
    let (resource, capabilities) = found.with_context(|| format!("{version} {kind} is not served"))?;
    Ok(match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    })
}

async fn apply(api: &Api<DynamicObject>, object: &Value) -> Result<()> {
    let name = text(object, "/metadata/name");
    let applied = api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object)).await;
    applied.map_err(|error| anyhow!("{} {name} was refused: {}", text(object, "/kind"), plain(&error)))?;
    Ok(())
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_holds_every_file_of_the_first_camp() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-camp");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
        names.sort_unstable();
        assert_eq!(names, CAMP.map(|(name, _)| name));
    }

    #[test]
    fn the_first_camp_can_be_read() {
        let all = camp().unwrap();
        assert!(all.len() > CAMP.len());
        assert!(
            all.iter()
                .all(|(_, object)| !text(object, "/kind").is_empty() && !text(object, "/metadata/name").is_empty())
        );
    }

    #[tokio::test]
    async fn what_is_installed_is_not_written_again_and_what_is_missing_is() {
        let server = bivouac_apiserver::ApiServer::start(bivouac_apiserver::Settings::default()).await.unwrap();
        let client = Client::new(server.clone(), "default");
        install(&client).await.unwrap();
        let settled = server.store().revision();
        install(&client).await.unwrap();
        assert_eq!(server.store().revision(), settled);
        let accounts = Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(client.clone(), NAMESPACE);
        accounts.delete(ACCOUNT, &kube::api::DeleteParams::default()).await.unwrap();
        install(&client).await.unwrap();
        accounts.get(ACCOUNT).await.unwrap();
    }
}
