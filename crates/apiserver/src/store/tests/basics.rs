// SPDX-License-Identifier: Apache-2.0
//! The store by example. The model test covers the combinations.

use super::{draft, pods, put};
use crate::store::*;

fn keys(page: &Page) -> Vec<&str> {
    page.items.iter().map(Stored::key).collect()
}

#[tokio::test]
async fn the_first_write_is_revision_two() {
    let store = Store::in_memory(Limits::default());
    assert_eq!(store.revision(), 1);
    let made = put(&store, "a/x").await;
    assert_eq!((made.revision(), made.body()), (2, &b"a/x@2"[..]));
    assert_eq!(store.get(&pods(), "a/x"), Some(made));
    assert_eq!(store.get(&Keyspace::new("apps", "pods"), "a/x"), None);
}

#[tokio::test]
async fn a_write_must_name_what_it_replaces() {
    let store = Store::in_memory(Limits::default());
    put(&store, "a/x").await;
    let pods = pods();
    let commit = |write| store.commit(&pods, "a/x", write, draft("new"));
    assert!(matches!(commit(Write::Create).await, Err(CommitError::Exists)));
    assert!(matches!(commit(Write::Update(1)).await, Err(CommitError::Changed(now)) if now.revision() == 2));
    assert!(matches!(commit(Write::Delete(9)).await, Err(CommitError::Changed(_))));
    assert_eq!(commit(Write::Delete(2)).await.unwrap().body(), b"new@3");
    assert!(matches!(commit(Write::Update(2)).await, Err(CommitError::Absent)));
    assert_eq!(store.revision(), 3, "a refused write takes no revision");
}

#[tokio::test]
async fn pages_of_one_revision_are_one_snapshot() {
    let store = Store::in_memory(Limits::default());
    for key in ["a/1", "a-b/1", "a/2", "b/1"] {
        put(&store, key).await;
    }
    let all = |after, limit, at| Range { after, limit, at, count: true, ..Range::default() };
    let first = store.range(&pods(), &all(None, Some(2), None), |_| true).unwrap();
    assert_eq!((keys(&first), first.more, first.remaining), (vec!["a-b/1", "a/1"], true, Some(2)));
    store.commit(&pods(), "b/1", Write::Delete(5), draft("b/1")).await.unwrap();
    put(&store, "a/3").await;
    put(&store, "a/2").await;
    let rest = store.range(&pods(), &all(Some("a/1"), Some(9), Some(first.revision)), |_| true).unwrap();
    assert_eq!((keys(&rest), rest.more), (vec!["a/2", "b/1"], false));
    assert_eq!(rest.items[0].revision(), 4);
    let inside = Range { namespace: Some("a"), ..Range::default() };
    assert_eq!(keys(&store.range(&pods(), &inside, |_| true).unwrap()), ["a/1", "a/2", "a/3"]);
    let behind = Range { namespace: Some("a"), after: Some("z"), ..Range::default() };
    assert!(store.range(&pods(), &behind, |_| true).unwrap().items.is_empty());
}

#[tokio::test]
async fn old_and_future_revisions_are_refused() {
    let store = Store::in_memory(Limits { events: 2, ..Limits::default() });
    for _ in 0..5 {
        put(&store, "a/x").await;
    }
    assert_eq!(store.oldest(&pods()), 4);
    assert_eq!(store.get_at(&pods(), "a/x", 4).unwrap().unwrap().revision(), 4);
    let gone = Compacted { requested: 3, oldest: 4 };
    assert_eq!(store.get_at(&pods(), "a/x", 3), Err(gone.into()));
    assert_eq!(store.watch(&pods(), 3).unwrap_err(), gone);
    assert_eq!(store.get_at(&pods(), "a/x", 7), Err(ReadError::Future { requested: 7, current: 6 }));
}

#[tokio::test]
async fn a_watcher_gets_what_came_after() {
    let store = Store::in_memory(Limits::default());
    put(&store, "a/x").await;
    let mut watcher = store.watch(&pods(), 1).unwrap();
    put(&store, "a/x").await;
    store.commit(&pods(), "a/x", Write::Delete(3), draft("last")).await.unwrap();
    let events = watcher.next_batch(2).await.unwrap();
    assert_eq!(
        events.iter().map(|e| (e.kind, e.revision())).collect::<Vec<_>>(),
        [(Kind::Added, 2), (Kind::Modified, 3)]
    );
    assert_eq!(events[1].before.as_ref().unwrap().revision(), 2);
    assert_eq!(watcher.progress(), 3, "one event is still to be read");
    let events = watcher.next_batch(2).await.unwrap();
    assert_eq!((events[0].kind, events[0].now.body()), (Kind::Deleted, &b"last@4"[..]));
    store.commit(&Keyspace::new("", "nodes"), "n", Write::Create, draft("n")).await.unwrap();
    assert_eq!(watcher.progress(), 5, "a quiet keyspace follows the store");
}

#[tokio::test]
async fn a_waiting_watcher_is_woken() {
    let store = Store::in_memory(Limits::default());
    let mut watcher = store.watch(&pods(), 1).unwrap();
    let waiting = tokio::spawn(async move { watcher.next_batch(9).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    put(&store, "a/x").await;
    assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
}

#[tokio::test]
async fn only_a_lost_event_stops_a_watcher() {
    let store = Store::in_memory(Limits { events: 2, ..Limits::default() });
    let mut quiet = store.watch(&Keyspace::new("", "nodes"), 1).unwrap();
    let mut slow = store.watch(&pods(), 1).unwrap();
    for _ in 0..3 {
        put(&store, "a/x").await;
    }
    store.compact(4);
    assert_eq!(slow.next_batch(9).await, Err(Compacted { requested: 1, oldest: 4 }));
    assert_eq!(slow.progress(), 1);
    store.commit(&Keyspace::new("", "nodes"), "n", Write::Create, draft("n")).await.unwrap();
    assert_eq!(quiet.next_batch(9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn history_is_limited_by_bytes_too() {
    let store = Store::in_memory(Limits { bytes: 10_000, ..Limits::default() });
    let big = |_| Draft { body: vec![b'x'; 4_000], tags: Tags::default() };
    let mut seen = store.commit(&pods(), "a/x", Write::Create, big).await.unwrap().revision();
    for _ in 0..9 {
        seen = store.commit(&pods(), "a/x", Write::Update(seen), big).await.unwrap().revision();
    }
    assert_eq!(store.oldest(&pods()), seen - 2, "two old versions fit");
    // Objects that only live take no part: what counts is what the history alone keeps.
    for number in 0..20 {
        store.commit(&pods(), &format!("b/{number}"), Write::Create, big).await.unwrap();
    }
    assert_eq!(store.oldest(&pods()), seen - 2);
}
