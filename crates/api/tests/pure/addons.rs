// SPDX-License-Identifier: Apache-2.0
//! Group `addons.otterscale.io`.

use bivouac_api::addons::{Module, ModuleTemplate};
use serde_json::{Value, json};

use crate::kinds::face;
use crate::samples::{samples, survives};

#[test]
fn faces_are_upstreams() {
    assert_eq!(face("modules.addons.otterscale.io"), ["Cluster", "", "Template, Namespace, Ready, [Reason], Age"]);
    assert_eq!(face("moduletemplates.addons.otterscale.io"), ["Cluster", "", "Namespace, Type, Age"]);
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

fn refusal(spec: Value) -> String {
    let template = json!({
        "apiVersion": "addons.otterscale.io/v1alpha1", "kind": "ModuleTemplate", "metadata": {"name": "t"}, "spec": spec,
    });
    let template: ModuleTemplate = serde_json::from_value(template).unwrap();
    template.validate_cel().err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn a_template_installs_in_one_way() {
    let helm = json!({"spec": {"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "c"}}});
    let kustomization =
        json!({"spec": {"interval": "1m", "prune": true, "sourceRef": {"kind": "Bucket", "name": "b"}}});
    assert_eq!(refusal(json!({"namespace": "n", "helmRelease": helm})), "");
    assert_eq!(refusal(json!({"namespace": "n", "kustomization": kustomization})), "");
    let both = refusal(json!({"namespace": "n", "helmRelease": helm, "kustomization": kustomization}));
    assert!(both.contains("exactly one of helmRelease or kustomization"), "{both}");
    let none = refusal(json!({"namespace": "n"}));
    assert!(none.contains("exactly one of helmRelease or kustomization"), "{none}");
}

#[test]
fn a_helm_release_has_one_chart() {
    let said = refusal(json!({"namespace": "n", "helmRelease": {"spec": {"interval": "1m"}}}));
    assert!(said.contains("either chart or chartRef must be set"), "{said}");
}

#[test]
fn a_module_keeps_its_template() {
    let module = |name: &str| {
        Module::new("m", bivouac_api::addons::ModuleSpec { template_ref: name.into(), ..Default::default() })
    };
    let said = module("b").validate_cel_update(&module("a")).unwrap_err().to_string();
    assert!(said.contains("templateRef is immutable"), "{said}");
}
