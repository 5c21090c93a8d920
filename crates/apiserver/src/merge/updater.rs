// SPDX-License-Identifier: Apache-2.0
//! How the fields of managers change with a write.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::Value;

use super::{
    ApplyError, Conflict, Kind, Write, combine,
    compare::{Comparison, compare},
    element::{PathElement, same},
    fields::Set,
    managers::{Entry, Identity, Managers},
    owned, prune,
    validate::{Duplicates, validate},
};
use crate::schema::Schema;

/// Fields that nobody owns: they say what the object is, or the server writes them.
static STRIPPED: LazyLock<Set<'static>> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let mut set = Set::of_fields(&[&["apiVersion"], &["kind"], &["metadata"]]);
    for name in metadata {
        set.insert(["metadata", name].map(PathElement::field));
    }
    set
});

/// Why managers cannot change as the write wants it.
#[derive(Debug)]
pub enum Refusal<'a> {
    Conflicts(Vec<Clash<'a>>),
    Failed(String),
}

/// The fields of one other manager that an apply would change.
#[derive(Debug)]
pub struct Clash<'a> {
    pub with: Identity<'a>,
    pub fields: Set<'a>,
}

/// The managers after an update: who changed a field owns it, and nobody owns what is gone.
pub fn update<'a>(
    live: &'a Value,
    new: &'a Value,
    mut managers: Managers<'a>,
    write: &Write<'a>,
) -> Result<Managers<'a>, String> {
    validate(new, write.kind.schema, Duplicates::Allowed)?;
    validate(live, write.kind.schema, Duplicates::Allowed)?;
    follow_schema(&mut managers, live, &write.kind)?;
    let comparison = match settle(&mut managers, live, new, write, None, true) {
        Ok(comparison) => comparison,
        Err(Refusal::Failed(message)) => return Err(message),
        Err(Refusal::Conflicts(_)) => return Err("conflicts of a forced write".to_owned()),
    };
    let touched = comparison.touched().without_below(write.reset).without(&STRIPPED);
    if !touched.is_empty() {
        let version = write.kind.api_version;
        let id = Identity::updater(write.manager, version, write.subresource);
        let mut set = managers.take(&id).map(|entry| entry.set).unwrap_or_default();
        set.union(touched);
        managers.0.push(Entry { id, version: Cow::Borrowed(version), time: Some(Cow::Borrowed(write.now)), set });
    }
    managers.cap();
    Ok(managers)
}

/// The object after an apply, with the managers.
pub fn apply<'a>(
    live: &'a Value,
    config: &'a Value,
    mut managers: Managers<'a>,
    write: &Write<'a>,
    force: bool,
) -> Result<(Value, Managers<'a>), Refusal<'a>> {
    let kind = &write.kind;
    follow_schema(&mut managers, live, kind).map_err(Refusal::Failed)?;
    let mut new = combine::combine(live, config, kind.schema);
    let id = Identity::applier(write.manager, write.subresource);
    let last = managers.take(&id);
    let own = Entry {
        id: id.clone(),
        version: Cow::Borrowed(kind.api_version),
        time: last.as_ref().and_then(|last| last.time.clone()),
        set: owned::fields(config, kind.schema).without_below(write.reset),
    };
    // Where nothing was given up, there is nothing to remove.
    let kept = |last: &Entry<'_>| last.version == own.version && last.set.is_within(&own.set);
    let given_up = last.filter(|last| !kept(last) && !fault!(DroppedStays));
    managers.0.push(own);
    if let Some(last) = given_up {
        new = drop_given_up(new, &managers, &last, kind)
            .map_err(|error| Refusal::Failed(format!("failed to prune fields: {error}")))?;
    }
    settle(&mut managers, live, &new, write, Some(&id), force)?;
    let changed = !same(live, &new);
    if let Some(mut entry) = managers.take(&id) {
        entry.set = entry.set.without(&STRIPPED);
        if changed {
            entry.time = Some(Cow::Borrowed(write.now));
        }
        if !entry.set.is_empty() {
            managers.0.push(entry);
        }
    }
    // The same number can be written in two ways; without a change the live one stays.
    if !changed && new != *live {
        new = live.clone();
    }
    Ok((new, managers))
}

/// Brings all sets up to date with the schema. Managers of versions that are no more are forgotten.
fn follow_schema(managers: &mut Managers<'_>, live: &Value, kind: &Kind<'_>) -> Result<(), String> {
    let mut known = Vec::with_capacity(managers.0.len());
    for mut entry in std::mem::take(&mut managers.0) {
        if let Some(schema) = kind.at(&entry.version, live)? {
            entry.set.follow(schema);
            known.push(entry);
        }
    }
    managers.0 = known;
    Ok(())
}

/// Takes from all managers but `writer` what a write changed or removed. Says what it changed in the version of the
/// request.
fn settle<'a, 'v>(
    managers: &mut Managers<'a>,
    old: &'v Value,
    new: &'v Value,
    write: &Write<'v>,
    writer: Option<&Identity<'_>>,
    force: bool,
) -> Result<Comparison<'v>, Refusal<'a>> {
    let own = compare(old, new, write.kind.schema);
    let mut effects: Vec<(Cow<'a, str>, Effect<'v>)> = Vec::new();
    let others = |entry: &&mut Entry<'_>| Some(&entry.id) != writer;
    for entry in managers.0.iter_mut().filter(others) {
        if effects.iter().any(|(version, _)| *version == entry.version) {
            continue;
        }
        let effect = if entry.version == write.kind.api_version {
            Effect::of(own.clone().without_below(write.reset))
        } else {
            let failed =
                |what: &str, error: String| Refusal::Failed(format!("failed to convert {what} object: {error}"));
            write.kind.at(&entry.version, old).map_err(|error| failed("old", error))?;
            match write.kind.at(&entry.version, new).map_err(|error| failed("new", error))? {
                Some(schema) => Effect::of(compare(old, new, schema)),
                None => continue,
            }
        };
        effects.push((entry.version.clone(), effect));
    }
    let effect_on = |entry: &Entry<'_>| effects.iter().find(|(version, _)| *version == entry.version).map(|(_, e)| e);
    if (!force && !fault!(ConflictUnreported)) || (writer.is_some() && fault!(ForceIgnored)) {
        let mut clashes = Vec::new();
        for entry in managers.0.iter_mut().filter(others) {
            let Some(effect) = effect_on(entry).filter(|effect| !effect.touched.is_empty()) else { continue };
            let fields = entry.set.clone().intersection(&effect.touched);
            if !fields.is_empty() {
                clashes.push(Clash { with: entry.id.clone(), fields });
            }
        }
        if !clashes.is_empty() {
            return Err(Refusal::Conflicts(clashes));
        }
    }
    for entry in managers.0.iter_mut().filter(others) {
        if let Some(effect) = effect_on(entry) {
            entry.set = std::mem::take(&mut entry.set).without(&effect.touched).without(&effect.removed);
        }
    }
    managers.0.retain(|entry| !entry.set.is_empty());
    Ok(own)
}

/// What a write does to the fields of others.
struct Effect<'a> {
    touched: Set<'a>,
    removed: Set<'a>,
}

