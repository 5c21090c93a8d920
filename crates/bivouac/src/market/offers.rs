// SPDX-License-Identifier: Apache-2.0
//! `bivouac offers`: what can be bought now, cheapest first.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context, Result};
use bivouac_clouds::Credentials;
use bivouac_market::offer::thousandths;
use bivouac_market::{
    Allowed, Area, Least, Listing, Market, Offer, OwnPrices, Reading, Requirements, Spot, Survey, View, Wish, labels,
    table as csv,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::ask::{self, Known};
use super::cache::Cache;
use super::options::{AskOptions, OffersOptions, Output};
use crate::print;
use crate::table::{table, terminal};

/// What was read, and from whom.
struct Read {
    market: Market,
    /// When each list was read, or why it was not.
    lists: BTreeMap<String, Result<Timestamp, String>>,
    /// Nobody was asked: the prices are those that come with the program.
    shipped: bool,
    /// Lines of the person's own price list that name nothing which is for sale.
    unused: usize,
}

pub async fn run(options: &OffersOptions) -> Result<ExitCode> {
    let now = Timestamp::now();
    let known = ask::known(&options.ask).await?;
    let own = own_prices(options)?;
    let read = match known.as_slice() {
        [] => from_table(&options.ask, &own, now)?,
        known => from_clouds(known, &options.ask, &own, now).await?,
    };
    let view = read.market.view();
    let survey = view.survey(&wish(options, &view), now);
    match options.output {
        Output::Json => print::say(&(serde_json::to_string_pretty(&document(options, &view, &survey, &read))? + "\n"))?,
        Output::Yaml => print::say(&serde_saphyr::to_string(&document(options, &view, &survey, &read))?)?,
        Output::Table => {
            print::say(&rows(options, &view, &survey))?;
            if !options.ask.quiet {
                eprint!("{}", footer(options, &survey, &read, now));
            }
        }
    }
    let all_failed = read.lists.values().all(Result::is_err);
    Ok(if all_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn reading(read_at: Timestamp) -> Reading {
    // The person sees how old it is.
    Reading { read_at, good_for: SignedDuration::from_hours(24 * 365) }
}

fn own_prices(options: &OffersOptions) -> Result<OwnPrices> {
    let Some(path) = &options.prices else { return Ok(OwnPrices::default()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let own = OwnPrices::read(&text).with_context(|| format!("{} is no price list", path.display()))?;
    own.with_names(|name| ask::find(name).map(|entry| entry.name)).with_context(|| path.display().to_string())
}

/// Without any credential: the prices that come along.
fn from_table(options: &AskOptions, own: &OwnPrices, now: Timestamp) -> Result<Read> {
    let meant: BTreeSet<&str> = ask::meant(options)?.iter().map(|entry| entry.name).collect();
    let mut lists: BTreeMap<&str, Vec<Listing>> = BTreeMap::new();
    for row in csv::read(csv::SHIPPED)?.into_iter().filter(|row| options.cloud.is_empty() || meant.contains(row.cloud))
    {
        lists.entry(row.cloud).or_default().push(row.into());
    }
    let market = Market::default();
    let day = format!("{}T00:00:00Z", csv::SHIPPED_OF).parse().unwrap_or(now);
    let names = lists.keys().map(|cloud| ((*cloud).to_owned(), Ok(day))).collect();
    let mut unused = 0;
    for (cloud, mut listings) in lists {
        unused += own.correct(cloud, &mut listings);
        market.list(cloud, listings, reading(now));
    }
    Ok(Read { market, lists: names, shipped: true, unused })
}

/// Those that were asked a moment ago are not asked again.
async fn from_clouds(known: &[Known], options: &AskOptions, own: &OwnPrices, now: Timestamp) -> Result<Read> {
    let mut cache = Cache::open();
    let fingerprint = |one: &Known| one.credentials.as_ref().map(Credentials::fingerprint).unwrap_or_default();
    let key = |one: &Known| format!("{}/{}", one.entry.name, fingerprint(one));
    let (market, mut lists, mut unused) = (Market::default(), BTreeMap::new(), 0);
    let mut take = |cloud: &str, mut listings: Vec<Listing>, at| {
        unused += own.correct(cloud, &mut listings);
        market.list(cloud, listings, reading(at));
    };
    let mut ask = Vec::new();
    for one in known {
        match cache.fresh(&key(one), now).filter(|_| !options.refresh) {
            Some(kept) => {
                take(one.entry.name, kept.listings(), kept.read_at);
                lists.insert(one.entry.name.to_owned(), Ok(kept.read_at));
            }
            None => ask.push(one),
        }
    }
    let ask: Vec<Known> = ask.into_iter().cloned().collect();
    let words = |offers: &Vec<Listing>| format!("{} offers", offers.len());
    let answers = ask::all(&ask, options.quiet, async |cloud| cloud.offers().await, words).await?;
    for one in &ask {
        let Some(answer) = answers.get(one.entry.name) else { continue };
        let told = answer.as_ref().map(|listings| {
            cache.keep(key(one), listings, now);
            take(one.entry.name, listings.clone(), now);
            now
        });
        lists.insert(one.entry.name.to_owned(), told.map_err(|failed| failed.says.clone()));
    }
    if !ask.is_empty() {
        cache.save();
    }
    Ok(Read { market, lists, shipped: false, unused })
}

fn wish(options: &OffersOptions, view: &View) -> Wish {
    let mut requirements = Requirements::default();
    if !options.gpu.is_empty() {
        requirements.add(labels::GPU_TYPE, Allowed::only(options.gpu.clone()));
    }
    if let Some(count) = options.count {
        requirements.add(labels::GPU_COUNT, Allowed::only([count.to_string()]));
    }
    if let Some(region) = &options.region {
        let meant = |offer: &Offer<'_>| Area::is_meant(offer.region, region) || Area::is_meant(offer.zone, region);
        let regions: BTreeSet<String> = view.catalogue.iter().filter(meant).map(|one| one.region.to_owned()).collect();
        requirements.add(labels::REGION, Allowed::only(regions));
    }
    let spot = match (options.spot, options.on_demand) {
        (true, _) => Spot::Only,
        (_, true) => Spot::Never,
        _ => Spot::Allowed,
    };
    let least = Least { gpus: 1, gpu_memory_gib: options.gpu_memory.unwrap_or_default(), ..Least::default() };
    Wish { requirements, least, max_price: options.max_price, spot, ..Wish::default() }
}

fn shown<'a>(options: &OffersOptions, view: &'a View, survey: &Survey) -> Vec<Offer<'a>> {
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    survey.open.iter().take(limit).filter_map(|choice| view.catalogue.get(choice.offer)).collect()
}

fn rows(options: &OffersOptions, view: &View, survey: &Survey) -> String {
    let offers = shown(options, view, survey);
    if offers.is_empty() {
        return String::new();
    }
    let row = |offer: &Offer<'_>| {
        let place = if offer.zone.is_empty() { offer.region } else { offer.zone };
        let gpu = offer.gpu.map(ToString::to_string).unwrap_or_default();
        let memory = offer.gpu_memory_gib.filter(|_| !gpu.contains("GB"));
        let memory = memory.map(|memory| format!(" {memory}GB")).unwrap_or_default();
        [
            offer.cloud.to_owned(),
            place.to_owned(),
            offer.machine.to_owned(),
            format!("{}x {gpu}{memory}", thousandths(offer.gpus)),
            format!("${}", offer.price),
            per_gpu(offer).map(|price| format!("${price}")).unwrap_or_default(),
            offer.capacity.to_string(),
        ]
    };
    let rows: Vec<_> = offers.iter().map(row).collect();
    table(["CLOUD", "PLACE", "MACHINE", "GPUS", "AN HOUR", "PER GPU", "CAPACITY"], &rows, &[4, 5], terminal())
}

fn per_gpu(offer: &Offer<'_>) -> Option<bivouac_core::Money> {
    let micros = offer.price.micros().checked_mul(1000)?.checked_div(offer.gpus.into())?;
    // Prices per GPU are for comparing: a tenth of a cent is fine enough.
    Some(bivouac_core::Money::from_micros(micros / 1000 * 1000))
}

fn footer(options: &OffersOptions, survey: &Survey, read: &Read, now: Timestamp) -> String {
    let mut text = String::new();
    let count = survey.open.len();
    let limit = if options.limit == 0 { count } else { options.limit.min(count) };
    match (survey.open.first(), survey.open.last()) {
        (Some(least), Some(most)) => {
            text += &format!("\nShown {limit} of {count} offers, ${} to ${} an hour.\n", least.price, most.price);
        }
        _ => text += &format!("Nothing to show: {survey}.\n"),
    }
    if count > 0 {
        for (flaw, number) in &survey.flawed {
            text += &format!("Left out: {number}, because {}.\n", flaw.in_words());
        }
    }
    for (cloud, list) in &read.lists {
        match list {
            Err(why) => text += &format!("{cloud}: {why}\n"),
            Ok(at) if !read.shipped && now.duration_since(*at).as_secs() > 0 => {
                text +=
                    &format!("{cloud} was asked {} s ago; --refresh asks again.\n", now.duration_since(*at).as_secs());
            }
            Ok(_) => {}
        }
    }
    if let (Some(path), 1..) = (&options.prices, read.unused) {
        text += &format!("{} of the prices in {} name nothing that is for sale.\n", read.unused, path.display());
    }
    if options.ask.simulated {
        text += "These are the simulated clouds of `bivouac up`: nothing here costs money.\n";
    }
    if read.shipped {
        text += &format!(
            "No cloud was asked: these are prices of {} that come with bivouac. Set a variable like BIVOUAC_LAMBDA_KEY, or \
             --credentials FILE; `bivouac clouds` has the names.\n",
            csv::SHIPPED_OF
        );
    }
    text
}

fn document(options: &OffersOptions, view: &View, survey: &Survey, read: &Read) -> Value {
    let offer = |offer: &Offer<'_>| {
        json!({
            "cloud": offer.cloud,
            "region": offer.region,
            "zone": offer.zone,
            "machine": offer.machine,
            "gpu": offer.gpu.map(ToString::to_string),
            "gpus": f64::from(offer.gpus) / 1000.0,
            "gpuMemoryGib": offer.gpu_memory_gib,
            "vcpus": f64::from(offer.vcpus) / 1000.0,
            "memoryMib": offer.memory_mib,
            "arch": offer.arch.name(),
            "capacity": offer.capacity.name(),
            "pricePerHour": offer.price,
        })
    };
    let list = |(cloud, list): (&String, &Result<Timestamp, String>)| match list {
        Ok(at) => json!({ "cloud": cloud, "readAt": at.to_string() }),
        Err(why) => json!({ "cloud": cloud, "error": why }),
    };
    let left_out: BTreeMap<String, usize> =
        survey.flawed.iter().map(|(flaw, number)| (flaw.in_words().to_owned(), *number)).collect();
    json!({
        "offers": shown(options, view, survey).iter().map(offer).collect::<Vec<_>>(),
        "of": survey.open.len(),
        "leftOut": left_out,
        "overMaxPrice": survey.over_price,
        "unusedPrices": read.unused,
        "snapshot": survey.snapshot.to_string(),
        "source": if read.shipped { csv::SHIPPED_OF } else { "clouds" },
        "clouds": read.lists.iter().map(list).collect::<Vec<_>>(),
    })
}
