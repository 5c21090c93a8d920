// SPDX-License-Identifier: Apache-2.0
//! The one way a text gets into a shell script.

/// One word that every POSIX shell, and the `words` function of our scripts, reads back as exactly this text. The text
/// must not hold a NUL byte: no shell can hold one, and a MiniCluster with one is refused.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `name='value'` and a line end.
pub fn assign(name: &str, value: &str) -> String {
    format!("{name}={}\n", quote(value))
}

/// Whether every quote is closed and no backslash stands at the end, by the rules of `words.sh`.
pub fn is_closed(text: &str) -> bool {
    let mut within = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (within, char) {
            (None | Some('"'), '\\') if chars.next().is_none() => return false,
            (None, '\'' | '"') => within = Some(char),
            (Some(open), close) if open == close => within = None,
            _ => {}
        }
    }
    within.is_none()
}

#[cfg(test)]
mod tests {
    use super::is_closed;

    #[test]
    fn open_quotes_are_seen() {
        for closed in ["", "a b", "'a'\"b\"", r"it\'s", r#""a\"b""#, r"'\'", r"a\ b", "'a\"'", "\"it's\""] {
            assert!(is_closed(closed), "{closed}");
        }
        for open in ["it's", "\"", r"'\''", r#""\""#, "a\\", "\"a\\"] {
            assert!(!is_closed(open), "{open}");
        }
    }
}
