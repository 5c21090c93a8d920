// SPDX-License-Identifier: Apache-2.0
//! Tokens of service accounts: signed here, believed as long as what they are bound to exists.
//!
//! They are signed with Ed25519, which needs no randomness, so that the same seed gives the same tokens.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jiff::Timestamp;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{AUTHENTICATED, User, identity::account_groups};
use crate::{
    admission::look,
    builtin::builtins,
    call::Call,
    merge,
    object::{Object, as_object, child_object, text},
    schema::Root,
    server::Inner,
    status::Status,
    store::{Draft, Keyspace, Store, Tags, Write},
};

pub const ISSUER: &str = "https://kubernetes.default.svc";
const KUBERNETES: &str = "kubernetes.io";
const INVALID: &str = "invalid bearer token";

/// Signs and knows its signature.
pub struct Signer {
    key: Option<Ed25519KeyPair>,
    id: String,
}

/// What a token is about.
#[derive(Debug)]
pub struct Claims<'a> {
    pub account: &'a Value,
    /// What the token lives and dies with: kind and object.
    pub bound: Option<(&'a str, &'a Value)>,
    pub audiences: &'a [String],
    pub seconds: i64,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.id)
    }
}

impl Signer {
    pub fn new(seed: &[u8; 32]) -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(seed).ok();
        let public = key.as_ref().map(|key| key.public_key().as_ref().to_vec()).unwrap_or_default();
        let digest = ring::digest::digest(&ring::digest::SHA256, &public);
        Self { key, id: BASE64.encode(digest.as_ref()) }
    }

    fn public(&self) -> &[u8] {
        self.key.as_ref().map(|key| key.public_key().as_ref()).unwrap_or_default()
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({ "alg": "EdDSA", "kid": self.id });
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.key.as_ref().map(|key| BASE64.encode(key.sign(text.as_bytes()).as_ref()));
        format!("{text}.{}", signature.unwrap_or_default())
    }

    fn open(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = BASE64.decode(signature).ok()?;
        UnparsedPublicKey::new(&ED25519, self.public()).verify(text.as_bytes(), &signature).ok()?;
        let (_, claims) = text.split_once('.')?;
        serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
    }

    /// The public key, for whoever wants to check tokens without asking.
    pub fn keys(&self) -> Value {
        let x = BASE64.encode(self.public());
        json!({ "keys": [{ "use": "sig", "kty": "OKP", "kid": self.id, "crv": "Ed25519", "alg": "EdDSA", "x": x }] })
    }
}

/// The key that tokens of this store are signed with. It is kept beside the objects, where no request can read it.
pub async fn kept_key(store: &Store, fresh: [u8; 32]) -> Result<Signer, Status> {
    let keyspace = Keyspace::new("bivouac.dev", "keys");
    let stored = match store.get(&keyspace, "accounts") {
        Some(stored) => stored,
        None => {
            let draft = |_| Draft { body: fresh.to_vec(), tags: Tags::default() };
            store.commit(&keyspace, "accounts", Write::Create, draft).await.map_err(Status::internal)?
        }
    };
    let seed = stored.body().try_into().map_err(|_| Status::internal("the key for tokens has a wrong length"))?;
    Ok(Signer::new(seed))
}

/// TokenRequest, which is no resource of its own.
pub struct Kind {
    schema: Option<Root>,
    empty: Value,
}

impl Kind {
    pub fn new() -> Self {
        let id = builtins().kind("authentication.k8s.io", "v1", "TokenRequest");
        let mut empty = id.map(|id| merge::zero(builtins(), id)).unwrap_or_default();
        // On the wire a request that is bound to nothing says so.
        child_object(as_object(&mut empty), "spec").insert("boundObjectRef".into(), Value::Null);
        Self { schema: id.map(|id| builtins().root(id)), empty }
    }

    /// Fills in what is left open.
    pub fn complete(&self, request: &mut Value) {
        let map = as_object(request);
        map.insert("apiVersion".into(), "authentication.k8s.io/v1".into());
        map.insert("kind".into(), "TokenRequest".into());
        child_object(map, "metadata");
        child_object(map, "spec").entry("expirationSeconds").or_insert(3600.into());
    }

