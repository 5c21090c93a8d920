// SPDX-License-Identifier: Apache-2.0
//! The scripts, really run by bash in a directory of their own, with a stand-in for Flux that does what it is told.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use bivouac_miniclusters::{
    Cluster, Settings,
    script::{self, quote::quote},
};
use tempfile::TempDir;

use crate::fixtures::minicluster;

/// Notes its words, one line per call, and runs the program it is given.
const FLUX: &str = r#"#!/bin/bash
{ printf '%s|' "$@"; echo; } >>"$NOTES"
case $1 in
R) echo '{}' ;;
start)
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        -o) shift ;;
        --config) shift 2 ;;
        -S* | --wrap=*) shift ;;
        *) break ;;
        esac
    done
    if [ $# -eq 0 ]; then
        code=${WORKER_CODE:-0}
        if [ -e "$NOTES.once" ]; then code=0; fi
        touch "$NOTES.once"
        exit "$code"
    fi
    "$@"
    ;;
broker)
    trap 'exit 129' TERM
    sleep 30 <&- >&- 2>&- &
    wait
    ;;
submit)
    case " $* " in
    *' --watch '*) while [ "$1" != --watch ]; do shift; done; shift; "$@" ;;
    esac
    ;;
batch) bash ./flux-job.batch ;;
job) exit "${WAIT_CODE:-0}" ;;
esac
"#;

pub struct Pod {
    pub folder: TempDir,
    pub script: String,
    pub sidecars: Vec<String>,
}

impl Pod {
    /// A pod whose image has Flux.
    pub fn new(yaml: &str) -> Self {
        Self::made(yaml, true)
    }

    /// A pod whose init container has run: twice, as after a restart of its sandbox.
    fn made(yaml: &str, disable: bool) -> Self {
        Self::with(yaml, disable, &Settings::default())
    }

    fn with(yaml: &str, disable: bool, settings: &Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().display().to_string();
        let mut minicluster = minicluster(yaml);
        let flux = minicluster.spec.flux.get_or_insert_default();
        let view = flux.container.get_or_insert_default();
        (view.mount_path, view.disable) = (format!("{base}/mnt"), disable);
        let cluster = Cluster::of(&minicluster, minicluster.spec.size, settings).unwrap();
        let runner = script::runner(&cluster).replace("/flux_operator/", &format!("{base}/"));
        let runner = runner.replace("/tmp/fluxout", &format!("{base}/fluxout"));
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("curve.cert"), "secret").unwrap();
        let bin = if disable { "bin" } else { "opt/views/._view/abc/bin" };
        for path in
            [bin, "opt/views/._view/abc/lib/python3.11", "opt/views/._view/abc/etc/flux/rc1.d", "opt/software/x"]
        {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        executable(&folder.path().join(bin).join("flux"), FLUX);
        let sidecars = cluster.sidecars.iter().map(|placed| script::sidecar(&cluster, *placed)).collect();
        let pod = Self { folder, script: runner, sidecars };
        for _ in 0..2 {
            let init = script::init(&cluster).replace("/opt/", &format!("{base}/opt/"));
            let out = pod.bash(&init, "any", &[]).wait_with_output().unwrap();
            assert!(out.status.success(), "{}", text(&out.stderr));
        }
        pod
    }

    pub fn command(&self, script: &str, host: &str) -> Command {
        let file = self.folder.path().join("script.sh");
        fs::write(&file, script).unwrap();
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.arg(file).current_dir(&self.folder).stdin(Stdio::null());
        bash.envs([("HOSTNAME", host), ("PATH", &path), ("NOTES", &self.path("notes"))]);
        bash
    }

