// SPDX-License-Identifier: Apache-2.0
//! Security contexts of pods and containers.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::json;

use crate::{field::Error, kinds::place::Place};

const MOST_ID: i64 = 2_147_483_647;
const SYSCTL: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

pub fn container(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if !at.exists() {
        return;
    }
    for field in ["runAsUser", "runAsGroup"] {
        at.field(field).between(0, MOST_ID, errors);
    }
    at.field("procMount").maybe_one_of(&["Default", "Unmasked"], errors);
    profile(&at.field("seccompProfile"), "seccomp", errors);
    if at.field("allowPrivilegeEscalation").value() == &json!(false) {
        if at.field("privileged").flag() {
            errors.push(at.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
        }
        let list = at.field("capabilities").field("add").value().as_array();
        if list.into_iter().flatten().any(|one| one == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(at.invalid(why));
        }
    }
    profile(&at.field("appArmorProfile"), "AppArmor", errors);
}

fn profile(at: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    if !at.exists() {
        return;
    }
    let (way, local) = (at.field("type"), at.field("localhostProfile"));
    match way.text() {
        "Localhost" if !local.exists() || (kind == "AppArmor" && local.text().trim().is_empty()) => {
            errors.push(local.required(format!("must be set when {kind} type is Localhost")));
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if local.exists() {
                errors.push(local.invalid(format!("can only be set when {kind} type is Localhost")));
            }
        }
        "" => errors.push(way.required("type is required when seccompProfile is set")),
        _ => errors.push(way.not_supported(&["Localhost", "RuntimeDefault", "Unconfined"])),
    }
}

/// The context of a whole pod.
pub fn pod(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let at = spec.field("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        at.field(field).between(0, MOST_ID, errors);
    }
    for group in at.field("supplementalGroups").items() {
        group.between(0, MOST_ID, errors);
    }
    if spec.field("shareProcessNamespace").flag() && spec.field("hostPID").flag() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(at.field("shareProcessNamespace").invalid_as(true, why));
    }
    sysctls(&at.field("sysctls"), errors);
    at.field("fsGroupChangePolicy").maybe_one_of(&["Always", "OnRootMismatch"], errors);
    profile(&at.field("seccompProfile"), "seccomp", errors);
    at.field("supplementalGroupsPolicy").maybe_one_of(&["Merge", "Strict"], errors);
    profile(&at.field("appArmorProfile"), "AppArmor", errors);
}

fn sysctls(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    static FORM: OnceLock<Option<Regex>> = OnceLock::new();
    let form = FORM.get_or_init(|| Regex::new(SYSCTL).ok());
    let mut seen = std::collections::BTreeSet::new();
    for one in at.items() {
        let name = one.field("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else if name.text().len() > 253 || !form.as_ref().is_some_and(|form| form.is_match(name.text())) {
            errors.push(name.invalid(format!("must have at most 253 characters and match regex {SYSCTL}")));
        } else if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}
