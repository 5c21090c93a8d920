// SPDX-License-Identifier: Apache-2.0
//! What a machine must be, as sets of label values: what a pool allows, what a pod asks for, and both at once.
//!
//! Each key has a set of values or everything but such a set, within numeric bounds. Two requirements on a key are one:
//! what both allow. The rules are those of Karpenter, so that people's manifests mean here what they mean there.

use std::collections::{BTreeMap, BTreeSet};

use crate::gpu::Gpu;
use crate::labels;

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
    min_values: Option<usize>,
}

/// Requirements on many keys; a key that is not here may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    keys: BTreeMap<String, Allowed>,
    /// GPUs have many names, and `A100` means every A100: sets of names say too little about what two lists have in
    /// common. So each list stays as it is, and a GPU must be in all of them.
    gpus: Vec<Allowed>,
}

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

    /// The same, and so many different values must stay possible.
    pub fn with_at_least(self, values: usize) -> Self {
        Self { min_values: Some(values), ..self }
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

    /// Whether a GPU is allowed, whatever it is called here.
    pub fn has_gpu(&self, gpu: &Gpu) -> bool {
        self.values.iter().any(|wish| gpu.fits(&Gpu::named(wish))) != self.complement
    }

    /// Whether some GPU may be in both lists.
    fn shares_gpu(&self, other: &Self) -> bool {
        match (self.listed(), other.listed()) {
            (Some(_), Some(values)) => values.iter().map(|name| Gpu::named(name)).any(|gpu| {
                let finer = |name: &String| Gpu::named(name).fits(&gpu);
                self.has_gpu(&gpu) || self.values.iter().any(finer)
            }),
            (Some(values), None) => values.is_empty() || values.iter().any(|name| other.has_gpu(&Gpu::named(name))),
            (None, Some(_)) => other.shares_gpu(self),
            (None, None) => true,
        }
    }

    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && within(value, self.least, self.most)
    }

    /// Whether a machine is right with this label, or without it.
    pub fn admits(&self, value: Option<&str>) -> bool {
        value.map_or(self.may_be_absent(), |value| self.has(value))
    }

    /// Whether a machine without the label is right, too.
    pub fn may_be_absent(&self) -> bool {
        !self.needed
    }

    pub fn min_values(&self) -> Option<usize> {
        self.min_values
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
        if key == labels::GPU_TYPE {
            self.gpus.push(allowed);
            return;
        }
        let both = self.keys.get(&key).map(|there| there.and(&allowed)).unwrap_or(allowed);
        self.keys.insert(key, both);
    }

    /// Exactly these labels, as on a node or in a selector.
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (key, value) in labels {
            all.add(key, Allowed::only([value]));
        }
        all
    }

    /// All keys but that of the GPU.
    pub fn get(&self, key: &str) -> Option<&Allowed> {
        self.keys.get(key)
    }

    /// What there is for the GPU; all of it must hold.
    pub fn gpus(&self) -> &[Allowed] {
        &self.gpus
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Allowed)> {
        let gpus = self.gpus.iter().map(|allowed| (labels::GPU_TYPE, allowed));
        self.keys.iter().map(|(key, allowed)| (key.as_str(), allowed)).chain(gpus)
    }

    pub fn check_count(&self) -> Result<(), RequirementError> {
        let count = self.iter().count();
        if count > MOST { Err(RequirementError::TooMany(count)) } else { Ok(()) }
    }

    /// Both lists at once, if one machine can meet them. A key that only they have must be one that every machine
    /// knows, unless its absence is what they want.
    pub fn and(&self, theirs: &Self) -> Result<Self, Conflict> {
        let mut both = self.clone();
        for (key, allowed) in &theirs.keys {
            let Some(ours) = self.keys.get(key) else {
                if !labels::is_well_known(key) && !allowed.may_be_absent() {
                    return Err(Conflict::Undefined { key: key.clone() });
                }
                both.keys.insert(key.clone(), allowed.clone());
                continue;
            };
            let narrowed = ours.and(allowed);
            if narrowed.is_impossible() {
                return Err(Conflict::between(key, ours, allowed));
            }
            both.keys.insert(key.clone(), narrowed);
        }
        for allowed in &theirs.gpus {
            if let Some(ours) = self.gpus.iter().find(|ours| !ours.shares_gpu(allowed)) {
                return Err(Conflict::between(labels::GPU_TYPE, ours, allowed));
            }
            both.gpus.push(allowed.clone());
        }
        Ok(both)
    }

    /// Whether a machine with these labels meets all of it.
    pub fn met_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let gpu = label(labels::GPU_TYPE).map(Gpu::named);
        let gpu_is_right = |allowed: &Allowed| gpu.as_ref().map_or(allowed.may_be_absent(), |gpu| allowed.has_gpu(gpu));
        self.keys.iter().all(|(key, allowed)| allowed.admits(label(key))) && self.gpus.iter().all(gpu_is_right)
    }
}

// === impl Conflict ===

impl Conflict {
    fn between(key: &str, ours: &Allowed, theirs: &Allowed) -> Self {
        Self::Disjoint { key: key.to_owned(), ours: ours.in_words(), theirs: theirs.in_words() }
    }
}

#[cfg(test)]
#[path = "requirement_tests.rs"]
mod tests;
