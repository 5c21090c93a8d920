// SPDX-License-Identifier: Apache-2.0
//! What a machine must be, as sets of label values: what a pool allows, what a pod asks for, and both at once.
//!
//! Each key has a set of values or everything but such a set, within numeric bounds. Two requirements on a key are one:
//! what both allow. The rules are those of Karpenter, so that people's manifests mean here what they mean there.

use std::collections::{BTreeMap, BTreeSet};

/// Most requirements that one list may have.
pub const MOST: usize = 100;

/// How the values of a requirement are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

/// Why a requirement cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("{0:?} is no operator; there are In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte and Lte")]
    Operator(String),
    #[error("{key}: {operator:?} needs at least one value")]
    NoValue { key: String, operator: Operator },
    #[error("{key}: {operator:?} takes no values; there are {count}")]
    Values { key: String, operator: Operator, count: usize },
    #[error("{key}: {operator:?} needs exactly one whole number that is not negative; found {found}")]
    Number { key: String, operator: Operator, found: String },
    #[error("{0} requirements are too many; the most is {MOST}")]
    TooMany(usize),
}

/// The values that one label may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Whether `values` are those that are not allowed.
    complement: bool,
    values: BTreeSet<String>,
    /// Whether the label must be there at all.
    needed: bool,
    /// The least and the most, both allowed.
    least: Option<u64>,
    most: Option<u64>,
    /// So many different values must stay possible, so that one seller's shortage is not the end.
    pub min_values: Option<usize>,
}

/// Requirements on many keys; a key that is not here may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements(BTreeMap<String, Allowed>);

/// Why two lists cannot hold at the same time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("{key} is asked for, and nothing here has it")]
    Undefined { key: String },
    #[error("{key}: {ours} here, {theirs} there")]
    Disjoint { key: String, ours: String, theirs: String },
}

// === impl Operator ===

impl std::str::FromStr for Operator {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        Ok(match text {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt,
            "Lt" => Self::Lt,
            "Gte" => Self::Gte,
            "Lte" => Self::Lte,
            other => return Err(RequirementError::Operator(other.to_owned())),
        })
    }
}

// === impl Allowed ===

impl Allowed {
    /// Everything, as long as there is something.
    pub fn any() -> Self {
        Self { complement: true, values: BTreeSet::new(), needed: true, least: None, most: None, min_values: None }
    }

    /// No value at all: the label must not be there.
    pub fn none() -> Self {
        Self { complement: false, needed: false, ..Self::any() }
    }

    /// What no machine can be.
    fn nothing() -> Self {
        Self { needed: true, ..Self::none() }
    }

    pub fn only(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), ..Self::nothing() }
    }

    /// As a manifest says it.
    pub fn new(key: &str, operator: Operator, values: &[String]) -> Result<Self, RequirementError> {
        let number = || match values {
            [one] => one.parse::<u64>().map_err(|_| one.clone()),
            other => Err(format!("{} values", other.len())),
        };
        let number = || number().map_err(|found| RequirementError::Number { key: key.to_owned(), operator, found });
        let listed = || match values {
            [] => Err(RequirementError::NoValue { key: key.to_owned(), operator }),
            some => Ok(some.iter().cloned().collect()),
        };
        let nothing = || match values.len() {
            0 => Ok(()),
            count => Err(RequirementError::Values { key: key.to_owned(), operator, count }),
        };
        Ok(match operator {
            Operator::In => Self { values: listed()?, ..Self::nothing() },
            Operator::NotIn => Self { values: listed()?, needed: false, ..Self::any() },
            Operator::Exists => nothing().map(|()| Self::any())?,
            Operator::DoesNotExist => nothing().map(|()| Self::none())?,
            Operator::Gte => Self { least: Some(number()?), ..Self::any() },
            Operator::Lte => Self { most: Some(number()?), ..Self::any() },
            Operator::Gt => match number()?.checked_add(1) {
                Some(least) => Self { least: Some(least), ..Self::any() },
                None => Self::nothing(),
            },
            Operator::Lt => match number()?.checked_sub(1) {
                Some(most) => Self { most: Some(most), ..Self::any() },
                None => Self::nothing(),
            },
        })
    }

    /// What both allow.
    pub fn and(&self, other: &Self) -> Self {
        let tighter = |one: Option<u64>, two: Option<u64>, pick: fn(u64, u64) -> u64| match (one, two) {
            (Some(one), Some(two)) => Some(pick(one, two)),
            (one, two) => one.or(two),
        };
        let (least, most) = (tighter(self.least, other.least, u64::max), tighter(self.most, other.most, u64::min));
        let (min_values, needed) = (self.min_values.max(other.min_values), self.needed || other.needed);
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            return Self { min_values, needed, ..Self::none() };
        }
        let values = match (self.complement, other.complement) {
            (true, true) => &self.values | &other.values,
            (true, false) => &other.values - &self.values,
            (false, true) => &self.values - &other.values,
            (false, false) => &self.values & &other.values,
        };
        let mut both =
            Self { complement: self.complement && other.complement, values, needed, least, most, min_values };
        if !both.complement {
            // A list says it all; bounds are only needed where anything goes.
            both.values.retain(|value| within(value, least, most));
            (both.least, both.most) = (None, None);
        }
        both
    }

    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && within(value, self.least, self.most)
    }

    /// Whether a machine without the label is right, too.
    pub fn may_be_absent(&self) -> bool {
        !self.needed
    }

    /// Whether no machine can be right.
    pub fn is_impossible(&self) -> bool {
        self.needed && !self.complement && self.values.is_empty()
    }

    /// The values by name, if they are a list.
    pub fn listed(&self) -> Option<&BTreeSet<String>> {
        (!self.complement).then_some(&self.values)
    }

    fn in_words(&self) -> String {
        let list = || self.values.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let bounds = match (self.least, self.most) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, Some(most)) => format!("at most {most}"),
            (None, None) => String::new(),
        };
        match (self.complement, self.values.is_empty()) {
            (false, true) if self.needed => "what cannot be".to_owned(),
            (false, true) => "none at all".to_owned(),
            (false, false) => list(),
            (true, true) if bounds.is_empty() => "any".to_owned(),
            (true, true) => bounds,
            (true, false) if bounds.is_empty() => format!("not {}", list()),
            (true, false) => format!("{bounds}, not {}", list()),
        }
    }
}

