// SPDX-License-Identifier: Apache-2.0
//! Values from pools: everything follows from one number.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value};

pub struct Draw(StdRng);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.random_ratio(percent, 100)
    }

    pub fn between(&mut self, least: usize, most: usize) -> usize {
        self.0.random_range(least..=most)
    }

    pub fn one<T: Clone + Default>(&mut self, pool: &[T]) -> T {
        pool.choose(&mut self.0).cloned().unwrap_or_default()
    }

    /// The first with its weight, the second with its own, and so on.
    pub fn weighted<T: Copy>(&mut self, pool: &[(u32, T)]) -> Option<T> {
        pool.choose_weighted(&mut self.0, |one| one.0).ok().map(|one| one.1)
    }

    /// A value of a grammar; see `random.yaml`.
    pub fn value(&mut self, grammar: &Value, whole: bool) -> Value {
        match grammar {
            Value::Array(items) => items.iter().map(|item| self.value(item, whole)).collect(),
            Value::Object(fields) => match (fields.get("$one"), fields.get("$some")) {
                (Some(Value::Array(pool)), _) => {
                    let one = self.one(pool);
                    self.value(&one, whole)
                }
                (_, Some(Value::Array(pool))) => self.some(pool, whole),
                _ => self.object(fields, whole),
            },
            plain => plain.clone(),
        }
    }

    pub fn some(&mut self, pool: &[Value], whole: bool) -> Value {
        let mut items: Vec<&Value> = pool.iter().filter(|_| self.chance(50)).collect();
        if self.chance(30) {
            items.shuffle(&mut self.0);
        }
        items.into_iter().map(|item| self.value(item, whole)).collect()
    }

    fn object(&mut self, fields: &Map<String, Value>, whole: bool) -> Value {
        let mut object = Map::new();
        for (name, grammar) in fields {
            let (name, likely) = match (name.strip_suffix('!'), name.strip_suffix('+')) {
                (Some(name), _) => (name, 100),
                (_, Some(name)) => (name, if whole { 100 } else { 40 }),
                _ => (name.as_str(), 35),
            };
            if self.chance(likely) {
                object.insert(name.to_owned(), self.value(grammar, whole));
            }
        }
        Value::Object(object)
    }

    /// Some fields of a patch go, but not the label that selects.
    pub fn nulls(&mut self, value: &mut Value) {
        if let Value::Object(fields) = value {
            for (name, value) in fields {
                if self.chance(12) && name != "app" {
                    *value = Value::Null;
                } else {
                    self.nulls(value);
                }
            }
        }
    }
}
