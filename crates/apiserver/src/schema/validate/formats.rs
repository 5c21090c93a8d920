// SPDX-License-Identifier: Apache-2.0
//! The string formats that the real server checks. An unknown format allows everything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "uri" => is_uri(text),
        "mac" => is_mac(text),
        "duration" => is_duration(text),
        "k8s-short-name" => crate::names::label(text).is_empty(),
        "k8s-long-name" => crate::names::subdomain(text).is_empty(),
        _ => true,
    }
}

/// An address and the length of the part of it that counts.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}

/// With or without dashes, as the real server's pattern allows.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    plain.len() == 32
        && plain.chars().all(|c| c.is_ascii_hexdigit())
        && version.is_none_or(|version| plain.chars().nth(12) == Some(version))
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(user, host)| {
        !user.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace) && !user.contains('@')
    })
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    text.len() <= 255 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_uri(text: &str) -> bool {
    text.starts_with('/') || text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some())
}

fn is_mac(text: &str) -> bool {
    let by = if text.contains('-') { '-' } else { ':' };
    let parts: Vec<&str> = text.split(by).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts.iter().all(|part| part.len() == 2 && u8::from_str_radix(part, 16).is_ok())
}

/// Go durations (`1h30m`), and words like `3 days`.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, after) = rest.split_at(digits);
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|unit| after.starts_with(unit))
            .max_by_key(|unit| unit.len());
        match unit {
            Some(unit) if number.parse::<f64>().is_ok() => rest = after.get(unit.len()..).unwrap_or_default(),
            _ => return false,
        }
        parts += 1;
    }
    parts > 0
}

fn is_worded_duration(text: &str) -> bool {
    const UNITS: [&str; 19] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "second", "m", "min", "minute", "h", "hr",
        "hour", "d", "day", "week",
    ];
    let mut rest = text.trim();
    let mut parts = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len());
        let after = after.trim_start();
        let (unit, left) = after.split_at(after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len()));
        if number.is_empty() || !UNITS.contains(&unit.strip_suffix('s').filter(|unit| !unit.is_empty()).unwrap_or(unit))
        {
            return false;
        }
        rest = left.trim_start();
        parts += 1;
    }
    parts > 0
}
