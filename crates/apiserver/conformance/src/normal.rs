// SPDX-License-Identifier: Apache-2.0
//! Gives names to what no two servers have in common.
//!
//! The first uid of a case is `<uid1>` wherever it comes again, and so on: whether two things are the same thing stays
//! visible. The revision of a list is whatever the whole server was at, so it is only `<rv>`.

use std::collections::HashMap;

use serde_json::Value;

use crate::cast::Cast;

/// The volume with the token of a service account has a random name.
const MADE: &str = "kube-api-access-";

/// What comes before a revision in a sentence.
const REVISIONS: [&str; 3] = ["resourceVersion\\\":\\\"", "in the precondition (", "in record ("];

pub struct Normal<'a> {
    cast: &'a Cast,
    uids: HashMap<String, usize>,
    revisions: HashMap<String, usize>,
    /// Names that the server made from a prefix.
    made: HashMap<String, String>,
}

impl<'a> Normal<'a> {
    pub fn new(cast: &'a Cast) -> Self {
        Self { cast, uids: HashMap::new(), revisions: HashMap::new(), made: HashMap::new() }
    }

    pub fn value(&mut self, value: &mut Value) {
        self.walk("", value, false);
    }

    pub fn text(&mut self, text: &str) -> String {
        let mut text = self.cast.hide(text);
        for (name, shown) in &self.made {
            text = text.replace(name, shown);
        }
        let words: Vec<_> = text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
        let mut hidden = String::with_capacity(text.len());
        for word in words {
            let (core, tail) = word.split_at(word.len().min(36));
            if core.len() == 36 && is_uid(core) && tail.len() <= 4 {
                hidden += &self.uid(core);
                hidden += tail;
            } else {
                hidden += word;
            }
        }
        let hidden = sort_quoted_managers(hide_times(&hide_revisions(&hide_dump(&hidden))));
        let hidden = self.after(&hidden, MADE, &|c| c.is_ascii_alphanumeric(), &|_, _| "<made>".to_owned());
        REVISIONS.iter().fold(hidden, |text, start| {
            self.after(&text, start, &|c| c.is_ascii_digit(), &|this, found| this.revision(found))
        })
    }

    /// Replaces what follows a start, as long as it has such characters.
    fn after(
        &mut self,
        text: &str,
        start: &str,
        is: &dyn Fn(char) -> bool,
        show: &dyn Fn(&mut Self, &str) -> String,
    ) -> String {
        let mut parts = text.split(start);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (found, rest) = part.split_at(part.find(|c| !is(c)).unwrap_or(part.len()));
            let found = if found.is_empty() { String::new() } else { show(self, found) };
            shown = shown + start + &found + rest;
        }
        shown
    }

    fn uid(&mut self, uid: &str) -> String {
        let next = self.uids.len() + 1;
        format!("<uid{}>", self.uids.entry(uid.to_owned()).or_insert(next))
    }

    fn revision(&mut self, revision: &str) -> String {
        let next = self.revisions.len() + 1;
        format!("<rv{}>", self.revisions.entry(revision.to_owned()).or_insert(next))
    }

    /// `list` is whether `metadata` here is that of a list or a bookmark.
    fn walk(&mut self, key: &str, value: &mut Value, list: bool) {
        match value {
            Value::Object(fields) => {
                self.remember_made(fields);
                sort_managers(fields);
                sort_causes(fields);
                let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
                let bookmark = fields.get("metadata").is_some_and(|metadata| metadata.get("name").is_none());
                let list = match key {
                    "metadata" => list,
                    _ => kind.ends_with("List") || kind == "Table" || bookmark,
                };
                for (name, value) in fields.iter_mut() {
                    self.walk(name, value, list);
                }
                let named: Vec<_> =
                    fields.iter().filter(|(name, _)| self.text(name) != **name).map(|(name, _)| name.clone()).collect();
                for name in named {
                    if let Some(value) = fields.remove(&name) {
                        fields.insert(self.text(&name), value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(key, item, list)),
            Value::String(text) => *text = self.string(key, text, list),
            Value::Number(_) if key == "nodePort" || key == "healthCheckNodePort" => *value = "<port>".into(),
            _ => {}
        }
    }

    fn string(&mut self, key: &str, text: &str, list: bool) -> String {
        // What a case picks has its whole path as key.
        match key.rsplit('.').next().unwrap_or_default() {
            "resourceVersion" if text.is_empty() || text == "0" => text.to_owned(),
            "resourceVersion" if list => "<rv>".to_owned(),
            "resourceVersion" => self.revision(text),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "clusterIP" | "clusterIPs" if text.contains('.') => "<ip>".to_owned(),
            "token" if text.len() > 100 => "<token>".to_owned(),
            "cells" if is_age(text) => "<age>".to_owned(),
            _ => time(text).map_or_else(|| self.text(text), str::to_owned),
        }
    }

    fn remember_made(&mut self, fields: &serde_json::Map<String, Value>) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
            && name.len() == prefix.len() + 5
            && name.starts_with(prefix)
        {
            let next = self.made.len() + 1;
            self.made.entry(name.to_owned()).or_insert_with(|| format!("{prefix}<made{next}>"));
        }
    }
}

/// They stand in the order of their time, which is another when a second passes between two requests.
fn sort_managers(fields: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
        let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        entries.sort_by_cached_key(|one| {
            ["operation", "manager", "subresource", "apiVersion"].map(|name| text(one, name))
        });
    }
}

