// SPDX-License-Identifier: Apache-2.0
//! Group `akash.network`.

use bivouac_api::akash::{ImageCredentials, Manifest, ProviderHost, ProviderLeasedIP};
use serde_json::json;

use crate::kinds::{crd, face, samples, schema};

#[test]
fn faces() {
    assert_eq!(face("manifests.akash.network"), ["Namespaced", "mani", "Group, Services, [Owner], Age"]);
    assert_eq!(
        face("providerhosts.akash.network"),
        ["Namespaced", "ph", "Service, Port, Ready, Address, [Owner], Age"]
    );
    assert_eq!(
        face("providerleasedips.akash.network"),
        ["Namespaced", "plip", "Address, Port, Protocol, Service, Ready, [Sharing Key], Age"]
    );
}

#[test]
fn the_old_version_is_known_but_not_served() {
    for name in ["manifests", "providerhosts", "providerleasedips"] {
        let versions = crd(&format!("{name}.akash.network")).spec.versions;
        let versions: Vec<_> = versions.iter().map(|v| (v.name.as_str(), v.served, v.storage)).collect();
        assert_eq!(versions, [("v2beta2", true, true), ("v2beta1", false, false)], "{name}");
    }
}

#[test]
fn samples_survive() {
    assert!(samples::<Manifest>("akash").is_none_or(|n| n == 2));
    assert!(samples::<ProviderHost>("akash").is_none_or(|n| n == 1));
    assert!(samples::<ProviderLeasedIP>("akash").is_none_or(|n| n == 1));
}

#[test]
fn the_server_fills_in_nothing_and_requires_nothing() {
    for name in ["manifests", "providerhosts", "providerleasedips"] {
        let spec = schema(&format!("{name}.akash.network"), "spec").to_string();
        assert!(!spec.contains("\"default\""), "{name}: {spec}");
        assert!(!spec.contains("\"required\""), "{name}: {spec}");
    }
}

#[test]
fn a_null_is_taken_where_the_provider_writes_one() {
    for field in ["credentials", "params", "params.permissions", "scheduler_params.resources.gpu"] {
        let schema = schema("manifests.akash.network", &format!("spec.group.services.[].{field}"));
        assert_eq!(schema["nullable"], true, "{field}");
    }
    assert!(schema("manifests.akash.network", "spec.group.services.[].image").get("nullable").is_none());

    let service = json!({"name": "web", "params": null, "resources": {"gpu": {"units": 1, "attributes": null}}});
    let manifest: Manifest = serde_json::from_value(json!({
        "apiVersion": "akash.network/v2beta2", "kind": "Manifest", "metadata": {"name": "m"},
        "spec": {"group": {"services": [service]}},
    }))
    .unwrap();
    assert_eq!(manifest.spec.group.services[0].params, None);
    assert_eq!(manifest.spec.group.services[0].resources.gpu.units, 1);
}

#[test]
fn a_manifest_of_the_old_version_keeps_its_unit() {
    let unit = json!({"cpu": 100, "memory": "1024", "storage": [{"name": "default", "size": "2048"}]});
    let manifest: Manifest = serde_json::from_value(json!({
        "apiVersion": "akash.network/v2beta1", "kind": "Manifest", "metadata": {"name": "m"},
        "spec": {"group": {"services": [{"name": "web", "unit": unit}]}},
    }))
    .unwrap();
    assert_eq!(serde_json::to_value(&manifest.spec.group.services[0].unit).unwrap(), unit);
}

#[test]
fn a_password_does_not_reach_the_log() {
    let login = ImageCredentials { password: "hunter2".into(), username: "bob".into(), ..Default::default() };
    assert!(!format!("{login:?}").contains("hunter2"));
}
