// SPDX-License-Identifier: Apache-2.0
//! An embedded server over HTTP, and real programs beside it.

use std::{path::PathBuf, process::Output, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bivouac_apiserver::{ApiServer, Settings, User, serve};
use bivouac_testenv::components::{self, Component, Paths};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep},
};

const TOKEN: &str = "administrator";
const PATIENCE: Duration = Duration::from_secs(90);

pub struct Plane {
    pub paths: Paths,
    dir: TempDir,
    children: Vec<Child>,
    collect: bool,
}

impl Plane {
    /// A server with RBAC on. `collect`: its own garbage collector runs, because no real one does.
    pub async fn start(collect: bool) -> Self {
        let paths = tokio::task::spawn_blocking(|| components::ensure(&Component::USUAL)).await.unwrap().unwrap();
        let tokens = [(TOKEN.to_owned(), User::admin())].into();
        let settings = Settings { trusts_all: false, tokens, ..Settings::default() };
        let server = ApiServer::start(settings).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        if collect {
            let server = server.clone();
            tokio::spawn(async move { server.collect().await });
        }
        // Clients of Kubernetes show a token over TLS only.
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        tokio::spawn(serve(server, listener, Some(Arc::new(tls)), std::future::pending()));
        let authority = BASE64_STANDARD.encode(made.cert.pem());
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = format!(
            "{{apiVersion: v1, kind: Config, current-context: a,
              clusters: [{{name: a, cluster: {{server: \"https://{address}\", certificate-authority-data: {authority}}}}}],
              contexts: [{{name: a, context: {{cluster: a, user: a}}}}],
              users: [{{name: a, user: {{token: {TOKEN}}}}}]}}"
        );
        std::fs::write(dir.path().join("kubeconfig"), kubeconfig).unwrap();
        Self { paths, dir, children: Vec::new(), collect }
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// A command with the server's address and a home of its own.
    pub fn command(&self, component: Component, args: &[&str]) -> Command {
        let mut command = Command::new(self.paths.get(component).unwrap());
        command.args(args).env("KUBECONFIG", self.kubeconfig()).env("HOME", self.dir.path()).kill_on_drop(true);
        command
    }

    pub async fn try_kubectl(&self, args: &[&str]) -> Output {
        self.command(Component::Kubectl, args).output().await.unwrap()
    }

    /// What kubectl prints; it must succeed.
    pub async fn kubectl(&self, args: &[&str]) -> String {
        let output = self.try_kubectl(args).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {args:?}: {out}{err}");
        format!("{out}{err}")
    }

    pub async fn apply(&self, manifest: &str) -> String {
        let file = self.file("manifest.yaml", manifest);
        self.kubectl(&["apply", "-f", &file.display().to_string()]).await
    }

    /// Starts a program that runs until the test ends. Its output is a file in the home of the test.
    pub fn run(&mut self, component: Component, args: &[&str]) {
        let log = std::fs::File::create(self.dir.path().join(format!("{}.log", component.name()))).unwrap();
        let mut command = self.command(component, args);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(command.spawn().unwrap());
    }

    /// Waits until kubectl prints something that satisfies; says what it printed last, and what the programs complained
    /// about, if it never does.
    pub async fn until(&self, what: &str, args: &[&str], satisfied: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.try_kubectl(args).await;
            let text =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            if satisfied(&text) {
                return;
            }
            assert!(Instant::now() < deadline, "not in time: {what}: {text}\n{}", self.complaints());
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// The last errors in the logs.
    fn complaints(&self) -> String {
        let mut all = String::new();
        for entry in std::fs::read_dir(self.dir.path()).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "log") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let errors: Vec<&str> = text.lines().filter(|line| line.starts_with(['E', 'F'])).collect();
                let last = errors.iter().rev().take(10).rev().map(|line| line.chars().take(300).collect::<String>());
                all += &format!("{}:\n{}\n", path.display(), last.collect::<Vec<_>>().join("\n"));
            }
        }
        let collects = if self.collect { "in process" } else { "by the controller manager" };
        format!("garbage is collected {collects}\n{all}")
    }
}
