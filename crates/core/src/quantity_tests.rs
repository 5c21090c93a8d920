// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// What Kubernetes prints for what was written.
#[test]
fn prints_the_canonical_form() {
    for (text, printed) in [
        ("0", "0"),
        ("-0", "0"),
        ("0n", "0"),
        ("0Ki", "0"),
        ("0e99999999999", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("001", "1"),
        ("100m", "100m"),
        ("0.1", "100m"),
        (".5", "500m"),
        ("1.", "1"),
        ("1.G", "1G"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("-1.5", "-1500m"),
        ("1000", "1k"),
        ("1234567", "1234567"),
        ("1.2k", "1200"),
        ("10000k", "10M"),
        ("1E", "1E"),
        ("1000E", "1000E"),
        ("1E3", "1e3"),
        ("1e3", "1e3"),
        ("1e+3", "1e3"),
        ("1e4", "10e3"),
        ("100e3", "100e3"),
        ("1.5e3", "1500"),
        ("1e-3", "1e-3"),
        ("1e-4", "100e-6"),
        ("1e0", "1"),
        ("1E-1", "100e-3"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1023Ki", "1023Ki"),
        ("0.5Mi", "512Ki"),
        ("-1.5Ki", "-1536"),
        ("-2048Ki", "-2Mi"),
        ("0.0001Ki", "102400u"),
        ("1.0001Ki", "1024102400u"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000000000000000000000000000000000000000000001n", "2n"),
        ("1.00000000000000000000000000000000000000000000000000n", "1n"),
        ("1e-99999999999", "1e-9"),
        ("999999999999999999n", "999999999999999999n"),
        ("9223372036854775807", "9223372036854775807"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("99999999999999999999999999999999999999999Ei", "9223372036854775807"),
        ("7.99999999999999999Ei", "9223372036854775796470784954n"),
    ] {
        assert_eq!(quantity(text).to_string(), printed, "{text}");
    }
}

#[test]
fn refuses_with_a_reason() {
    for (text, says) in [
        ("", "is missing"),
        ("-", "number"),
        (".", "number"),
        ("Ki", "number"),
        ("1.1.M", "number"),
        ("--1", "number"),
        (" 1", "number"),
        ("1 ", "no unit"),
        ("1i", "no unit"),
        ("1K", "no unit"),
        ("1ki", "no unit"),
        ("1mi", "no unit"),
        ("1e", "no unit"),
        ("1E+", "no unit"),
        ("1Ee3", "no unit"),
        ("1e3k", "no unit"),
        ("1e1.5", "no unit"),
        ("1+1", "no unit"),
        ("1é", "no unit"),
        ("1e30", "more than"),
        ("1e99999999999", "more than"),
        ("999999999999999999999999999999", "more than"),
    ] {
        let error = text.parse::<Quantity>().unwrap_err().to_string();
        assert!(error.contains(says), "{text:?} gave {error:?}");
    }
}

#[test]
fn values_round_away_from_zero() {
    for (text, value, millis) in [
        ("0", 0, 0),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1001m", 2, 1001),
        ("-1001m", -2, -1001),
        ("1500u", 1, 2),
        ("2", 2, 2000),
        ("1Ki", 1024, 1_024_000),
    ] {
        assert_eq!(quantity(text).value(), Some(value), "{text}");
        assert_eq!(quantity(text).milli_value(), Some(millis), "{text}");
    }
    assert_eq!(quantity("10E").value(), None);
    assert_eq!(quantity("9223372036854775807").milli_value(), None);
}

#[test]
fn formats_do_not_matter_for_order() {
    for (a, order, b) in [
        ("1Ki", Ordering::Equal, "1024"),
        ("1Ki", Ordering::Greater, "1k"),
        ("1E", Ordering::Greater, "1E3"),
        ("1E3", Ordering::Equal, "1k"),
        ("-1", Ordering::Less, "1n"),
        ("0.5", Ordering::Equal, "500m"),
    ] {
        assert_eq!(quantity(a).cmp(&quantity(b)), order, "{a} and {b}");
        assert_eq!(quantity(a) == quantity(b), order == Ordering::Equal);
    }
}

#[test]
fn sums_keep_the_first_format() {
    let sum = |a: &str, b: &str| quantity(a).checked_add(quantity(b)).map(|q| q.to_string());
    assert_eq!(sum("1Gi", "1024").as_deref(), Some("1048577Ki"));
    assert_eq!(sum("1024", "1Gi").as_deref(), Some("1073742848"));
    assert_eq!(sum("0", "1Gi").as_deref(), Some("1Gi"));
    assert_eq!(sum("100m", "900m").as_deref(), Some("1"));
    assert_eq!(quantity("1Gi").checked_sub(quantity("1Mi")).map(|q| q.to_string()).as_deref(), Some("1023Mi"));
    assert_eq!(quantity("250m").checked_mul(8), Some(quantity("2")));
    let most = quantity("100000000000E");
    assert_eq!(most.checked_add(most), None);
    assert_eq!(most.checked_mul(-1).and_then(|least| least.checked_sub(most)), None);
}

#[test]
fn travels_as_text_and_comes_as_numbers_too() {
    assert_eq!(serde_json::to_string(&quantity("1024Mi")).unwrap(), r#""1Gi""#);
    assert_eq!(serde_json::from_str::<Quantity>(r#""8Gi""#).unwrap(), quantity("8Gi"));
    assert_eq!(serde_json::from_str::<Quantity>("8").unwrap(), quantity("8"));
    assert_eq!(serde_json::from_str::<Quantity>("-8").unwrap(), quantity("-8"));
    assert!(serde_json::from_str::<Quantity>("0.1").is_err(), "this has been a float");
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let format = prop_oneof![Just(Format::Decimal), Just(Format::Binary), Just(Format::Exponent)];
    let nanos = prop_oneof![
        any::<i64>().prop_map(i128::from),
        any::<i64>().prop_map(|n| i128::from(n) * NANOS),
        (any::<i32>(), 0..10u32).prop_map(|(n, power)| i128::from(n) * NANOS * KIBI.pow(power.min(3))),
    ];
    (nanos, format).prop_map(|(nanos, format)| Quantity { nanos, format })
}

proptest! {
    #[test]
    fn round_trips(q in any_quantity()) {
        let printed = q.to_string();
        let back = quantity(&printed);
        prop_assert_eq!(back, q);
        prop_assert_eq!(back.to_string(), printed);
    }

    #[test]
    fn any_notation_means_the_same(whole in 0..1_000_000u32, power in 0..6usize, sign in "[-+]?") {
        let suffix = ["", "k", "M", "G", "T", "P"][power];
        let (si, exponent) = (format!("{sign}{whole}{suffix}"), format!("{sign}{whole}e{}", power * 3));
        prop_assert_eq!(quantity(&si), quantity(&exponent));
        let fraction = format!("{sign}0.{whole:0>7}e{}", power * 3 + 7);
        prop_assert_eq!(quantity(&si), quantity(&fraction));
    }

    #[test]
    fn binary_fractions_are_exact(eighths in 1..100_000i64, power in 1..5usize) {
        let suffix = ["", "Ki", "Mi", "Gi", "Ti"][power];
        let text = format!("{}.{:03}{suffix}", eighths / 8, eighths % 8 * 125);
        prop_assert_eq!(quantity(&text).nanos, i128::from(eighths) * KIBI.pow(power as u32) / 8 * NANOS);
    }

    #[test]
    fn never_panics(text in "[-+]?[0-9.]{0,60}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,20}", any: String) {
        for text in [text, any] {
            if let Ok(q) = text.parse::<Quantity>() {
                prop_assert_eq!(quantity(&q.to_string()), q);
            }
        }
    }

    #[test]
    fn sums_come_apart_again(a in any_quantity(), b in any_quantity()) {
        let sum = a.checked_add(b).unwrap();
        prop_assert_eq!(sum.checked_sub(b), Some(a));
        prop_assert_eq!(b.checked_add(a), Some(sum));
        prop_assert_eq!(sum > a, !b.is_negative() && !b.is_zero());
    }

    #[test]
    fn values_are_never_nearer_to_zero(q in any_quantity()) {
        if let Some(value) = q.value() {
            let units = i128::from(value) * NANOS;
            prop_assert!(units.abs() >= q.nanos.abs() && (units - q.nanos).abs() < NANOS);
        }
    }
}
