// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{certificate::Certificate, cluster::Cluster, script};

/// The scripts of the pods. With the compatibility switch also the certificate.
pub fn entrypoint(cluster: &Cluster<'_>, certificate: &Certificate) -> ConfigMap {
    let mut data = BTreeMap::from([
        (script::runner_key(cluster), script::runner(cluster)),
        (cluster.view.name.clone(), script::init(cluster)),
    ]);
    let sidecars = cluster.sidecars.iter().copied();
    data.extend(sidecars.filter_map(|one| Some((script::sidecar_key(one)?, script::sidecar(cluster, one)))));
    if cluster.settings.certificate_in_config_map {
        data.insert("curve.cert".to_owned(), certificate.as_text().to_owned());
    }
    ConfigMap {
        metadata: cluster.meta(&cluster.config_map_name(), &BTreeMap::new()),
        data: Some(data),
        ..ConfigMap::default()
    }
}
