// SPDX-License-Identifier: Apache-2.0
//! What a Flux broker reads when it starts: the scripts and the certificate that its operator mounted.
//!
//! The places are a contract of the Flux operator. The values stand at the beginning of the scripts, as lines
//! `name='value'`.

use std::collections::BTreeMap;

use bivouac_core::names;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::mounts;
use crate::kinds::View;

const SHELL: &str = "/bin/bash";
const RUNNER: &str = "/flux_operator/wait-";
const INIT: &str = "/flux_operator/flux-init.sh";
const CERTIFICATE: &str = "/flux_operator/curve.cert";
const QUORUM: &str = "-Sbroker.quorum=";
const NO_PROGRAM: &str = "-Sbroker.rc2_none";
/// Letters of a key.
const KEY: usize = 40;

/// What one broker knows.
#[derive(Debug, PartialEq, Eq)]
pub struct Configuration {
    /// All brokers, as Flux writes them: `flux-[0-3]`.
    pub hosts: String,
    /// The host of the broker that leads.
    pub lead: String,
    /// How many brokers there must be before the program begins.
    pub quorum: usize,
    /// Without a program a cluster waits for people.
    pub has_program: bool,
    /// Tells certificates apart, and nothing of the keys.
    pub certificate: String,
}

/// The script of a container that runs a broker.
pub fn runner(container: &Container) -> Option<&str> {
    let [shell, script] = container.command.as_deref()? else { return None };
    let index = script.strip_prefix(RUNNER)?.strip_suffix(".sh")?;
    (shell == SHELL && index.parse::<u32>().is_ok()).then_some(script)
}

/// The name by which others know a pod.
pub fn host(pod: &Pod) -> &str {
    let own = pod.spec.as_ref().and_then(|spec| spec.hostname.as_deref()).filter(|name| !name.is_empty());
    own.or(pod.metadata.name.as_deref()).unwrap_or_default()
}

impl Configuration {
    /// Reads it, or says why no broker can start with it.
    pub fn read(pod: &Pod, container: &Container, view: &View) -> Result<Self, String> {
        let file = |container: &Container, path: &str| {
            mounts::file(pod, container, path, view).ok_or_else(|| format!("{path} is not there"))
        };
        let runner = values(&file(container, runner(container).unwrap_or_default())?);
        let mut first = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let prepares = |one: &&Container| one.command.as_deref().is_some_and(|words| words == [SHELL, INIT]);
        let init = first.find(prepares).ok_or_else(|| format!("no container runs {INIT}"))?;
        let init = values(&file(init, INIT)?);
        let text = |name: &str| runner.get(name).map(String::as_str).unwrap_or_default();
        let source = Some(text("curvesrc")).filter(|path| !path.is_empty()).unwrap_or(CERTIFICATE);
        let certificate = file(container, source)?;
        if !is_certificate(&certificate) {
            return Err(format!("{source} is no certificate"));
        }
        let hosts = init.get("hosts").cloned().unwrap_or_default();
        if !contains(&hosts, host(pod)) {
            return Err(format!("no host of \"{hosts}\" is named {}", host(pod)));
        }
        let options: Vec<_> = text("brokerOptions").split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let has_command = ["command", "op_script"].iter().any(|name| !text(name).is_empty());
        Ok(Self {
            quorum: quorum(&options, count(&hosts))?,
            hosts,
            lead: text("mainHost").to_owned(),
            has_program: has_command && !options.contains(&NO_PROGRAM),
            certificate: names::hash(&[&certificate], 16),
        })
    }
}

/// As many as the options say, else all.
fn quorum(options: &[&str], all: usize) -> Result<usize, String> {
    let Some(text) = options.iter().find_map(|word| word.strip_prefix(QUORUM)) else { return Ok(all) };
    let count = text.parse().ok().filter(|count| (1..=all).contains(count));
    count.ok_or_else(|| format!("a quorum of {text} cannot be, there are {all} hosts"))
}

/// Whether both keys are there.
fn is_certificate(text: &str) -> bool {
    let is_key = |line: &str, name: &str| {
        let key = line.trim().strip_prefix(name)?.trim().strip_prefix('=')?.trim();
        Some(key.strip_prefix('"')?.strip_suffix('"')?.len() == KEY)
    };
    ["public-key", "secret-key"].iter().all(|name| text.lines().any(|line| is_key(line, name) == Some(true)))
}

/// The values at the beginning of a script. Comments may stand between them; anything else ends them.
fn values(script: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut rest = script;
    while !rest.is_empty() {
        if rest.starts_with(['#', '\n']) {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let Some((name, value, after)) = assignment(rest) else { break };
        values.insert(name.to_owned(), value);
        rest = after;
    }
    values
}

/// `name='value'`, a line end, and what comes after it. A quote within the value is written `'\''`.
fn assignment(text: &str) -> Option<(&str, String, &str)> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (name, rest) = text.split_once("='").filter(|(name, _)| is_name(name))?;
    let (first, mut after) = rest.split_once('\'')?;
    let mut value = first.to_owned();
    while let Some(rest) = after.strip_prefix("\\''") {
        let (part, next) = rest.split_once('\'')?;
        value.extend(["'", part]);
        after = next;
    }
    let after = if after.is_empty() { "" } else { after.strip_prefix('\n')? };
    Some((name, value, after))
}

