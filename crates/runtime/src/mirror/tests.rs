// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{ResourceExt, runtime::watcher::Event};
use std::sync::Arc;

use super::{Key, Mirror, OWNER_LABEL};

fn object(name: &str, uid: &str, version: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("ns".to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_string()),
        labels: Some([(OWNER_LABEL.to_owned(), "owner".to_owned())].into()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn mirror() -> Arc<Mirror<ConfigMap>> {
    Mirror::new("configmaps", |_| {})
}

fn listed(mirror: &Mirror<ConfigMap>, objects: &[ConfigMap]) -> usize {
    mirror.take_event(Event::Init);
    for object in objects {
        mirror.take_event(Event::InitApply(object.clone()));
    }
    mirror.take_event(Event::InitDone).len()
}

fn version(mirror: &Mirror<ConfigMap>, name: &str) -> Option<String> {
    mirror.get(&Key::new("ns", name))?.resource_version()
}

#[test]
fn it_is_ready_only_after_a_whole_list() {
    let mirror = mirror();
    mirror.take_event(Event::Init);
    mirror.take_event(Event::InitApply(object("a", "1", 1)));
    assert!(!mirror.is_ready());
    assert!(mirror.is_empty(), "a half list is no world");
    mirror.take_event(Event::InitDone);
    assert!(mirror.is_ready());
    assert_eq!(mirror.len(), 1);
}

#[test]
fn our_own_write_is_seen_at_once_and_its_echo_is_no_change() {
    let mirror = mirror();
    listed(&mirror, &[]);
    mirror.wrote(object("a", "1", 5));
    assert_eq!(version(&mirror, "a").unwrap(), "5");
    assert!(mirror.take_event(Event::Apply(object("a", "1", 4))).is_empty(), "older than our write");
    assert!(mirror.take_event(Event::Apply(object("a", "1", 5))).is_empty(), "the echo");
    assert_eq!(mirror.take_event(Event::Apply(object("a", "1", 6))).len(), 1, "somebody else's change");
    assert_eq!(version(&mirror, "a").unwrap(), "6");
}

#[test]
fn our_own_deletion_is_seen_at_once_and_stale_events_do_not_undo_it() {
    let mirror = mirror();
    listed(&mirror, &[object("a", "1", 1)]);
    mirror.erased(&Key::new("ns", "a"));
    assert!(mirror.is_empty());
    assert!(mirror.take_event(Event::Apply(object("a", "1", 2))).is_empty());
    assert!(mirror.take_event(Event::Delete(object("a", "1", 3))).is_empty());
    assert!(mirror.is_empty());
    assert_eq!(mirror.take_event(Event::Apply(object("a", "2", 4))).len(), 1, "a new life is news");
}

/// The answer to a create may be slower than the watch that tells of the object and of its end.
#[test]
fn a_late_answer_to_our_write_raises_nobody_from_the_dead() {
    let mirror = mirror();
    listed(&mirror, &[]);
    mirror.take_event(Event::Apply(object("a", "1", 5)));
    mirror.take_event(Event::Delete(object("a", "1", 6)));
    mirror.wrote(object("a", "1", 5));
    assert!(mirror.is_empty());
    mirror.take_event(Event::Apply(object("a", "2", 7)));
    mirror.wrote(object("a", "1", 5));
    assert_eq!(version(&mirror, "a").unwrap(), "7", "its successor stays");
    mirror.wrote(object("b", "3", 8));
    assert_eq!(version(&mirror, "b").unwrap(), "8", "what the watch has not told yet is taken");
}

#[test]
fn the_end_of_an_earlier_life_does_not_remove_its_successor() {
    let mirror = mirror();
    listed(&mirror, &[object("a", "1", 1)]);
    mirror.wrote(object("a", "2", 9));
    assert!(mirror.take_event(Event::Delete(object("a", "1", 8))).is_empty());
    assert_eq!(version(&mirror, "a").unwrap(), "9");
}

#[tokio::test(start_paused = true)]
async fn a_relist_removes_what_is_gone_but_not_what_we_wrote_meanwhile() {
    let mirror = mirror();
    listed(&mirror, &[object("gone", "1", 1), object("kept", "2", 1)]);
    mirror.take_event(Event::Init);
    mirror.wrote(object("written", "3", 7));
    mirror.take_event(Event::InitApply(object("kept", "2", 1)));
    assert_eq!(mirror.take_event(Event::InitDone).len(), 1, "only the one that is gone changed");
    assert!(version(&mirror, "gone").is_none());
    assert!(version(&mirror, "written").is_some());
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    listed(&mirror, &[object("kept", "2", 1)]);
    assert!(version(&mirror, "written").is_none(), "a list that began later knows better");
}

#[test]
fn owners_are_found_without_a_scan_and_forgotten_with_their_objects() {
    let mirror = mirror();
    listed(&mirror, &[object("a", "1", 1), object("b", "2", 1)]);
    assert_eq!(mirror.owned_by("owner").len(), 2);
    mirror.take_event(Event::Delete(object("a", "1", 2)));
    assert_eq!(mirror.owned_by("owner").len(), 1);
    let mut unlabelled = object("b", "2", 3);
    unlabelled.metadata.labels = None;
    mirror.take_event(Event::Apply(unlabelled));
    assert!(mirror.owned_by("owner").is_empty());
}

#[test]
fn managed_fields_are_not_kept() {
    let mirror = mirror();
    let mut heavy = object("a", "1", 1);
    heavy.metadata.managed_fields = Some(vec![Default::default()]);
    listed(&mirror, &[heavy]);
    assert!(mirror.get(&Key::new("ns", "a")).unwrap().managed_fields().is_empty());
}

#[test]
fn what_does_not_pass_is_not_held() {
    let mirror = Mirror::of_some("configmaps", |_| {}, |object: &ConfigMap| object.data.is_some());
    let full = |version| ConfigMap { data: Some([].into()), ..object("a", "1", version) };
    assert_eq!(listed(&mirror, &[object("b", "2", 1), full(1)]), 1);
    assert_eq!(mirror.take_event(Event::Apply(object("a", "1", 2))).len(), 1, "it passes no longer");
    assert!(mirror.is_empty());
    assert_eq!(mirror.take_event(Event::Apply(full(3))).len(), 1);
    assert_eq!(mirror.all().len(), 1);
}

#[test]
fn in_doubt_it_keeps_what_it_holds_and_waits_for_the_next_list() {
    let mirror = mirror();
    listed(&mirror, &[object("a", "1", 1)]);
    mirror.doubt();
    assert!(!mirror.is_ready());
    assert_eq!(mirror.len(), 1, "nobody was told that it is gone");
    assert_eq!(listed(&mirror, &[object("a", "1", 1), object("b", "2", 2)]), 1, "only what is new");
    assert!(mirror.is_ready());
}

#[test]
fn what_was_compared_counts_until_somebody_asks_for_something_else() {
    const WISH: u64 = 7;
    let key = Key::new("ns", "a");
    let generation = |generation, version| {
        let mut object = object("a", "1", version);
        object.metadata.generation = generation;
        object
    };
    let mirror = mirror();
    let compared = |object: Option<ConfigMap>| {
        object.into_iter().for_each(|object| drop(mirror.take_event(Event::Apply(object))));
        mirror.compared(&key).1
    };
    listed(&mirror, &[generation(Some(1), 1)]);
    mirror.holds(&key, Some("0"), WISH);
    assert_eq!(compared(None), None, "it was another version that was compared");
    mirror.holds(&key, Some("1"), WISH);
    assert_eq!(compared(None), Some(WISH));
    assert_eq!(compared(Some(generation(Some(1), 2))), Some(WISH), "it only reports something");
    assert_eq!(compared(Some(generation(Some(2), 3))), None, "its spec changed");
    mirror.holds(&key, Some("3"), WISH);
    let mut relabelled = generation(Some(2), 4);
    relabelled.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
    assert_eq!(compared(Some(relabelled)), None, "labels and annotations have no generation");
    assert_eq!(compared(Some(generation(None, 5))), None);
    mirror.holds(&key, Some("5"), WISH);
    assert_eq!(compared(Some(generation(None, 6))), None, "without a generation nobody knows");
    mirror.holds(&key, Some("6"), WISH);
    mirror.wrote(generation(None, 7));
    assert_eq!(compared(None), None, "what we wrote ourselves is compared as well");
}
