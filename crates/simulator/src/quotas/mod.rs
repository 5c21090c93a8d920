// SPDX-License-Identifier: Apache-2.0
//! What a namespace uses of its quotas. The API server counts up; this counts again, which also counts down.

mod usage;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ResourceQuota, ResourceQuotaStatus},
    apimachinery::pkg::api::resource::Quantity as Text,
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
};

#[derive(Debug)]
pub struct Quotas;

impl Controller for Quotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::ResourceQuota(quota) => vec![Key::of(&quota.metadata)],
            object => {
                let namespace = object.meta().namespace.as_deref().unwrap_or_default();
                view.quotas.in_namespace(namespace).map(|quota| Key::of(&quota.metadata)).collect()
            }
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(quota) = view.quotas.get(key) else { return plan };
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone()).unwrap_or_default();
        let before = quota.status.as_ref().and_then(|status| status.used.clone()).unwrap_or_default();
        let counted = usage::of_namespace(quota, view, moment.now);
        let used: BTreeMap<String, Text> = hard
            .keys()
            .map(|name| {
                let counted = counted.get(name).map(|amount| Text(amount.to_string()));
                // Of kinds that the simulation does not know, the API server's word is all there is.
                let known = before.get(name).filter(|_| !usage::is_known(name)).cloned();
                (name.clone(), counted.or(known).unwrap_or_else(|| Text("0".to_owned())))
            })
            .collect();
        let status = ResourceQuotaStatus { hard: Some(hard), used: Some(used) };
        if quota.status.as_ref() != Some(&status) {
            plan.status(&ResourceQuota { status: Some(status), ..ResourceQuota::clone(quota) });
        }
        plan
    }
}
