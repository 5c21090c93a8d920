// SPDX-License-Identifier: Apache-2.0
//! The script that a machine starts with comes and goes with it.

use bivouac_clouds::fake::Trouble;
use bivouac_clouds::kit::Stage;
use bivouac_clouds::{Boot, Operation, Order, Outcome, Secret};
use http::Method;
use serde_json::{Value, json};

use super::{ask, asked, launch, order, stage};

/// The scripts that are there.
async fn scripts(stage: &Stage) -> Vec<String> {
    let answer = ask(stage, Method::GET, "/startup-scripts?limit=100", Value::Null).await;
    answer["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

async fn make_script(stage: &Stage, name: &str) -> String {
    let made = ask(stage, Method::POST, "/startup-scripts", json!({ "name": name, "script": "#!/bin/sh" })).await;
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_script_ends_with_its_machine() {
    let stage = stage();
    let launched = launch(&stage, &order()).await.unwrap();
    make_script(&stage, "tgp-1a2b3c4d-train-other").await;
    make_script(&stage, "tgp-1a2b3c4d-train-x7k2p").await;
    let foreign = make_script(&stage, "somebody-elses").await;
    let path = format!("/startup-scripts/{foreign}/assign");
    ask(&stage, Method::POST, &path, json!({ "machineId": launched.id })).await;
    stage.server.economy(|economy| economy.page = 1);
    stage.cloud.terminate(&launched.id).await.unwrap();
    stage.server.economy(|economy| economy.page = 100);
    assert_eq!(scripts(&stage).await, ["tgp-1a2b3c4d-train-other", "somebody-elses"]);
}

/// A machine that tells its name no more is still known by its id.
#[tokio::test(start_paused = true)]
async fn a_script_ends_also_when_the_machine_is_gone() {
    let stage = stage();
    let launched = launch(&stage, &order()).await.unwrap();
    stage.server.trouble(Operation::Verify, Trouble::Status(503));
    let fault = stage.cloud.terminate(&launched.id).await.unwrap_err();
    assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Terminate));
    assert_eq!(scripts(&stage).await.len(), 1);
    assert!(stage.server.economy(|economy| economy.rented[0].ended.is_some()), "the machine comes first");
    stage.cloud.terminate(&launched.id).await.unwrap();
    assert!(scripts(&stage).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_launch_leaves_no_script() {
    let stage = stage();
    for status in [400, 401, 402, 403, 429] {
        stage.server.trouble(Operation::Launch, Trouble::Status(status));
        launch(&stage, &order()).await.unwrap_err();
        assert!(scripts(&stage).await.is_empty(), "{status}");
    }
    stage.server.trouble(Operation::Launch, Trouble::NotSent);
    launch(&stage, &order()).await.unwrap_err();
    assert!(scripts(&stage).await.is_empty(), "what was not sent made no machine");
    assert_eq!(asked(&stage, "POST", "/v1/startup-scripts").len(), 6);
    stage.server.trouble(Operation::Launch, Trouble::DoneButLost);
    assert_eq!(launch(&stage, &order()).await.unwrap_err().outcome, Outcome::Ambiguous);
    assert_eq!(scripts(&stage).await.len(), 1, "a machine that may be there needs its script");
    make_script(&stage, "tgp-1a2b3c4d-train-other").await;
    stage.cloud.abandon(&order().name()).await.unwrap();
    assert_eq!(scripts(&stage).await, ["tgp-1a2b3c4d-train-other"], "one that never came does not");
}

/// What goes wrong before the machine is bought is no doubt, and is tidied up.
#[tokio::test(start_paused = true)]
async fn a_script_in_doubt_is_dropped_and_nothing_is_bought() {
    let stage = stage();
    // The system is looked up first.
    let own = Boot::CloudInit { image: Some("t0nspur5".to_owned()), user_data: Secret::new("#!/bin/sh") };
    let order = Order { boot: own, ..order() };
    for trouble in [Trouble::DoneButLost, Trouble::DoneButRefused(502), Trouble::Empty, Trouble::Html(200)] {
        let name = format!("{trouble:?}");
        stage.server.trouble(Operation::Verify, trouble);
        let fault = launch(&stage, &order).await.unwrap_err();
        assert_eq!((fault.outcome, fault.operation), (Outcome::Transient, Operation::Launch), "{name}");
        assert!(scripts(&stage).await.is_empty(), "{name}");
    }
    assert!(stage.server.asked(Operation::Launch).is_empty());
}

/// The machine runs what it gets with a shell.
#[tokio::test(start_paused = true)]
async fn cloud_init_is_wrapped_in_a_script() {
    let stage = stage();
    let text = "#cloud-config\nruncmd: [echo 'ä']\n";
    let boot = Boot::CloudInit { image: None, user_data: Secret::new(text) };
    launch(&stage, &Order { boot, ..order() }).await.unwrap();
    let script = asked(&stage, "POST", "/v1/startup-scripts").pop().unwrap().text("/script").to_owned();
    assert!(script.starts_with("#!/bin/bash\n") && script.contains("cloud-init modules --mode=final\n"), "{script}");
    let folder = std::env::temp_dir().join(format!("bivouac-paperspace-{}", std::process::id()));
    // Without the machine's own program, and in a folder of ours.
    let here = script.replace("/var/lib/cloud", folder.to_str().unwrap()).replace("cloud-init", ":");
    let shell = std::process::Command::new("bash").arg("-c").arg(here).status().unwrap();
    let seed = std::fs::read_to_string(folder.join("seed/nocloud/user-data"));
    let meta = std::fs::read_to_string(folder.join("seed/nocloud/meta-data"));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(shell.success());
    assert_eq!((seed.unwrap().as_str(), meta.unwrap().as_str()), (text, "instance-id: tgp-1a2b3c4d-train-x7k2p\n"));
}
