// SPDX-License-Identifier: Apache-2.0
//! Small habits of the real server: default classes, finalizers that protect storage, the taint of a new node.

use serde_json::{Value, json};

use super::{Operation, Review, list_with, look, resources};
use crate::{
    call::Call,
    object::{Object, as_object, child_object, text},
    status::Status,
};

const STORAGE: &str = "storage.k8s.io";
const NETWORK: &str = "networking.k8s.io";
const STORAGE_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS_DEFAULT: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// A claim or an ingress that names no class gets the default one, if there is one.
pub fn default_class(call: &Call, review: &mut Review<'_>) {
    let (group, plural, annotations, field) = if review.creates(call, "", "persistentvolumeclaims") {
        (STORAGE, "storageclasses", STORAGE_DEFAULT.as_slice(), "storageClassName")
    } else if review.creates(call, NETWORK, "ingresses") {
        (NETWORK, "ingressclasses", INGRESS_DEFAULT.as_slice(), "ingressClassName")
    } else {
        return;
    };
    let Some(object) = review.object_mut() else { return };
    let old_way = ["volume.beta.kubernetes.io/storage-class", "kubernetes.io/ingress.class"];
    let names_one = object.at(&format!("/spec/{field}")).is_some();
    if names_one || old_way.iter().any(|key| object.annotation(key).is_some()) {
        return;
    }
    let is_default = |class: &Value| annotations.iter().any(|key| class.annotation(key) == Some("true"));
    let mut classes: Vec<Value> =
        list_with(&call.server, group, plural, None, "is-default-class").into_iter().filter(is_default).collect();
    // The newest, and among those the first by name.
    let age = |class: &Value| class.meta_str("creationTimestamp").to_owned();
    classes.sort_by(|a, b| age(b).cmp(&age(a)).then_with(|| a.name().cmp(b.name())));
    if let Some(class) = classes.first() {
        child_object(as_object(object), "spec").insert(field.to_owned(), class.name().into());
    }
}

/// Storage that is in use does not go.
pub fn protect(call: &Call, review: &mut Review<'_>) {
    let finalizer = if review.creates(call, "", "persistentvolumeclaims") {
        "kubernetes.io/pvc-protection"
    } else if review.creates(call, "", "persistentvolumes") {
        "kubernetes.io/pv-protection"
    } else {
        return;
    };
    let Some(object) = review.object_mut() else { return };
    let mut all: Vec<String> = object.finalizers().into_iter().map(str::to_owned).collect();
    if all.iter().all(|one| one != finalizer) {
        all.push(finalizer.to_owned());
        object.set_meta("finalizers", all);
    }
}

/// A new node takes no pods before it says that it is ready.
pub fn taint_node(call: &Call, review: &mut Review<'_>) {
    if !review.creates(call, "", "nodes") {
        return;
    }
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    let Some(node) = review.object_mut() else { return };
    let taints = child_object(as_object(node), "spec").entry("taints").or_insert_with(|| json!([]));
    let Some(taints) = taints.as_array_mut() else { return };
    let same =
        |one: &Value| text(one, "/key") == text(&taint, "/key") && text(one, "/effect") == text(&taint, "/effect");
    if !taints.iter().any(same) {
        taints.push(taint);
    }
}

/// Only a claim whose class allows it may grow.
pub fn check_resize(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let is_update = review.operation == Operation::Update && review.is(call, "", "persistentvolumeclaims");
    let (true, Some(new), Some(old)) = (is_update, review.object(), review.old) else { return Ok(()) };
    let size = |claim: &Value| resources::at(claim, "/spec/resources/requests").remove("storage");
    if size(new) <= size(old) {
        return Ok(());
    }
    if text(old, "/status/phase") != "Bound" {
        return Err(review.forbidden(call, "Only bound persistent volume claims can be expanded"));
    }
    let class = look(&call.server, STORAGE, "storageclasses", text(new, "/spec/storageClassName"));
    let grows =
        class.is_some_and(|class| class.get("allowVolumeExpansion").and_then(Value::as_bool).unwrap_or_default());
    if grows {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(review.forbidden(call, why))
}
