// SPDX-License-Identifier: Apache-2.0
//! Cron jobs and their schedules.

use serde_json::Value;

use super::{jobs, labels, place::Place};
use crate::{field::Error, object::Object};

/// A job's name is that of the cron job and the time: this much is left for the former.
const LONGEST_NAME: usize = 52;

pub fn check(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let schedule = spec.field("schedule");
    if schedule.must_be(&mut errors) {
        if schedule.text().contains("TZ") {
            errors.push(schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
        } else if let Err(why) = parse(schedule.text()) {
            errors.push(schedule.invalid(why));
        }
    }
    for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.field(field).not_negative(&mut errors);
    }
    let zone = spec.field("timeZone");
    if zone.exists()
        && let Some(why) = zone_problem(zone.text())
    {
        errors.push(zone.invalid(why));
    }
    spec.field("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], &mut errors);
    let template = spec.field("jobTemplate");
    let metadata = template.field("metadata");
    labels::map(&metadata.field("labels"), &mut errors);
    let job = template.field("spec");
    jobs::check_spec(&job, &mut errors);
    if job.field("manualSelector").flag() {
        errors.push(job.field("manualSelector").not_supported(&["nil", "false"]));
    }
    errors
}

pub fn check_create(object: &Value) -> Vec<Error> {
    if object.name().len() > LONGEST_NAME {
        let why = format!("must be no more than {LONGEST_NAME} characters");
        return vec![Error::invalid("metadata.name", object.name(), why)];
    }
    Vec::new()
}

fn zone_problem(zone: &str) -> Option<String> {
    if zone.is_empty() {
        return Some("timeZone must be nil or non-empty string".to_owned());
    }
    if zone.eq_ignore_ascii_case("local") {
        return Some("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned());
    }
    jiff::tz::TimeZone::get(zone).is_err().then(|| format!("unknown time zone {zone}"))
}

/// Minute, hour, day, month, weekday: the bounds of each, and the names that stand for numbers.
const FIELDS: [(i64, i64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Whether a schedule can be read.
fn parse(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let parts: Vec<&str> = schedule.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    for (part, (least, most, names)) in parts.iter().zip(FIELDS) {
        for range in part.split(',').filter(|range| !range.is_empty()) {
            check_range(range, least, most, names)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    const KNOWN: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if KNOWN.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(span) if span.parse::<jiff::SignedDuration>().is_ok() => Ok(()),
        Some(span) => Err(format!("failed to parse duration {text}: time: invalid duration {span:?}")),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn check_range(range: &str, least: i64, most: i64, names: &[&str]) -> Result<(), String> {
    let mut steps = range.split('/');
    let ends: Vec<&str> = steps.next().unwrap_or_default().split('-').collect();
    let first = ends.first().copied().unwrap_or_default();
    let (from, mut to) = match ends.as_slice() {
        ["*" | "?"] => (least, most),
        [_] => (number(first, names)?, number(first, names)?),
        [_, last] => (number(first, names)?, number(last, names)?),
        _ => return Err(format!("too many hyphens: {range}")),
    };
    let step = match (steps.next(), steps.next()) {
        (None, _) => 1,
        (Some(step), None) => {
            if ends.len() == 1 {
                to = most;
            }
            number(step, &[])?
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    if from < least {
        return Err(format!("beginning of range ({from}) below minimum ({least}): {range}"));
    }
    if to > most {
        return Err(format!("end of range ({to}) above maximum ({most}): {range}"));
    }
    if from > to {
        return Err(format!("beginning of range ({from}) beyond end of range ({to}): {range}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number(text: &str, names: &[&str]) -> Result<i64, String> {
    if let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        let first = i64::from(names.len() == 12);
        return Ok(first + i64::try_from(index).unwrap_or_default());
    }
    let value: i64 = text
        .parse()
        .map_err(|_| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))?;
    if value < 0 { Err(format!("negative number ({value}) not allowed: {text}")) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read() {
        for good in ["* * * * *", "*/5 1-3 1,15 jan-mar MON", "@daily", "@every 1h30m", "0 0 ? * 0"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(parse(bad), Err(why.to_owned()), "{bad}");
        }
    }
}
