// SPDX-License-Identifier: Apache-2.0
//! Group `flux-framework.org`.

use bivouac_api::flux::{
    Container, Flux, FluxContainer, LeadBroker, MiniCluster, MiniClusterSpec, MiniClusterStatus, Volume,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::kinds::{crd, face, schema};
use crate::samples::{samples, survives};

const CRD: &str = "miniclusters.flux-framework.org";

fn minicluster(spec: Value) -> MiniCluster {
    MiniCluster::new("m", serde_json::from_value(spec).unwrap())
}

/// What is said against the spec; empty when nothing is.
fn refusal(spec: Value) -> String {
    minicluster(spec).validate_cel().err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn face_and_scale() {
    assert_eq!(face(CRD), ["Namespaced", "", "Size, Ready, Finished, Age"]);
    let scale = crd(CRD).spec.versions[0].subresources.clone().unwrap().scale.unwrap();
    assert_eq!(scale.spec_replicas_path, ".spec.size");
    assert_eq!(scale.status_replicas_path, ".status.size");
    assert_eq!(scale.label_selector_path.as_deref(), Some(".status.selector"));
}

#[test]
fn samples_survive_and_are_accepted() {
    for mut sample in samples::<MiniCluster>("flux-framework") {
        // Three samples still have a field that upstream's own CRD prunes.
        sample.written["spec"].as_object_mut().unwrap().remove("volumes");
        survives(&sample);
        let said = sample.object.validate_cel();
        assert!(said.is_ok(), "{}: {said:?}", sample.file);
    }
}

/// The defaults of the types and those that the server fills in are the same.
fn same_defaults<T: Default + DeserializeOwned + PartialEq + Serialize + std::fmt::Debug>(path: &str, given: Value) {
    let read: T = serde_json::from_value(given).unwrap();
    assert_eq!(read, T::default(), "{path}");
    let written = serde_json::to_value(T::default()).unwrap();
    let fields = schema(CRD, path)["properties"].take();
    for (name, field) in fields.as_object().unwrap() {
        if let Some(default) = field.get("default") {
            assert_eq!(&written[name], default, "{path}.{name}");
        }
    }
}

#[test]
fn defaults_agree() {
    same_defaults::<MiniClusterSpec>("spec", json!({"containers": []}));
    same_defaults::<Flux>("spec.flux", json!({}));
    same_defaults::<FluxContainer>("spec.flux.container", json!({}));
    same_defaults::<LeadBroker>("spec.flux.bursting.leadBroker", json!({"address": "", "name": "", "size": 0}));
    same_defaults::<Container>("spec.containers.[]", json!({}));
    same_defaults::<Volume>("spec.containers.[].volumes.{}", json!({}));
}

#[test]
fn zero_tasks_and_an_empty_timeout_are_not_the_defaults() {
    let spec = minicluster(json!({"containers": [{}], "tasks": 0, "flux": {"connectTimeout": ""}})).spec;
    assert_eq!(spec.tasks, 0);
    let written = serde_json::to_value(&spec).unwrap();
    assert_eq!(written["tasks"], 0);
    assert_eq!(written["flux"]["connectTimeout"], "");
}

#[test]
fn null_lists_and_maps_are_empty() {
    let spec = minicluster(json!({
        "containers": [{"ports": null, "environment": null, "volumes": null}],
        "services": null, "jobLabels": null, "flux": {"bursting": {"clusters": null}}, "pod": {"tolerations": null},
    }));
    assert!(spec.spec.services.is_empty());
}

#[test]
fn sizes_fit_together() {
    assert_eq!(refusal(json!({"containers": [{}], "size": 2, "maxSize": 4, "minSize": 1})), "");
    assert!(refusal(json!({"containers": [{}], "size": 0})).contains("size must be at least 1"));
    assert!(refusal(json!({"containers": [{}], "size": 2, "minSize": 3})).contains("minSize must not be above size"));
    assert!(refusal(json!({"containers": [{}], "size": 4, "maxSize": 2})).contains("maxSize must not be below size"));
}

#[test]
fn an_autoscaler_may_ask_for_more_than_the_most() {
    let mut grown = minicluster(json!({"containers": [{}], "size": 8, "maxSize": 4}));
    assert!(grown.validate_cel().is_err());
    grown.status = Some(MiniClusterStatus::default());
    assert!(grown.validate_cel().is_ok());
}

#[test]
fn one_container_runs_flux() {
    assert_eq!(refusal(json!({"containers": [{"runFlux": true}, {"name": "side"}]})), "");
    for containers in
        [json!([]), json!([{"name": "a"}, {"name": "b"}]), json!([{"runFlux": true}, {"name": "b", "runFlux": true}])]
    {
        let said = refusal(json!({"containers": containers}));
        assert!(said.contains("exactly one container must have runFlux"), "{said}");
    }
    assert!(refusal(json!({"containers": [{"runFlux": true}, {}]})).contains("must have a name"));
}

#[test]
fn work_is_started_in_one_way() {
    assert!(refusal(json!({"containers": [{"launcher": true, "batch": true}]})).contains("launcher and batch"));
    let both = json!({"command": "hostname", "commands": {"script": "hostname"}, "name": "a"});
    assert!(refusal(json!({"containers": [both]})).contains("either command or commands.script"));
    assert_eq!(refusal(json!({"containers": [both, {"runFlux": true}]})), "", "a sidecar may have both");
}

#[test]
fn services_have_names_and_no_brokers() {
    assert!(refusal(json!({"containers": [{}], "services": [{}]})).contains("service container must have a name"));
    let service = json!({"name": "s", "commands": {"brokerPre": "true"}});
    assert!(refusal(json!({"containers": [{}], "services": [service]})).contains("runs no broker"));
}

#[test]
fn hosts_are_listed_once() {
    let bursting = json!({"hostlist": "a[0-1]", "clusters": [{"name": "b"}]});
    assert!(refusal(json!({"containers": [{}], "flux": {"bursting": bursting}})).contains("hostlist and clusters"));
}

#[test]
fn a_claim_is_mounted_somewhere() {
    let with = |volume: Value| refusal(json!({"containers": [{"volumes": {"data": volume}}]}));
    assert!(with(json!({"claimName": "c"})).contains("must have a path"));
    assert!(with(json!({"secretName": "s"})).contains("must have a path"));
    assert!(with(json!({"claimName": "c", "path": "data"})).contains("absolute path"));
    assert!(with(json!({"emptyDir": true, "emptyDirSizeLimit": "much"})).contains("is a quantity"));
    assert_eq!(with(json!({"emptyDir": true, "emptyDirSizeLimit": "64Gi"})), "");
    assert!(with(json!({"hostPath": "/srv"})).contains("must have a path"));
    assert_eq!(with(json!({"claimName": "c", "path": "/data"})), "");
    assert_eq!(with(json!({"emptyDir": true})), "");
}

#[test]
fn what_cannot_work_is_refused_with_a_sentence() {
    let with = |more: Value| {
        let mut spec = json!({"containers": [{}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refusal(spec)
    };
    let leader = |leader: Value| json!({"flux": {"bursting": {"leadBroker": leader}}});
    let cases = [
        (json!({"deadlineSeconds": 0}), "deadlineSeconds must be at least 1"),
        (json!({"tasks": -1}), "tasks must not be negative"),
        (json!({"minSize": -1}), "minSize must not be negative"),
        (json!({"pod": {"restartPolicy": "Always"}}), "OnFailure or Never"),
        (json!({"pod": {"hostPID": true}, "shareProcessNamespace": true}), "cannot both be true"),
        (json!({"containers": [{"ports": [0]}]}), "from 1 to 65535"),
        (json!({"containers": [{"ports": [80, 81, 80]}]}), "listed twice"),
        (json!({"containers": [{"runFlux": true, "name": "Any"}, {"name": "Web"}]}), "begins with a letter"),
        (json!({"services": [{"name": "a_b"}]}), "begins with a letter"),
        (json!({"flux": {"container": {"mountPath": "mnt"}}}), "mountPath must be an absolute path"),
        (leader(json!({"address": "a", "name": "", "size": 4})), "needs the name and the size"),
        (leader(json!({"address": "a", "name": "b", "size": 0})), "needs the name and the size"),
    ];
    for (more, sentence) in cases {
        let said = with(more.clone());
        assert!(said.contains(sentence), "{more}: {said}");
    }
    for fine in [
        json!({"tasks": 0}),
        json!({"pod": {"restartPolicy": "Never", "hostPID": true}}),
        json!({"containers": [{"name": "Runner", "ports": [80, 81]}]}),
        leader(json!({"address": "", "name": "", "size": 0})),
    ] {
        assert_eq!(with(fine.clone()), "", "{fine}");
    }
}
