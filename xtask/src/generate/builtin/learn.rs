// SPDX-License-Identifier: Apache-2.0
//! Defaults, learned from what the server fills in.
//!
//! The server has its defaults by type, so we look for rules of the form "a `ContainerPort` without `protocol` gets
//! `TCP`". A rule holds when every place where the field was absent got the same value. Where only the places of one
//! kind agree, the rule is of that place. Where they do not agree either, the default depends on something else, and
//! somebody has to write it by hand.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use bivouac_apiserver::builtin::{Builtins, GroupVersionKind, Place};
use bivouac_apiserver::schema::{Schema, Shape};
use http::Method;
use serde_json::{Map, Value};

use super::read::{Server, text};

/// Depends on who asks and when, or on other fields in a way that samples cannot show.
const NOT_LEARNED: [&str; 31] = [
    "CertificateSigningRequestSpec.extra",
    "CertificateSigningRequestSpec.groups",
    "CertificateSigningRequestSpec.uid",
    "CertificateSigningRequestSpec.username",
    "Container.imagePullPolicy",
    "CustomResourceDefinitionNames.listKind",
    "CustomResourceDefinitionNames.singular",
    "CustomResourceDefinitionStatus.storedVersions",
    "EphemeralContainer.imagePullPolicy",
    "HorizontalPodAutoscalerBehavior.scaleDown",
    "HorizontalPodAutoscalerBehavior.scaleUp",
    "HPAScalingRules.policies",
    "HPAScalingRules.selectPolicy",
    "HPAScalingRules.stabilizationWindowSeconds",
    "ImageVolumeSource.pullPolicy",
    "JobSpec.parallelism",
    "JobSpec.selector",
    "LoadBalancerIngress.ipMode",
    "NamespaceSpec.finalizers",
    "PersistentVolumeClaimSpec.dataSource",
    "PersistentVolumeClaimSpec.dataSourceRef",
    "PersistentVolumeStatus.lastPhaseTransitionTime",
    "PodStatus.conditions",
    "PodStatus.phase",
    "PodStatus.qosClass",
    "PodTemplateSpec.metadata",
    "ServicePort.nodePort",
    "ServicePort.targetPort",
    "ServiceSpec.clusterIP",
    "ServiceSpec.clusterIPs",
    "ServiceSpec.healthCheckNodePort",
];

/// An object, how it is written, and what the server made of it.
pub struct Sample {
    pub method: Method,
    pub path: String,
    /// Whether it shows the status or the rest.
    pub status: bool,
    pub of: GroupVersionKind,
    pub given: Value,
    pub answer: Value,
}

#[derive(Default)]
pub struct Learned {
    /// By the name of the type.
    pub fill: BTreeMap<String, Map<String, Value>>,
    pub places: Vec<Place>,
}

/// The name of a type and of a field of it.
type Key = (String, String);

/// What became of an absent field, and where.
struct Sight<'a> {
    of: &'a GroupVersionKind,
    path: Vec<Box<str>>,
    value: Option<&'a Value>,
}

/// Asks the server about every sample. All of them have to be valid.
pub async fn ask(server: &Server, known: &Builtins, samples: Vec<Value>) -> Result<Vec<Sample>> {
    let mut asked = Vec::new();
    for given in samples {
        let (group, version) = text(&given, "apiVersion").split_once('/').unwrap_or(("", text(&given, "apiVersion")));
        let of = GroupVersionKind::new(group, version, text(&given, "kind"));
        let found = known
            .resources
            .iter()
            .find(|one| one.kind == of.kind && one.group == of.group && one.version == of.version);
        let resource = found.with_context(|| format!("no resource serves {of:?}"))?;
        let root = if group.is_empty() { "/api" } else { "/apis/" };
        let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
        let path = format!("{root}{group}/{version}{namespace}/{}", resource.plural);
        asked.push(one(server, path, of, given).await?);
    }
    Ok(asked)
}

/// A sample with a status is created for good, because only what exists has a status.
async fn one(server: &Server, path: String, of: GroupVersionKind, mut given: Value) -> Result<Sample> {
    let status = given.as_object_mut().and_then(|fields| fields.remove("status"));
    let dry = format!("{path}?dryRun=All");
    let (method, path) = match &status {
        None => (Method::POST, dry),
        Some(status) => {
            given = accepted(server.write(Method::POST, &path, &given).await?)?;
            let name = given.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(fields) = given.as_object_mut() {
                fields.insert("status".to_owned(), status.clone());
            }
            (Method::PUT, format!("{path}/{name}/status?dryRun=All"))
        }
    };
    let answer = accepted(server.write(method.clone(), &path, &given).await?)?;
    Ok(Sample { method, path, status: status.is_some(), of, given, answer })
}

fn accepted(answer: std::result::Result<Value, String>) -> Result<Value> {
    answer.map_err(|message| anyhow!("a sample is refused: {message}"))
}

