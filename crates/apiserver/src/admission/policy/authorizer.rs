// SPDX-License-Identifier: Apache-2.0
//! `authorizer`: what an expression can ask about the rights of whoever makes the request.

use std::sync::Arc;

use kube_cel::cel::{Context, ExecutionError, ResolveResult, Value as Cel, extractors::This, objects::Opaque};

use crate::access::{Attributes, Decision, Index, User};

/// A question that is being put together.
#[derive(Debug, Clone)]
pub struct Question {
    index: Arc<Index>,
    user: User,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    path: String,
}

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
struct Answer(Decision);

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let parts = |one: &Self| {
            let Self { user, group, resource, subresource, namespace, name, path, .. } = one.clone();
            (user, group, resource, subresource, namespace, name, path)
        };
        parts(self) == parts(other)
    }
}

impl Eq for Question {}

impl Opaque for Question {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Authorizer"
    }
}

impl Opaque for Answer {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Decision"
    }
}

impl Question {
    pub fn new(index: Arc<Index>, user: User) -> Self {
        let empty = String::new;
        let (group, resource, subresource) = (empty(), empty(), empty());
        Self { index, user, group, resource, subresource, namespace: empty(), name: empty(), path: empty() }
    }

    /// About the object of the request itself.
    pub fn about(mut self, wanted: &Attributes<'_>) -> Self {
        self.group = wanted.group.to_owned();
        self.resource = wanted.resource.to_owned();
        self.subresource = wanted.subresource.to_owned();
        self.namespace = wanted.namespace.to_owned();
        self.name = wanted.name.to_owned();
        self
    }

    pub fn value(self) -> Cel {
        Cel::Opaque(Arc::new(self))
    }

    fn ask(&self, verb: &str) -> Decision {
        let wanted = Attributes {
            verb,
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            path: &self.path,
        };
        self.index.decide(&self.user, &wanted)
    }
}

fn question(value: &Cel) -> Result<Question, ExecutionError> {
    match value {
        Cel::Opaque(opaque) => opaque.downcast_ref::<Question>().cloned(),
        _ => None,
    }
    .ok_or(ExecutionError::NoSuchOverload)
}

/// A function that says more about a question.
fn more(root: &mut Context<'static>, name: &str, set: fn(&mut Question, String)) {
    root.add_function(name, move |This(this): This<Cel>, text: Arc<String>| -> ResolveResult {
        let mut question = question(&this)?;
        set(&mut question, text.to_string());
        Ok(question.value())
    });
}

fn answer(root: &mut Context<'static>, name: &str, get: fn(&Decision) -> Cel) {
    root.add_function(name, move |This(this): This<Cel>| -> ResolveResult {
        match &this {
            Cel::Opaque(opaque) => opaque.downcast_ref::<Answer>().map(|answer| get(&answer.0)),
            _ => None,
        }
        .ok_or(ExecutionError::NoSuchOverload)
    });
}

pub fn register(root: &mut Context<'static>) {
    more(root, "group", |question, text| question.group = text);
    more(root, "resource", |question, text| question.resource = text);
    more(root, "subresource", |question, text| question.subresource = text);
    more(root, "namespace", |question, text| question.namespace = text);
    more(root, "name", |question, text| question.name = text);
    more(root, "path", |question, text| question.path = text);
    root.add_function(
        "serviceAccount",
        |This(this): This<Cel>, namespace: Arc<String>, name: Arc<String>| -> ResolveResult {
            let mut question = question(&this)?;
            let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            question.user = User {
                name: format!("system:serviceaccount:{namespace}:{name}"),
                groups: groups.into_iter().chain(["system:authenticated".to_owned()]).collect(),
                ..User::default()
            };
            Ok(question.value())
        },
    );
    root.add_function("check", |This(this): This<Cel>, verb: Arc<String>| -> ResolveResult {
        Ok(Cel::Opaque(Arc::new(Answer(question(&this)?.ask(&verb)))))
    });
    answer(root, "allowed", |decision| decision.allowed.into());
    answer(root, "reason", |decision| decision.reason.as_str().into());
    answer(root, "errored", |_| false.into());
    answer(root, "error", |_| "".into());
}
