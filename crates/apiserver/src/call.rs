// SPDX-License-Identifier: Apache-2.0
//! One request for a resource, from its verb to its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::{
    access::{self, Attributes, User},
    answer::Answer,
    decode::MEDIA_TYPES,
    registry::Resource,
    request::{
        Target,
        accept::{Accepted, Unacceptable},
        options::Options,
    },
    server::Inner,
    status::Status,
    verbs,
};

/// Everything that is known about a request for a resource.
pub struct Call {
    pub server: Arc<Inner>,
    pub user: User,
    pub target: Target,
    pub resource: Arc<Resource>,
    pub options: Options,
    pub method: Method,
    pub headers: HeaderMap,
    pub accepted: Accepted,
    /// Given back to the caller in headers.
    pub warnings: Vec<String>,
}

impl Call {
    pub fn new(
        server: Arc<Inner>,
        user: User,
        target: Target,
        head: &http::request::Parts,
        accepted: Result<Accepted, Unacceptable>,
    ) -> Result<Self, Status> {
        let method = head.method.clone();
        let options = Options::parse(head.uri.query());
        let verb = target.verb(&method, options.as_ref().unwrap_or(&Options::default()));
        let mut wanted = attributes(&target, verb);
        if let (None, Ok(options)) = (&target.name, &options) {
            // Who may see one object may look for it in a list.
            wanted.name = options.fields.required("metadata.name").unwrap_or_default();
        }
        access::authorize(&server, &user, &wanted)?;
        let resource = find(&server, &target)?;
        let accepted = accepted.map_err(|why| match why {
            Unacceptable::MediaType if resource.custom().is_none() => {
                let message = format!(
                    "406: Not Acceptable\n\nAvailable representations: {}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
                    MEDIA_TYPES.join(", ")
                );
                Status::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
                    .with(crate::status::Details::default())
            }
            Unacceptable::MediaType | Unacceptable::Form => Status::not_acceptable(&MEDIA_TYPES),
        })?;
        Ok(Self {
            server,
            user,
            target,
            resource,
            options: options?,
            method,
            headers: head.headers.clone(),
            accepted,
            warnings: Vec::new(),
        })
    }

    /// A request that the server makes to itself.
    pub fn inside(server: &Arc<Inner>, resource: &Arc<Resource>, namespace: &str, name: &str) -> Self {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let target = Target {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            namespace: some(namespace),
            plural: resource.plural.to_string(),
            name: some(name),
            ..Target::default()
        };
        Self {
            server: server.clone(),
            user: User::admin(),
            target,
            resource: resource.clone(),
            options: Options { field_manager: Some("kube-controller-manager".to_owned()), ..Options::default() },
            method: Method::POST,
            headers: HeaderMap::new(),
            accepted: Accepted::JSON,
            warnings: Vec::new(),
        }
    }

    pub async fn run(&mut self, body: Bytes) -> Result<Answer, Status> {
        let warning = self.resource.custom().and_then(|custom| custom.warning.clone());
        self.warnings.extend(warning);
        if let Some(part) = self.target.subresource.clone() {
            return verbs::subresource::run(self, &part, body).await;
        }
        let verb = self.target.verb(&self.method, &self.options);
        let misplaced = (self.method == Method::POST && self.target.name.is_some())
            || (matches!(verb, "update" | "patch") && self.target.name.is_none())
            || (self.resource.namespaced
                && self.target.namespace.is_none()
                && !matches!(verb, "list" | "watch" | "get"));
        if misplaced && self.resource.custom().is_some() {
            return Err(Status::no_such_page());
        }
        if misplaced || !self.resource.serves(verb) {
            return Err(not_allowed());
        }
        match verb {
            "get" => verbs::read::get(self),
            "list" => verbs::read::list(self).await,
            "watch" => verbs::watch::run(self).await,
            "create" => verbs::create::run(self, &body).await,
            "update" => verbs::update::run(self, &body).await,
            "patch" => verbs::patch::run(self, &body).await,
            "delete" => verbs::delete::one(self, &body).await,
            _ => verbs::delete::collection(self, &body).await,
        }
    }

    pub fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    pub fn key(&self) -> String {
        self.resource.key(self.namespace(), self.name())
    }

    /// The manager whose fields an update changes: the one that is named, or the start of the user agent.
    pub fn manager(&self) -> String {
        const MOST: usize = 128;
        if let Some(manager) = &self.options.field_manager {
            return manager.clone();
        }
        let agent = self.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
        name.chars().filter(|c| !c.is_control()).take(MOST).collect()
    }

    pub fn not_found(&self) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, self.name())
    }
}

fn find(server: &Inner, target: &Target) -> Result<Arc<Resource>, Status> {
    let registry = server.registry();
    let absent = || {
        // The real server words it differently where it knows the group from the start.
        let known = registry.group(&target.group).is_some_and(|group| {
            group
                .versions
                .iter()
                .any(|version| registry.version(&target.group, version).any(|one| one.custom().is_none()))
        });
        if known { not_served() } else { Status::no_such_page() }
    };
    let resource = registry.find(&target.group, &target.version, &target.plural).cloned().ok_or_else(absent)?;
    let misplaced =
        target.namespace.is_some() != resource.namespaced && (target.namespace.is_some() || target.name.is_some());
    if misplaced {
        return Err(if resource.custom().is_some() { Status::no_such_page() } else { not_served() });
    }
    Ok(resource)
}

pub fn not_served() -> Status {
    Status::new(http::StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
        .with(crate::status::Details::default())
}

pub fn not_allowed() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::new(http::StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
        .with(crate::status::Details::default())
}

/// What the caller wants, in the terms of authorisation.
pub fn attributes<'a>(target: &'a Target, verb: &'a str) -> Attributes<'a> {
    let is_namespace = target.group.is_empty() && target.plural == "namespaces";
    let name = target.name.as_deref().unwrap_or_default();
    Attributes {
        verb,
        group: &target.group,
        resource: &target.plural,
        subresource: target.subresource.as_deref().unwrap_or_default(),
        namespace: if is_namespace { name } else { target.namespace.as_deref().unwrap_or_default() },
        name,
        path: "",
    }
}
