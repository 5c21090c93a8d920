// SPDX-License-Identifier: Apache-2.0
//! What is watched beside the children, each object reduced to what a plan reads.

use std::{collections::BTreeSet, sync::Arc};

use bivouac_runtime::{
    Runtime,
    mirror::{Mirror, on_demand::OnDemand, widening::Widening},
};
use k8s_openapi::{
    api::{
        core::v1::{Pod, Service},
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    build::{APP, JOB_INDEX},
    observe::Rank,
    supply::{Machine, Occupant, trim_machine, trim_occupant},
};

/// Kubernetes' own label for the rank of a pod.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOB_NAME: &str = "job-name";

/// The eyes of the controller. Of the ranks only the leads are watched until somebody cares for the others. Nodes are
/// watched once a Job runs, and only those that go away are held. What all of them offer, and other people's pods, matter
/// only once a cluster must start as a whole.
pub struct Sight {
    pub ranks: Widening<RankPod>,
    /// Other ranks that carry the `job-index` of another one.
    pub misnamed: OnDemand<RankPod>,
    /// The nodes that go away soon.
    pub leaving: OnDemand<Machine>,
    pub machines: OnDemand<Machine>,
    pub occupants: OnDemand<Occupant>,
    pub services: OnDemand<SelectingService>,
    pub policies: OnDemand<SelectingPolicy>,
    pub budgets: OnDemand<SelectingBudget>,
}

impl Sight {
    pub fn new(runtime: &Runtime) -> Self {
        let ranks = format!("{}={},{COMPLETION_INDEX}", APP.0, APP.1);
        let (leads, labelled) = (format!("{ranks}=0"), format!("{ranks},{COMPLETION_INDEX}!=0,{JOB_INDEX}"));
        let is_misnamed = |pod: &RankPod| pod.labels().get(JOB_INDEX).map(String::as_str) != pod.index();
        let misnamed = Mirror::of_some("pods", trim_rank, is_misnamed);
        // Pods that take room: bound to a node and not ended.
        let living = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
        Self {
            ranks: Widening::new(runtime, Mirror::new("pods", trim_rank), &leads, &ranks),
            misnamed: OnDemand::new(runtime, misnamed, |config| config.labels(&labelled)),
            leaving: OnDemand::new(runtime, nodes_that_go(), |config| config),
            machines: OnDemand::new(runtime, Mirror::new("nodes", trim_machine), |config| config),
            occupants: OnDemand::new(runtime, Mirror::new("pods", trim_occupant), |config| config.fields(living)),
            services: SelectingService::watch(runtime),
            policies: SelectingPolicy::watch(runtime),
            budgets: SelectingBudget::watch(runtime),
        }
    }

    /// Whether anything in the namespace selects pods by their `job-index`.
    pub async fn is_index_selected(&self, namespace: &str) -> bool {
        holds(self.services.look().await, namespace)
            || holds(self.policies.look().await, namespace)
            || holds(self.budgets.look().await, namespace)
    }

    /// The names of the nodes that go away soon.
    pub async fn going(&self) -> BTreeSet<String> {
        self.leaving.look().await.all().iter().map(|machine| machine.name_any()).collect()
    }
}

/// Of the nodes there may be thousands, and mostly none of these.
fn nodes_that_go() -> Arc<Mirror<Machine>> {
    Mirror::of_some("nodes", trim_machine, Machine::is_going)
}

fn holds<K: Resource + Clone>(mirror: &Mirror<K>, namespace: &str) -> bool {
    mirror.all().iter().any(|one| one.namespace().as_deref() == Some(namespace))
}

/// A pod of a Job of ours.
#[derive(Clone, Debug, Resource, Deserialize)]
#[resource(inherit = Pod)]
pub struct RankPod {
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: RankSpec,
    #[serde(default)]
    status: RankStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RankSpec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RankStatus {
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Deserialize)]
struct ContainerStatus {
    name: String,
    #[serde(default)]
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
}

impl RankPod {
    pub fn index(&self) -> Option<&str> {
        self.labels().get(COMPLETION_INDEX).map(String::as_str)
    }

    /// The name of its Job, which is that of the MiniCluster.
    pub fn job(&self) -> Option<&str> {
        self.labels().get(JOB_NAME).map(String::as_str)
    }

    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref()
    }

    pub fn rank(&self) -> Option<Rank> {
        // The runner is named after the cluster.
        let runner = self.status.container_statuses.iter().find(|one| Some(one.name.as_str()) == self.job());
        Some(Rank {
            pod: self.name_any(),
            uid: self.uid()?,
            index: self.index()?.to_owned(),
            label: self.labels().get(JOB_INDEX).cloned(),
            exit_code: runner.and_then(|one| one.state.terminated.as_ref()).map(|end| end.exit_code),
            node: self.spec.node_name.clone(),
            is_ending: self.metadata.deletion_timestamp.is_some(),
        })
    }
}

fn trim_rank(pod: &mut RankPod) {
    pod.metadata.annotations = None;
    if let Some(labels) = &mut pod.metadata.labels {
        labels.retain(|key, _| [COMPLETION_INDEX, JOB_NAME, JOB_INDEX].contains(&key.as_str()));
    }
}

/// An object of a kind that may select pods. Only those that select by `job-index` are held, without their spec.
macro_rules! selecting {
    ($name:ident, $kind:ident) => {
        #[derive(Clone, Debug, Resource, Deserialize)]
        #[resource(inherit = $kind)]
        pub struct $name {
            metadata: ObjectMeta,
            #[serde(default)]
            spec: Value,
        }

        impl $name {
            fn watch(runtime: &Runtime) -> OnDemand<Self> {
                let trim = |one: &mut Self| {
                    one.spec = Value::Null;
                    one.metadata.annotations = None;
                };
                let keep = |one: &Self| one.spec.to_string().contains("\"job-index\"");
                OnDemand::new(runtime, Mirror::of_some($name::plural(&()), trim, keep), |config| config)
            }
        }
    };
}

selecting!(SelectingService, Service);
selecting!(SelectingPolicy, NetworkPolicy);
selecting!(SelectingBudget, PodDisruptionBudget);

#[cfg(test)]
mod tests {
    use kube::{ResourceExt, runtime::watcher::Event};
    use serde_json::json;

    use super::{Machine, nodes_that_go};

    fn node(name: &str, version: u32, taint: Option<&str>) -> Machine {
        let taints: Vec<_> = taint.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
        let metadata = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap()
    }

    #[test]
    fn of_the_nodes_only_those_that_go_are_held() {
        let nodes = nodes_that_go();
        let names = || nodes.all().iter().map(|node| node.name_any()).collect::<Vec<_>>();
        nodes.take_event(Event::Init);
        nodes.take_event(Event::InitApply(node("stays", 1, Some("nvidia.com/gpu"))));
        nodes.take_event(Event::InitApply(node("goes", 2, Some("karpenter.sh/disrupted"))));
        nodes.take_event(Event::InitDone);
        assert_eq!(names(), ["goes"]);
        nodes.take_event(Event::Apply(node("stays", 3, None)));
        assert_eq!(names(), ["goes"]);
        nodes.take_event(Event::Apply(node("goes", 4, None)));
        assert!(names().is_empty(), "it stays after all");
        let heard = nodes.take_event(Event::Apply(node("stays", 5, Some("bivouac.dev/going"))));
        assert!(names() == ["stays"] && heard.len() == 1, "{heard:?}");
    }
}
