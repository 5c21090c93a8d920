// SPDX-License-Identifier: Apache-2.0
//! What a bench found.

use serde_json::{Map, Value, json};

/// Measurements in the order a person reads them.
#[derive(Debug, Default)]
pub struct Report(Vec<Row>);

#[derive(Debug)]
struct Row {
    key: &'static str,
    value: Figure,
    unit: &'static str,
    note: String,
}

#[derive(Debug)]
enum Figure {
    Number(f64),
    Word(String),
}

// === impl Report ===

impl Report {
    /// Adds a measurement. Give the bar or the condition of the measurement as the note, or nothing.
    pub fn add(&mut self, key: &'static str, value: f64, unit: &'static str, note: impl Into<String>) {
        self.0.push(Row { key, value: Figure::Number(value), unit, note: note.into() });
    }

    /// Adds a condition of the measurement that is no number.
    pub fn say(&mut self, key: &'static str, word: impl Into<String>) {
        self.0.push(Row { key, value: Figure::Word(word.into()), unit: "", note: String::new() });
    }

    pub fn table(&self) -> String {
        let key = self.0.iter().map(|row| row.key.len()).max().unwrap_or_default();
        let value = self.0.iter().map(|row| row.value.text().len()).max().unwrap_or_default();
        let unit = self.0.iter().map(|row| row.unit.len()).max().unwrap_or_default();
        let line = |row: &Row| {
            let line = format!("{:<key$}  {:>value$} {:<unit$}  {}", row.key, row.value.text(), row.unit, row.note);
            line.trim_end().to_owned() + "\n"
        };
        self.0.iter().map(line).collect()
    }

    /// `{"bench": name, "<key>": value, …}` on one line. A key with a dot is an object in the object.
    pub fn json(&self, bench: &str) -> String {
        let mut all = Map::from_iter([("bench".to_owned(), json!(bench))]);
        for row in &self.0 {
            match row.key.split_once('.') {
                None => {
                    all.insert(row.key.to_owned(), row.value.json());
                }
                Some((outer, inner)) => {
                    if let Value::Object(map) = all.entry(outer).or_insert_with(|| json!({})) {
                        map.insert(inner.to_owned(), row.value.json());
                    }
                }
            }
        }
        Value::Object(all).to_string()
    }
}

// === impl Figure ===

impl Figure {
    fn text(&self) -> String {
        match self {
            Self::Number(value) => number(*value),
            Self::Word(word) => word.clone(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Number(value) => json!(value),
            Self::Word(word) => json!(word),
        }
    }
}

/// Whole numbers without a point, others with as many digits as a measurement deserves.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn a_report_for_people_and_for_programs() {
        let mut report = Report::default();
        report.add("objects", 200.0, "", "Workspaces");
        report.add("seconds", 3.25, "s", "");
        assert_eq!(report.table(), "objects    200    Workspaces\nseconds  3.250 s\n");
        let json: serde_json::Value = serde_json::from_str(&report.json("tenancy")).unwrap();
        assert_eq!(json, serde_json::json!({"bench": "tenancy", "objects": 200.0, "seconds": 3.25}));
        assert!(!report.json("tenancy").contains('\n'));
    }
}
