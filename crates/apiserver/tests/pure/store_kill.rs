// SPDX-License-Identifier: Apache-2.0
//! No acknowledged write is lost when the process is killed under load.
//!
//! The test starts itself again as a child, which writes as fast as it can and reports each write it begins and each
//! that was acknowledged. The parent kills it, opens the store, and compares. One directory lives through all kills, so
//! kills also hit recovery, the change of logs, and snapshots. `BIVOUAC_KILLS` is how often.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_apiserver::store::{Draft, Keyspace, Limits, Range, Store, Tags, Write};

const NAME: &str = "store_kill::no_acknowledged_write_is_lost";
const CHILD: &str = "BIVOUAC_STORE_KILL_DIR";
const WRITERS: usize = 16;

fn limits() -> Limits {
    Limits { events: 1_000, log_bytes: 100_000, ..Limits::default() }
}

fn keyspace() -> Keyspace {
    Keyspace::new("", "configmaps")
}

/// Says which write it belongs to, and has a length of its own.
fn body(key: &str, revision: u64) -> Vec<u8> {
    format!("{key}@{revision}{}", "x".repeat((revision * 7_919 % 900) as usize)).into()
}

#[test]
fn no_acknowledged_write_is_lost() {
    if let Some(dir) = std::env::var_os(CHILD) {
        write_for_ever(Path::new(&dir));
    }
    let kills: u64 = std::env::var("BIVOUAC_KILLS").map_or(50, |count| count.parse().expect("BIVOUAC_KILLS"));
    let began = Instant::now();
    let dir = tempfile::tempdir().expect("directory");
    let mut world = World::default();
    for kill in 0..kills {
        let lines = lines_until_killed(dir.path(), kill);
        world.hear(&lines);
        world.compare(dir.path());
    }
    println!("{kills} kills in {:.1?}: {world:?}", began.elapsed());
    assert!(world.acknowledged > kills, "hardly a write got through: {world:?}");
}

// === the child ===

fn write_for_ever(dir: &Path) -> ! {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("runtime");
    let store = Store::open(dir, limits()).expect("open");
    for writer in 0..WRITERS {
        runtime.spawn(write_on(store.clone(), writer));
    }
    loop {
        thread::park();
    }
}

async fn write_on(store: Store, writer: usize) {
    for turn in 0_u64.. {
        let key = format!("w{writer}/{}", turn % 5);
        let write = match store.get(&keyspace(), &key).map(|now| now.revision()) {
            None => Write::Create,
            Some(seen) if turn % 3 == 2 => Write::Delete(seen),
            Some(seen) => Write::Update(seen),
        };
        let verb = if matches!(write, Write::Delete(_)) { "delete" } else { "put" };
        say(&format!("try {verb} {key} 0"));
        let render = |revision| Draft { body: body(&key, revision), tags: Tags::default() };
        let made = store.commit(&keyspace(), &key, write, render).await.expect("commit");
        say(&format!("ack {verb} {key} {}", made.revision()));
    }
}

/// One line, one write: a kill cannot mix two.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("\n{line}\n").as_bytes()).expect("parent");
}

// === the parent ===

/// Every fourth kill does not wait for the first write, to hit the start as well.
fn lines_until_killed(dir: &Path, kill: u64) -> Vec<String> {
    let mut child = start(dir);
    let (sender, first) = mpsc::channel();
    let stdout = child.stdout.take().expect("stdout");
    let reader = thread::spawn(move || {
        let mut lines = Vec::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok).filter(|line| !line.is_empty()) {
            if line.starts_with("ack") {
                let _ = sender.send(());
            }
            lines.push(line);
        }
        lines
    });
    if kill % 4 != 3 {
        first.recv_timeout(Duration::from_secs(20)).expect("a first write");
    }
    thread::sleep(Duration::from_millis(5 + kill * 37 % 120));
    child.kill().expect("kill");
    let status = child.wait().expect("wait");
    assert_eq!(status.code(), None, "the child ended by itself: {status}");
    reader.join().expect("reader")
}

fn start(dir: &Path) -> Child {
    Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("child")
}

/// What the store has to hold.
#[derive(Default)]
struct World {
    /// The revision of the last acknowledged write of each key, and whether that was a deletion.
    known: BTreeMap<String, (u64, bool)>,
    /// Keys whose last write was not acknowledged, and whether that was a deletion.
    open: BTreeMap<String, bool>,
    acknowledged: u64,
    /// Writes that were safe when the process died, but not yet reported.
    unreported: u64,
}

impl World {
    fn hear(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            // The test harness talks too.
            let [stage, verb, key, revision] = words[..] else { continue };
            let deleted = verb == "delete";
            match stage {
                "try" => drop(self.open.insert(key.to_owned(), deleted)),
                "ack" => {
                    self.open.remove(key);
                    self.known.insert(key.to_owned(), (revision.parse().expect("revision"), deleted));
                    self.acknowledged += 1;
                }
                _ => {}
            }
        }
    }

    fn compare(&mut self, dir: &Path) {
        let store = Store::open(dir, limits()).expect("open after a kill");
        let items = store.range(&keyspace(), &Range::default(), |_| true).expect("range").items;
        let found: BTreeMap<&str, u64> = items.iter().map(|item| (item.key(), item.revision())).collect();
        for item in &items {
            let (key, revision) = (item.key(), item.revision());
            assert_eq!(item.body(), body(key, revision), "{key} has another body than was written");
            assert!(self.known.contains_key(key) || self.open.contains_key(key), "nobody wrote {key}");
        }
        let (open, known) = (std::mem::take(&mut self.open), &mut self.known);
        for (key, (revision, deleted)) in known.iter() {
            let now = found.get(key.as_str()).copied();
            let expected = (!deleted).then_some(*revision);
            match open.get(key) {
                // The write in flight may have got through or not.
                Some(true) => assert!(now.is_none() || now == expected, "{key}: {now:?}, was {expected:?}"),
                Some(false) => assert!(now == expected || now > Some(*revision), "{key}: {now:?}, was {expected:?}"),
                None => assert_eq!(now, expected, "{key}: an acknowledged write is lost"),
            }
        }
        for key in open.into_keys() {
            let now = found.get(key.as_str()).copied();
            let before = known.get(&key).and_then(|(revision, deleted)| (!deleted).then_some(*revision));
            self.unreported += u64::from(now != before);
            known.insert(key, (now.unwrap_or(0), now.is_none()));
        }
        let newest = known.values().map(|(revision, _)| *revision).max().unwrap_or(0);
        assert!(store.revision() >= newest);
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} writes acknowledged, {} more safe but unreported", self.acknowledged, self.unreported)
    }
}
