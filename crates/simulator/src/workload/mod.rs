// SPDX-License-Identifier: Apache-2.0
//! What the controllers of workloads have in common: whose a pod is, and what state it is in.

mod claim;
mod fraction;
mod hash;
mod pod;
mod revisions;

pub use self::{
    claim::{claim, concerned, controller_of, owned},
    fraction::{Round, share},
    hash::of_template,
    pod::{
        available_at, by_dispensability, condition, from_template, generate_name, is_active, is_available, is_ready,
        is_terminating, node_of, phase, some, time, whole,
    },
    revisions::{REVISION_HASH, Revisions, hash_of, name_of, template_of},
};
