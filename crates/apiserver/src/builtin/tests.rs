// SPDX-License-Identifier: Apache-2.0

use serde_json::{Value, json};

use super::{Builtins, builtins};
use crate::schema::{ListKind, Schema, Shape};

fn of<'a>(name: &str) -> Schema<'a> {
    let id = builtins().named(name).unwrap_or_else(|| panic!("{name} is not in the table"));
    builtins().types.at(id)
}

fn field<'a>(name: &str, path: &str) -> Schema<'a> {
    path.split('.').fold(of(name), |schema, step| match step {
        "[]" => schema.items().unwrap(),
        name => schema.field(name).unwrap_or_else(|| panic!("{name} of {path}")).1,
    })
}

fn keys(schema: Schema<'_>) -> Vec<&str> {
    match schema.shape() {
        Shape::List(list) => match &list.kind {
            ListKind::Map { keys } => keys.iter().map(|key| &**key).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn completed(kind: &str, mut object: Value) -> Value {
    let (group, rest) = kind.split_once('/').unwrap();
    let (version, kind) = rest.split_once('/').unwrap();
    builtins().complete(group, version, kind, &mut object);
    object
}

#[test]
fn the_table_can_be_read_and_is_not_empty() {
    let table = Builtins::decode(include_str!("table.json")).unwrap();
    assert!(table.resources.len() > 60 && table.names.len() > 500);
    assert!(Builtins::decode("{}").is_err());
}

#[test]
fn every_resource_has_the_type_of_its_kind() {
    for resource in &builtins().resources {
        let name = builtins().types.get(resource.root).name.as_deref().unwrap_or_default();
        assert_eq!(name.rsplit('.').next(), Some(&*resource.kind), "{} {}", resource.group, resource.plural);
        if resource.verbs.iter().any(|verb| **verb == *"list") {
            assert!(builtins().kind(&resource.group, &resource.version, &resource.list_kind()).is_some());
            assert!(!resource.columns.is_empty(), "{}", resource.plural);
        }
    }
}

#[test]
fn discovery_is_in_the_order_of_the_real_server() {
    let groups: Vec<_> = builtins().resources.iter().map(|one| &*one.group).collect();
    assert_eq!(groups.first(), Some(&""));
    let scalers = builtins().resources.iter().filter(|one| *one.group == *"autoscaling");
    assert_eq!(scalers.map(|one| (&*one.version, one.preferred)).collect::<Vec<_>>(), [("v2", true), ("v1", false)]);
    let pods = builtins().resource("", "v1", "pods").unwrap();
    assert!(pods.namespaced && pods.short_names == ["po".into()] && pods.storage_version_hash.is_some());
    let eviction = pods.subresource("eviction").unwrap();
    assert_eq!((&*eviction.group, &*eviction.version, &*eviction.kind), ("policy", "v1", "Eviction"));
}

#[test]
fn lists_know_their_keys() {
    assert_eq!(keys(field("io.k8s.api.apps.v1.Deployment", "spec.template.spec.containers")), ["name"]);
    assert_eq!(keys(field("io.k8s.api.core.v1.ServiceSpec", "ports")), ["port", "protocol"]);
    let protocol = field("io.k8s.api.core.v1.ServiceSpec", "ports.[].protocol");
    assert_eq!(protocol.ty().default, Some(json!("TCP")));
    assert_eq!(builtins().enums[&protocol.id()], ["SCTP".into(), "TCP".into(), "UDP".into()]);
    let (volumes, _) = of("io.k8s.api.core.v1.PodSpec").field("volumes").unwrap();
    let patch = volumes.patch.as_deref().unwrap();
    assert!(patch.merge && patch.retain_keys && patch.merge_key.as_deref() == Some("name"));
    assert!(matches!(field("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers").shape(),
        Shape::List(list) if list.kind == ListKind::Set));
}

#[test]
fn a_field_can_change_how_its_type_is_owned() {
    let atomic = |schema: Schema<'_>| match schema.shape() {
        Shape::Struct(of) => of.atomic,
        Shape::Map { atomic, .. } => *atomic,
        _ => panic!("neither struct nor map"),
    };
    assert!(atomic(of("io.k8s.api.core.v1.ObjectReference")));
    let claim = field("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef");
    assert!(!atomic(claim) && claim.field("uid").is_some());
    assert!(atomic(field("io.k8s.api.core.v1.ServiceSpec", "selector")));
    assert!(!atomic(field("io.k8s.api.core.v1.ConfigMap", "data")));
}

#[test]
fn types_that_are_odd_in_openapi() {
    let schema = of("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    assert_eq!(schema.field("not").unwrap().1.id(), schema.id(), "it contains itself");
    for (name, any) in [("runtime.RawExtension", true), ("apis.meta.v1.FieldsV1", true), ("apis.meta.v1.Time", false)] {
        let schema = of(&format!("io.k8s.apimachinery.pkg.{name}"));
        assert_eq!(matches!(schema.shape(), Shape::Any), any, "{name}");
    }
    assert!(matches!(of("io.k8s.apimachinery.pkg.api.resource.Quantity").shape(), Shape::IntOrString));
}

#[test]
fn what_is_absent_is_filled_in_and_what_means_absent_goes() {
    let spec = json!({ "hostNetwork": false, "nodeSelector": {}, "volumes": null, "automountServiceAccountToken": false,
        "containers": [{ "name": "a", "image": "a", "resources": { "limits": { "cpu": 1, "memory": "1024Mi" } } }] });
    let pod = completed("/v1/Pod", json!({ "metadata": { "name": "a" }, "spec": spec }));
    let spec = &pod["spec"];
    assert_eq!((&spec["dnsPolicy"], &spec["enableServiceLinks"]), (&json!("ClusterFirst"), &json!(true)));
    for gone in ["hostNetwork", "nodeSelector", "volumes"] {
        assert_eq!(spec.get(gone), None, "{gone}");
    }
    assert_eq!(spec["automountServiceAccountToken"], json!(false), "a pointer can be false");
    let container = &spec["containers"][0];
    assert_eq!(container["imagePullPolicy"], json!("Always"));
    assert_eq!(container["resources"]["requests"], json!({ "cpu": "1", "memory": "1Gi" }));
    assert_eq!(pod["status"], json!({ "phase": "Pending", "qosClass": "Guaranteed" }));
    assert_eq!(pod["metadata"], json!({ "name": "a" }), "metadata is not ours");
}

#[test]
fn completing_twice_changes_nothing() {
    let template =
        json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "a@sha256:0" }] } });
    for (kind, spec) in [
        ("batch/v1/Job", json!({ "template": template })),
        ("batch/v1/CronJob", json!({ "schedule": "@daily", "jobTemplate": { "spec": { "template": template } } })),
        ("apps/v1/Deployment", json!({ "template": template })),
        ("/v1/Service", json!({ "sessionAffinity": "ClientIP", "ports": [{ "port": 80 }] })),
    ] {
        let once = completed(kind, json!({ "metadata": { "name": "a", "uid": "u" }, "spec": spec }));
        assert_eq!(completed(kind, once.clone()), once, "{kind}");
        assert_ne!(once["spec"], spec, "{kind}");
    }
}

