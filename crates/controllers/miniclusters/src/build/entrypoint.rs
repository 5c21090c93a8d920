// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{certificate::Certificate, cluster::Cluster, script};

/// The scripts of the pods. With the compatibility switch also the certificate.
pub fn entrypoint(cluster: &Cluster<'_>, certificate: &Certificate) -> ConfigMap {
    let mut data = BTreeMap::from([
        (format!("wait-{}", cluster.runner.index), script::runner(cluster)),
        (cluster.view.name.clone(), script::init(cluster)),
    ]);
    let wrapped = cluster.sidecars.iter().filter(|placed| !placed.container.no_wrap_entrypoint);
    data.extend(wrapped.map(|placed| (format!("start-{}", placed.index), script::sidecar(cluster, *placed))));
    if cluster.settings.certificate_in_config_map {
        data.insert("curve.cert".to_owned(), certificate.as_text().to_owned());
    }
    ConfigMap {
        metadata: cluster.meta(&cluster.config_map_name(), &BTreeMap::new()),
        data: Some(data),
        ..ConfigMap::default()
    }
}
