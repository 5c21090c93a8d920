// SPDX-License-Identifier: Apache-2.0
//! Label and field selectors, with the real server's grammar and words.

use crate::names;

/// Requirements on labels; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// Requirements on selectable fields: (field, equal or not, value).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldRequirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    pub field: String,
    pub equal: bool,
    pub value: String,
}

// === impl LabelSelector ===

impl LabelSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `get` answers with the value of a label.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|one| one.matches(get(&one.key)))
    }

    /// The selector of an object's spec: `matchLabels` and `matchExpressions`. `None` when it cannot be read.
    pub fn from_object(selector: &serde_json::Value) -> Option<Self> {
        let mut all = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(|map| map.as_object()).into_iter().flatten() {
            all.push(Requirement { key: key.clone(), test: Test::In(vec![value.as_str()?.to_owned()]) });
        }
        for one in selector.get("matchExpressions").and_then(|list| list.as_array()).into_iter().flatten() {
            let key = one.get("key")?.as_str()?.to_owned();
            let values = one.get("values").and_then(|list| list.as_array()).into_iter().flatten();
            let values: Vec<String> = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
            let test = match one.get("operator")?.as_str()? {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Absent,
                _ => return None,
            };
            all.push(Requirement { key, test });
        }
        Some(Self(all))
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut all = parser.requirements()?;
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(all))
    }
}

/// A label selector object as one text, as `status.selector` of a scale has it.
pub fn labels_text(selector: &serde_json::Value) -> String {
    let Some(LabelSelector(mut all)) = LabelSelector::from_object(selector) else { return String::new() };
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let texts: Vec<String> = all.iter().map(Requirement::text).collect();
    texts.join(",")
}

impl Requirement {
    fn text(&self) -> String {
        let key = &self.key;
        match &self.test {
            Test::In(values) => match values.as_slice() {
                [one] => format!("{key}={one}"),
                _ => format!("{key} in ({})", values.join(",")),
            },
            Test::NotIn(values) => format!("{key} notin ({})", values.join(",")),
            Test::Exists => key.clone(),
            Test::Absent => format!("!{key}"),
            Test::Greater(bound) => format!("{key}>{bound}"),
            Test::Less(bound) => format!("{key}<{bound}"),
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        match (&self.test, value) {
            (Test::In(values), Some(value)) => values.iter().any(|one| one == value),
            (Test::NotIn(values), Some(value)) => values.iter().all(|one| one != value),
            (Test::NotIn(_), None) => !fault!(NotInWantsLabel),
            (Test::Absent, None) | (Test::Exists, Some(_)) => true,
            (Test::Greater(bound), Some(value)) => value.parse::<i64>().is_ok_and(|value| value > *bound),
            (Test::Less(bound), Some(value)) => value.parse::<i64>().is_ok_and(|value| value < *bound),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Sign(text) => text,
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let special = |c: char| c.is_whitespace() || "=!(),><".contains(c);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
        } else {
            let (word, after) = rest.split_at(rest.find(special).unwrap_or(rest.len()));
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn found(&self) -> &str {
        self.peek().map_or("", Token::text)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(there);
        there
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut all = Vec::new();
        if self.peek().is_none() {
            return Ok(all);
        }
        loop {
            match self.peek() {
                Some(Token::Word(_) | Token::Sign("!")) => {
                    all.push(self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
                }
                _ => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", self.found())),
            }
            match self.peek() {
                None => return Ok(all),
                Some(Token::Sign(",")) => {
                    self.at += 1;
                    if !matches!(self.peek(), Some(Token::Word(_) | Token::Sign("!"))) {
                        return Err(format!("found '{}', expected: identifier after ','", self.found()));
                    }
                }
                Some(other) => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.eat("!");
        let key = match self.next() {
            Some(Token::Word(key)) => key,
            other => {
                let found = other.map_or(String::new(), |token| token.text().to_owned());
                return Err(format!("found '{found}', expected: identifier"));
            }
        };
        if let Some(why) = names::qualified_name(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        let test = self.test(&key)?;
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        match self.peek().cloned() {
            None | Some(Token::Sign(",")) => Ok(Test::Exists),
            Some(Token::Sign("!=")) if fault!(NotEqualIsEqual) => Ok(Test::In(vec![self.value(key)?])),
            Some(Token::Sign("=" | "==")) => Ok(Test::In(vec![self.value(key)?])),
            Some(Token::Sign("!=")) => Ok(Test::NotIn(vec![self.value(key)?])),
            Some(Token::Sign(sign @ (">" | "<"))) => {
                let value = self.value(key)?;
                let bound = value.parse().map_err(|_| {
                    format!(
                        "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                })?;
                Ok(if sign == ">" { Test::Greater(bound) } else { Test::Less(bound) })
            }
            Some(Token::Word(word)) if word == "in" || word == "notin" => {
                self.at += 1;
                let values = self.values(key)?;
                Ok(if word == "in" { Test::In(values) } else { Test::NotIn(values) })
            }
            Some(other) => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        }
    }

    /// The one value after a sign; nothing stands for the empty value.
    fn value(&mut self, key: &str) -> Result<String, String> {
        self.at += 1;
        let value = match self.peek() {
            Some(Token::Word(word)) => word.clone(),
            None | Some(Token::Sign(",")) => return Ok(String::new()),
            Some(other) => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        self.at += 1;
        check_value(key, 0, value)
    }

    fn values(&mut self, key: &str) -> Result<Vec<String>, String> {
        if !self.eat("(") {
            return Err(format!("found '{}' expected: '('", self.found()));
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Some(Token::Word(word)) => {
                    let word = word.clone();
                    self.at += 1;
                    word
                }
                _ => String::new(),
            };
            values.push(check_value(key, values.len(), value)?);
            if self.eat(")") {
                values.sort();
                values.dedup();
                return Ok(values);
            }
            if !self.eat(",") {
                return Err(format!("found '{}', expected: ',' or ')'", self.found()));
            }
        }
    }
}

fn check_value(key: &str, index: usize, value: String) -> Result<String, String> {
    match names::label_value(&value).first() {
        Some(why) => Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}")),
        None => Ok(value),
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `get` answers with the value of a selectable field; one that the object lacks counts as empty.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|one| (get(&one.field).unwrap_or_default() == one.value) == one.equal)
    }

    /// The value that one field must have, when the selector says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|one| one.equal && one.field == field).map(|one| one.value.as_str())
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for term in split_unescaped(text) {
            if term.is_empty() {
                continue;
            }
            let (field, equal, value) =
                split_term(term).ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
            all.push(FieldRequirement { field: field.to_owned(), equal, value: unescape(value)? });
        }
        Ok(Self(all))
    }
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!'])?;
    let (field, rest) = term.split_at(at);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?),
    };
    Some((field, equal, value))
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                _ => return Err(format!("invalid field selector: invalid escape sequence: {value}")),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {}", c as u32)),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests;
