// SPDX-License-Identifier: Apache-2.0
//! What a store on disk comes back with, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{delete, draft, pods, put};
use crate::store::*;

const HEADER: usize = 16;

fn open(dir: &Path) -> Result<Store, OpenError> {
    Store::open(dir, Limits::default())
}

fn log(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("log-{first:020}"))
}

fn all(store: &Store) -> Vec<Stored> {
    store.range(&pods(), &Range::default(), |_| true).unwrap().items
}

/// A store of a few writes of different kinds, closed, and the state after each of its revisions.
async fn small(dir: &Path) -> Vec<Vec<Stored>> {
    let store = open(dir).unwrap();
    let mut states = vec![Vec::new()];
    for (key, gone) in [("a/x", false), ("b/y", false), ("a/x", false), ("b/y", true), ("a/z", false)] {
        if gone {
            delete(&store, key).await
        } else {
            put(&store, key).await
        };
        states.push(all(&store));
    }
    states
}

/// Makes a snapshot of what is there, by the only way there is: a log that has grown too long.
async fn with_snapshot(dir: &Path) -> u64 {
    let store = Store::open(dir, Limits { log_bytes: 0, ..Limits::default() }).unwrap();
    let revision = put(&store, "a/snap").await.revision();
    drop(store);
    assert!(dir.join(format!("snapshot-{revision:020}")).exists());
    revision
}

#[tokio::test]
async fn a_reopened_store_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let states = small(dir.path()).await;
    let store = open(dir.path()).unwrap();
    assert_eq!((store.revision(), all(&store)), (6, states[5].clone()));
    assert_eq!(store.get(&pods(), "a/z").unwrap().labels().get("app"), Some("a/z"));
    let mut watcher = store.watch(&pods(), 4).unwrap();
    assert_eq!(put(&store, "a/x").await.revision(), 7);
    let events = watcher.next_batch(9).await.unwrap();
    let seen: Vec<_> = events.iter().map(|event| (event.kind, event.revision(), event.now.key())).collect();
    assert_eq!(seen, [(Kind::Deleted, 5, "b/y"), (Kind::Added, 6, "a/z"), (Kind::Modified, 7, "a/x")]);
}

#[tokio::test]
async fn a_snapshot_replaces_the_logs_before_it() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let revision = with_snapshot(dir.path()).await;
    assert!(!log(dir.path(), 2).exists());
    let store = open(dir.path()).unwrap();
    assert_eq!(all(&store).iter().map(Stored::key).collect::<Vec<_>>(), ["a/snap", "a/x", "a/z"]);
    assert_eq!(store.revision(), revision);
    assert_eq!(store.watch(&pods(), 3).unwrap_err(), Compacted { requested: 3, oldest: revision });
    assert!(store.watch(&pods(), revision).is_ok());
    assert_eq!(put(&store, "a/x").await.revision(), revision + 1);
}

#[tokio::test]
async fn a_log_cut_anywhere_gives_all_whole_writes() {
    let dir = tempfile::tempdir().unwrap();
    let states = small(dir.path()).await;
    let whole = fs::read(log(dir.path(), 2)).unwrap();
    let mut seen = 0;
    for len in 0..=whole.len() {
        for tail in [0, 1, 40] {
            let mut cut = whole[..len].to_vec();
            cut.resize(len + tail, 0);
            fs::write(log(dir.path(), 2), &cut).unwrap();
            let store = match open(dir.path()) {
                Ok(store) => store,
                // Part of a record and zeros behind it: not a shape that an interrupted append leaves.
                Err(OpenError::Damaged { .. }) if tail > 0 => continue,
                Err(error) => panic!("cut at {len} with {tail} zeros: {error}"),
            };
            let writes = store.revision() as usize - 1;
            assert_eq!(all(&store), states[writes], "cut at {len}");
            assert!(writes >= seen, "cut at {len}: lost a whole write");
            seen = writes;
            // It can be written to and opened again.
            put(&store, "n/n").await;
            drop(store);
            assert_eq!(open(dir.path()).unwrap().revision() as usize, writes + 2);
        }
    }
    assert_eq!(seen, states.len() - 1);
}

#[tokio::test]
async fn a_changed_byte_anywhere_in_a_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    flip_every_byte(dir.path(), &log(dir.path(), 2));
}

#[tokio::test]
async fn a_changed_byte_anywhere_in_a_snapshot_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let revision = with_snapshot(dir.path()).await;
    let path = dir.path().join(format!("snapshot-{revision:020}"));
    flip_every_byte(dir.path(), &path);
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(matches!(open(dir.path()), Err(OpenError::Damaged { .. })), "cut at {len}");
    }
}

fn flip_every_byte(dir: &Path, path: &Path) {
    let whole = fs::read(path).unwrap();
    for at in 0..whole.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut bad = whole.clone();
            bad[at] ^= mask;
            fs::write(path, &bad).unwrap();
            let Err(OpenError::Damaged { path: named, offset, found }) = open(dir) else {
                panic!("byte {at} ^ {mask:#x} was not noticed");
            };
            assert!(named == path && offset as usize <= at && !found.is_empty());
            assert_eq!(fs::read(path).unwrap(), bad, "a refused file is left alone");
        }
    }
    fs::write(path, &whole).unwrap();
    open(dir).unwrap();
}

#[tokio::test]
async fn a_refusal_says_where_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let mut bytes = fs::read(log(dir.path(), 2)).unwrap();
    bytes[HEADER + 30] ^= 1;
    fs::write(log(dir.path(), 2), bytes).unwrap();
    let said = open(dir.path()).unwrap_err().to_string();
    for part in ["log-00000000000000000002", "damaged at byte 16", "checksum", "truncate -s 16"] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[tokio::test]
