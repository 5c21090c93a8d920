// SPDX-License-Identifier: Apache-2.0
//! The children of a MiniCluster, one pure function per kind. Names and labels are the Go operator's.

mod certificate;
mod container;
mod entrypoint;
mod job;
mod pod;
mod service;
mod services_pod;
mod volume;

pub use certificate::certificate;
pub use entrypoint::entrypoint;
pub use job::{TEMPLATE_ANNOTATION, job};
pub use pod::{APP, JOB_INDEX, pod_template};
pub use service::{headless_service, sidecar_service, sidecar_service_name};
pub use services_pod::services_pod;
