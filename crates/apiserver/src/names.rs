// SPDX-License-Identifier: Apache-2.0
//! What names may look like, with the real server's words for those that may not.
//!
//! Each function answers with what is wrong; nothing wrong is an empty list.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

type Problems = Vec<String>;

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_alphanumeric();
    !text.is_empty()
        && text.bytes().all(|b| edge(b) || matches!(b, b'-' | b'_' | b'.'))
        && text.bytes().next().is_some_and(edge)
        && text.bytes().last().is_some_and(edge)
}

/// A DNS subdomain: the name of most objects.
pub fn subdomain(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    if !text.split('.').all(is_label) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// A DNS label: the name of a namespace.
pub fn label(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(text) {
        // A text that is a subdomain only fails because of its dots.
        problems.push(if text.split('.').all(is_label) {
            "must not contain dots".to_owned()
        } else {
            LABEL.to_owned()
        });
    }
    problems
}

/// A DNS label that starts with a letter: the name of a Service before 1.34, and of a CRD's plural.
pub fn label_1035(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(text) || !text.bytes().next().is_some_and(|b| b.is_ascii_lowercase()) {
        problems.push(LABEL_1035.to_owned());
    }
    problems
}

/// A name that is a segment of a path and nothing more: the name of a Role.
pub fn path_segment(text: &str) -> Problems {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    let mut problems = Vec::new();
    for part in ["/", "%"] {
        if text.contains(part) {
            problems.push(format!("may not contain '{part}'"));
        }
    }
    problems
}

/// The key of a label or an annotation: an optional prefix and a name.
pub fn qualified_name(text: &str) -> Problems {
    let mut problems = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                QUALIFIED
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified_part(name) {
        problems.push(format!("name part {QUALIFIED}"));
    }
    problems
}

/// The value of a label.
pub fn label_value(text: &str) -> Problems {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        problems.push(VALUE.to_owned());
    }
    problems
}
