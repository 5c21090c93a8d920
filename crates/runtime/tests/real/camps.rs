// SPDX-License-Identifier: Apache-2.0
//! A small controller for the harness's own tests: a Camp has ConfigMaps as children and tents outside Kubernetes.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use bivouac_core::clock::SystemClock;
use bivouac_runtime::{
    Error, Plan, Reconciler, Runtime,
    process::{self, Options},
    reconcile::{self, Child, Children, Live, Note, Setup, Truth, Verdict},
    registry::Registration,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{Client, CustomResource, Resource, ResourceExt, core::GroupVersionKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub const FINALIZER: &str = "test.bivouac.dev/tents";

#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.bivouac.dev", version = "v1", kind = "Camp", plural = "camps", namespaced, status = "CampStatus")]
pub struct CampSpec {
    pub tents: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct CampStatus {
    #[serde(default)]
    pub pitched: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What stands outside, and how often each thing was done there.
#[derive(Clone, Debug, Default)]
pub struct Outside(Arc<Mutex<Field>>);

#[derive(Debug, Default)]
struct Field {
    tents: BTreeSet<String>,
    actions: usize,
    /// The action at which the process dies, and whether it still takes place.
    dies_at: Option<(usize, bool)>,
    dead: CancellationToken,
}

impl Outside {
    pub fn tents(&self) -> BTreeSet<String> {
        self.0.lock().unwrap().tents.clone()
    }

    pub fn actions(&self) -> usize {
        self.0.lock().unwrap().actions
    }

    /// Lets the process die at its n-th action from now on.
    pub fn die_at(&self, action: usize, takes_place: bool, dead: CancellationToken) {
        let mut field = self.0.lock().unwrap();
        field.dies_at = Some((field.actions + action, takes_place));
        field.dead = dead;
    }

    pub fn heal(&self) {
        self.0.lock().unwrap().dies_at = None;
    }

    fn act(&self, effect: Effect) -> bool {
        let mut field = self.0.lock().unwrap();
        field.actions += 1;
        let fatal = field.dies_at.filter(|(at, _)| *at == field.actions);
        if fatal.is_none_or(|(_, takes_place)| takes_place) {
            match effect {
                Effect::Pitch(tent) => field.tents.insert(tent),
                Effect::Strike(tent) => field.tents.remove(&tent),
            };
        }
        if fatal.is_some() {
            field.dead.cancel();
        }
        fatal.is_some()
    }
}

#[derive(Debug)]
pub enum Effect {
    Pitch(String),
    Strike(String),
}

struct Camps(Outside);

impl Reconciler for Camps {
    const NAME: &'static str = "camps";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    type Kind = Camp;
    type World = BTreeSet<String>;
    type Status = CampStatus;
    type Effect = Effect;

    async fn observe(&self, camp: &Camp, _: &Live<'_>) -> Result<BTreeSet<String>, Error> {
        let prefix = format!("{}/", camp.name_any());
        Ok(self.0.tents().into_iter().filter(|tent| tent.starts_with(&prefix)).collect())
    }

    fn plan(&self, camp: &Camp, pitched: &BTreeSet<String>, _: Timestamp) -> Plan<CampStatus, Effect> {
        let wanted: BTreeSet<String> =
            camp.spec.tents.iter().map(|tent| format!("{}/{tent}", camp.name_any())).collect();
        let note = |tent: &String| {
            let metadata = ObjectMeta {
                name: Some(format!("{}-{tent}", camp.name_any())),
                namespace: camp.namespace(),
                labels: Some([("camp".to_owned(), "yes".to_owned())].into()),
                ..ObjectMeta::default()
            };
            Child::of(&ConfigMap {
                metadata,
                data: Some([("tent".to_owned(), tent.clone())].into()),
                ..ConfigMap::default()
            })
        };
        let pitch = wanted.difference(pitched).cloned().map(Effect::Pitch);
        let strike = pitched.difference(&wanted).cloned().map(Effect::Strike);
        let stands = wanted == *pitched;
        Plan {
            stages: vec![camp.spec.tents.iter().map(note).collect()],
            effects: pitch.chain(strike).collect(),
            status: Some(CampStatus { pitched: i32::try_from(pitched.len()).unwrap(), conditions: Vec::new() }),
            conditions: vec![Verdict {
                type_: "Ready",
                status: if stands { Truth::True } else { Truth::False },
                reason: if stands { "Pitched" } else { "Pitching" },
                message: String::new(),
            }],
            events: vec![Note { warning: false, reason: "Pitched", action: "Pitch", text: "all tents".to_owned() }],
            ..Plan::default()
        }
    }

    fn release(&self, _: &Camp, pitched: &BTreeSet<String>, _: Timestamp) -> Plan<CampStatus, Effect> {
        Plan { effects: pitched.iter().cloned().map(Effect::Strike).collect(), ..Plan::default() }
    }

    async fn perform(&self, _: &Camp, effect: Effect) -> Result<(), Error> {
        if self.0.act(effect) {
            // The process died in the middle of it.
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

fn registration(outside: Outside) -> Registration {
    let run = move |runtime: Runtime| {
        let outside = outside.clone();
        Box::pin(async move {
            let children = Children::default().kind::<ConfigMap>(Some("camp=yes"));
            let setup = Setup { children, triggers: Vec::new(), concurrency: 4, is_new: None };
            reconcile::run(&runtime, |_| (Camps(outside), setup)).await;
        }) as futures::future::BoxFuture<'static, ()>
    };
    Registration {
        name: "camps",
        about: "",
        apis: || vec![GroupVersionKind::gvk(&Camp::group(&()), &Camp::version(&()), &Camp::kind(&()))],
        rbac: Vec::new,
        rivals: &[],
        run: Arc::new(run),
    }
}

/// The controller as a process of its own would be; aborting it is its death.
pub struct Process(tokio::task::JoinHandle<()>, CancellationToken);

pub fn start(client: Client, outside: &Outside) -> Process {
    let stop = CancellationToken::new();
    let options = Options {
        controllers: vec![registration(outside.clone())],
        admin: None,
        lease: None,
        identity: "test".to_owned(),
    };
    let token = stop.clone();
    let run = async move { process::operate(client, Arc::new(SystemClock), options, token).await.unwrap_or_default() };
    Process(tokio::spawn(run), stop)
}

impl Process {
    pub fn kill(self) {
        self.0.abort();
    }

    pub async fn stop(self) {
        self.1.cancel();
        tokio::time::timeout(Duration::from_secs(30), self.0)
            .await
            .expect("it stops in time")
            .expect("without a panic");
    }
}
