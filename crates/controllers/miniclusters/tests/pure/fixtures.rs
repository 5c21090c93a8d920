// SPDX-License-Identifier: Apache-2.0
//! MiniClusters to plan for. Each starts plain; a test says only what is special.

use bivouac_api::flux::{MiniCluster, MiniClusterSpec};
use bivouac_miniclusters::{Cluster, Settings};

/// A spec as a person would write it; `containers` are there unless the test brings its own.
pub fn spec(yaml: &str) -> MiniClusterSpec {
    let plain = if yaml.contains("containers:") { "" } else { "containers: [{image: app, command: hostname}]\n" };
    serde_saphyr::from_str(&format!("{plain}{yaml}")).unwrap()
}

pub fn minicluster(yaml: &str) -> MiniCluster {
    let mut minicluster = MiniCluster::new("flux-sample", spec(yaml));
    minicluster.metadata.namespace = Some("default".into());
    minicluster.metadata.uid = Some("b7d1c1a0-0000-4000-8000-000000000001".into());
    minicluster.metadata.generation = Some(3);
    minicluster
}

/// What `look` sees in the cluster that the text describes.
pub fn with<T>(yaml: &str, look: impl FnOnce(&Cluster<'_>) -> T) -> T {
    let minicluster = minicluster(yaml);
    look(&Cluster::of(&minicluster, minicluster.spec.size, &Settings::default()).unwrap())
}
