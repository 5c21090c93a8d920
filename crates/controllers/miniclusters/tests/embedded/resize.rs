// SPDX-License-Identifier: Apache-2.0
//! Larger and smaller.

use bivouac_miniclusters::Settings;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::stage::{Stage, run};

async fn script(stage: &Stage) -> String {
    let scripts: ConfigMap = stage.all().get("flux-entrypoint").await.unwrap();
    scripts.data.unwrap().into_values().collect::<Vec<_>>().join("\n")
}

#[test]
fn four_to_sixty_four_to_two_and_never_to_zero() {
    run(async {
        let stage = Stage::new(16, Settings::default()).await;
        let spec = "{size: 4, maxSize: 64, interactive: true, containers: [{image: app}]}";
        stage.make("flux", spec, "10h").await;
        for size in [4, 64, 2] {
            stage.resize("flux", size).await.unwrap();
            stage.pass(120).await;
            assert_eq!(stage.pods().await.len(), usize::try_from(size).unwrap());
            let status = stage.minicluster("flux").await.status.unwrap();
            assert_eq!((status.size, status.maximum_size, status.ready), (size, 64, size));
            assert_eq!(stage.says("flux").await.0, "BrokersReady");
            let script = script(&stage).await;
            assert_eq!(script.contains(&format!("-Sbroker.quorum={size} ")), size != 64, "{size}");
            assert!(script.contains("flux-[0-63]"), "all hosts are known from the start");
        }
        let refused = stage.resize("flux", 0).await.unwrap_err().to_string();
        assert!(refused.contains("size must be at least 1: the lead broker needs a pod"), "{refused}");
    });
}

#[test]
fn a_wish_above_the_maximum_is_set_back_and_told() {
    run(async {
        let stage = Stage::new(2, Settings::default()).await;
        let spec = "{size: 2, maxSize: 4, interactive: true, containers: [{image: app}]}";
        stage.make("flux", spec, "10h").await;
        stage.pass(60).await;
        stage.resize("flux", 9).await.unwrap();
        stage.pass(120).await;
        assert_eq!(stage.minicluster("flux").await.spec.size, 4);
        assert_eq!(stage.pods().await.len(), 4);
        assert!(stage.events().await.contains(&"SizeDenied".to_owned()));
    });
}

#[test]
fn a_resize_while_it_starts_ends_at_the_last_wish() {
    run(async {
        let stage = Stage::new(4, Settings::default()).await;
        let spec = "{size: 2, maxSize: 8, interactive: true, containers: [{image: app}]}";
        stage.make("flux", spec, "10h").await;
        for (seconds, size) in [(1, 8), (1, 3), (2, 5)] {
            stage.pass(seconds).await;
            stage.resize("flux", size).await.unwrap();
        }
        stage.pass(120).await;
        assert_eq!(stage.pods().await.len(), 5);
        assert_eq!(stage.minicluster("flux").await.status.unwrap().ready, 5);
    });
}
