// SPDX-License-Identifier: Apache-2.0
//! Walking an object while it is checked: a value and the way to it. The way is only spelled out when something is wrong.

use serde_json::{Map, Value};

use crate::field::{Error, Problem};

/// A value and where it is. What is absent is `null`.
#[derive(Clone, Copy)]
pub struct Place<'v, 'p> {
    value: &'v Value,
    step: Step<'p>,
    above: Option<&'p Place<'v, 'p>>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    /// A place that is reached by a path of its own.
    Base(&'p str),
    Field(&'p str),
    /// A value of a map, shown in brackets.
    Key(&'p str),
    Item(usize),
}

static ABSENT: Value = Value::Null;

impl<'v> Place<'v, '_> {
    pub fn root(value: &'v Value) -> Self {
        Self { value, step: Step::Root, above: None }
    }
}

impl<'v, 'p> Place<'v, 'p> {
    /// A value at a place that is told by a path.
    pub fn at(value: &'v Value, path: &'p str) -> Self {
        Self { value, step: Step::Base(path), above: None }
    }

    pub fn field<'b>(&'b self, name: &'b str) -> Place<'v, 'b> {
        Place { value: self.value.get(name).unwrap_or(&ABSENT), step: Step::Field(name), above: Some(self) }
    }

    /// A value of a map. Its key comes in brackets.
    pub fn key<'b>(&'b self, name: &'b str) -> Place<'v, 'b> {
        Place { step: Step::Key(name), ..self.field(name) }
    }

    pub fn items<'b>(&'b self) -> impl Iterator<Item = Place<'v, 'b>> + use<'v, 'b> {
        let list = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().enumerate().map(move |(index, value)| Place { value, step: Step::Item(index), above: Some(self) })
    }

    pub fn value(&self) -> &'v Value {
        self.value
    }

    pub fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    pub fn map(&self) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
        self.value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    pub fn fields(&self) -> Option<&'v Map<String, Value>> {
        self.value.as_object()
    }

    pub fn exists(&self) -> bool {
        !self.value.is_null()
    }

    /// Absent, or nothing in it.
    pub fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    pub fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    pub fn path(&self) -> String {
        let above = self.above.map(Place::path).unwrap_or_default();
        match self.step {
            Step::Root => String::new(),
            Step::Base(path) => path.to_owned(),
            Step::Field(name) if above.is_empty() => name.to_owned(),
            Step::Field(name) => format!("{above}.{name}"),
            Step::Key(name) => format!("{above}[{name}]"),
            Step::Item(index) => format!("{above}[{index}]"),
        }
    }

    /// The refused value is shown; an absent one as an empty text.
    pub fn invalid(&self, detail: impl Into<String>) -> Error {
        let shown = if self.value.is_null() { Value::from("") } else { self.value.clone() };
        Error::invalid(self.path(), shown, detail)
    }

    pub fn invalid_as(&self, shown: impl Into<Value>, detail: impl Into<String>) -> Error {
        Error::invalid(self.path(), shown, detail)
    }

    /// The value is shown as the given text, which is the real server's inner form of it.
    pub fn invalid_raw(&self, shown: &str, detail: &str) -> Error {
        Error { problem: Problem::Invalid, field: self.path(), value: None, detail: format!("{shown}: {detail}") }
    }

    /// No value is shown.
    pub fn refused(&self, detail: &str) -> Error {
        Error { problem: Problem::Invalid, field: self.path(), value: None, detail: detail.to_owned() }
    }

    /// The value may not change. `null` stands for an absent one.
    pub fn fixed(&self, old: &Place<'_, '_>, errors: &mut Vec<Error>) {
        if self.value != old.value {
            errors.push(self.invalid_as(self.value.clone(), "field is immutable"));
        }
    }

    pub fn required(&self, detail: impl Into<String>) -> Error {
        Error::required(self.path(), detail)
    }

    pub fn forbidden(&self, detail: impl Into<String>) -> Error {
        Error::forbidden(self.path(), detail)
    }

    pub fn duplicate(&self) -> Error {
        Error::duplicate(self.path(), self.value.clone())
    }

    pub fn not_found(&self) -> Error {
        Error::not_found(self.path(), self.text())
    }

    pub fn not_supported(&self, known: &[&str]) -> Error {
        Error::not_supported(self.path(), self.text(), known)
    }

    // === What many fields have in common. Each adds what is wrong to the errors. ===

    /// A name, judged by one of the functions of `names`.
    pub fn named(&self, judge: fn(&str) -> Vec<String>, errors: &mut Vec<Error>) {
        errors.extend(judge(self.text()).into_iter().map(|why| self.invalid(why)));
    }

    /// Not smaller than zero. Absent is fine.
    pub fn not_negative(&self, errors: &mut Vec<Error>) {
        if self.number().is_some_and(|number| number < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    pub fn between(&self, least: i64, most: i64, errors: &mut Vec<Error>) {
        if self.number().is_some_and(|number| number < least || number > most) {
            errors.push(self.invalid(format!("must be between {least} and {most}, inclusive")));
        }
    }

    /// One of the known values. Absent is wrong.
    pub fn one_of(&self, known: &[&str], errors: &mut Vec<Error>) {
        if !known.contains(&self.text()) {
            errors.push(self.not_supported(known));
        }
    }

    /// One of the known values, or absent.
    pub fn maybe_one_of(&self, known: &[&str], errors: &mut Vec<Error>) {
        if self.exists() {
            self.one_of(known, errors);
        }
    }

    pub fn must_be(&self, errors: &mut Vec<Error>) -> bool {
        if self.is_empty() {
            errors.push(self.required(""));
        }
        !self.is_empty()
    }
}
