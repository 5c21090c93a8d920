// SPDX-License-Identifier: Apache-2.0
//! Clients: of the administrator, and of anybody else a test wants to be.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

const READY_LIMIT: Duration = Duration::from_secs(2);

pub(crate) fn read(kubeconfig: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(kubeconfig).with_context(|| format!("reading {}", kubeconfig.display()))
}

pub(crate) async fn client(kubeconfig: Kubeconfig) -> Result<Client> {
    // Fails when a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// The same cluster with another user.
pub(crate) fn with_user(kubeconfig: &Kubeconfig, user: AuthInfo) -> Kubeconfig {
    let mut other = kubeconfig.clone();
    for named in &mut other.auth_infos {
        named.auth_info = Some(user.clone());
    }
    other
}

/// The user of the cluster's own kubeconfig.
pub(crate) fn user(kubeconfig: &Kubeconfig) -> AuthInfo {
    kubeconfig.auth_infos.iter().find_map(|named| named.auth_info.clone()).unwrap_or_default()
}

/// Whether the API server says that all its parts are up.
pub(crate) async fn is_ready(kubeconfig: &Path) -> bool {
    let ask = async {
        let client = client(read(kubeconfig)?).await?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        anyhow::Ok(client.request_text(request).await?)
    };
    matches!(tokio::time::timeout(READY_LIMIT, ask).await, Ok(Ok(text)) if text == "ok")
}
