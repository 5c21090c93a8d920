// SPDX-License-Identifier: Apache-2.0
//! Teaching the API server new kinds.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt};

const LIMIT: Duration = Duration::from_secs(30);

/// Applies the definitions and waits until they are served.
pub(crate) async fn install(client: &Client, crds: &[CustomResourceDefinition]) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds {
        api.patch(&crd.name_any(), &PatchParams::apply("testenv").force(), &Patch::Apply(crd)).await?;
    }
    for crd in crds {
        let name = crd.name_any();
        let established = await_condition(api.clone(), &name, conditions::is_crd_established());
        let waited = tokio::time::timeout(LIMIT, established).await;
        waited.with_context(|| format!("{name} is not established"))??;
    }
    Ok(())
}
