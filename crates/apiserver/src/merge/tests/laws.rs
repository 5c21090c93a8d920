// SPDX-License-Identifier: Apache-2.0
use proptest::{collection::vec, prelude::*, sample::subsequence};
use serde_json::json;

use super::*;
use crate::merge::{combine::combine, compare::compare, owned::fields, prune::remove};

fn schema() -> Root {
    let text = json!({"type": "string"});
    testing::object(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": text,
        "nested": {"type": "object", "properties": {"b": text, "c": text}},
        "map": {"type": "object", "additionalProperties": text},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": text}},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": text, "value": text}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }}}}))
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!("x")), Just(json!("y"))]
}

fn map_of(
    names: &'static [&'static str],
    value: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Value> {
    let names = subsequence(names, 0..=names.len());
    (names, vec(value, 3..=3)).prop_map(|(names, values)| names.into_iter().map(String::from).zip(values).collect())
}

fn any() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![text(), Just(json!(1)), Just(Value::Null), Just(json!([1, {"z": 2}]))];
    leaf.prop_recursive(2, 8, 3, |inner| map_of(&["p", "q", "r"], inner))
}

fn list() -> impl Strategy<Value = Value> {
    let item = |name: &'static str| {
        prop_oneof![Just(json!({"name": name})), text().prop_map(move |v| json!({"name": name, "value": v}))]
    };
    let names = subsequence(vec!["k", "l", "m", "n"], 0..=4).prop_shuffle();
    names.prop_flat_map(move |names| names.into_iter().map(item).collect::<Vec<_>>()).prop_map(Value::Array)
}

fn object() -> impl Strategy<Value = Value> {
    let set = subsequence(vec!["p", "q", "r"], 0..=3).prop_shuffle().prop_map(|values| json!(values));
    let field = |strategy: BoxedStrategy<Value>| proptest::option::of(strategy);
    let parts = (
        field(text().boxed()),
        field(map_of(&["b", "c"], text()).boxed()),
        field(map_of(&["f", "g", "h"], text()).boxed()),
        field(map_of(&["x"], text()).boxed()),
        field(set.boxed()),
        field(list().boxed()),
        field(any().boxed()),
    );
    parts.prop_map(|(a, nested, map, atomic, set, list, any)| {
        let names = ["a", "nested", "map", "atomic", "set", "list", "any"];
        let values = [a, nested, map, atomic, set, list, any];
        let spec: Map<_, _> =
            names.into_iter().zip(values).filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        json!({"apiVersion": "g/v1", "kind": "K", "spec": spec})
    })
}

fn write<'a>(kind: Kind<'a>, manager: &'a str, now: &'a str, reset: &'a Set<'a>) -> Write<'a> {
    Write { kind, manager, subresource: "", now, reset }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_set_survives_its_text(object in object()) {
        let root = schema();
        let set = fields(&object, root.schema());
        let written = set.encode();
        prop_assert_eq!(&Set::decode(&written).unwrap(), &set);
    }

    #[test]
    fn an_object_does_not_differ_from_itself(object in object()) {
        let root = schema();
        let changes = compare(&object, &object, root.schema());
        prop_assert!(changes.added.is_empty() && changes.modified.is_empty() && changes.removed.is_empty());
    }

    #[test]
    fn to_combine_twice_is_to_combine_once(live in object(), config in object()) {
        let root = schema();
        let once = combine(&live, &config, root.schema());
        prop_assert_eq!(&combine(&once, &config, root.schema()), &once);
    }

    #[test]
    fn what_is_applied_is_in_the_result(live in object(), config in object()) {
        let root = schema();
        let combined = combine(&live, &config, root.schema());
        // An untyped value may take the place of another kind of value; then nothing of it is lost either.
        let all = fields(&combined, root.schema()).with_named_parents(root.schema());
        let lost = fields(&config, root.schema()).without(&all);
        let null_over_map = lost.encode().to_string().contains("f:any");
        prop_assert!(lost.is_empty() || null_over_map, "lost {}", lost.encode());
    }

    #[test]
    fn to_remove_nothing_changes_nothing(object in object()) {
        let root = schema();
        prop_assert_eq!(&remove(&object, &Set::default(), root.schema()), &object);
    }

    /// The last applier gives up all; what it alone had is gone, and what others have is not.
    #[test]
    fn to_give_up_is_to_undo(first in object(), second in object()) {
        let root = schema();
        let empty = json!({"apiVersion": "g/v1", "kind": "K"});
        let kind = Kind { api_version: "g/v1", kind: "K", schema: root.schema(), empty: &empty, custom: true, versions: &[] };
        let none = Set::default();
        let one = write(kind, "one", "2020-01-01T00:00:00Z", &none);
        let two = write(kind, "two", "2020-01-02T00:00:00Z", &none);
        let before = apply(None, &first, &one, false).unwrap();
        let both = apply(Some(&before), &second, &two, true).unwrap();
        let after = apply(Some(&both), &empty, &two, false).unwrap();
        let left = fields(&after, root.schema());
        let of_second_only = fields(&second, root.schema()).without(&fields(&first, root.schema()).with_named_parents(root.schema()));
        let kept = of_second_only.intersection(&left);
        prop_assert!(kept.encode().pointer("/f:spec").is_none(), "kept {}", kept.encode());
    }

    /// A write that repeats itself is not written.
    #[test]
    fn to_apply_twice_is_to_apply_once(first in object(), second in object()) {
        let root = schema();
        let empty = json!({"apiVersion": "g/v1", "kind": "K"});
        let kind = Kind { api_version: "g/v1", kind: "K", schema: root.schema(), empty: &empty, custom: true, versions: &[] };
        let none = Set::default();
        let before = update(None, first, &write(kind, "one", "2020-01-01T00:00:00Z", &none));
        let once = apply(Some(&before), &second, &write(kind, "two", "2020-01-02T00:00:00Z", &none), true).unwrap();
        let twice = apply(Some(&once), &second, &write(kind, "two", "2020-01-03T00:00:00Z", &none), false).unwrap();
        prop_assert_eq!(once, twice);
    }
}
