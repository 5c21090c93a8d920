// SPDX-License-Identifier: Apache-2.0
//! Only a process can go away and come back.

use futures::future::join_all;
use kube::api::ListParams;

use crate::workspaces::stage::{Stage, eventually, full, workspace_crds};
use crate::world;

#[test]
fn workspaces_become_ready_while_the_api_server_restarts() {
    world::run(becoming_ready_during_a_restart());
}

async fn becoming_ready_during_a_restart() {
    const COUNT: usize = 30;
    let stage = Stage::own(&workspace_crds()).await;
    let names: Vec<String> = (0..COUNT).map(|n| format!("load-{n}")).collect();
    let creating = join_all(names.iter().map(|name| stage.create(name, full(name))));
    let restarting = async {
        eventually("the first ones exist", async || {
            let listed = stage.workspaces().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            if listed.items.len() > COUNT / 3 { Ok(()) } else { Err(listed.items.len().to_string()) }
        })
        .await;
        stage.world.0.restart("kube-apiserver").await.unwrap();
    };
    tokio::join!(creating, restarting);
    for name in &names {
        stage.ready(name).await;
    }
}
