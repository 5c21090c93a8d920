// SPDX-License-Identifier: Apache-2.0
//! One rule of a role: what it allows, and what it covers.

use serde_json::Value;

use super::Attributes;

/// What a role allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub names: Vec<String>,
    pub urls: Vec<String>,
}

fn any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

impl Rule {
    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array).into_iter().flatten();
        rules.map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let list = |key: &str| {
            let items = rule.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: list("verbs"),
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
        }
    }

    pub fn allows(&self, wanted: &Attributes<'_>) -> bool {
        if !any(&self.verbs, wanted.verb) {
            return false;
        }
        if !wanted.path.is_empty() {
            return self.urls.iter().any(|url| url_covers(url, wanted.path));
        }
        let named = self.names.is_empty() || self.names.iter().any(|name| name == wanted.name);
        any(&self.groups, wanted.group) && named && self.has_resource(wanted.resource, wanted.subresource)
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|one| match one.split_once('/') {
            _ if one == "*" => true,
            None => subresource.is_empty() && one == resource,
            Some((of, part)) => !subresource.is_empty() && part == subresource && (of == "*" || of == resource),
        })
    }

    /// The same as rules with one verb, one resource and so on each.
    pub fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let names: Vec<Vec<String>> = match self.names.as_slice() {
            [] => vec![Vec::new()],
            names => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    parts.extend(names.iter().map(|names| Self {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        names: names.clone(),
                        urls: Vec::new(),
                    }));
                }
            }
        }
        for url in &self.urls {
            for verb in &self.verbs {
                parts.push(Self { verbs: vec![verb.clone()], urls: vec![url.clone()], ..Self::default() });
            }
        }
        parts
    }

    /// Whether this rule allows all that a part of another allows.
    pub fn covers(&self, part: &Self) -> bool {
        let all = |of: &[String], wanted: &[String]| {
            of.iter().any(|one| one == "*") || wanted.iter().all(|one| of.contains(one))
        };
        let resources = |wanted: &String| match wanted.split_once('/') {
            _ if any(&self.resources, wanted) => true,
            Some((_, part)) => self.resources.contains(&format!("*/{part}")),
            None => false,
        };
        let names = self.names.is_empty()
            || (!part.names.is_empty() && part.names.iter().all(|name| self.names.contains(name)));
        let urls = part.urls.iter().all(|url| self.urls.iter().any(|own| url_covers(own, url)));
        all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && part.resources.iter().all(resources)
            && names
            && urls
    }

    /// As refusals show it.
    pub fn text(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = fields
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", go_list(list)))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// As Go shows a list of texts.
pub fn go_list(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" "))
}

fn url_covers(url: &str, path: &str) -> bool {
    url == "*" || url == path || url.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}

/// What nobody of the owners' rules covers, in as few rules as possible.
pub fn uncovered(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let missing = wanted.iter().flat_map(Rule::parts).filter(|part| !owned.iter().any(|rule| rule.covers(part)));
    let mut compact: Vec<Rule> = Vec::new();
    for part in missing {
        let same = compact.iter_mut().find(|rule| {
            part.urls.is_empty()
                && (&rule.groups, &rule.resources, &rule.names, &rule.urls)
                    == (&part.groups, &part.resources, &part.names, &part.urls)
        });
        match same {
            Some(rule) => {
                rule.verbs.extend(part.verbs.into_iter().filter(|verb| !rule.verbs.contains(verb)).collect::<Vec<_>>())
            }
            None => compact.push(part),
        }
    }
    compact
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        Rule::read(&value)
    }

    #[test]
    fn rules_allow_what_they_say() {
        let table = [
            (json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }), ("get", "", "pods", "", "x"), true),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }),
                ("list", "", "pods", "", ""),
                false,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }),
                ("get", "", "pods", "log", "x"),
                false,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"] }),
                ("get", "", "pods", "log", "x"),
                true,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["*/log"] }),
                ("get", "", "pods", "log", "x"),
                true,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["*/log"] }),
                ("get", "", "pods", "", "x"),
                false,
            ),
            (json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }), ("bind", "a", "b", "c", ""), true),
            (
                json!({ "verbs": ["get"], "apiGroups": ["apps"], "resources": ["*"] }),
                ("get", "", "pods", "", "x"),
                false,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["y"] }),
                ("get", "", "pods", "", "x"),
                false,
            ),
            (
                json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"] }),
                ("get", "", "pods", "", "x"),
                true,
            ),
        ];
        for (value, (verb, group, resource, subresource, name), expected) in table {
            let wanted = Attributes { verb, group, resource, subresource, namespace: "", name, path: "" };
            assert_eq!(rule(value.clone()).allows(&wanted), expected, "{value} {wanted:?}");
        }
        let paths = rule(json!({ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"] }));
        for (path, expected) in [("/healthz", true), ("/healthz/x", false), ("/apis/a", true), ("/apis", false)] {
            let wanted = Attributes { verb: "get", path, ..Attributes::default() };
            assert_eq!(paths.allows(&wanted), expected, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_shown_compactly() {
        let owned = [rule(json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }))];
        let wanted =
            [rule(json!({ "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "pods/log"] }))];
        let missing: Vec<String> = uncovered(&owned, &wanted).iter().map(Rule::text).collect();
        assert_eq!(
            missing,
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list" "watch"]}"#
            ]
        );
        assert!(
            uncovered(&[rule(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }))], &wanted).is_empty()
        );
    }
}
