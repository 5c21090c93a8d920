// SPDX-License-Identifier: Apache-2.0
use std::{path::PathBuf, time::Duration};

use jiff::{Timestamp, tz::TimeZone};

use super::*;
use crate::cli::PlaceOptions;
use crate::up::data_dir::{Camp, DataDir};
use crate::up::scene::{Happening, Item, Key};

const ADDRESS: &str = "https://127.0.0.1:6551";

fn now() -> Zoned {
    "2026-01-01T12:34:56Z".parse::<Timestamp>().unwrap().to_zoned(TimeZone::UTC)
}

/// A camp with something of everything.
pub fn camp() -> Scene {
    let mut scene = Scene::new("2026-01-01T12:30:00Z".parse().unwrap(), ADDRESS.into(), PathBuf::from("/data/bivouac"));
    scene.ready = Some(Duration::from_millis(430));
    let dir = DataDir::of(&PlaceOptions { data_dir: Some(scene.data_dir.clone()) }).unwrap();
    scene.commands = crate::up::commands(&dir, Camp::Pitched, "bivouac");
    let mut put = |rank, kind: &str, namespace: &str, name: &str, state: &str, waits_for: Option<&str>| {
        let key = Key { rank, kind: kind.into(), namespace: namespace.into(), name: name.into() };
        scene.items.insert(key, Item { state: state.into(), waits_for: waits_for.map(str::to_owned) });
    };
    put(0, "Workspace", "", "aurora", "Ready", None);
    put(0, "Workspace", "", "borealis", "Ready", None);
    let conflict = "NamespaceConflict: the namespace default exists and belongs to somebody else";
    put(0, "Workspace", "", "cumulus", "Waiting", Some(conflict));
    put(1, "Deployment", "aurora", "notebook", "Ready", None);
    put(2, "Node", "", "node-1", "Ready", None);
    for name in ["a", "b", "c"] {
        put(3, "Pod", "aurora", name, "Running", None);
    }
    let short =
        "Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available";
    put(3, "Pod", "aurora", "huge", "Pending", Some(short));
    for (id, at, reason, warning) in [("1", "12:30:01", "Created", false), ("2", "12:31:07", "FailedScheduling", true)]
    {
        scene.note(Happening {
            id: id.into(),
            at: format!("2026-01-01T{at}Z").parse().unwrap(),
            about: "Pod aurora/huge".into(),
            reason: reason.into(),
            note: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu".into(),
            warning,
        });
    }
    scene
}

fn picture(scene: &Scene, width: usize, height: usize) -> String {
    let lines = lines(scene, &now(), width, height, false);
    assert!(lines.len() <= height && lines.iter().all(|line| line.width() <= width));
    lines.iter().map(|line| line.to_string().trim_end().to_owned() + "\n").collect()
}

/// Compares with a file beside this one; `BIVOUAC_BLESS=1` writes it.
fn golden(name: &str, found: &str) {
    let path = format!("{}/src/up/view/draw/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BIVOUAC_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap_or_default(), "{path}");
}

/// kubectl may or may not be there where the tests run; the picture with it is the golden one.
fn without_hint(text: &str) -> String {
    text.lines().filter(|line| !line.contains(NO_KUBECTL)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_camp_in_a_small_terminal() {
    golden("80x24", &without_hint(&picture(&camp(), 80, 24)));
}

#[test]
fn a_camp_in_a_large_terminal() {
    golden("120x40", &without_hint(&picture(&camp(), 120, 40)));
}

#[test]
fn while_it_starts() {
    let mut scene = Scene::new("2026-01-01T12:34:56Z".parse().unwrap(), ADDRESS.into(), PathBuf::from("/data/bivouac"));
    scene.stage = "starting the controllers";
    scene.waiting = vec!["tenancy waits for the first lists of Namespace".to_owned()];
    golden("starting", &picture(&scene, 80, 24));
}

#[test]
fn trouble_comes_first_and_whole() {
    let mut scene = camp();
    let trouble =
        "The disk is full: objects can be read, but not changed. Make room, then stop this and start it again.";
    scene.trouble = Some(trouble.to_owned());
    let text = picture(&scene, 60, 24);
    let told: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(" ! ")).collect();
    assert_eq!(told.join(" "), trouble);
}

#[test]
fn every_size_can_be_drawn() {
    for width in [0, 1, 2, 10, 40, 80, 300] {
        for height in [0, 1, 2, 3, 5, 8, 15, 16, 17, 60] {
            picture(&camp(), width, height);
        }
    }
}

#[test]
fn colour_is_left_out_when_it_is_not_wanted() {
    let coloured = |colour| {
        let all = lines(&camp(), &now(), 80, 24, colour);
        all.iter().flat_map(|line| &line.spans).any(|span| span.style.fg.is_some())
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut scene = camp();
    for number in 0..20 {
        let key = Key { rank: 3, kind: "Pod".into(), namespace: "aurora".into(), name: format!("many-{number:02}") };
        scene.items.insert(key, Item { state: "Pending".into(), waits_for: Some("room".into()) });
    }
    assert!(picture(&scene, 80, 24).contains(" more\n"));
}
