// SPDX-License-Identifier: Apache-2.0
//! Partial types of the systems we drive. Each holds the fields we set and no others: server-side apply then owns
//! exactly these. Never replace or merge an object through them, it would lose the rest.

pub mod gateway;
pub mod istio;
