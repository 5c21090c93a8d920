// SPDX-License-Identifier: Apache-2.0
//! The certificates of one cluster, and kubeconfig files that use them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use serde_json::{Value, json};

/// Loopback, so that a real process can serve a Service's address.
pub(crate) const SERVICE_RANGE: &str = "127.96.0.0/16";
/// The address of the Service `kubernetes`.
const FIRST_SERVICE: Ipv4Addr = Ipv4Addr::new(127, 96, 0, 1);

/// A folder with `ca.crt` and `ca.key`.
#[derive(Debug)]
pub(crate) struct Pki {
    folder: PathBuf,
}

/// A certificate and its key, as PEM.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

// === impl Pki ===

impl Pki {
    /// Makes a new authority and what the API server serves with.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let pki = Self { folder: folder.to_owned() };
        let key = KeyPair::generate()?;
        fs::write(pki.path("ca.crt"), authority_params()?.self_signed(&key)?.pem())?;
        fs::write(pki.path("ca.key"), key.serialize_pem())?;

        let server = pki.sign(server_params()?)?;
        fs::write(pki.path("server.crt"), server.certificate)?;
        fs::write(pki.path("server.key"), server.key)?;
        let accounts = KeyPair::generate()?;
        fs::write(pki.path("accounts.key"), accounts.serialize_pem())?;
        fs::write(pki.path("accounts.pub"), accounts.public_key_pem())?;
        Ok(pki)
    }

    /// The authority of a running cluster, if its key is there.
    pub(crate) fn open(folder: &Path) -> Option<Self> {
        folder.join("ca.key").is_file().then(|| Self { folder: folder.to_owned() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A client certificate: the API server reads the user and the group from it.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Leaf> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Leaf> {
        let authority = KeyPair::from_pem(&fs::read_to_string(self.path("ca.key"))?)?;
        let issuer = Issuer::new(authority_params()?, authority);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer).context("signing a certificate")?;
        Ok(Leaf { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn server_params() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(["localhost", "kubernetes.default.svc"].map(String::from))?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    for address in [Ipv4Addr::LOCALHOST, FIRST_SERVICE] {
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(address)));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn authority_params() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "testenv");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// Writes a kubeconfig that carries everything it needs; JSON is YAML, too.
pub(crate) fn write_kubeconfig(path: &Path, server: &str, authority: &Path, user: &Value) -> Result<()> {
    let authority = ByteString(fs::read(authority)?);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testenv",
        "clusters": [{"name": "testenv", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "testenv", "context": {"cluster": "testenv", "user": "user"}}],
    });
    fs::write(path, serde_json::to_vec_pretty(&config)?).with_context(|| format!("writing {}", path.display()))
}

// === impl Leaf ===

impl Leaf {
    /// The user part of a kubeconfig.
    pub(crate) fn user(&self) -> Value {
        let bytes = |pem: &str| ByteString(pem.as_bytes().to_vec());
        json!({"client-certificate-data": bytes(&self.certificate), "client-key-data": bytes(&self.key)})
    }
}
