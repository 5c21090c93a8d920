// SPDX-License-Identifier: Apache-2.0
//! Every namespace has an account for its pods. Tokens are the API server's.

use k8s_openapi::{
    api::core::v1::{Namespace, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
};

const DEFAULT: &str = "default";

#[derive(Debug)]
pub struct Accounts;

impl Controller for Accounts {
    fn name(&self) -> &'static str {
        "service-accounts"
    }

    /// Keys are namespaces.
    fn concerns(&self, object: &Object, _: &View) -> Vec<Key> {
        match object {
            Object::Namespace(namespace) => vec![Key::of(&namespace.metadata)],
            Object::ServiceAccount(account) if account.metadata.name.as_deref() == Some(DEFAULT) => {
                vec![Key::bare(account.metadata.namespace.clone().unwrap_or_default())]
            }
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, _: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(namespace) = view.namespaces.get(key) else { return plan };
        if is_active(namespace) && view.service_accounts.get(&Key::new(&key.name, DEFAULT)).is_none() {
            plan.create(&ServiceAccount {
                metadata: ObjectMeta {
                    name: Some(DEFAULT.to_owned()),
                    namespace: Some(key.name.clone()),
                    ..ObjectMeta::default()
                },
                ..ServiceAccount::default()
            });
        }
        plan
    }
}

fn is_active(namespace: &Namespace) -> bool {
    namespace.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Terminating")
}
