// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster` against `bivouac up`: simulated nodes, real commands.

use serde_json::Value;

use crate::user::{Said, User, eventually};

/// What the work does, and nothing that takes time before it.
const SCRIPT: [&str; 4] = [
    "--pod-annotation=simulator.bivouac.dev/boot=0s",
    "--pod-annotation=simulator.bivouac.dev/pull=0s",
    "--pod-annotation=simulator.bivouac.dev/run=2s",
    "--pod-annotation=simulator.bivouac.dev/logs=hello world",
];

impl User {
    fn minicluster(&self, args: &[&str]) -> Said {
        let kubeconfig = self.data("kubeconfig");
        let (verb, rest) = args.split_first().unwrap();
        self.bivouac(&[&["minicluster", verb, "--kubeconfig", kubeconfig.to_str().unwrap()], rest].concat())
    }

    fn submit(&self, args: &[&str]) -> Said {
        self.minicluster(&[&["submit", "--image", "app"], &SCRIPT[..], args, &["--", "hostname"]].concat())
    }

    fn list(&self) -> Vec<Value> {
        serde_json::from_str(&self.minicluster(&["list", "-o", "json"]).out).unwrap()
    }
}

#[test]
fn work_runs_to_its_end_and_its_exit_code_comes_through() {
    let user = User::new();
    let mut up = user.up(&["--port", "0"]);
    up.ready();
    let none = user.minicluster(&["list"]);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "There is no MiniCluster in the namespace default.\n"));

    let well = user.submit(&["--size", "2", "--name", "well"]);
    assert_eq!((well.code, well.out.as_str()), (Some(0), "hello world\n"), "{}", well.err);
    assert!(well.err.contains("well: made in the namespace default, with 2 brokers"), "{}", well.err);
    let failed = user.submit(&["--name", "failed", "--pod-annotation=simulator.bivouac.dev/exit-code=3"]);
    assert_eq!((failed.code, failed.out.as_str()), (Some(3), "hello world\n"), "{}", failed.err);
    assert!(failed.err.contains("failed: the lead broker ended with code 3"), "{}", failed.err);
    let silent = user.submit(&["--name", "silent", "--wait", "--pod-annotation=simulator.bivouac.dev/exit-code=5"]);
    assert_eq!((silent.code, silent.out.as_str()), (Some(5), ""), "{}", silent.err);

    let rows = user.list();
    let state = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["size"].clone(), row["state"].clone(), row["exitCode"].clone())
    };
    assert_eq!(state("well"), (2.into(), "Completed".into(), 0.into()));
    assert_eq!(state("failed"), (1.into(), "WorkFailed".into(), 3.into()));
    let table = user.minicluster(&["list", "-A"]).out;
    assert!(table.starts_with("NAMESPACE  NAME") && table.contains("the work ended well"), "{table}");

    assert_eq!(user.minicluster(&["logs", "well"]).out, "hello world\n");
    // The lead decides for all, and the others are gone then.
    let other = user.minicluster(&["logs", "well", "--rank", "1"]);
    other.fails(&["well has no pod of rank 1 now: the work ended well"]);
    user.minicluster(&["logs", "well", "--rank", "2"]).fails(&["well has 2 brokers; the last rank is 1"]);
    assert_eq!(user.minicluster(&["logs", "-f", "well"]).out, "hello world\n");

    let gone = user.minicluster(&["delete", "--wait", "well", "failed"]);
    assert_eq!(gone.code, Some(0), "{}", gone.err);
    assert!(gone.err.ends_with("failed: gone\n"), "{}", gone.err);
    assert_eq!(user.kubectl(&["get", "pods", "-l", "job-name in (well, failed)", "-o", "name"]), "");
    user.minicluster(&["delete", "well", "silent"]).fails(&["no MiniCluster well", "silent: is being deleted"]);
    eventually("the list is empty", || user.list().is_empty());
    up.stop();
}