/// The same where an error quotes a whole object. Its keys are sorted: after `managedFields` comes `name`.
fn sort_quoted_managers(text: String) -> String {
    const START: &str = r#"\"managedFields\":["#;
    const ENTRY: &str = r#"{\"apiVersion\""#;
    const END: &str = r#"],\"name\""#;
    let Some((before, rest)) = text.split_once(START) else { return text };
    let Some((entries, after)) = rest.split_once(END) else { return text };
    let mut entries: Vec<_> = entries.split(ENTRY).map(|entry| entry.trim_end_matches(',')).collect();
    entries.sort_unstable();
    format!("{before}{START}{}{END}{}", entries.join(ENTRY), sort_quoted_managers(after.to_owned()))
}

/// Several causes come in any order: the real server walks maps. The sentence that lists them all is checked to do so.
fn sort_causes(fields: &mut serde_json::Map<String, Value>) {
    let Some(Value::Array(causes)) = fields.get_mut("details").and_then(|details| details.get_mut("causes")) else {
        return;
    };
    let text = |cause: &Value, name: &str| cause.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    causes.sort_by_cached_key(|cause| (text(cause, "field"), text(cause, "message")));
    let each: Vec<_> =
        causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect();
    let Some(Value::String(message)) = fields.get_mut("message") else { return };
    if each.len() > 1
        && let Some((start, list)) = message.split_once(": [")
        && each.iter().all(|one| list.contains(one.as_str()))
    {
        *message = format!("{start}: [{}]", each.join(", "));
    }
}

fn is_uid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.bytes().enumerate().all(|(index, byte)| {
        if dashes.contains(&index) { byte == b'-' } else { byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) }
    })
}

/// `5s`, `2m3s`, `<unknown>`, `<invalid>`: how long ago, in a table.
fn is_age(text: &str) -> bool {
    text == "<invalid>" || (text.ends_with('s') && text.len() < 7 && text.starts_with(|c: char| c.is_ascii_digit()))
}

/// Of a text that is a time, which of the two forms it has.
fn time(text: &str) -> Option<&'static str> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let digits = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.chars().zip(shape.chars()).all(|(c, s)| if s == '0' { c.is_ascii_digit() } else { c == s })
    };
    if !digits(date, "0000-00-00") {
        return None;
    }
    match clock.split_once('.') {
        None if digits(clock, "00:00:00") => Some("<time>"),
        Some((clock, fraction)) if digits(clock, "00:00:00") && digits(fraction, "000000") => Some("<microtime>"),
        _ => None,
    }
}

/// In sentences; a text that is nothing but a time never comes here.
fn hide_times(text: &str) -> String {
    const LENGTH: usize = "0000-00-00T00:00:00Z".len();
    let mut text = text.to_owned();
    while let Some(at) = (0..text.len()).find(|at| text.get(*at..at + LENGTH).and_then(time).is_some()) {
        text.replace_range(at..at + LENGTH, "<time>");
    }
    text
}

/// Where a change of a pod is refused, the real server adds the difference of two structures of its memory.
fn hide_dump(text: &str) -> String {
    if !text.contains("\n@@ ") {
        return text.to_owned();
    }
    text.split('\n').filter(|line| !line.starts_with([' ', '+', '-', '@'])).collect()
}

