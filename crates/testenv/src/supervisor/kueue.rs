// SPDX-License-Identifier: Apache-2.0
//! What Kueue needs around it: a configuration, certificates, its kinds and its webhooks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::flags::Ports;
use crate::components::{Component, Paths};
use crate::pki::Pki;
use crate::{crds, identity};

const NAMESPACE: &str = "kueue-system";
const SECRET: &str = "kueue-webhook-server-cert";
/// What its webhooks look at here. The others are for kinds that nobody has.
const GROUPS: [&str; 2] = ["batch", "kueue.x-k8s.io"];

#[derive(Debug)]
pub(super) struct Kueue {
    /// Where its webhooks are.
    url: String,
    authority: ByteString,
    manifests: Vec<PathBuf>,
}

impl Kueue {
    /// Writes the files that it reads at its start.
    pub(super) fn prepare(dir: &Path, ports: Ports, pki: &Pki, paths: &Paths) -> Result<Self> {
        let folder = dir.join("kueue");
        fs::create_dir_all(&folder)?;
        fs::copy(pki.path("server.crt"), folder.join("tls.crt"))?;
        fs::copy(pki.path("server.key"), folder.join("tls.key"))?;
        let port = ports.of(Component::Kueue);
        let config = json!({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "webhook": {"host": "127.0.0.1", "port": port, "certDir": folder},
            // Without its own certificates it reads those of the metrics from a fixed place of the machine. With them
            // it makes some, which nobody uses, and serves with those that it finds in the folder.
            "internalCertManagement": {"enable": true, "webhookSecretName": SECRET},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": "0"},
            "leaderElection": {"leaderElect": false},
            "integrations": {"frameworks": ["batch/job"]},
            "featureGates": {"VisibilityOnDemand": false},
        });
        fs::write(folder.join("config.json"), config.to_string())?;
        let url = format!("https://127.0.0.1:{port}");
        let authority = ByteString(fs::read(pki.path("ca.crt"))?);
        Ok(Self { url, authority, manifests: paths.files_of(Component::Kueue)? })
    }

    /// Makes what must be there before it starts.
    pub(super) async fn install(&self, kubeconfig: &Path) -> Result<()> {
        let client = identity::client(identity::read(kubeconfig)?).await?;
        let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata: named(NAMESPACE), ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        // Kueue fills it, but does not make it.
        let secret = Secret { metadata: named(SECRET), ..Secret::default() };
        Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &secret).await?;
        let mut kinds = Vec::new();
        for manifest in &self.manifests {
            let text = fs::read_to_string(manifest)?;
            let documents = serde_saphyr::from_multiple::<Value>(&text);
            for document in documents.with_context(|| manifest.display().to_string())? {
                match text_at(&document, "/kind") {
                    Some("CustomResourceDefinition") => kinds.push(self.kind(document)?),
                    Some("MutatingWebhookConfiguration") => {
                        self.hook::<MutatingWebhookConfiguration>(&client, document).await?;
                    }
                    Some("ValidatingWebhookConfiguration") => {
                        self.hook::<ValidatingWebhookConfiguration>(&client, document).await?;
                    }
                    _ => {}
                }
            }
        }
        crds::install(&client, &kinds).await
    }

    /// Kueue insists on writing an authority there. Nobody asks for an old version, so nobody is ever asked to convert.
    fn kind(&self, document: Value) -> Result<CustomResourceDefinition> {
        let mut kind: CustomResourceDefinition = serde_json::from_value(document)?;
        let convert = json!({"url": format!("{}/convert", self.url)});
        kind.spec.conversion = serde_json::from_value(json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": convert},
        }))?;
        Ok(kind)
    }

    /// Calls it where it listens, not through a Service.
    async fn hook<K>(&self, client: &Client, mut document: Value) -> Result<()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let hooks = document.get_mut("webhooks").and_then(Value::as_array_mut).context("no webhooks")?;
        hooks.retain(|hook| text_at(hook, "/rules/0/apiGroups/0").is_some_and(|group| GROUPS.contains(&group)));
        for hook in hooks {
            let path = text_at(hook, "/clientConfig/service/path").context("a webhook without a path")?;
            let config = json!({"url": format!("{}{path}", self.url), "caBundle": self.authority});
            hook.as_object_mut().context("no webhook")?.insert("clientConfig".to_owned(), config);
        }
        let hook: K = serde_json::from_value(document)?;
        Api::all(client.clone()).create(&PostParams::default(), &hook).await?;
        Ok(())
    }
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}