pub fn rules(known: &Builtins, samples: &[Sample]) -> Learned {
    let mut seen = BTreeMap::<Key, Vec<Sight<'_>>>::new();
    for sample in samples {
        let Some(root) = known.kind(&sample.of.group, &sample.of.version, &sample.of.kind) else { continue };
        let mut eye = Eye { known, status: sample.status, of: &sample.of, path: Vec::new(), seen: &mut seen };
        eye.look(known.types.at(root), &sample.given, &sample.answer);
    }
    let mut learned = Learned::default();
    for ((ty, field), sights) in seen {
        if NOT_LEARNED.contains(&format!("{}.{field}", ty.rsplit('.').next().unwrap_or_default()).as_str()) {
            continue;
        }
        match agreed(sights.iter()) {
            Some(None) => {}
            Some(Some(value)) => drop(learned.fill.entry(ty).or_default().insert(field, value.clone())),
            None => by_place(&ty, &field, &sights, &mut learned.places),
        }
    }
    learned.places.sort_by(|a, b| (&*a.of.kind, &a.path).cmp(&(&*b.of.kind, &b.path)));
    learned
}

/// The value that all sights show, or nothing.
fn agreed<'a>(sights: impl Iterator<Item = &'a Sight<'a>>) -> Option<Option<&'a Value>> {
    let mut values = sights.map(|sight| sight.value);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn by_place(ty: &str, field: &str, sights: &[Sight<'_>], places: &mut Vec<Place>) {
    let mut groups = BTreeMap::<(&str, &[Box<str>]), Vec<&Sight<'_>>>::new();
    for sight in sights {
        groups.entry((&sight.of.kind, &sight.path)).or_default().push(sight);
    }
    for ((kind, path), group) in groups {
        let Some(value) = agreed(group.iter().copied()) else {
            eprintln!("gen: {ty}.{field} depends on something at {kind} {}; write it by hand", path.join("."));
            continue;
        };
        let (Some(value), Some(first)) = (value, group.first()) else { continue };
        eprintln!("gen: {ty}.{field} is of {kind} {} only", path.join("."));
        match places.iter_mut().find(|place| place.of == *first.of && place.path == path) {
            Some(place) => drop(place.fill.insert(field.to_owned(), value.clone())),
            None => {
                let fill = [(field.to_owned(), value.clone())].into_iter().collect();
                places.push(Place { of: first.of.clone(), path: path.to_vec(), fill });
            }
        }
    }
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// Walks what was given and what came back side by side.
struct Eye<'s, 'a> {
    known: &'s Builtins,
    status: bool,
    of: &'a GroupVersionKind,
    path: Vec<Box<str>>,
    seen: &'s mut BTreeMap<Key, Vec<Sight<'a>>>,
}

impl<'a> Eye<'_, 'a> {
    fn look(&mut self, schema: Schema<'_>, given: &'a Value, answer: &'a Value) {
        match (schema.shape(), given, answer) {
            (Shape::Struct(of), Value::Object(given), Value::Object(answer)) => {
                for name in of.fields.keys() {
                    // An object's own metadata is the request's business.
                    let other = **name == *"metadata" || self.status && **name != *"status";
                    if self.path.is_empty() && other {
                        continue;
                    }
                    let Some((_, inner)) = schema.field(name) else { continue };
                    let always = self.known.filled(schema.id(), name);
                    match (given.get(&**name), answer.get(&**name)) {
                        // OpenAPI says already that these are always written.
                        (None, Some(answer)) if always == Some(&*EMPTY) => self.below(name, inner, &EMPTY, answer),
                        (None, Some(answer)) if always == Some(answer) => {}
                        (None, value) => self.note(schema, name, value),
                        (Some(given), Some(answer)) => self.below(name, inner, given, answer),
                        (Some(_), None) => {}
                    }
                }
            }
            (Shape::List(_), Value::Array(given), Value::Array(answer)) => {
                let Some(inner) = schema.items() else { return };
                for (given, answer) in given.iter().zip(answer) {
                    self.below("*", inner, given, answer);
                }
            }
            (Shape::Map { values, .. }, Value::Object(given), Value::Object(answer)) => {
                for (name, given) in given {
                    if let Some(answer) = answer.get(name) {
                        self.below("*", schema.at(*values), given, answer);
                    }
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, name: &str, schema: Schema<'_>, given: &'a Value, answer: &'a Value) {
        self.path.push(name.into());
        self.look(schema, given, answer);
        self.path.pop();
    }

    fn note(&mut self, schema: Schema<'_>, field: &str, value: Option<&'a Value>) {
        if let Some(ty) = &schema.ty().name {
            let sight = Sight { of: self.of, path: self.path.clone(), value };
            self.seen.entry((ty.to_string(), field.to_owned())).or_default().push(sight);
        }
    }
}
