// SPDX-License-Identifier: Apache-2.0
//! Group `module.otterscale.io`.

use bivouac_api::module::{Module, ModuleSpec, ModuleTemplate, ModuleTemplateSpec};

use crate::kinds::face;
use crate::samples::{samples, survives};

#[test]
fn faces_are_upstreams() {
    assert_eq!(
        face("modules.module.otterscale.io"),
        ["Cluster", "", "Template, Namespace, Ready, Outdated, [Reason], Age"]
    );
    assert_eq!(face("moduletemplates.module.otterscale.io"), ["Cluster", "", "Namespace, Age"]);
}

#[test]
fn samples_survive_and_are_accepted() {
    for sample in samples::<Module>("otterscale") {
        survives(&sample);
        assert!(sample.object.validate_cel().is_ok(), "{}", sample.file);
    }
    for sample in samples::<ModuleTemplate>("otterscale") {
        survives(&sample);
        assert!(sample.object.validate_cel().is_ok(), "{}", sample.file);
    }
}

#[test]
fn a_module_names_a_template_or_a_class() {
    let said = |template: Option<&str>, class: Option<&str>| {
        let spec = ModuleSpec {
            template_ref: template.map(Into::into),
            module_class_name: class.map(Into::into),
            ..ModuleSpec::default()
        };
        Module::new("m", spec).validate_cel().err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(said(Some("t"), None), "");
    assert_eq!(said(None, Some("c")), "");
    assert!(said(None, None).contains("exactly one of templateRef or moduleClassName"));
    assert!(said(Some("t"), Some("c")).contains("exactly one of templateRef or moduleClassName"));
}

#[test]
fn a_template_installs_in_one_way() {
    let spec = ModuleTemplateSpec { namespace: "n".into(), ..ModuleTemplateSpec::default() };
    let said = ModuleTemplate::new("t", spec).validate_cel().unwrap_err().to_string();
    assert!(said.contains("exactly one of helmRelease or kustomization"), "{said}");
}
