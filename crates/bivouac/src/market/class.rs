// SPDX-License-Identifier: Apache-2.0
//! The credentials of a GPUNodeClass. Name, key and namespace of each reference count, as for the operator.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use bivouac_api::tgp::{GPUNodeClass, ProviderConfig};
use bivouac_clouds::{Credentials, Entry, find};
use bivouac_runtime::{client, reconcile::plain};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

/// A class in a cluster.
pub struct Class {
    client: Client,
    name: String,
    providers: Vec<ProviderConfig>,
    /// Where a Secret is that names no namespace.
    namespace: String,
}

impl Class {
    pub async fn read(name: &str, kubeconfig: Option<&Path>, namespace: &str) -> Result<Self> {
        let config = client::config(kubeconfig).await.map_err(|error| anyhow!("{error}"))?;
        let client = client::connect(config, concat!("bivouac/", env!("CARGO_PKG_VERSION")))?;
        let class = Api::<GPUNodeClass>::all(client.clone()).get(name).await;
        let class = class.map_err(|error| anyhow!("GPUNodeClass {name} cannot be read: {}", plain(&error)))?;
        let providers = class.spec.providers.into_iter().filter(|one| one.enabled != Some(false)).collect();
        Ok(Self { client, name: name.to_owned(), providers, namespace: namespace.to_owned() })
    }

    /// The clouds that may be bought from, each with its credential or why there is none.
    pub async fn clouds(&self) -> Result<Vec<(&'static Entry, Result<Credentials>)>> {
        let mut all = Vec::new();
        for provider in &self.providers {
            let Some(entry) = find(&provider.name.to_ascii_lowercase()) else {
                bail!("GPUNodeClass {} names the cloud {:?}, which nobody knows", self.name, provider.name);
            };
            all.push((entry, self.credentials(provider, entry).await));
        }
        Ok(all)
    }

    async fn credentials(&self, provider: &ProviderConfig, entry: &Entry) -> Result<Credentials> {
        let reference = &provider.credentials_ref;
        let namespace = reference.namespace.as_ref().filter(|one| !one.is_empty()).unwrap_or(&self.namespace);
        let place = format!("the Secret {namespace}/{}", reference.name);
        let secret = Api::<Secret>::namespaced(self.client.clone(), namespace).get(&reference.name).await;
        let secret = secret.map_err(|error| anyhow!("{place} cannot be read: {}", plain(&error)))?;
        let data = secret.data.unwrap_or_default();
        let value = data.get(&reference.key).with_context(|| format!("{place} has no key {:?}", reference.key))?;
        let text = std::str::from_utf8(&value.0).map_err(|_| anyhow!("{:?} of {place} is no text", reference.key))?;
        Credentials::read(text, entry.fields).with_context(|| format!("{:?} of {place}", reference.key))
    }
}
