// SPDX-License-Identifier: Apache-2.0
//! Reading what clouds write in different ways: prices, addresses, moments, sizes.

use std::net::IpAddr;

use bivouac_core::Money;
use jiff::Timestamp;
use serde_json::Value;

/// Dollars as a number or a text. What is finer than a millionth is rounded up, for it will be asked for.
pub fn dollars(value: &Value) -> Option<Money> {
    match value {
        Value::Number(number) => exact(&number.to_string()),
        Value::String(text) => exact(text.trim()),
        _ => None,
    }
}

/// Cents as a number or a text.
pub fn cents(value: &Value) -> Option<Money> {
    let money = dollars(value)?;
    Some(Money::from_micros(money.micros().checked_add(99)?.div_euclid(100)))
}

fn exact(text: &str) -> Option<Money> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    if exponent != 0 {
        return shifted(number, exponent);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let (kept, rest) = fraction.split_at_checked(6).unwrap_or((fraction, ""));
    let money: Money = format!("{whole}.{kept}").parse().ok()?;
    let more = i64::from(rest.bytes().any(|digit| digit != b'0') && !money.is_negative());
    rest.bytes().all(|digit| digit.is_ascii_digit()).then(|| Money::from_micros(money.micros().saturating_add(more)))
}

/// `2.5e-3`: some serialisers write small numbers so.
fn shifted(number: &str, exponent: i32) -> Option<Money> {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) || !(-40..=40).contains(&point) {
        return None;
    }
    let text = match usize::try_from(point) {
        Ok(point) if point >= digits.len() => format!("{digits:0<point$}"),
        Ok(0) => format!("0.{digits}"),
        Ok(point) => format!("{}.{}", digits.get(..point)?, digits.get(point..)?),
        Err(_) => format!("0.{}{digits}", "0".repeat(usize::try_from(-point).ok()?)),
    };
    exact(&format!("{sign}{text}"))
}

/// An address that is really one: clouds write `0.0.0.0` while there is none.
pub fn address(text: Option<&str>) -> Option<IpAddr> {
    let address = text?.split('/').next()?.parse::<IpAddr>().ok()?;
    (!address.is_unspecified()).then_some(address)
}

/// RFC 3339, with or without a zone; without one it is UTC.
pub fn moment(text: Option<&str>) -> Option<Timestamp> {
    let text = text?;
    text.parse().ok().or_else(|| format!("{text}Z").parse().ok())
}

/// How many there are, in thousandths, from a number that may have a fraction.
pub fn thousandths(value: &Value) -> Option<u32> {
    let micros = dollars(value)?.micros();
    u32::try_from(micros / 1000).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prices_in_every_spelling() {
        let micros = |value: Value| dollars(&value).map(Money::micros);
        assert_eq!(micros(json!(0.69)), Some(690_000));
        assert_eq!(micros(json!("2.49")), Some(2_490_000));
        assert_eq!(micros(json!(3)), Some(3_000_000));
        assert_eq!(micros(json!(0.0000001)), Some(1), "rounded up");
        assert_eq!(micros(json!(1e-7)), Some(1));
        assert_eq!(micros(json!(2.5e-3)), Some(2_500));
        assert_eq!(micros(json!(1.5e3)), Some(1_500_000_000));
        assert_eq!(micros(json!("1E2")), Some(100_000_000));
        assert_eq!(micros(json!("0.12345649")), Some(123_457));
        assert_eq!(micros(json!(-0.5)), Some(-500_000));
        for bad in [json!(null), json!(""), json!("free"), json!("1e999"), json!([1]), json!("0.1234567x"), json!("e3")]
        {
            assert_eq!(micros(bad.clone()), None, "{bad}");
        }
        assert_eq!(cents(&json!(75)).map(Money::micros), Some(750_000));
        assert_eq!(cents(&json!("0.5")).map(Money::micros), Some(5_000));
    }

    #[test]
    fn addresses_and_moments() {
        assert_eq!(address(Some("0.0.0.0")), None);
        assert_eq!(address(Some("10.0.0.4/32")), "10.0.0.4".parse().ok());
        assert_eq!(address(Some("")), None);
        assert_eq!(moment(Some("2026-11-15T06:00:00")), moment(Some("2026-11-15T06:00:00+00:00")));
        assert!(moment(Some("2026-11-15T06:00:00")).is_some() && moment(Some("yesterday")).is_none());
        assert_eq!(
            (thousandths(&json!(0.25)), thousandths(&json!(8)), thousandths(&json!(-1))),
            (Some(250), Some(8000), None)
        );
    }
}
