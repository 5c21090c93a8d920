// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeSpec};

use super::LIMIT_RANGE;
use crate::tenant::Tenant;

pub fn limit_range(tenant: &Tenant<'_>, spec: &LimitRangeSpec) -> LimitRange {
    LimitRange { metadata: tenant.meta(LIMIT_RANGE), spec: Some(spec.clone()) }
}
