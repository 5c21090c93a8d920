// SPDX-License-Identifier: Apache-2.0
//! How often a cloud may be asked: our own share, and what the cloud says about it.
//!
//! A budget belongs to a credential, and everything in the process that uses the credential shares it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Operation;
use crate::wire::Reply;

/// How often a cloud lets itself be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rates {
    /// One question in so many milliseconds, in the long run.
    pub every_ms: u64,
    /// So many at once.
    pub burst: u32,
    /// One launch in so many milliseconds.
    #[serde(default)]
    pub launch_every_ms: u64,
}

#[derive(Debug)]
pub struct Budget {
    rates: Rates,
    state: Mutex<State>,
}

/// Moments at which the next question could be asked if all were spaced evenly; a burst may run ahead of it.
#[derive(Debug, Default)]
struct State {
    next: Option<Instant>,
    next_launch: Option<Instant>,
    /// The cloud wants to be left alone until then.
    closed_until: Option<Instant>,
}

/// How long a cloud is left alone that says "too often" and not for how long.
pub const WITHOUT_WORD: Duration = Duration::from_secs(5);
/// Nobody is believed who wants more.
const LONGEST: Duration = Duration::from_secs(3600);

/// The budgets of all credentials of a process.
#[derive(Clone, Debug, Default)]
pub struct Budgets(Arc<Mutex<ByCredential>>);

/// By cloud and fingerprint.
type ByCredential = BTreeMap<(&'static str, String), Arc<Budget>>;

// === impl Budgets ===

impl Budgets {
    pub fn of(&self, cloud: &'static str, credential: &str, rates: Rates) -> Arc<Budget> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((cloud, credential.to_owned())).or_insert_with(|| Arc::new(Budget::new(rates))).clone()
    }
}

// === impl Budget ===

impl Budget {
    pub fn new(rates: Rates) -> Self {
        Self { rates, state: Mutex::default() }
    }

    /// Waits until it is our turn. If that is not within `within`, says how long it would be, and nothing is used.
    pub async fn take(&self, operation: Operation, within: Duration) -> Result<(), Duration> {
        let now = Instant::now();
        let turn = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = state.turn(&self.rates, operation, now);
            let wait = turn.saturating_duration_since(now);
            if wait > within {
                return Err(wait);
            }
            state.use_up(&self.rates, operation, turn);
            turn
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }

    /// Reads what the answer says about the next question.
    pub fn learn(&self, reply: &Reply) {
        if let Some(pause) = pause(reply) {
            self.rest(pause);
        }
    }

    /// Leaves the cloud alone for a while.
    pub fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause.min(LONGEST);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed_until = state.closed_until.max(Some(until));
    }
}

// === impl State ===

impl State {
    fn turn(&self, rates: &Rates, operation: Operation, now: Instant) -> Instant {
        let burst = Duration::from_millis(rates.every_ms) * rates.burst.saturating_sub(1);
        let paced = self.next.and_then(|next| next.checked_sub(burst));
        let launch = self.next_launch.filter(|_| operation.spends());
        [paced, launch, self.closed_until].into_iter().flatten().fold(now, Instant::max)
    }

    fn use_up(&mut self, rates: &Rates, operation: Operation, turn: Instant) {
        self.next = Some(self.next.map_or(turn, |next| next.max(turn)) + Duration::from_millis(rates.every_ms));
        if operation.spends() {
            self.next_launch = Some(turn + Duration::from_millis(rates.launch_every_ms));
        }
    }
}

/// How long the cloud wants to be left alone, if it says so in any of the ways that clouds have.
pub fn pause(reply: &Reply) -> Option<Duration> {
    let seconds = |text: &str| text.trim().parse().ok().map(Duration::from_secs);
    let refused = reply.status == http::StatusCode::TOO_MANY_REQUESTS;
    let retry_after = reply.header("retry-after").filter(|_| !reply.status.is_success());
    if let Some(wait) = retry_after.and_then(|text| seconds(text).or_else(|| until_date(text, reply))) {
        return Some(wait);
    }
    let windows = reply.header("ratelimit").and_then(empty_window);
    let plain = reply.header("ratelimit-remaining").filter(|left| left.trim() == "0").and_then(|_| reset(reply));
    windows.or(plain).or(refused.then_some(WITHOUT_WORD))
}

/// `"minute";r=0;t=12, "hour";r=100;t=900`: the longest pause of the windows that are used up.
fn empty_window(header: &str) -> Option<Duration> {
    let windows = header.split(',').filter_map(|window| {
        let value = |name: &str| window.split(';').find_map(|part| part.trim().strip_prefix(name)?.parse::<u64>().ok());
        (value("r=")? == 0).then_some(Duration::from_secs(value("t=")?))
    });
    windows.max()
}

/// Some send the moment in seconds since 1970, others how many seconds are left.
fn reset(reply: &Reply) -> Option<Duration> {
    let number: i64 = reply.header("ratelimit-reset")?.trim().parse().ok()?;
    let left = if number > 1_000_000_000 { number - date(reply)?.as_second() } else { number };
    u64::try_from(left).ok().map(Duration::from_secs)
}

/// A date is measured by the cloud's own clock, so that ours may be wrong.
fn until_date(text: &str, reply: &Reply) -> Option<Duration> {
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(until.duration_since(date(reply)?)).ok()
}

fn date(reply: &Reply) -> Option<jiff::Timestamp> {
    Some(jiff::fmt::rfc2822::parse(reply.header("date")?).ok()?.timestamp())
}
