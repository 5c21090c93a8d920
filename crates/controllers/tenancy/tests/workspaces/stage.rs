// SPDX-License-Identifier: Apache-2.0
//! A world with the Workspace kind and our operator, and words to say what is expected of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bivouac_api::tenant::Workspace;
use bivouac_runtime::{Kind, lease, process};
use k8s_openapi::{
    api::{
        core::v1::{LimitRange, Namespace, ResourceQuota},
        networking::v1::NetworkPolicy,
        rbac::v1::RoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{Operator, World};

/// The name of the operator's requests in an audit log, and of its lease in the namespace `default`.
pub const AGENT: &str = "bivouac-under-test";
const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);
/// Marks what this test made, so that it can be cleaned up.
const RUN_LABEL: &str = "test.bivouac.dev/run";

pub struct Stage {
    // Dropped in this order: the operator must not outlive its world.
    operator: Option<Operator>,
    pub world: World,
    pub client: Client,
    run: String,
    writes: Arc<AtomicUsize>,
}

impl Stage {
    /// In the world that all tests share. Names must be unique: see [`Stage::name`].
    pub async fn shared() -> Self {
        Self::on(World::shared().await, &workspace_crds()).await
    }

    /// In a world of its own, for tests that others would notice.
    pub async fn own(crds: &[CustomResourceDefinition]) -> Self {
        Self::on(World::own().await, crds).await
    }

    async fn on(world: World, crds: &[CustomResourceDefinition]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        world.install_crds(crds).await;
        let (client, writes) = (world.client(), Arc::default());
        let operator = Some(world.operator(counting(&writes, |client| client)));
        let run = format!("{}-{count}", world.unique());
        Self { operator, client, world, run, writes }
    }

    /// A name that no other test has.
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.run)
    }

    /// Stops the operator and starts another, whose requests go through what `wrap` makes.
    pub async fn restart_operator(&mut self, wrap: fn(Client) -> Client) {
        if let Some(operator) = self.operator.take() {
            operator.stop().await;
        }
        self.operator = Some(self.world.operator(counting(&self.writes, wrap)));
    }

    /// How many writes the operator has asked for, its lease aside.
    pub fn operator_writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub fn workspaces(&self) -> Api<Workspace> {
        Api::all(self.client.clone())
    }

    pub fn inside<K: Kind + kube::Resource<Scope = kube::core::NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Makes a Workspace with an admin `ada`. A new CRD answers with errors for a moment, and so does a server on its
    /// way up: that is retried.
    pub async fn create(&self, name: &str, spec: Value) -> Workspace {
        let mut all = json!({"members": [{"role": "admin", "subject": "ada"}]});
        merge(&mut all, spec);
        let api = ApiResource::erase::<Workspace>(&());
        let mut object = DynamicObject::new(name, &api).data(json!({ "spec": all }));
        object.labels_mut().insert(RUN_LABEL.into(), self.run.clone());
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &api);
        eventually(&format!("{name} is created"), async || match api.create(&PostParams::default(), &object).await {
            Ok(made) => Ok(serde_json::from_value(serde_json::to_value(made).unwrap()).unwrap_or_default()),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => panic!("{}", status.message),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Workspace::default()),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    pub async fn patch(&self, name: &str, patch: Value) -> Workspace {
        self.workspaces().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Waits until the Workspace says `True/Reconciled`, for its newest generation.
    pub async fn ready(&self, name: &str) -> Workspace {
        self.says(name, "Ready", "True/Reconciled").await
    }

    /// Waits for a condition, as `False/NamespaceConflict`, that speaks of the newest generation.
    pub async fn says(&self, name: &str, type_: &str, expected: &str) -> Workspace {
        eventually(&format!("{name} says {type_}={expected}"), async || {
            let workspace = self.workspaces().get(name).await.map_err(|error| error.to_string())?;
            let found = condition(&workspace, type_);
            let fits = found.is_some_and(|found| {
                format!("{}/{}", found.status, found.reason) == expected
                    && found.observed_generation == workspace.metadata.generation
            });
            if fits { Ok(workspace) } else { Err(format!("{found:?}")) }
        })
        .await
    }

    pub async fn gone<K: Kind>(&self, api: &Api<K>, name: &str) {
        eventually(&format!("{} {name} is gone", K::kind(&())), async || match api.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    /// Every child kind that a plain cluster has, with the name of the one we make.
    pub fn children(&self, namespace: &str) -> Vec<(Api<DynamicObject>, String)> {
        let inside = |resource: ApiResource, name: &str| {
            (Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource), name.to_owned())
        };
        let namespaces = ApiResource::erase::<Namespace>(&());
        vec![
            (Api::all_with(self.client.clone(), &namespaces), namespace.to_owned()),
            inside(ApiResource::erase::<RoleBinding>(&()), "workspace-role-binding-admin"),
            inside(ApiResource::erase::<RoleBinding>(&()), "workspace-role-binding-view"),
            inside(ApiResource::erase::<ResourceQuota>(&()), "workspace-resource-quota"),
            inside(ApiResource::erase::<LimitRange>(&()), "workspace-limit-range"),
            inside(ApiResource::erase::<NetworkPolicy>(&()), "workspace-network-policy"),
        ]
    }

    /// The versions of the Workspace and of everything it made.
    pub async fn versions(&self, name: &str, namespace: &str) -> Vec<(String, String)> {
        let workspace = self.workspaces().get(name).await.unwrap();
        let mut versions = vec![(name.to_owned(), workspace.resource_version().unwrap())];
        for (api, child) in self.children(namespace) {
            let object = api.get(&child).await.unwrap();
            versions.push((child, object.resource_version().unwrap()));
        }
        versions
    }

    /// Waits until nothing has changed for a second; the quota controller writes a status of its own.
    pub async fn settled(&self, name: &str, namespace: &str) -> Vec<(String, String)> {
        eventually(&format!("{name} settles"), async || {
            let before = self.versions(name, namespace).await;
            sleep(Duration::from_secs(1)).await;
            let after = self.versions(name, namespace).await;
            if before == after { Ok(after) } else { Err(format!("{before:?} became {after:?}")) }
        })
        .await
    }
}

/// Deletes what the test made. Nobody waits until it is gone.
impl Drop for Stage {
    fn drop(&mut self) {
        self.world.clean(format!("{RUN_LABEL}={}", self.run));
    }
}

/// How the operator in a test is set up.
pub fn operator_options(identity: &str) -> process::Options {
    let lease = lease::Settings {
        // A successor should not make a test wait.
        retry: Duration::from_millis(300),
        ..lease::Settings::new("default", AGENT, identity)
    };
    let controllers = vec![bivouac_tenancy::registration(bivouac_tenancy::Settings::default())];
    process::Options { controllers, admin: None, lease: Some(lease), identity: identity.to_owned() }
}

/// Makes the operator's client out of a plain one.
pub type Wrap = Box<dyn FnOnce(Client) -> Client + Send>;

/// Counts writes on their way.
fn counting(count: &Arc<AtomicUsize>, wrap: fn(Client) -> Client) -> Wrap {
    let count = count.clone();
    Box::new(move |client| {
        let send = move |request: http::Request<kube::client::Body>| {
            let counts = request.method() != http::Method::GET && !request.uri().path().contains("/leases");
            count.fetch_add(usize::from(counts), Ordering::SeqCst);
            let client = client.clone();
            async move { client.send(request).await }
        };
        wrap(Client::new(tower::service_fn(send), "default"))
    })
}

/// Everything that a plain cluster can give: two roles, quota, limits and isolation.
pub fn full(namespace: &str) -> Value {
    json!({
        "namespace": namespace,
        "members": [{"role": "admin", "subject": "ada"}, {"role": "view", "subject": "eve"}],
        "resourceQuota": {"hard": {"requests.cpu": "4000m", "requests.memory": "8Gi"}},
        "limitRange": {"limits": [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "0.1"}}]},
        "networkIsolation": {"enabled": true, "allowedNamespaces": ["ingress"]},
    })
}

pub fn workspace_crds() -> Vec<CustomResourceDefinition> {
    bivouac_api::crds().into_iter().filter(|crd| crd.spec.group == "tenant.otterscale.io").collect()
}

pub fn condition<'a>(workspace: &'a Workspace, type_: &str) -> Option<&'a Condition> {
    workspace.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Asks until the answer is good. `Err` says what is still wrong.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(wrong) if Instant::now() > deadline => panic!("not in time: {what}: {wrong}"),
            Err(_) => sleep(POLL).await,
        }
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}
