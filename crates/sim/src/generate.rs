// SPDX-License-Identifier: Apache-2.0
//! Stories that nobody wrote: `tenancy/generated#N` follows from the number N alone.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::scenario::{Expectation, Patch, Reference, Scenario, Step};

/// What names of generated scenarios begin with.
pub const PREFIX: &str = "tenancy/generated#";

const API: &str = "tenant.otterscale.io/v1alpha1";
const ROLES: [&str; 3] = ["admin", "edit", "view"];
const PEOPLE: [&str; 5] = ["ada", "bob", "eve", "grace@example.com", "alan"];
const CHILDREN: [(&str, &str, &str); 4] = [
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "workspace-role-binding-admin"),
    ("v1", "ResourceQuota", "workspace-resource-quota"),
    ("v1", "LimitRange", "workspace-limit-range"),
    ("networking.k8s.io/v1", "NetworkPolicy", "workspace-network-policy"),
];

/// A Workspace of the story, and what is asked of it now.
struct Team {
    name: String,
    spec: Value,
    there: bool,
}

pub fn scenario(number: u64) -> Scenario {
    let mut random = StdRng::seed_from_u64(number);
    let mut timeline = Vec::new();
    let mut teams: Vec<Team> = (1..=random.random_range(1..=4))
        .map(|n| Team { name: format!("team-{n}"), spec: spec(&mut random, n), there: true })
        .collect();
    timeline.extend(teams.iter().map(|team| apply(random_start(&mut random), team)));
    let mut at = 30;
    for _ in 0..random.random_range(3..=8) {
        at += random.random_range(0..40);
        let chosen = random.random_range(0..teams.len());
        if let Some(team) = teams.get_mut(chosen) {
            timeline.extend(happen(&mut random, at, team));
        }
    }
    let expect = teams.iter().map(expectation).collect();
    timeline.sort_by_key(|step| step.at);
    Scenario {
        name: format!("{PREFIX}{number}"),
        about: "A story made from a number.".to_owned(),
        controllers: "tenancy".to_owned(),
        leader_election: false,
        before: Vec::new(),
        timeline,
        expect,
        secret: Vec::new(),
        settles_within: 3_600,
    }
}

fn random_start(random: &mut StdRng) -> u32 {
    random.random_range(1..20)
}

/// What one Workspace asks for.
fn spec(random: &mut StdRng, n: u32) -> Value {
    let mut spec = json!({ "namespace": format!("team-{n}"), "members": members(random) });
    let Some(fields) = spec.as_object_mut() else { return spec };
    for part in ["resourceQuota", "limitRange", "networkIsolation"] {
        if random.random() {
            fields.insert(part.to_owned(), part_of(random, part));
        }
    }
    spec
}

/// At least one admin.
fn members(random: &mut StdRng) -> Value {
    let mut members = vec![json!({ "role": "admin", "subject": "ada" })];
    for person in PEOPLE.iter().skip(1) {
        if random.random_ratio(1, 3) {
            members.push(json!({ "role": ROLES.choose(random), "subject": person }));
        }
    }
    Value::Array(members)
}

fn part_of(random: &mut StdRng, part: &str) -> Value {
    let number = random.random_range(1..9);
    match part {
        "resourceQuota" => json!({ "hard": { "requests.cpu": format!("{number}"), "pods": "50" } }),
        "limitRange" => json!({ "limits": [{ "type": "Container", "default": { "cpu": format!("{number}00m") } }] }),
        _ => json!({ "enabled": true, "allowedNamespaces": [format!("zone-{number}")] }),
    }
}

/// One thing that happens to a Workspace.
fn happen(random: &mut StdRng, at: u32, team: &mut Team) -> Option<Step> {
    let of = reference(API, "Workspace", &team.name, "");
    match random.random_range(0..8) {
        0 => Some(Step { restart: true, ..nothing(at) }),
        _ if !team.there => {
            team.there = true;
            Some(apply(at, team))
        }
        1 => {
            team.there = false;
            Some(Step { delete: Some(of), ..nothing(at) })
        }
        2 => Some(Step { delete: Some(reference("v1", "Namespace", &team.name, "")), ..nothing(at) }),
        3 | 4 => {
            let part = *["resourceQuota", "limitRange", "networkIsolation"].choose(random)?;
            let wanted = if random.random() { part_of(random, part) } else { Value::Null };
            team.spec.as_object_mut()?.insert(part.to_owned(), wanted.clone());
            Some(Step { patch: Some(Patch { of, with: json!({ "spec": { part: wanted } }) }), ..nothing(at) })
        }
        5 => {
            let members = members(random);
            team.spec.as_object_mut()?.insert("members".to_owned(), members.clone());
            Some(Step { patch: Some(Patch { of, with: json!({ "spec": { "members": members } }) }), ..nothing(at) })
        }
        // Somebody edits a child by hand. The binding of the admins is always there.
        6 => {
            let (api, kind, name) = CHILDREN.first()?;
            let of = reference(api, kind, name, &team.name);
            Some(Step { patch: Some(Patch { of, with: json!({ "subjects": [] }) }), ..nothing(at) })
        }
        _ => {
            let (api, kind, name) = CHILDREN.iter().find(|(_, kind, _)| has_child(team, kind))?;
            Some(Step { delete: Some(reference(api, kind, name, &team.name)), ..nothing(at) })
        }
    }
}

fn has_child(team: &Team, kind: &str) -> bool {
    let wants = |part: &str| team.spec.get(part).is_some_and(|value| !value.is_null());
    match kind {
        "ResourceQuota" => wants("resourceQuota"),
        "LimitRange" => wants("limitRange"),
        "NetworkPolicy" => wants("networkIsolation"),
        _ => true,
    }
}

fn apply(at: u32, team: &Team) -> Step {
    let mut spec = team.spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let object = json!({ "apiVersion": API, "kind": "Workspace", "metadata": { "name": team.name }, "spec": spec });
    Step { apply: Some(object), ..nothing(at) }
}

fn expectation(team: &Team) -> Expectation {
    let of = reference(API, "Workspace", &team.name, "");
    match team.there {
        true => {
            let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
            Expectation { exists: Some(of), absent: None, has: Some(ready) }
        }
        false => Expectation { exists: None, absent: Some(of), has: None },
    }
}

fn reference(api_version: &str, kind: &str, name: &str, namespace: &str) -> Reference {
    let [api_version, kind, name, namespace] = [api_version, kind, name, namespace].map(str::to_owned);
    Reference { api_version, kind, name, namespace }
}

fn nothing(at: u32) -> Step {
    Step { at, repeat: 1, apply: None, patch: None, delete: None, restart: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_makes_one_story_and_another_number_another() {
        let told = |number| format!("{:?}", scenario(number));
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn stories_are_long_enough_to_say_something() {
        for number in 0..200 {
            let story = scenario(number);
            assert!(story.timeline.len() >= 4, "{number}: {}", story.timeline.len());
            assert!(!story.expect.is_empty());
        }
    }
}
