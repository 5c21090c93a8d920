// SPDX-License-Identifier: Apache-2.0

use super::*;

fn labels<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
    move |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
}

#[test]
fn label_selectors_match() {
    let selector = LabelSelector::parse("a in (x, y),b!=z,!c,d,e>3").unwrap();
    assert!(selector.matches(labels(&[("a", "y"), ("d", ""), ("e", "4")])));
    assert!(!selector.matches(labels(&[("a", "y"), ("d", ""), ("e", "3")])));
    assert!(!selector.matches(labels(&[("a", "y"), ("d", ""), ("e", "4"), ("c", "1")])));
}

#[test]
fn refusals_are_in_the_real_servers_words() {
    let cases = [
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("!a=1", "found '=', expected: ',' or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b!", "found '!', expected: ',' or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
    ];
    for (text, why) in cases {
        assert_eq!(LabelSelector::parse(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn field_selectors_match() {
    let selector = FieldSelector::parse("metadata.name=a,status.phase!=Running").unwrap();
    assert!(selector.matches(labels(&[("metadata.name", "a")])));
    assert!(!selector.matches(labels(&[("metadata.name", "a"), ("status.phase", "Running")])));
    assert_eq!(FieldSelector::parse("x=a=b").unwrap_err(), "invalid field selector: unescaped character in value: 61");
}
