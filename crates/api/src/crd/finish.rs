// SPDX-License-Identifier: Apache-2.0
//! The last touches on a derived CRD, the same for every kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Category that every kind of the suite is in: `kubectl get bivouac`.
const CATEGORY: &str = "bivouac";

/// Akash wrote nulls where it meant absence, and its CRDs let them through.
const GROUP_WITH_NULLS: &str = "akash.network";

/// Makes a derived CRD ready for installation.
pub fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    // Helm must not remove a CRD with all its objects when the chart goes.
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert("helm.sh/resource-policy".into(), "keep".into());
    let categories = crd.spec.names.categories.get_or_insert_default();
    if !categories.iter().any(|c| c == CATEGORY) {
        categories.push(CATEGORY.into());
    }
    let nulls = crd.spec.group == GROUP_WITH_NULLS;
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut()) {
            visit(root, &mut |schema| {
                if !nulls {
                    refuse_null(schema);
                }
                tidy_integer(schema);
            });
        }
    }
    crd
}

/// Calls `edit` on a schema and all schemas inside it, outermost first.
fn visit(schema: &mut JSONSchemaProps, edit: &mut impl FnMut(&mut JSONSchemaProps)) {
    edit(schema);
    for child in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        visit(child, edit);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(child)) => visit(child, edit),
        Some(JSONSchemaPropsOrArray::Schemas(children)) => children.iter_mut().for_each(|child| visit(child, edit)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(child)) = &mut schema.additional_properties {
        visit(child, edit);
    }
}

/// An `Option` means "may be absent". Null is another thing, and upstream refuses it.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|JSON(value)| !value.is_null());
    }
}

/// Kubernetes knows no unsigned formats and warns about them.
fn tidy_integer(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref().is_some_and(|f| f.starts_with("uint")) {
        schema.format = None;
    }
}
