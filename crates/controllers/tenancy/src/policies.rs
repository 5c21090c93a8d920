// SPDX-License-Identifier: Apache-2.0
//! What the API server itself enforces about Workspaces, as admission policies: no webhook has to be up for it.

use serde_json::{Value, json};

use crate::{
    build::RECONCILER,
    tenant::{HASH_MARK, MEMBER_LABEL_PREFIX, PROTECTION_ANNOTATION},
};

/// Stands for the operator's own user name until an installation fills it in.
pub const OPERATOR_USER: &str = "OPERATOR_USER";

const API: &str = "admissionregistration.k8s.io/v1";

/// The garbage collector, under both names it can have. It takes its finalizer off a Workspace, and deletes the namespace
/// of a Workspace that is gone. Refused, it would try for ever.
const COLLECTOR: &str =
    "['system:kube-controller-manager', 'system:serviceaccount:kube-system:generic-garbage-collector']";

/// The policies that every supported cluster can enforce, each with its binding.
pub fn validating() -> Vec<Value> {
    [membership(), protection(), helm_releases(), kustomizations()]
        .into_iter()
        .flat_map(|(name, spec)| {
            let kind = "ValidatingAdmissionPolicy";
            let binding = json!({"policyName": name, "validationActions": ["Deny"]});
            [object(kind, name, spec), object(&format!("{kind}Binding"), name, binding)]
        })
        .collect()
}

/// The policy that keeps the member labels, for clusters that serve this kind (by default from Kubernetes 1.36).
/// Elsewhere the controller sets the same labels itself.
pub fn mutating() -> Vec<Value> {
    let (kind, name) = ("MutatingAdmissionPolicy", "workspace-member-labels.tenant.otterscale.io");
    vec![object(kind, name, member_labels()), object(&format!("{kind}Binding"), name, json!({"policyName": name}))]
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn not_the_collector() -> Value {
    json!({"name": "not-the-garbage-collector", "expression": format!("!(request.userInfo.username in {COLLECTOR})")})
}

fn on_workspaces(operations: &[&str]) -> Value {
    on("tenant.otterscale.io", "*", "workspaces", operations)
}

fn on(group: &str, version: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": operations})
}

/// Only admin members may change or delete a Workspace, and only they may make one. Cluster administrators may do
/// everything; the operator may label.
fn membership() -> (&'static str, Value) {
    let privileged = "request.userInfo.groups.exists(g, g in ['system:masters', 'kubeadm:cluster-admins']) \
         || authorizer.group('tenant.otterscale.io').resource('workspaces').check('administer').allowed()";
    let is_me = "((!has(m.kind) || m.kind == 'User') && m.subject == request.userInfo.username) \
         || (has(m.kind) && m.kind == 'Group' && m.subject in request.userInfo.groups) \
         || (has(m.kind) && m.kind == 'ServiceAccount' && m.subject == request.userInfo.username)";
    let denied = "only users with the 'admin' role in spec.members may create, change or delete this Workspace";
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [on_workspaces(&["CREATE", "UPDATE", "DELETE"])]},
        "matchConditions": [
            {"name": "not-the-operator", "expression": format!("request.userInfo.username != '{OPERATOR_USER}'")},
            not_the_collector(),
        ],
        "variables": [
            {"name": "privileged", "expression": privileged},
            // The members before the change decide: nobody promotes themselves.
            {"name": "members", "expression": "oldObject == null ? object.spec.members : oldObject.spec.members"},
            {"name": "admin", "expression": format!("variables.members.exists(m, m.role == 'admin' && ({is_me}))")},
        ],
        "validations": [{
            "expression": "variables.admin || variables.privileged",
            "message": denied,
            "messageExpression": format!("\"{denied}; \" + request.userInfo.username + \" is not one of them\""),
            "reason": "Forbidden",
        }],
    });
    ("workspace-membership.tenant.otterscale.io", spec)
}

/// A protected Workspace and its namespace cannot be deleted by any person, cluster administrators included.
fn protection() -> (&'static str, Value) {
    let annotation = format!("oldObject.metadata.?annotations[?'{PROTECTION_ANNOTATION}'].orValue('')");
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [on_workspaces(&["DELETE"]), on("", "v1", "namespaces", &["DELETE"])]},
        // A namespace is collected when its Workspace is gone, and that one was not protected any more.
        "matchConditions": [not_the_collector()],
        "validations": [{
            "expression": format!("{annotation} != 'true'"),
            "message": format!("this object is protected: remove the annotation {PROTECTION_ANNOTATION} from the Workspace first"),
            "reason": "Forbidden",
        }],
    });
    ("workspace-protection.tenant.otterscale.io", spec)
}

