// SPDX-License-Identifier: Apache-2.0
//! A credential is good for a token, and the token for an hour or so.

use std::time::Duration;

use http::HeaderValue;
use http::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::credentials::Credentials;
use crate::fault::{Fault, Operation, Outcome};
use crate::secret::{Redactor, Secret};
use crate::wire::Wire;

#[derive(Debug)]
pub struct Sessions {
    /// Knows the credential, and has no token.
    plain: Wire,
    id: Secret,
    secret: Secret,
    /// Whoever needs the next token waits for the one who asks for it.
    now: Mutex<Option<Session>>,
}

#[derive(Clone, Debug)]
struct Session {
    /// Has the token, and knows not to tell it.
    wire: Wire,
    until: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    expires_in: u64,
}

/// So long before its end a token is not used any more.
const EARLY: Duration = Duration::from_secs(60);

// === impl Sessions ===

impl Sessions {
    pub fn new(wire: Wire, credentials: &Credentials) -> Result<Self, Fault> {
        let need = |field| credentials.need(field).cloned().map_err(|lack| lack.fault(&wire));
        let (id, secret) = (need("client_id")?, need("client_secret")?);
        let redactor = Redactor::new([&id, &secret]);
        Ok(Self { plain: wire.with_redactor(redactor), id, secret, now: Mutex::new(None) })
    }

    pub fn plain(&self) -> &Wire {
        &self.plain
    }

    /// What requests are sent with. Whatever goes wrong here, nothing was bought.
    pub async fn wire(&self, operation: Operation) -> Result<Wire, Fault> {
        let mut now = self.now.lock().await;
        if let Some(session) = now.as_ref().filter(|session| Instant::now() < session.until) {
            return Ok(session.wire.clone());
        }
        let session = self.begin().await.map_err(|fault| Fault { operation, ..fault })?;
        let wire = session.wire.clone();
        *now = Some(session);
        Ok(wire)
    }

    /// A token that is not accepted any more is not used again.
    pub async fn end(&self) {
        *self.now.lock().await = None;
    }

    async fn begin(&self) -> Result<Session, Fault> {
        let body = json!({
            "grant_type": "client_credentials",
            "client_id": self.id.reveal(),
            "client_secret": self.secret.reveal(),
        });
        let granted: Granted = self.plain.post(Operation::Verify, "/oauth2/token").json(&body).read().await?;
        let token = Secret::new(granted.access_token);
        let unusable = |_| self.plain.fault(Operation::Verify, Outcome::Transient, "its token fits into no header");
        let mut header = HeaderValue::from_str(&format!("Bearer {}", token.reveal())).map_err(unusable)?;
        header.set_sensitive(true);
        let refresh = granted.refresh_token.map(Secret::new);
        let redactor = Redactor::new([&self.id, &self.secret, &token].into_iter().chain(refresh.as_ref()));
        let headers = HeaderMap::from_iter([(AUTHORIZATION, header)]);
        let life = Duration::from_secs(granted.expires_in.min(24 * 3600)).saturating_sub(EARLY);
        let wire = self.plain.clone().with_headers(headers).with_redactor(redactor);
        Ok(Session { wire, until: Instant::now() + life })
    }
}
