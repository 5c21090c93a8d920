// SPDX-License-Identifier: Apache-2.0
//! Whole clusters as processes of this machine: every rank runs the generated scripts under bash with an address of its
//! own, and brokers that really meet.

use std::{
    fs::{self, File},
    os::unix::{fs::symlink, process::CommandExt},
    process::{Child, Command},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use bivouac_miniclusters::{certificate::Certificate, script::quote::quote};

use crate::{
    flux,
    run::{Pod, until},
    stub,
};

/// A container with this command; JSON is a part of YAML.
fn runs(command: &str) -> String {
    format!("command: {}", serde_json::to_string(command).unwrap())
}

/// A program that ends when the lead says of a rank what it is waiting for.
fn waiting_for(what: &str) -> String {
    format!("bash -c \"until flux resource list | grep -q '{what}'; do sleep 0.1; done; echo seen\"")
}

struct Crew {
    ranks: Vec<Rank>,
}

/// A pod and the processes of it that run now.
struct Rank {
    pod: Pod,
    name: String,
    child: Option<Child>,
}

impl Crew {
    /// `more` is for the spec, `container` for its only container.
    fn new(size: usize, more: &str, container: &str) -> Self {
        let yaml = format!("size: {size}\n{more}\ncontainers: [{{{container}}}]");
        let certificate = Certificate::new([7; 32], "flux-sample-0");
        let names: Vec<_> = (0..size).map(|rank| format!("flux-sample-{rank}")).collect();
        let hosts = addresses(&names);
        let rank = |name: String| {
            let pod = Pod::new(&yaml);
            let flux = pod.folder.path().join("bin/flux");
            fs::remove_file(&flux).unwrap();
            symlink(stub::program(), &flux).unwrap();
            fs::write(pod.folder.path().join("curve.cert"), certificate.as_text()).unwrap();
            fs::write(pod.folder.path().join("hosts"), &hosts).unwrap();
            Rank { pod, name, child: None }
        };
        Self { ranks: names.into_iter().map(rank).collect() }
    }

    fn started(size: usize, command: &str) -> Self {
        let mut crew = Self::new(size, "", &runs(command));
        // The lead comes last: the others wait for it.
        crew.ranks.iter_mut().rev().for_each(Rank::start);
        crew
    }

    /// The codes with which all ranks end.
    fn end(mut self) -> Vec<Option<i32>> {
        self.ranks.iter_mut().map(Rank::end).collect()
    }
}

impl Rank {
    fn start(&mut self) {
        let file = |name: &str| File::options().create(true).append(true).open(self.pod.folder.path().join(name));
        let mut bash = self.pod.command(&self.pod.script, &self.name);
        bash.env("FLUX_HOSTS", self.pod.folder.path().join("hosts")).process_group(0);
        self.child = Some(bash.stdout(file("out").unwrap()).stderr(file("err").unwrap()).spawn().unwrap());
    }

    fn end(&mut self) -> Option<i32> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                self.child = None;
                return status.code();
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{} never ends: {}", self.name, self.pod.read("err"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// As when its machine is gone: nobody of the pod can say a word.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            assert!(kill(&["-KILL", "--", &format!("-{}", child.id())]));
            child.wait().unwrap();
        }
    }

    /// The broker alone: the script of the pod lives on.
    fn kill_broker(&self) {
        let script = self.child.as_ref().unwrap().id();
        let children = fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
        assert!(kill(&["-KILL", children.trim()]));
    }

    fn says(&self, file: &str, text: &str) -> bool {
        self.pod.read(file).contains(text)
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kill(arguments: &[&str]) -> bool {
    Command::new("kill").args(arguments).status().unwrap().success()
}

/// The lines of a hosts file: for every rank an address that no other cluster of a test has.
fn addresses(names: &[String]) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let (second, third) = (128 + process % 100, (process / 100 + count * 7) % 250);
    let line = |(rank, name): (usize, &String)| {
        format!("127.{second}.{third}.{} {name}.flux-sample.default.svc.cluster.local\n", rank + 1)
    };
    names.iter().enumerate().map(line).collect()
}

