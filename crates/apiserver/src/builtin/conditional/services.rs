// SPDX-License-Identifier: Apache-2.0
//! Services. Addresses and node ports are allocated by whoever keeps them.

use serde_json::{Value, json};

use super::{Fields, fill, text};

pub(super) fn spec(fields: &mut Fields) {
    fill(fields, "type", "ClusterIP");
    fill(fields, "sessionAffinity", "None");
    if text(fields, "sessionAffinity") == "ClientIP" {
        let config = fields.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            let client = config.entry("clientIP").or_insert_with(|| json!({}));
            client.as_object_mut().into_iter().for_each(|client| fill(client, "timeoutSeconds", 10800));
        }
    }
    let kind = text(fields, "type").to_owned();
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        fill(fields, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(fields, "allocateLoadBalancerNodePorts", true);
    }
    if kind != "ExternalName" {
        fill(fields, "internalTrafficPolicy", "Cluster");
    }
}

/// The cluster has IPv4 only. A service without address and selector could still name endpoints of both families.
pub(super) fn families(object: &mut Value) {
    let Some(fields) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if text(fields, "type") == "ExternalName" {
        return;
    }
    let headless = text(fields, "clusterIP") == "None";
    if headless {
        fill(fields, "clusterIPs", json!(["None"]));
    }
    let both = headless && !fields.contains_key("selector");
    fill(fields, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    fill(fields, "ipFamilyPolicy", if both { "RequireDualStack" } else { "SingleStack" });
}

/// The port of the pods is that of the service.
pub(super) fn port(fields: &mut Fields) {
    let number = fields.get("port").cloned().unwrap_or(Value::from(0));
    let target = fields.get("targetPort");
    if target.is_none_or(|target| *target == json!(0) || *target == json!("")) {
        fields.insert("targetPort".to_owned(), number);
    }
}
