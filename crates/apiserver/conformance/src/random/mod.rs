// SPDX-License-Identifier: Apache-2.0
//! Random sequences of requests to one or two objects. They are cases that nobody has written.

mod draw;
mod shrink;
mod step;
mod write;

use anyhow::{Context, Result};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::case::{Case, documents};
use crate::play;
use draw::Draw;
pub use shrink::shrink;
pub use write::yaml;

/// What sequences are made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    metadata: Value,
    delete: Value,
    selectors: Value,
    families: Vec<Family>,
}

/// One kind of objects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    path: String,
    #[serde(default)]
    crd: Option<Value>,
    /// What every object begins with.
    head: Value,
    object: Value,
    #[serde(default)]
    status: Option<Value>,
    #[serde(default)]
    scale: bool,
    /// Operations of JSON patches.
    json: Vec<Value>,
    /// Strategic merge patches, where the kind has them.
    #[serde(default)]
    strategic: Vec<Value>,
}

impl Grammar {
    pub fn load() -> Result<Self> {
        documents(include_str!("../../random.yaml"))?.pop().context("random.yaml is empty")
    }

    /// Creates the definitions that all sequences share. Says their API group.
    pub async fn set_stage(&self, client: &Client) -> Result<String> {
        let crd = self.families.iter().find_map(|family| family.crd.clone());
        play::set_stage(client, &case("stage", crd, Vec::new())).await
    }

    /// The sequence of a number.
    pub fn sequence(&self, seed: u64, group: &str) -> Case {
        let mut draw = Draw::new(seed);
        let length = draw.between(6, 12);
        let family = self.families.get(draw.between(0, self.families.len() - 1));
        let steps = family.map(|family| {
            (0..length).map(|index| step::Maker { draw: &mut draw, grammar: self, family }.step(index == 0)).collect()
        });
        let name = format!("{} {seed}", family.map_or("nothing", |family| &family.name));
        let crd = family.and_then(|family| family.crd.clone());
        Case { stage: Some(group.to_owned()), ..case(&name, crd, steps.unwrap_or_default()) }
    }
}

fn case(name: &str, crd: Option<Value>, steps: Vec<crate::case::Step>) -> Case {
    Case { name: name.to_owned(), area: "random".to_owned(), controllers: false, crd, stage: None, steps }
}

#[cfg(test)]
mod tests {
    use super::{Grammar, yaml};
    use crate::case::{Case, documents};

    #[test]
    fn a_number_is_always_the_same_sequence() {
        let grammar = Grammar::load().unwrap();
        let text = |seed| yaml(&grammar.sequence(seed, "g"), &[]);
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn what_is_printed_is_a_case() {
        let grammar = Grammar::load().unwrap();
        for seed in 0..50 {
            let sequence = grammar.sequence(seed, "g");
            let read: Case = documents(&yaml(&sequence, &[])).unwrap().remove(0);
            assert_eq!(read.crd, sequence.crd);
            let parts = |case: &Case| -> Vec<_> {
                case.steps.iter().map(|step| (step.request.clone(), step.body.clone())).collect()
            };
            assert_eq!(parts(&read), parts(&sequence));
        }
    }
}
