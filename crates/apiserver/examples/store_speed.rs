// SPDX-License-Identifier: Apache-2.0
//! How fast and how small the store is: `cargo run --release -p bivouac-apiserver --example store_speed [OBJECTS]`.

use std::error::Error;
use std::time::Instant;

use bivouac_apiserver::store::{Draft, Keyspace, Limits, Range, Store, Tags, Write};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const BODY: usize = 700;

#[tokio::main]
async fn main() -> Outcome<()> {
    let objects = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    let store = memory(objects).await?;
    lists(&store)?;
    drop(store);
    watches(1, objects.min(500_000)).await?;
    watches(1_000, 500).await?;
    disk(objects.min(100_000)).await
}

fn keyspace() -> Keyspace {
    Keyspace::new("", "pods")
}

async fn create(store: &Store, number: usize) -> Outcome<()> {
    let key = format!("namespace-{:03}/pod-{number:08}", number % 100);
    let app = format!("app-{}", number % 1_000);
    let tags = Tags::new([("app", &*app)], [("spec.nodeName", "node-17")]);
    let render = |revision| Draft { body: format!("{revision:0BODY$}").into(), tags };
    store.commit(&keyspace(), &key, Write::Create, render).await?;
    Ok(())
}

async fn memory(objects: usize) -> Outcome<Store> {
    let store = Store::in_memory(Limits::default());
    let (before, began) = (resident()?, Instant::now());
    for number in 0..objects {
        create(&store, number).await?;
    }
    rate("creates in memory", objects, began);
    let each = |bytes: usize| bytes as f64 / objects as f64 - BODY as f64;
    println!(
        "{:>12.0} bytes per object besides its body, with the history of 100,000 events",
        each(resident()? - before)
    );
    store.compact(store.revision());
    println!(
        "{:>12.0} bytes per object besides its body, without history (if the allocator gives it back)",
        each(resident()? - before)
    );
    Ok(store)
}

fn lists(store: &Store) -> Outcome<()> {
    let began = Instant::now();
    let found = store.range(&keyspace(), &Range::default(), |_| true)?.items.len();
    rate("objects listed at once", found, began);
    let began = Instant::now();
    let found = store.range(&keyspace(), &Range::default(), |stored| stored.labels().get("app") == Some("app-7"))?;
    println!("{:>12.1?} to select {} objects by label", began.elapsed(), found.items.len());
    let (began, mut after, mut listed) = (Instant::now(), None::<String>, 0);
    loop {
        let range = Range { after: after.as_deref(), limit: Some(500), ..Range::default() };
        let page = store.range(&keyspace(), &range, |_| true)?;
        listed += page.items.len();
        after = page.items.last().map(|last| last.key().to_owned());
        if !page.more {
            break;
        }
    }
    rate("objects listed in pages of 500", listed, began);
    Ok(())
}

/// Writes and deliveries share one thread.
async fn watches(watchers: usize, events: usize) -> Outcome<()> {
    let store = Store::in_memory(Limits { events, ..Limits::default() });
    for number in 0..events {
        create(&store, number).await?;
    }
    let began = Instant::now();
    for _ in 0..watchers {
        let mut watcher = store.watch(&keyspace(), 1)?;
        let mut seen = 0;
        while seen < events {
            seen += watcher.next_batch(100).await?.len();
        }
    }
    rate(&format!("events to {watchers} watchers that read on"), watchers * events, began);
    let mut all = (0..watchers).map(|_| store.watch(&keyspace(), store.revision())).collect::<Result<Vec<_>, _>>()?;
    let (began, turns) = (Instant::now(), 100_000 / watchers);
    for turn in 0..turns {
        create(&store, events + turn).await?;
        for watcher in &mut all {
            watcher.next_batch(100).await?;
        }
    }
    rate(&format!("events to {watchers} watchers, each as it happens"), watchers * turns, began);
    Ok(())
}

async fn disk(objects: usize) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), Limits::default())?;
    let (began, writers) = (Instant::now(), 64);
    let tasks = (0..writers).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in (writer..objects).step_by(writers) {
                create(&store, number).await?;
            }
            Outcome::Ok(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    rate(&format!("creates on disk, {writers} at once"), objects, began);
    drop(store);
    let began = Instant::now();
    Store::open(dir.path(), Limits::default())?;
    rate("objects read at the start", objects, began);
    Ok(())
}

fn rate(what: &str, count: usize, began: Instant) {
    println!("{:>12.0} {what} per second", count as f64 / began.elapsed().as_secs_f64());
}

/// Bytes of this process in memory.
fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim_end_matches("kB").trim().parse::<usize>()? * 1024)
}
