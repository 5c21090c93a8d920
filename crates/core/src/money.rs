// SPDX-License-Identifier: Apache-2.0
//! Dollars, exact to the millionth.
//!
//! Cloud prices have up to six decimals; floats would make budgets drift and two equal sums differ. One [`Money`] is
//! an integer count of micro-dollars, which reaches past nine trillion dollars either way.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MICROS_PER_DOLLAR: u64 = 1_000_000;
const DECIMALS: usize = 6;
const NANOS_PER_HOUR: i128 = 3_600 * 1_000_000_000;

/// An exact amount of dollars, or a price in dollars per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

/// Why a text is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    #[error("an amount of money is missing; write it like \"1.25\"")]
    Empty,
    #[error("{0:?} has an exponent; write the amount out, like \"1250.00\"")]
    Exponent(String),
    #[error("{text:?} is not an amount of money: {found:?} is not a digit; write it like \"1.25\"")]
    NotADigit { text: String, found: char },
    #[error("{0:?} needs a digit on both sides of the point; write it like \"0.50\"")]
    BarePoint(String),
    #[error("{0:?} has more than 6 decimals; the smallest amount is 0.000001")]
    TooFine(String),
    #[error("{0:?} is more money than can be counted; the most is {max}", max = Money::MAX)]
    TooLarge(String),
}

// === impl Money ===

impl Money {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(i64::MAX);
    pub const MIN: Self = Self(i64::MIN);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub fn checked_mul(self, times: i64) -> Option<Self> {
        self.0.checked_mul(times).map(Self)
    }

    /// What `time` costs at this price per hour.
    ///
    /// Parts of a micro-dollar round up (towards more cost), so that a sum of bookings is never below the truth.
    pub fn checked_cost_of(self, time: Duration) -> Option<Self> {
        let nanos = i128::try_from(time.as_nanos()).ok()?;
        let exact = i128::from(self.0).checked_mul(nanos)?;
        let floor = exact.div_euclid(NANOS_PER_HOUR);
        let up = i128::from(exact.rem_euclid(NANOS_PER_HOUR) != 0);
        i64::try_from(floor.checked_add(up)?).ok().map(Self)
    }

    /// The sum, or `None` when it cannot be counted.
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        // i128 cannot overflow on the way: the order of the amounts does not matter.
        let total: i128 = amounts.into_iter().map(|amount| i128::from(amount.0)).sum();
        i64::try_from(total).ok().map(Self)
    }
}

/// Prints at least two decimals and no useless zero after them: `1.00`, `0.50`, `0.000001`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let fraction = format!("{:06}", size % MICROS_PER_DOLLAR);
        let (cents, rest) = fraction.split_at(2);
        let number = format!("{}.{cents}{}", size / MICROS_PER_DOLLAR, rest.trim_end_matches('0'));
        f.pad_integral(!self.is_negative(), "", &number)
    }
}

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let number = rest.strip_prefix('$').unwrap_or(rest);
        if number.is_empty() {
            return Err(MoneyError::Empty);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        check_digits(text, number, whole, fraction)?;
        if fraction.len() > DECIMALS {
            return Err(MoneyError::TooFine(text.into()));
        }
        let too_large = || MoneyError::TooLarge(text.into());
        let micros: i128 = format!("{whole}{fraction:0<6}").parse().map_err(|_| too_large())?;
        let signed = if negative { -micros } else { micros };
        i64::try_from(signed).map(Self).map_err(|_| too_large())
    }
}

fn check_digits(text: &str, number: &str, whole: &str, fraction: &str) -> Result<(), MoneyError> {
    let Some(found) = whole.chars().chain(fraction.chars()).find(|c| !c.is_ascii_digit()) else {
        let bare = whole.is_empty() || fraction.is_empty();
        return if bare { Err(MoneyError::BarePoint(text.into())) } else { Ok(()) };
    };
    let exponent = matches!(found, 'e' | 'E') && number.starts_with(|c: char| c.is_ascii_digit());
    Err(if exponent { MoneyError::Exponent(text.into()) } else { MoneyError::NotADigit { text: text.into(), found } })
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
#[path = "money_tests.rs"]
mod tests;
