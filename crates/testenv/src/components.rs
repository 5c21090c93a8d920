// SPDX-License-Identifier: Apache-2.0
//! The real programs, built from pinned Go modules into a cache outside the checkout.

mod build;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bivouac_core::names;

/// A directory with programs that somebody else built; it wins when it has kube-apiserver and etcd.
pub const ASSETS_ENV: &str = "KUBEBUILDER_ASSETS";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    Kubectl,
    Kwok,
    Helm,
    Kueue,
    Kubelet,
}

/// One Go module of ours that pins one upstream project.
struct Family {
    name: &'static str,
    version: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    ldflags: &'static str,
    programs: &'static [(Component, &'static str)],
    files: Option<Files>,
}

/// Files of the module that its programs are useless without. The cache keeps them beside the programs.
struct Files {
    module: &'static str,
    folders: &'static [&'static str],
    into: &'static str,
}

// Without these /version says 0.0.0, and clients that look at it misbehave.
const KUBERNETES_VERSION: &str = "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                                  -X k8s.io/component-base/version.gitMajor=1 \
                                  -X k8s.io/component-base/version.gitMinor=36 \
                                  -X k8s.io/component-base/version.gitTreeState=archive";

static FAMILIES: [Family; 6] = [
    Family {
        name: "etcd",
        version: "3.6.16",
        go_mod: include_str!("../components/etcd/go.mod"),
        go_sum: include_str!("../components/etcd/go.sum"),
        ldflags: "",
        programs: &[(Component::Etcd, "go.etcd.io/etcd/server/v3")],
        files: None,
    },
    Family {
        name: "kubernetes",
        version: "1.36.3",
        go_mod: include_str!("../components/kubernetes/go.mod"),
        go_sum: include_str!("../components/kubernetes/go.sum"),
        ldflags: KUBERNETES_VERSION,
        programs: &[
            (Component::KubeApiserver, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (Component::KubeControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"),
            (Component::KubeScheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
            (Component::Kubectl, "k8s.io/kubernetes/cmd/kubectl"),
        ],
        files: None,
    },
    Family {
        name: "kwok",
        version: "0.8.0",
        go_mod: include_str!("../components/kwok/go.mod"),
        go_sum: include_str!("../components/kwok/go.sum"),
        ldflags: "",
        programs: &[(Component::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
        // Those that make nodes and pods ready at once.
        files: Some(Files {
            module: "sigs.k8s.io/kwok",
            folders: &[
                "kustomize/stage/node/fast",
                "kustomize/stage/node/heartbeat-with-lease",
                "kustomize/stage/pod/fast",
            ],
            into: "stages",
        }),
    },
    Family {
        name: "helm",
        version: "4.3.1",
        go_mod: include_str!("../components/helm/go.mod"),
        go_sum: include_str!("../components/helm/go.sum"),
        ldflags: "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
        programs: &[(Component::Helm, "helm.sh/helm/v4/cmd/helm")],
        files: None,
    },
    Family {
        name: "kueue",
        version: "0.19.2",
        go_mod: include_str!("../components/kueue/go.mod"),
        go_sum: include_str!("../components/kueue/go.sum"),
        ldflags: "",
        programs: &[(Component::Kueue, "sigs.k8s.io/kueue/cmd/kueue")],
        files: Some(Files {
            module: "sigs.k8s.io/kueue",
            folders: &["config/components/crd/bases", "config/components/webhook"],
            into: "manifests",
        }),
    },
    // Apart from its siblings: only tests with real pods want it.
    Family {
        name: "kubelet",
        version: "1.36.3",
        go_mod: include_str!("../components/kubelet/go.mod"),
        go_sum: include_str!("../components/kubelet/go.sum"),
        ldflags: KUBERNETES_VERSION,
        programs: &[(Component::Kubelet, "k8s.io/kubernetes/cmd/kubelet")],
        files: None,
    },
];

/// Where each asked program is.
#[derive(Clone, Debug, Default)]
pub struct Paths(BTreeMap<Component, PathBuf>);

// === impl Component ===

impl Component {
    /// What every cluster of a test is started with, and what works on it.
    pub const USUAL: [Self; 7] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Helm,
    ];
    /// With what only a test that asks for it has to wait for.
    pub const ALL: [Self; 9] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Helm,
        Self::Kueue,
        Self::Kubelet,
    ];

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::Kueue => "kueue",
            Self::Kubelet => "kubelet",
        }
    }

    /// What needs files of its own version is always ours.
    fn in_assets(self, assets: Option<&Path>) -> Option<PathBuf> {
        let path = assets?.join(self.name());
        let is_whole = family_of(self).is_some_and(|family| family.files.is_none());
        (is_whole && path.is_file()).then_some(path)
    }
}

// === impl Paths ===

impl Paths {
    pub fn get(&self, component: Component) -> Result<&Path> {
        let path = self.0.get(&component);
        path.map(PathBuf::as_path).with_context(|| format!("{} was not asked for", component.name()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Component, &Path)> {
        self.0.iter().map(|(component, path)| (*component, path.as_path()))
    }

    /// The files that came with a program: the Stages that teach KWOK what nodes and pods do, the CRDs of Kueue.
    pub(crate) fn files_of(&self, component: Component) -> Result<Vec<PathBuf>> {
        let bin = self.get(component)?.parent().context("a program has no directory")?;
        let files = family_of(component).and_then(|family| family.files.as_ref());
        let folder = bin.with_file_name(files.with_context(|| format!("{} has no files", component.name()))?.into);
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            files.push(entry?.path());
        }
        files.sort();
        Ok(files)
    }

    pub fn kwok_stages(&self) -> Result<Vec<PathBuf>> {
        self.files_of(Component::Kwok)
    }
}

// === impl Family ===

impl Family {
    /// The folder changes with the pins and the way of building, so an old build is never taken for a new one.
    fn folder(&self) -> Result<PathBuf> {
        let hash = names::hash(&[self.go_mod, self.go_sum, self.ldflags, build::RECIPE], 12);
        Ok(store_dir()?.join(format!("{}-{}-{hash}", self.name, self.version)))
    }
}

/// `$BIVOUAC_CACHE`, or `bivouac` in the user's cache.
pub fn cache_dir() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(cache) = set("BIVOUAC_CACHE") {
        return Ok(cache);
    }
    let user = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Ok(user.context("no cache directory: set BIVOUAC_CACHE, XDG_CACHE_HOME or HOME")?.join("bivouac"))
}

/// Where builds and the state of shared clusters live.
pub(crate) fn store_dir() -> Result<PathBuf> {
    Ok(cache_dir()?.join("testenv"))
}

/// Finds the asked programs and builds those that are missing. Blocks; the first build takes minutes.
pub fn ensure(components: &[Component]) -> Result<Paths> {
    let assets = env::var_os(ASSETS_ENV).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let assets = assets.filter(|dir| dir.join("kube-apiserver").is_file() && dir.join("etcd").is_file());
    let assets = assets.as_deref();
    let missing =
        |family: &Family, of: &[Component]| anyhow::Ok(is_asked(family, of, assets) && !family.folder()?.is_dir());
    if any(|family| missing(family, components))? {
        let store = store_dir()?;
        fs::create_dir_all(&store).with_context(|| format!("creating {}", store.display()))?;
        let lock = File::create(store.join("build.lock"))?;
        lock.lock().context("waiting for another build")?;
        // Somebody else may have built it while we waited: each family is looked at again.
        build::build_all(&FAMILIES, |family| missing(family, components))?;
        if !any(|family| missing(family, &Component::USUAL))? {
            build::delete_go_caches()?;
        }
    }
    components
        .iter()
        .map(|component| locate(*component, assets).map(|path| (*component, path)))
        .collect::<Result<_>>()
        .map(Paths)
}

fn any(test: impl Fn(&Family) -> Result<bool>) -> Result<bool> {
    for family in &FAMILIES {
        if test(family)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn family_of(component: Component) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.programs.iter().any(|(program, _)| *program == component))
}

fn is_asked(family: &Family, components: &[Component], assets: Option<&Path>) -> bool {
    family.programs.iter().any(|(program, _)| components.contains(program) && program.in_assets(assets).is_none())
}

fn locate(component: Component, assets: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = component.in_assets(assets) {
        return Ok(path);
    }
    let family = family_of(component).context("no module builds this component")?;
    let path = family.folder()?.join("bin").join(component.name());
    if !path.is_file() {
        bail!("{} is not there; remove {} and build again", path.display(), store_dir()?.display());
    }
    Ok(path)
}