impl<'a> Effect<'a> {
    fn of(mut comparison: Comparison<'a>) -> Self {
        let removed = std::mem::take(&mut comparison.removed);
        Self { touched: comparison.touched(), removed }
    }
}

/// The object without the fields that the applier had in its last configuration and has no more, as far as nobody else
/// owns them.
fn drop_given_up(merged: Value, managers: &Managers<'_>, last: &Entry<'_>, kind: &Kind<'_>) -> Result<Value, String> {
    let schema = match kind.at(&last.version, &merged) {
        Ok(Some(schema)) => schema,
        Ok(None) => return Ok(merged),
        Err(error) => return Err(format!("failed to convert merged object to last applied version: {error}")),
    };
    let given_up = last.set.clone().with_named_parents(schema);
    let mut pruned = prune::remove(&merged, &given_up, schema);

    // What is owned comes back, first in the version of the last configuration.
    let mut versions: Vec<&str> = vec![&last.version];
    for entry in &managers.0 {
        if !versions.contains(&&*entry.version) {
            versions.push(&entry.version);
        }
    }
    for version in versions {
        let mut owned = Set::default();
        for entry in managers.0.iter().filter(|entry| entry.version == version) {
            owned.union(entry.set.clone());
        }
        if !owned.is_empty() {
            pruned = restore(&merged, pruned, version, owned, kind)
                .map_err(|error| format!("failed add back owned items: {error}"))?;
        }
    }

    // What nobody owns comes back too: only what the applier itself owned may go.
    let was = owned::fields(&merged, schema).with_named_parents(schema);
    let is = owned::fields(&pruned, schema).with_named_parents(schema);
    let gone = was.without(&is).intersection(&given_up);
    Ok(prune::remove(&merged, &gone, schema))
}

/// The pruned object with what the managers of one version own.
fn restore(merged: &Value, pruned: Value, version: &str, owned: Set<'_>, kind: &Kind<'_>) -> Result<Value, String> {
    let at = |what: &str, object: &Value| {
        kind.at(version, object).map_err(|e| format!("failed to convert {what} object at version {version}: {e}"))
    };
    let (Some(schema), Some(_)) = (at("merged", merged)?, at("pruned", &pruned)?) else { return Ok(pruned) };
    let was = owned::fields(merged, schema).with_named_parents(schema);
    let mut kept = owned::fields(&pruned, schema).with_named_parents(schema);
    kept.union(owned.with_named_parents(schema));
    Ok(prune::remove(merged, &was.without(&kept), schema))
}

// === impl Kind ===

impl<'a> Kind<'a> {
    /// The schema of an object in a version of its kind. `None` if the version is not known; for custom resources that is
    /// an error, as is an object that the other version does not fit.
    fn at(&self, version: &str, object: &Value) -> Result<Option<Schema<'a>>, String> {
        if version == self.api_version {
            return Ok(Some(self.schema));
        }
        let Some((_, root)) = self.versions.iter().find(|(name, _)| **name == *version) else {
            return match self.custom {
                true => Err(format!("request to convert CR to an invalid group/version: {version}")),
                false => Ok(None),
            };
        };
        validate(object, root.schema(), Duplicates::Refused)?;
        Ok(Some(root.schema()))
    }
}

// === impl Refusal ===

impl Refusal<'_> {
    /// The answer to the client. Managers come in the order of their identities.
    pub fn into_error(self) -> ApplyError {
        let mut clashes = match self {
            Self::Failed(message) => return ApplyError::Failed(message),
            Self::Conflicts(clashes) => clashes,
        };
        clashes.sort_by_key(|clash| clash.with.text());
        let mut causes = Vec::new();
        let mut lines = Vec::new();
        for clash in &clashes {
            let with = clash.with.readable();
            lines.push(format!("conflicts with {with}:"));
            clash.fields.visit(&mut Vec::new(), &mut |path| {
                let field: String = path.iter().map(ToString::to_string).collect();
                lines.push(format!("- {field}"));
                causes.push(Conflict { message: format!("conflict with {with}"), field });
            });
        }
        let message = match causes.as_slice() {
            [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
            causes => format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n")),
        };
        ApplyError::Conflict { message, causes }
    }
}
