// SPDX-License-Identifier: Apache-2.0
//! Hostile texts through real shells.

use std::process::Command;

use bivouac_miniclusters::script::{
    BODIES,
    quote::{is_closed, quote},
};
use proptest::prelude::*;

fn out(shell: &str, script: &str) -> Vec<u8> {
    let output = Command::new(shell).arg("-c").arg(script).env("NAME", "a  b").env_remove("NONE").output().unwrap();
    assert!(output.status.success(), "{shell}: {}\n{script}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The words that `words.sh` makes of a text.
fn split(text: &str) -> Vec<String> {
    let (_, function) = BODIES.iter().find(|(name, _)| *name == "words.sh").unwrap();
    let script = format!("set -eu\n{function}\nwords {}\nprintf '%s\\0' \"${{argv[@]}}\" end", quote(text));
    let printed = String::from_utf8(out("bash", &script)).unwrap();
    let mut words: Vec<String> = printed.split('\0').map(str::to_owned).collect();
    assert_eq!(words.split_off(words.len() - 2), ["end", ""]);
    words
}

const HOSTILE: [&str; 14] = [
    "",
    "'",
    "''\"\"",
    "$(touch /tmp/owned)",
    "`id`",
    "${HOME}",
    "a\nb\n",
    "-n",
    "--help",
    "\\",
    "\\'\\\"",
    "ünïcödé 日本 🦀",
    "; rm -rf / #",
    "%s %n * ? [a] ~ ! & | > <\t\r\u{7f}\u{1b}[0m",
];

#[test]
fn hostile_texts_reach_the_program_unchanged() {
    for text in HOSTILE {
        for shell in ["bash", "dash"] {
            assert_eq!(String::from_utf8(out(shell, &format!("printf %s {}", quote(text)))).unwrap(), text);
        }
        assert_eq!(split(&quote(text)), [text]);
    }
}

#[test]
fn a_command_is_split_as_a_shell_does_but_nothing_is_run() {
    let cases: [(&str, &[&str]); 15] = [
        ("", &[]),
        (" \n\t ", &[]),
        ("lmp -v x 2\n-in  in.reaxc.hns", &["lmp", "-v", "x", "2", "-in", "in.reaxc.hns"]),
        ("sh -c 'a b' \"c d\"", &["sh", "-c", "a b", "c d"]),
        ("'' \"\"", &["", ""]),
        (r#"a\ b \"x\" "\"\\\$\a""#, &["a b", "\"x\"", r#""\$\a"#]),
        ("a\\\nb", &["ab"]),
        ("echo $NAME", &["echo", "a", "b"]),
        ("x$NAME/y ${NAME}z", &["xa", "b/y", "a", "bz"]),
        ("\"$NAME\" \"${NAME}\"", &["a  b", "a  b"]),
        ("'$NAME' \\$NAME", &["$NAME", "$NAME"]),
        ("$NONE a \"$NONE\"", &["a", ""]),
        ("$(id) `id` $((1)) ${NAME:-x} $1 $", &["$(id)", "`id`", "$((1))", "${NAME:-x}", "$1", "$"]),
        ("a;b | c > d & *.txt ~ {1,2}", &["a;b", "|", "c", ">", "d", "&", "*.txt", "~", "{1,2}"]),
        ("ü'日 本'🦀", &["ü日 本🦀"]),
    ];
    for (text, expected) in cases {
        assert_eq!(split(text), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_text_survives_quoting(text in "[^\0]{0,40}") {
        for shell in ["bash", "dash"] {
            let printed = out(shell, &format!("printf %s {}", quote(&text)));
            prop_assert_eq!(String::from_utf8(printed).unwrap(), text.clone());
        }
    }

    #[test]
    fn any_words_survive_quoting_and_splitting(texts in proptest::collection::vec("[^\0]{0,12}", 0..5)) {
        let line = texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ");
        prop_assert!(is_closed(&line));
        prop_assert_eq!(split(&line), texts);
    }

    /// On texts without expansions, operators and patterns, the real shell is the judge.
    #[test]
    fn splitting_agrees_with_bash(text in "[ab \n\t'\"\\\\]{0,14}") {
        prop_assume!(is_closed(&text) && !text.contains("\n"));
        let printed = out("bash", &format!("printf '%s\\0' {text} end"));
        let printed = String::from_utf8(printed).unwrap();
        let expected: Vec<&str> = printed.split('\0').collect();
        let found = split(&text);
        prop_assert_eq!(&found[..], &expected[..expected.len() - 2]);
    }
}