/// What is no number is in no bounds.
fn within(value: &str, least: Option<u64>, most: Option<u64>) -> bool {
    if least.is_none() && most.is_none() {
        return true;
    }
    let Ok(number) = value.parse::<u64>() else { return false };
    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
}

// === impl Requirements ===

impl Requirements {
    /// Adds a requirement; one that is there for the key already must hold as well.
    pub fn add(&mut self, key: impl Into<String>, allowed: Allowed) {
        let key = key.into();
        let both = self.0.get(&key).map(|there| there.and(&allowed)).unwrap_or(allowed);
        self.0.insert(key, both);
    }

    /// Exactly these labels, as on a node or in a selector.
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (key, value) in labels {
            all.add(key, Allowed::only([value]));
        }
        all
    }

    pub fn get(&self, key: &str) -> Option<&Allowed> {
        self.0.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Allowed)> {
        self.0.iter().map(|(key, allowed)| (key.as_str(), allowed))
    }

    pub fn check_count(&self) -> Result<(), RequirementError> {
        if self.0.len() > MOST { Err(RequirementError::TooMany(self.0.len())) } else { Ok(()) }
    }

    /// Both lists at once, if one machine can meet them. A key that only they have must be one that every machine
    /// knows, unless its absence is what they want.
    pub fn and(&self, theirs: &Self, is_well_known: impl Fn(&str) -> bool) -> Result<Self, Conflict> {
        let mut both = self.clone();
        for (key, allowed) in &theirs.0 {
            let Some(ours) = self.0.get(key) else {
                if !is_well_known(key) && !allowed.may_be_absent() {
                    return Err(Conflict::Undefined { key: key.clone() });
                }
                both.0.insert(key.clone(), allowed.clone());
                continue;
            };
            let narrowed = ours.and(allowed);
            if narrowed.is_impossible() {
                let (ours, theirs) = (ours.in_words(), allowed.in_words());
                return Err(Conflict::Disjoint { key: key.clone(), ours, theirs });
            }
            both.0.insert(key.clone(), narrowed);
        }
        Ok(both)
    }

    /// Whether a machine with these labels meets all of it.
    pub fn met_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, allowed)| match label(key) {
            Some(value) => allowed.has(value),
            None => allowed.may_be_absent(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allowed(operator: &str, values: &[&str]) -> Result<Allowed, RequirementError> {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        Allowed::new("key", operator.parse()?, &values)
    }

    fn list(all: &[(&str, &str, &[&str])]) -> Requirements {
        let mut list = Requirements::default();
        for (key, operator, values) in all {
            list.add(*key, allowed(operator, values).unwrap());
        }
        list
    }

    #[test]
    fn bad_requirements_say_what_is_wrong() {
        let says = |operator: &str, values: &[&str]| allowed(operator, values).unwrap_err().to_string();
        assert_eq!(says("In", &[]), "key: In needs at least one value");
        assert_eq!(says("Exists", &["a"]), "key: Exists takes no values; there are 1");
        assert_eq!(says("Gt", &["-1"]), "key: Gt needs exactly one whole number that is not negative; found -1");
        assert_eq!(
            says("Lte", &["1", "2"]),
            "key: Lte needs exactly one whole number that is not negative; found 2 values"
        );
        assert_eq!(
            says("near", &["1"]),
            "\"near\" is no operator; there are In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte and Lte"
        );
        let many = (0..=MOST).map(|n| (n.to_string(), "x"));
        let many: Vec<(String, &str)> = many.collect();
        let many = Requirements::of_labels(many.iter().map(|(key, value)| (key.as_str(), *value)));
        assert_eq!(many.check_count().unwrap_err().to_string(), "101 requirements are too many; the most is 100");
    }

    #[test]
    fn a_pool_and_a_pod_meet_where_both_allow_it() {
        let well_known = |key: &str| key == "arch";
        let pool = list(&[("gpu", "In", &["H100", "A100"]), ("count", "Lte", &["4"]), ("team", "In", &["red"])]);
        let both = |pod: &[(&str, &str, &[&str])]| pool.and(&list(pod), well_known);
        let narrowed = both(&[("gpu", "NotIn", &["A100"]), ("count", "Gte", &["2"])]).unwrap();
        assert!(narrowed.met_by(|key| {
            [("gpu", "H100"), ("count", "4"), ("team", "red")].into_iter().find(|one| one.0 == key).map(|one| one.1)
        }));
        assert!(!narrowed.met_by(|key| {
            [("gpu", "H100"), ("count", "8"), ("team", "red")].into_iter().find(|one| one.0 == key).map(|one| one.1)
        }));
        assert_eq!(both(&[("gpu", "In", &["L4"])]).unwrap_err().to_string(), "gpu: A100, H100 here, L4 there");
        assert_eq!(
            both(&[("count", "Gt", &["4"])]).unwrap_err().to_string(),
            "count: at most 4 here, at least 5 there"
        );
        // A key that only the pod has: one that every machine knows, or one that may be missing.
        assert!(both(&[("arch", "In", &["arm64"])]).is_ok());
        assert!(both(&[("disk", "NotIn", &["slow"])]).is_ok() && both(&[("disk", "DoesNotExist", &[])]).is_ok());
        assert_eq!(
            both(&[("disk", "Exists", &[])]).unwrap_err().to_string(),
            "disk is asked for, and nothing here has it"
        );
        assert!(both(&[("team", "DoesNotExist", &[])]).is_err(), "the pool puts it on every node");
    }

    #[test]
    fn what_contradicts_itself_is_met_by_nobody() {
        let both = list(&[("arch", "In", &["amd64"]), ("arch", "In", &["arm64"])]);
        assert!(!both.met_by(|_| None) && !both.met_by(|_| Some("arm64")));
    }

    fn any_allowed() -> impl Strategy<Value = Allowed> {
        let values = proptest::collection::vec(prop_oneof!["[0-9]", "[a-c]"], 1..4);
        let operators = prop_oneof![
            Just("In"),
            Just("NotIn"),
            Just("Exists"),
            Just("DoesNotExist"),
            Just("Gt"),
            Just("Lt"),
            Just("Gte"),
            Just("Lte")
        ];
        (operators, values, 0..10_u8).prop_map(|(operator, values, number)| {
            let number = number.to_string();
            let values: Vec<&str> = match operator {
                "In" | "NotIn" => values.iter().map(String::as_str).collect(),
                "Exists" | "DoesNotExist" => Vec::new(),
                _ => vec![number.as_str()],
            };
            allowed(operator, &values).unwrap()
        })
    }

    proptest! {
        /// Both at once allow exactly what each of them allows.
        #[test]
        fn together_they_allow_what_each_allows(one in any_allowed(), two in any_allowed(), three in any_allowed()) {
            let admits = |allowed: &Allowed, value: Option<&str>| value.map_or(allowed.may_be_absent(), |value| allowed.has(value));
            let (both, all) = (one.and(&two), one.and(&two).and(&three));
            let candidates: Vec<String> = (0..12).map(|n| n.to_string()).chain(["a", "b", "c", "d"].map(str::to_owned)).collect();
            for value in candidates.iter().map(|value| Some(value.as_str())).chain([None]) {
                prop_assert_eq!(admits(&both, value), admits(&one, value) && admits(&two, value), "{:?}", value);
                prop_assert_eq!(admits(&all, value), admits(&both, value) && admits(&three, value), "{:?}", value);
            }
            prop_assert_eq!(&both, &two.and(&one));
            if both.is_impossible() {
                prop_assert!(candidates.iter().all(|value| !both.has(value)) && !both.may_be_absent());
            }
        }
    }
}
