// SPDX-License-Identifier: Apache-2.0
//! Scenarios: data files that say what exists, what happens, and what must be true in the end.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde_json::Value;

use crate::generate;

static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// One story.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// The path of its file among the scenarios, without the ending.
    #[serde(skip)]
    pub name: String,
    /// One line for people.
    pub about: String,
    /// As `--controllers` of the operator; or the name of a controller with planted bugs.
    #[serde(default = "all")]
    pub controllers: String,
    /// Whether the operator runs with leader election, as it does in production.
    #[serde(default)]
    pub leader_election: bool,
    /// What exists before the operator starts.
    #[serde(default)]
    pub before: Vec<Value>,
    #[serde(default)]
    pub timeline: Vec<Step>,
    /// What must be true when everything has settled.
    pub expect: Vec<Expectation>,
    /// Words that must never be seen outside of Secrets.
    #[serde(default)]
    pub secret: Vec<String>,
    /// Virtual seconds after the last step within which the world must have settled.
    #[serde(default = "an_hour")]
    pub settles_within: u32,
}

/// One thing that somebody does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Step {
    /// Seconds after the start.
    pub at: u32,
    /// How often, with `{n}` counting from 1.
    #[serde(default = "once")]
    pub repeat: u32,
    #[serde(default)]
    pub apply: Option<Value>,
    #[serde(default)]
    pub patch: Option<Patch>,
    #[serde(default)]
    pub delete: Option<Reference>,
    /// Stops the operator in order and starts it again.
    #[serde(default)]
    pub restart: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Patch {
    pub of: Reference,
    /// A JSON merge patch.
    pub with: Value,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Reference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub namespace: String,
}

/// One thing that must be true in the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expectation {
    #[serde(default)]
    pub exists: Option<Reference>,
    #[serde(default)]
    pub absent: Option<Reference>,
    /// What the existing object has at least. Items of lists are matched in any order.
    #[serde(default)]
    pub has: Option<Value>,
}

fn all() -> String {
    "*".to_owned()
}

fn once() -> u32 {
    1
}

fn an_hour() -> u32 {
    3_600
}

impl Scenario {
    /// One of ours by its name, one that is generated from a number, or a file.
    pub fn find(name: &str) -> Result<Self> {
        if let Some(number) = name.strip_prefix(generate::PREFIX) {
            let number = number.parse().with_context(|| format!("{name} must end in a number"))?;
            return Ok(generate::scenario(number));
        }
        if let Some(file) = SHIPPED.get_file(format!("{name}.yaml")) {
            return Self::parse(name, file.contents_utf8().unwrap_or_default());
        }
        let path = Path::new(name);
        if !path.exists() {
            bail!("there is no scenario {name:?}, and no file of that name. `bivouac simulate --list` shows them");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(name, &text)
    }

    /// All of ours, in the order of their names.
    pub fn all() -> Result<Vec<Self>> {
        let mut files: Vec<_> = SHIPPED.dirs().flat_map(|dir| dir.files()).collect();
        files.sort_by_key(|file| file.path());
        let name = |path: &Path| path.with_extension("").to_string_lossy().into_owned();
        files
            .into_iter()
            .map(|file| Self::parse(&name(file.path()), file.contents_utf8().unwrap_or_default()))
            .filter(|scenario| !matches!(scenario, Ok(one) if one.is_planted() && !cfg!(feature = "planted")))
            .collect()
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let mut scenario: Self =
            serde_saphyr::from_str(text).with_context(|| format!("{name} is not a scenario that can be read"))?;
        scenario.name = name.to_owned();
        ensure!(!scenario.expect.is_empty(), "{name} expects nothing, so it shows nothing");
        for step in &scenario.timeline {
            let actions = [step.apply.is_some(), step.patch.is_some(), step.delete.is_some(), step.restart];
            ensure!(
                actions.iter().filter(|there| **there).count() == 1,
                "{name}: the step at {} must be exactly one of apply, patch, delete and restart",
                step.at
            );
        }
        for one in &scenario.expect {
            ensure!(
                one.exists.is_some() != one.absent.is_some(),
                "{name}: an expectation must be exactly one of exists and absent"
            );
        }
        scenario.timeline.sort_by_key(|step| step.at);
        Ok(scenario)
    }

    /// Whether its controller is one with bugs put in on purpose.
    pub fn is_planted(&self) -> bool {
        self.controllers.starts_with("planted")
    }
}

impl Reference {
    /// The object that a manifest is about.
    pub fn of(object: &Value) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
        }
    }

    pub fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let within = if self.namespace.is_empty() { String::new() } else { format!("namespaces/{}/", self.namespace) };
        format!("/{root}/{}/{within}{}/{}", self.api_version, plural(&self.kind), self.name)
    }

    /// With `{n}` replaced.
    pub fn numbered(&self, n: u32) -> Self {
        let put = |text: &str| text.replace("{n}", &n.to_string());
        Self { name: put(&self.name), namespace: put(&self.namespace), ..self.clone() }
    }
}

/// The English plural, as API groups have it.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.as_bytes() {
        b"endpoints" => lower,
        [.., b's'] => format!("{lower}es"),
        [.., b'y'] => format!("{}ies", lower.trim_end_matches('y')),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_ours_can_be_read() {
        assert!(!Scenario::all().unwrap().is_empty());
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let of = |api: &str, kind: &str, namespace: &str| {
            let (api_version, kind) = (api.to_owned(), kind.to_owned());
            Reference { api_version, kind, name: "x".to_owned(), namespace: namespace.to_owned() }.path()
        };
        assert_eq!(of("v1", "Namespace", ""), "/api/v1/namespaces/x");
        let policies = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/x";
        assert_eq!(of("networking.k8s.io/v1", "NetworkPolicy", "a"), policies);
        assert_eq!(of("scheduling.k8s.io/v1", "PriorityClass", ""), "/apis/scheduling.k8s.io/v1/priorityclasses/x");
    }

    #[test]
    fn a_scenario_that_says_nothing_is_refused() {
        let refused = |text: &str| format!("{:#}", Scenario::parse("x", text).unwrap_err());
        assert!(refused("about: nothing\nexpect: []").contains("expects nothing"));
        let expect = "expect: [{exists: {apiVersion: v1, kind: Namespace, name: a}}]";
        assert!(refused(&format!("about: a\ntimeline: [{{at: 3}}]\n{expect}")).contains("exactly one of"));
        assert!(refused(&format!("about: a\nfuture: 3\n{expect}")).contains("future"));
    }
}
