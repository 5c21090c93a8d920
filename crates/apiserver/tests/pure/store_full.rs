// SPDX-License-Identifier: Apache-2.0
//! A disk that takes no more: the commit fails, the rest can be read, and nothing acknowledged is lost.
//!
//! The test starts itself again under a limit for the size of files. To the store that is what a full disk is: a write
//! that gets half through and then fails.

use std::path::Path;
use std::process::Command;

use bivouac_apiserver::store::{CommitError, Draft, Keyspace, Limits, Range, Store, Tags, Write};

const NAME: &str = "store_full::a_full_disk_stops_writes_and_loses_nothing";
const CHILD: &str = "BIVOUAC_STORE_FULL_DIR";
const WRITERS: u32 = 8;

fn keyspace() -> Keyspace {
    Keyspace::new("", "configmaps")
}

async fn create(store: &Store, key: &str) -> Result<u64, CommitError> {
    let render = |revision: u64| Draft { body: format!("{revision:0700}").into(), tags: Tags::default() };
    store.commit(&keyspace(), key, Write::Create, render).await.map(|made| made.revision())
}

fn keys(store: &Store) -> Vec<String> {
    let page = store.range(&keyspace(), &Range::default(), |_| true).expect("range");
    page.items.iter().map(|item| item.key().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_writes_and_loses_nothing() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return fill(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().expect("directory");
    // The signal that comes with the limit would end the process; ignored, the write fails with an error instead.
    let script = r#"trap '' XFSZ; ulimit -f 200; exec "$0" --exact "$1" --nocapture"#;
    let own = std::env::current_exe().expect("own path");
    let child = Command::new("sh").args(["-c", script]).arg(own).arg(NAME).env(CHILD, dir.path()).status();
    assert!(child.expect("sh").success());
    // With room again the store opens and goes on: what was acknowledged is there, what failed is not.
    let acknowledged = std::fs::read_to_string(dir.path().join("acknowledged")).expect("the child's notes");
    let store = Store::open(dir.path(), Limits::default()).expect("open with room");
    assert_eq!(keys(&store), acknowledged.lines().collect::<Vec<_>>());
    let next = store.revision() + 1;
    assert_eq!(create(&store, "more").await.expect("write with room"), next);
}

/// Writes from several tasks until the disk refuses, and notes what was acknowledged.
async fn fill(dir: &Path) {
    let store = Store::open(dir, Limits::default()).expect("open");
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            loop {
                let key = format!("w{writer}/{:05}", acknowledged.len());
                match create(&store, &key).await {
                    Ok(_) => acknowledged.push(key),
                    Err(CommitError::Failed(failure)) => return (acknowledged, failure.to_string()),
                    Err(other) => panic!("{other}"),
                }
            }
        })
    });
    let mut acknowledged = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        let (keys, said) = writer.await.expect("writer");
        assert!(said.contains("log-") && said.contains("read-only until it is opened again"), "{said}");
        acknowledged.extend(keys);
    }
    acknowledged.sort_unstable();
    assert!(acknowledged.len() > 50, "the limit came too early: {}", acknowledged.len());
    assert_eq!(keys(&store), acknowledged, "readers see what was acknowledged, and nothing else");
    assert_eq!(store.revision(), 1 + acknowledged.len() as u64);
    assert!(matches!(create(&store, "late").await, Err(CommitError::Failed(_))));
    let mut watcher = store.watch(&keyspace(), 1).expect("watch");
    assert_eq!(watcher.ready(usize::MAX).expect("events").len(), acknowledged.len());
    std::fs::write(dir.join("acknowledged"), acknowledged.join("\n")).expect("notes");
}
