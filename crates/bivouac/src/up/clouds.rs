// SPDX-License-Identifier: Apache-2.0
//! Three clouds that sell GPUs and take no money. They speak the wire formats of real ones, on ports of this machine, and
//! sell at the prices that come with the program.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, bail};
use bivouac_clouds::{Credentials, Entry, Secret, fake::Server, find};
use bivouac_market::table;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::data_dir::{CLOUDS, DataDir, Holder};
use crate::cli::PlaceOptions;

pub const SIMULATED: [&str; 3] = ["lambda", "runpod", "verda"];

/// They answer until this is dropped.
pub struct Clouds(Vec<AbortHandle>);

/// Opens them, and writes down where they are and what lets one in.
pub async fn open(dir: &DataDir) -> Result<Clouds> {
    let (mut clouds, mut known) = (Clouds(Vec::new()), BTreeMap::new());
    for name in SIMULATED {
        let entry = find(name).with_context(|| format!("there is no cloud {name}"))?;
        let credentials = credentials(entry);
        let (address, task) = shop(entry, &credentials)?.listen().await?;
        clouds.0.push(task.abort_handle());
        known.insert(name, written(entry, &credentials, &format!("http://{address}{}", entry.path())));
    }
    dir.write(CLOUDS, &known)?;
    Ok(clouds)
}

impl Drop for Clouds {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// A new key at every start: it opens nothing else.
fn credentials(entry: &Entry) -> Credentials {
    Credentials::of(entry.fields.iter().map(|field| (*field, Secret::new(format!("{:032x}", rand::random::<u128>())))))
}

fn shop(entry: &Entry, credentials: &Credentials) -> Result<Server> {
    let server = entry.shop(credentials, &table::read(table::SHIPPED)?)?;
    server.economy(|economy| economy.beginning = Timestamp::now());
    Ok(server)
}

/// As a file of credentials has it.
fn written(entry: &Entry, credentials: &Credentials, url: &str) -> Value {
    let mut value = json!({ "url": url });
    if let Some(map) = value.as_object_mut() {
        let field = |field: &&str| Some(((*field).to_owned(), json!(credentials.get(field)?.reveal())));
        map.extend(entry.fields.iter().filter_map(field));
    }
    value
}

/// The file that tells how to ask them, if they can be asked.
pub fn file() -> Result<PathBuf> {
    let data_dir = std::env::var_os("BIVOUAC_DATA_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let dir = DataDir::of(&PlaceOptions { data_dir })?;
    match dir.holder() {
        Holder::Instance(instance) if instance.ready => Ok(dir.file(CLOUDS)),
        Holder::Nobody => {
            bail!("the simulated clouds belong to `bivouac up`, which does not run in {}", dir.path().display())
        }
        _ => bail!("`bivouac up` is just starting in {}; ask again in a moment", dir.path().display()),
    }
}

#[cfg(test)]
mod tests {
    use bivouac_market::{Gpu, Listing, Row};

    use super::*;

    fn is_told(row: &Row<'_>, offers: &[Listing]) -> bool {
        let chip = |name: &str| Gpu::named(name).chip().to_string();
        offers.iter().any(|offer| {
            (offer.region.as_str(), offer.gpus, offer.on_demand) == (row.region, row.gpus, row.on_demand)
                && chip(&offer.gpu) == chip(row.gpu)
        })
    }

    #[tokio::test]
    async fn each_of_them_sells_what_its_price_list_says() {
        for name in SIMULATED {
            let entry = find(name).unwrap();
            let credentials = credentials(entry);
            let server = shop(entry, &credentials).unwrap();
            let cloud = entry.open(&credentials, &server.line()).unwrap();
            let offers = cloud.offers().await.unwrap();
            let rows = table::read(table::SHIPPED).unwrap();
            let rows: Vec<_> = rows.iter().filter(|row| row.cloud == name && row.on_demand.is_some()).collect();
            let untold: Vec<_> = rows.iter().filter(|row| !is_told(row, &offers)).collect();
            assert!(!rows.is_empty() && untold.is_empty(), "{name}: {untold:#?} of {offers:#?}");
        }
    }
}
