// SPDX-License-Identifier: Apache-2.0
//! Commands that print what an installation needs.

use std::io::Write;

use anyhow::Result;
use bivouac_runtime::registry;
use bivouac_tenancy::policies::{self, OPERATOR_USER};
use clap::CommandFactory;
use k8s_openapi::{
    api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cli::{Cli, ControllerOptions, Output, PolicyOptions, PrintOptions, RbacOptions},
    operator,
};

pub fn crds(options: &PrintOptions) -> Result<()> {
    documents(options.output, &bivouac_api::crds())
}

pub fn policies(options: &PolicyOptions) -> Result<()> {
    documents(options.print.output, &policy_objects(options)?)
}

pub fn policy_objects(options: &PolicyOptions) -> Result<Vec<Value>> {
    let user = format!("system:serviceaccount:{}:{}", options.namespace, options.service_account);
    let mut all = policies::validating();
    if !options.without_mutating {
        all.extend(mutating_policies());
    }
    let text = serde_json::to_string(&all)?.replace(OPERATOR_USER, &user);
    Ok(serde_json::from_str(&text)?)
}

/// Those that a cluster enforces only if it serves their kind.
pub fn mutating_policies() -> Vec<Value> {
    [policies::mutating(), bivouac_miniclusters::policies::mutating()].concat()
}

/// The rights of the chosen controllers in every namespace.
pub fn cluster_rules(controllers: &str) -> Result<Vec<PolicyRule>> {
    let chosen = registry::select(&operator::controllers(&ControllerOptions::default()), controllers)?;
    let mut rules = registry::base_rules();
    rules.extend(chosen.iter().flat_map(|one| (one.rbac)()));
    Ok(rules)
}

pub fn rbac(options: &RbacOptions) -> Result<()> {
    documents(options.print.output, &rbac_objects(options)?)
}

pub fn rbac_objects(options: &RbacOptions) -> Result<Vec<Value>> {
    let rules = cluster_rules(&options.controllers)?;
    let name = options.service_account.clone();
    let meta = |namespace: Option<&str>| ObjectMeta {
        name: Some(name.clone()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    };
    let account = Subject {
        kind: "ServiceAccount".to_owned(),
        api_group: None,
        name: name.clone(),
        namespace: Some(options.namespace.clone()),
    };
    let role_ref = |kind: &str| RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.clone(),
    };
    let role = ClusterRole { metadata: meta(None), rules: Some(rules), ..ClusterRole::default() };
    let binding = ClusterRoleBinding {
        metadata: meta(None),
        role_ref: role_ref("ClusterRole"),
        subjects: Some(vec![account.clone()]),
    };
    let here = Some(options.namespace.as_str());
    let lease = Role { metadata: meta(here), rules: Some(registry::lease_rules()) };
    let lease_binding = RoleBinding { metadata: meta(here), role_ref: role_ref("Role"), subjects: Some(vec![account]) };
    Ok(vec![json!(role), json!(binding), json!(lease), json!(lease_binding)])
}

pub fn version(options: &PrintOptions) -> Result<()> {
    let version = json!({"version": env!("CARGO_PKG_VERSION"), "kubernetes": "1.36"});
    match options.output {
        Output::Json => documents(Output::Json, &[version]),
        Output::Yaml => say(&format!("bivouac {}\n", env!("CARGO_PKG_VERSION"))),
    }
}

pub fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bivouac", &mut script);
    say(&String::from_utf8_lossy(&script))
}

/// YAML documents, or one JSON object or list.
fn documents(output: Output, all: &[impl Serialize]) -> Result<()> {
    match (output, all) {
        (Output::Yaml, _) => say(&yaml(all)?),
        (Output::Json, [one]) => say(&(serde_json::to_string_pretty(one)? + "\n")),
        (Output::Json, _) => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
            say(&(serde_json::to_string_pretty(&list)? + "\n"))
        }
    }
}

/// A stream of YAML documents.
pub fn yaml(all: &[impl Serialize]) -> Result<String> {
    all.iter().map(|one| Ok(format!("---\n{}", serde_saphyr::to_string(one)?))).collect()
}

pub(crate) fn say(text: &str) -> Result<()> {
    write(text.as_bytes())
}

/// Writes at once. A closed pipe (`bivouac crds | head`) is not an error.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
