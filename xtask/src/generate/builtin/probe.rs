// SPDX-License-Identifier: Apache-2.0
//! Which zero values the server does not keep.
//!
//! Go cannot tell `false` from absent unless the field is a pointer, and OpenAPI does not say which fields are. So we
//! send each zero value once. When the answer is the same as without it, zero means absent. A refusal shows that the
//! server can tell them apart, because the sample without the field is valid. Lists and maps need no question: empty
//! ones are never kept.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use bivouac_apiserver::builtin::Builtins;
use bivouac_apiserver::schema::{Schema, Shape};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

use super::learn::Sample;
use super::read::Server;

const AT_ONCE: usize = 8;

/// One question: this sample with a zero value at this place.
struct Probe<'a> {
    ty: String,
    field: String,
    sample: &'a Sample,
    given: Value,
    place: String,
    zero: Value,
}

/// The fields whose zero value is not kept, by the name of the type.
pub async fn zero(server: &Server, known: &Builtins, samples: &[Sample]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut probes = Vec::new();
    for sample in samples {
        let Some(root) = known.kind(&sample.of.group, &sample.of.version, &sample.of.kind) else { continue };
        let mut places = Vec::new();
        match (sample.status, known.types.at(root).field("status"), sample.given.get("status")) {
            (true, Some((_, schema)), Some(given)) => find(schema, given, &mut "/status".to_owned(), &mut places),
            _ => find(known.types.at(root), &sample.given, &mut String::new(), &mut places),
        }
        probes.extend(places.into_iter().filter_map(|place| Probe::new(sample, place)));
    }
    // Each field is asked once, in the first sample that can.
    let mut asked = BTreeSet::new();
    probes.retain(|probe: &Probe<'_>| asked.insert((probe.ty.clone(), probe.field.clone())));
    eprintln!("gen: asking about {} zero values", probes.len());
    let answers = futures::stream::iter(probes).map(|probe| async move {
        let answer = server.write(probe.sample.method.clone(), &probe.sample.path, &probe.given).await?;
        // A default that is itself zero would look like one that was filled in again.
        let dropped = |answer: &Value| answer.pointer(&probe.place) != Some(&probe.zero);
        let same = answer.is_ok_and(|answer| {
            dropped(&answer) && probe.sample.comparable(&answer) == probe.sample.comparable(&probe.sample.answer)
        });
        anyhow::Ok(same.then_some((probe.ty, probe.field)))
    });
    let found: Vec<_> = answers.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut zero = BTreeMap::<String, BTreeSet<String>>::new();
    for (ty, field) in found.into_iter().flatten() {
        zero.entry(ty).or_default().insert(field);
    }
    Ok(zero)
}

/// What is allocated or derived from the uid, and is another in each answer.
const VOLATILE: [&str; 7] = [
    "/spec/clusterIP",
    "/spec/clusterIPs",
    "/spec/healthCheckNodePort",
    "/spec/ports",
    "/spec/selector",
    "/spec/template/metadata",
    "/status",
];

impl Sample {
    fn comparable(&self, answer: &Value) -> Value {
        if self.status {
            return answer.get("status").cloned().unwrap_or_default();
        }
        let mut answer = answer.clone();
        if let Some(fields) = answer.as_object_mut() {
            fields.remove("metadata");
        }
        for path in VOLATILE {
            if let Some(value) = answer.pointer_mut(path) {
                *value = Value::Null;
            }
        }
        answer
    }
}

/// Where a zero value can go.
struct Spot {
    ty: String,
    field: String,
    parent: String,
    zero: Value,
}

fn find(schema: Schema<'_>, given: &Value, path: &mut String, spots: &mut Vec<Spot>) {
    let down = |name: &str, inner: Schema<'_>, value: &Value, path: &mut String, spots: &mut Vec<Spot>| {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        find(inner, value, path, spots);
        path.truncate(length);
    };
    match (schema.shape(), given) {
        (Shape::Struct(of), Value::Object(fields)) => {
            let own: &[&str] = if path.is_empty() { &["metadata", "status", "apiVersion", "kind"] } else { &[] };
            for name in of.fields.keys().filter(|name| !own.contains(&&***name)) {
                let (Some((_, inner)), Some(ty)) = (schema.field(name), &schema.ty().name) else { continue };
                match (fields.get(&**name), zero_of(inner)) {
                    (Some(value), _) => down(name, inner, value, path, spots),
                    (None, Some(zero)) => {
                        spots.push(Spot { ty: ty.to_string(), field: name.to_string(), parent: path.clone(), zero });
                    }
                    (None, None) => {}
                }
            }
        }
        (Shape::List(_), Value::Array(items)) => {
            let Some(inner) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                down(&index.to_string(), inner, item, path, spots);
            }
        }
        (Shape::Map { values, .. }, Value::Object(fields)) => {
            for (name, value) in fields {
                down(name, schema.at(*values), value, path, spots);
            }
        }
        _ => {}
    }
}

fn zero_of(schema: Schema<'_>) -> Option<Value> {
    match schema.shape() {
        Shape::Boolean => Some(json!(false)),
        Shape::Integer { .. } | Shape::Number { .. } => Some(json!(0)),
        // A time has no zero value that can be written.
        Shape::String { .. } if schema.ty().name.is_none() => Some(json!("")),
        _ => None,
    }
}

impl<'a> Probe<'a> {
    fn new(sample: &'a Sample, spot: Spot) -> Option<Self> {
        let mut given = sample.given.clone();
        given.pointer_mut(&spot.parent)?.as_object_mut()?.insert(spot.field.clone(), spot.zero.clone());
        let place = format!("{}/{}", spot.parent, spot.field);
        Some(Self { ty: spot.ty, field: spot.field, sample, given, place, zero: spot.zero })
    }
}
