// SPDX-License-Identifier: Apache-2.0
//! Kinds that are questions about users and their rights: they are answered, not stored.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    access::{self, Attributes, Rule, User, tokens},
    answer::{Answer, to_bytes},
    call::Call,
    field::Error,
    object::{Object, as_object, text},
    status::Status,
    write,
};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The answer, if the kind is a question.
pub fn run(call: &Call, object: &Value) -> Result<Option<Answer>, Status> {
    let answered = match (&*call.resource.group, &*call.resource.plural) {
        (AUTHORIZATION, "selfsubjectrulesreviews") => rules(call, object)?,
        (AUTHORIZATION, "subjectaccessreviews" | "selfsubjectaccessreviews" | "localsubjectaccessreviews") => {
            access(call, object)?
        }
        (AUTHENTICATION, "selfsubjectreviews") => {
            let status = json!({ "userInfo": shown(&call.user) });
            answered(call, json!({ "creationTimestamp": call.server.now() }), None, status)
        }
        (AUTHENTICATION, "tokenreviews") => token(call, object)?,
        _ => return Ok(None),
    };
    let body = to_bytes(&answered);
    Ok(Some(Answer::Object { code: StatusCode::CREATED, resource: call.resource.clone(), body }))
}

fn answered(call: &Call, metadata: Value, spec: Option<Value>, status: Value) -> Value {
    let mut object = json!({
        "kind": &*call.resource.kind,
        "apiVersion": &*call.resource.api_version,
        "metadata": metadata,
        "status": status,
    });
    as_object(&mut object).extend(spec.map(|spec| ("spec".to_owned(), spec)));
    object
}

/// A user on the wire.
pub fn shown(user: &User) -> Value {
    let mut map = Map::from_iter([("username".to_owned(), user.name.as_str().into())]);
    if !user.uid.is_empty() {
        map.insert("uid".into(), user.uid.as_str().into());
    }
    if !user.groups.is_empty() {
        map.insert("groups".into(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        map.insert("extra".into(), user.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect());
    }
    Value::Object(map)
}

fn strings(value: &Value, pointer: &str) -> Vec<String> {
    let list = value.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// May somebody do something?
fn access(call: &Call, review: &Value) -> Result<Value, Status> {
    check(call, review)?;
    let user = match &*call.resource.plural {
        "selfsubjectaccessreviews" => call.user.clone(),
        _ => User {
            name: text(review, "/spec/user").to_owned(),
            uid: text(review, "/spec/uid").to_owned(),
            groups: strings(review, "/spec/groups"),
            extra: Vec::new(),
        },
    };
    let of = |field: &str| text(review, &format!("/spec/resourceAttributes/{field}"));
    let wanted = if review.pointer("/spec/resourceAttributes").is_some() {
        Attributes {
            verb: of("verb"),
            group: of("group"),
            resource: of("resource"),
            subresource: of("subresource"),
            namespace: of("namespace"),
            name: of("name"),
            path: "",
        }
    } else {
        let of = |field: &str| text(review, &format!("/spec/nonResourceAttributes/{field}"));
        Attributes { verb: of("verb"), path: of("path"), ..Attributes::default() }
    };
    let decision = access::decide(&call.server, &user, &wanted);
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        as_object(&mut status).insert("reason".into(), decision.reason.into());
    }
    let mut review = write::manage(call, None, review.clone(), "");
    if call.resource.namespaced {
        review.set_meta("namespace", call.namespace());
    }
    as_object(&mut review).insert("status".into(), status);
    Ok(review)
}

fn check(call: &Call, review: &Value) -> Result<(), Status> {
    let (resource, path) = (review.pointer("/spec/resourceAttributes"), review.pointer("/spec/nonResourceAttributes"));
    let local = call.resource.namespaced;
    let mut errors = Vec::new();
    let capital = |path: &Value| json!({ "Path": text(path, "/path"), "Verb": text(path, "/verb") });
    match (resource, path) {
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            errors.push(Error::invalid("spec.nonResourceAttributes", capital(path), why));
        }
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(Error::invalid("spec.resourceAttributes", Value::Null, why));
        }
        _ => {}
    }
    let nobody = text(review, "/spec/user").is_empty() && strings(review, "/spec/groups").is_empty();
    if nobody && !call.resource.plural.starts_with("self") {
        errors.push(Error::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    if let (true, Some(resource)) = (local, resource)
        && text(resource, "/namespace") != call.namespace()
    {
        let why = "must match metadata.namespace";
        errors.push(Error::invalid("spec.resourceAttributes.namespace", text(resource, "/namespace"), why));
    }
    if let (true, None, Some(path)) = (local, resource, path) {
        errors.push(Error::invalid("spec.nonResourceAttributes", capital(path), "disallowed on this kind of request"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(AUTHORIZATION, "", "", &errors)) }
}

/// What may I do here?
fn rules(call: &Call, review: &Value) -> Result<Value, Status> {
    let namespace = text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (rules, error) = access::index(&call.server).rules_of(&call.user, namespace);
    let list = |rule: &Rule, fields: &[(&str, &Vec<String>)]| {
        let mut map = Map::from_iter([("verbs".to_owned(), json!(rule.verbs))]);
        map.extend(
            fields.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| ((*name).to_owned(), json!(list))),
        );
        Value::Object(map)
    };
    let of_resources = rules.iter().filter(|rule| !rule.resources.is_empty());
    let resources: Vec<Value> = of_resources
        .map(|rule| {
            list(rule, &[("apiGroups", &rule.groups), ("resources", &rule.resources), ("resourceNames", &rule.names)])
        })
        .collect();
    let of_paths = rules.iter().filter(|rule| !rule.urls.is_empty());
    let paths: Vec<Value> = of_paths.map(|rule| list(rule, &[("nonResourceURLs", &rule.urls)])).collect();
    let mut status = json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false });
    as_object(&mut status).extend(error.map(|error| ("evaluationError".to_owned(), error.into())));
    Ok(answered(call, json!({}), Some(json!({})), status))
}

