// SPDX-License-Identifier: Apache-2.0
//! What is there before the first request.

mod access;
mod services;

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::{
    access::User,
    call::Call,
    definitions,
    object::Object,
    request::{Target, accept::Accepted, options::Options},
    server::Inner,
    status::Status,
    store::Range,
    write,
};

/// Makes what the real server makes when it starts, and serves the definitions that the store holds.
pub async fn run(server: &Arc<Inner>) -> Result<(), Status> {
    let registry = server.registry();
    if let Some(resource) = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions") {
        let page = server.store.range(&resource.keyspace, &Range::default(), |_| true).map_err(Status::internal)?;
        page.items.iter().for_each(|stored| definitions::serve(server, &resource.read(stored)));
    }
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        ensure(server, "", "v1", "namespaces", namespace(name)).await?;
    }
    for (name, value, use_for) in PRIORITIES {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": { "name": name },
            "value": value,
            "description": format!("Used for system critical pods that must {use_for}"),
        });
        ensure(server, "scheduling.k8s.io", "v1", "priorityclasses", class).await?;
    }
    for (plural, object) in access::objects() {
        ensure(server, "rbac.authorization.k8s.io", "v1", plural, object).await?;
    }
    services::run(server).await
}

/// The priority classes that are always there.
const PRIORITIES: [(&str, u32, &str); 2] = [
    ("system-node-critical", 2_000_001_000, "not be moved from their current node."),
    ("system-cluster-critical", 2_000_000_000, "run in the cluster, but can be moved to another node if necessary."),
];

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name }})
}

/// Creates an object that is not there yet, the way a request would.
pub async fn ensure(
    server: &Arc<Inner>,
    group: &str,
    version: &str,
    plural: &str,
    object: Value,
) -> Result<(), Status> {
    let Some(resource) = server.registry().find(group, version, plural).cloned() else { return Ok(()) };
    let target = Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespace: Some(object.namespace().to_owned()).filter(|namespace| !namespace.is_empty()),
        ..Target::default()
    };
    if server.store.get(&resource.keyspace, &resource.key(object.namespace(), object.name())).is_some() {
        return Ok(());
    }
    let options = Options { field_manager: Some("kube-apiserver".to_owned()), ..Options::default() };
    let mut call = Call {
        server: server.clone(),
        user: User::admin(),
        target,
        resource: resource.clone(),
        options,
        method: Method::POST,
        headers: HeaderMap::new(),
        accepted: Accepted::JSON,
        warnings: Vec::new(),
    };
    let mut object = object;
    crate::decode::fill(&resource, &mut object);
    let object = write::manage(&call, None, object, "");
    match write::create(&mut call, object).await {
        Err(status) if status.reason == "AlreadyExists" => Ok(()),
        outcome => outcome.map(|_| ()),
    }
}
