// SPDX-License-Identifier: Apache-2.0
//! The form in which the caller wants its answer: the `Accept` header.

/// A form of answer that this server can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Object,
    Table,
    PartialMetadata,
    PartialMetadataList,
    /// Aggregated discovery.
    GroupDiscovery,
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub form: Form,
    pub encoding: Encoding,
}

/// Why nothing of what the caller accepts can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unacceptable {
    /// No media type is known.
    MediaType,
    /// The media type is known, the form inside it is not.
    Form,
}

impl Accepted {
    pub const JSON: Self = Self { form: Form::Object, encoding: Encoding::Json };

    /// The first acceptable clause, in the caller's order of preference.
    pub fn choose(header: Option<&str>) -> Result<Self, Unacceptable> {
        let Some(header) = header.filter(|header| !header.trim().is_empty()) else { return Ok(Self::JSON) };
        let mut clauses: Vec<Clause<'_>> = header.split(',').map(Clause::parse).collect();
        clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
        let mut refusal = Unacceptable::MediaType;
        for clause in &clauses {
            let Some(encoding) = clause.encoding() else { continue };
            match clause.form() {
                Some(form) => return Ok(Self { form, encoding }),
                None => refusal = Unacceptable::Form,
            }
        }
        Err(refusal)
    }
}

struct Clause<'a> {
    media: &'a str,
    quality: f32,
    form: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut clause =
            Self { media: parts.next().unwrap_or_default(), quality: 1.0, form: None, group: None, version: None };
        for part in parts {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("q", value)) => clause.quality = value.parse().unwrap_or(1.0),
                Some(("as", value)) => clause.form = Some(value),
                Some(("g", value)) => clause.group = Some(value),
                Some(("v", value)) => clause.version = Some(value),
                _ => {}
            }
        }
        clause
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.media {
            "application/json" | "*/*" | "application/*" => Some(Encoding::Json),
            "application/yaml" => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn form(&self) -> Option<Form> {
        match (self.form, self.group, self.version) {
            (None, ..) => Some(Form::Object),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Form::Table),
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1")) => Some(Form::PartialMetadata),
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => Some(Form::PartialMetadataList),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(Form::GroupDiscovery),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_form_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(Accepted::choose(Some(kubectl)).unwrap().form, Form::Table);
        let proto = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(Accepted::choose(Some(proto)), Ok(Accepted::JSON));
        assert_eq!(Accepted::choose(Some("text/plain")), Err(Unacceptable::MediaType));
        assert_eq!(Accepted::choose(Some("application/json;as=Foo;g=x;v=v1")), Err(Unacceptable::Form));
        assert_eq!(Accepted::choose(Some("application/json;q=0.1,application/yaml")).unwrap().encoding, Encoding::Yaml);
    }
}
