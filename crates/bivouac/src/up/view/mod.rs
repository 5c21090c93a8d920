// SPDX-License-Identifier: Apache-2.0
//! How a person sees it: a calm picture in a terminal, lines elsewhere, or nothing.

mod draw;
mod plain;
mod screen;

pub use plain::NO_KUBECTL;

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::scene::Scene;

/// Changes come in bursts; one picture shows them all.
const CALM: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Screen { colour: bool },
    Lines,
    Silent,
}

impl Way {
    pub fn of(quiet: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        match quiet {
            true => Self::Silent,
            false if terminal && set("TERM").is_some_and(|term| term != "dumb") => {
                Self::Screen { colour: set("NO_COLOR").is_none() }
            }
            false => Self::Lines,
        }
    }
}

/// Shows the scene until the stop; a user who wants the end stops everything. Gives the time of the first picture.
pub async fn show(scene: watch::Receiver<Scene>, way: Way, began: Instant, stop: CancellationToken) -> Duration {
    let shown = match way {
        Way::Screen { colour } => screen::show(scene.clone(), colour, began, &stop).await,
        Way::Lines => Ok(plain::show(scene.clone(), began, &stop).await),
        Way::Silent => return silent(scene, began, &stop).await,
    };
    match shown {
        Ok(first) => first,
        // A terminal that cannot draw can still print.
        Err(error) => {
            tracing::warn!(%error, "the live view ended");
            plain::show(scene, began, &stop).await
        }
    }
}

/// Says only what is wrong.
async fn silent(mut scene: watch::Receiver<Scene>, began: Instant, stop: &CancellationToken) -> Duration {
    let trouble = async { scene.wait_for(|scene| scene.trouble.is_some()).await.ok()?.trouble.clone() };
    if let Some(Some(trouble)) = stop.run_until_cancelled(trouble).await {
        eprintln!("bivouac: {trouble}");
        stop.cancelled().await;
    }
    began.elapsed()
}
