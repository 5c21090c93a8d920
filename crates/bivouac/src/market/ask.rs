// SPDX-License-Identifier: Apache-2.0
//! Asking all clouds at once, and saying how it goes.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bivouac_clouds::{ALL, Cloud, Credentials, Entry, Fault, Line, Outcome, line};
use serde_json::Value;

use super::class::Class;
use super::options::AskOptions;
use crate::up;

/// A cloud that can be asked, and where the credential came from.
#[derive(Clone)]
pub struct Known {
    pub entry: &'static Entry,
    /// Or why there is none, where one was promised.
    pub credentials: Result<Credentials, String>,
    pub source: &'static str,
    /// Where it is to be asked instead of at its own address.
    pub url: Option<String>,
}

/// Why a cloud gave no answer that can be used.
#[derive(Clone, Debug)]
pub struct Failed {
    pub says: String,
    /// Whether it answered at all; `None` if it was not asked.
    pub reached: Option<bool>,
    /// Whether it knows the credential; `None` if it did not come to that.
    pub accepted: Option<bool>,
}

/// The clouds that are meant: those that are named, or all.
pub fn meant(options: &AskOptions) -> Result<Vec<&'static Entry>> {
    if options.cloud.is_empty() {
        return Ok(ALL.iter().collect());
    }
    options.cloud.iter().map(|name| find(name)).collect()
}

/// The cloud that a person means.
pub fn find(name: &str) -> Result<&'static Entry> {
    let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    bivouac_clouds::find(&name.to_ascii_lowercase())
        .with_context(|| format!("there is no cloud {name:?}; known are {}", known.join(", ")))
}

/// Those of them that there is a credential for.
pub async fn known(options: &AskOptions) -> Result<Vec<Known>> {
    let meant = meant(options)?;
    let known = match &options.class {
        Some(class) => of_class(options, class).await?,
        None => of_person(options)?,
    };
    Ok(known.into_iter().filter(|one| meant.iter().any(|entry| entry.name == one.entry.name)).collect())
}

async fn of_class(options: &AskOptions, class: &str) -> Result<Vec<Known>> {
    let class = Class::read(class, options.kubeconfig.as_deref(), &options.operator_namespace).await?;
    let known = |(entry, credentials): (&'static Entry, Result<Credentials>)| Known {
        entry,
        credentials: credentials.map_err(|error| format!("{error:#}")),
        source: "class",
        url: variable(entry, "url"),
    };
    Ok(class.clouds().await?.into_iter().map(known).collect())
}

/// The file counts before the environment. Simulated clouds have a file of their own, and nothing else counts.
fn of_person(options: &AskOptions) -> Result<Vec<Known>> {
    let path = if options.simulated { Some(up::simulated_clouds()?) } else { options.credentials.clone() };
    let file = match &path {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
            Credentials::from_file(&text).with_context(|| format!("{}", path.display()))?
        }
        None => BTreeMap::new(),
    };
    let mut found = Vec::new();
    for entry in ALL {
        let names = std::iter::once(entry.name).chain(entry.aliases.iter().copied());
        let in_file = names.filter_map(|name| file.get(name)).next();
        let own = |field: &str| if options.simulated { None } else { variable(entry, field) };
        let url = own("url").or_else(|| Some(in_file?.get("url")?.as_str()?.to_owned()));
        let credentials = match in_file {
            Some(value) => Some((from_value(value, entry)?, if options.simulated { "simulated" } else { "file" })),
            None => Credentials::from_fields(entry.fields, own).map(|found| (found, "environment")),
        };
        let known = |(credentials, source)| Known { entry, credentials: Ok(credentials), source, url };
        found.extend(credentials.map(known));
    }
    Ok(found)
}

/// `BIVOUAC_VERDA_CLIENT_ID` is the field `client_id` of verda.
fn variable(entry: &Entry, field: &str) -> Option<String> {
    let name = format!("BIVOUAC_{}_{field}", entry.name).to_ascii_uppercase();
    std::env::var(name).ok().filter(|value| !value.is_empty())
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
    pub fn client(&self, line: &Line) -> Result<Arc<dyn Cloud>, Failed> {
        let base = self.url.as_deref().map_or(self.entry.base, |url| url.trim_end_matches('/'));
        let unasked = |says| Failed { says, reached: None, accepted: None };
        let credentials = self.credentials.clone().map_err(unasked)?;
        (self.entry.client)(&credentials, line.of(&credentials), base).map_err(|lack| unasked(lack.to_string()))
    }
}

// === impl Failed ===

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let accepted = match fault.outcome {
            Outcome::Unauthorized => Some(false),
            Outcome::Payment | Outcome::Quota | Outcome::NoCapacity => Some(true),
            _ => None,
        };
        Self { says: fault.to_string(), reached: Some(fault.status.is_some()), accepted }
    }
}

/// Asks all of them at once; each answer is told as it comes.
pub async fn all<T>(
    known: &[Known],
    quiet: bool,
    ask: impl AsyncFn(Arc<dyn Cloud>) -> Result<T, Fault>,
    words: impl Fn(&T) -> String,
) -> Result<BTreeMap<&'static str, Result<T, Failed>>> {
    let line = line::to_the_world().map_err(|broken| anyhow::anyhow!("the certificates of this machine: {broken}"))?;
    let (began, tell) = (Instant::now(), !quiet && std::io::stderr().is_terminal());
    let one = async |one: &Known| {
        let answer = match one.client(&line) {
            Ok(cloud) => ask(cloud).await.map_err(Failed::from),
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