#[test]
fn a_cluster_can_be_left_alone_and_found_again() {
    let user = User::new();
    let mut up = user.up(&["--port", "0"]);
    up.ready();
    let long = ["--pod-annotation=simulator.bivouac.dev/run=1h"];
    let left = user.submit(&[&["--detach"], &long[..]].concat());
    assert_eq!(left.code, Some(0), "{}", left.err);
    let name = left.out.trim();
    assert!(name.starts_with("hostname-") && left.err.contains(&format!("delete {name} -n default")), "{}", left.err);
    eventually("it runs", || user.list()[0]["state"] == "BrokersReady");
    let attach = user.minicluster(&["attach", name, "--print"]);
    let words =
        ["kubectl exec -n default --kubeconfig ", "-it ", &format!("-c {name} -- bash /mnt/flux/flux-connect.sh\n")];
    assert!(words.iter().all(|word| attach.out.contains(*word)), "{}{}", attach.out, attach.err);
    user.minicluster(&["attach", name]).fails(&["a shell needs a terminal", "kubectl exec"]);

    // Connecting takes longer than ending, so nobody is left to read.
    let piped = format!("bivouac minicluster logs {name} --kubeconfig {} | true", user.data("kubeconfig").display());
    assert_eq!(user.shell(&piped).err, "", "a closed pipe is no trouble");

    // Ctrl-C, once the output is there.
    let kubeconfig = user.data("kubeconfig");
    let script: Vec<String> = SCRIPT.iter().chain(&long).map(|word| format!("'{word}'")).collect();
    let line = format!(
        "export KUBECONFIG={}; timeout --preserve-status -s INT 12 bivouac minicluster submit --image app --name stays {} -- top",
        kubeconfig.display(),
        script.join(" ")
    );
    let stopped = user.shell(&line);
    assert_eq!((stopped.code, stopped.out.as_str()), (Some(130), "hello world\n"), "{}", stopped.err);
    assert!(
        stopped.err.contains("stays goes on without you") && stopped.err.contains("delete stays"),
        "{}",
        stopped.err
    );
    assert_eq!(user.list().len(), 2);

    // Held back for want of room, with the reason; and deleted while somebody waits for it.
    let big = std::thread::scope(|scope| {
        let big = scope.spawn(|| user.submit(&["--name", "big", "--gpu", "99"]));
        eventually("it is held back", || user.list().iter().any(|row| row["state"] == "WaitingForRoom"));
        assert_eq!(user.minicluster(&["delete", "big"]).code, Some(0));
        big.join().unwrap()
    });
    big.fails(&["big: the Job is held back: ", "nvidia.com/gpu", "big was deleted"]);
    up.stop();
}

#[test]
fn trouble_is_told_with_a_way_out() {
    let user = User::new();
    user.bivouac(&["minicluster", "list"]).fails(&["no cluster is configured", "KUBECONFIG"]);
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    // Now there is one, though nobody said so.
    let hint = format!("export KUBECONFIG={}", "~/.local/share/bivouac/kubeconfig");
    user.bivouac(&["minicluster", "list"]).fails(&["no cluster is configured", &hint]);

    let dry = user.submit(&["--dry-run=client", "--name", "twice", "-n", "lab"]);
    assert!(
        dry.code == Some(0) && dry.out.contains("kind: MiniCluster\n") && dry.out.contains("namespace: lab\n"),
        "{}",
        dry.out
    );
    assert!(user.list().is_empty(), "a dry run makes nothing");
    assert_eq!(user.submit(&["--detach", "--name", "twice"]).code, Some(0));
    user.submit(&["--detach", "--name", "twice"]).fails(&["the name is taken", "delete twice"]);
    user.submit(&["--name", "Twice"]).fails(&["the API server refused it"]);
    user.submit(&["--name", "lost", "-n", "nowhere"]).fails(&["no namespace nowhere", "kubectl create namespace"]);
    user.minicluster(&["logs", "nobody"]).fails(&["no MiniCluster nobody in the namespace default"]);
    user.minicluster(&["logs", "twice"]).fails(&["twice has no pod of rank 0 now: "]);

    // Without a token one is nobody, and nobody may do anything.
    let stranger = user.home().join("stranger");
    std::fs::copy(user.data("kubeconfig"), &stranger).unwrap();
    let stranger = stranger.to_str().unwrap();
    let all = user.shell(&format!("kubectl --kubeconfig {stranger} config unset users"));
    assert_eq!(all.code, Some(0), "{}", all.err);
    let list = ["minicluster", "list", "--kubeconfig", stranger];
    user.shell(&format!("kubectl --kubeconfig {stranger} config set-credentials bivouac --username= --password="));
    user.bivouac(&list).fails(&["you may not do this", "system:anonymous"]);

    user.kubectl(&["delete", "crd", "miniclusters.flux-framework.org"]);
    eventually("the kind is gone", || user.minicluster(&["list"]).err.contains("bivouac crds | kubectl apply"));
    up.stop();
    user.minicluster(&["list"]).fails(&["no answer from the Kubernetes cluster at https://127.0.0.1:"]);
}
