// SPDX-License-Identifier: Apache-2.0
//! Addresses of nodes and pods. The same cluster always gets the same ones.

use std::{collections::BTreeSet, net::Ipv4Addr};

use k8s_openapi::api::core::v1::{Node, Pod};

use crate::kinds::View;

/// Each node has 256 addresses for its pods, from here on.
const PODS: u32 = u32::from_be_bytes([10, 244, 0, 0]);
const PER_NODE: u32 = 256;
const RANGES: u32 = 12 * 256;
/// Where a node itself is found: as far from here as its pods are from theirs.
const NODES: u32 = u32::from_be_bytes([172, 18, 0, 2]);

fn range_of(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.pod_cidr.as_deref()
}

/// The first address of a range like `10.244.3.0/24`, and how many there are.
fn parse(range: &str) -> Option<(u32, u32)> {
    let (first, bits) = range.split_once('/')?;
    let bits = bits.parse::<u32>().ok().filter(|bits| (8..=30).contains(bits))?;
    Some((u32::from(first.parse::<Ipv4Addr>().ok()?), 1 << (32 - bits)))
}

/// The lowest range that no node has.
pub fn free_range(view: &View) -> Option<String> {
    let taken: BTreeSet<_> =
        view.nodes.iter().filter_map(|node| parse(range_of(node)?)).map(|(first, _)| first).collect();
    let mut all = (0..RANGES).map(|index| PODS + index * PER_NODE);
    all.find(|first| !taken.contains(first)).map(|first| format!("{}/24", Ipv4Addr::from(first)))
}

/// The address of a node, which follows from the range of its pods.
pub fn of_node(node: &Node) -> String {
    let index = range_of(node).and_then(parse).map_or(0, |(first, _)| first.saturating_sub(PODS) / PER_NODE);
    Ipv4Addr::from(NODES.saturating_add(index)).to_string()
}

/// The lowest address of the node's range that no pod has. The first of a range belongs to the node.
pub fn for_pod(node: &Node, view: &View) -> Option<String> {
    let (first, count) = parse(range_of(node)?)?;
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let taken: BTreeSet<_> = view.pods_on(name).filter_map(|pod| address(pod)).collect();
    let mut all = (first + 2..first + count - 1).map(|one| Ipv4Addr::from(one).to_string());
    all.find(|one| !taken.contains(one.as_str()))
}

fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref()
}
