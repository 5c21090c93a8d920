// SPDX-License-Identifier: Apache-2.0
//! A real Kubernetes control plane for tests and benches: etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler and KWOK, with TLS and RBAC on, on loopback ports; and Kueue for those who ask.
//!
//! [`components`] builds the servers once into a cache. [`supervisor`] runs them; it is the `testenv` binary, a process
//! of its own, so that a test that is killed leaves nothing running. [`TestCluster`] is what tests use.

pub mod cluster;
pub mod components;
mod crds;
pub mod debian;
mod identity;
mod pki;
mod shared;
pub mod supervisor;

pub use cluster::{Identity, Options, TestCluster, TestNamespace};
pub use components::{Component, cache_dir};
