// SPDX-License-Identifier: Apache-2.0

use serde_json::json;

use super::cel::{Expression, Variables, from_json, to_json};

fn evaluate(source: &str) -> Result<serde_json::Value, String> {
    let expression = Expression::compile(source, &["object", "oldObject"])?;
    let mut all = Variables::new();
    all.set(
        "object",
        from_json(&json!({ "a": { "b": 1 }, "list": [1, 2], "labels": { "y": "1", "x": "2", "z": "3" } })),
    );
    all.set("oldObject", from_json(&json!(null)));
    expression.evaluate(&all).map(|value| to_json(&value).unwrap_or_default())
}

#[test]
fn what_the_evaluator_lacks_is_made_up_for() {
    let table = [
        ("object.?a.b.orValue(7)", json!(1)),
        ("object.?nope.b.orValue(7)", json!(7)),
        ("object.a.?nope.orValue('')", json!("")),
        ("object.?nope.?deeper[?'x'].orValue('none')", json!("none")),
        ("object.labels[?'x'].orValue('none')", json!("2")),
        ("object.?list.orValue([]).all(x, x > 0)", json!(true)),
        ("object.?nope.orValue([]).all(x, x > 0)", json!(true)),
        ("cel.bind(v, object.a.b, v + v)", json!(2)),
        ("object.?a.optMap(v, v.b + 1).orValue(0)", json!(2)),
        ("dyn(object.a).b", json!(1)),
        ("has(object.a.b.c) || has(oldObject.x)", json!(false)),
        ("object.labels.map(k, k)", json!(["x", "y", "z"])),
        (
            "[JSONPatch{op: 'add', path: '/x', value: {'k': [1]}}]",
            json!([{ "op": "add", "path": "/x", "value": { "k": [1] } }]),
        ),
        ("jsonpatch.escapeKey('a/b')", json!("a~1b")),
        ("object.labels.exists(k, k == 'x') && 'x' in object.labels", json!(true)),
        ("quantity('1Gi').isGreaterThan(quantity('1M'))", json!(true)),
    ];
    for (source, expected) in table {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    for source in [
        "object.list.sortBy(x, x)",
        "object.list.all(i, v, v > i)",
        "object.list.transformList(i, v, v)",
        "Object{spec: 1}",
    ] {
        let error = evaluate(source).unwrap_err();
        assert!(error.starts_with("this server cannot evaluate "), "{source}: {error}");
    }
}

#[test]
fn errors_have_the_words_of_the_real_server() {
    let start = "compilation failed: ERROR: <input>";
    let table = [
        ("foo", format!("{start}:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^")),
        (
            "nofunc(1)",
            format!("{start}:1:7: undeclared reference to 'nofunc' (in container '')\n | nofunc(1)\n | ......^"),
        ),
        (
            "object.map(x, y)",
            format!(
                "{start}:1:15: undeclared reference to 'y' (in container '')\n | object.map(x, y)\n | ..............^"
            ),
        ),
        ("object.nope", "no such key: nope".to_owned()),
        ("oldObject.nope.deeper", "no such key: nope".to_owned()),
        ("object.a.b.c", "no such overload".to_owned()),
    ];
    for (source, expected) in table {
        assert_eq!(evaluate(source), Err(expected), "{source}");
    }
}
