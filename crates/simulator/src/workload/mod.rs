// SPDX-License-Identifier: Apache-2.0
//! What the controllers of workloads have in common: whose a pod is, and what state it is in.

mod claim;
mod pod;

pub use self::{
    claim::{Claimed, claim, concerned, controller_of, owned},
    pod::{
        available_at, by_dispensability, condition, from_template, generate_name, is_active, is_available, is_ready,
        is_terminating, phase, ready_since, time,
    },
};