/// Whether a list like `flux-[0-3,7],other` has a host.
pub fn contains(list: &str, host: &str) -> bool {
    parts(list).any(|(before, ranges, after)| match ranges {
        None => before == host,
        Some(ranges) => {
            let number = host.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            number.is_some_and(|number| ranges.split(',').any(|range| is_within(range, number)))
        }
    })
}

/// How many hosts a list has.
fn count(list: &str) -> usize {
    let numbers = |range: &str| bounds(range).map_or(0, |(from, to)| (to + 1).saturating_sub(from));
    let hosts =
        parts(list).map(|(_, ranges, _)| ranges.map_or(1, |ranges| ranges.split(',').map(numbers).sum::<u64>()));
    usize::try_from(hosts.sum::<u64>()).unwrap_or(usize::MAX)
}

/// The parts of a list: what stands before the brackets, in them, and after them.
fn parts(list: &str) -> impl Iterator<Item = (&str, Option<&str>, &str)> {
    let mut depth = 0_u32;
    let parts = list.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.is_empty()).map(|part| match part.split_once('[') {
        None => (part, None, ""),
        Some((before, rest)) => {
            let (ranges, after) = rest.split_once(']').unwrap_or((rest, ""));
            (before, Some(ranges), after)
        }
    })
}

/// `3` or `0-3`. No cluster has more than a billion hosts.
fn bounds(range: &str) -> Option<(u64, u64)> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number < 1_000_000_000);
    Some((number(from)?, number(to)?))
}

/// Zeros before the first number of a range stand before all of them.
fn is_within(range: &str, number: &str) -> bool {
    let width = range.split('-').next().unwrap_or_default().len();
    let same = |value: u64| format!("{value:0width$}") == number;
    let parsed = number.parse::<u64>().ok().filter(|value| same(*value));
    bounds(range).zip(parsed).is_some_and(|((from, to), value)| (from..=to).contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_a_shell_reads_them() {
        let script = "#!/bin/bash\n# about\nop_quiet=''\nhosts='a-[0-1]'\n\nop_text='it'\\''s\ntwo lines # no comment'\n\
                      # SPDX\nviewroot=$viewbase/view\nlate='x'\n";
        let values = values(script);
        let all: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = "it's\ntwo lines # no comment";
        assert_eq!(all, [("hosts", "a-[0-1]"), ("op_quiet", ""), ("op_text", text)]);
    }

    #[test]
    fn what_is_quoted_wrong_ends_the_values() {
        for script in ["hosts='a", "hosts='a'b'\n", "hosts=a\n", "if x='a'; then\n", "hosts='a' x\n"] {
            assert_eq!(values(script).len(), 0, "{script}");
        }
        assert_eq!(values("hosts='a'").len(), 1, "the last line needs no end");
    }

    #[test]
    fn hosts_are_found_in_lists() {
        let list = "lead.example.com,flux-[0-3],b-[7],c[08-11,20]-x";
        assert_eq!(count(list), 1 + 4 + 1 + 5);
        for host in ["lead.example.com", "flux-0", "flux-3", "b-7", "c08-x", "c11-x", "c20-x"] {
            assert!(contains(list, host), "{host}");
        }
        for host in ["", "flux-4", "flux-", "flux-00", "flux-+1", "b-", "c8-x", "c08", "c12-x", "flux-[0-3]"] {
            assert!(!contains(list, host), "{host}");
        }
        assert_eq!((count(""), count("a-[3-1]"), count("a-[x]")), (0, 0, 0));
    }

    #[test]
    fn a_quorum_is_a_count_of_hosts() {
        assert_eq!(quorum(&["-Stbon.fanout=256"], 4), Ok(4));
        assert_eq!(quorum(&["-Stbon.fanout=256", "-Sbroker.quorum=2"], 4), Ok(2));
        for wrong in ["-Sbroker.quorum=0", "-Sbroker.quorum=5", "-Sbroker.quorum=all"] {
            assert!(quorum(&[wrong], 4).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_certificate_has_two_keys() {
        let key = "k".repeat(40);
        let whole = format!("metadata\ncurve\n    public-key = \"{key}\"\n    secret-key = \"{key}\"\n");
        assert!(is_certificate(&whole));
        assert!(!is_certificate(&whole.replace("secret", "other")));
        assert!(!is_certificate(&whole.replace(&key, "short")));
        assert!(!is_certificate(""));
    }

    #[test]
    fn only_the_runner_is_a_broker() {
        let runs = |words: &[&str]| {
            let command = Some(words.iter().map(|word| (*word).to_owned()).collect());
            runner(&Container { command, ..Container::default() }).is_some()
        };
        assert!(runs(&["/bin/bash", "/flux_operator/wait-0.sh"]) && runs(&["/bin/bash", "/flux_operator/wait-12.sh"]));
        assert!(!runs(&["/bin/bash", "/flux_operator/start-1.sh"]) && !runs(&["/bin/bash", "/flux_operator/wait-.sh"]));
        assert!(!runs(&["/bin/sh", "/flux_operator/wait-0.sh"]) && !runs(&["/bin/bash"]));
        assert!(!runs(&["/bin/bash", "/flux_operator/wait-0.sh", "x"]));
    }
}
