// SPDX-License-Identifier: Apache-2.0
//! The real kube-controller-manager, kube-scheduler and KWOK drive a Deployment and an indexed Job to their end.

use bivouac_testenv::components::Component;

use crate::plane::Plane;

const SCHEDULER: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: { leaderElect: false }
clientConnection: { kubeconfig: KUBECONFIG, contentType: application/json, acceptContentTypes: application/json, qps: 500, burst: 1000 }
";

const WORK: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 20
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: web, image: 'web:1', resources: { requests: { cpu: 100m, memory: 64Mi } } }]
---
apiVersion: batch/v1
kind: Job
metadata: { name: ranks }
spec:
  completionMode: Indexed
  completions: 6
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{ name: rank, image: 'rank:1' }]
";

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{ name: {name}, annotations: {{ kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: '0' }}, labels: {{ type: kwok }} }}
status: {{ allocatable: {{ cpu: '8', memory: 32Gi, pods: '110' }}, capacity: {{ cpu: '8', memory: 32Gi, pods: '110' }} }}
---
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_and_an_indexed_job_complete_on_fake_nodes() {
    let mut plane = Plane::start(false).await;
    let kubeconfig = plane.kubeconfig().display().to_string();
    plane.run(
        Component::KubeControllerManager,
        &[
            &format!("--kubeconfig={kubeconfig}"),
            "--kube-api-content-type=application/json",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ],
    );
    let config = plane.file("scheduler.yaml", &SCHEDULER.replace("KUBECONFIG", &kubeconfig));
    plane.run(Component::KubeScheduler, &[&format!("--config={}", config.display()), "--secure-port=0"]);
    let stages: Vec<String> =
        plane.paths.kwok_stages().unwrap().iter().map(|stage| format!("--config={}", stage.display())).collect();
    let kubeconfig = format!("--kubeconfig={kubeconfig}");
    let mut flags = vec![
        kubeconfig.as_str(),
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
    ];
    flags.extend(stages.iter().map(String::as_str));
    plane.run(Component::Kwok, &flags);

    plane.apply(&["one", "two", "three"].map(node).concat()).await;
    plane
        .until("the nodes are ready", &["get", "nodes", "--no-headers"], |text| text.matches(" Ready ").count() == 3)
        .await;
    plane
        .until("the default account is there", &["get", "serviceaccount", "default", "-o", "name"], |text| {
            text.contains("serviceaccount/default")
        })
        .await;
    plane.apply(WORK).await;
    let rollout = plane.kubectl(&["rollout", "status", "deployment/web", "--timeout=80s"]).await;
    assert!(rollout.contains("successfully rolled out"), "{rollout}");
    plane.kubectl(&["wait", "--for=condition=Complete", "job/ranks", "--timeout=80s"]).await;
    let job =
        plane.kubectl(&["get", "job", "ranks", "-o", "jsonpath={.status.succeeded} {.status.completedIndexes}"]).await;
    assert_eq!(job, "6 0-5");
    let pods = plane.kubectl(&["get", "pods", "-l", "app=web", "--no-headers"]).await;
    assert_eq!(pods.matches("Running").count(), 20, "{pods}");

    plane.kubectl(&["scale", "deployment/web", "--replicas=3"]).await;
    plane
        .until("the surplus goes", &["get", "pods", "-l", "app=web", "--no-headers"], |text| {
            text.matches("Running").count() == 3 && text.lines().count() == 3
        })
        .await;
    plane.kubectl(&["delete", "deployment/web", "--cascade=foreground", "--timeout=60s"]).await;
    let left = plane.kubectl(&["get", "replicasets,pods", "-l", "app=web", "-o", "name"]).await;
    assert_eq!(left.trim(), "", "the real garbage collector leaves nothing");
}
