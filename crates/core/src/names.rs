// SPDX-License-Identifier: Apache-2.0
//! Names that Kubernetes accepts, and names made from anything a person may type.
//!
//! A made name is the same on every machine and in every version: it depends on its input only.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The longest DNS label, label value and name part of a label key.
pub const LABEL_MAX: usize = 63;
/// The longest DNS subdomain: object names, label-key prefixes.
pub const SUBDOMAIN_MAX: usize = 253;

/// Consonants and digits that spell no word and are hard to confuse.
const SYMBOLS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// 27^24 still fits into the 128 bits taken from the hash.
const HASH_MAX: usize = 24;
/// 27^10 is about 2^47: enough against accident among millions of names.
const HASH_LEN: usize = 10;

/// Lowercase letters, digits and inner dashes, 1 to 63 of them.
pub fn is_dns1123_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && is_dns_word(text)
}

/// Dot-separated DNS words, 1 to 253 characters together.
pub fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_dns_word)
}

/// Empty, or what may stand as the name part of a label key.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || label_key_suffix(text).is_some()
}

/// A label or annotation key: a name part, with an optional DNS subdomain and a slash before it.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns1123_subdomain(prefix) && label_key_suffix(name).is_some(),
        None => label_key_suffix(text).is_some(),
    }
}

/// The subject itself, if it can stand after the slash of a label key as it is.
pub fn label_key_suffix(subject: &str) -> Option<&str> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: char| c.is_ascii_alphanumeric();
    let fits = (1..=LABEL_MAX).contains(&subject.len());
    (fits && subject.chars().all(inner) && subject.starts_with(ends) && subject.ends_with(ends)).then_some(subject)
}

/// A DNS label for any text; see [`label_within`].
pub fn label(text: &str) -> Cow<'_, str> {
    label_within(text, LABEL_MAX)
}

/// A DNS label of at most `max` characters for any text (at most 63 in any case).
///
/// A text that already fits is kept. Any other gets a hash of the whole text at its end, so that two texts which look
/// alike once cleaned still have two names. A text that was chosen to look like another's hashed name is kept too: where
/// strangers choose the texts, use [`hashed`].
pub fn label_within(text: &str, max: usize) -> Cow<'_, str> {
    let max = max.min(LABEL_MAX);
    if text.len() <= max && is_dns1123_label(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(hashed(text, &[text], max))
    }
}

/// `prefix-hash`: a DNS label of at most `max` characters, told apart by the hash of all `parts`.
///
/// The prefix is cleaned and cut to leave room; a hash that alone is longer than `max` is cut as well. The first
/// character is always a letter or digit; for a prefix that starts with a letter it is that letter.
pub fn hashed(prefix: &str, parts: &[&str], max: usize) -> String {
    let max = max.min(LABEL_MAX);
    let digest = hash(parts, HASH_LEN.min(max));
    let room = max.saturating_sub(HASH_LEN + 1);
    let mut name = clean(prefix);
    name.truncate(room);
    let kept = name.trim_end_matches('-');
    if kept.is_empty() { digest } else { format!("{kept}-{digest}") }
}

/// A hash of the parts, `len` symbols long (at most 24). `["ab", "c"]` and `["a", "bc"]` differ.
pub fn hash(parts: &[&str], len: usize) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part.as_bytes());
    }
    let mut number = sha.finalize().iter().take(16).fold(0u128, |sum, byte| (sum << 8) | u128::from(*byte));
    let base = SYMBOLS.len() as u128;
    let mut symbols = String::new();
    for _ in 0..len.min(HASH_MAX) {
        let symbol = usize::try_from(number % base).ok().and_then(|at| SYMBOLS.get(at));
        symbols.extend(symbol.map(|s| char::from(*s)));
        number /= base;
    }
    symbols
}

