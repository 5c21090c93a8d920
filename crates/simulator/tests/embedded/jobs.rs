// SPDX-License-Identifier: Apache-2.0
//! Jobs in virtual time: what takes minutes in the real world takes milliseconds here.

use serde_json::{Value, json};

use crate::hands::{self, active, after, job, set};
use crate::stage;

const JOB: &str = "/apis/batch/v1/namespaces/team/jobs/job";

fn conditions(job: &Value) -> Vec<(String, String)> {
    let all = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|one| (text(&one["type"]), text(&one["reason"]))).collect()
}

#[test]
fn failures_are_replaced_later_and_later_until_the_limit() {
    stage::run(async {
        let stage = hands::stage().await;
        stage.apply(job(json!({ "backoffLimit": 5 }))).await;
        after(1).await;
        for wait in [10, 20, 40, 80, 160] {
            let pods = active(&stage).await;
            set(&stage, &pods[0], "Failed", false).await;
            after(wait - 1).await;
            assert_eq!(active(&stage).await.len(), 0, "too early after {wait}");
            after(2).await;
            assert_eq!(active(&stage).await.len(), 1, "too late after {wait}");
        }
        let pods = active(&stage).await;
        set(&stage, &pods[0], "Failed", false).await;
        after(700).await;
        let job = stage.get(JOB).await.unwrap();
        assert_eq!(job["status"]["failed"], 6);
        let end = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")];
        assert_eq!(conditions(&job), end.map(|(kind, reason)| (kind.to_owned(), reason.to_owned())));
        assert_eq!(active(&stage).await.len(), 0);
    });
}

#[test]
fn what_a_quota_refuses_comes_when_there_is_room() {
    stage::run(async {
        let stage = hands::stage().await;
        let quota = |pods: &str| {
            json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "q", "namespace": "team" },
                "spec": { "hard": { "pods": pods } } })
        };
        stage.apply(quota("2")).await;
        after(1).await;
        stage.apply(job(json!({ "parallelism": 3, "completions": 3 }))).await;
        after(5).await;
        assert_eq!(stage.get(JOB).await.unwrap()["status"]["active"], 2);
        let events = stage.list("/api/v1/namespaces/team/events").await;
        let refused: Vec<_> = events.iter().filter(|event| event["reason"] == "FailedCreate").collect();
        assert!(
            !refused.is_empty() && refused[0]["message"].as_str().unwrap().contains("exceeded quota"),
            "{refused:?}"
        );
        let used = stage.get("/api/v1/namespaces/team/resourcequotas/q").await.unwrap();
        assert_eq!(used["status"]["used"]["pods"], "2");
        stage.apply(quota("3")).await;
        after(60).await;
        assert_eq!(stage.get(JOB).await.unwrap()["status"]["active"], 3);
    });
}

#[test]
fn a_large_job_runs_in_waves_and_is_forgotten() {
    stage::run(async {
        let stage = hands::stage().await;
        let spec = json!({ "completions": 120, "parallelism": 50, "completionMode": "Indexed",
            "ttlSecondsAfterFinished": 30 });
        stage.apply(job(spec)).await;
        let mut most = 0;
        for _ in 0..10 {
            after(1).await;
            let pods = active(&stage).await;
            most = most.max(pods.len());
            for pod in &pods {
                set(&stage, pod, "Succeeded", false).await;
            }
        }
        let job = stage.get(JOB).await.unwrap();
        assert_eq!((most, &job["status"]["completedIndexes"]), (50, &json!("0-119")));
        assert_eq!(conditions(&job).last().unwrap().0, "Complete");
        after(60).await;
        assert_eq!(stage.get(JOB).await, None);
        assert_eq!(stage.list(hands::PODS).await, Vec::<Value>::new(), "pods go with their job");
    });
}
