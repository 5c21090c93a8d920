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
}

/// One Go module of ours that pins one upstream project.
struct Family {
    name: &'static str,
    version: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    ldflags: &'static str,
    programs: &'static [(Component, &'static str)],
}

const FAMILIES: [Family; 4] = [
    Family {
        name: "etcd",
        version: "3.6.16",
        go_mod: include_str!("../components/etcd/go.mod"),
        go_sum: include_str!("../components/etcd/go.sum"),
        ldflags: "",
        programs: &[(Component::Etcd, "go.etcd.io/etcd/server/v3")],
    },
    Family {
        name: "kubernetes",
        version: "1.36.3",
        go_mod: include_str!("../components/kubernetes/go.mod"),
        go_sum: include_str!("../components/kubernetes/go.sum"),
        // Without these /version says 0.0.0, and clients that look at it misbehave.
        ldflags: "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
                  -X k8s.io/component-base/version.gitMajor=1 \
                  -X k8s.io/component-base/version.gitMinor=36 \
                  -X k8s.io/component-base/version.gitTreeState=archive",
        programs: &[
            (Component::KubeApiserver, "k8s.io/kubernetes/cmd/kube-apiserver"),
            (Component::KubeControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"),
            (Component::KubeScheduler, "k8s.io/kubernetes/cmd/kube-scheduler"),
            (Component::Kubectl, "k8s.io/kubernetes/cmd/kubectl"),
        ],
    },
    Family {
        name: "kwok",
        version: "0.8.0",
        go_mod: include_str!("../components/kwok/go.mod"),
        go_sum: include_str!("../components/kwok/go.sum"),
        ldflags: "",
        programs: &[(Component::Kwok, "sigs.k8s.io/kwok/cmd/kwok")],
    },
    Family {
        name: "helm",
        version: "4.3.1",
        go_mod: include_str!("../components/helm/go.mod"),
        go_sum: include_str!("../components/helm/go.sum"),
        ldflags: "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
        programs: &[(Component::Helm, "helm.sh/helm/v4/cmd/helm")],
    },
];

/// Where each asked program is.
#[derive(Clone, Debug, Default)]
pub struct Paths(BTreeMap<Component, PathBuf>);

// === impl Component ===

impl Component {
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::Helm,
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
        }
    }

    /// KWOK is always ours: it is useless without the Stage files of its own version.
    fn in_assets(self, assets: Option<&Path>) -> Option<PathBuf> {
        let path = assets?.join(self.name());
        (self != Self::Kwok && path.is_file()).then_some(path)
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

    /// The Stage files that teach KWOK what nodes and pods do.
    pub fn kwok_stages(&self) -> Result<Vec<PathBuf>> {
        let bin = self.get(Component::Kwok)?.parent().context("kwok has no directory")?;
        let stages = bin.with_file_name("stages");
        let mut files = Vec::new();
        for entry in fs::read_dir(&stages).with_context(|| format!("reading {}", stages.display()))? {
            files.push(entry?.path());
        }
        files.sort();
        Ok(files)
    }
}

// === impl Family ===

impl Family {
    /// The folder changes with the pins and the way of building, so an old build is never taken for a new one.
    fn folder(&self) -> Result<PathBuf> {
        let hash = names::hash(&[self.go_mod, self.go_sum, self.ldflags, build::RECIPE], 12);
        Ok(store_dir()?.join(format!("{}-{}-{hash}", self.name, self.version)))
    }

    fn is_ready(&self, assets: Option<&Path>) -> Result<bool> {
        let given = self.programs.iter().all(|(component, _)| component.in_assets(assets).is_some());
        Ok(given || self.folder()?.is_dir())
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
        |family: &Family| Ok::<_, anyhow::Error>(is_asked(family, components, assets) && !family.folder()?.is_dir());
    if any(missing)? {
        let store = store_dir()?;
        fs::create_dir_all(&store).with_context(|| format!("creating {}", store.display()))?;
        let lock = File::create(store.join("build.lock"))?;
        lock.lock().context("waiting for another build")?;
        // Somebody else may have built it while we waited: each family is looked at again.
        build::build_all(&FAMILIES, |family| missing(family))?;
        if !any(|family| Ok(!family.is_ready(assets)?))? {
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

fn is_asked(family: &Family, components: &[Component], assets: Option<&Path>) -> bool {
    family.programs.iter().any(|(program, _)| components.contains(program) && program.in_assets(assets).is_none())
}

fn locate(component: Component, assets: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = component.in_assets(assets) {
        return Ok(path);
    }
    let family = FAMILIES.iter().find(|family| family.programs.iter().any(|(program, _)| *program == component));
    let path = family.context("no module builds this component")?.folder()?.join("bin").join(component.name());
    if !path.is_file() {
        bail!("{} is not there; remove {} and build again", path.display(), store_dir()?.display());
    }
    Ok(path)
}
