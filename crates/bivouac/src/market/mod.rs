// SPDX-License-Identifier: Apache-2.0
//! What is for sale, and who sells it: `bivouac offers` and `bivouac clouds`.

mod ask;
mod cache;
mod class;
mod clouds;
mod offers;
pub mod options;

use std::process::ExitCode;

use anyhow::Result;
use options::{CloudsOptions, CloudsVerb, OffersOptions};

pub fn offers(options: &OffersOptions) -> Result<ExitCode> {
    runtime()?.block_on(offers::run(options))
}

pub fn clouds(options: &CloudsOptions) -> Result<ExitCode> {
    match &options.verb {
        Some(CloudsVerb::Check(show)) => runtime()?.block_on(clouds::check(show)),
        None => runtime()?.block_on(clouds::list(&options.show)),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
