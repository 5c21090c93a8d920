// SPDX-License-Identifier: Apache-2.0
//! `bivouac minicluster list`: how all of them stand.

use std::process::ExitCode;

use anyhow::Result;
use bivouac_api::flux::MiniCluster;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, ResourceExt, api::ListParams};
use serde::Serialize;

use super::{
    access::Place,
    options::{ListOptions, ListOutput},
};
use crate::{
    print,
    table::{table, terminal},
};

pub async fn run(options: &ListOptions) -> Result<ExitCode> {
    let place = Place::reach(&options.access).await?;
    let api = if options.all_namespaces { Api::all(place.client.clone()) } else { place.miniclusters() };
    let found = api.list(&ListParams::default()).await.map_err(|error| place.explain(&error))?;
    let rows: Vec<Row> = found.iter().map(row).collect();
    match options.output {
        ListOutput::Json => print::say(&(serde_json::to_string_pretty(&rows)? + "\n"))?,
        ListOutput::Table if rows.is_empty() => {
            let all = "in any namespace".to_owned();
            let place = if options.all_namespaces { all } else { format!("in the namespace {}", place.namespace) };
            eprintln!("There is no MiniCluster {place}.");
        }
        ListOutput::Table => print::say(&listed(&rows, options.all_namespaces, Timestamp::now(), terminal()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One MiniCluster, as scripts may rely on it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    pub namespace: String,
    pub name: String,
    pub size: i32,
    pub ready: i32,
    pub state: String,
    pub message: String,
    pub exit_code: Option<i32>,
    pub created: Option<Timestamp>,
}

pub fn row(object: &MiniCluster) -> Row {
    let status = object.status.clone().unwrap_or_default();
    let (state, message) = match condition(object, "Ready") {
        Some(ready) => (ready.reason.clone(), ready.message.clone()),
        None => ("Unseen".to_owned(), "no controller has looked at it yet".to_owned()),
    };
    Row {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        size: object.spec.size,
        ready: status.ready,
        state,
        message,
        exit_code: status.exit_code,
        created: object.creation_timestamp().map(|time| time.0),
    }
}

pub fn condition<'a>(object: &'a MiniCluster, type_: &str) -> Option<&'a Condition> {
    object.status.as_ref()?.conditions.iter().find(|one| one.type_ == type_)
}

/// `wide` shows the namespaces, too.
fn listed(rows: &[Row], wide: bool, now: Timestamp, width: usize) -> String {
    let cells = |row: &Row| {
        let age = row.created.map(|created| age(now.duration_since(created).as_secs())).unwrap_or_default();
        let (size, ready) = (row.size.to_string(), row.ready.to_string());
        let namespace = if wide { row.namespace.clone() } else { String::new() };
        [namespace, row.name.clone(), size, ready, row.state.clone(), age, row.message.replace('\n', " ")]
    };
    let heading = [if wide { "NAMESPACE" } else { "" }, "NAME", "SIZE", "READY", "STATE", "AGE", "MESSAGE"];
    table(heading, &rows.iter().map(cells).collect::<Vec<_>>(), &[], width)
}

/// As short as kubectl has it.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..120 => format!("{seconds}s"),
        seconds @ ..10_800 => format!("{}m", seconds / 60),
        seconds @ ..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let plain: MiniCluster = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "new", "namespace": "a"}, "spec": {"size": 4, "containers": []},
        }))
        .unwrap();
        let mut told = plain.clone();
        told.metadata.name = Some("lammps-x7k2p".to_owned());
        told.metadata.creation_timestamp = serde_json::from_str("\"1969-12-31T23:00:00Z\"").unwrap();
        told.status = serde_json::from_value(serde_json::json!({
            "size": 4, "maximumSize": 4, "selector": "", "jobid": "", "ready": 2,
            "conditions": [{"type": "Ready", "status": "False", "reason": "BrokersStarting",
                "message": "2 of the 4 brokers that are needed are ready", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
        }))
        .unwrap();
        vec![row(&plain), row(&told)]
    }

    #[test]
    fn a_table_says_what_is_waited_for() {
        let table = listed(&rows(), false, Timestamp::UNIX_EPOCH, usize::MAX);
        assert_eq!(
            table,
            "NAME          SIZE  READY  STATE            AGE  MESSAGE\n\
             new           4     0      Unseen                no controller has looked at it yet\n\
             lammps-x7k2p  4     2      BrokersStarting  60m  2 of the 4 brokers that are needed are ready\n"
        );
    }

    #[test]
    fn a_narrow_terminal_shows_that_something_is_cut() {
        let table = listed(&rows(), true, Timestamp::UNIX_EPOCH, 60);
        assert!(table.lines().all(|line| line.chars().count() <= 60), "{table}");
        assert!(table.starts_with("NAMESPACE  NAME") && table.ends_with("…\n"), "{table}");
    }

    #[test]
    fn ages_are_short() {
        let ages = [-3, 7, 119, 120, 10_799, 10_800, 172_800].map(age);
        assert_eq!(ages, ["0s", "7s", "119s", "2m", "179m", "3h", "2d"]);
    }
}
