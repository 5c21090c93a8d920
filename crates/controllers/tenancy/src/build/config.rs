// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::api::core::v1::ConfigMap;

use super::CONFIG;
use crate::{endpoints::Endpoints, tenant::Tenant};

/// Tells the pods of the namespace where the platform's services are.
pub fn config(tenant: &Tenant<'_>, endpoints: &Endpoints) -> ConfigMap {
    let entries = [("ServiceEndpoint", &endpoints.service), ("ModelGatewayEndpoint", &endpoints.model)];
    let data = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))).collect();
    ConfigMap { metadata: tenant.meta(CONFIG), data: Some(data), ..ConfigMap::default() }
}
