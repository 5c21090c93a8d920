// SPDX-License-Identifier: Apache-2.0
//! ResourceQuotas: a write that needs more than is left is refused, any other is charged before it happens.
//!
//! What is limited and used is read from the status, as in the real server: a quota that its controller has not looked
//! at yet limits nothing. What goes away is credited by that controller too.

mod usage;

use std::collections::BTreeSet;

use bivouac_core::{Format, Quantity};
use serde_json::{Map, Value, json};

use super::{
    Operation, Review,
    resources::{self, Amounts},
};
use crate::{
    call::Call,
    merge,
    object::{Object, as_object, child_object, text},
    status::Status,
    store::{CommitError, Range, Stored, Write},
    write::reset_fields,
};

/// On disk only one writer of a quota wins per round, so this many may write at once.
const TRIES: usize = 1000;

pub async fn charge(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let wanted = match review.operation {
        Operation::Create => true,
        Operation::Update => matches!(&*call.resource.plural, "services" | "persistentvolumeclaims"),
        Operation::Delete => false,
    };
    let (true, None, false) = (wanted, &call.target.subresource, review.namespace.is_empty()) else { return Ok(()) };
    let Some(object) = review.object() else { return Ok(()) };
    // A quota is charged once, however often others get in the way.
    let mut charged = BTreeSet::new();
    for _ in 0..TRIES {
        let planned = plan(call, review, object, &charged)?;
        if call.options.is_dry_run() {
            return Ok(());
        }
        let mut raced = false;
        for (stored, quota, used) in planned {
            if write(call, &stored, &quota, &used).await? {
                charged.insert(quota.name().to_owned());
            } else {
                raced = true;
            }
        }
        if !raced {
            return Ok(());
        }
    }
    let why = "Operation cannot be fulfilled on resourcequotas: the quota is changing too fast";
    Err(review.forbidden(call, why))
}

type Charge = (Stored, Value, Amounts);

/// The quotas that the write is charged to, with what they will have used.
fn plan(call: &Call, review: &Review<'_>, object: &Value, done: &BTreeSet<String>) -> Result<Vec<Charge>, Status> {
    let (group, plural) = (&*call.resource.group, &*call.resource.plural);
    let mut interesting = Vec::new();
    for (stored, quota) in quotas(call, review.namespace).into_iter().filter(|(_, quota)| !done.contains(quota.name()))
    {
        let hard = resources::at(&quota, "/status/hard");
        let limited = usage::about(group, plural, &hard);
        if limited.is_empty() || !in_scope(&quota, plural, object) {
            continue;
        }
        if plural == "pods"
            && let Some(missing) = usage::missing(object, &limited)
        {
            return Err(review.forbidden(call, format!("failed quota: {}: {missing}", quota.name())));
        }
        let used = resources::at(&quota, "/status/used");
        if limited.iter().any(|name| !used.contains_key(name)) {
            let names: Vec<&str> = limited.iter().map(String::as_str).collect();
            let why = format!("status unknown for quota: {}, resources: {}", quota.name(), names.join(","));
            return Err(review.forbidden(call, why));
        }
        interesting.push((stored, quota, hard, used));
    }
    if interesting.is_empty() {
        return Ok(Vec::new());
    }
    let needs = needs(review, group, plural, object);
    let mut charged = Vec::new();
    for (stored, quota, hard, mut used) in interesting {
        let requested: Amounts = needs
            .iter()
            .filter(|(name, _)| hard.contains_key(*name))
            .map(|(name, amount)| (name.clone(), *amount))
            .collect();
        if requested.is_empty() {
            continue;
        }
        let before = used.clone();
        resources::add(&mut used, &requested);
        let exceeded: BTreeSet<&String> = requested.keys().filter(|name| used.get(*name) > hard.get(*name)).collect();
        if !exceeded.is_empty() {
            let [requested, before, hard] = [&requested, &before, &hard].map(|amounts| shown(amounts, &exceeded));
            let name = quota.name();
            let why = format!("exceeded quota: {name}, requested: {requested}, used: {before}, limited: {hard}");
            return Err(review.forbidden(call, why));
        }
        charged.push((stored, quota, used));
    }
    Ok(charged)
}

