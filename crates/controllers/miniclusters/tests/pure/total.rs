// SPDX-License-Identifier: Apache-2.0
//! What holds for every MiniCluster in every world.

use bivouac_api::flux::{
    Archive, BurstCluster, Bursting, Commands, Container, Flux, FluxContainer, LeadBroker, MiniCluster,
    MiniClusterSpec, MiniClusterStatus, Network, Pod, Scheduler, Volume,
};
use bivouac_core::names;
use bivouac_miniclusters::{Settings, plan::plan};
use jiff::Timestamp;
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use crate::plan::empty;

fn text() -> impl Strategy<Value = String> {
    let usual =
        ["", "a", "a b", "'", "\"", "$(id)", "`id`", "a\nb", "-x", "\\", "/a", "/a:b", "ü", "\0", "}", "[0-1],b"];
    prop_oneof![12 => "[a-z]{1,8}", 1 => select(usual.map(String::from).to_vec()), 1 => any::<String>()]
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![20 => 1..9i32, 1 => -2..1i32, 1 => select(vec![i32::MAX, i32::MIN])]
}

fn rarely() -> impl Strategy<Value = i32> {
    prop_oneof![4 => Just(0), 1 => number()]
}

prop_compose! {
    fn container()(
        texts in vec(text(), 12),
        (run_flux, launcher, batch, batch_raw, wrapped, empty_dir) in any::<(bool, bool, bool, bool, bool, bool)>(),
        ports in vec(number(), 0..3),
        with_volume: bool,
    ) -> Container {
        let text = |index: usize| texts[index].clone();
        let volume = Volume { path: format!("/{}", text(0)), empty_dir, claim_name: text(1), ..Volume::default() };
        let commands = Commands { pre: text(2), post: text(3), prefix: text(4), service_pre: text(5), ..Commands::default() };
        Container {
            name: text(6), command: text(7), logs: text(8), working_dir: text(9), image: text(10),
            run_flux, launcher, batch, batch_raw, no_wrap_entrypoint: wrapped, ports,
            volumes: with_volume.then(|| (text(11), volume)).into_iter().collect(),
            commands: Some(commands),
            ..Container::default()
        }
    }
}

prop_compose! {
    fn flux()(texts in vec(text(), 12), (size, port, other) in (number(), number(), number()), lead: bool) -> Flux {
        let text = |index: usize| texts[index].clone();
        let leader = LeadBroker { address: text(0), name: text(1), size, port };
        let clusters = if lead { Vec::new() } else { vec![BurstCluster { name: text(2), size: other }] };
        Flux {
            container: Some(FluxContainer { name: text(3), mount_path: format!("/{}", text(4)), ..FluxContainer::default() }),
            submit_command: text(5), option_flags: text(6), wrap: text(7), topology: text(8), broker_config: text(9),
            environment: [(text(10), text(11))].into(),
            scheduler: Some(Scheduler { simple: lead, queue_policy: text(0) }),
            bursting: Some(Bursting { lead_broker: lead.then_some(leader), hostlist: String::new(), clusters }),
            ..Flux::default()
        }
    }
}

prop_compose! {
    fn miniclusters()(
        name in prop_oneof![Just("a".to_owned()), text()],
        (size, max_size, min_size, tasks, backoff_limit) in (number(), rarely(), rarely(), number(), rarely()),
        containers in prop_oneof![4 => vec(container(), 1), 1 => vec(container(), 0..3)],
        services in prop_oneof![4 => Just(Vec::new()), 1 => vec(container(), 1)],
        flux in option::of(flux()),
        texts in vec(text(), 3),
        maximum in option::of(number()),
    ) -> MiniCluster {
        let text = |index: usize| texts[index].clone();
        let spec = MiniClusterSpec {
            containers, services, size, max_size, min_size, tasks, backoff_limit, flux,
            network: Some(Network { headless_name: text(0), disable_affinity: false }),
            archive: Some(Archive { path: text(1) }),
            pod: Some(Pod { scheduler_name: text(2), ..Pod::default() }),
            ..MiniClusterSpec::default()
        };
        let mut minicluster = MiniCluster::new(&name, spec);
        minicluster.status = maximum.map(|maximum_size| MiniClusterStatus { maximum_size, ..Default::default() });
        minicluster
    }
}

#[test]
fn a_plan_is_whole_or_says_why_not() {
    let (mut made, mut refused) = (0, 0);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    for _ in 0..runner.config().cases {
        let minicluster = miniclusters().new_tree(&mut runner).unwrap().current();
        if check(&minicluster) { made += 1 } else { refused += 1 }
    }
    assert!(made > 20 && refused > 20, "both must be seen: {made} {refused}");
}

/// Whether it is made.
fn check(minicluster: &MiniCluster) -> bool {
    let plan = plan(minicluster, &empty(), &Settings::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(plan.conditions.len(), 7);
    assert!(plan.conditions.iter().all(|verdict| !verdict.message.is_empty()));
    let Some(job) = plan.children().find(|child| child.resource.kind == "Job") else {
        assert!(!plan.prune, "what is not understood is not removed");
        assert_eq!(plan.children().count(), 0);
        return false;
    };
    let size = job.body["spec"]["parallelism"].as_i64().unwrap();
    let most = i64::from(plan.status.as_ref().unwrap().maximum_size);
    assert!((1..=most).contains(&size), "{size} of {most}: {minicluster:?}");
    for child in plan.children() {
        assert!(names::is_dns1123_label(&child.key.name), "{}: {minicluster:?}", child.key.name);
    }
    true
}
