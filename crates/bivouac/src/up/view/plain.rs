// SPDX-License-Identifier: Apache-2.0
//! Lines for a log or a pipe: each change once.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::{Timestamp, Zoned};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    super::{kubectl_is_there, say, scene, seconds},
    CALM, Scene,
};

pub async fn show(mut scene: watch::Receiver<Scene>, began: Instant, stop: &CancellationToken) -> Duration {
    let mut told = Told::default();
    let mut first = None;
    loop {
        let now = scene.borrow_and_update().clone();
        told.news(&now).iter().for_each(|line| say(&format!("{} {line}", Zoned::now().strftime("%H:%M:%S"))));
        first.get_or_insert_with(|| began.elapsed());
        tokio::select! {
            () = stop.cancelled() => break,
            changed = scene.changed() => if changed.is_err() { break },
        }
        tokio::select! { () = stop.cancelled() => {}, () = tokio::time::sleep(CALM) => {} }
    }
    first.unwrap_or_default()
}

/// What was said already.
#[derive(Debug, Default)]
pub struct Told {
    address: bool,
    stage: &'static str,
    ready: bool,
    trouble: Option<String>,
    counts: BTreeMap<String, String>,
    waits: BTreeMap<String, String>,
    events: BTreeSet<(String, Timestamp)>,
}

impl Told {
    /// The lines that tell what is new.
    pub fn news(&mut self, scene: &Scene) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.address {
            self.address = true;
            lines.push(format!("bivouac {} at {}", env!("CARGO_PKG_VERSION"), scene.address));
            lines.push(format!("data in {}", scene.data_dir.display()));
        }
        if scene.ready.is_none() && self.stage != scene.stage {
            self.stage = scene.stage;
            lines.push(scene.stage.to_owned());
        }
        self.changes(scene, &mut lines);
        if let (false, Some(took)) = (self.ready, scene.ready) {
            self.ready = true;
            lines.push(format!("ready in {}", seconds(took)));
            lines.push("try in another terminal:".to_owned());
            lines.extend(scene.commands.iter().map(|command| format!("  {command}")));
            if !kubectl_is_there() {
                lines.push(NO_KUBECTL.to_owned());
            }
        }
        if self.trouble != scene.trouble {
            self.trouble.clone_from(&scene.trouble);
            lines.extend(scene.trouble.iter().map(|trouble| format!("TROUBLE: {trouble}")));
        }
        lines
    }

    fn changes(&mut self, scene: &Scene, lines: &mut Vec<String>) {
        let counts = scene.summary();
        let counts: BTreeMap<String, String> =
            counts.iter().map(|(kind, states)| (scene::plural(kind), scene::counted(states))).collect();
        lines.extend(changed(&self.counts, &counts).map(|(kind, count)| format!("{kind}: {count}")));
        let gone = self.counts.keys().filter(|kind| !counts.contains_key(*kind));
        lines.extend(gone.map(|kind| format!("{kind}: none")));
        self.counts = counts;
        let waits: BTreeMap<String, String> =
            scene.waits().into_iter().map(|(who, why)| (who, why.to_owned())).collect();
        lines.extend(changed(&self.waits, &waits).map(|(who, why)| format!("{who} waits: {why}")));
        let over = self.waits.keys().filter(|who| !waits.contains_key(*who));
        lines.extend(over.map(|who| format!("{who} waits no more")));
        self.waits = waits;
        let fresh = scene.events.iter().filter(|event| !self.events.contains(&(event.id.clone(), event.at)));
        lines.extend(fresh.map(|event| format!("{} {}: {}", event.about, event.reason, event.note)));
        self.events = scene.events.iter().map(|event| (event.id.clone(), event.at)).collect();
    }
}

pub const NO_KUBECTL: &str = "kubectl is not on your PATH; get it at https://kubernetes.io/docs/tasks/tools/";

fn changed<'a>(
    before: &'a BTreeMap<String, String>,
    now: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    now.iter().filter(|(key, value)| before.get(*key) != Some(*value))
}

#[cfg(test)]
mod tests {
    use super::{super::draw::tests::camp, *};

    #[test]
    fn each_change_is_told_once() {
        let mut told = Told::default();
        let mut scene = camp();
        let first = told.news(&scene);
        assert!(first.contains(&"Workspaces: 2 Ready, 1 Waiting".to_owned()), "{first:#?}");
        assert!(first.iter().any(|line| line.starts_with("ready in 0.43 s")), "{first:#?}");
        assert!(first.iter().any(|line| line.starts_with("Pod aurora/huge waits: Unschedulable")), "{first:#?}");
        assert_eq!(told.news(&scene), Vec::<String>::new());
        scene.items.retain(|key, _| key.name != "huge");
        scene.trouble = Some("the disk is full".to_owned());
        let next = told.news(&scene);
        assert_eq!(next, ["Pods: 3 Running", "Pod aurora/huge waits no more", "TROUBLE: the disk is full"]);
    }
}
