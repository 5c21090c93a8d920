// SPDX-License-Identifier: Apache-2.0
//! Words that must not be seen, and what takes them out of texts that people read.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// A piece this long of a secret is a secret, too.
const PIECE: usize = 12;
const MASK: &str = "[secret]";

/// A text that shows itself to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// Knows the secrets of a credential, also those that the cloud hands out on the way.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Vec<String>>>);

// === impl Secret ===

impl Secret {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Only for what is sent to the one who may know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

// === impl Redactor ===

impl Redactor {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let redactor = Self::default();
        secrets.into_iter().for_each(|secret| redactor.learn(secret));
        redactor
    }

    /// From now on this is not shown either, in any of its spellings.
    pub fn learn(&self, secret: &Secret) {
        let plain = secret.reveal();
        if plain.is_empty() {
            return;
        }
        let url = percent_encoding::utf8_percent_encode(plain, percent_encoding::NON_ALPHANUMERIC).to_string();
        let mut spellings = vec![plain.to_owned(), url];
        spellings.extend([STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|engine| engine.encode(plain)));
        // As Basic authentication has it.
        spellings.push(STANDARD.encode(format!("{plain}:")));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for spelling in spellings {
            if !known.contains(&spelling) {
                known.push(spelling);
            }
        }
    }

    /// The text without any piece of a secret.
    pub fn clean(&self, text: &str) -> String {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut hidden = vec![false; text.len()];
        for secret in known.iter() {
            for piece in pieces(secret) {
                for (start, found) in text.match_indices(piece) {
                    hidden.iter_mut().skip(start).take(found.len()).for_each(|byte| *byte = true);
                }
            }
        }
        let mut clean = String::with_capacity(text.len());
        let mut masked = false;
        for (start, letter) in text.char_indices() {
            let is_hidden = hidden.get(start) == Some(&true);
            if is_hidden && !masked {
                clean.push_str(MASK);
            } else if !is_hidden {
                clean.push(letter);
            }
            masked = is_hidden;
        }
        clean
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// Every run of [`PIECE`] letters; a shorter secret is its own only piece.
fn pieces(secret: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = secret.char_indices().map(|(start, _)| start).chain([secret.len()]).collect();
    let length = PIECE.min(starts.len() - 1);
    let count = starts.len() - length;
    (0..count).filter_map(move |first| secret.get(*starts.get(first)?..*starts.get(first + length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_of_a_secret_is_left() {
        let secret = Secret::new("rpa_ABCDEFGHIJKLMNOP+/=");
        let redactor = Redactor::new([&secret]);
        let clean = |text: &str| redactor.clean(text);
        assert_eq!(clean("key rpa_ABCDEFGHIJKLMNOP+/= is bad"), "key [secret] is bad");
        assert_eq!(clean("key CDEFGHIJKLMN… is bad"), "key [secret]… is bad");
        assert_eq!(clean("key CDEFGHIJKLM is short"), "key CDEFGHIJKLM is short");
        let encoded = STANDARD.encode(secret.reveal());
        assert_eq!(clean(&format!("Authorization: Basic {encoded}")), "Authorization: Basic [secret]");
        assert_eq!(clean("?api_key=rpa%5FABCDEFGHIJKLMNOP%2B%2F%3D&x"), "?api_key=[secret]&x");
        assert_eq!(clean("straße and 'words' without any"), "straße and 'words' without any");
        assert_eq!(format!("{secret:?} {redactor:?}"), "[secret] Redactor");
    }

    #[test]
    fn short_secrets_and_strange_letters_are_hidden_too() {
        let redactor = Redactor::new([&Secret::new("pässwört"), &Secret::new(""), &Secret::new("x1")]);
        assert_eq!(redactor.clean("a pässwört and x1x1 b"), "a [secret] and [secret] b");
    }

    #[test]
    fn what_is_learned_later_is_hidden_later() {
        let redactor = Redactor::default();
        let token = Secret::new("token-that-the-cloud-gave");
        assert!(redactor.clean(token.reveal()).contains("token"));
        redactor.learn(&token);
        assert_eq!(redactor.clean("got token-that-the-cloud-gave."), "got [secret].");
    }
}
