// SPDX-License-Identifier: Apache-2.0
//! How much faster the same tests are on the embedded server: what ring 2 is for.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// Seconds by test, for each program that ran.
static TIMES: Mutex<BTreeMap<String, BTreeMap<String, f64>>> = Mutex::new(BTreeMap::new());

/// Takes the times out of a report of nextest.
pub fn note(xml: &str) {
    let Ok(mut times) = TIMES.lock() else { return };
    for case in xml.split("<testcase ").skip(1) {
        let value = |name: &str| case.split_once(&format!("{name}=\""))?.1.split('"').next();
        if let (Some(program), Some(test), Some(time)) = (value("classname"), value("name"), value("time"))
            && let Ok(time) = time.parse()
        {
            times.entry(program.to_owned()).or_default().insert(test.to_owned(), time);
        }
    }
}

/// One line for each crate with tests that ran in both rings.
pub fn lines() -> Vec<String> {
    let Ok(times) = TIMES.lock() else { return Vec::new() };
    let both = times.iter().filter_map(|(program, embedded)| {
        let name = program.strip_suffix("::embedded")?;
        compare(name, embedded, times.get(&format!("{name}::real"))?)
    });
    both.collect()
}

fn compare(name: &str, embedded: &BTreeMap<String, f64>, real: &BTreeMap<String, f64>) -> Option<String> {
    let (mut ours, mut theirs, mut only) = (0.0, 0.0, Vec::new());
    for (test, time) in real {
        match embedded.get(test) {
            Some(fast) => {
                ours += fast;
                theirs += time;
            }
            None => only.push(test.as_str()),
        }
    }
    (ours > 0.0).then(|| {
        let times = theirs / ours;
        let only = if only.is_empty() { "none".to_owned() } else { only.join(", ") };
        format!(
            "{name}: {theirs:.1} s, embedded {ours:.1} s, {times:.0} times faster; only with real processes: {only}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_a_report() {
        let xml = r#"<testsuite name="p::one"><testcase name="a::b" classname="p::one" time="1.5"></testcase></testsuite>
            <testsuite name="p::two"><testcase name="c" classname="p::two" time="0.5"/></testsuite>"#;
        note(xml);
        let times = TIMES.lock().unwrap();
        assert_eq!((times["p::one"]["a::b"], times["p::two"]["c"]), (1.5, 0.5));
    }

    #[test]
    fn programs_of_one_crate_are_a_pair() {
        note(
            r#"<testcase name="a" classname="q::embedded" time="0.5"/><testcase name="a" classname="q::real" time="1.0"/>
            <testcase name="a" classname="r::embedded" time="0.5"/>"#,
        );
        assert_eq!(lines(), ["q: 1.0 s, embedded 0.5 s, 2 times faster; only with real processes: none"]);
    }

    #[test]
    fn tests_of_both_worlds_are_compared() {
        let of = |all: &[(&str, f64)]| all.iter().map(|(name, time)| ((*name).to_owned(), *time)).collect();
        let text = compare("x", &of(&[("a", 0.5), ("b", 0.5)]), &of(&[("a", 20.0), ("b", 10.0), ("c", 9.0)])).unwrap();
        assert_eq!(text, "x: 30.0 s, embedded 1.0 s, 30 times faster; only with real processes: c");
        assert_eq!(compare("x", &of(&[]), &of(&[("c", 9.0)])), None);
    }
}
