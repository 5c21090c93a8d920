// SPDX-License-Identifier: Apache-2.0
use serde_json::json;

use super::*;

#[test]
fn elements_are_read_and_written() {
    for key in [
        "f:spec",
        "f:",
        "f:a:b",
        "i:3",
        "i:-1",
        r#"v:"x""#,
        "v:1",
        "v:1.5",
        "v:true",
        "v:null",
        r#"v:"\u003c\u0026""#,
        r#"k:{"name":"n"}"#,
        r#"k:{"containerPort":80,"protocol":"TCP"}"#,
    ] {
        let element = PathElement::decode(key).unwrap().unwrap();
        assert_eq!(element.encode(), key);
    }
    // Go decodes numbers as floats and prints them without a superfluous fraction.
    assert_eq!(PathElement::decode("v:2.0").unwrap().unwrap().encode(), "v:2");
    assert_eq!(PathElement::decode("v:1e21").unwrap().unwrap().encode(), "v:1e+21");
    assert_eq!(PathElement::decode("x:future").unwrap(), None);
    for bad in ["", "f", "fx", "i:x", "v:", "k:[]"] {
        assert!(PathElement::decode(bad).is_err(), "{bad} was read");
    }
}

#[test]
fn elements_are_sorted_by_kind_and_value() {
    let sorted =
        ["f:a", "f:b", r#"k:{"port":80}"#, r#"k:{"port":443}"#, "v:2", "v:10", r#"v:"a""#, "v:true", "i:0", "i:10"];
    for pair in sorted.windows(2) {
        let read = |key| PathElement::decode(key).unwrap().unwrap();
        assert!(read(pair[0]) < read(pair[1]), "{} is not before {}", pair[0], pair[1]);
    }
}

#[test]
fn a_path_can_be_in_a_set_with_and_without_its_parent() {
    let fields = json!({"f:a": {"f:b": {}}, "f:c": {".": {}, "f:d": {}}, "f:e": {}});
    let set = Set::decode(&fields).unwrap();
    assert_eq!(set.encode(), fields);
    assert_eq!(set, Set::of_fields(&[&["a", "b"], &["c"], &["c", "d"], &["e"]]));
    assert!(
        !set.has(&PathElement::field("a")) && set.has(&PathElement::field("c")) && set.has(&PathElement::field("e"))
    );
}

#[test]
fn what_is_no_field_set_is_refused() {
    for bad in [json!([]), json!("f:a"), json!({"f:a": 1}), json!({"fa": {}}), json!({"f:a": {"k:x": {}}})] {
        assert!(Set::decode(&bad).is_err(), "{bad} was read");
    }
    assert_eq!(Set::decode(&json!({"z:new": {}, "f:a": null})).unwrap(), Set::of_fields(&[&["a"]]));
}

#[test]
fn a_difference_takes_children_along_only_if_told() {
    let all = || Set::of_fields(&[&["a"], &["a", "b"], &["c", "d"], &["e"]]);
    let some = Set::of_fields(&[&["a"], &["c"], &["e", "f"]]);
    assert_eq!(all().without(&some), Set::of_fields(&[&["a", "b"], &["c", "d"], &["e"]]));
    assert_eq!(all().without_below(&some), Set::of_fields(&[&["e"]]));
    assert_eq!(all().intersection(&some), Set::of_fields(&[&["a"]]));
}
