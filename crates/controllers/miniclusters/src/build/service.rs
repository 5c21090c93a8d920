// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use bivouac_api::flux::Container;
use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::cluster::Cluster;

/// Gives every pod its name, or with `minimalService` only the lead broker. Names are there before pods are ready:
/// brokers look for each other while they start.
pub fn headless_service(cluster: &Cluster<'_>) -> Service {
    let mut selector = BTreeMap::from([("job-name".to_owned(), cluster.name.clone())]);
    let minimal = cluster.flux.minimal_service;
    if minimal {
        // Kubernetes sets this label itself, so the lead is found without waiting for us.
        selector.insert("batch.kubernetes.io/job-completion-index".to_owned(), "0".to_owned());
    }
    let spec = ServiceSpec {
        cluster_ip: (!minimal).then(|| "None".to_owned()),
        ports: minimal.then(|| vec![port(8050)]),
        publish_not_ready_addresses: Some(true),
        selector: Some(selector),
        ..ServiceSpec::default()
    };
    service(cluster, &cluster.headless_name, spec)
}

/// A Service for the ports of a container beside the runner. Its name is the container's, unless somebody else has it.
pub fn sidecar_service(cluster: &Cluster<'_>, container: &Container, is_taken: bool) -> Service {
    let spec = ServiceSpec {
        ports: Some(container.ports.iter().map(|number| port(*number)).collect()),
        selector: Some([("app.kubernetes.io/name".to_owned(), cluster.name.clone())].into()),
        ..ServiceSpec::default()
    };
    service(cluster, &sidecar_service_name(cluster, container, is_taken), spec)
}

pub fn sidecar_service_name(cluster: &Cluster<'_>, container: &Container, is_taken: bool) -> String {
    if is_taken || container.name == cluster.headless_name {
        bivouac_core::names::label(&format!("{}-{}", cluster.name, container.name)).into_owned()
    } else {
        container.name.clone()
    }
}

fn service(cluster: &Cluster<'_>, name: &str, spec: ServiceSpec) -> Service {
    Service { metadata: cluster.meta(name, &BTreeMap::new()), spec: Some(spec), ..Service::default() }
}

/// Several ports of one Service must have names.
fn port(number: i32) -> ServicePort {
    ServicePort {
        name: Some(format!("port-{number}")),
        port: number,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(number)),
        ..ServicePort::default()
    }
}
