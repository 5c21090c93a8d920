// SPDX-License-Identifier: Apache-2.0
//! A price list as a file: comma-separated, ten columns, the names of the columns in the first line.
//!
//! `cloud,region,zone,machine_type,gpu,gpu_count,vcpus,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour`

use bivouac_core::MoneyError;

use crate::offer::Row;

pub const HEADER: &str =
    "cloud,region,zone,machine_type,gpu,gpu_count,vcpus,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour";
const COLUMNS: usize = 10;

/// A small price list that comes with the program, for whoever has no credential yet.
pub const SHIPPED: &str = include_str!("prices.csv");
/// The day of its prices.
pub const SHIPPED_OF: &str = "2026-08-22";

/// Why a file is no price list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    #[error("the first line must be {HEADER}")]
    Header,
    #[error("line {line}: {found} columns where {COLUMNS} must be")]
    Columns { line: usize, found: usize },
    #[error("line {line}: a quote is not closed, or stands within quotes")]
    Quote { line: usize },
    #[error("line {line}: {column} is {found:?}, which is no number")]
    Number { line: usize, column: &'static str, found: String },
    #[error("line {line}: {error}")]
    Price { line: usize, error: MoneyError },
}

/// Reads a whole file. The rows point into it.
pub fn read(text: &str) -> Result<Vec<Row<'_>>, TableError> {
    let mut lines = text.lines().zip(1..);
    if lines.next().is_none_or(|(header, _)| header.trim_end() != HEADER) {
        return Err(TableError::Header);
    }
    let full = lines.filter(|(line, _)| !line.trim().is_empty());
    full.map(|(line, number)| row(line.trim_end(), number)).collect()
}

fn row(text: &str, line: usize) -> Result<Row<'_>, TableError> {
    let mut cells = [""; COLUMNS];
    let mut found = 0;
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (cell, behind) = split(text).ok_or(TableError::Quote { line })?;
        if let Some(slot) = cells.get_mut(found) {
            *slot = cell;
        }
        (found, rest) = (found + 1, behind);
    }
    if found != COLUMNS {
        return Err(TableError::Columns { line, found });
    }
    let [cloud, region, zone, machine, gpu, gpus, vcpus, memory, on_demand, spot] = cells;
    let number = |column, text: &str| {
        thousandths(text).ok_or_else(|| {
            let found = text.to_owned();
            TableError::Number { line, column, found }
        })
    };
    let money = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error| TableError::Price { line, error }),
    };
    let memory = u64::from(number("memory_gib", memory)?) * 1024 / 1000;
    Ok(Row {
        cloud,
        region,
        zone,
        machine,
        gpu,
        gpus: number("gpu_count", gpus)?,
        vcpus: number("vcpus", vcpus)?,
        memory_mib: u32::try_from(memory).unwrap_or(u32::MAX),
        on_demand: money(on_demand)?,
        spot: money(spot)?,
        ..Row::default()
    })
}

/// The first cell, and what comes behind its comma.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(text.split_once(',').map_or((text, None), |(cell, behind)| (cell, Some(behind))));
    };
    let (cell, behind) = quoted.split_once('"')?;
    match behind.strip_prefix(',') {
        Some(behind) => Some((cell, Some(behind))),
        None => behind.is_empty().then_some((cell, None)),
    }
}

/// `1.5` is 1,500; nothing at all is nothing, and parts of a thousandth are left out.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(rest) {
        return None;
    }
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u32>().ok() };
    number(whole)?.checked_mul(1000)?.checked_add(number(&format!("{rest:0<3.3}"))?)
}

#[cfg(test)]
mod tests {
    use bivouac_core::Money;

    use super::*;

    fn says(lines: &str) -> String {
        read(&format!("{HEADER}\n{lines}\n")).unwrap_err().to_string()
    }

    #[test]
    fn a_line_is_a_row() {
        let text = format!("{HEADER}\r\nvast,\"Paris, FR\",,1x,RTX 4090,0.5,7.25,30.5,0.4,\r\n\n");
        let rows = read(&text).unwrap();
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(
            (row.region, row.gpu, row.gpus, row.vcpus, row.memory_mib),
            ("Paris, FR", "RTX 4090", 500, 7250, 31_232)
        );
        assert_eq!((row.on_demand, row.spot), (Some(Money::from_micros(400_000)), None));
    }

    #[test]
    fn the_list_that_comes_along_is_whole() {
        let rows = read(SHIPPED).unwrap();
        assert!((50..=200).contains(&rows.len()));
        let catalogue = crate::Catalogue::new(&rows);
        assert!(catalogue.iter().all(|offer| offer.flaw.is_none() && offer.gpu.is_some()));
    }

    #[test]
    fn a_bad_line_says_where_and_what() {
        assert_eq!(read("cloud,region\n").unwrap_err(), TableError::Header);
        assert_eq!(says("a,b"), "line 2: 2 columns where 10 must be");
        assert_eq!(says("a,,,m,,,1,1,1,1,1"), "line 2: 11 columns where 10 must be");
        assert_eq!(says("a,\"b,,m,,,1,1,1,"), "line 2: a quote is not closed, or stands within quotes");
        assert_eq!(says("a,\"b\"\"c\",,m,,,1,1,1,"), "line 2: a quote is not closed, or stands within quotes");
        assert_eq!(says("\na,,,m,,,x,1,1,"), "line 3: vcpus is \"x\", which is no number");
        assert_eq!(says("a,,,m,,,1,1,1e3,"), "line 2: \"1e3\" has an exponent; write the amount out, like \"1250.00\"");
        assert!(says("a,,,m,,-1,1,1,1,").contains("gpu_count is \"-1\""));
        assert!(says("a,,,m,,1,99999999,1,1,").contains("vcpus"));
    }
}
