// SPDX-License-Identifier: Apache-2.0
//! The README's tour, command by command, does what the README says.
#![allow(clippy::unwrap_used, reason = "test code outside of #[test] functions")]

mod install;
mod operator;

use install::succeeds;
use operator::{Operator, eventually, ready_workspace};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[tokio::test]
async fn the_tour_is_true() {
    let readme = std::fs::read_to_string(format!("{ROOT}/README.md")).unwrap();
    let (_, tour) = readme.split_once("## A tour in five minutes").unwrap();
    let (tour, _) = tour.split_once("\n## ").unwrap();
    let commands: Vec<&str> = tour.lines().filter_map(|line| line.strip_prefix("kubectl ")).collect();
    assert!(commands.len() >= 10, "{commands:?}");

    let cluster = install::cluster().await;
    let account = install::install(&cluster, &[]).await;
    let mut operator = Operator::start(account.kubeconfig(), install::NAMESPACE, "bivouac-0");
    operator.ready().await;
    let run = async |command: &str| {
        let manifest =
            |word: &str| if word.starts_with("examples/") { format!("{ROOT}/{word}") } else { word.to_owned() };
        let words: Vec<String> = command.split_whitespace().map(manifest).collect();
        succeeds(cluster.kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap())
    };
    for command in commands {
        let said = run(command).await;
        // A person takes a moment to read; the test looks until it sees what the README promises.
        match command {
            "apply -f examples/tenancy/full.yaml" => drop(ready_workspace(&cluster.client(), "vision").await),
            "describe workspace vision" => assert!(said.contains("IsolationReady"), "{said}"),
            "get networkpolicy -n vision" => {
                eventually("the policy is back", 30, async || {
                    run(command).await.contains("workspace-network-policy").then_some(())
                })
                .await;
            }
            "apply -f examples/tenancy/smallest.yaml" => {
                let look = "get workspace notebooks -o wide";
                eventually("the conflict is told", 30, async || {
                    run(look).await.contains("NamespaceConflict").then_some(())
                })
                .await;
            }
            "delete namespace notebooks" => drop(ready_workspace(&cluster.client(), "notebooks").await),
            _ => {}
        }
    }
}
