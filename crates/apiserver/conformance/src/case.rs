// SPDX-License-Identifier: Apache-2.0
//! Cases as they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One behaviour: a few requests and what came back.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The folder it is in. Not written.
    #[serde(skip)]
    pub area: String,
    /// Needs the loops of the controller manager.
    #[serde(default)]
    pub controllers: bool,
    /// A definition of `tents` that exists before the steps run.
    #[serde(default)]
    pub crd: Option<Value>,
    /// The API group of a definition that is there already. Not written: random sequences share one, and what they
    /// cannot save they do without.
    #[serde(skip)]
    pub stage: Option<String>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// `METHOD path`.
    #[serde(rename = "do")]
    pub request: Option<String>,
    pub body: Option<Value>,
    /// A body that is sent as it is.
    pub raw: Option<String>,
    /// So many spaces after the body.
    pub pad: usize,
    /// A content type or the short name of one.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// An `Accept` header or the short name of one.
    pub accept: Option<String>,
    pub headers: BTreeMap<String, String>,
    #[serde(rename = "as")]
    pub who: Option<Who>,
    /// The status code of the real server where it is not 200 or 201: the case says what it expects.
    pub want: Option<u16>,
    /// Names for parts of the answer.
    pub save: BTreeMap<String, String>,
    /// Ask again until this part of the answer has this value; `null` waits until it is gone.
    pub until: Option<Until>,
    /// Keep only these parts of the answer.
    pub pick: Vec<String>,
    /// Leave out these parts of the answer.
    pub ignore: Vec<String>,
    /// Do it so often, with `{i}` counting from 0.
    pub times: Option<usize>,
    /// Leave the answer open as a watch of this name.
    pub watch: Option<String>,
    /// Read from that watch, as many events as `count` says or until it ends.
    pub events: Option<String>,
    pub count: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Who {
    User(String),
    Member { user: String, groups: Vec<String> },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    pub path: String,
    #[serde(default)]
    pub is: Value,
}

/// Every case below the folder: one folder per area, several cases per file.
pub fn load(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for area in sorted(folder)?.into_iter().filter(|path| path.is_dir()) {
        for file in sorted(&area)? {
            let text = fs::read_to_string(&file)?;
            let mut more: Vec<Case> = documents(&text).with_context(|| file.display().to_string())?;
            let name = area.file_name().unwrap_or_default().to_string_lossy().into_owned();
            more.iter_mut().for_each(|case| case.area.clone_from(&name));
            cases.append(&mut more);
        }
    }
    let mut seen = BTreeSet::new();
    for case in &cases {
        if !seen.insert(case.id()) {
            bail!("two cases are named {:?}", case.id());
        }
        case.check().with_context(|| case.id())?;
    }
    Ok(cases)
}

/// YAML with the booleans of today: `y` and `no` are text.
pub(crate) fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    Ok(serde_saphyr::from_multiple_with_options(text, serde_saphyr::options! { strict_booleans: true })?)
}

fn sorted(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    Ok(paths)
}

// === impl Case ===

impl Case {
    /// `area/name-with-dashes`.
    pub fn id(&self) -> String {
        let dashed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(dashed).collect();
        let words: Vec<_> = name.split('-').filter(|word| !word.is_empty()).collect();
        format!("{}/{}", self.area, words.join("-"))
    }

    /// Whether the text of a request contains this.
    pub fn mentions(&self, text: &str) -> bool {
        let body = |step: &Step| step.body.as_ref().is_some_and(|body| body.to_string().contains(text));
        let request = |step: &Step| step.request.as_ref().is_some_and(|request| request.contains(text));
        self.steps.iter().any(|step| request(step) || body(step))
    }

    fn check(&self) -> Result<()> {
        if self.steps.is_empty() {
            bail!("it has no steps");
        }
        for (index, step) in self.steps.iter().enumerate() {
            if step.request.is_some() == step.events.is_some() {
                bail!("step {} has to be either a request or the events of a watch", index + 1);
            }
        }
        Ok(())
    }
}
