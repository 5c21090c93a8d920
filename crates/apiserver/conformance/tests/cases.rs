// SPDX-License-Identifier: Apache-2.0
//! The cases themselves: they can be read, they are enough, and each does something.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code outside of #[test] functions")]

use std::collections::BTreeMap;
use std::path::Path;

use bivouac_conformance::{Case, Declared, load};

fn cases() -> Vec<Case> {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")).unwrap()
}

#[test]
fn every_area_has_enough_cases() {
    let mut count = BTreeMap::<String, usize>::new();
    cases().into_iter().for_each(|case| *count.entry(case.area).or_default() += 1);
    let least = [
        ("access", 30),
        ("apply", 80),
        ("cel", 30),
        ("crd", 60),
        ("delete", 40),
        ("discovery", 30),
        ("errors", 40),
        ("list", 30),
        ("patch", 50),
        ("watch", 40),
    ];
    for (area, least) in least {
        assert!(count[area] >= least, "{area} has {} cases", count[area]);
    }
}

/// Reading back a create shows nothing that the answer did not show.
#[test]
fn no_case_only_reads_back_a_create() {
    for case in cases() {
        let requests: Vec<_> = case.steps.iter().filter_map(|step| step.request.as_deref()).collect();
        if let [create, read] = requests.as_slice() {
            let plain = case.steps.iter().all(|step| {
                step.want.is_none() && step.until.is_none() && step.pick.is_empty() && step.accept.is_none()
            });
            let path = create.strip_prefix("POST ").unwrap_or("none");
            let only = read
                .strip_prefix("GET ")
                .and_then(|read| read.strip_prefix(&format!("{path}/")))
                // A part of the object, or a choice of it, is something else.
                .is_some_and(|name| !name.contains(['?', '/']));
            assert!(!(plain && only), "{}", case.id());
        }
    }
}

/// A watch that nobody reads and a name that nobody saved are mistakes.
#[test]
fn every_watch_is_read() {
    for case in cases() {
        for watch in case.steps.iter().filter(|step| step.want.is_none()).filter_map(|step| step.watch.as_ref()) {
            assert!(case.steps.iter().any(|step| step.events.as_ref() == Some(watch)), "{}: {watch}", case.id());
        }
    }
}

#[test]
fn declared_differences_name_cases_and_reasons() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("declared.yaml");
    let ids: Vec<_> = cases().iter().map(Case::id).collect();
    for one in Declared::load(&file).unwrap() {
        assert!(one.reason.len() > 20, "{}: say why", one.case);
        let start = one.case.split('*').next().unwrap();
        assert!(ids.iter().any(|id| id.starts_with(start)), "no case is like {}", one.case);
    }
}
