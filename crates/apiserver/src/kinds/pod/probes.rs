// SPDX-License-Identifier: Apache-2.0
//! Probes and hooks of containers.

use crate::{
    field::Error,
    kinds::{place::Place, values},
};

/// What calls the container. Exactly one way must be given.
pub fn handler(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let mut ways = 0;
    for way in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let place = at.field(way);
        if !place.exists() {
            continue;
        }
        ways += 1;
        if ways > 1 {
            errors.push(place.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        match way {
            "exec" => {
                place.field("command").must_be(errors);
            }
            "httpGet" => http(&place, errors),
            "tcpSocket" => values::port_or_name(&place.field("port"), errors),
            "grpc" => number(&place.field("port"), errors),
            _ => {}
        }
    }
    if ways == 0 {
        errors.push(at.required("must specify a handler type"));
    }
}

fn number(port: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let value = port.number().unwrap_or_default();
    if !(1..=65535).contains(&value) {
        errors.push(port.invalid_as(value, "must be between 1 and 65535, inclusive"));
    }
}

fn http(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    at.field("path").must_be(errors);
    values::port_or_name(&at.field("port"), errors);
    at.field("scheme").one_of(&["HTTP", "HTTPS"], errors);
    let headers = at.field("httpHeaders");
    for header in headers.items() {
        let name = header.field("name").text();
        errors.extend(values::header_name(name).into_iter().map(|why| headers.invalid_as(name, why)));
    }
}

pub fn probe(at: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    if !at.exists() {
        return;
    }
    handler(at, errors);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        at.field(field).not_negative(errors);
    }
    let grace = at.field("terminationGracePeriodSeconds");
    if kind == "readinessProbe" {
        if grace.exists() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
        return;
    }
    if grace.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(grace.invalid("must be greater than 0"));
    }
    let threshold = at.field("successThreshold");
    if threshold.number() != Some(1) {
        errors.push(threshold.invalid_as(threshold.number().unwrap_or_default(), "must be 1"));
    }
}
