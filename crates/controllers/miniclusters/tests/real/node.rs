// SPDX-License-Identifier: Apache-2.0
//! A node with a real kubelet and containerd, in namespaces of its own: the machine around it stays as it is, and one
//! kill ends it all.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, symlink},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use bivouac_testenv::{Component, TestCluster, components, debian};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{names, stub};

pub const IMAGE: &str = "bivouac.test/flux:1";
pub const NAME: &str = "node";
const PACKAGES: [&str; 6] =
    ["bash-static", "busybox-static", "containerd", "containernetworking-plugins", "libseccomp2", "runc"];
const CGROUPS: &str = "/sys/fs/cgroup";
/// Pods are in this network, and at its first address all names can be asked for.
const POD_NETWORK: &str = "10.244.0.0/24";
const POD_GATEWAY: &str = "10.244.0.1";

pub struct Node {
    machine: Child,
    folder: TempDir,
    group: String,
}

/// Why this machine cannot have such a node.
pub fn obstacle() -> Option<String> {
    let user = fs::metadata("/proc/self").unwrap().uid();
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let mut spaces = Command::new("unshare");
    spaces.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c"]);
    spaces.arg("mount -t tmpfs tmpfs /run && ip link add one type veth peer name two");
    match () {
        () if user != 0 => Some("only root can make namespaces and mounts".to_owned()),
        () if !has("apt-get") => Some("containerd and runc come from Debian, and there is no apt-get".to_owned()),
        () if !["ip", "setpriv"].into_iter().all(has) => Some("ip or setpriv is absent".to_owned()),
        () if !spaces.output().is_ok_and(|tried| tried.status.success()) => {
            Some("the kernel gives no namespaces with mounts and links".to_owned())
        }
        () => debian::unpack(&PACKAGES).err().map(|error| format!("Debian's packages cannot be had: {error:#}")),
    }
}

impl Node {
    pub fn start(cluster: &TestCluster) -> Self {
        let root = debian::unpack(&PACKAGES).unwrap();
        let paths = components::ensure(&[Component::Kubelet]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // The process is alone with its number, so its node is alone with its group and its addresses.
        let process = std::process::id();
        let group = format!("bivouac-{process}");
        let [_, outside, inside, _] = addresses(process);
        prepare(folder.path(), &root, &group, inside);
        image(folder.path(), &root);
        fs::copy(cluster.kubeconfig(), folder.path().join("kubeconfig")).unwrap();
        for hierarchy in hierarchies() {
            // A killed test leaves its groups, empty.
            fs::create_dir_all(hierarchy.join(&group)).unwrap();
        }
        let mut machine = Command::new("setpriv");
        machine.args(["--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
        machine.args(["--mount-proc", "bash"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/node.sh"));
        machine.arg(folder.path()).arg(&root).arg(paths.get(Component::Kubelet).unwrap());
        machine.args([&inside.to_string(), NAME]).env("LD_LIBRARY_PATH", debian::libraries(&root));
        let machine = machine.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let node = Self { machine, folder, group };
        node.serve(cluster);
        let link = format!("bvc{process}");
        let number = node.machine.id().to_string();
        run("ip", &["link", "add", &link, "type", "veth", "peer", "name", "node0", "netns", &number]);
        run("ip", &["addr", "add", &format!("{outside}/30"), "dev", &link]);
        run("ip", &["link", "set", &link, "up"]);
        node
    }

    /// The API server and the names, as the node and its pods see them.
    fn serve(&self, cluster: &TestCluster) {
        let port = cluster.server().rsplit(':').next().unwrap().parse().unwrap();
        let (api, asked) = self.within(move || {
            (TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)), UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 53)))
        });
        let (api, asked) = (api.unwrap(), asked.unwrap());
        api.set_nonblocking(true).unwrap();
        asked.set_nonblocking(true).unwrap();
        let api = tokio::net::TcpListener::from_std(api).unwrap();
        tokio::spawn(async move {
            while let Ok((mut from, _)) = api.accept().await {
                tokio::spawn(async move {
                    let mut to = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                    tokio::io::copy_bidirectional(&mut from, &mut to).await
                });
            }
        });
        tokio::spawn(names::answer(tokio::net::UdpSocket::from_std(asked).unwrap(), cluster.client()));
    }

    /// Sockets belong to the network in which they were made, whoever uses them.
    fn within<T: Send + 'static>(&self, make: impl FnOnce() -> T + Send + 'static) -> T {
        let network = |process: &str| fs::metadata(format!("/proc/{process}/ns/net")).unwrap().ino();
        let number = self.machine.id().to_string();
        while network(&number) == network("self") {
            thread::sleep(Duration::from_millis(5));
        }
        let network = fs::File::open(format!("/proc/{number}/ns/net")).unwrap();
        let thread = thread::spawn(move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            make()
        });
        thread.join().unwrap()
    }

    /// The end of what its programs said, for the one who has to find out why a test fails.
    pub fn logs(&self) -> String {
        let end = |name: &str| {
            let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(30).collect();
            lines.into_iter().rev().fold(format!("== {name}\n"), |all, line| all + line + "\n")
        };
        end("containerd.log") + &end("kubelet.log")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.machine.kill();
        let _ = self.machine.wait();
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        // The last processes may take a moment to go.
        for _ in 0..100 {
            if hierarchies().into_iter().all(|hierarchy| remove(&hierarchy.join(&self.group))) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        eprintln!("control groups {} are left", self.group);
    }
}