/// What the write needs more than what is there.
fn needs(review: &Review<'_>, group: &str, plural: &str, object: &Value) -> Amounts {
    let mut needs = usage::of(group, plural, object);
    if let (Operation::Update, Some(old)) = (review.operation, review.old) {
        for (name, before) in usage::of(group, plural, old) {
            let entry = needs.entry(name).or_default();
            *entry = entry.checked_sub(before).unwrap_or(*entry);
        }
    }
    needs.retain(|_, amount| !amount.is_zero());
    needs
}

fn shown(amounts: &Amounts, names: &BTreeSet<&String>) -> String {
    let some = amounts.iter().filter(|(name, _)| names.contains(name));
    some.map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
}

fn quotas(call: &Call, namespace: &str) -> Vec<(Stored, Value)> {
    let Some(resource) = call.server.registry().find("", "v1", "resourcequotas").cloned() else { return Vec::new() };
    let range = Range { namespace: Some(namespace), ..Range::default() };
    let page = call.server.store.range(&resource.keyspace, &range, |_| true);
    let items = page.map(|page| page.items).unwrap_or_default();
    items
        .into_iter()
        .map(|stored| {
            let quota = resource.read(&stored);
            (stored, quota)
        })
        .collect()
}

/// Writes what is used, as the real server does: through the status, as a manager of its own. False if somebody else
/// wrote in between.
async fn write(call: &Call, stored: &Stored, quota: &Value, used: &Amounts) -> Result<bool, Status> {
    let Some(resource) = call.server.registry().find("", "v1", "resourcequotas").cloned() else { return Ok(true) };
    let mut new = quota.clone();
    let texts: Map<String, Value> =
        used.iter().map(|(name, amount)| (name.clone(), amount.to_string().into())).collect();
    child_object(as_object(&mut new), "status").insert("used".into(), Value::Object(texts));
    let now = call.server.now();
    let reset = reset_fields(&resource, "status");
    let by = merge::Write {
        kind: resource.merge_kind(),
        manager: "kube-apiserver",
        subresource: "status",
        now: &now,
        reset: &reset,
    };
    let mut new = merge::update(Some(quota), new, &by);
    let outcome = call
        .server
        .store
        .commit(&resource.keyspace, stored.key(), Write::Update(stored.revision()), |revision| {
            resource.draft(&mut new, revision)
        })
        .await;
    match outcome {
        Ok(_) => Ok(true),
        Err(CommitError::Failed(failure)) => Err(Status::internal(failure)),
        Err(_) => Ok(false),
    }
}

/// Whether the object is among those that the quota is about.
fn in_scope(quota: &Value, plural: &str, object: &Value) -> bool {
    let plain = quota.at("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
    let plain = plain.map(|scope| json!({ "scopeName": scope, "operator": "Exists" }));
    let selected = quota.at("/spec/scopeSelector/matchExpressions").and_then(Value::as_array).into_iter().flatten();
    plain.chain(selected.cloned()).all(|scope| plural == "pods" && matches_scope(&scope, object))
}

fn matches_scope(scope: &Value, pod: &Value) -> bool {
    let ends = pod.at("/spec/activeDeadlineSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0);
    match text(scope, "/scopeName") {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = text(pod, "/spec/priorityClassName");
            let values = scope.get("values").and_then(Value::as_array).into_iter().flatten();
            let named = values.filter_map(Value::as_str).any(|value| value == class);
            match text(scope, "/operator") {
                "In" => named && !class.is_empty(),
                "NotIn" => !named,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn is_best_effort(pod: &Value) -> bool {
    let zero = |amounts: Amounts| {
        let compute = ["cpu", "memory"].into_iter().filter_map(|name| amounts.get(name).copied());
        compute.fold(Quantity::from_units(0, Format::Decimal), |sum, one| sum.max(one)).is_zero()
    };
    zero(resources::requests(pod)) && zero(resources::limits(pod))
}

/// Whether an affinity of the pod looks into other namespaces.
fn crosses_namespaces(value: &Value) -> bool {
    fn looks(value: &Value) -> bool {
        match value {
            Value::Object(map) if map.contains_key("topologyKey") => {
                let named = map.get("namespaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
                named || map.contains_key("namespaceSelector")
            }
            Value::Object(map) => map.values().any(looks),
            Value::Array(list) => list.iter().any(looks),
            _ => false,
        }
    }
    ["podAffinity", "podAntiAffinity"]
        .into_iter()
        .any(|kind| value.at(&format!("/spec/affinity/{kind}")).is_some_and(looks))
}
