// SPDX-License-Identifier: Apache-2.0
//! Defaults that depend on other fields, written by hand: the generator names them when samples disagree.

mod pods;
mod services;
mod workloads;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::GroupVersionKind;

type Fields = Map<String, Value>;

/// By the type, wherever it comes. Runs before what is unconditional.
pub(super) fn fields(name: &str, fields: &mut Fields) {
    match name.strip_prefix("io.k8s.api.").unwrap_or_default() {
        "core.v1.Container" => pods::pull_policy("image", "imagePullPolicy", fields),
        "core.v1.EphemeralContainer" => {
            pods::pull_policy("image", "imagePullPolicy", fields);
            fill(fields, "terminationMessagePath", "/dev/termination-log");
            fill(fields, "terminationMessagePolicy", "File");
        }
        "core.v1.ImageVolumeSource" => pods::pull_policy("reference", "pullPolicy", fields),
        "core.v1.PodStatus" => pods::addresses(fields),
        "core.v1.NodeStatus" => copy(fields, "capacity", "allocatable"),
        "core.v1.LoadBalancerIngress" if fields.contains_key("ip") => fill(fields, "ipMode", "VIP"),
        "core.v1.PodSpec" => pods::spec(fields),
        "core.v1.PodTemplateSpec" => fill(fields, "metadata", json!({})),
        "core.v1.Volume" => pods::volume(fields),
        "core.v1.ServiceSpec" => services::spec(fields),
        "core.v1.ServicePort" => services::port(fields),
        "core.v1.LimitRangeItem" => limits(fields),
        "core.v1.Secret" => secret(fields),
        "core.v1.ReplicationControllerSpec" => workloads::selector(fields),
        "apps.v1.DeploymentStrategy" => {
            workloads::rolling(fields, json!({ "maxSurge": "25%", "maxUnavailable": "25%" }))
        }
        "apps.v1.DaemonSetUpdateStrategy" => workloads::rolling(fields, json!({ "maxSurge": 0, "maxUnavailable": 1 })),
        "apps.v1.StatefulSetUpdateStrategy" => workloads::rolling(fields, json!({ "partition": 0 })),
        "networking.v1.NetworkPolicySpec" => policy_types(fields),
        "rbac.v1.Subject" => subject(fields),
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => devices(fields),
        _ => {}
    }
}

/// By the kind of the whole object, when all else is done.
pub(super) fn kind(of: &GroupVersionKind, object: &mut Value) {
    match (&*of.group, &*of.kind) {
        ("", "Pod") => pods::pod(object),
        ("", "ReplicationController") => workloads::labels(object),
        ("autoscaling", "HorizontalPodAutoscaler") => workloads::behavior(object),
        ("batch", "Job") => workloads::job(object),
        ("apps", "DaemonSet") => template_generation(object),
        ("", "Namespace") => namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => {}
    }
}

/// A number that is an annotation on the wire, so that its writer owns it.
fn template_generation(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(annotations) = metadata.entry("annotations").or_insert_with(|| json!({})).as_object_mut() {
        fill(annotations, "deprecated.daemonset.template.generation", "0");
    }
}

/// What is decided when the object is created, so that nobody owns it.
pub(super) fn create(of: &GroupVersionKind, object: &mut Value) {
    match (&*of.group, &*of.kind) {
        ("", "Pod") => pods::begin(object),
        ("", "Service") => services::families(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Namespace") => finalizers(object),
        ("batch", "Job") => workloads::select_own(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => stored_versions(object),
        _ => {}
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Sets what is absent.
fn fill(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if !fields.contains_key(name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets what is absent to what another field has.
fn copy(fields: &mut Fields, from: &str, to: &str) {
    if let Some(value) = fields.get(from).cloned() {
        fill(fields, to, value);
    }
}

/// Of a container, a limit is also the default, and the default is also the default request.
fn limits(fields: &mut Fields) {
    if text(fields, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(Value::Object(from)) = fields.get(from).cloned() else { continue };
        if let Some(to) = fields.entry(to).or_insert_with(|| json!({})).as_object_mut() {
            from.into_iter().for_each(|(name, value)| fill(to, &name, value));
        }
    }
}

/// `stringData` is for writing only: it goes into `data`.
fn secret(fields: &mut Fields) {
    let Some(Value::Object(plain)) = fields.remove("stringData") else { return };
    let Some(data) = fields.entry("data").or_insert_with(|| json!({})).as_object_mut() else { return };
    for (name, value) in plain {
        data.insert(name, STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

fn policy_types(fields: &mut Fields) {
    let egress = fields.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill(fields, "policyTypes", types);
}

fn subject(fields: &mut Fields) {
    if matches!(text(fields, "kind"), "User" | "Group") {
        fill(fields, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn devices(fields: &mut Fields) {
    fill(fields, "allocationMode", "ExactCount");
    if text(fields, "allocationMode") == "ExactCount" {
        fill(fields, "count", 1);
    }
}

/// The source has an old and a new field. The new one can say more; then the old one stays empty.
fn claim(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => drop(spec.insert("dataSourceRef".to_owned(), source)),
        (None, Some(source)) if source.get("namespace").is_none() => drop(spec.insert("dataSource".to_owned(), source)),
        _ => {}
    }
}

fn namespace(object: &mut Value) {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(labels) = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Who empties the namespace when it goes.
fn finalizers(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(spec) = fields.entry("spec").or_insert_with(|| json!({})).as_object_mut() {
        fill(spec, "finalizers", json!(["kubernetes"]));
    }
}

fn definition(object: &mut Value) {
    let Some(names) = object.pointer_mut("/spec/names").and_then(Value::as_object_mut) else { return };
    let kind = text(names, "kind").to_owned();
    if !kind.is_empty() {
        fill(names, "singular", kind.to_lowercase());
        fill(names, "listKind", format!("{kind}List"));
    }
}

fn stored_versions(object: &mut Value) {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let stored = versions.filter(|version| version.get("storage") == Some(&json!(true)));
    let stored: Vec<Value> = stored.filter_map(|version| version.get("name").cloned()).collect();
    let status = object.as_object_mut().map(|fields| fields.entry("status").or_insert_with(|| json!({})));
    if let Some(status) = status.and_then(Value::as_object_mut) {
        fill(status, "storedVersions", stored);
    }
}
