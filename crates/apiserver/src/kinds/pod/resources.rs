// SPDX-License-Identifier: Apache-2.0
//! Requests and limits.

use std::collections::BTreeSet;

use bivouac_core::quantity::Quantity;

use crate::{
    field::Error,
    kinds::{place::Place, values},
};

/// The amount in a field of a list of resources.
pub fn amount(at: &Place<'_, '_>) -> Option<Quantity> {
    at.text().parse().ok()
}

fn overcommits(name: &str) -> bool {
    values::is_native_resource(name) && !name.starts_with("hugepages-")
}

pub fn container(at: &Place<'_, '_>, claims: &BTreeSet<&str>, errors: &mut Vec<Error>) {
    let (limits, requests) = (at.field("limits"), at.field("requests"));
    let mut huge = false;
    let mut basic = false;
    for (name, _) in limits.map() {
        let place = limits.key(name);
        values::container_resource(&place, name, errors);
        quantity(&place, name, errors);
        huge |= name.starts_with("hugepages-");
        basic |= name == "cpu" || name == "memory";
    }
    for (name, _) in requests.map() {
        let place = requests.key(name);
        values::container_resource(&place, name, errors);
        quantity(&place, name, errors);
        match (amount(&limits.key(name)), amount(&place)) {
            (Some(limit), Some(request)) => {
                if !overcommits(name) && request != limit {
                    errors.push(
                        requests.invalid_as(request.to_string(), format!("must be equal to {name} limit of {limit}")),
                    );
                } else if request > limit {
                    let why = format!("must be less than or equal to {name} limit of {limit}");
                    errors.push(requests.invalid_as(request.to_string(), why));
                }
            }
            (None, _) if !overcommits(name) => {
                errors.push(limits.required("Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
        huge |= name.starts_with("hugepages-");
        basic |= name == "cpu" || name == "memory";
    }
    if huge && !basic {
        errors.push(at.forbidden("HugePages require cpu or memory"));
    }
    for claim in at.field("claims").items() {
        claimed(&claim, claims, errors);
    }
}

fn claimed(claim: &Place<'_, '_>, claims: &BTreeSet<&str>, errors: &mut Vec<Error>) {
    let name = claim.field("name").text();
    if name.is_empty() {
        errors.push(claim.required("must be specified"));
    } else if !claims.contains(name) {
        let why = "must be one of the names in pod.spec.resourceClaims";
        let known: Vec<&str> = claims.iter().copied().collect();
        let end = if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
        let detail = format!("{why}{end}");
        errors.push(Error { detail, ..Error::not_found(claim.path(), name) });
    }
}

/// What is wrong with the amount of a resource.
pub fn quantity(at: &Place<'_, '_>, name: &str, errors: &mut Vec<Error>) {
    let Some(amount) = amount(at) else { return };
    if amount < Quantity::default() {
        errors.push(at.invalid("must be greater than or equal to 0"));
    }
    let whole = amount.milli_value().is_none_or(|milli| milli % 1000 == 0);
    if !whole && values::is_integer_resource(name) {
        errors.push(at.invalid("must be an integer"));
    }
    if let Some(page) = name.strip_prefix("hugepages-").and_then(|page| page.parse::<Quantity>().ok())
        && let (Some(amount), Some(page)) = (amount.value(), page.value())
        && page > 0
        && amount % page != 0
    {
        let text = at.text();
        errors.push(at.invalid(format!("{text} is not positive integer multiple of {name}")));
    }
}

/// Requests and limits of a whole pod.
pub fn pod(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for list in ["limits", "requests"] {
        let list = at.field(list);
        for (name, _) in list.map() {
            if !["cpu", "memory"].contains(&name) && !name.starts_with("hugepages-") {
                errors.push(Error::not_supported(list.key(name).path(), name, &["cpu", "hugepages-", "memory"]));
            }
            quantity(&list.key(name), name, errors);
        }
    }
}