/// A HelmRelease in a Workspace works with the Workspace's own rights and in its own namespace only.
fn helm_releases() -> (&'static str, Value) {
    let places = ["targetNamespace", "storageNamespace", "chart.?spec.?sourceRef.?namespace", "chartRef.?namespace"];
    let spec = within_workspaces("helm.toolkit.fluxcd.io", "helmreleases", &places);
    ("workspace-helmrelease.tenant.otterscale.io", spec)
}

/// The same for a Kustomization.
fn kustomizations() -> (&'static str, Value) {
    let places = ["targetNamespace", "sourceRef.?namespace"];
    let spec = within_workspaces("kustomize.toolkit.fluxcd.io", "kustomizations", &places);
    ("workspace-kustomization.tenant.otterscale.io", spec)
}

/// Flux objects in namespaces of Workspaces: our account, no other cluster, and `places` name no other namespace.
fn within_workspaces(group: &str, resource: &str, places: &[&str]) -> Value {
    let rule = |expression: String, message: &str| json!({"expression": expression, "message": message, "reason": "Forbidden"});
    let mut validations = vec![
        rule(
            format!("object.spec.?serviceAccountName.orValue('') == '{RECONCILER}'"),
            &format!("in a Workspace, spec.serviceAccountName must be {RECONCILER}"),
        ),
        rule("!has(object.spec.kubeConfig)".to_owned(), "in a Workspace, spec.kubeConfig must not be set"),
        rule(
            "object.spec.?dependsOn.orValue([]).all(d, d.?namespace.orValue(request.namespace) == request.namespace)"
                .to_owned(),
            "in a Workspace, spec.dependsOn must not name another namespace",
        ),
    ];
    validations.extend(places.iter().map(|place| {
        let message = format!("in a Workspace, spec.{} must not name another namespace", place.replace('?', ""));
        rule(format!("object.spec.?{place}.orValue(request.namespace) == request.namespace"), &message)
    }));
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"app.kubernetes.io/component": "workspace"}},
            "resourceRules": [on(group, "*", resource, &["CREATE", "UPDATE"])],
        },
        // What is on its way out must be able to lose its finalizers.
        "matchConditions": [{"name": "not-deleting", "expression": "!has(object.metadata.deletionTimestamp)"}],
        "validations": validations,
    })
}

/// Labels `user.otterscale.io/<subject>` mirror the members. Hashed ones, for subjects that are no label key, are the
/// controller's: CEL cannot hash.
fn member_labels() -> Value {
    let pattern = "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$";
    // Mutation comes before validation: whoever names no members must be told so by the schema, not by an expression.
    let wanted = format!(
        "has(object.spec) && has(object.spec.members) \
         ? object.spec.members.filter(m, m.subject.matches('{pattern}')).map(m, '{MEMBER_LABEL_PREFIX}' + m.subject) : []"
    );
    let is_ours = format!("k.startsWith('{MEMBER_LABEL_PREFIX}') && !k.startsWith('{MEMBER_LABEL_PREFIX}{HASH_MARK}')");
    let path = "'/metadata/labels/' + jsonpatch.escapeKey(k)";
    let add = format!("JSONPatch{{op: 'add', path: {path}, value: 'true'}}");
    let remove = format!("JSONPatch{{op: 'remove', path: {path}}}");
    let patches = format!(
        "(has(object.metadata.labels) ? [] : [JSONPatch{{op: 'add', path: '/metadata/labels', value: {{}}}}]) \
         + variables.missing.map(k, {add}) + variables.stale.map(k, {remove})"
    );
    json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {"resourceRules": [on_workspaces(&["CREATE", "UPDATE"])]},
        "variables": [
            {"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"},
            {"name": "wanted", "expression": wanted},
            {"name": "missing", "expression": "variables.wanted.filter(k, !(k in variables.labels) || variables.labels[k] != 'true')"},
            {"name": "stale", "expression": format!("variables.labels.filter(k, {is_ours} && !(k in variables.wanted))")},
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patches}}],
    })
}

#[cfg(test)]
mod tests {
    use super::{OPERATOR_USER, mutating, validating};

    #[test]
    fn every_policy_is_bound_and_the_operator_is_named_once() {
        for set in [validating(), mutating()] {
            for pair in set.chunks(2) {
                assert_eq!(pair[0]["metadata"]["name"], pair[1]["spec"]["policyName"]);
            }
        }
        let text = serde_json::to_string(&(validating(), mutating())).unwrap();
        assert_eq!(text.matches(OPERATOR_USER).count(), 1);
    }
}
