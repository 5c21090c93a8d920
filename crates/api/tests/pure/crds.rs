// SPDX-License-Identifier: Apache-2.0
//! What holds for the CRDs of all groups.

use serde_json::Value;
use std::collections::BTreeSet;

/// Calls `see` with every schema node of every CRD and where it is.
fn every_node(see: &mut impl FnMut(&str, &Value)) {
    for crd in bivouac_api::crds() {
        for version in &crd.spec.versions {
            let root = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            let name = format!("{} {}", crd.metadata.name.as_ref().unwrap(), version.name);
            walk(&name, &serde_json::to_value(root).unwrap(), see);
        }
    }
}

fn walk(path: &str, node: &Value, see: &mut impl FnMut(&str, &Value)) {
    see(path, node);
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), child, see);
    }
    for (name, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if node[name].is_object() {
            walk(&format!("{path}{step}"), &node[name], see);
        }
    }
}

#[test]
fn every_crd_is_kept_by_helm_and_found_by_category() {
    for crd in bivouac_api::crds() {
        let annotations = crd.metadata.annotations.unwrap();
        assert_eq!(annotations.get("helm.sh/resource-policy").map(String::as_str), Some("keep"));
        let categories = crd.spec.names.categories.unwrap();
        assert_eq!(categories.iter().filter(|c| *c == "bivouac").count(), 1, "{}", crd.spec.names.kind);
    }
}

#[test]
fn names_differ_and_come_in_the_same_order() {
    let names = || bivouac_api::crds().into_iter().map(|crd| crd.metadata.name.unwrap()).collect::<Vec<_>>();
    assert_eq!(names().iter().collect::<BTreeSet<_>>().len(), names().len());
    assert_eq!(names(), names());
}

#[test]
fn null_is_refused_but_in_akash() {
    every_node(&mut |path, node| {
        assert!(path.contains(".akash.network ") || node.get("nullable").is_none(), "{path} is nullable");
        let null = node["enum"].as_array().is_some_and(|values| values.contains(&Value::Null));
        assert!(!null, "{path} has null in its enum");
    });
}

#[test]
fn no_format_is_unknown_to_kubernetes() {
    every_node(&mut |path, node| {
        let format = node["format"].as_str().unwrap_or_default();
        assert!(!format.starts_with("uint"), "{path} has the format {format}");
    });
}

#[test]
fn descriptions_are_our_own() {
    every_node(&mut |path, node| {
        let text = node["description"].as_str().unwrap_or_default();
        for foreign in ["More info:", "is a fixed-point representation", "Auto-generated derived type"] {
            assert!(!text.contains(foreign), "{path}: {text}");
        }
    });
}

#[test]
fn every_list_of_conditions_has_its_limits() {
    let mut seen = 0;
    every_node(&mut |path, node| {
        if path.ends_with(".status.conditions") {
            seen += 1;
            assert_eq!(node["items"]["properties"]["reason"]["maxLength"], 1024, "{path}");
        }
    });
    assert!(seen > 5, "only {seen} lists of conditions found");
}
