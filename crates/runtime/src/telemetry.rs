// SPDX-License-Identifier: Apache-2.0
//! Logs, for people or for machines.

use tracing_subscriber::{EnvFilter, fmt};

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Installs the process's logger on standard error. `filter` has the syntax of `RUST_LOG`.
pub fn start(format: LogFormat, filter: &str) -> Result<(), String> {
    let filter =
        EnvFilter::try_new(filter).map_err(|error| format!("the log filter {filter:?} is not valid: {error}"))?;
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let installed = match format {
        LogFormat::Text => builder.with_ansi(wants_colour()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
    };
    installed.map_err(|error| format!("the log cannot be started: {error}"))
}

fn wants_colour() -> bool {
    use std::io::IsTerminal;
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stderr().is_terminal()
}
