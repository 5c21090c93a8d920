// SPDX-License-Identifier: Apache-2.0
//! Reference pages of the kinds, made from their schemas, so that they cannot differ from what is served.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};
use std::fmt::{self, Write};

/// One page in Markdown for every kind: its file name and its text.
pub fn markdown(crds: &[CustomResourceDefinition]) -> Vec<(String, String)> {
    let name = |crd: &CustomResourceDefinition| format!("{}_{}.md", crd.spec.group, crd.spec.names.plural);
    crds.iter().map(|crd| (name(crd), page(crd))).collect()
}

fn page(crd: &CustomResourceDefinition) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_page(&mut out, crd);
    out
}

fn write_page(out: &mut String, crd: &CustomResourceDefinition) -> fmt::Result {
    let names = &crd.spec.names;
    writeln!(out, "<!-- Made by `cargo xtask gen`. Do not edit. -->\n\n# {}\n", names.kind)?;
    write!(out, "Group `{}`, {}, plural `{}`", crd.spec.group, crd.spec.scope.to_lowercase(), names.plural)?;
    for (label, list) in [("short names", &names.short_names), ("categories", &names.categories)] {
        if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
            write!(out, ", {label} `{}`", list.join("`, `"))?;
        }
    }
    writeln!(out, ".")?;
    for version in &crd.spec.versions {
        write_version(out, version)?;
    }
    Ok(())
}

fn write_version(out: &mut String, version: &CustomResourceDefinitionVersion) -> fmt::Result {
    let state = match (version.served, version.storage) {
        (false, _) => " (not served)",
        (true, false) => " (served, not stored)",
        (true, true) => "",
    };
    writeln!(out, "\n## {}{state}\n", version.name)?;
    let Some(root) = version.schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref()) else { return Ok(()) };
    if let Some(text) = &root.description {
        writeln!(out, "{text}\n")?;
    }
    let mut fields = Fields::default();
    fields.collect("", root);
    writeln!(out, "| Field | Type | Required | Default | Description |\n|---|---|---|---|---|")?;
    out.push_str(&fields.rows);
    if !fields.rules.is_empty() {
        writeln!(out, "\nRules:\n\n{}", fields.rules.trim_end())?;
    }
    Ok(())
}

#[derive(Default)]
struct Fields {
    rows: String,
    rules: String,
}

impl Fields {
    /// Adds the rules of the schema at `path` and everything below it.
    fn collect(&mut self, path: &str, schema: &JSONSchemaProps) {
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let place = if path.is_empty() { "." } else { path };
            // Markdown would take `<name>` for HTML.
            let message = rule.message.as_deref().unwrap_or("must hold").replace('<', "&lt;");
            self.rules += &format!("- `{place}`: {message}. `{}`\n", rule.rule);
        }
        let required = schema.required.as_deref().unwrap_or_default();
        for (name, field) in schema.properties.iter().flatten() {
            if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.row(&path, field, required.contains(name));
            self.inside(&path, field);
        }
    }

    /// Goes into objects, lists and maps. Kubernetes' own types have no descriptions here, and one row each.
    fn inside(&mut self, path: &str, schema: &JSONSchemaProps) {
        if described_inside(schema) {
            self.collect(path, schema);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
            self.inside(&format!("{path}[]"), item);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
            self.inside(&format!("{path}.*"), value);
        }
    }

    fn row(&mut self, path: &str, schema: &JSONSchemaProps, required: bool) {
        let default = schema.default.as_ref().map(|JSON(value)| format!("`{value}`")).unwrap_or_default();
        let cells = [
            format!("`{path}`"),
            type_name(schema),
            if required { "yes".into() } else { String::new() },
            default,
            description(schema),
        ];
        self.rows += &format!("| {} |\n", cells.map(|cell| cell.replace('|', r"\|").replace('\n', " ")).join(" | "));
    }
}

/// Whether the schema has rules, or fields that someone described.
fn described_inside(schema: &JSONSchemaProps) -> bool {
    schema.x_kubernetes_validations.is_some()
        || schema.properties.iter().flatten().any(|(_, field)| field.description.is_some())
}

fn type_name(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".into();
    }
    if let Some(values) = &schema.enum_ {
        return values.iter().map(|JSON(value)| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    match (&schema.items, &schema.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(item)), _) => format!("list of {}", type_name(item)),
        (_, Some(JSONSchemaPropsOrBool::Schema(value))) => format!("map to {}", type_name(value)),
        _ => schema.type_.clone().unwrap_or_else(|| "any".into()),
    }
}

fn description(schema: &JSONSchemaProps) -> String {
    let text = schema.description.clone().unwrap_or_default();
    let limits = limits(schema);
    if limits.is_empty() { text } else { format!("{text} ({limits})").trim().into() }
}

fn limits(schema: &JSONSchemaProps) -> String {
    let range = |low: Option<String>, high: Option<String>, unit: &str| match (low, high) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{unit}")),
        (Some(low), None) => Some(format!("at least {low}{unit}")),
        (None, Some(high)) => Some(format!("at most {high}{unit}")),
        (None, None) => None,
    };
    let text = |number: Option<i64>| number.map(|n| n.to_string());
    let number = |number: Option<f64>| number.map(|n| n.to_string());
    let parts = [
        range(number(schema.minimum), number(schema.maximum), ""),
        range(text(schema.min_length), text(schema.max_length), " characters"),
        range(text(schema.min_items), text(schema.max_items), " entries"),
        range(text(schema.min_properties), text(schema.max_properties), " entries"),
        schema.pattern.as_ref().map(|pattern| format!("pattern `{pattern}`")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn page_of(kind: &str) -> String {
        let crds = crate::crds();
        let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some(kind)).unwrap();
        page(crd)
    }

    #[test]
    fn every_kind_has_a_page_of_its_own() {
        let crds = crate::crds();
        let pages = markdown(&crds);
        let names: std::collections::BTreeSet<_> = pages.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), crds.len());
    }

    #[test]
    fn a_row_tells_type_need_default_and_limits() {
        let page = page_of("workspaces.tenant.otterscale.io");
        let row = |path: &str| page.lines().find(|line| line.starts_with(&format!("| `{path}` |"))).unwrap();
        assert!(
            row("spec.members").contains("| list of object | yes |  | Who may work here."),
            "{}",
            row("spec.members")
        );
        assert!(row("spec.members").ends_with("(1 to 1024 entries) |"));
        assert!(row("spec.members[].role").contains("| `\"admin\"`, `\"edit\"`, `\"view\"` | yes |"));
        assert!(row("spec.networkIsolation.egress.allowDNS").contains("| boolean |  | `true` |"));
    }

    #[test]
    fn rules_are_listed_with_their_place() {
        let page = page_of("workspaces.tenant.otterscale.io");
        assert!(page.contains("- `spec.namespace`: namespace is immutable. `self == oldSelf`"));
    }

    #[test]
    fn types_of_kubernetes_take_one_row() {
        let page = page_of("workspaces.tenant.otterscale.io");
        assert!(page.contains("| `spec.resourceQuota` | object |"));
        assert!(!page.contains("spec.resourceQuota.hard"));
    }

    #[test]
    fn a_bar_in_a_pattern_does_not_break_the_table() {
        let page = page_of("workspaces.tenant.otterscale.io");
        let row = page.lines().find(|line| line.starts_with("| `spec.namespace` |")).unwrap();
        assert_eq!(row.replace(r"\|", "").matches('|').count(), 6);
    }
}
