// SPDX-License-Identifier: Apache-2.0
//! How often a cloud is asked.

use std::time::Duration;

use bivouac_clouds::Operation;
use bivouac_clouds::budget::{Budget, Budgets, Rates, pause};
use bivouac_clouds::wire::Reply;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use tokio::time::Instant;

const RATES: Rates = Rates { every_ms: 1000, burst: 3, launch_every_ms: 12_000 };
const PATIENCE: Duration = Duration::from_secs(60);

fn reply(status: u16, headers: &[(&str, &str)]) -> Reply {
    let pair = |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    let headers: HeaderMap = headers.iter().map(pair).collect();
    Reply { status: StatusCode::from_u16(status).unwrap(), headers, body: Bytes::new() }
}

#[tokio::test(start_paused = true)]
async fn a_burst_and_then_one_at_a_time() {
    let (budget, began) = (Budget::new(RATES), Instant::now());
    let mut times = Vec::new();
    for _ in 0..6 {
        budget.take(Operation::List, PATIENCE).await.unwrap();
        times.push(began.elapsed().as_secs());
    }
    assert_eq!(times, [0, 0, 0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn launches_are_rarer() {
    let (budget, began) = (Budget::new(RATES), Instant::now());
    budget.take(Operation::Launch, PATIENCE).await.unwrap();
    budget.take(Operation::List, PATIENCE).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 0, "a question does not wait for a launch");
    budget.take(Operation::Launch, PATIENCE).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 12);
    let short = budget.take(Operation::Launch, Duration::from_secs(5)).await;
    assert_eq!(short.unwrap_err().as_secs(), 12, "whoever cannot wait is told how long");
    assert_eq!(began.elapsed().as_secs(), 12, "and waits not at all");
}

#[tokio::test(start_paused = true)]
async fn a_closed_cloud_is_left_alone_by_all() {
    let budgets = Budgets::default();
    let (one, same) = (budgets.of("x", "key", RATES), budgets.of("x", "key", RATES));
    let other = budgets.of("x", "another key", RATES);
    one.learn(&reply(429, &[("retry-after", "30")]));
    let began = Instant::now();
    other.take(Operation::List, PATIENCE).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 0, "another account is not meant");
    same.take(Operation::List, PATIENCE).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 30);
    one.learn(&reply(429, &[("retry-after", "3600000")]));
    let wait = same.take(Operation::List, PATIENCE).await.unwrap_err();
    assert_eq!(wait.as_secs(), 3600, "nobody is believed who wants more than an hour");
}

#[test]
fn every_way_to_say_it() {
    let seconds = |status, headers: &[(&str, &str)]| pause(&reply(status, headers)).map(|wait| wait.as_secs());
    let date = ("date", "Sun, 15 Nov 2026 06:00:00 GMT");
    assert_eq!(seconds(200, &[]), None);
    assert_eq!(seconds(429, &[]), Some(5), "no word is a short pause");
    assert_eq!(seconds(429, &[("retry-after", "7")]), Some(7));
    assert_eq!(seconds(503, &[("retry-after", "9")]), Some(9));
    assert_eq!(seconds(429, &[date, ("retry-after", "Sun, 15 Nov 2026 06:00:40 GMT")]), Some(40));
    assert_eq!(seconds(429, &[("retry-after", "soon")]), Some(5));
    let windows = "\"minute\";r=0;t=12, \"hour\";r=2000;t=900, \"day\";r=0;t=20";
    assert_eq!(seconds(200, &[("ratelimit", windows)]), Some(20), "the longest of those that are used up");
    assert_eq!(seconds(200, &[("ratelimit", "\"minute\";r=1;t=12")]), None);
    assert_eq!(seconds(200, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "33")]), Some(33));
    assert_eq!(seconds(200, &[date, ("ratelimit-remaining", "0"), ("ratelimit-reset", "1794722460")]), Some(60));
    assert_eq!(seconds(200, &[("ratelimit-remaining", "1"), ("ratelimit-reset", "33")]), None);
}
