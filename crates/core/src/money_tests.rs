// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn money(text: &str) -> Money {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn parses_and_prints() {
    for (text, micros, printed) in [
        ("1.25", 1_250_000, "1.25"),
        ("$1.25", 1_250_000, "1.25"),
        ("-1.25", -1_250_000, "-1.25"),
        ("-$0.5", -500_000, "-0.50"),
        ("0.000001", 1, "0.000001"),
        ("0", 0, "0.00"),
        ("-0", 0, "0.00"),
        ("007", 7_000_000, "7.00"),
        ("2.123400", 2_123_400, "2.1234"),
        ("9223372036854.775807", i64::MAX, "9223372036854.775807"),
        ("-9223372036854.775808", i64::MIN, "-9223372036854.775808"),
    ] {
        assert_eq!(money(text).micros(), micros, "{text}");
        assert_eq!(money(text).to_string(), printed, "{text}");
    }
}

#[test]
fn refuses_with_a_reason() {
    for (text, says) in [
        ("", "is missing"),
        ("$", "is missing"),
        ("-", "is missing"),
        ("1e3", "exponent"),
        ("1.5E3", "exponent"),
        ("e3", "not a digit"),
        ("NaN", "'N' is not a digit"),
        ("inf", "'i' is not a digit"),
        ("1,25", "',' is not a digit"),
        (" 1", "' ' is not a digit"),
        ("+1", "'+' is not a digit"),
        ("--1", "'-' is not a digit"),
        ("1.2.3", "'.' is not a digit"),
        ("١", "is not a digit"),
        (".5", "both sides"),
        ("5.", "both sides"),
        (".", "both sides"),
        ("0.0000001", "more than 6 decimals"),
        ("1.0000000", "more than 6 decimals"),
        ("9223372036854.775808", "more money"),
        ("99999999999999999999999999999999999999999999", "more money"),
    ] {
        let error = text.parse::<Money>().unwrap_err().to_string();
        assert!(error.contains(says), "{text:?} gave {error:?}");
    }
}

#[test]
fn cost_rounds_up() {
    let hour = Duration::from_secs(3600);
    for (price, time, cost) in [
        ("2.50", hour, "2.50"),
        ("2.50", hour * 24, "60.00"),
        ("1.00", Duration::from_secs(1), "0.000278"),
        ("0.000001", Duration::from_nanos(1), "0.000001"),
        ("3.60", Duration::from_secs(1), "0.001"),
        ("1.00", Duration::ZERO, "0.00"),
        ("-1.00", Duration::from_secs(1), "-0.000277"),
    ] {
        assert_eq!(money(price).checked_cost_of(time), Some(money(cost)), "{price} for {time:?}");
    }
    assert_eq!(Money::MAX.checked_cost_of(hour * 2), None);
    assert_eq!(Money::MAX.checked_cost_of(Duration::MAX), None);
}

#[test]
fn overflow_is_seen() {
    assert_eq!(Money::MAX.checked_add(Money::from_micros(1)), None);
    assert_eq!(Money::MIN.checked_sub(Money::from_micros(1)), None);
    assert_eq!(Money::MAX.checked_mul(2), None);
    assert_eq!(Money::checked_sum([Money::MAX, Money::MAX]), None);
    assert_eq!(Money::checked_sum([Money::MAX, Money::MAX, Money::MIN, Money::MIN]), Some(Money::from_micros(-2)));
}

#[test]
fn travels_as_a_string() {
    assert_eq!(serde_json::to_string(&money("1.5")).unwrap(), r#""1.50""#);
    assert_eq!(serde_json::from_str::<Money>(r#""$2""#).unwrap(), money("2"));
    assert!(serde_json::from_str::<Money>("1.5").is_err(), "a JSON number is a float");
}

#[test]
fn pads_in_tables() {
    assert_eq!(format!("{:>8}|{:<8}|", money("1.5"), money("-1.5")), "    1.50|-1.50   |");
}

proptest! {
    #[test]
    fn round_trips(micros: i64) {
        let amount = Money::from_micros(micros);
        prop_assert_eq!(amount.to_string().parse(), Ok(amount));
    }

    #[test]
    fn orders_like_its_number(a: i64, b: i64) {
        prop_assert_eq!(Money::from_micros(a).cmp(&Money::from_micros(b)), a.cmp(&b));
    }

    #[test]
    fn never_panics(text: String) {
        let _ = text.parse::<Money>();
    }

    /// Parts never cost less than the whole, and by less than one micro-dollar for each cut.
    #[test]
    fn cutting_time_never_saves(price in 0..1_000_000_000i64, a in 0..10_000_000u64, b in 0..10_000_000u64) {
        let price = Money::from_micros(price);
        let cost = |millis| price.checked_cost_of(Duration::from_millis(millis)).unwrap().micros();
        let (parts, whole) = (cost(a) + cost(b), cost(a + b));
        prop_assert!(whole <= parts && parts <= whole + 1, "{} {}", parts, whole);
    }
}
