// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster render`: what the controller would make, on paper.

use std::{io::Read, process::ExitCode};

use anyhow::{Context, Result, anyhow, bail};
use bivouac_api::flux::MiniCluster;
use bivouac_miniclusters::{Settings, certificate::Certificate, gang::GANG_ANNOTATION, observe::World, plan::plan};
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::options::RenderOptions;
use crate::print;

/// Everybody knows the key that comes of it. It stands where a real one would be.
const PLACEHOLDER: [u8; 32] = [7; 32];
const WARNING: &str =
    "# The Secret holds a placeholder that everybody knows. For real use, render with --new-certificate.\n";

pub fn run(options: &RenderOptions) -> Result<ExitCode> {
    let path = options.source.path();
    let source = path.display().to_string();
    let text = match source.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("stdin cannot be read")?;
            text
        }
        _ => std::fs::read_to_string(path).with_context(|| format!("{source} cannot be read"))?,
    };
    let source = if source == "-" { "stdin" } else { &source };
    let seed = if options.new_certificate { rand::random() } else { PLACEHOLDER };
    let rendered = render(source, &text, &options.namespace, seed)?;
    let is_placeholder = !options.new_certificate && rendered.contains("\nkind: Secret\n");
    print::say(&format!("{}{rendered}", if is_placeholder { WARNING } else { "" }))?;
    Ok(ExitCode::SUCCESS)
}

/// The children of every MiniCluster in the text, as YAML documents.
pub fn render(source: &str, text: &str, namespace: &str, seed: [u8; 32]) -> Result<String> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow!("{source} is no YAML: {error}"))?;
    let mut children = Vec::new();
    let mut found = false;
    for document in documents.into_iter().filter(|one| one.get("kind").is_some_and(|kind| kind == "MiniCluster")) {
        found = true;
        children.extend(children_of(&read(source, document, namespace)?, seed)?);
    }
    if !found {
        bail!("there is no MiniCluster in {source}");
    }
    print::yaml(&children)
}

fn read(source: &str, document: Value, namespace: &str) -> Result<MiniCluster> {
    let version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let ours = MiniCluster::api_version(&());
    if version != ours {
        bail!("{source} has a MiniCluster of {version:?}; only {ours} is known");
    }
    let mut minicluster: MiniCluster = serde_json::from_value(document)
        .map_err(|error| anyhow!("a MiniCluster in {source} cannot be read: {error}"))?;
    if minicluster.metadata.name.is_none() {
        bail!("a MiniCluster in {source} has no name");
    }
    minicluster.metadata.namespace.get_or_insert_with(|| namespace.to_owned());
    // As a new one: what became of another one does not count.
    minicluster.status = None;
    // No node is known here, so nothing waits for room.
    minicluster.annotations_mut().remove(GANG_ANNOTATION);
    Ok(minicluster)
}

fn children_of(minicluster: &MiniCluster, seed: [u8; 32]) -> Result<Vec<Value>> {
    let name = minicluster.name_any();
    let world = World::empty(Certificate::new(seed, &format!("{name}-0")));
    let plan = plan(minicluster, &world, &Settings::default(), Timestamp::UNIX_EPOCH);
    let children: Vec<Value> = plan.children().map(|child| child.body.clone()).collect();
    if children.is_empty() {
        let why =
            plan.conditions.iter().find(|verdict| verdict.type_ == "Ready").map(|verdict| verdict.message.as_str());
        bail!("MiniCluster {name} cannot work: {}", why.unwrap_or("nothing would be made"));
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bivouac_miniclusters::script::BODIES;

    fn example(name: &str) -> String {
        let path = format!("{}/../../examples/miniclusters/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    /// The parts of the scripts that are the same for everybody have goldens of their own.
    fn shorten(document: &mut Value) {
        let texts = document.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten();
        for (_, text) in texts {
            let short = BODIES.iter().fold(text.as_str().unwrap().to_owned(), |text, (name, body)| {
                text.replace(body, &format!("<{name}>\n"))
            });
            *text = short.into();
        }
    }

    #[test]
    fn examples_are_rendered_as_the_goldens_have_them() {
        for name in ["hello", "batch", "gang"] {
            let text = render(name, &example(name), "lab", PLACEHOLDER).unwrap();
            assert_eq!(
                text,
                render(name, &example(name), "lab", PLACEHOLDER).unwrap(),
                "the same input, the same output"
            );
            let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            documents.iter_mut().for_each(shorten);
            insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_yaml_snapshot!(format!("render_{name}"), documents);
            });
        }
    }

    #[test]
    fn a_new_key_differs_and_the_rest_does_not() {
        let (placeholder, new) = (PLACEHOLDER, [8; 32]);
        let [one, two] = [placeholder, new].map(|seed| render("x", &example("hello"), "lab", seed).unwrap());
        let differing = one.lines().zip(two.lines()).filter(|(one, two)| one != two).count();
        assert!(one.lines().count() == two.lines().count() && differing > 0, "{one}");
        let job = |text: &str| text.split_once("\nkind: Job\n").unwrap().1.to_owned();
        assert_eq!(job(&one), job(&two));
    }

    #[test]
    fn other_documents_are_left_out_and_several_clusters_are_rendered() {
        let text = format!("kind: ConfigMap\n---\n{}\n---\n{}", example("hello"), example("batch"));
        let text = render("x", &text, "lab", PLACEHOLDER).unwrap();
        assert_eq!(text.matches("\nkind: Job\n").count(), 2, "{text}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_sentence() {
        let broken = |from: &str, to: &str| example("hello").replace(from, to);
        for (text, words) in [
            (broken("size: 4", "size: 0"), "MiniCluster hello cannot work: size must be at least 1"),
            (broken("\"hello from\"", "\"hello from"), "hello cannot work: "),
            (broken("v1alpha2", "v1alpha1"), "x has a MiniCluster of \"flux-framework.org/v1alpha1\""),
            (broken("name: hello", "labels: {}"), "has no name"),
            (broken("size: 4", "size: many"), "cannot be read: invalid type: string \"many\""),
            (broken("MiniCluster", "Pod"), "no MiniCluster in x"),
            ("a: [".to_owned(), "x is no YAML"),
        ] {
            let error = render("x", &text, "lab", PLACEHOLDER).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
