// SPDX-License-Identifier: Apache-2.0

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

use crate::{certificate::Certificate, cluster::Cluster};

/// The key that all brokers share. Only the runner mounts it.
pub fn certificate(cluster: &Cluster<'_>, certificate: &Certificate) -> Secret {
    Secret {
        metadata: cluster.meta(&cluster.secret_name(), &BTreeMap::new()),
        data: Some([("curve.cert".to_owned(), k8s_openapi::ByteString(certificate.as_text().into()))].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
