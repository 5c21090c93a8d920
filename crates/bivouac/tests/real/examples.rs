// SPDX-License-Identifier: Apache-2.0
//! Every manifest under `examples/` works as it stands.

use std::path::{Path, PathBuf};

use bivouac_api::tenant::Workspace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::install::{self, succeeds};
use crate::operator::{Operator, eventually, ready_workspace};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Manifests, at any depth.
fn manifests(dir: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| if path.is_dir() { manifests(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect()
}

#[tokio::test]
async fn examples_become_ready() {
    let cluster = install::cluster().await;
    let account = install::install(&cluster, &[]).await;
    let mut operator = Operator::start(account.kubeconfig(), install::NAMESPACE, "bivouac-0");
    operator.ready().await;

    let mut files = manifests(Path::new(EXAMPLES));
    files.sort_unstable();
    assert!(files.len() >= 6, "{files:?}");
    for file in &files {
        let apply = ["apply", "--server-side", "-f", file.to_str().unwrap()];
        // What lives in the namespace of a Workspace can be made when the Workspace has made that.
        let goes_well = async || cluster.kubectl(&apply).await.unwrap().status.success().then_some(());
        eventually(file.to_str().unwrap(), 30, goes_well).await;
    }
    let api = Api::<Workspace>::all(cluster.client());
    let workspaces = api.list(&ListParams::default()).await.unwrap().items;
    assert!(workspaces.len() >= 6);
    for workspace in workspaces {
        let ready = ready_workspace(&cluster.client(), &workspace.name_any()).await;
        let waiting = ready.status.unwrap().conditions.into_iter().find(|condition| condition.status != "True");
        assert_eq!(waiting, None, "{}", workspace.name_any());
    }
    // Applying again changes nothing.
    for file in &files {
        let said = succeeds(cluster.kubectl(&["diff", "--server-side", "-f", file.to_str().unwrap()]).await.unwrap());
        assert_eq!(said, "", "{}", file.display());
    }
}
