// SPDX-License-Identifier: Apache-2.0
//! Numbers that may be written as a part of another one: `3` or `25%`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Up,
    Down,
}

/// What it comes to, of a whole. What cannot be read is nothing.
pub fn share(value: Option<&IntOrString>, whole: i32, round: Round) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
            let hundredths = percent * i64::from(whole);
            let number =
                if round == Round::Up { (hundredths + 99).div_euclid(100) } else { hundredths.div_euclid(100) };
            i32::try_from(number).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_as_asked() {
        let percent = |text: &str| Some(IntOrString::String(text.to_owned()));
        for (value, whole, up, down) in
            [(percent("25%"), 10, 3, 2), (percent("0%"), 10, 0, 0), (percent("100%"), 7, 7, 7), (None, 9, 0, 0)]
        {
            let both = (share(value.as_ref(), whole, Round::Up), share(value.as_ref(), whole, Round::Down));
            assert_eq!(both, (up, down), "{value:?} of {whole}");
        }
        assert_eq!(share(Some(&IntOrString::Int(4)), 100, Round::Down), 4);
    }
}
