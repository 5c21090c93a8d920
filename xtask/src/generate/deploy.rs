// SPDX-License-Identifier: Apache-2.0
//! What an installation needs: CRDs, rights and policies, for Helm and for people without it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use bivouac::cli::{Cli, Command};
use bivouac::print;
use bivouac_runtime::registry;
use bivouac_tenancy::policies;
use clap::Parser;
use serde::Serialize;

use super::Files;

pub const CRDS: &str = "deploy/crds";
pub const CHART: &str = "deploy/chart/bivouac/generated";

const HEADER: &str = "# Made by `cargo xtask gen`. Do not edit.\n";

pub fn files() -> Result<Files> {
    let mut files = Files::new();
    let mut add =
        |folder: &str, name: &str, yaml: String| files.insert(Path::new(folder).join(name), HEADER.to_owned() + &yaml);
    for crd in bivouac_api::crds() {
        add(CRDS, &format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural), plain(&crd)?);
    }
    // Lists, which the chart puts into its own roles.
    add(CHART, "cluster-rules.yaml", plain(&print::cluster_rules("*")?)?);
    add(CHART, "lease-rules.yaml", plain(&registry::lease_rules())?);
    // With the placeholder for the operator's user: the chart knows the name.
    add(CHART, "policies-validating.yaml", print::yaml(&policies::validating())?);
    add(CHART, "policies-mutating.yaml", print::yaml(&print::mutating_policies())?);
    add("deploy", "rbac.yaml", printed("rbac")?);
    add("deploy", "policies.yaml", printed("policies")?);
    Ok(files)
}

fn plain(object: &impl Serialize) -> Result<String> {
    serde_saphyr::to_string(object).context("writing YAML")
}

/// What this command prints when it is given no options.
fn printed(command: &str) -> Result<String> {
    match Cli::try_parse_from(["bivouac", command])?.command {
        Command::Rbac(options) => print::yaml(&print::rbac_objects(&options)?),
        Command::Policies(options) => print::yaml(&print::policy_objects(&options)?),
        _ => bail!("`bivouac {command}` prints nothing that an installation needs"),
    }
}

#[cfg(test)]
mod tests {
    use super::{CHART, CRDS, files};
    use bivouac_tenancy::policies::OPERATOR_USER;
    use k8s_openapi::api::rbac::v1::PolicyRule;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use std::path::Path;

    #[test]
    fn what_is_written_reads_back_as_it_was() {
        let files = files().unwrap();
        for crd in bivouac_api::crds() {
            let path = Path::new(CRDS).join(format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural));
            assert_eq!(serde_saphyr::from_str::<CustomResourceDefinition>(&files[&path]).unwrap(), crd);
        }
        let rules: Vec<PolicyRule> =
            serde_saphyr::from_str(&files[&Path::new(CHART).join("cluster-rules.yaml")]).unwrap();
        assert_eq!(rules, bivouac::print::cluster_rules("*").unwrap());
    }

    #[test]
    fn only_the_chart_has_the_placeholder() {
        let files = files().unwrap();
        assert!(files[&Path::new(CHART).join("policies-validating.yaml")].contains(OPERATOR_USER));
        let plain = &files[Path::new("deploy/policies.yaml")];
        assert!(!plain.contains(OPERATOR_USER) && plain.contains("system:serviceaccount:bivouac-system:bivouac"));
    }
}
