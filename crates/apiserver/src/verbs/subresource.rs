// SPDX-License-Identifier: Apache-2.0
//! Parts of an object that have a path of their own.

use bytes::Bytes;
use http::Method;

use crate::{
    answer::Answer,
    call::{Call, not_allowed, not_served},
    decode,
    registry::{Backing, Resource},
    status::Status,
    verbs::{patch, pods, read, review, scale, update},
};

pub async fn run(call: &mut Call, part: &str, body: Bytes) -> Result<Answer, Status> {
    let resource = call.resource.clone();
    let Some(subresource) = resource.subresource(part) else {
        return Err(if resource.custom().is_some() { call.not_found() } else { not_served() });
    };
    let verb = call.target.verb(&call.method, &call.options);
    if !subresource.verbs.iter().any(|one| &**one == verb) {
        return Err(not_allowed());
    }
    match (part, call.method.clone()) {
        ("status", Method::PUT) => update::part(call, &body, part).await,
        ("status", Method::PATCH) => patch::part(call, &body, part).await,
        ("status", _) => read::get(call),
        ("token", Method::POST) if &*resource.plural == "serviceaccounts" => {
            let request = decode::read(&call.headers, &body, "TokenRequest")?.value;
            review::token_request(call, request)
        }
        ("scale", _) => scale::run(call, &body).await,
        ("binding", Method::POST) => pods::binding::run(call, &body).await,
        ("eviction", Method::POST) => pods::eviction::run(call, &body).await,
        ("log", Method::GET) => pods::log::run(call),
        (part, method) if has_part(&resource, part) => match method {
            Method::PUT => update::part(call, &body, part).await,
            Method::PATCH => patch::part(call, &body, part).await,
            _ => read::get(call),
        },
        _ => Err(not_served()),
    }
}

fn has_part(resource: &Resource, part: &str) -> bool {
    matches!(&resource.backing, Backing::Builtin(rules) if rules.part(part).is_some())
}
