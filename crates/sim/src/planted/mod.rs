// SPDX-License-Identifier: Apache-2.0
//! A controller of our own making with bugs that can be put in, to show that the simulation finds them. It keeps Lamps:
//! each has a machine in the yard, a note about it, and a colour from the palette.

mod keeper;
mod lamp;

use std::sync::Arc;

use anyhow::{Result, bail};
use bivouac_runtime::registry::Registration;
use kube::CustomResourceExt;
use serde_json::Value;

pub use lamp::Lamp;

/// What is wrong with the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// It buys a machine and then writes down which, and looks nowhere else for it.
    CreateThenRecord,
    /// It makes a note if its cache shows none.
    StaleCache,
    /// It remembers machines in memory, and ends them when it sees their Lamp go.
    MissedDelete,
    /// It lets a Lamp go although its machine may not be gone.
    EarlyFinalizer,
    /// It writes the time of each look.
    HotLoop,
    /// It believes that the palette comes before the Lamps.
    EventOrder,
}

pub const BUGS: [(&str, Bug); 7] = [
    ("none", Bug::None),
    ("create-then-record", Bug::CreateThenRecord),
    ("stale-cache", Bug::StaleCache),
    ("missed-delete", Bug::MissedDelete),
    ("early-finalizer", Bug::EarlyFinalizer),
    ("hot-loop", Bug::HotLoop),
    ("event-order", Bug::EventOrder),
];

pub fn registration(bug: &str) -> Result<Registration> {
    let Some((_, bug)) = BUGS.iter().find(|(name, _)| *name == bug) else {
        bail!("there is no planted bug {bug:?}; there are {:?}", BUGS.map(|(name, _)| name));
    };
    let bug = *bug;
    Ok(Registration {
        name: "planted",
        about: "Lamps, with a bug",
        apis: Vec::new,
        rbac: Vec::new,
        rivals: &[],
        run: Arc::new(move |runtime| Box::pin(keeper::run(runtime, bug))),
    })
}

pub fn crd() -> Result<Value> {
    Ok(serde_json::to_value(Lamp::crd())?)
}
