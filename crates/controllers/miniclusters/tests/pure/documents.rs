// SPDX-License-Identifier: Apache-2.0
//! The book and the examples keep up with the kind.

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{Settings, plan::plan};
use jiff::Timestamp;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::plan::empty;

const BOOK: &str = include_str!("../../../../../docs/miniclusters.md");

/// All fields below a schema, as the book writes them. Types of Kubernetes, maps and what has a table of its own are
/// one field.
fn fields(path: &str, schema: &Value, found: &mut Vec<String>) {
    const WHOLE: [&str; 8] =
        ["securityContext", "resources", "tolerations", "volumes", "secrets", "services", "leadBroker", "clusters"];
    let name = path.rsplit('.').next().unwrap();
    if let Some(inner) = schema["items"].get("properties").filter(|_| !WHOLE.contains(&name)) {
        return all(&format!("{path}[]"), inner, found);
    }
    match schema.get("properties").filter(|_| !WHOLE.contains(&name)) {
        Some(inner) => all(path, inner, found),
        None => found.push(path.to_owned()),
    }
}

fn all(path: &str, properties: &Value, found: &mut Vec<String>) {
    for (name, schema) in properties.as_object().unwrap() {
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        fields(&inner, schema, found);
    }
}

#[test]
fn the_book_says_what_every_field_does() {
    let crd = serde_json::to_value(MiniCluster::crd()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = Vec::new();
    all("", &schema["properties"], &mut found);
    assert!(found.len() > 80, "{found:?}");
    let missing: Vec<_> = found.iter().filter(|path| !BOOK.contains(&format!("| `{path}` |"))).collect();
    assert!(missing.is_empty(), "not in docs/miniclusters.md: {missing:?}");
}

#[test]
fn every_example_can_be_made() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/miniclusters");
    let paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 4);
    for path in paths {
        let minicluster: MiniCluster = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let plan = plan(&minicluster, &empty(), &Settings::default(), Timestamp::UNIX_EPOCH);
        assert!(!plan.stages.is_empty(), "{}: {:?}", path.display(), plan.conditions);
    }
}
