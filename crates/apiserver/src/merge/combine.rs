// SPDX-License-Identifier: Apache-2.0
//! The live object with an applied configuration laid over it. Nothing is removed here, see [`super::prune`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::typed::{self, Kind};
use crate::schema::{List, Schema};

pub fn combine(live: &Value, applied: &Value, schema: Schema<'_>) -> Value {
    match typed::kind(schema, applied) {
        Kind::Scalar => applied.clone(),
        Kind::List => match (typed::associative(schema), as_items(live), as_items(applied)) {
            (None, ..) | (_, None, _) => applied.clone(),
            (_, Some(_), None) => live.clone(),
            (Some((list, items)), Some(live), Some(applied)) => combine_items(list, items, live, applied),
        },
        Kind::Map if typed::is_atomic(schema) && !fault!(AtomicMerged) => applied.clone(),
        Kind::Map => match (as_fields(live), as_fields(applied)) {
            (None, _) => applied.clone(),
            (Some(_), None) => live.clone(),
            (Some(live), Some(applied)) => combine_fields(live, applied, schema),
        },
    }
}

/// The items, if there are any. An empty list and `null` are the same to a merge, except that the applied one stays.
fn as_items(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|items| !items.is_empty())
}

fn as_fields(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|fields| !fields.is_empty())
}

fn combine_fields(live: &Map<String, Value>, applied: &Map<String, Value>, schema: Schema<'_>) -> Value {
    let mut fields = Map::new();
    for (key, live) in live {
        let combined = match applied.get(key) {
            Some(applied) => combine(live, applied, typed::child(schema, key).0),
            None => live.clone(),
        };
        fields.insert(key.clone(), combined);
    }
    for (key, applied) in applied.iter().filter(|(key, _)| !live.contains_key(*key)) {
        fields.insert(key.clone(), applied.clone());
    }
    Value::Object(fields)
}

/// Items in both lists follow the order of the applied one; items of the live one alone stay near their neighbours.
fn combine_items(list: &List, items: Schema<'_>, live: &[Value], applied: &[Value]) -> Value {
    let elements = |values| -> Vec<_> {
        let element = |item| typed::element(list, items, item).ok().map(|at| (at, item));
        <&[Value]>::into_iter(values).filter_map(element).collect()
    };
    let (left, right) = (elements(live), elements(applied));
    // A live item that comes more than once is merged with nothing.
    let mut in_left = BTreeMap::new();
    for (at, item) in &left {
        in_left.entry(at).and_modify(|item| *item = None).or_insert(Some(*item));
    }
    let in_right: BTreeSet<_> = right.iter().map(|(at, _)| at).collect();
    let merged = |at: &_, applied: &Value| match in_left.get(at) {
        Some(Some(live)) => combine(live, applied, items),
        _ => applied.clone(),
    };

    let mut shared: VecDeque<_> = right.iter().map(|(at, _)| at).filter(|at| in_left.contains_key(at)).collect();
    let mut done = BTreeSet::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        if let (Some((l, _)), Some((r, item))) = (left.peek(), right.peek()) {
            if l == r {
                out.push(merged(r, item));
                done.insert(r);
                shared.pop_front();
                left.next();
                right.next();
                continue;
            }
            // In both lists, but the applied order wants another one first.
            if in_right.contains(l) && shared.front().is_some_and(|next| *next != l) {
                left.next();
                continue;
            }
        }
        if let Some((l, item)) = left.peek() {
            if !in_right.contains(l) {
                out.push((*item).clone());
                left.next();
                continue;
            }
            if done.contains(l) {
                left.next();
            }
        }
        match right.next() {
            Some((r, item)) => {
                out.push(merged(r, item));
                done.insert(r);
                shared.pop_front_if(|next| *next == r);
            }
            None if left.peek().is_none() => return Value::Array(out),
            None => {}
        }
    }
}