#[test]
fn ranks_meet_and_the_program_runs_on_the_lead() {
    for size in [1, 4, 16] {
        let mut crew = Crew::started(size, "bash -c 'echo $HOSTNAME; flux resource list'");
        let codes: Vec<_> = crew.ranks.iter_mut().map(Rank::end).collect();
        assert_eq!(codes, vec![Some(0); size]);
        let (lead, others) = crew.ranks.split_first().unwrap();
        let out = lead.pod.read("out");
        assert!(out.contains("\nflux-sample-0\n0 flux-sample-0 up\n"), "{out}");
        for (rank, other) in (1..).zip(others) {
            assert!(out.contains(&format!("\n{rank} flux-sample-{rank} up 127.")), "{out}");
            assert!(other.says("err", "the lead is there") && !other.says("out", "up"), "{}", other.pod.read("err"));
        }
    }
}

#[test]
fn the_code_of_the_program_is_the_code_of_the_lead_only() {
    let codes = Crew::started(4, "sh -c 'exit 3'").end();
    assert_eq!(codes, [Some(3), Some(0), Some(0), Some(0)]);
}

#[test]
fn a_killed_rank_is_noticed() {
    let mut crew = Crew::started(4, &waiting_for("2 flux-sample-2 down"));
    until(|| crew.ranks[0].says("err", "4 of 4 ranks are there"));
    crew.ranks[2].kill();
    let codes = [0, 1, 3].map(|rank| crew.ranks[rank].end());
    assert_eq!(codes, [Some(0); 3]);
    assert!(crew.ranks[0].says("out", "seen") && crew.ranks[0].says("err", "flux-sample-2 is gone"));
}

#[test]
fn a_broker_that_falls_comes_back() {
    let command = format!("{} && {}", waiting_for("flux-sample-1 down"), waiting_for("flux-sample-1 up"));
    let crew = Crew::started(2, &format!("bash -c {}", quote(&command)));
    until(|| crew.ranks[0].says("err", "2 of 2 ranks are there"));
    let socket = crew.ranks[1].pod.folder.path().join("mnt/config/run/flux/local");
    assert!(socket.exists());
    crew.ranks[1].kill_broker();
    until(|| crew.ranks[1].says("out", "the broker ended with code 137 and is started again"));
    assert!(!socket.exists(), "a broker that is not there is not ready");
    until(|| socket.exists());
    assert_eq!(crew.end(), [Some(0), Some(0)]);
}

#[test]
fn workers_stay_when_the_lead_is_replaced() {
    let mut crew = Crew::started(4, "sleep 60");
    until(|| crew.ranks[0].says("err", "4 of 4 ranks are there"));
    crew.ranks[0].kill();
    until(|| crew.ranks[1..].iter().all(|rank| rank.says("err", "the lead is gone")));
    // The pod that the Job makes in its place has the same name, and its work may be shorter.
    crew.ranks[0].pod.script =
        crew.ranks[0].pod.script.replace("command='sleep 60'", "command='sh -c '\\''exit 5'\\'''");
    crew.ranks[0].start();
    assert_eq!(crew.end(), [Some(5), Some(0), Some(0), Some(0)]);
}

#[test]
fn work_starts_with_the_quorum() {
    let mut crew = Crew::new(4, "minSize: 2", &runs("flux resource list"));
    crew.ranks[0].start();
    crew.ranks[3].start();
    assert_eq!([0, 3].map(|rank| crew.ranks[rank].end()), [Some(0); 2]);
    assert!(crew.ranks[0].says("out", "1 flux-sample-1 down\n2 flux-sample-2 down\n3 flux-sample-3 up 127."));
}

#[test]
fn a_stranger_is_not_let_in() {
    let mut crew = Crew::new(2, "", &runs("true"));
    let stranger = Certificate::new([8; 32], "flux-sample-0");
    let file = crew.ranks[1].pod.folder.path().join("curve.cert");
    fs::write(&file, stranger.as_text()).unwrap();
    crew.ranks.iter_mut().for_each(Rank::start);
    until(|| crew.ranks[0].says("err", "flux-sample-1 has another certificate"));
    assert!(crew.ranks[0].child.as_mut().unwrap().try_wait().unwrap().is_none(), "the work waits for its ranks");
}

#[test]
fn a_batch_ends_with_the_worst_of_its_jobs() {
    for (lines, code) in [("true\ntrue", 0), ("true\nsh -c 'exit 4'\ntrue", 4)] {
        let mut crew = Crew::new(2, "", &format!("batch: true, {}", runs(lines)));
        crew.ranks.iter_mut().for_each(Rank::start);
        assert_eq!(crew.end(), [Some(code), Some(0)]);
    }
}

#[test]
fn the_stand_in_reads_host_lists() {
    assert_eq!(flux::expand("a-[0-2],b,c-[7]"), ["a-0", "a-1", "a-2", "b", "c-7"]);
}
