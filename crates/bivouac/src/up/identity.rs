// SPDX-License-Identifier: Apache-2.0
//! Who the server is, and who its user is. Made once, kept in the data directory.
//!
//! kubectl shows a token over TLS only, so the server has a certificate. The key that signed it is thrown away at once:
//! nobody can make a second one.

use std::sync::Arc;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::data_dir::{DataDir, IDENTITY, KUBECONFIG};

#[derive(Clone, Serialize, Deserialize)]
pub struct Identity {
    authority: String,
    certificate: String,
    key: String,
    pub token: String,
}

impl Identity {
    /// The one that is kept, or a new one.
    pub fn of(dir: &DataDir) -> Result<Self> {
        if let Some(kept) = dir.read(IDENTITY)? {
            return Ok(kept);
        }
        let made = Self::make()?;
        dir.write(IDENTITY, &made)?;
        Ok(made)
    }

    fn make() -> Result<Self> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.distinguished_name.push(DnType::CommonName, "bivouac up");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut server = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "bivouac up server");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?;
        let token: [u8; 32] = rand::random();
        Ok(Self {
            authority: authority.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            token: token.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    pub fn tls(&self) -> Result<Arc<ServerConfig>> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let mut tls = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(tls))
    }

    /// Writes the file that tells kubectl where the server is. JSON is YAML, too.
    pub fn write_kubeconfig(&self, dir: &DataDir, address: &str) -> Result<()> {
        dir.write(KUBECONFIG, &self.kubeconfig(address)).context("the kubeconfig cannot be written")
    }

    fn kubeconfig(&self, address: &str) -> Value {
        let authority = BASE64_STANDARD.encode(&self.authority);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bivouac",
            "clusters": [{"name": "bivouac", "cluster": {"server": address, "certificate-authority-data": authority}}],
            "users": [{"name": "bivouac", "user": {"token": self.token}}],
            "contexts": [{"name": "bivouac", "context": {"cluster": "bivouac", "user": "bivouac"}}],
        })
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_kept_and_says_nothing_about_itself() {
        let home = tempfile::tempdir().unwrap();
        let place = crate::cli::PlaceOptions { data_dir: Some(home.path().to_owned()) };
        let dir = DataDir::of(&place).unwrap();
        let (first, second) = (Identity::of(&dir).unwrap(), Identity::of(&dir).unwrap());
        assert_eq!((&first.token, &first.authority), (&second.token, &second.authority));
        assert_eq!(first.token.len(), 64);
        assert_ne!(first.token, Identity::make().unwrap().token);
        assert_eq!(format!("{first:?}"), "Identity");
    }
}