/// Whose token is this?
fn token(call: &Call, review: &Value) -> Result<Value, Status> {
    let token = text(review, "/spec/token");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = strings(review, "/spec/audiences");
    let status = match access::of_token(&call.server, token, &audiences) {
        Ok((user, audiences)) => {
            let mut status = json!({ "authenticated": true, "user": shown(&user) });
            if !audiences.is_empty() {
                as_object(&mut status).insert("audiences".into(), json!(audiences));
            }
            status
        }
        Err(error) => json!({ "user": {}, "error": error }),
    };
    let mut review = write::manage(call, None, review.clone(), "");
    as_object(&mut review).insert("status".into(), status);
    Ok(review)
}

/// A new token for a service account.
pub fn token_request(call: &Call, request: Value) -> Result<Answer, Status> {
    let account = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
    let account = call.resource.read(&account);
    let mut request = request;
    let kind = tokens::Kind::new();
    kind.complete(&mut request);
    let seconds = request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or_default();
    let wrong = match seconds {
        ..600 => Some("may not specify a duration less than 10 minutes"),
        0x1_0000_0001.. => Some("may not specify a duration larger than 2^32 seconds"),
        _ => None,
    };
    if let Some(why) = wrong {
        let error = Error::invalid("spec.expirationSeconds", seconds, why);
        return Err(Status::invalid(AUTHENTICATION, "TokenRequest", "", &[error]));
    }
    let bound = bound_object(call, &account, &request)?;
    // Who asked for what is noted before the audience is filled in.
    let mut request = kind.manage(call, request);
    let mut audiences = strings(&request, "/spec/audiences");
    if audiences.is_empty() {
        audiences.push(tokens::ISSUER.to_owned());
    }
    let claims = tokens::Claims {
        account: &account,
        bound: bound.as_ref().map(|(kind, object)| (kind.as_str(), object)),
        audiences: &audiences,
        seconds,
    };
    let (token, ends) = tokens::issue(&call.server, &claims);
    for field in ["name", "namespace", "uid"] {
        request.set_meta(field, account.meta_str(field));
    }
    request.set_meta("creationTimestamp", call.server.now());
    let map = as_object(&mut request);
    let spec = as_object(map.entry("spec").or_insert_with(|| json!({})));
    spec.insert("audiences".into(), json!(audiences));
    spec.entry("boundObjectRef").or_insert(Value::Null);
    map.insert("status".into(), json!({ "token": token, "expirationTimestamp": crate::object::time(ends) }));
    Ok(Answer::Document { code: StatusCode::CREATED, body: request })
}

/// What the token shall live and die with.
fn bound_object(call: &Call, account: &Value, request: &Value) -> Result<Option<(String, Value)>, Status> {
    let Some(reference) = request.pointer("/spec/boundObjectRef").filter(|reference| reference.is_object()) else {
        return Ok(None);
    };
    let (kind, name, uid) = (text(reference, "/kind"), text(reference, "/name"), text(reference, "/uid"));
    let plural = match (text(reference, "/apiVersion"), kind) {
        ("v1", "Pod") => "pods",
        ("v1", "Secret") => "secrets",
        ("v1", "Node") => "nodes",
        (version, kind) => {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(why));
        }
    };
    let key = if plural == "nodes" { name.to_owned() } else { format!("{}/{name}", call.namespace()) };
    let found = crate::admission::look(&call.server, "", plural, &key);
    let object = found.ok_or_else(|| Status::not_found("", plural, name))?;
    if !uid.is_empty() && uid != object.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", plural, name, why));
    }
    if plural == "pods" && text(&object, "/spec/serviceAccountName") != account.name() {
        let why = format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            account.name()
        );
        return Err(Status::bad_request(why));
    }
    Ok(Some((kind.to_owned(), object)))
}
