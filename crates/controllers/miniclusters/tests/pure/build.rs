// SPDX-License-Identifier: Apache-2.0
//! The children of each fixture, word for word. `INSTA_UPDATE=always cargo test` writes the goldens anew.

use bivouac_miniclusters::{Cluster, Settings, build, certificate::Certificate, script::BODIES};
use k8s_openapi::api::core::v1::Container;
use serde_json::{Value, json};

use crate::fixtures::{minicluster, with};

/// All children. The parts of scripts that are the same for everybody are named only.
fn children(cluster: &Cluster<'_>) -> Value {
    let certificate = Certificate::new([7; 32], "flux-sample-0");
    let mut all = vec![
        json!(build::entrypoint(cluster, &certificate)),
        json!(build::certificate(cluster, &certificate)),
        json!(build::headless_service(cluster)),
        json!(build::job(cluster, false)),
    ];
    let ports = cluster.sidecars.iter().filter(|placed| !placed.container.ports.is_empty());
    all.extend(ports.map(|placed| json!(build::sidecar_service(cluster, placed.container, false))));
    if !cluster.spec.services.is_empty() {
        all.push(json!(build::services_pod(cluster)));
    }
    let mut all = Value::Array(all);
    shorten(&mut all);
    all
}

pub fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            for (name, body) in BODIES {
                *text = text.replace(body, &format!("<{name}>\n"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

fn golden(name: &str, yaml: &str) {
    let all = with(yaml, children);
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_yaml_snapshot!(name, all);
    });
}

#[test]
fn the_worked_example() {
    golden("worked_example", "size: 4\ntasks: 4");
}

#[test]
fn a_full_minicluster_uses_every_field() {
    golden("full", FULL);
}

const FULL: &str = "
size: 2
maxSize: 5
minSize: 1
tasks: 0
interactive: true
backoffLimit: 3
deadlineSeconds: 600
jobLabels: {kueue.x-k8s.io/queue-name: team}
network: {headlessName: net}
archive: {path: /data/archive}
logging: {debug: true, zeromq: true}
flux:
  optionFlags: -ompi=openmpi@5
  submitCommand: flux run
  wrap: strace,-f
  topology: kary:2
  environment: {GREETING: \"it's\"}
  scheduler: {queuePolicy: easy}
  container: {image: view, name: my-view, mountPath: /opt/flux, workingDir: /w, pythonPath: /py, pullAlways: true, imagePullSecret: v, resources: {limits: {cpu: 1}}, securityContext: {runAsUser: 5}}
pod:
  annotations: {a: b}
  labels: {app: mine, team: x}
  restartPolicy: OnFailure
  serviceAccountName: me
  automountServiceAccountToken: true
  runtimeClassName: fast
  schedulerName: fluence
  nodeSelector: {disk: ssd}
  nodeAffinity: {zone: [a, b]}
  tolerations: [{key: gpu, operator: Exists}]
  dnsPolicy: ClusterFirst
  hostIPC: true
  hostPID: true
  resources: {cpu: 100m}
  securityContext: {fsGroup: 7, runAsGroup: 8}
services:
- {image: nginx, name: nginx, ports: [80], command: 'nginx $(x)', imagePullSecret: s, volumes: {conf: {configMapName: nginx-conf, path: /etc/nginx, items: {a: b}}}}
containers:
- {image: side, name: side, ports: [80, 443], command: 'sleep 1 && true', imagePullPolicy: Never, lifeCycle: {postStartExec: 'echo hi', preStopExec: bye}}
- {image: kept, name: kept, noWrapEntrypoint: true, volumes: {shared: {path: /b, claimName: pvc}}}
- image: app
  runFlux: true
  command: hostname
  workingDir: /work
  imagePullSecret: p
  pullAlways: true
  ports: [8080]
  environment: {A: b}
  secrets: {TOKEN: {name: s, key: t}}
  resources: {limits: {nvidia.com/gpu: 1}}
  securityContext: {privileged: true}
  commands: {init: a, pre: b, brokerPre: c, workerPre: d, post: e, prefix: f}
  volumes:
    shared: {path: /a, readOnly: true, claimName: pvc}
    csi: {path: /c, csiDriver: d, csiDriverAttributes: {k: v}}
    secret: {path: /s, secretName: s}
    shm: {emptyDir: true, emptyDirMedium: memory, emptyDirSizeLimit: 1Gi}
    host: {path: /h, hostPath: /h}
    nothing: {path: /n}
";

#[test]
fn only_the_lead_has_a_service_if_asked() {
    golden(
        "minimal_service",
        "size: 4\nshareProcessNamespace: true\nflux: {minimalService: true, disableSocket: true}\nnetwork: {disableAffinity: true}",
    );
}

// === Defects of the original that are repaired ===

#[test]
fn defect_3_the_lead_decides_for_all() {
    with("size: 4", |cluster| {
        let spec = build::job(cluster, false).spec.unwrap();
        assert_eq!(spec.success_policy.unwrap().rules[0].succeeded_indexes.as_deref(), Some("0"));
        let rules = spec.pod_failure_policy.unwrap().rules;
        assert_eq!(rules.iter().map(|rule| rule.action.as_str()).collect::<Vec<_>>(), ["Ignore", "FailJob"]);
    });
    with("interactive: true", |cluster| {
        let rules = build::job(cluster, false).spec.unwrap().pod_failure_policy.unwrap().rules;
        assert_eq!(rules.len(), 1, "a broker that ends is not the end of the cluster");
    });
    with("pod: {restartPolicy: OnFailure}", |cluster| {
        assert!(build::job(cluster, false).spec.unwrap().pod_failure_policy.is_none(), "Kubernetes refuses both");
    });
}

#[test]
fn defect_4_the_key_is_in_a_secret_unless_the_switch_says_else() {
    let minicluster = minicluster("size: 1");
    let certificate = Certificate::new([7; 32], "flux-sample-0");
    for open in [false, true] {
        let settings = Settings { certificate_in_config_map: open, ..Settings::default() };
        let cluster = Cluster::of(&minicluster, 1, &settings).unwrap();
        let text = json!(build::entrypoint(&cluster, &certificate)).to_string();
        assert_eq!(text.contains("secret-key"), open);
        let job = json!(build::job(&cluster, false)).to_string();
        assert_eq!(job.contains("\"flux-sample-curve\""), !open);
        assert_eq!(job.matches("\"curve.cert\"").count(), 2, "key and path, in one volume");
    }
}

#[test]
fn defect_4_only_the_runner_sees_the_key() {
    with("containers: [{runFlux: true}, {name: wrapped}, {name: plain, noWrapEntrypoint: true}]", |cluster| {
        let pod = build::pod_template(cluster).spec.unwrap();
        let all = pod.init_containers.iter().flatten().chain(&pod.containers);
        let parts = |container: &Container| -> Vec<Option<String>> {
            let mounts = container.volume_mounts.iter().flatten();
            mounts.filter(|mount| mount.name == "flux-operator").map(|mount| mount.sub_path.clone()).collect()
        };
        let parts: Vec<_> = all.map(parts).collect();
        let alone = |file: &str| vec![Some(file.to_owned())];
        assert_eq!(parts, [alone("flux-init.sh"), vec![None], alone("start-1.sh"), vec![]]);
    });
}

#[test]
fn defect_12_ports_have_names_and_a_taken_name_is_avoided() {
    let two = "containers: [{runFlux: true}, {name: web, ports: [80, 443]}]";
    with(two, |cluster| {
        let web = cluster.sidecars[0].container;
        let service = build::sidecar_service(cluster, web, false);
        let names: Vec<_> = service.spec.unwrap().ports.unwrap().into_iter().map(|port| port.name.unwrap()).collect();
        assert_eq!((service.metadata.name.as_deref(), names.join(" ")), (Some("web"), "port-80 port-443".into()));
        let service = build::sidecar_service(cluster, web, true);
        assert_eq!(service.metadata.name.as_deref(), Some("flux-sample-web"));
    });
}

#[test]
fn defect_13_each_container_has_its_own_mounts_and_the_pod_its_rights() {
    let two = "pod: {securityContext: {runAsUser: 5}, resources: {cpu: 2}}\ncontainers: [{runFlux: true, volumes: {a: \
               {path: /a, claimName: a}}}, {name: b}]";
    with(two, |cluster| {
        let pod = build::pod_template(cluster).spec.unwrap();
        let mounts = |index: usize| pod.containers[index].volume_mounts.iter().flatten().any(|mount| mount.name == "a");
        assert!(mounts(0) && !mounts(1));
        assert_eq!(pod.security_context.unwrap().run_as_user, Some(5));
        assert!(pod.overhead.is_none() && pod.resources.is_some(), "overhead belongs to a runtime class");
    });
}

#[test]
fn defect_14_the_init_container_is_the_same_user() {
    with("containers: [{securityContext: {runAsUser: 5}}]", |cluster| {
        let pod = build::pod_template(cluster).spec.unwrap();
        assert_eq!(pod.init_containers.unwrap()[0].security_context.as_ref().unwrap().run_as_user, Some(5));
        let text = json!(pod.volumes).to_string();
        assert!(text.contains("\"mode\":292"), "a file of root with mode 0400 would be closed to it: {text}");
    });
}

#[test]
fn the_view_is_mounted_from_its_image_if_asked() {
    let pod = |annotation: Option<&str>, settings: &Settings, spec: &str| {
        let mut minicluster = minicluster(spec);
        let mark = |wish: &str| [("bivouac.dev/view".to_owned(), wish.to_owned())].into();
        minicluster.metadata.annotations = annotation.map(mark);
        let cluster = Cluster::of(&minicluster, 1, settings).unwrap();
        serde_json::to_value(bivouac_miniclusters::build::pod_template(&cluster).spec.unwrap()).unwrap()
    };
    let image = |pod: &Value| pod["volumes"].as_array().unwrap().iter().find_map(|one| one.get("image").cloned());
    let on = Settings { view_by_image: true, ..Settings::default() };
    let spec = "flux: {container: {image: view:1, pullAlways: true}}\ncontainers: [{image: a, runFlux: true}, {image: b, name: b}]";
    let asked = pod(Some("image"), &Settings::default(), spec);
    assert_eq!(image(&asked), Some(json!({"reference": "view:1", "pullPolicy": "Always"})));
    for container in asked["containers"].as_array().unwrap() {
        let mounts = container["volumeMounts"].as_array().unwrap().iter();
        let parts: Vec<_> = mounts.filter(|mount| mount["name"] == "flux-operator-view").collect();
        let parts: Vec<_> = parts.iter().map(|mount| (&mount["subPath"], &mount["mountPath"])).collect();
        let (software, views) =
            ((json!("opt/software"), json!("/opt/software")), (json!("opt/views"), json!("/opt/views")));
        assert_eq!(parts, [(&software.0, &software.1), (&views.0, &views.1)]);
    }
    assert!(image(&pod(None, &on, spec)).is_some());
    assert!(image(&pod(Some("copy"), &on, spec)).is_none());
    assert!(image(&pod(None, &Settings::default(), spec)).is_none());
    assert!(image(&pod(None, &on, "flux: {container: {disable: true}}\ncontainers: [{image: a}]")).is_none());
}
