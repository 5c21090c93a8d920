// SPDX-License-Identifier: Apache-2.0
//! What the API server does for MiniClusters as it makes their pods, so that nobody has to write them a second time.

use serde_json::{Value, json};

use crate::{
    build::{APP, JOB_INDEX},
    sight::COMPLETION_INDEX,
};

const NAME: &str = "lead-index.flux-framework.org";
const API: &str = "admissionregistration.k8s.io/v1";

/// The lead pod is made with its `job-index`, where this kind of policy is served (by default from Kubernetes 1.36).
/// Elsewhere the controller writes the label.
pub fn mutating() -> Vec<Value> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]});
    let label = format!("JSONPatch{{op: 'add', path: '/metadata/labels/{JOB_INDEX}', value: '0'}}");
    let object = |kind: &str, spec| json!({"apiVersion": API, "kind": kind, "metadata": {"name": NAME}, "spec": spec});
    let spec = json!({
        // A label is never worth a pod.
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "objectSelector": {"matchLabels": {APP.0: APP.1, COMPLETION_INDEX: "0"}},
            "resourceRules": [rule],
        },
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[{label}]")}}],
    });
    vec![object("MutatingAdmissionPolicy", spec), object("MutatingAdmissionPolicyBinding", json!({"policyName": NAME}))]
}
