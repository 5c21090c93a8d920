// SPDX-License-Identifier: Apache-2.0

use bivouac_clouds::kit::{Stage, behaviours};
use bivouac_clouds::registry::{ALL, Entry};

/// Plays one behaviour on a fresh fake, in virtual time.
pub fn play(entry: &'static Entry, name: &str) -> Result<(), String> {
    let behaviour = behaviours().into_iter().find(|one| one.name == name).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let stage = Stage::of(entry)?;
        (behaviour.run)(&stage).await
    })
}

#[test]
fn every_cloud_passes_every_behaviour() {
    let mut failed = Vec::new();
    let mut passed = 0;
    for entry in ALL {
        for behaviour in behaviours() {
            match play(entry, behaviour.name) {
                Ok(()) => passed += 1,
                Err(wrong) => failed.push(format!("{} {}: {wrong}", entry.name, behaviour.name)),
            }
        }
    }
    println!("{} clouds, {} behaviours each, {passed} passed", ALL.len(), behaviours().len());
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
