// SPDX-License-Identifier: Apache-2.0
//! The way to the cluster, and what to say when it is barred.

use anyhow::{Result, anyhow};
use bivouac_api::flux::MiniCluster;
use bivouac_runtime::{client, reconcile::plain};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::options::Access;
use crate::up;

/// Where commands go.
#[derive(Clone)]
pub struct Place {
    pub client: Client,
    pub namespace: String,
    address: String,
    access: Access,
}

impl Place {
    pub async fn reach(access: &Access) -> Result<Self> {
        let config = config(access).await?;
        let namespace = access.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let address = config.cluster_url.to_string();
        let client = client::connect(config, concat!("bivouac/", env!("CARGO_PKG_VERSION")))?;
        Ok(Self { client, namespace, address, access: access.clone() })
    }

    pub fn miniclusters(&self) -> Api<MiniCluster> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// One MiniCluster, or a sentence.
    pub async fn get(&self, name: &str) -> Result<MiniCluster> {
        self.miniclusters().get(name).await.map_err(|error| self.explain(&error))
    }

    /// How the same cluster is named to this program and to kubectl.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec!["-n".to_owned(), self.namespace.clone()];
        if let Some(path) = &self.access.kubeconfig {
            flags.extend(["--kubeconfig".to_owned(), path.display().to_string()]);
        }
        if let Some(context) = &self.access.context {
            flags.extend(["--context".to_owned(), context.clone()]);
        }
        flags
    }

    /// A line that a person can paste.
    pub fn command(&self, verb: &str, name: &str) -> String {
        let flags: Vec<String> = self.flags().iter().map(|flag| super::submit::word(flag)).collect();
        format!("bivouac minicluster {verb} {name} {}", flags.join(" "))
    }

    /// What went wrong, and what to do about it.
    pub fn explain(&self, error: &kube::Error) -> anyhow::Error {
        let namespace = &self.namespace;
        let kube::Error::Api(status) = error else {
            return anyhow!(
                "no answer from the Kubernetes cluster at {}: {}\nDoes it run, and does the kubeconfig name the right one?",
                self.address,
                root(error)
            );
        };
        let (of, name) = status.details.as_ref().map_or(("", ""), |details| (&details.kind, &details.name));
        match (status.code, status.reason.as_str(), of) {
            (401, ..) => anyhow!(
                "the cluster at {} does not accept who you are: the credentials in the kubeconfig may have expired",
                self.address
            ),
            (403, "Forbidden", _) => {
                anyhow!("you may not do this: {}\nWhoever runs the cluster can give you that right.", plain(error))
            }
            (404, "NotFound", "namespaces") => {
                anyhow!("there is no namespace {name}; kubectl create namespace {name} makes it")
            }
            (404, "NotFound", "miniclusters") if !name.is_empty() => anyhow!(
                "there is no MiniCluster {name} in the namespace {namespace}; `bivouac minicluster list -A` shows all"
            ),
            (404, "NotFound", "pods") => anyhow!("pod {name} is gone"),
            (404, ..) => anyhow!(
                "this cluster knows no MiniClusters.\nInstall them: bivouac crds | kubectl apply --server-side -f -"
            ),
            (409, "AlreadyExists", _) => anyhow!(
                "the name is taken: there is a MiniCluster {name} in the namespace {namespace} already.\n\
                 Take another --name, or none: then a new one is made. To be rid of the old one: {}",
                self.command("delete", name)
            ),
            _ => anyhow!("the API server refused it: {}", plain(error)),
        }
    }
}

async fn config(access: &Access) -> Result<Config> {
    let Some(context) = &access.context else {
        return client::config(access.kubeconfig.as_deref()).await.map_err(|error| anyhow!("{error}{}", hint()));
    };
    let file = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let wrong = |error| anyhow!("the kubeconfig cannot be used: {error}");
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(file.map_err(wrong)?, &options).await.map_err(wrong)
}

/// Somebody who runs `bivouac up` has a cluster, and may not know how to name it.
fn hint() -> String {
    up::kubeconfig()
        .map_or_else(String::new, |path| format!("\nFor what `bivouac up` runs here: export KUBECONFIG={path}"))
}

/// The last cause is what a person understands.
fn root(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn place() -> Place {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        let access = Access { context: Some("my cluster".into()), ..Access::default() };
        Place { client: Client::new(service, "lab"), namespace: "lab".into(), address: "https://camp".into(), access }
    }

    fn said(code: u16, reason: &str, kind: &str, name: &str) -> String {
        let details: Value = json!({"kind": kind, "name": name});
        let status = json!({"status": "Failure", "code": code, "reason": reason, "message": "why", "details": details});
        let status = serde_json::from_value(status).unwrap();
        place().explain(&kube::Error::Api(Box::new(status))).to_string()
    }

    #[tokio::test]
    async fn every_trouble_has_a_sentence_and_a_way_out() {
        for (sentence, words) in [
            (said(401, "Unauthorized", "", ""), "credentials"),
            (said(403, "Forbidden", "miniclusters", ""), "you may not do this: why"),
            (said(404, "NotFound", "namespaces", "lab"), "kubectl create namespace lab"),
            (said(404, "NotFound", "miniclusters", "a"), "no MiniCluster a in the namespace lab"),
            (said(404, "NotFound", "miniclusters", ""), "bivouac crds | kubectl apply"),
            (said(404, "Failed to parse error data", "", ""), "bivouac crds | kubectl apply"),
            (said(409, "AlreadyExists", "miniclusters", "a"), "delete a -n lab --context 'my cluster'"),
            (said(422, "Invalid", "MiniCluster", "a"), "the API server refused it: why"),
        ] {
            assert!(sentence.contains(words), "{sentence}");
        }
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let sentence = place().explain(&kube::Error::Service(refused.into())).to_string();
        assert!(
            sentence.contains("no answer from the Kubernetes cluster at https://camp: connection refused"),
            "{sentence}"
        );
    }
}
