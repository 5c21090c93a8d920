// SPDX-License-Identifier: Apache-2.0
//! The property of the fuzz target `log_reader`, on a small corpus and its mutations.

#[path = "../../fuzz/log_property.rs"]
mod log_property;

use bivouac_apiserver::store::{Draft, FileKind, Keyspace, Limits, Reader, Record, Store, Tags, Write};
use proptest::prelude::*;

/// The log of a store with a create, an update and a deletion.
fn log() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("directory");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let store = Store::open(dir.path(), Limits::default()).expect("open");
    let render = |revision: u64| Draft {
        body: format!(r#"{{"revision":"{revision}"}}"#).into(),
        tags: Tags::new([("app", "web")], [("spec.nodeName", "n1")]),
    };
    for write in [Write::Create, Write::Update(2), Write::Delete(3)] {
        runtime.block_on(store.commit(&Keyspace::new("apps", "deployments"), "a/x", write, render)).expect("commit");
    }
    drop(store);
    std::fs::read(dir.path().join("log-00000000000000000002")).expect("log")
}

/// The payloads of a log in the form that the property puts checksums on.
fn payloads(log: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(log, FileKind::Log).expect("header");
    let mut out = Vec::new();
    let mut start = reader.offset() as usize;
    while reader.record().expect("record").is_some() {
        let payload = &log[start + 24..reader.offset() as usize];
        out.push(u8::try_from(payload.len()).expect("a short record"));
        out.extend_from_slice(payload);
        start = reader.offset() as usize;
    }
    out
}

#[test]
fn the_corpus_is_accepted() {
    let log = log();
    let mut reader = Reader::new(&log[..], FileKind::Log).expect("header");
    let records: Vec<Record> = std::iter::from_fn(|| reader.record().expect("record")).collect();
    assert!(matches!(&records[..], [Record::Put(..), Record::Put(..), Record::Delete(..)]), "{records:?}");
    log_property::check(&log);
    log_property::check(&payloads(&log));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..300)) {
        log_property::check(&data);
    }
}

#[test]
fn any_change_of_the_corpus_is_read_without_harm() {
    let log = log();
    for corpus in [payloads(&log), log] {
        for at in 0..corpus.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff, corpus[at] ^ 1, corpus[at].wrapping_add(1)] {
                let mut changed = corpus.clone();
                changed[at] = byte;
                log_property::check(&changed);
            }
            log_property::check(&corpus[..at]);
            log_property::check(&corpus[at..]);
        }
    }
}