async fn a_gap_of_revisions_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let whole = fs::read(log(dir.path(), 2)).unwrap();
    let mut reader = Reader::new(&whole[..], FileKind::Log).unwrap();
    reader.record().unwrap();
    let second = reader.offset() as usize;
    reader.record().unwrap();
    let third = reader.offset() as usize;
    fs::write(log(dir.path(), 2), [&whole[..second], &whole[third..]].concat()).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("revision 4 where 3 has to come"), "{error}");
}

#[tokio::test]
async fn a_missing_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let revision = with_snapshot(dir.path()).await;
    fs::rename(log(dir.path(), revision + 1), dir.path().join("away")).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { revision: missing, .. } if *missing == revision + 1), "{error}");
    fs::rename(dir.path().join("away"), log(dir.path(), revision + 1)).unwrap();
    fs::remove_file(dir.path().join(format!("snapshot-{revision:020}"))).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::Missing { revision: 2, .. }), "{error}");
}

#[tokio::test]
async fn a_torn_log_with_another_behind_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    fs::write(log(dir.path(), 7), FileKind::Log.header()).unwrap();
    assert_eq!(open(dir.path()).unwrap().revision(), 6);
    let whole = fs::read(log(dir.path(), 2)).unwrap();
    fs::write(log(dir.path(), 2), &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(open(dir.path()), Err(OpenError::Damaged { .. })));
}

#[tokio::test]
async fn a_newer_format_is_refused_with_words() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let mut bytes = fs::read(log(dir.path(), 2)).unwrap();
    bytes[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    let sum = crc32fast::hash(&bytes[..12]).to_le_bytes();
    bytes[12..16].copy_from_slice(&sum);
    fs::write(log(dir.path(), 2), bytes).unwrap();
    let said = open(dir.path()).unwrap_err().to_string();
    assert!(said.contains("has format 2") && said.contains("a newer version has written it"), "{said}");
}

#[tokio::test]
async fn only_one_process_has_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let said = open(dir.path()).unwrap_err().to_string();
    assert!(said.contains(&format!("open in process {}", std::process::id())), "{said}");
    drop(store);
    open(dir.path()).unwrap();
}

#[tokio::test]
async fn what_a_snapshot_left_half_done_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path()).await;
    let old = fs::read(log(dir.path(), 2)).unwrap();
    with_snapshot(dir.path()).await;
    fs::write(log(dir.path(), 2), old).unwrap();
    fs::write(dir.path().join("snapshot.tmp"), "half").unwrap();
    assert_eq!(open(dir.path()).unwrap().revision(), 7);
    assert!(!log(dir.path(), 2).exists() && !dir.path().join("snapshot.tmp").exists());
}

#[tokio::test]
async fn a_failed_snapshot_leaves_the_logs() {
    let dir = tempfile::tempdir().unwrap();
    let states = small(dir.path()).await;
    // A directory where the file has to go: no snapshot can be written.
    fs::create_dir(dir.path().join("snapshot.tmp")).unwrap();
    let store = Store::open(dir.path(), Limits { log_bytes: 0, ..Limits::default() });
    assert!(matches!(store, Err(OpenError::Io { .. })), "what is in the way is not removed in silence");
    fs::remove_dir(dir.path().join("snapshot.tmp")).unwrap();
    let store = Store::open(dir.path(), Limits { log_bytes: 0, ..Limits::default() }).unwrap();
    fs::create_dir(dir.path().join("snapshot.tmp")).unwrap();
    put(&store, "n/1").await;
    put(&store, "n/2").await;
    drop(store);
    fs::remove_dir(dir.path().join("snapshot.tmp")).unwrap();
    assert!(log(dir.path(), 2).exists() && log(dir.path(), 8).exists());
    let store = open(dir.path()).unwrap();
    assert_eq!((store.revision(), all(&store).len()), (8, states[5].len() + 2));
}

#[tokio::test]
async fn a_log_that_cannot_be_begun_stops_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Limits { log_bytes: 0, ..Limits::default() }).unwrap();
    fs::create_dir(log(dir.path(), 3)).unwrap();
    assert_eq!(put(&store, "a/x").await.revision(), 2);
    let failure = store.reached(3).await.unwrap_err();
    assert!(failure.to_string().contains("read-only until it is opened again"), "{failure}");
    let refused = store.commit(&pods(), "a/y", Write::Create, draft("a/y")).await;
    assert!(matches!(refused, Err(CommitError::Failed(_))));
    assert_eq!(all(&store).len(), 1);
    drop(store);
    fs::remove_dir(log(dir.path(), 3)).unwrap();
    assert_eq!(put(&open(dir.path()).unwrap(), "a/y").await.revision(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_under_load_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { log_bytes: 4_000, events: 50, ..Limits::default() };
    let store = Store::open(dir.path(), limits).unwrap();
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for turn in 0..100 {
                put(&store, &format!("w{writer}/{}", turn % 7)).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let before = all(&store);
    drop(store);
    let store = Store::open(dir.path(), limits).unwrap();
    assert_eq!((store.revision(), all(&store)), (801, before));
    assert!(store.oldest(&pods()) > 1);
}

/// Writers that collide are all judged in order, and no answer is given before the disk has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_creators_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let creators = (0..32).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let made = store.commit(&pods(), "a/x", Write::Create, draft("a/x")).await;
            assert!(store.get(&pods(), "a/x").is_some(), "told of a write that cannot be read");
            made.is_ok()
        })
    });
    let mut winners = 0;
    for creator in creators.collect::<Vec<_>>() {
        winners += u32::from(creator.await.unwrap());
    }
    assert_eq!((winners, store.revision()), (1, 2));
    tokio::time::timeout(Duration::from_secs(5), store.reached(2)).await.unwrap().unwrap();
}