#[test]
fn jobs_in_cron_jobs_are_left_alone() {
    let template = json!({ "template": { "spec": { "containers": [] } } });
    let cron = completed("batch/v1/CronJob", json!({ "spec": { "jobTemplate": { "spec": template } } }));
    assert_eq!(cron.pointer("/spec/jobTemplate/spec/backoffLimit"), None);
    assert_eq!(cron.pointer("/spec/concurrencyPolicy"), Some(&json!("Allow")));
}

#[test]
fn times_and_text_data_are_rewritten() {
    let lease =
        completed("coordination.k8s.io/v1/Lease", json!({ "spec": { "renewTime": "2026-01-01T01:00:00.5+01:00" } }));
    assert_eq!(lease["spec"]["renewTime"], json!("2026-01-01T00:00:00.500000Z"));
    let secret = completed("/v1/Secret", json!({ "stringData": { "a": "b" } }));
    assert_eq!((&secret["data"], &secret["type"]), (&json!({ "a": "Yg==" }), &json!("Opaque")));
    assert_eq!(secret.get("stringData"), None);
}

#[test]
fn a_status_is_written_as_go_writes_it() {
    let status =
        json!({ "replicas": 0, "readyReplicas": 0, "conditions": [{ "type": "Available", "status": "True" }] });
    let set = completed("apps/v1/ReplicaSet", json!({ "status": status }));
    let condition = json!({ "type": "Available", "status": "True", "lastTransitionTime": null });
    assert_eq!(set["status"], json!({ "replicas": 0, "conditions": [condition] }));
    let pod = completed(
        "/v1/Pod",
        json!({ "spec": {}, "status": { "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.2" }] } }),
    );
    assert_eq!(pod["status"]["podIPs"], json!([{ "ip": "10.0.0.1" }]));
    let node = completed("/v1/Node", json!({ "status": { "capacity": { "cpu": "1000m" } } }));
    assert_eq!(node["status"]["allocatable"], json!({ "cpu": "1" }));
}

#[test]
fn what_begins_with_an_object_is_apart_from_its_defaults() {
    let mut service = json!({ "spec": { "clusterIP": "None" } });
    builtins().fill("", "v1", "Service", &mut service);
    assert!(service["spec"].get("ipFamilies").is_none() && service["spec"]["type"] == json!("ClusterIP"));
    builtins().begin("", "v1", "Service", &mut service);
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
}
