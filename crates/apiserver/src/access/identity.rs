// SPDX-License-Identifier: Apache-2.0
//! Finding out who asks: tokens, and users that speak for others.

use http::{HeaderMap, request::Parts};

use super::{ANONYMOUS, AUTHENTICATED, Attributes, UNAUTHENTICATED, User, authorize, decide, rules::go_list};
use crate::{
    call::attributes,
    request::{Route, options::Options},
    server::Inner,
    status::Status,
};

const ACCOUNT: &str = "system:serviceaccount:";
const IDENTITIES: &str = "authentication.k8s.io";

/// Finds out who asks, or for whom.
pub fn authenticate(server: &Inner, head: &Parts) -> Result<User, Status> {
    let user = match head.extensions.get::<User>() {
        Some(user) => user.clone(),
        None => bearer(server, &head.headers)?,
    };
    match wanted(&head.headers)? {
        None => Ok(user),
        Some(other) => impersonate(server, &user, other, head),
    }
}

fn bearer(server: &Inner, headers: &HeaderMap) -> Result<User, Status> {
    let header = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token =
        header.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    match token.filter(|token| !token.is_empty()) {
        None if server.access.trusts_all => Ok(User::admin()),
        None => Ok(User { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..User::default() }),
        Some(token) => of_token(server, token, &[]).map(|(user, _)| user).map_err(|_| Status::unauthorized()),
    }
}

/// The user of a token, and for which of these audiences it is. No audience means this server's.
pub fn of_token(server: &Inner, token: &str, audiences: &[String]) -> Result<(User, Vec<String>), String> {
    if let Some(user) = server.access.tokens.get(token) {
        let mut user = user.clone();
        if !user.groups.iter().any(|group| group == AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.into());
        }
        return Ok((user, audiences.to_vec()));
    }
    super::tokens::verify(server, token, audiences)
}

/// The groups that every service account of a namespace is in.
pub fn account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
}

fn texts<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    // Names may be written in any script, so a header is read as UTF-8 and not as ASCII.
    headers.get_all(name).iter().map(|value| std::str::from_utf8(value.as_bytes()).unwrap_or("\u{fffd}")).collect()
}

/// The user that a request speaks for.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let one = |name: &str| texts(headers, name).first().map(|text| (*text).to_owned()).unwrap_or_default();
    let mut user = User {
        name: one("impersonate-user"),
        uid: one("impersonate-uid"),
        groups: texts(headers, "impersonate-group").into_iter().map(str::to_owned).collect(),
        extra: Vec::new(),
    };
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix("impersonate-extra-") else { continue };
        let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().to_lowercase();
        user.extra.push((key, texts(headers, name.as_str()).into_iter().map(str::to_owned).collect()));
    }
    user.extra.sort();
    match (user.name.is_empty(), user == User::default()) {
        (_, true) => Ok(None),
        (false, _) => Ok(Some(user)),
        (true, false) => {
            Err(Status::bad_request(format!("requested {} without impersonating a user name", go_user(&user))))
        }
    }
}

/// As Go shows a user.
fn go_user(user: &User) -> String {
    let list = |texts: &[String]| match texts {
        [] => "[]string(nil)".to_owned(),
        texts => format!("[]string{{{}}}", texts.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ")),
    };
    let extra = match user.extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        some => {
            let entries: Vec<String> = some.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        user.name,
        user.uid,
        list(&user.groups)
    )
}

fn impersonate(server: &Inner, user: &User, mut other: User, head: &Parts) -> Result<User, Status> {
    let account = other
        .name
        .strip_prefix(ACCOUNT)
        .and_then(|rest| rest.split_once(':'))
        .map(|(a, b)| (a.to_owned(), b.to_owned()));
    let may = |verb: &str, group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        decide(server, user, &Attributes { verb, group, resource, subresource, namespace, name, path: "" }).allowed
    };
    let named = match &account {
        Some((namespace, name)) => may("impersonate", "", "serviceaccounts", "", namespace, name),
        None => may("impersonate", "", "users", "", "", &other.name),
    };
    let groups = other.groups.iter().all(|group| may("impersonate", "", "groups", "", "", group));
    let extra = other
        .extra
        .iter()
        .all(|(key, values)| values.iter().all(|value| may("impersonate", IDENTITIES, "userextras", key, "", value)));
    let uid = other.uid.is_empty() || may("impersonate", IDENTITIES, "uids", "", "", &other.uid);
    if !(named && groups && extra && uid) {
        constrained(server, user, &other, account.as_ref(), head)?;
    }
    complete(&mut other, account.map(|(namespace, _)| namespace));
    Ok(other)
}

/// The groups that nobody needs to ask for.
fn complete(user: &mut User, home: Option<String>) {
    if let (Some(home), true) = (home, user.groups.is_empty()) {
        user.groups = account_groups(&home);
    }
    let own = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.groups.iter().any(|group| group == own) {
        user.groups.push(own.to_owned());
    }
}

/// Speaking for others in one request only: needs a right to do so in this very request, and one for the user.
fn constrained(
    server: &Inner,
    user: &User,
    other: &User,
    account: Option<&(String, String)>,
    head: &Parts,
) -> Result<(), Status> {
    let mode = if account.is_some() { "serviceaccount" } else { "user-info" };
    let path = head.uri.path();
    let options = Options::parse(head.uri.query()).unwrap_or_default();
    match Route::of(path) {
        Route::Resource(target) => {
            let verb = format!("impersonate-on:{mode}:{}", target.verb(&head.method, &options));
            authorize(server, user, &attributes(&target, &verb))?;
        }
        _ => {
            let verb = format!("impersonate-on:{mode}:{}", head.method.as_str().to_lowercase());
            authorize(server, user, &Attributes { verb: &verb, path, ..Attributes::default() })?;
        }
    }
    let verb = format!("impersonate:{mode}");
    let on = |resource: &'static str, namespace: &str, name: &str, subresource: &str| {
        let wanted = Attributes { verb: &verb, group: IDENTITIES, resource, subresource, namespace, name, path: "" };
        authorize(server, user, &wanted)
    };
    match account {
        Some((namespace, name)) => on("serviceaccounts", namespace, name, "")?,
        None => on("users", "", &other.name, "")?,
    }
    for group in &other.groups {
        on("groups", "", group, "")?;
    }
    for (key, values) in &other.extra {
        for value in values {
            on("userextras", "", value, key)?;
        }
    }
    if other.uid.is_empty() { Ok(()) } else { on("uids", "", &other.uid, "") }
}

/// A user and its groups, as refusals show them.
pub fn shown(user: &User) -> String {
    format!("user {:?} (groups={})", user.name, go_list(&user.groups))
}