    pub fn bash(&self, script: &str, host: &str, env: &[(&str, &str)]) -> Child {
        let mut bash = self.command(script, host);
        bash.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn lead(&self, env: &[(&str, &str)]) -> Output {
        self.bash(&self.script, "flux-sample-0", env).wait_with_output().unwrap()
    }

    fn worker(&self, env: &[(&str, &str)]) -> Output {
        self.bash(&self.script, "flux-sample-1", env).wait_with_output().unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn executable(path: &Path, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUIET: &str = "logging: {quiet: true}\n";

#[test]
fn a_quiet_cluster_prints_the_work_and_nothing_else() {
    let pod = Pod::new(&format!(
        "{QUIET}containers: [{{command: echo hello world, commands: {{init: 'echo a\necho b', pre: \"echo c\\necho d\\n\", \
         brokerPre: 'echo e; echo f >&2', post: echo hello post}}}}]"
    ));
    let out = pod.lead(&[]);
    assert_eq!((text(&out.stdout), text(&out.stderr)), ("hello world\nhello post\n".into(), String::new()));
    assert!(pod.read("notes").contains("start|-o|--config|"), "{}", pod.read("notes"));
    assert!(pod.read("notes").contains("|flux|submit|-N|1|-n1|--quiet|--watch|echo|hello|world|\n"));
}

#[test]
fn flux_can_come_with_the_view() {
    let print = "sh -c 'echo $FLUX_RC_EXTRA $PYTHONPATH'";
    for (simple, extra) in [("false", "MNT/view/etc/flux "), ("true", "")] {
        let pod = Pod::made(
            &format!("{QUIET}flux: {{scheduler: {{simple: {simple}}}}}\ncontainers: [{{command: \"{print}\"}}]"),
            false,
        );
        let out = pod.lead(&[("PYTHONPATH", "/own")]);
        let expected = format!("{extra}/own:MNT/view/lib/python3.11/site-packages\n").replace("MNT", &pod.path("mnt"));
        assert_eq!(text(&out.stdout), expected, "{}", text(&out.stderr));
        assert!(pod.folder.path().join("mnt/software/x").exists());
        assert!(!pod.folder.path().join("mnt/view/bin/bin").exists(), "copied once, not into itself");
    }
}

#[test]
fn the_view_can_stay_in_its_image() {
    let settings = Settings { view_by_image: true, ..Settings::default() };
    let print = "sh -c 'echo $PYTHONPATH'";
    let pod = Pod::with(&format!("{QUIET}containers: [{{command: \"{print}\"}}]"), false, &settings);
    let out = pod.lead(&[("PYTHONPATH", "/own")]);
    let expected = format!("/own:{}/view/lib/python3.11/site-packages\n", pod.path("mnt"));
    assert_eq!(text(&out.stdout), expected, "{}", text(&out.stderr));
    for (link, target) in [("mnt/view", "opt/views/._view/abc"), ("mnt/software", "opt/software")] {
        let link = fs::read_link(pod.folder.path().join(link)).unwrap();
        assert_eq!(link, pod.folder.path().join(target), "nothing is copied, though the script ran twice");
    }
}

#[test]
fn defect_1_the_exit_code_of_the_work_is_the_pods() {
    for (command, code) in [("true", 0), ("sh -c 'exit 3'", 3), ("no-such-program", 127), ("sh -c 'exit 137'", 1)] {
        for launcher in [true, false] {
            let pod = Pod::new(&format!("containers: [{{command: \"{command}\", launcher: {launcher}}}]"));
            assert_eq!(pod.lead(&[]).status.code(), Some(code), "{command}");
        }
    }
}

#[test]
fn defect_1_a_batch_fails_with_its_jobs() {
    let pod = Pod::new("containers: [{batch: true, command: \"echo 1\\n\\necho '2  3' $(id)\"}]");
    assert_eq!(pod.lead(&[]).status.code(), Some(0));
    let notes = pod.read("notes");
    let out = pod.path("fluxout");
    let line = |index: u8, words: &str| {
        format!("submit|--flags|waitable|--error={out}/job-{index}.err|--output={out}/job-{index}.out|{words}\n")
    };
    assert!(notes.contains(&line(0, "echo|1|")), "{notes}");
    assert!(notes.contains(&line(2, "echo|2  3|$(id)|")), "{notes}");
    assert!(notes.contains("batch|-N|1|-n1|--flags|waitable|./flux-job.batch|\n"), "{notes}");
    assert!(!pod.lead(&[("WAIT_CODE", "4")]).status.success());
}

#[test]
fn a_raw_batch_is_taken_as_it_is() {
    let pod = Pod::new("containers: [{batch: true, batchRaw: true, command: \"echo \\\"$HOSTNAME\\\"\\nexit 5\"}]");
    let out = pod.lead(&[]);
    assert_eq!(out.status.code(), Some(5));
    assert!(text(&out.stdout).ends_with("flux-sample-0\n"), "{}", text(&out.stdout));
}

#[test]
fn defect_4_the_certificate_is_not_printed_and_only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let pod = Pod::new("size: 1");
    let out = pod.lead(&[]);
    assert!(!text(&out.stdout).contains("secret") && !text(&out.stderr).contains("secret"));
    let file = pod.folder.path().join("mnt/config/curve/curve.cert");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(file).unwrap(), "secret");
}

#[test]
fn defect_7_the_job_gets_exactly_the_words_that_were_written() {
    let command = r#"printf %s| '$(touch owned)' "a  \"b" ; rm * `id` $HOSTNAME ünï"#;
    let pod = Pod::new(&format!("{QUIET}containers: [{{launcher: true, command: {}}}]", yaml(command)));
    assert_eq!(text(&pod.lead(&[]).stdout), "$(touch owned)|a  \"b|;|rm|*|`id`|flux-sample-0|ünï|");
    assert!(!pod.folder.path().join("owned").exists());
}

#[test]
fn nothing_runs_that_was_not_asked_for() {
    for hostile in ["$(touch owned)", "`touch owned`", "a; touch owned", "a\ntouch owned\n", "'\"; touch owned; '\""] {
        let [value, word] = [yaml(hostile), yaml(&quote(hostile))];
        let pod = Pod::new(&format!(
            "archive: {{path: {value}}}\nflux: {{submitCommand: {word}, optionFlags: {word}, wrap: {value}, topology: \
             {value}, connectTimeout: {value}, brokerConfig: {value}, environment: {{A: {value}}}, scheduler: \
             {{queuePolicy: {value}}}, bursting: {{hostlist: {value}}}, container: {{pythonPath: {value}}}}}\n\
             containers: [{{command: {word}, commands: {{prefix: {word}}}}}]"
        ));
        pod.lead(&[]);
        pod.worker(&[]);
        let view = format!(". {}/mnt/flux-view.sh; printf %s \"$A\"", pod.folder.path().display());
        let out = pod.bash(&view, "flux-sample-0", &[]).wait_with_output().unwrap();
        assert_eq!(text(&out.stdout), hostile);
        assert!(!pod.folder.path().join("owned").exists(), "{hostile}");
        assert_eq!(pod.read("mnt/config/etc/flux/config/broker.toml"), hostile);
        assert!(pod.read("notes").contains(&format!("|-Stbon.topo={hostile}|")), "{}", pod.read("notes"));
    }
}

#[test]
fn defect_7_a_script_is_written_as_it_is() {
    let script = "printf '%s\\n' \"$HOSTNAME\" \\$ `echo x`\nexit 6\n";
    let pod = Pod::new(&format!("{QUIET}containers: [{{launcher: true, commands: {{script: {}}}}}]", yaml(script)));
    let out = pod.lead(&[]);
    assert_eq!((text(&out.stdout), out.status.code()), ("flux-sample-0\n$\nx\n".into(), Some(6)));
}

#[test]
fn defect_7_a_broken_block_cannot_change_the_lines_around_it() {
    let pod = Pod::new(&format!("{QUIET}containers: [{{command: echo work, commands: {{pre: '}}; fi; if \"'}}}}]"));
    assert_eq!(text(&pod.lead(&[]).stdout), "work\n");
}

#[test]
fn a_block_may_change_the_command_the_options_and_the_directory() {
    let pre = "mkdir -p sub; cd sub; command=\"$command $MORE\"; export MORE='b c'; brokerOptions+=' -Smine=1'";
    let pod = Pod::new(&format!("{QUIET}containers: [{{command: echo $PWD, commands: {{pre: {}}}}}]", yaml(pre)));
    let out = pod.lead(&[("MORE", "a")]);
    assert_eq!(text(&out.stdout), format!("{} a\n", pod.path("sub")));
    assert!(pod.read("notes").contains("|-Smine=1|"));
}

#[test]
fn defect_14_a_wish_to_stop_reaches_the_broker() {
    let pod = Pod::new("interactive: true\ncontainers: [{image: a, commands: {post: touch posted}}]");
    let begin = Instant::now();
    let mut lead = pod.bash(&pod.script, "flux-sample-0", &[]);
    until(|| pod.read("notes").contains("broker|--config-path|"));
    std::thread::sleep(Duration::from_millis(200));
    assert!(Command::new("kill").arg(lead.id().to_string()).status().unwrap().success());
    assert_eq!(lead.wait().unwrap().code(), Some(143));
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(pod.folder.path().join("posted").exists());
}

#[test]
fn defect_14_the_archive_is_read_if_it_is_there_and_written_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("my archive").display().to_string();
    let pod = Pod::new(&format!("archive: {{path: '{archive}'}}"));
    pod.lead(&[]);
    assert!(pod.read("notes").contains(&format!("|-Scontent.dump={archive}|")));
    assert!(!pod.read("notes").contains("restore"));
    fs::write(&archive, "").unwrap();
    pod.lead(&[]);
    assert!(pod.read("notes").contains(&format!("|-Scontent.restore={archive}|-Scontent.dump={archive}|")));
    fs::remove_file(pod.folder.path().join("notes")).unwrap();
    pod.worker(&[]);
    assert!(!pod.read("notes").contains("content."), "only the lead holds the state");
}

#[test]
fn defect_15_the_configuration_is_written_anew_each_time() {
    let pod = Pod::new("size: 2\nflux: {brokerConfig: \"[a]\\nb = '$HOME'\\n\"}");
    assert_eq!(pod.read("mnt/config/etc/flux/config/broker.toml"), "[a]\nb = '$HOME'\n");
    assert_eq!(pod.read("mnt/config/etc/flux/system/hostlist"), "flux-sample-[0-1]\n");
}

#[test]
fn defect_16_strict_mode_keeps_post_and_the_code() {
    let pod = Pod::new(
        "logging: {quiet: true, strict: true}\ncontainers: [{command: sh -c 'exit 3', commands: {post: \
                        echo post}}]",
    );
    let out = pod.lead(&[]);
    assert_eq!((text(&out.stdout), out.status.code()), ("post\n".into(), Some(3)), "{}", text(&out.stderr));
    let pod =
        Pod::new("logging: {strict: true}\ncontainers: [{command: touch ran, commands: {pre: \"false\\ntrue\"}}]");
    assert!(!pod.lead(&[]).status.success());
    assert!(!pod.folder.path().join("ran").exists());
}

#[test]
fn workers_start_again_soon_and_leave_the_verdict_to_the_lead() {
    let pod =
        Pod::new("size: 2\ncontainers: [{command: never, commands: {workerPre: touch pre, brokerPre: touch no}}]");
    let begin = Instant::now();
    assert_eq!(pod.worker(&[("WORKER_CODE", "1")]).status.code(), Some(0));
    assert!((1..10).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    assert_eq!(pod.read("notes").matches("start|").count(), 2);
    assert!(pod.folder.path().join("pre").exists() && !pod.folder.path().join("no").exists());
    let pod = Pod::new("size: 2\nflux: {completeWorkers: true}");
    assert_eq!(pod.worker(&[("WORKER_CODE", "1")]).status.code(), Some(0));
    assert_eq!(pod.read("notes").matches("start|").count(), 1);
}

/// Until something is true, but not for ever.
pub fn until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn timed_runs_need_no_program_of_the_image() {
    let pod = Pod::new("logging: {quiet: true, timed: true}\ncontainers: [{command: sh -c 'exit 3'}]");
    let out = pod.lead(&[]);
    assert_eq!(out.status.code(), Some(3));
    let told = text(&out.stderr);
    assert!(told.contains("FLUXTIME fluxsubmit wall time 0:0"), "{told}");
    assert!(told.contains("FLUXTIME fluxstart wall time 0:0"), "{told}");
}

#[test]
fn a_missing_certificate_is_a_clear_failure() {
    let pod = Pod::new("size: 1");
    fs::remove_file(pod.folder.path().join("curve.cert")).unwrap();
    let out = pod.lead(&[]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("cannot start the broker: this failed: op_keep"), "{}", text(&out.stderr));
}

/// A text as YAML can hold it: JSON is a part of YAML.
fn yaml(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
