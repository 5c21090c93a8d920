// SPDX-License-Identifier: Apache-2.0
//! Reading a list page by page, also from clouds whose pages never end.

use std::collections::BTreeSet;

use crate::fault::{Fault, Operation, Outcome};
use crate::wire::Wire;

/// No list of machines or types has more pages.
const MOST: usize = 1000;

/// The cursors that one listing has followed.
#[derive(Debug, Default)]
pub struct Cursors {
    seen: BTreeSet<String>,
}

// === impl Cursors ===

impl Cursors {
    /// The cursor of the next page, if the cloud names one. One that was there before leads round in circles: what was
    /// read is not the whole, so it is a fault.
    pub fn next(&mut self, wire: &Wire, operation: Operation, named: Option<String>) -> Result<Option<String>, Fault> {
        let Some(cursor) = named.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
        if self.seen.len() >= MOST {
            return Err(wire.fault(operation, Outcome::Transient, format!("the list has more than {MOST} pages")));
        }
        if !self.seen.insert(cursor.clone()) {
            return Err(wire.fault(operation, Outcome::Transient, "the pages of the list go round in circles"));
        }
        Ok(Some(cursor))
    }
}