    /// Notes who wrote it.
    pub fn manage(&self, call: &Call, request: Value) -> Value {
        let Some(schema) = &self.schema else { return request };
        let kind = merge::Kind {
            api_version: "authentication.k8s.io/v1",
            kind: "TokenRequest",
            schema: schema.schema(),
            empty: &self.empty,
            custom: false,
            versions: &[],
        };
        let (now, manager, reset) = (call.server.now(), call.manager(), merge::Set::default());
        let write = merge::Write { kind, manager: &manager, subresource: "token", now: &now, reset: &reset };
        merge::update(None, request, &write)
    }
}

/// Where to find the keys.
pub fn discovery(base: &str) -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{base}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"],
    })
}

/// A new token, and when it ends.
pub fn issue(server: &Inner, claims: &Claims<'_>) -> (String, Timestamp) {
    let now = server.clock.now();
    let ends = now + jiff::SignedDuration::from_secs(claims.seconds);
    let (namespace, name) = (claims.account.namespace(), claims.account.name());
    let mut about = json!({
        "namespace": namespace,
        "serviceaccount": { "name": name, "uid": claims.account.uid() },
    });
    if let (Some((kind, object)), Some(map)) = (claims.bound, about.as_object_mut()) {
        map.insert(kind.to_lowercase(), json!({ "name": object.name(), "uid": object.uid() }));
        let node = text(object, "/spec/nodeName");
        if !node.is_empty() {
            let uid = look(server, "", "nodes", node).map(|node| node.uid().to_owned()).unwrap_or_default();
            map.insert("node".into(), json!({ "name": node, "uid": uid }));
        }
    }
    let token = server.access.signer.sign(&json!({
        "aud": claims.audiences,
        "exp": ends.as_second(),
        "iat": now.as_second(),
        "iss": ISSUER,
        "jti": server.uid(),
        KUBERNETES: about,
        "nbf": now.as_second(),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    }));
    (token, ends)
}

/// The user of a token, and for which of the audiences it is.
pub fn verify(server: &Inner, token: &str, audiences: &[String]) -> Result<(User, Vec<String>), String> {
    let invalid = || INVALID.to_owned();
    let claims = server.access.signer.open(token).ok_or_else(invalid)?;
    let now = server.clock.now().as_second();
    let number = |key: &str| claims.get(key).and_then(Value::as_i64).unwrap_or_default();
    if number("exp") <= now || number("nbf") > now {
        return Err(format!("[{INVALID}, service account token has expired]"));
    }
    let own = [ISSUER.to_owned()];
    let wanted = if audiences.is_empty() { own.as_slice() } else { audiences };
    let given = claims.get("aud").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let given: Vec<String> = given.map(str::to_owned).collect();
    let both: Vec<String> = wanted.iter().filter(|one| given.contains(one)).cloned().collect();
    if both.is_empty() {
        let [given, wanted] = [given.as_slice(), wanted].map(super::rules::go_list);
        return Err(format!("[{INVALID}, token audiences {given} is invalid for the target audiences {wanted}]"));
    }
    let user = alive(server, &claims).ok_or_else(invalid)?;
    Ok((user, both))
}

/// The user, if the account and what the token is bound to are still there.
fn alive(server: &Inner, claims: &Value) -> Option<User> {
    let about = claims.get(KUBERNETES)?;
    let namespace = text(about, "/namespace");
    let same = |plural: &str, place: &str| {
        let Some(said) = about.get(place) else { return true };
        let key = format!("{namespace}/{}", text(said, "/name"));
        look(server, "", plural, &key).is_some_and(|found| found.uid() == text(said, "/uid"))
    };
    if !same("serviceaccounts", "serviceaccount") || !same("pods", "pod") || !same("secrets", "secret") {
        return None;
    }
    let mut extra =
        vec![("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={}", text(claims, "/jti"))])];
    for (place, key) in [("node", "node"), ("pod", "pod")] {
        for (field, value) in about.get(place).and_then(Value::as_object).into_iter().flatten() {
            extra.push((format!("authentication.kubernetes.io/{key}-{field}"), vec![value.as_str()?.to_owned()]));
        }
    }
    extra.sort();
    let mut groups = account_groups(namespace);
    groups.push(AUTHENTICATED.into());
    Some(User {
        name: text(claims, "/sub").to_owned(),
        uid: text(about, "/serviceaccount/uid").to_owned(),
        groups,
        extra,
    })
}
