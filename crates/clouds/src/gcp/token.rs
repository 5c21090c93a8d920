// SPDX-License-Identifier: Apache-2.0
//! The token that Google wants: a statement of the service account, signed with its key, is exchanged for it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::credentials::{Credentials, Lack};
use crate::fault::{Fault, Operation, Outcome};
use crate::secret::Secret;
use crate::wire::Wire;

pub const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const LIFE: i64 = 3600;
/// A token is not used up to its last second.
const SPARE: Duration = Duration::from_secs(120);

/// Where tokens come from.
#[derive(Debug)]
pub struct Tokens {
    source: Source,
    /// The one in use, and until when.
    current: Mutex<Option<(HeaderValue, Instant)>>,
}

enum Source {
    /// Somebody else keeps it fresh, such as a workload identity.
    Given(Secret),
    Account {
        email: String,
        key: Box<RsaKeyPair>,
    },
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: u64,
}

// === impl Tokens ===

impl Tokens {
    /// From the JSON file of a service account, or from a token itself.
    pub fn new(credentials: &Credentials) -> Result<Self, Lack> {
        let source = match credentials.get("access_token") {
            Some(token) => Source::Given(token.clone()),
            None => {
                let email = credentials.need("client_email")?.reveal().to_owned();
                Source::Account { email, key: Box::new(key(credentials.need("private_key")?)?) }
            }
        };
        Ok(Self { source, current: Mutex::new(None) })
    }

    /// The header for the next request. `now` is for the statement, which has a time in it.
    pub async fn header(&self, wire: &Wire, operation: Operation, now: jiff::Timestamp) -> Result<HeaderValue, Fault> {
        let mut current = self.current.lock().await;
        if let Some((header, until)) = &*current
            && Instant::now() < *until
        {
            return Ok(header.clone());
        }
        let (token, life) = match &self.source {
            Source::Given(token) => (token.clone(), Duration::from_secs(60)),
            Source::Account { email, key } => {
                // Asking for a token buys nothing, whatever it is for.
                let asked = exchange(wire, email, key, now).await;
                asked.map_err(|fault| Fault { operation, ..fault })?
            }
        };
        wire.redactor().learn(&token);
        let mut header = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(|_| {
            wire.fault(operation, Outcome::Unauthorized, "the token has letters that no header can have")
        })?;
        header.set_sensitive(true);
        *current = Some((header.clone(), Instant::now() + life.saturating_sub(SPARE)));
        Ok(header)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "a token",
            Self::Account { .. } => "a service account",
        })
    }
}

async fn exchange(
    wire: &Wire,
    email: &str,
    key: &RsaKeyPair,
    now: jiff::Timestamp,
) -> Result<(Secret, Duration), Fault> {
    let statement = statement(email, key, now).ok_or_else(|| {
        wire.fault(Operation::Verify, Outcome::Unauthorized, "the private key of the service account cannot sign")
    })?;
    let call = wire.post(Operation::Verify, "/token");
    let granted: Granted = call.form(&[("grant_type", GRANT), ("assertion", &statement)]).read().await?;
    Ok((Secret::new(granted.access_token), Duration::from_secs(granted.expires_in)))
}

/// A JSON Web Token, RS256.
fn statement(email: &str, key: &RsaKeyPair, now: jiff::Timestamp) -> Option<String> {
    let (issued, expires) = (now.as_second(), now.as_second() + LIFE);
    let claims = json!({ "iss": email, "scope": SCOPE, "aud": AUDIENCE, "iat": issued, "exp": expires });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({ "alg": "RS256", "typ": "JWT" })), part(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).ok()?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn key(pem: &Secret) -> Result<RsaKeyPair, Lack> {
    let unusable = |why: &str| Lack::Unusable { field: "private_key".to_owned(), why: why.to_owned() };
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.reveal().as_bytes());
    let der = der.map_err(|_| unusable("it is no PEM text of a PKCS #8 key"))?;
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unusable("it is no RSA key"))
}
