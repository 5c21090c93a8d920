// SPDX-License-Identifier: Apache-2.0
//! The same client over a socket and in process.

use std::sync::Arc;

use bivouac_clouds::fake::{Refused, Server, Trouble};
use bivouac_clouds::kit::{self, Stage};
use bivouac_clouds::registry::{ALL, Entry};
use bivouac_clouds::{Cloud, Fault, Machine, Operation, line};

/// Everything that a client does in a life, as it tells it.
async fn tell(stage: &Stage) -> Vec<String> {
    let mut told = Vec::new();
    let cloud = &stage.cloud;
    told.push(format!("{:?}", cloud.verify().await));
    told.push(format!("{:?}", cloud.offers().await));
    let order = stage.order(1).await.unwrap();
    let launched = cloud.launch(&order).await;
    let id = launched.as_ref().map(|machine| machine.id.clone()).unwrap();
    told.push(timeless(launched));
    for machine in cloud.list(&order.owner).await.unwrap() {
        told.push(timeless(Ok(machine)));
    }
    told.push(timeless(cloud.describe(&id).await));
    for trouble in [Trouble::Refuse(Refused::Unauthorized), Trouble::Html(503), Trouble::Truncated] {
        stage.server.trouble(Operation::List, trouble);
        // Where an answer was cut depends on how long it was.
        let listed = cloud.list(&order.owner).await.map_err(|fault| (fault.outcome, fault.operation, fault.status));
        told.push(format!("{listed:?}"));
    }
    told.push(format!("{:?}", cloud.terminate(&id).await));
    told.push(format!("{:?}", cloud.terminate(&id).await));
    told.push(timeless(cloud.describe(&id).await));
    told
}

/// Two runs take a different time.
fn timeless(result: Result<Machine, Fault>) -> String {
    format!("{:?}", result.map(|machine| Machine { created: None, ended: None, ..machine }))
}

/// A client that speaks to its fake over a port of this machine.
async fn over_http(entry: &Entry) -> (Stage, tokio::task::JoinHandle<()>) {
    let credentials = kit::credentials(entry);
    let server: Server = entry.server(&credentials).unwrap();
    let (address, task) = server.listen().await.unwrap();
    let base = format!("http://{address}{}", entry.path());
    let cloud: Arc<dyn Cloud> = (entry.client)(&credentials, line::to_the_world().unwrap(), &base).unwrap();
    (Stage { cloud, server, credentials }, task)
}

#[test]
fn over_http_and_in_process_the_results_are_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Without a network no time need pass.
    let here = |entry: &Entry| crate::told::on_stage(entry.name, async |stage| tell(stage).await);
    let here: Vec<Vec<String>> = ALL.iter().map(here).collect();
    runtime.block_on(async {
        let plays = ALL.iter().zip(here).map(|(entry, here)| async move {
            let (stage, task) = over_http(entry).await;
            let there = tell(&stage).await;
            task.abort();
            assert_eq!(here, there, "{}", entry.name);
            assert!(here.len() >= 10, "{}: {here:?}", entry.name);
            entry.name
        });
        let played = futures::future::join_all(plays).await;
        assert_eq!(played.len(), ALL.len());
    });
}
