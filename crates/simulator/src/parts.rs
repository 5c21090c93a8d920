// SPDX-License-Identifier: Apache-2.0
//! What a simulated cluster is made of.

use crate::{accounts::Accounts, controller::Controller};

/// One controller of the cluster. Each lives in the file or folder of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Accounts,
}

impl Part {
    /// In the order in which they are asked what to do.
    pub const ALL: &'static [Self] = &[Self::Accounts];

    pub(crate) fn start(self) -> Box<dyn Controller> {
        match self {
            Self::Accounts => Box::new(Accounts),
        }
    }
}
