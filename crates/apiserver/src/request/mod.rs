// SPDX-License-Identifier: Apache-2.0
//! What a request asks for: its path, its options, its form of answer.

pub mod accept;
pub mod options;
pub mod selector;

use http::Method;

use self::options::Options;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Resource(Target),
    Document(Document),
    Unknown,
}

/// Objects, or one object, or a part of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// What follows the subresource: only `proxy` has it.
    pub rest: Option<String>,
    /// The old form `/api/v1/watch/pods`.
    pub watch: bool,
}

/// Documents about the server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    Index,
    CoreVersions,
    Groups,
    Group(String),
    GroupVersion { group: String, version: String },
    OpenApiV2,
    OpenApiV3,
    OpenApiV3Group(String),
    Version,
    Health(String),
    Metrics,
    OpenId,
    Jwks,
}

impl Route {
    pub fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [] => Self::Document(Document::Index),
            ["version"] => Self::Document(Document::Version),
            ["metrics"] => Self::Document(Document::Metrics),
            ["readyz" | "livez" | "healthz", ..] => Self::Document(Document::Health(parts.join("/"))),
            ["openapi", "v2"] => Self::Document(Document::OpenApiV2),
            ["openapi", "v3"] => Self::Document(Document::OpenApiV3),
            ["openapi", "v3", rest @ ..] => Self::Document(Document::OpenApiV3Group(rest.join("/"))),
            [".well-known", "openid-configuration"] => Self::Document(Document::OpenId),
            ["openid", "v1", "jwks"] => Self::Document(Document::Jwks),
            ["api"] => Self::Document(Document::CoreVersions),
            ["apis"] => Self::Document(Document::Groups),
            ["apis", group] => Self::Document(Document::Group((*group).to_owned())),
            ["api", version] => Self::group_version("", version),
            ["apis", group, version] => Self::group_version(group, version),
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn group_version(group: &str, version: &str) -> Self {
        Self::Document(Document::GroupVersion { group: group.into(), version: version.into() })
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let target = Target { group: group.into(), version: version.into(), watch, ..Target::default() };
        match rest {
            // Parts of a Namespace object itself.
            ["namespaces", name, part @ ("status" | "finalize")] => {
                Self::Resource(target.named("namespaces", Some(name), &[part]))
            }
            ["namespaces", namespace, plural, rest @ ..] => {
                let target = Target { namespace: Some((*namespace).to_owned()), ..target };
                Self::Resource(target.named(plural, rest.first().copied(), rest.get(1..).unwrap_or_default()))
            }
            [plural, rest @ ..] => {
                Self::Resource(target.named(plural, rest.first().copied(), rest.get(1..).unwrap_or_default()))
            }
            [] => Self::Unknown,
        }
    }
}

impl Target {
    fn named(self, plural: &str, name: Option<&str>, parts: &[&str]) -> Self {
        Self {
            plural: plural.into(),
            name: name.map(percent_decode),
            subresource: parts.first().map(|part| (*part).to_owned()),
            rest: parts.get(1..).filter(|rest| !rest.is_empty()).map(|rest| rest.join("/")),
            ..self
        }
    }

    /// The verb that authorisation and metrics speak of.
    pub fn verb(&self, method: &Method, options: &Options) -> &'static str {
        let one = self.name.is_some();
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if one => "delete",
            Method::DELETE => "deletecollection",
            _ if self.watch => "watch",
            // One object is read, whatever the query says.
            _ if one => "get",
            _ if options.watch => "watch",
            _ => "list",
        }
    }
}

/// Turns `%2F` and its like into what they stand for.
fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match Route::of(path) {
            Route::Resource(target) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_name_resources() {
        let pod = target("/api/v1/namespaces/a/pods/b/status");
        assert_eq!((pod.group.as_str(), pod.version.as_str(), pod.plural.as_str()), ("", "v1", "pods"));
        assert_eq!((pod.namespace.as_deref(), pod.name.as_deref()), (Some("a"), Some("b")));
        assert_eq!(pod.subresource.as_deref(), Some("status"));

        let namespace = target("/api/v1/namespaces/a");
        assert_eq!((namespace.plural.as_str(), namespace.name.as_deref()), ("namespaces", Some("a")));
        assert_eq!(namespace.namespace, None);
        assert_eq!(target("/api/v1/namespaces/a/finalize").subresource.as_deref(), Some("finalize"));

        let all = target("/apis/apps/v1/deployments");
        assert_eq!((all.group.as_str(), all.name), ("apps", None));
        assert!(target("/api/v1/watch/pods").watch);
        assert_eq!(
            target("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode").name.unwrap(),
            "system:node"
        );
    }

    #[test]
    fn paths_name_documents() {
        assert_eq!(Route::of("/apis"), Route::Document(Document::Groups));
        assert_eq!(Route::of("/nonsense"), Route::Unknown);
    }
}
