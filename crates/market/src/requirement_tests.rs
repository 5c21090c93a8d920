// SPDX-License-Identifier: Apache-2.0

use super::*;
use proptest::prelude::*;

fn allowed(operator: &str, values: &[&str]) -> Result<Allowed, RequirementError> {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    Allowed::new("key", operator.parse()?, &values)
}

fn list(all: &[(&str, &str, &[&str])]) -> Requirements {
    let mut list = Requirements::default();
    for (key, operator, values) in all {
        list.add(*key, allowed(operator, values).unwrap());
    }
    list
}

#[test]
fn bad_requirements_say_what_is_wrong() {
    let says = |operator: &str, values: &[&str]| allowed(operator, values).unwrap_err().to_string();
    assert_eq!(says("In", &[]), "key: In needs at least one value");
    assert_eq!(says("Exists", &["a"]), "key: Exists takes no values; there are 1");
    assert_eq!(says("Gt", &["-1"]), "key: Gt needs exactly one whole number that is not negative; found -1");
    assert_eq!(
        says("Lte", &["1", "2"]),
        "key: Lte needs exactly one whole number that is not negative; found 2 values"
    );
    assert_eq!(
        says("near", &["1"]),
        "\"near\" is no operator; there are In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte and Lte"
    );
    let many = (0..=MOST).map(|n| (n.to_string(), "x"));
    let many: Vec<(String, &str)> = many.collect();
    let many = Requirements::of_labels(many.iter().map(|(key, value)| (key.as_str(), *value)));
    assert_eq!(many.check_count().unwrap_err().to_string(), "101 requirements are too many; the most is 100");
}

#[test]
fn a_pool_and_a_pod_meet_where_both_allow_it() {
    let pool = list(&[("gpu", "In", &["H100", "A100"]), ("count", "Lte", &["4"]), ("team", "In", &["red"])]);
    let both = |pod: &[(&str, &str, &[&str])]| pool.and(&list(pod));
    let narrowed = both(&[("gpu", "NotIn", &["A100"]), ("count", "Gte", &["2"])]).unwrap();
    assert!(narrowed.met_by(|key| {
        [("gpu", "H100"), ("count", "4"), ("team", "red")].into_iter().find(|one| one.0 == key).map(|one| one.1)
    }));
    assert!(!narrowed.met_by(|key| {
        [("gpu", "H100"), ("count", "8"), ("team", "red")].into_iter().find(|one| one.0 == key).map(|one| one.1)
    }));
    assert_eq!(both(&[("gpu", "In", &["L4"])]).unwrap_err().to_string(), "gpu: A100, H100 here, L4 there");
    assert_eq!(both(&[("count", "Gt", &["4"])]).unwrap_err().to_string(), "count: at most 4 here, at least 5 there");
    // A key that only the pod has: one that every machine knows, or one that may be missing.
    assert!(both(&[(labels::ARCH, "In", &["arm64"])]).is_ok());
    assert!(both(&[("disk", "NotIn", &["slow"])]).is_ok() && both(&[("disk", "DoesNotExist", &[])]).is_ok());
    assert_eq!(both(&[("disk", "Exists", &[])]).unwrap_err().to_string(), "disk is asked for, and nothing here has it");
    assert!(both(&[("team", "DoesNotExist", &[])]).is_err(), "the pool puts it on every node");
}

#[test]
fn gpus_meet_under_any_name() {
    let gpu = |operator: &str, values: &[&str]| list(&[(labels::GPU_TYPE, operator, values)]);
    let pool = gpu("In", &["A100", "NVIDIA H100 PCIe"]);
    let met = |list: &Requirements, name: &str| {
        let name = name.to_owned();
        list.met_by(|key| (key == labels::GPU_TYPE).then_some(name.as_str()))
    };
    for (pod, yes, no) in [
        (gpu("In", &["NVIDIA_A100_80GB"]), "A100-80GB-SXM", "A100-40GB"),
        (gpu("In", &["h100"]), "H100-PCIE", "H100-SXM"),
        (gpu("NotIn", &["A100-80GB"]), "A100-40GB", "A100-80GB"),
        (gpu("Exists", &[]), "a100", "L4"),
    ] {
        let both = pool.and(&pod).unwrap();
        assert!(met(&both, yes) && !met(&both, no), "{pod:?}");
        assert!(!both.met_by(|_| None));
    }
    assert_eq!(
        pool.and(&gpu("In", &["L4"])).unwrap_err().to_string(),
        "tgp.io/gpu-type: A100, NVIDIA H100 PCIe here, L4 there"
    );
    assert!(pool.and(&gpu("NotIn", &["A100", "H100"])).is_err());
}

#[test]
fn what_contradicts_itself_is_met_by_nobody() {
    let both = list(&[("arch", "In", &["amd64"]), ("arch", "In", &["arm64"])]);
    assert!(!both.met_by(|_| None) && !both.met_by(|_| Some("arm64")));
}

fn any_allowed() -> impl Strategy<Value = Allowed> {
    let values = proptest::collection::vec(prop_oneof!["[0-9]", "[a-c]"], 1..4);
    let operators = prop_oneof![
        Just("In"),
        Just("NotIn"),
        Just("Exists"),
        Just("DoesNotExist"),
        Just("Gt"),
        Just("Lt"),
        Just("Gte"),
        Just("Lte")
    ];
    (operators, values, 0..10_u8).prop_map(|(operator, values, number)| {
        let number = number.to_string();
        let values: Vec<&str> = match operator {
            "In" | "NotIn" => values.iter().map(String::as_str).collect(),
            "Exists" | "DoesNotExist" => Vec::new(),
            _ => vec![number.as_str()],
        };
        allowed(operator, &values).unwrap()
    })
}

proptest! {
    /// Both at once allow exactly what each of them allows.
    #[test]
    fn together_they_allow_what_each_allows(one in any_allowed(), two in any_allowed(), three in any_allowed()) {
        let admits = Allowed::admits;
        let (both, all) = (one.and(&two), one.and(&two).and(&three));
        let candidates: Vec<String> = (0..12).map(|n| n.to_string()).chain(["a", "b", "c", "d"].map(str::to_owned)).collect();
        for value in candidates.iter().map(|value| Some(value.as_str())).chain([None]) {
            prop_assert_eq!(admits(&both, value), admits(&one, value) && admits(&two, value), "{:?}", value);
            prop_assert_eq!(admits(&all, value), admits(&both, value) && admits(&three, value), "{:?}", value);
        }
        prop_assert_eq!(&both, &two.and(&one));
        if both.is_impossible() {
            prop_assert!(candidates.iter().all(|value| !both.has(value)) && !both.may_be_absent());
        }
    }
}
