// SPDX-License-Identifier: Apache-2.0
//! Numbers about the server, in the form that Prometheus reads. The names are those of the real server where it has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::{Mutex, PoisonError},
};

use http::{Method, StatusCode};

use crate::{server::Inner, store::Range};

/// Requests that were answered, by method and code.
#[derive(Debug, Default)]
pub struct Requests(Mutex<BTreeMap<(String, u16), u64>>);

impl Requests {
    pub fn count(&self, method: &Method, code: StatusCode) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((method.to_string(), code.as_u16())).or_default() += 1;
    }
}

/// Everything that is counted.
pub fn text(server: &Inner) -> String {
    let mut text = String::new();
    head(&mut text, "apiserver_request_total", "counter", "Requests that were answered, by method and code.");
    for ((method, code), count) in server.requests.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(text, "apiserver_request_total{{verb=\"{method}\",code=\"{code}\"}} {count}");
    }
    head(&mut text, "apiserver_resource_objects", "gauge", "Objects that are stored, by resource.");
    let registry = server.registry();
    let mut seen = BTreeSet::new();
    for resource in registry.all().filter(|one| one.serves("list") && seen.insert(one.keyspace.clone())) {
        let range = Range { limit: Some(0), count: true, ..Range::default() };
        let page = server.store.range(&resource.keyspace, &range, |_| true);
        let count = page.ok().and_then(|page| page.remaining).unwrap_or_default();
        let (group, plural) = (&resource.group, &resource.plural);
        let _ = writeln!(text, "apiserver_resource_objects{{group=\"{group}\",resource=\"{plural}\"}} {count}");
    }
    head(&mut text, "bivouac_apiserver_revision", "gauge", "The revision of the last write.");
    let _ = writeln!(text, "bivouac_apiserver_revision {}", server.store.revision());
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
