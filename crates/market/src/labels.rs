// SPDX-License-Identifier: Apache-2.0
//! The labels that every machine has, so that a pod may ask for them even where the pool says nothing.

pub const ARCH: &str = "kubernetes.io/arch";
pub const OS: &str = "kubernetes.io/os";
pub const MACHINE: &str = "node.kubernetes.io/instance-type";
pub const TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const GPU_TYPE: &str = "tgp.io/gpu-type";
pub const GPU_COUNT: &str = "tgp.io/gpu-count";
/// Of one GPU, in GiB.
pub const GPU_MEMORY: &str = "tgp.io/gpu-memory";
pub const GPU_VENDOR: &str = "tgp.io/gpu-vendor";
pub const CLOUD: &str = "tgp.io/provider";
pub const REGION: &str = "tgp.io/region";
/// `true` or `false`.
pub const SPOT: &str = "tgp.io/spot";
/// `on-demand` or `spot`.
pub const CAPACITY: &str = "tgp.io/capacity-type";

const WELL_KNOWN: [&str; 13] = [
    ARCH,
    OS,
    MACHINE,
    TOPOLOGY_REGION,
    ZONE,
    GPU_TYPE,
    GPU_COUNT,
    GPU_MEMORY,
    GPU_VENDOR,
    CLOUD,
    REGION,
    SPOT,
    CAPACITY,
];

pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key)
}
