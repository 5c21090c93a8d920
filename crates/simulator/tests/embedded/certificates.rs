// SPDX-License-Identifier: Apache-2.0
//! Approved requests get certificates, others do not.

use std::time::Duration;

use bivouac_simulator::Part;
use k8s_openapi::ByteString;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::stage::{self, Stage};

const PATH: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn request(name: &str, signer: &str, subject: [&str; 2]) -> Value {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, subject[0]);
    params.distinguished_name.push(DnType::OrganizationName, subject[1]);
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    json!({ "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": name },
        "spec": { "signerName": signer, "request": ByteString(pem.into_bytes()), "expirationSeconds": 3600,
            "usages": ["digital signature", "client auth"] } })
}

/// What became of a request: how many certificates there are in the answer, and which conditions.
async fn outcome(stage: &Stage, name: &str) -> (usize, Vec<String>) {
    let request = stage.get(&format!("{PATH}/{name}")).await.unwrap();
    let bytes: Option<ByteString> = serde_json::from_value(request["status"]["certificate"].clone()).unwrap();
    let chain = bytes.map(|bytes| String::from_utf8(bytes.0).unwrap()).unwrap_or_default();
    let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
    (
        chain.matches("BEGIN CERTIFICATE").count(),
        conditions.iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect(),
    )
}

#[test]
fn approved_requests_are_signed() {
    stage::run(async {
        let stage = Stage::with(&[Part::Certificates]).await;
        let client = "kubernetes.io/kube-apiserver-client";
        let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
        let node = ["system:node:a", "system:nodes"];
        let cases = [
            ("waits", client, ["ada", "team"], false, (0, vec![])),
            ("person", client, ["ada", "team"], true, (2, vec!["Approved"])),
            ("node", kubelet, node, true, (2, vec!["Approved"])),
            ("liar", kubelet, ["ada", "system:nodes"], true, (0, vec!["Approved", "Failed"])),
            ("other", "example.com/signer", node, true, (0, vec!["Approved"])),
        ];
        for (name, signer, subject, approve, expected) in cases {
            stage.apply(request(name, signer, subject)).await;
            if approve {
                // The embedded server has no way of its own to approve.
                let approved = json!([{ "type": "Approved", "status": "True", "reason": "Test", "message": "" }]);
                stage.patch(&format!("{PATH}/{name}/status"), json!({ "status": { "conditions": approved } })).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (count, conditions) = outcome(&stage, name).await;
            assert_eq!((count, conditions.iter().map(String::as_str).collect()), expected, "{name}");
        }
    });
}
