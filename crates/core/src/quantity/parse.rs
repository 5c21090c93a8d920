// SPDX-License-Identifier: Apache-2.0
//! From text to billionths, without a float and without losing a digit.

use super::{BINARY, BINARY_MAX, DECIMAL, Format, NANOS, QuantityError};

/// More fraction digits than this cannot change how a binary amount rounds.
const FRACTION_DIGITS: usize = 36;

enum Unit {
    Ten { power: i64, format: Format },
    Two { power: i32 },
}

/// The amount without its sign, in billionths; a part of a billionth counts as one more.
pub(super) fn magnitude(text: &str) -> Result<(i128, Format), QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (number, suffix) = unsigned.split_at(unsigned.len() - number.len());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(QuantityError::NoNumber(text.into()));
    }
    let no_unit = || QuantityError::Suffix { text: text.into(), suffix: suffix.into() };
    match unit(suffix).ok_or_else(no_unit)? {
        Unit::Ten { power, format } => {
            let nanos = decimal(whole, fraction, power).ok_or_else(|| QuantityError::TooLarge(text.into()))?;
            Ok((nanos, format))
        }
        Unit::Two { power } => {
            let nanos = binary(whole, fraction, power).unwrap_or(BINARY_MAX);
            Ok((nanos.min(BINARY_MAX), Format::Binary))
        }
    }
}

fn unit(suffix: &str) -> Option<Unit> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Ten { power: i64::from(*power), format: Format::Decimal });
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Two { power: *power });
    }
    // "1E" is an exa, found above; "1E3" is an exponent.
    let power = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some(Unit::Ten { power, format: Format::Exponent })
}

/// A whole number of so few digits that billionths of it fit easily. Most amounts are that, and pods are full of them.
fn small(whole: &str, fraction: &str) -> Option<i128> {
    let few = fraction.is_empty() && (1..=15).contains(&whole.len());
    if few { whole.parse::<u64>().ok().map(i128::from) } else { None }
}

/// Moves the point `power + 9` places to the right; `None` when that does not fit.
fn decimal(whole: &str, fraction: &str, power: i64) -> Option<i128> {
    if let (Some(number), Ok(places @ 0..=18)) = (small(whole, fraction), u32::try_from(power.saturating_add(9))) {
        return Some(number * 10i128.pow(places));
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let leading_zeros = digits.len() - significant.len();
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading_zeros).ok()?;
    let Ok(point) = usize::try_from(point.saturating_add(power).saturating_add(9)) else {
        return Some(1);
    };
    if point > 39 {
        return None;
    }
    let (kept, dropped) = significant.split_at(point.min(significant.len()));
    let nanos: i128 = format!("0{kept:0<point$}").parse().ok()?;
    nanos.checked_add(i128::from(dropped.contains(|c| c != '0')))
}

/// Doubles `power` times, carrying from the fraction into the whole; `None` when that does not fit.
fn binary(whole: &str, fraction: &str, power: i32) -> Option<i128> {
    if let (Some(number), 0..=40) = (small(whole, fraction), power) {
        return Some((number << power) * NANOS);
    }
    let (fraction, dropped) = fraction.split_at(fraction.len().min(FRACTION_DIGITS));
    let one = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let mut part: i128 = format!("0{fraction}").parse().ok()?;
    let mut units: i128 = format!("0{whole}").parse().ok()?;
    for _ in 0..power {
        part *= 2;
        units = units.checked_mul(2)?.checked_add(part / one)?;
        part %= one;
    }
    let mut nanos = units.checked_mul(NANOS)?;
    for place in (0..9u32).rev() {
        part *= 10;
        nanos = nanos.checked_add(part / one * 10i128.pow(place))?;
        part %= one;
    }
    nanos.checked_add(i128::from(part != 0 || dropped.contains(|c| c != '0')))
}
