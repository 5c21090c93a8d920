// SPDX-License-Identifier: Apache-2.0
//! The property of the fuzz target `request`, on a small corpus and its mutations.

#[path = "../../fuzz/request_property.rs"]
mod request_property;

use proptest::prelude::*;

const CORPUS: [&str; 22] = [
    "GET /api/v1/namespaces/default/configmaps?limit=2&labelSelector=a%3Db,c!%3Dd\napplication/json\n",
    "GET /apis/apps/v1/deployments?fieldSelector=metadata.name%3Dx\napplication/json;as=Table;g=meta.k8s.io;v=v1\n",
    "GET /api/v1/pods?watch=true&resourceVersion=0&timeoutSeconds=1\napplication/json\n",
    "GET /openapi/v3/apis/apps/v1\napplication/json\n",
    "GET /apis\napplication/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\n",
    "POST /api/v1/namespaces/default/configmaps\napplication/json\n{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}",
    "POST /api/v1/namespaces/default/configmaps\napplication/yaml\nmetadata: {generateName: a-}\ndata: {k: v}\n",
    "POST /api/v1/namespaces/default/secrets\napplication/vnd.kubernetes.protobuf\nk8s\0\n\u{c}\n\u{2}v1\u{12}\u{6}Secret\u{12}\u{5}\n\u{3}\n\u{1}a",
    "PUT /api/v1/namespaces/default/configmaps/a\napplication/json\n{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}",
    "PATCH /api/v1/namespaces/default/configmaps/a\napplication/merge-patch+json\n{\"data\":{\"k\":null,\"l\":\"w\"}}",
    "PATCH /api/v1/namespaces/default/configmaps/a\napplication/json-patch+json\n[{\"op\":\"add\",\"path\":\"/data/x\",\"value\":\"y\"}]",
    "PATCH /apis/apps/v1/namespaces/default/deployments/d\napplication/strategic-merge-patch+json\n{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"$patch\":\"delete\"}]}}}}",
    "PATCH /apis/apps/v1/namespaces/default/deployments/d?fieldManager=m&force=true\napplication/apply-patch+yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n",
    "DELETE /api/v1/namespaces/default/configmaps/a\napplication/json\n{\"preconditions\":{\"uid\":\"x\"},\"propagationPolicy\":\"Foreground\"}",
    "DELETE /api/v1/namespaces/default/configmaps?labelSelector=a\napplication/json\n",
    "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions\napplication/json\n{\"metadata\":{\"name\":\"tents.a.b\"},\"spec\":{\"group\":\"a.b\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"tents\",\"kind\":\"Tent\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1}},\"x-kubernetes-validations\":[{\"rule\":\"self.n < 5\"}]}}}}}]}}",
    "POST /apis/a.b/v1/namespaces/default/tents\napplication/json\n{\"apiVersion\":\"a.b/v1\",\"kind\":\"Tent\",\"metadata\":{\"name\":\"t\"},\"spec\":{\"n\":3}}",
    "PATCH /apis/apps/v1/namespaces/default/deployments/d/scale\napplication/merge-patch+json\n{\"spec\":{\"replicas\":3}}",
    "POST /api/v1/namespaces/default/pods/p/eviction\napplication/json\n{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\"}}",
    "POST /apis/authorization.k8s.io/v1/subjectaccessreviews\napplication/json\n{\"spec\":{\"user\":\"u\",\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}",
    "POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies\napplication/json\n{\"metadata\":{\"name\":\"p\"},\"spec\":{\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],\"resources\":[\"configmaps\"]}]},\"validations\":[{\"expression\":\"size(object.metadata.name) < 9\"}]}}",
    "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m\napplication/apply-patch+yaml\n{}",
];

#[test]
fn the_corpus_is_requests() {
    for request in CORPUS {
        assert!(request_property::check(request.as_bytes()), "{request}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// A few bytes of a good request are changed, taken out, or doubled.
    #[test]
    fn mutations_are_answered(
        chosen in 0..CORPUS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let mut data = CORPUS[chosen].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(data.len());
            match how {
                0 => data[at] = byte,
                1 => { data.remove(at); }
                2 => data.insert(at, byte),
                _ => {
                    let piece = data[at..data.len().min(at + 16)].to_vec();
                    data.splice(at..at, piece);
                }
            }
            if data.is_empty() {
                break;
            }
        }
        request_property::check(&data);
    }
}