/// A control group goes when it has no processes and no groups within.
fn remove(group: &Path) -> bool {
    for path in fs::read_dir(group).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let _ = path.is_dir() && remove(&path);
    }
    fs::remove_dir(group).map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true)
}

/// One in version 2, one for each controller in version 1.
fn hierarchies() -> Vec<PathBuf> {
    if Path::new(CGROUPS).join("cgroup.controllers").exists() {
        return vec![CGROUPS.into()];
    }
    let all = fs::read_dir(CGROUPS).unwrap().map(|entry| entry.unwrap());
    all.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path()).collect()
}

/// Four addresses in the range for tests of networks: one for us and one for the node.
fn addresses(process: u32) -> [Ipv4Addr; 4] {
    let base = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + process % (1 << 15) * 4;
    [0, 1, 2, 3].map(|offset| Ipv4Addr::from(base + offset))
}

fn prepare(folder: &Path, root: &Path, group: &str, address: Ipv4Addr) {
    let path = |name: &str| folder.join(name).display().to_string();
    let socket = path("containerd.sock");
    let plugin = "[plugins.\"io.containerd.grpc.v1.cri\"";
    let containerd = format!(
        "version = 2\nroot = {root_folder:?}\nstate = {state:?}\n[grpc]\naddress = {socket:?}\n\
         {plugin}]\nsandbox_image = {IMAGE:?}\nrestrict_oom_score_adj = true\ndisable_apparmor = true\n\
         {plugin}.containerd]\nsnapshotter = \"native\"\n\
         {plugin}.containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n\
         {plugin}.cni]\nbin_dir = {plugins:?}\nconf_dir = {networks:?}\n",
        root_folder = path("containerd"),
        state = path("state"),
        plugins = root.join("usr/lib/cni"),
        networks = path("networks"),
    );
    fs::write(folder.join("containerd.toml"), containerd).unwrap();
    let bridge = json!({
        "type": "bridge", "bridge": "pods0", "isGateway": true,
        "ipam": {
            "type": "host-local", "dataDir": path("leases"), "ranges": [[{"subnet": POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    let network = json!({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]});
    fs::create_dir(folder.join("networks")).unwrap();
    fs::write(folder.join("networks/pods.conflist"), network.to_string()).unwrap();
    let kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": address, "containerRuntimeEndpoint": format!("unix://{socket}"),
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{group}"), "failCgroupV1": false,
        "clusterDNS": [POD_GATEWAY], "clusterDomain": "cluster.local", "resolvConf": "",
        "enforceNodeAllocatable": ["none"], "makeIPTablesUtilChains": false, "failSwapOn": false,
        "podLogsDir": path("logs"), "volumePluginDir": path("plugins"),
        // How full this machine is must not matter.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
    });
    fs::write(folder.join("kubelet.json"), kubelet.to_string()).unwrap();
}

/// An image with bash, small programs for everything else, and the stand-in for Flux. By itself it does nothing, and
/// that is all that the first container of a pod has to do.
fn image(folder: &Path, root: &Path) {
    let content = folder.join("image");
    fs::create_dir_all(content.join("bin")).unwrap();
    fs::create_dir(content.join("tmp")).unwrap();
    let busybox = root.join("bin/busybox");
    let small = Command::new(&busybox).arg("--list").output().unwrap();
    for name in String::from_utf8(small.stdout).unwrap().lines().filter(|name| *name != "busybox") {
        symlink("busybox", content.join("bin").join(name)).unwrap();
    }
    for (from, to) in [(root.join("bin/bash-static"), "bash"), (stub::program(), "flux"), (busybox, "busybox")] {
        let _ = fs::remove_file(content.join("bin").join(to));
        fs::copy(from, content.join("bin").join(to)).unwrap();
    }
    let file = |name: &str| folder.join(name).display().to_string();
    run("tar", &["-C", &file("image"), "-cf", &file("layer.tar"), "."]);
    let sum = Command::new("sha256sum").arg(file("layer.tar")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let config = json!({
        "os": "linux", "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "config": {"Entrypoint": ["/bin/sleep", "infinity"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sum.split(' ').next().unwrap())]},
    });
    let manifest = json!([{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]);
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    let parts = ["manifest.json", "config.json", "layer.tar"];
    run("tar", &[&["-C", &file("."), "-cf", &file("image.tar")], &parts[..]].concat());
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
