// SPDX-License-Identifier: Apache-2.0
//! `bivouac clouds`: who can be bought from, and whether they let us.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use bivouac_clouds::{Account, Boots, Prices, kit, line};
use serde_json::{Value, json};

use super::ask::{self, Failed, Known};
use super::options::{Output, ShowOptions};
use crate::print;
use crate::table::{table, terminal};

pub async fn list(options: &ShowOptions) -> Result<ExitCode> {
    let known = ask::known(&options.ask).await?;
    let source: BTreeMap<&str, &str> = known.iter().map(|one| (one.entry.name, one.source)).collect();
    let line = line::to_the_world().map_err(|broken| anyhow::anyhow!("the certificates of this machine: {broken}"))?;
    let mut rows = Vec::new();
    for entry in ask::meant(&options.ask)? {
        // What a cloud can do does not depend on who asks.
        let cloud = (entry.client)(&kit::credentials(entry), line.clone(), entry.base)?;
        let can = cloud.capabilities();
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let variables: Vec<String> =
            entry.fields.iter().map(|field| format!("BIVOUAC_{}_{field}", entry.name).to_ascii_uppercase()).collect();
        let boots = match can.boots {
            Boots::Talos => "talos",
            Boots::CloudInit => "cloud-init",
            Boots::Container => "container",
        };
        let prices = match can.prices {
            Prices::Api => "asked",
            Prices::Table => "table",
        };
        rows.push([
            entry.name.to_owned(),
            source.get(entry.name).map_or("none", |source| source).to_owned(),
            boots.to_owned(),
            yes(can.spot),
            yes(can.kill_timer),
            prices.to_owned(),
            variables.join(" "),
        ]);
    }
    let keys = ["cloud", "credential", "boots", "spot", "endsByItself", "prices", "variables"];
    match options.output {
        Output::Table => {
            let heading = ["CLOUD", "CREDENTIAL", "BOOTS", "SPOT", "TIMER", "PRICES", "VARIABLES"];
            print::say(&table(heading, &rows, &[], terminal()))?;
        }
        other => {
            let object = |row: &[String; 7]| keys.iter().zip(row).map(|(key, cell)| (*key, json!(cell))).collect();
            let all: Vec<BTreeMap<&str, Value>> = rows.iter().map(object).collect();
            say(other, &json!(all))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn check(options: &ShowOptions) -> Result<ExitCode> {
    let known: Vec<Known> = ask::known(&options.ask).await?;
    if known.is_empty() {
        eprintln!("There is no credential to check. `bivouac clouds` shows which variables to set.");
        return Ok(ExitCode::from(2));
    }
    let words = |_: &Account| "is well".to_owned();
    let answers = ask::all(&known, options.ask.quiet, async |cloud| cloud.verify().await, words).await?;
    let all_well = answers.values().all(Result::is_ok);
    match options.output {
        Output::Table => {
            let rows: Vec<_> = answers.iter().map(|(cloud, answer)| row(cloud, answer)).collect();
            print::say(&table(["CLOUD", "REACHED", "CREDENTIAL", "SAYS"], &rows, &[], terminal()))?;
        }
        other => {
            let object = |(cloud, answer): (&&str, &Result<Account, Failed>)| match answer {
                Ok(account) => json!({
                    "cloud": cloud, "well": true, "reached": true, "accepted": true, "account": account.name,
                    "balance": account.balance, "machineLimit": account.machine_limit, "notes": account.notes,
                }),
                Err(why) => json!({
                    "cloud": cloud, "well": false, "reached": why.reached, "accepted": why.accepted, "error": why.says,
                }),
            };
            say(other, &json!(answers.iter().map(object).collect::<Vec<_>>()))?;
        }
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(cloud: &str, answer: &Result<Account, Failed>) -> [String; 4] {
    let word = |is: Option<bool>| match is {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "?",
    };
    let (reached, accepted, says) = match answer {
        Ok(account) => (Some(true), Some(true), told(account)),
        Err(why) => (why.reached, why.accepted, why.says.clone()),
    };
    [cloud.to_owned(), word(reached).to_owned(), word(accepted).to_owned(), says]
}

/// What the account says about itself.
fn told(account: &Account) -> String {
    let mut says: Vec<String> = account.name.iter().map(|name| format!("account {name}")).collect();
    says.extend(account.balance.map(|balance| format!("balance ${balance}")));
    says.extend(account.machine_limit.map(|limit| format!("at most {limit} machines")));
    says.extend(account.notes.iter().cloned());
    if says.is_empty() { "the credential is accepted".to_owned() } else { says.join("; ") }
}

fn say(output: Output, value: &Value) -> Result<()> {
    match output {
        Output::Yaml => print::say(&serde_saphyr::to_string(value)?),
        _ => print::say(&(serde_json::to_string_pretty(value)? + "\n")),
    }
}
