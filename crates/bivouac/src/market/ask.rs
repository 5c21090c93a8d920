// SPDX-License-Identifier: Apache-2.0
//! Asking all clouds at once, and saying how it goes.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bivouac_clouds::{ALL, Cloud, Credentials, Entry, Line, line};
use serde_json::Value;

use super::options::AskOptions;
use crate::up;

/// A cloud with a credential, and where it came from.
#[derive(Clone)]
pub struct Known {
    pub entry: &'static Entry,
    pub credentials: Credentials,
    pub source: &'static str,
    /// Where it is to be asked instead of at its own address.
    pub url: Option<String>,
}

/// The clouds that are meant: those that are named, or all.
pub fn meant(options: &AskOptions) -> Result<Vec<&'static Entry>> {
    if options.cloud.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        bivouac_clouds::find(&name.to_ascii_lowercase())
            .with_context(|| format!("there is no cloud {name:?}; known are {}", known.join(", ")))
    };
    options.cloud.iter().map(find).collect()
}

/// Those of them that there is a credential for. The file counts before the environment.
pub fn known(options: &AskOptions) -> Result<Vec<Known>> {
    let path = if options.simulated { Some(up::simulated_clouds()?) } else { options.credentials.clone() };
    let file = match &path {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            Credentials::from_file(&text).with_context(|| format!("{}", path.display()))?
        }
        None => BTreeMap::new(),
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty() && !options.simulated);
    let mut found = Vec::new();
    for entry in meant(options)? {
        let names = std::iter::once(entry.name).chain(entry.aliases.iter().copied());
        let in_file = names.filter_map(|name| file.get(name)).next();
        let other = variable(&format!("BIVOUAC_{}_URL", entry.name).to_ascii_uppercase());
        let url = other.or_else(|| Some(in_file?.get("url")?.as_str()?.to_owned()));
        let credentials = match in_file {
            Some(value) => Some((from_value(value, entry)?, if options.simulated { "simulated" } else { "file" })),
            None => Credentials::from_env(entry.name, entry.fields, variable).map(|found| (found, "environment")),
        };
        found.extend(credentials.map(|(credentials, source)| Known { entry, credentials, source, url }));
    }
    Ok(found)
}

fn from_value(value: &Value, entry: &Entry) -> Result<Credentials> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(_) if entry.fields.len() == 1 => {
            let only = entry.fields.first().and_then(|field| value.get(*field)).and_then(Value::as_str);
            only.with_context(|| format!("{} needs {}", entry.name, entry.fields.join(", ")))?.to_owned()
        }
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| *name != "url");
            Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect()).to_string()
        }
        _ => bail!("the credential of {} is neither a text nor a map", entry.name),
    };
    Ok(Credentials::read(&text, entry.fields)?)
}

// === impl Known ===

impl Known {
    /// A client. `BIVOUAC_<CLOUD>_URL` is another address of the cloud, such as that of a proxy.
    pub fn client(&self, line: &Line) -> Result<Arc<dyn Cloud>, String> {
        let base = self.url.as_deref().map_or(self.entry.base, |url| url.trim_end_matches('/'));
        (self.entry.client)(&self.credentials, line.of(&self.credentials), base).map_err(|fault| fault.to_string())
    }
}

/// Asks all of them at once; each answer is told as it comes.
pub async fn all<T>(
    known: &[Known],
    quiet: bool,
    ask: impl AsyncFn(Arc<dyn Cloud>) -> Result<T, bivouac_clouds::Fault>,
    words: impl Fn(&T) -> String,
) -> Result<BTreeMap<&'static str, Result<T, String>>> {
    let line = line::to_the_world().map_err(|broken| anyhow::anyhow!("the certificates of this machine: {broken}"))?;
    let (began, tell) = (Instant::now(), !quiet && std::io::stderr().is_terminal());
    let one = async |one: &Known| {
        let answer = match one.client(&line) {
            Ok(cloud) => ask(cloud).await.map_err(|fault| fault.to_string()),
            Err(lack) => Err(lack),
        };
        if tell {
            let says = answer.as_ref().map_or_else(|_| "failed".to_owned(), &words);
            eprintln!("{:<14} {says} after {:.1} s", one.entry.name, began.elapsed().as_secs_f64());
        }
        (one.entry.name, answer)
    };
    if tell && !known.is_empty() {
        let names: Vec<&str> = known.iter().map(|one| one.entry.name).collect();
        eprintln!("asking {}", names.join(", "));
    }
    Ok(futures::future::join_all(known.iter().map(one)).await.into_iter().collect())
}
