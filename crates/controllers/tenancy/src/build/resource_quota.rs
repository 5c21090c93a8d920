// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};

use super::RESOURCE_QUOTA;
use crate::tenant::Tenant;

pub fn resource_quota(tenant: &Tenant<'_>, spec: &ResourceQuotaSpec) -> ResourceQuota {
    ResourceQuota { metadata: tenant.meta(RESOURCE_QUOTA), spec: Some(spec.clone()), status: None }
}
