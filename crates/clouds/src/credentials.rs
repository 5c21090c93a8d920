// SPDX-License-Identifier: Apache-2.0
//! Keys to clouds: from a Secret of the cluster, from the environment, or from a file.

use std::collections::BTreeMap;
use std::fmt;

use http::HeaderValue;
use serde_json::Value;

use crate::fault::{Fault, Operation, Outcome};
use crate::secret::{Redactor, Secret};
use crate::wire::Wire;

/// What one cloud needs to know us, by the names of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials(BTreeMap<String, Secret>);

/// Why there is no usable credential. It says what is missing, never what is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    #[error("the credential has no {0:?}")]
    Field(String),
    #[error("the {0:?} of the credential is empty")]
    Empty(String),
    #[error("the credential needs {0}: write it as JSON with these keys")]
    Several(String),
    #[error("the {field:?} of the credential cannot be used: {why}")]
    Unusable { field: String, why: String },
    #[error("the credentials file cannot be read: {0}")]
    File(String),
}

/// Fields that name us and open nothing.
pub const PUBLIC: [&str; 3] = ["project_id", "client_email", "client_id"];

// === impl Credentials ===

impl Credentials {
    pub fn of(fields: impl IntoIterator<Item = (&'static str, Secret)>) -> Self {
        Self(fields.into_iter().map(|(name, secret)| (name.to_owned(), secret)).collect())
    }

    /// One text, as a key of a Secret holds it: the only field, or a JSON object with all of them.
    pub fn read(text: &str, fields: &[&str]) -> Result<Self, Lack> {
        let text = text.trim();
        if let [only] = fields {
            return Ok(Self(BTreeMap::from([((*only).to_owned(), Secret::new(text))])));
        }
        let all = || Lack::Several(fields.join(", "));
        let object: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| all())?;
        Ok(Self(object.into_iter().filter_map(|(name, value)| Some((name, Secret::new(value.as_str()?)))).collect()))
    }

    /// Those fields that somebody knows. `None` if there is none at all.
    pub fn from_fields(fields: &[&str], value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let found = fields.iter().filter_map(|field| Some(((*field).to_owned(), Secret::new(value(field)?))));
        let found: BTreeMap<String, Secret> = found.collect();
        (!found.is_empty()).then_some(Self(found))
    }

    /// All clouds of a YAML file: `lambda: <key>`, or a map of fields.
    pub fn from_file(text: &str) -> Result<BTreeMap<String, Value>, Lack> {
        // What the parser says may quote what it read, which nobody may see.
        serde_saphyr::from_str(text).map_err(|_| Lack::File("it is no YAML map of clouds".to_owned()))
    }

    pub fn need(&self, field: &str) -> Result<&Secret, Lack> {
        let secret = self.0.get(field).ok_or_else(|| Lack::Field(field.to_owned()))?;
        if secret.reveal().is_empty() { Err(Lack::Empty(field.to_owned())) } else { Ok(secret) }
    }

    pub fn get(&self, field: &str) -> Option<&Secret> {
        self.0.get(field)
    }

    /// Tells it from others, and nothing more.
    pub fn fingerprint(&self) -> String {
        let all: Vec<String> = self.0.iter().map(|(name, secret)| format!("{name}={}", secret.reveal())).collect();
        bivouac_core::ids::uuid_of(&all.join("\n"))
    }

    /// What nobody may see.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter().filter(|(name, _)| !PUBLIC.contains(&name.as_str())).map(|(_, secret)| secret)
    }
}

// === impl Lack ===

impl Lack {
    /// The same for somebody who wanted to use the cloud.
    pub fn fault(&self, wire: &Wire) -> Fault {
        wire.fault(Operation::Verify, Outcome::Unauthorized, self.to_string())
    }
}

/// The header that most clouds know us by.
pub fn bearer(wire: &Wire, key: &Secret) -> Result<(HeaderValue, Redactor), Fault> {
    let redactor = Redactor::new([key]);
    let mut header = HeaderValue::from_str(&format!("Bearer {}", key.reveal())).map_err(|_| {
        let why = "it has letters that no header can have".to_owned();
        Lack::Unusable { field: "key".to_owned(), why }.fault(wire)
    })?;
    header.set_sensitive(true);
    Ok((header, redactor))
}

impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}
