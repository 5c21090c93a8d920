// SPDX-License-Identifier: Apache-2.0
//! Kubernetes resource quantities, exact.
//!
//! The finest amount Kubernetes knows is a billionth, so an integer count of billionths holds every quantity without
//! floats. The way it was written (decimal suffix, binary suffix, exponent) is kept for printing and ignored in
//! comparisons: `1Ki == 1024`.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
const KIBI: i128 = 1 << 10;
/// Kubernetes holds amounts with a binary suffix to this many units, and takes more as this many.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS;

/// The decimal suffixes by their power of ten, and the binary ones by their power of two.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// How a quantity is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `1500m`, `2`, `4k`, `5G`
    #[default]
    Decimal,
    /// `512Mi`, `2Gi`
    Binary,
    /// `3e6`
    Exponent,
}

/// An exact amount of a resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("a quantity is missing; write it like \"500m\", \"2\" or \"8Gi\"")]
    Empty,
    #[error("{0:?} does not start with a number; write it like \"500m\", \"2\" or \"8Gi\"")]
    NoNumber(String),
    #[error(
        "{text:?} ends in {suffix:?}, which is no unit; use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent"
    )]
    Suffix { text: String, suffix: String },
    #[error("{0:?} is more than a quantity can hold")]
    TooLarge(String),
}

// === impl Quantity ===

impl Quantity {
    pub const ZERO: Self = Self { nanos: 0, format: Format::Decimal };

    /// A whole number of units.
    pub fn from_units(units: i64, format: Format) -> Self {
        Self { nanos: i128::from(units) * NANOS, format }
    }

    /// A number of thousandths, as for processor cores.
    pub fn from_millis(millis: i64, format: Format) -> Self {
        Self { nanos: i128::from(millis) * NANOS_PER_MILLI, format }
    }

    pub const fn format(self) -> Format {
        self.format
    }

    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whole units; a part of a unit counts as one more, away from zero, as Kubernetes does. `None` beyond 64 bits.
    pub fn value(self) -> Option<i64> {
        i64::try_from(div_away_from_zero(self.nanos, NANOS)).ok()
    }

    /// Thousandths, rounded like [`Quantity::value`].
    pub fn milli_value(self) -> Option<i64> {
        i64::try_from(div_away_from_zero(self.nanos, NANOS_PER_MILLI)).ok()
    }

    /// The sum, written like `self`, or like `other` when `self` is zero.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_add(other.nanos)?, format: self.format_with(other) })
    }

    /// The difference, written like the sum would be.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_sub(other.nanos)?, format: self.format_with(other) })
    }

    /// The amount for `times` of something.
    pub fn checked_mul(self, times: i64) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_mul(i128::from(times))?, ..self })
    }

    fn format_with(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }

    /// Binary suffixes are for whole amounts of at least one `Ki`; anything else prints exactly as a decimal.
    fn print_format(self) -> Format {
        let binary = self.nanos % NANOS == 0 && self.nanos.unsigned_abs() >= (KIBI * NANOS).unsigned_abs();
        if self.format == Format::Binary && !binary { Format::Decimal } else { self.format }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

/// The canonical form: no fraction, and the largest unit that allows it.
///
/// From `1000E` upwards Kubernetes loses the unit; we keep printing `E`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printed = match self.print_format() {
            _ if self.is_zero() => "0".into(),
            Format::Binary => {
                let (number, power) = factor_out(self.nanos / NANOS, KIBI, 6);
                format!("{number}{}", suffix_at(&BINARY, power * 10))
            }
            Format::Decimal => {
                let (number, power) = factor_out(self.nanos, 1000, 9);
                format!("{number}{}", suffix_at(&DECIMAL, power * 3 - 9))
            }
            Format::Exponent => match factor_out(self.nanos, 1000, i32::MAX) {
                (number, 3) => number.to_string(),
                (number, power) => format!("{number}e{}", power * 3 - 9),
            },
        };
        f.pad(&printed)
    }
}

fn suffix_at(suffixes: &[(&'static str, i32)], power: i32) -> &'static str {
    suffixes.iter().find(|(_, at)| *at == power).map_or("", |(suffix, _)| suffix)
}

/// Divides by `base` while nothing is lost, at most `limit` times. The number is not zero.
fn factor_out(mut number: i128, base: i128, limit: i32) -> (i128, i32) {
    let mut times = 0;
    while times < limit && number % base == 0 {
        number /= base;
        times += 1;
    }
    (number, times)
}

fn div_away_from_zero(number: i128, by: i128) -> i128 {
    number / by + if number % by == 0 { 0 } else { number.signum() }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (nanos, format) = parse::magnitude(text)?;
        let nanos = if text.starts_with('-') { -nanos } else { nanos };
        // Less than one unit of a binary quantity prints as a decimal, and sums with it do, too.
        let fraction = nanos != 0 && nanos.abs() < NANOS;
        let format = if format == Format::Binary && fraction { Format::Decimal } else { format };
        Ok(Self { nanos, format })
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrInteger)
    }
}

/// Kubernetes takes a bare number, too. A fraction without quotes has passed through a float, so it is refused.
struct TextOrInteger;

// === impl TextOrInteger ===

impl de::Visitor<'_> for TextOrInteger {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a string like \"500m\" or \"8Gi\", or a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(units, Format::Decimal))
    }

    fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(units) * NANOS, format: Format::Decimal })
    }
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