/// Lowercases ASCII and puts one dash for each run of anything else. The result has no dash at either end.
fn clean(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

fn is_dns_word(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn knows_dns_labels() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "a-b", "a--b", "1-2", longest.as_str()] {
            assert!(is_dns1123_label(good), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", too_long.as_str()] {
            assert!(!is_dns1123_label(bad), "{bad}");
        }
    }

    #[test]
    fn knows_subdomains() {
        let longest = format!("{}.{}", "a".repeat(126), "b".repeat(126));
        for good in ["a", "a.b", "a-b.c0", "1.2.3.4", longest.as_str()] {
            assert!(is_dns1123_subdomain(good), "{good}");
        }
        let too_long = "a".repeat(254);
        for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", too_long.as_str()] {
            assert!(!is_dns1123_subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn knows_label_values_and_keys() {
        for good in ["", "a", "A", "a.b_c-D", "1", "true"] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["-a", "a-", "_a", "a.", "a/b", "a b", "a@b", "é"] {
            assert!(!is_label_value(bad), "{bad}");
        }
        for good in ["simple", "now-with-dashes", "1-2.3_4", "example.com/Name", "1.2.3.4/5678"] {
            assert!(is_qualified_name(good), "{good}");
        }
        let long_name = format!("example.com/{}", "a".repeat(64));
        for bad in ["", "/", "/a", "a/", "a/b/c", "Example.com/a", "a_b/c", "example.com/_a", long_name.as_str()] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
        assert_eq!(label_key_suffix("ada.lovelace"), Some("ada.lovelace"));
        assert_eq!(label_key_suffix("ada@example.com"), None);
        assert_eq!(label_key_suffix("system:serviceaccount:a:b"), None);
        assert_eq!(label_key_suffix(""), None);
    }

    /// These name objects in clusters: a change here makes every one of them an orphan.
    #[test]
    fn golden_names_do_not_change() {
        for (text, name) in [
            ("plain-name", "plain-name"),
            ("Plain Name", "plain-name-bsrpzmkld6"),
            ("Ünïcode", "n-code-z2srv79zb4"),
            ("日本", "l88jbfk268"),
            ("--", "sf7x52zs8l"),
            ("", "wbsjl9fljp"),
        ] {
            assert_eq!(label(text), name, "{text}");
        }
        assert_eq!(hashed("gpu", &["uid", "1"], 20), "gpu-pnsfgjswrt");
        assert_eq!(hashed("a-very-long-prefix", &["uid"], 16), "a-ver-7xjh2xlmc7");
        assert_eq!(hashed("a-b", &["uid"], 13), "a-7xjh2xlmc7");
        assert_eq!(hashed("gpu", &["uid"], 4), "7xjh");
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_label(text in any::<String>(), max in 1..80usize) {
            let name = label_within(&text, max);
            prop_assert!(is_dns1123_label(&name) && name.len() <= max, "{}", name);
            prop_assert_eq!(&label_within(&name, max), &name, "a made name is kept");
        }

        #[test]
        fn different_texts_have_different_names(a in "[aA_ -]{1,80}", b in "[aA_ -]{1,80}") {
            prop_assert_eq!(label(&a) == label(&b), a == b);
        }

        #[test]
        fn parts_do_not_run_together(a in "[ab]{0,3}", b in "[ab]{0,3}", c in "[ab]{0,3}", d in "[ab]{0,3}") {
            prop_assert_eq!(hash(&[&a, &b], 20) == hash(&[&c, &d], 20), (a, b) == (c, d));
        }

        #[test]
        fn hash_has_the_length_asked(text: String, len in 0..40usize) {
            let hash = hash(&[&text], len);
            prop_assert_eq!(hash.len(), len.min(HASH_MAX));
            prop_assert!(hash.bytes().all(|b| SYMBOLS.contains(&b)));
        }

        #[test]
        fn label_values_follow_the_pattern(text in "[-_.aZ9]{0,70}") {
            let ends = |c: char| c.is_ascii_alphanumeric();
            let expected = text.is_empty() || (text.len() <= 63 && text.starts_with(ends) && text.ends_with(ends));
            prop_assert_eq!(is_label_value(&text), expected);
        }
    }
}
