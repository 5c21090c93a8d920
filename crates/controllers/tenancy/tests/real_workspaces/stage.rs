// SPDX-License-Identifier: Apache-2.0
//! A cluster with the Workspace kind and our operator, and words to say what is expected of them.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bivouac_api::tenant::Workspace;
use bivouac_runtime::Kind;
use bivouac_testenv::{Options, TestCluster};
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
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::operator::Operator;

const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);
/// Marks what this test made, so that it can be cleaned up.
const RUN_LABEL: &str = "test.bivouac.dev/run";

pub struct Stage {
    // Dropped in this order: the operator must not outlive its cluster.
    operator: Option<Operator>,
    pub cluster: TestCluster,
    pub client: Client,
    run: String,
}

impl Stage {
    /// On the cluster that all tests share. Names must be unique: see [`Stage::name`].
    pub async fn shared() -> Self {
        Self::on(TestCluster::shared().await.unwrap(), &workspace_crds()).await
    }

    /// On a cluster of its own, for tests that others would notice.
    pub async fn own(options: Options, crds: &[CustomResourceDefinition]) -> Self {
        let without = ["kwok", "scheduler"].map(str::to_owned).to_vec();
        Self::on(TestCluster::start(Options { without, ..options }).await.unwrap(), crds).await
    }

    async fn on(cluster: TestCluster, crds: &[CustomResourceDefinition]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        cluster.install_crds(crds).await.unwrap();
        let client = cluster.client();
        let operator = Some(Operator::start(cluster.kubeconfig()));
        Self { operator, client, cluster, run: format!("{seconds:x}-{:x}-{count}", std::process::id()) }
    }

    /// A name that no other test has.
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.run)
    }

    /// Stops the operator and starts another, whose requests go through what `wrap` makes.
    pub fn restart_operator(&mut self, wrap: fn(Client) -> Client) {
        self.operator = None;
        self.operator = Some(Operator::start_with(self.cluster.kubeconfig(), wrap));
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
        let (kubeconfig, run): (PathBuf, _) = (self.cluster.kubeconfig().to_owned(), self.run.clone());
        let clean = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let config = bivouac_runtime::client::config(Some(&kubeconfig)).await.unwrap();
                let client = bivouac_runtime::client::connect(config, "test").unwrap();
                let ours = ListParams::default().labels(&format!("{RUN_LABEL}={run}"));
                let workspaces = Api::<Workspace>::all(client);
                let background = DeleteParams::background();
                let deleting = workspaces.delete_collection(&background, &ours);
                let _ = tokio::time::timeout(Duration::from_secs(5), deleting).await;
            });
        };
        let _ = std::thread::spawn(clean).join();
    }
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