/// In the sentences that have revisions of the whole server in them.
fn hide_revisions(text: &str) -> String {
    for start in ["too old resource version: ", "Too large resource version: "] {
        if let Some((before, after)) = text.split_once(start) {
            let after: String = after.chars().filter(|c| !c.is_ascii_digit()).collect();
            return format!("{before}{start}{after}");
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::Normal;
    use crate::case::{Case, documents};
    use crate::cast::Cast;
    use serde_json::{Value, json};

    fn normal(values: &[Value]) -> Vec<Value> {
        let case: Case = documents("name: a\nsteps: [{ do: GET / }]").unwrap().remove(0);
        let cast = Cast::new(&case);
        let mut normal = Normal::new(&cast);
        let mut values: Vec<Value> = values.iter().map(|value| cast.value(value)).collect();
        values.iter_mut().for_each(|value| normal.value(value));
        values
    }

    #[test]
    fn the_same_thing_keeps_the_same_name() {
        let (one, two) = ("8d2e0a3c-1111-4222-8333-444455556666", "8d2e0a3c-1111-4222-8333-444455557777");
        let object = |uid: &str, revision: &str| json!({ "metadata": { "name": "a", "namespace": "{ns}", "uid": uid, "resourceVersion": revision } });
        let shown = normal(&[
            object(one, "7"),
            object(two, "9"),
            object(one, "7"),
            json!({ "message": format!("uid {one} is gone.") }),
        ]);
        assert_eq!(
            shown[0]["metadata"],
            json!({ "name": "a", "namespace": "{ns}", "uid": "<uid1>", "resourceVersion": "<rv1>" })
        );
        assert_eq!(shown[1]["metadata"]["uid"], json!("<uid2>"));
        assert_eq!(shown[2], shown[0]);
        assert_eq!(shown[3]["message"], json!("uid <uid1> is gone."));
    }

    #[test]
    fn what_belongs_to_the_whole_server_has_no_number() {
        let list = json!({ "kind": "ConfigMapList", "metadata": { "resourceVersion": "812", "continue": "abc" }, "items": [] });
        let shown = normal(&[list, json!({ "message": "too old resource version: 5 (812)" })]);
        assert_eq!(shown[0]["metadata"], json!({ "resourceVersion": "<rv>", "continue": "<continue>" }));
        assert_eq!(shown[1]["message"], json!("too old resource version:  ()"));
    }

    #[test]
    fn times_and_made_names_are_hidden_and_other_texts_stay() {
        let shown = normal(&[
            json!({ "generateName": "big-", "name": "big-x7k2p", "at": "2026-01-02T03:04:05Z", "fine": "2026-01-02T03:04:05.678901Z" }),
            json!({ "message": "big-x7k2p was there at 2026-01-02T03:04:05Z", "day": "2026-01-02", "volume": "kube-api-access-abcde" }),
        ]);
        assert_eq!(shown[0]["name"], json!("big-<made1>"));
        assert_eq!((&shown[0]["at"], &shown[0]["fine"]), (&json!("<time>"), &json!("<microtime>")));
        assert_eq!(shown[1]["message"], json!("big-<made1> was there at <time>"));
        assert_eq!((&shown[1]["day"], &shown[1]["volume"]), (&json!("2026-01-02"), &json!("kube-api-access-<made>")));
    }

    #[test]
    fn dumps_are_left_out_and_the_sentence_stays() {
        let shown = normal(&[json!({ "message": "[spec: no\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n, other: no]" })]);
        assert_eq!(shown[0]["message"], json!("[spec: no, other: no]"));
    }

    #[test]
    fn a_quoted_object_has_its_managers_in_one_order() {
        let entry = |manager: &str, second: u8| json!({ "apiVersion": "v1", "fieldsV1": { "f:spec": { "k:{\"no\":2,\"side\":\"n\"}": {} } }, "manager": manager, "time": format!("2026-01-02T03:04:0{second}Z") });
        let refusal = |managers: Value, name: &str| {
            let object = json!({ "kind": "Tent", "metadata": { "managedFields": managers, "name": name } }).to_string();
            json!({ "message": format!("a {object:?} and again {object:?}") })
        };
        let shown = normal(&[
            refusal(json!([entry("one", 1), entry("two", 1)]), "a"),
            refusal(json!([entry("two", 0), entry("one", 1)]), "a"),
            refusal(json!([entry("two", 0), entry("three", 1)]), "a"),
            refusal(json!([entry("two", 0), entry("one", 1)]), "b"),
        ]);
        assert_eq!(shown[0], shown[1]);
        assert_ne!(shown[1], shown[2]);
        assert_ne!(shown[1], shown[3]);
    }

    #[test]
    fn causes_are_sorted_with_their_sentence() {
        let cause = |field: &str| json!({ "field": field, "message": "is wrong" });
        let status = |first: &str, second: &str| {
            let message = format!("Tent \"a\" is invalid: [{first}: is wrong, {second}: is wrong]");
            json!({ "message": message, "details": { "causes": [cause(first), cause(second)] } })
        };
        let shown = normal(&[status("b", "a"), status("a", "b")]);
        assert_eq!(shown[0], shown[1]);
    }
}
