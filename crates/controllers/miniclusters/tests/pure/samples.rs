// SPDX-License-Identifier: Apache-2.0
//! Every MiniCluster of the contracts' samples can be made, and its children are as the goldens have them.

use std::path::{Path, PathBuf};

use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{Settings, plan::plan};
use jiff::Timestamp;
use serde_json::Value;

use crate::{build::shorten, plan::empty};

fn samples() -> Vec<(String, MiniCluster)> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    let shared = std::env::var_os("BIVOUAC_SHARED").map_or_else(default, PathBuf::from);
    let Ok(folder) = std::fs::read_dir(shared.join("contracts/samples/flux-framework")) else {
        println!("NOT RUN: contracts absent");
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in folder.map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().replace("--", "_");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let ours = documents.into_iter().filter(|document| document["kind"] == "MiniCluster");
        found.extend(ours.map(|document| (name.clone(), serde_json::from_value(document).unwrap())));
    }
    assert!(found.len() >= 36, "only {} samples", found.len());
    found
}

#[test]
fn every_sample_is_accepted_and_has_its_children() {
    for (name, mut minicluster) in samples() {
        minicluster.metadata.namespace = Some("default".into());
        let plan = plan(&minicluster, &empty(), &Settings::default(), Timestamp::UNIX_EPOCH);
        let told: Vec<_> = plan.conditions.iter().map(|verdict| (verdict.type_, &verdict.message)).collect();
        assert!(!plan.stages.is_empty(), "{name} is refused: {told:?}");
        let children: Value = plan.children().map(|child| child.body.clone()).collect();
        // A sample mounts something into the home of root. Goldens name no home: it could be the writer's own.
        let mut children =
            serde_json::from_str(&children.to_string().replace(&format!("/{}/", "root"), "<home>/")).unwrap();
        shorten(&mut children);
        insta::with_settings!({
            prepend_module_to_snapshot => false, omit_expression => true, snapshot_path => "snapshots/samples"
        }, {
            insta::assert_yaml_snapshot!(name, children);
        });
    }
}
