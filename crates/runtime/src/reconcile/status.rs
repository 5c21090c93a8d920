// SPDX-License-Identifier: Apache-2.0
//! The status of the object itself: conditions get their times here, and nothing is written twice.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, Value};

use super::plan::Verdict;

/// The status to write, and what is worth telling about it.
#[derive(Debug, PartialEq)]
pub struct StatusChange {
    /// The complete status we own.
    pub body: Value,
    /// Fields that stand there from an earlier writer and must go.
    pub leftovers: Vec<String>,
    /// Whether a condition changed its status or its reason: then events are due.
    pub transition: bool,
}

/// Compares what the plan says with what the object shows. `None`: nothing to write.
pub fn change(
    live: Option<&Value>,
    wanted: Value,
    verdicts: &[Verdict],
    generation: Option<i64>,
    now: Timestamp,
) -> Option<StatusChange> {
    let empty = Map::new();
    let live = live.and_then(Value::as_object).unwrap_or(&empty);
    let live_conditions: Vec<Condition> =
        live.get("conditions").and_then(|list| serde_json::from_value(list.clone()).ok()).unwrap_or_default();

    let mut body = wanted.as_object().cloned().unwrap_or_default();
    let conditions = conditions(&live_conditions, verdicts, generation, now);
    let ours = |condition: &&Condition| verdicts.iter().any(|verdict| verdict.type_ == condition.type_);
    let mut shown: Vec<_> = live_conditions.iter().filter(ours).cloned().collect();
    shown.sort_by(|a, b| a.type_.cmp(&b.type_));

    let leftovers: Vec<String> =
        live.keys().filter(|key| *key != "conditions" && !body.contains_key(*key)).cloned().collect();
    let same = leftovers.is_empty()
        && shown == conditions
        && body.iter().all(|(key, value)| live.get(key).is_some_and(|have| have == value));
    if same {
        return None;
    }
    let transition = verdicts.iter().any(|verdict| {
        let before = live_conditions.iter().find(|live| live.type_ == verdict.type_);
        before.is_none_or(|live| live.status != verdict.status.as_str() || live.reason != verdict.reason)
    });
    if !conditions.is_empty() {
        body.insert("conditions".into(), serde_json::to_value(&conditions).unwrap_or_default());
    }
    Some(StatusChange { body: Value::Object(body), leftovers, transition })
}

/// As `SetStatusCondition` does it: the transition time moves only when the status flips. Sorted by type.
fn conditions(live: &[Condition], verdicts: &[Verdict], generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    // The API server keeps whole seconds; anything finer would differ at the next look.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let finished = |verdict: &Verdict| {
        let before = live.iter().find(|live| live.type_ == verdict.type_);
        let since =
            before.filter(|live| live.status == verdict.status.as_str()).map(|live| live.last_transition_time.clone());
        Condition {
            type_: verdict.type_.into(),
            status: verdict.status.as_str().into(),
            reason: verdict.reason.into(),
            message: verdict.message.clone(),
            observed_generation: generation,
            last_transition_time: since.unwrap_or(Time(now)),
        }
    };
    let mut conditions: Vec<_> = verdicts.iter().map(finished).collect();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    conditions
}

#[cfg(test)]
mod tests {
    use super::{StatusChange, change};
    use crate::reconcile::plan::{Truth, Verdict};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    const LATER: i64 = 2_000_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 123_456_789).unwrap()
    }

    fn ready(status: Truth, reason: &'static str) -> Verdict {
        Verdict { type_: "Ready", status, reason, message: "because".into() }
    }

    fn first(verdict: &Verdict) -> StatusChange {
        change(None, json!({"size": 1}), std::slice::from_ref(verdict), Some(1), at(0)).unwrap()
    }

    #[test]
    fn what_was_written_is_not_written_again() {
        let verdict = ready(Truth::True, "Done");
        let written = first(&verdict);
        assert!(written.transition);
        assert_eq!(change(Some(&written.body), json!({"size": 1}), &[verdict], Some(1), at(LATER)), None);
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_flips() {
        let written = first(&ready(Truth::False, "Waiting"));
        let time = |status: &Value| status["conditions"][0]["lastTransitionTime"].clone();
        let same = change(Some(&written.body), json!({"size": 1}), &[ready(Truth::False, "Other")], Some(1), at(LATER))
            .unwrap();
        assert_eq!(time(&same.body), time(&written.body));
        assert!(same.transition, "another reason is worth an event");
        let flipped =
            change(Some(&written.body), json!({"size": 1}), &[ready(Truth::True, "Done")], Some(1), at(LATER)).unwrap();
        assert_ne!(time(&flipped.body), time(&written.body));
    }

    #[test]
    fn a_new_generation_is_recorded_without_an_event() {
        let verdict = ready(Truth::True, "Done");
        let written = first(&verdict);
        let again = change(Some(&written.body), json!({"size": 1}), &[verdict], Some(2), at(LATER)).unwrap();
        assert!(!again.transition);
        assert_eq!(again.body["conditions"][0]["observedGeneration"], 2);
    }

    #[test]
    fn conditions_of_others_are_left_alone_and_old_fields_are_named() {
        let verdict = ready(Truth::True, "Done");
        let mut live = first(&verdict).body;
        let mut foreign = live["conditions"][0].clone();
        foreign["type"] = json!("Theirs");
        live["conditions"].as_array_mut().unwrap().push(foreign);
        assert_eq!(change(Some(&live), json!({"size": 1}), std::slice::from_ref(&verdict), Some(1), at(LATER)), None);
        live["oldRef"] = json!({"name": "x"});
        let change = change(Some(&live), json!({"size": 1}), &[verdict], Some(1), at(LATER)).unwrap();
        assert_eq!(change.leftovers, ["oldRef"]);
    }
}
