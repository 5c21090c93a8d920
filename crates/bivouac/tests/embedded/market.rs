// SPDX-License-Identifier: Apache-2.0
//! `bivouac offers` and `bivouac clouds` as a user without a cluster meets them. The clouds are fakes on this machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Command, Output};

use bivouac_clouds::fake::{Refused, Server, Trouble};
use bivouac_clouds::{Operation, find, kit};
use serde_json::Value;

/// Two clouds, and a person with an empty home.
struct Market {
    home: tempfile::TempDir,
    servers: BTreeMap<&'static str, (Server, SocketAddr)>,
    _runtime: tokio::runtime::Runtime,
}

struct Told {
    code: i32,
    out: String,
    err: String,
}

impl Market {
    fn open(clouds: &[&'static str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let serve = |name: &&'static str| {
            let entry = find(name).unwrap();
            let server = entry.server(&kit::credentials(entry)).unwrap();
            let (address, _) = runtime.block_on(server.listen()).unwrap();
            (*name, (server, address))
        };
        let servers = clouds.iter().map(serve).collect();
        Self { home: tempfile::tempdir().unwrap(), servers, _runtime: runtime }
    }

    fn ask(&self, args: &[&str]) -> Told {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bivouac"));
        command.args(args).env_clear().env("HOME", self.home.path()).env("PATH", std::env::var_os("PATH").unwrap());
        for (name, (_, address)) in &self.servers {
            let entry = find(name).unwrap();
            let upper = name.to_ascii_uppercase();
            command.env(format!("BIVOUAC_{upper}_URL"), format!("http://{address}{}", entry.path()));
            for field in entry.fields {
                let value = kit::credentials(entry).get(field).unwrap().reveal().to_owned();
                command.env(format!("BIVOUAC_{upper}_{field}").to_ascii_uppercase(), value);
            }
        }
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Told { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
    }

    fn json(&self, args: &[&str]) -> Value {
        let told = self.ask(&[args, &["-o", "json"]].concat());
        assert_eq!(told.code, 0, "{}", told.err);
        serde_json::from_str(&told.out).unwrap()
    }

    fn asked(&self, cloud: &str) -> usize {
        self.servers[cloud].0.asked(Operation::Offers).len()
    }
}

fn machines(document: &Value) -> Vec<String> {
    let text = |offer: &Value| format!("{} {} {}", offer["cloud"], offer["machine"], offer["pricePerHour"]);
    document["offers"].as_array().unwrap().iter().map(|offer| text(offer).replace('"', "")).collect()
}

#[test]
fn without_a_credential_the_prices_come_along() {
    let market = Market::open(&[]);
    let told = market.ask(&["offers", "--gpu", "h100", "--count", "8"]);
    assert_eq!(told.code, 0);
    assert!(told.out.starts_with("CLOUD "), "{}", told.out);
    assert!(told.out.lines().skip(1).all(|line| line.contains("8x H100")), "{}", told.out);
    assert!(told.err.contains("prices of 2026-08-22 that come with bivouac"), "{}", told.err);
    assert_eq!(market.ask(&["clouds", "check"]).code, 2);
    let quiet = market.ask(&["offers", "--quiet", "--gpu", "h100"]);
    assert_eq!(quiet.err, "");
}

#[test]
fn a_price_of_ones_own_counts_before_that_of_the_cloud() {
    let market = Market::open(&["lambda", "paperspace"]);
    let file = market.home.path().join("prices.csv");
    let lines = [
        "paperspace,,,A4000,A4000,1,8,45,0.31,",
        "LambdaLabs,,,gpu_1x_a10,A10,1,30,200,0.5,",
        "lambda,,,none,A10,1,1,1,1,",
    ];
    std::fs::write(&file, format!("{}\n{}\n", bivouac_market::table::HEADER, lines.join("\n"))).unwrap();
    let before = machines(&market.json(&["offers", "--limit", "0"]));
    let own = ["offers", "--limit", "0", "--prices", file.to_str().unwrap()];
    let told = market.json(&own);
    let after = machines(&told);
    for (cloud, old, new) in [("paperspace A4000", "0.76", "0.31"), ("lambda gpu_1x_a10", "0.75", "0.50")] {
        let (old, new) = (format!("{cloud} {old}"), format!("{cloud} {new}"));
        assert!(before.contains(&old) && !before.contains(&new), "{before:?}");
        assert!(after.contains(&new) && !after.contains(&old), "{after:?}");
    }
    assert_eq!((told["unusedPrices"].as_u64(), after.len()), (Some(1), before.len()));
    let words = market.ask(&own).err;
    assert!(words.contains("1 of the prices in") && words.contains("name nothing that is for sale"), "{words}");
    let misspelt = format!("{}\nlamda,,,a,A10,1,1,1,1,\n", bivouac_market::table::HEADER);
    for (text, why) in [
        ("price\n1\n", "prices.csv is no price list: the first line must be cloud,region"),
        (&misspelt, "prices.csv: there is no cloud \"lamda\"; known are "),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = market.ask(&own);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
}

#[test]
fn clouds_are_asked_once_and_remembered() {
    let market = Market::open(&["lambda", "gcp"]);
    let first = market.json(&["offers"]);
    let all = machines(&first);
    assert_eq!(all[0], "gcp g2-standard-4 0.252", "spot is the cheapest: {all:?}");
    assert!(all.contains(&"lambda gpu_1x_a10 0.75".to_owned()), "{all:?}");
    assert_eq!(first["leftOut"]["it is sold out"], 1);
    let asked = (market.asked("lambda"), market.asked("gcp"));
    let second = market.json(&["offers"]);
    assert_eq!(machines(&second), all);
    assert_eq!(second["snapshot"], first["snapshot"]);
    assert_eq!((market.asked("lambda"), market.asked("gcp")), asked, "nobody is asked again");
    market.json(&["offers", "--refresh", "--cloud", "lambda"]);
    assert_eq!((market.asked("lambda"), market.asked("gcp")), (asked.0 + 1, asked.1));
    let kept = std::fs::read_to_string(market.home.path().join(".cache/bivouac/offers.json")).unwrap();
    for cloud in ["lambda", "gcp"] {
        for secret in kit::credentials(find(cloud).unwrap()).secrets() {
            assert!(kit::is_free_of(&kept, secret.reveal()), "{kept}");
        }
    }
}

#[test]
fn every_filter_holds() {
    let market = Market::open(&["lambda", "gcp"]);
    let found = |args: &[&str]| machines(&market.json(&[&["offers", "--limit", "0"], args].concat()));
    assert_eq!(found(&["--region", "eu"]), ["gcp g2-standard-4 0.777506"]);
    assert_eq!(found(&["--spot"]), ["gcp g2-standard-4 0.252"]);
    assert_eq!(found(&["--max-price", "0.71", "--on-demand"]), ["gcp g2-standard-4 0.706824"]);
    assert_eq!(
        found(&["--count", "8", "--gpu", "H100"]),
        ["lambda gpu_8x_h100_sxm5 23.92", "gcp a3-highgpu-8g 85.136"]
    );
    assert_eq!(found(&["--gpu-memory", "90"]), ["lambda gpu_1x_gh200 1.49"]);
    let nothing = market.ask(&["offers", "--gpu", "H100", "--max-price", "1"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert!(
        nothing.err.contains("2 above the highest price allowed, the cheapest at $23.92 an hour"),
        "{}",
        nothing.err
    );
}

#[test]
fn one_that_fails_does_not_hide_the_others() {
    let market = Market::open(&["lambda", "gcp"]);
    market.servers["lambda"].0.trouble(Operation::Offers, Trouble::Html(503));
    let told = market.ask(&["offers"]);
    assert_eq!(told.code, 0);
    assert!(told.out.contains("g2-standard-4"), "{}", told.out);
    assert!(
        told.err.contains("lambda: lambda did not read the offers, because it cannot at the moment"),
        "{}",
        told.err
    );
}

#[test]
fn a_check_says_who_is_well() {
    let market = Market::open(&["lambda", "gcp"]);
    let well = market.ask(&["clouds", "check"]);
    assert_eq!(well.code, 0, "{}", well.err);
    assert!(well.out.contains("GPUS_ALL_REGIONS: 1 of 8 used"), "{}", well.out);
    market.servers["gcp"].0.trouble(None, Trouble::Refuse(Refused::Unauthorized));
    let ill = market.ask(&["clouds", "check"]);
    assert_eq!(ill.code, 1);
    assert!(ill.out.contains("the credential is not accepted"), "{}", ill.out);
    let words = |cloud: &str| {
        let line = ill.out.lines().find(|line| line.starts_with(cloud)).unwrap();
        line.split_whitespace().skip(1).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((words("gcp"), words("lambda")), (vec!["yes".into(), "NO".into()], vec!["yes".into(), "yes".into()]));
}

#[test]
fn credentials_come_from_a_file_too() {
    let market = Market::open(&[]);
    let file = market.home.path().join("keys.yaml");
    std::fs::write(&file, "lambda: a-key\ngcp: {project_id: p, access_token: t}\n").unwrap();
    let listed = market.json(&["clouds", "--credentials", file.to_str().unwrap()]);
    let source = |name: &str| {
        let one = listed.as_array().unwrap().iter().find(|one| one["cloud"] == name).unwrap();
        one["credential"].as_str().unwrap().to_owned()
    };
    assert_eq!((source("lambda"), source("gcp"), source("vultr")), ("file".into(), "file".into(), "none".into()));
    std::fs::write(&file, "my-secret-key-without-a-cloud").unwrap();
    let told = market.ask(&["clouds", "--credentials", file.to_str().unwrap()]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("it is no YAML map of clouds") && !told.err.contains("my-secret"), "{}", told.err);
}
