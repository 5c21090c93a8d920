// SPDX-License-Identifier: Apache-2.0
//! Signs certificates for those whose requests were approved. To approve is left to people.
//!
//! Keys are random, so this part is not in the simulation, only in a cluster on a laptop. The authority lives as long as
//! the process; its own certificate comes with each one that it signs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
        CertificateSigningRequestStatus,
    },
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
    workload::time,
};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const YEAR: u64 = 365 * 86_400;
/// Clocks of others may be late.
const BEFORE: u64 = 300;

type Authority = CertifiedIssuer<'static, KeyPair>;

#[derive(Default)]
pub struct Certificates {
    authority: Option<Authority>,
}

impl std::fmt::Debug for Certificates {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Controller for Certificates {
    fn name(&self) -> &'static str {
        "csrsigning"
    }

    fn concerns(&self, object: &Object, _: &View) -> Vec<Key> {
        match object {
            Object::CertificateSigningRequest(request) => vec![Key::of(&request.metadata)],
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(request) = view.signing_requests.get(key).filter(|request| is_due(request)) else { return plan };
        let mut status = request.status.clone().unwrap_or_default();
        match self.sign(&request.spec, moment.now) {
            Ok(chain) => status.certificate = Some(ByteString(chain.into_bytes())),
            Err(why) => status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                type_: "Failed".to_owned(),
                status: "True".to_owned(),
                reason: Some("SignerValidationFailure".to_owned()),
                message: Some(why),
                last_transition_time: Some(time(moment.now)),
                last_update_time: Some(time(moment.now)),
            }),
        }
        plan.status(&CertificateSigningRequest { status: Some(status), ..CertificateSigningRequest::clone(request) });
        plan
    }
}

/// Approved, of a signer that we are, and not yet answered.
fn is_due(request: &CertificateSigningRequest) -> bool {
    let empty = CertificateSigningRequestStatus::default();
    let status = request.status.as_ref().unwrap_or(&empty);
    let is = |kind: &str| status.conditions.iter().flatten().any(|one| one.type_ == kind && one.status == "True");
    let ours = [CLIENT, KUBELET_CLIENT, KUBELET_SERVING].contains(&request.spec.signer_name.as_str());
    ours && status.certificate.is_none() && is("Approved") && !is("Denied") && !is("Failed")
}

// === impl Certificates ===

impl Certificates {
    fn sign(&mut self, spec: &CertificateSigningRequestSpec, now: Timestamp) -> Result<String, String> {
        let words = |error: rcgen::Error| error.to_string();
        let text = str::from_utf8(&spec.request.0).map_err(|error| error.to_string())?;
        let mut request = CertificateSigningRequestParams::from_pem(text).map_err(words)?;
        check(&request.params, &spec.signer_name)?;
        let asked = spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        set_terms(&mut request.params, now, asked.unwrap_or(YEAR).min(YEAR));
        set_usages(&mut request.params, spec.usages.as_deref().unwrap_or_default());
        let authority = match self.authority.take() {
            Some(authority) => authority,
            None => found(now).map_err(words)?,
        };
        let authority = self.authority.insert(authority);
        let signed = request.signed_by(authority).map_err(words)?;
        Ok(format!("{}{}", signed.pem(), authority.pem()))
    }
}

fn found(now: Timestamp) -> Result<Authority, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "bivouac-simulator");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_terms(&mut params, now, 10 * YEAR);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn set_terms(params: &mut CertificateParams, now: Timestamp, seconds: u64) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(Duration::from_secs(BEFORE));
    params.not_after = epoch + now + Duration::from_secs(seconds);
}

fn set_usages(params: &mut CertificateParams, usages: &[String]) {
    params.is_ca = IsCa::ExplicitNoCa;
    let has = |usage: &str| usages.iter().any(|one| one == usage);
    let keys = [
        ("digital signature", KeyUsagePurpose::DigitalSignature),
        ("key encipherment", KeyUsagePurpose::KeyEncipherment),
    ];
    let purposes =
        [("client auth", ExtendedKeyUsagePurpose::ClientAuth), ("server auth", ExtendedKeyUsagePurpose::ServerAuth)];
    params.key_usages = keys.into_iter().filter(|(usage, _)| has(usage)).map(|(_, key)| key).collect();
    params.extended_key_usages = purposes.into_iter().filter(|(usage, _)| has(usage)).map(|(_, one)| one).collect();
}

/// Kubelets get certificates only for themselves.
fn check(params: &CertificateParams, signer: &str) -> Result<(), String> {
    if signer == CLIENT {
        return Ok(());
    }
    let part = |kind: &DnType| match params.distinguished_name.get(kind) {
        Some(DnValue::Utf8String(text)) => text.clone(),
        Some(DnValue::PrintableString(text)) => text.to_string(),
        _ => String::new(),
    };
    if part(&DnType::OrganizationName) != "system:nodes" {
        return Err("subject organization is not system:nodes".to_owned());
    }
    if !part(&DnType::CommonName).starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:".to_owned());
    }
    Ok(())
}
