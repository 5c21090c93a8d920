// SPDX-License-Identifier: Apache-2.0
//! The README's tour, command by command, does what the README says.

use crate::user::{User, eventually};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const READY: &str = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";

/// The lines in fences between two headings.
fn commands<'a>(readme: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, section) = readme.split_once(heading).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    section.split("```").skip(1).step_by(2).flat_map(str::lines).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_tour_is_true() {
    let readme = std::fs::read_to_string(format!("{ROOT}/README.md")).unwrap();
    let first = commands(&readme, "## Try it on this machine");
    assert_eq!(first[0], "cargo run --release -- up");
    let tour = commands(&readme, "## A tour in five minutes");
    assert!(tour.len() >= 12, "{tour:?}");
    let (export, tour) = tour.split_first().unwrap();
    assert_eq!(*export, "export KUBECONFIG=~/.local/share/bivouac/kubeconfig");

    let user = User::new();
    // The README's port may be in use where the tests run.
    let mut up = user.up(&["--port", "0"]);
    up.ready();
    // `cargo run --release --` is how one calls the binary in a checkout.
    let run = |command: &str| {
        let command = command.replace("cargo run --release --", "bivouac");
        let said = user.shell(&format!("cd {ROOT}; {export}; {command}"));
        assert_eq!(said.code, Some(0), "{command}: {}{}", said.out, said.err);
        said.out
    };
    let ready = |name: &str| {
        eventually(name, || user.kubectl(&["get", "workspace", name, "-o", READY]) == "True");
    };
    for command in tour {
        let said = run(command);
        // A person takes a moment to read; the test looks until it sees what the README promises.
        match *command {
            "kubectl get workspaces -o wide" => assert!(said.contains("aurora") && said.contains("borealis"), "{said}"),
            "kubectl apply -f examples/tenancy/full.yaml" => ready("vision"),
            "kubectl describe workspace vision" => assert!(said.contains("IsolationReady"), "{said}"),
            "kubectl get networkpolicy -n vision" => {
                eventually("the policy is back", || run(command).contains("workspace-network-policy"));
            }
            "kubectl apply -f examples/tenancy/smallest.yaml" => {
                let look = "kubectl get workspace notebooks -o wide";
                eventually("the conflict is told", || run(look).contains("NamespaceConflict"));
            }
            "kubectl wait workspace notebooks --for=condition=Ready" => assert!(said.contains("met"), "{said}"),
            "cargo run --release -- minicluster list" => assert!(said.contains("Completed"), "{said}"),
            _ => {}
        }
    }
    up.stop();
}
