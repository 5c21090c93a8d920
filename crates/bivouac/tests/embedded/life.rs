// SPDX-License-Identifier: Apache-2.0
//! Start, use, stop, start again.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use crate::user::{User, eventually};

const SMALLEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tenancy/smallest.yaml");
const READY: &str = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";

#[test]
fn a_first_day() {
    let user = User::new();
    let mut up = user.up(&["--port", "0"]);
    let (first_view, ready) = (up.says("bivouac 0"), up.ready());
    println!("first view after {first_view:.2?}, first start ready after {ready:.2?}");
    assert!(first_view < Duration::from_secs(2));

    // The first camp is there and converges; every command that was printed works.
    eventually("the camp is ready", || user.kubectl(&["get", "workspace", "aurora", "-o", READY]) == "True");
    eventually("the commands are printed", || up.output().contains("get events -A"));
    let output = up.output();
    let commands: Vec<&str> =
        output.lines().filter_map(|line| line.split_once("  kubectl ")).map(|(_, rest)| rest).collect();
    assert_eq!(commands.len(), 3, "{output}");
    for command in &commands {
        let said = user.shell(&format!("kubectl {command}"));
        assert_eq!(said.code, Some(0), "{command}: {}", said.err);
    }
    assert!(user.kubectl(&["get", "deployments", "-A"]).contains("inference"));
    // Pods find simulated nodes and run there.
    let wait = ["rollout", "status", "deployment/inference", "-n", "borealis", "--timeout=60s"];
    assert!(user.kubectl(&wait).contains("successfully rolled out"));
    let logs = user.kubectl(&["logs", "deployment/notebook", "-n", "aurora"]);
    assert!(logs.contains("quay.io/jupyter/base-notebook"), "{logs}");
    let nodes = ["get", "pods", "-n", "aurora", "-l", "job-name=training", "-o", "jsonpath={.items[*].spec.nodeName}"];
    eventually("training has GPUs", || user.kubectl(&nodes).split(' ').all(|node| node == "camp-gpu"));

    // A manifest of one's own, and what it leads to.
    user.kubectl(&["apply", "-f", SMALLEST]);
    eventually("it converges", || user.kubectl(&["get", "workspace", "notebooks", "-o", READY]) == "True");
    assert!(user.kubectl(&["get", "rolebindings", "-n", "notebooks"]).contains("workspace-role-binding-admin"));
    up.says("Workspaces: 3 Ready");
    // Something of the sample is not wanted.
    user.kubectl(&["delete", "workspace", "borealis", "--timeout=20s"]);
    eventually("its namespace goes, too", || user.try_kubectl(&["get", "namespace", "borealis"]).code == Some(1));
    let before = user.kubectl(&["get", "workspaces", "-o", "jsonpath={.items[*].metadata.uid}"]);
    let kubeconfig = fs::read(user.data("kubeconfig")).unwrap();
    let said = up.stop();
    assert!(said.contains("Stopped. First view after") && said.contains("bivouac up"), "{said}");

    let mut again = user.up(&[]);
    let second = again.ready();
    println!("second start ready after {second:.2?}");
    assert!(second < Duration::from_secs(5));
    assert_eq!(user.kubectl(&["get", "workspaces", "-o", "jsonpath={.items[*].metadata.uid}"]), before);
    assert_eq!(user.kubectl(&["get", "workspaces", "-o", "name"]).matches("borealis").count(), 0, "it came back");
    assert_eq!(fs::read(user.data("kubeconfig")).unwrap(), kubeconfig, "same port, same token");
    again.stop();
}

#[test]
fn only_its_owner_gets_in() {
    let user = User::new();
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    assert!(user.kubectl(&["get", "workspaces"]).is_empty(), "--empty pitches nothing");
    for file in ["identity.json", "kubeconfig", "lock", "state.json", "log"] {
        let mode = fs::metadata(user.data(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
    let wrong = user.try_kubectl(&["get", "namespaces", "--token", "wrong"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("Unauthorized"), "{}", wrong.err);
    let address = fs::read_to_string(user.data("kubeconfig")).unwrap();
    let address = address.split('"').find(|word| word.starts_with("https://")).unwrap();
    let nobody = user.shell(&format!("curl --silent --insecure {address}/api/v1/namespaces"));
    assert!(nobody.out.contains(r#"User \"system:anonymous\" cannot list"#), "{}{}", nobody.out, nobody.err);
    up.stop();
    // It was left out at the first start, and so it stays.
    let mut up = user.up(&[]);
    up.ready();
    assert!(user.kubectl(&["get", "workspaces"]).is_empty());
    up.stop();
}

#[test]
fn a_killed_process_loses_nothing() {
    let user = User::new();
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    user.kubectl(&["create", "configmap", "kept", "--from-literal=a=b"]);
    drop(up);
    assert_eq!(user.bivouac(&["status"]).code, Some(3));
    let mut up = user.up(&[]);
    up.ready();
    user.kubectl(&["get", "configmap", "kept"]);
    up.stop();
}
