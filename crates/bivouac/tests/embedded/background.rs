// SPDX-License-Identifier: Apache-2.0
//! `--detach`, `status`, `down`, `reset`.

use std::{
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use crate::user::User;

/// Stops what a failed test has left in the background.
struct Tidy<'a>(&'a User);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        self.0.bivouac(&["down"]);
    }
}

#[test]
fn a_life_in_the_background() {
    let user = User::new();
    let before = user.bivouac(&["status"]);
    assert_eq!((before.code, before.out.lines().next()), (Some(3), Some("not running")));
    let _tidy = Tidy(&user);
    let said = user.bivouac(&["up", "--detach", "--port", "0"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("runs in the background at https://127.0.0.1:"), "{}", said.out);
    assert!(user.kubectl(&["get", "workspaces"]).contains("aurora"));
    // Every command that was printed works.
    for line in said.out.lines().filter_map(|line| line.split_once("  ")).map(|(_, rest)| rest.trim()) {
        if line.starts_with("kubectl ") || line.contains("--simulated") || line.ends_with("status") {
            assert_eq!(user.shell(line).code, Some(0), "{line}");
        }
    }

    let json = user.bivouac(&["status", "-o", "json"]);
    assert_eq!(json.code, Some(0));
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json["running"].as_bool(), json["ready"].as_bool()), (Some(true), Some(true)), "{json}");
    assert_eq!(json["objects"]["Workspace"]["Ready"], 2, "{json}");
    let table = user.bivouac(&["status"]).out;
    assert!(table.contains("running    since") && table.contains("Workspaces               2 Ready"), "{table}");
    user.bivouac(&["up", "--detach"]).fails(&["runs already", &json["pid"].to_string()]);

    let down = user.bivouac(&["down"]);
    assert!(down.code == Some(0) && down.out.contains("The state is kept"), "{}{}", down.out, down.err);
    assert_eq!(user.bivouac(&["status", "-o", "json"]).code, Some(3));
    assert_eq!(user.bivouac(&["down"]).out, "Nothing was running.\n");

    user.bivouac(&["reset"]).fails(&["nobody is there to ask", "reset --yes"]);
    assert!(user.data("state.json").exists());
    assert_eq!(user.bivouac(&["reset", "--yes"]).code, Some(0));
    assert!(!user.data("").exists());
    assert!(user.bivouac(&["reset", "--yes"]).out.contains("There is nothing"));
}

#[test]
fn three_simulated_clouds_sell_gpus_while_it_runs() {
    let user = User::new();
    let offers = ["offers", "--simulated", "--limit", "0", "-o", "json"];
    user.bivouac(&offers).fails(&["bivouac up", "does not run"]);
    let _tidy = Tidy(&user);
    assert_eq!(user.bivouac(&["up", "--detach", "--port", "0", "--empty"]).code, Some(0));
    let said = user.bivouac(&offers);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let clouds: Vec<&str> = json["clouds"].as_array().unwrap().iter().filter_map(|one| one["cloud"].as_str()).collect();
    assert_eq!(clouds, ["lambda", "runpod", "verda"], "{json}");
    let sellers = json["offers"].as_array().unwrap().iter().filter_map(|one| one["cloud"].as_str());
    assert_eq!(sellers.collect::<std::collections::BTreeSet<_>>().len(), 3, "{json}");
    let check = user.bivouac(&["clouds", "check", "--simulated"]);
    assert_eq!((check.code, check.out.matches(" yes ").count()), (Some(0), 6), "{}{}", check.out, check.err);
    // Their keys are nobody else's business.
    let mode = std::fs::metadata(user.data("clouds.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    let both = user.bivouac(&["offers", "--simulated", "--credentials", "x"]);
    assert!(both.code == Some(2) && both.err.contains("cannot be used with"), "{}", both.err);
}

#[test]
fn the_credentials_of_a_class_are_used() {
    let user = User::new();
    let _tidy = Tidy(&user);
    assert_eq!(user.bivouac(&["up", "--detach", "--port", "0", "--empty"]).code, Some(0));
    let clouds: serde_json::Value = serde_json::from_slice(&std::fs::read(user.data("clouds.json")).unwrap()).unwrap();
    let key = clouds["lambda"]["key"].as_str().unwrap();
    let manifest = format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: keys, namespace: default}}, stringData: {{lambda: {key}}}}}\n---\n\
         {{apiVersion: tgp.io/v1, kind: GPUNodeClass, metadata: {{name: cheap}}, spec: {{providers: [\
         {{name: lambdalabs, credentialsRef: {{name: keys, key: lambda, namespace: default}}}}, \
         {{name: vultr, credentialsRef: {{name: keys, key: vultr}}}}, \
         {{name: runpod, enabled: false, credentialsRef: {{name: keys, key: runpod}}}}]}}}}\n"
    );
    std::fs::write(user.home().join("class.yaml"), manifest).unwrap();
    user.kubectl(&["apply", "-f", user.home().join("class.yaml").to_str().unwrap()]);
    let kubeconfig = user.data("kubeconfig");
    let check = format!(
        "BIVOUAC_LAMBDA_URL={} {} clouds check --class cheap --kubeconfig {}",
        clouds["lambda"]["url"].as_str().unwrap(),
        env!("CARGO_BIN_EXE_bivouac"),
        kubeconfig.display()
    );
    let told = user.shell(&check);
    assert_eq!(told.code, Some(1), "{}{}", told.out, told.err);
    let lines: Vec<&str> = told.out.lines().collect();
    assert_eq!(lines.len(), 3, "one that is switched off is not asked: {}", told.out);
    assert!(lines[1].starts_with("lambda  yes      yes"), "{}", told.out);
    let lack = "the Secret bivouac-system/keys cannot be read: secrets \"keys\" not found";
    assert!(lines[2].starts_with("vultr   ?        ?") && lines[2].contains(lack), "{}", told.out);
    let unknown = ["offers", "--class", "dear", "--kubeconfig", kubeconfig.to_str().unwrap()];
    user.bivouac(&unknown).fails(&["GPUNodeClass dear cannot be read", "not found"]);
}

#[test]
fn trouble_in_the_background_is_told_in_front() {
    let user = User::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    user.bivouac(&["up", "--detach", "--port", &port]).fails(&["another program listens on", &port]);
    assert_eq!(user.bivouac(&["status"]).code, Some(3));
}

#[test]
fn a_process_that_is_not_ours_is_never_stopped() {
    let user = User::new();
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    drop(up);
    // The words of the killed one are still in the lock; its number now belongs to somebody else.
    let mut stranger = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
    let lock = std::fs::read_to_string(user.data("lock")).unwrap();
    let mut words: serde_json::Value = serde_json::from_str(&lock).unwrap();
    words["pid"] = stranger.id().into();
    std::fs::write(user.data("lock"), words.to_string()).unwrap();
    assert_eq!(user.bivouac(&["down"]).out, "Nothing was running.\n");
    assert_eq!(user.bivouac(&["status"]).code, Some(3));
    assert!(stranger.try_wait().unwrap().is_none(), "it was stopped");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
