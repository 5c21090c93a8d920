// SPDX-License-Identifier: Apache-2.0
//! A short name for a template: the same template has the same one, in every process.

use serde::Serialize;

/// Letters and digits out of which no word is made by chance.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// `collisions` tells apart what has the same hash.
pub fn of_template<T: Serialize>(template: &T, collisions: Option<i32>) -> String {
    let text = serde_json::to_string(template).unwrap_or_default();
    let collisions = collisions.map(|count| count.to_string()).unwrap_or_default();
    let hash = text
        .bytes()
        .chain(collisions.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let letter = |byte: u8| LETTERS.get(usize::from(byte) % LETTERS.len()).copied().unwrap_or(b'b');
    hash.to_string().bytes().map(|byte| char::from(letter(byte))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_stable_and_tell_collisions_apart() {
        let hash = of_template(&"template", None);
        assert_eq!(hash, of_template(&"template", None));
        assert_ne!(hash, of_template(&"template", Some(1)));
        assert_ne!(hash, of_template(&"other", None));
        assert!(hash.bytes().all(|letter| LETTERS.contains(&letter)), "{hash}");
    }
}
