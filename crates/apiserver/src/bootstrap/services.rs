// SPDX-License-Identifier: Apache-2.0
//! The service by which pods find the server, and the addresses that services have.

use std::sync::Arc;

use serde_json::{Value, json};

use super::ensure;
use crate::{server::Inner, status::Status, store::Range};

/// The port that the server has where nobody says another.
const USUAL_PORT: u16 = 6443;

pub async fn run(server: &Arc<Inner>) -> Result<(), Status> {
    if let Some(resource) = server.registry().find("", "v1", "services") {
        let page = server.store.range(&resource.keyspace, &Range::default(), |_| true).map_err(Status::internal)?;
        page.items.iter().for_each(|stored| server.addresses.note(&resource.read(stored)));
    }
    let range = server.addresses.range();
    let cidr = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": { "name": "kubernetes" },
        "spec": { "cidrs": [format!("{}/{}", range.0, range.1)] },
    });
    ensure(server, "networking.k8s.io", "v1", "servicecidrs", cidr).await?;
    ensure(server, "", "v1", "services", service(server)).await?;
    let Some(at) = server.advertised else { return Ok(()) };
    let ports = json!([{ "name": "https", "port": at.port(), "protocol": "TCP" }]);
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{ "addresses": [{ "ip": at.ip().to_string() }], "ports": ports }],
    });
    ensure(server, "", "v1", "endpoints", endpoints).await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "addressType": if at.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{ "addresses": [at.ip().to_string()], "conditions": { "ready": true } }],
        "ports": ports,
    });
    ensure(server, "discovery.k8s.io", "v1", "endpointslices", slice).await
}

fn service(server: &Inner) -> Value {
    let port = server.advertised.map_or(USUAL_PORT, |at| at.port());
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": server.addresses.range().first().to_string(),
            "ipFamilyPolicy": "SingleStack",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": port }],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    })
}
