// SPDX-License-Identifier: Apache-2.0
//! The kinds that are not plain, as the real server was seen to treat them.

use super::{
    Rules, access, budgets, certificates, config, cron, events, jobs, namespaces, network, pod, quotas, scheduling,
    services, storage, workloads,
};
use crate::{definitions, names};

const PLAIN: Rules = Rules::PLAIN;
const COUNTED: Rules = Rules { generation: true, ..PLAIN };
const CORE: &str = "";
const APPS: &str = "apps";
const BATCH: &str = "batch";
const NETWORK: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const DEVICES: &str = "resource.k8s.io";

/// A role or a binding: its name is a segment of a path, and an update may create it.
const ACCESS: Rules = Rules { name: names::path_segment, create_on_update: true, ..PLAIN };

pub static RULES: &[(&str, Rules)] = &[
    (
        CORE,
        Rules {
            kind: "Namespace",
            name: names::label,
            fields: &[("status.phase", "/status/phase")],
            prepare_create: namespaces::prepare_create,
            prepare_update: namespaces::prepare_update,
            check: namespaces::check,
            parts: &[namespaces::FINALIZE],
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "ConfigMap", check: config::config_map, check_update: config::config_map_update, ..PLAIN }),
    (
        CORE,
        Rules {
            kind: "Pod",
            returns_deleted: true,
            fields: POD,
            prepare_create: pod::prepare_create,
            prepare_status: pod::prepare_status,
            check: pod::check,
            check_create: pod::check_create,
            check_update: pod::check_update,
            check_status: pod::check_status,
            grace: Some(pod::grace),
            parts: &[pod::EPHEMERAL, pod::RESIZE],
            ..COUNTED
        },
    ),
    (CORE, Rules { kind: "PodTemplate", returns_deleted: true, check: pod::check_template, ..COUNTED }),
    (
        CORE,
        Rules {
            kind: "ReplicationController",
            orphans: true,
            fields: &[("status.replicas", "/status/replicas")],
            ..COUNTED
        },
    ),
    (
        CORE,
        Rules {
            kind: "Secret",
            fields: &[("type", "/type")],
            prepare_update: config::secret_prepare_update,
            check: config::secret,
            check_update: config::secret_update,
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "ServiceAccount", returns_deleted: true, ..PLAIN }),
    (
        CORE,
        Rules {
            kind: "Service",
            name: names::label,
            returns_deleted: true,
            fields: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
            prepare_create: services::change::prepare_create,
            prepare_update: services::change::prepare_update,
            check: services::check,
            warn: services::warn,
            check_update: services::check_update,
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "Endpoints", create_on_update: true, ..PLAIN }),
    (CORE, Rules { kind: "Event", create_on_update: true, fields: EVENT, check: events::check, ..PLAIN }),
    (
        "events.k8s.io",
        Rules {
            kind: "Event",
            create_on_update: true,
            fields: EVENT,
            stored_as: Some("v1"),
            to_stored: events::to_stored,
            from_stored: events::from_stored,
            check_create: events::check_new,
            check_update: events::check_new_update,
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "LimitRange", create_on_update: true, check: quotas::limits, ..PLAIN }),
    (CORE, Rules { kind: "ResourceQuota", returns_deleted: true, check: quotas::quota, ..PLAIN }),
    (
        CORE,
        Rules { kind: "Node", status_apart: false, fields: &[("spec.unschedulable", "/spec/unschedulable")], ..PLAIN },
    ),
    (
        CORE,
        Rules {
            kind: "PersistentVolumeClaim",
            returns_deleted: true,
            prepare_create: storage::prepare_create,
            check: storage::claim,
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "PersistentVolume", returns_deleted: true, ..PLAIN }),
    (
        APPS,
        Rules {
            kind: "Deployment",
            counts_annotations: true,
            prepare_status: workloads::deployment_status,
            status_resets: &[&["spec"], &["metadata", "labels"]],
            check: workloads::deployment,
            check_update: workloads::fixed_selector,
            ..COUNTED
        },
    ),
    (
        APPS,
        Rules {
            kind: "ReplicaSet",
            fields: &[("status.replicas", "/status/replicas")],
            check: workloads::replica_set,
            check_update: workloads::fixed_selector,
            ..COUNTED
        },
    ),
    (
        APPS,
        Rules {
            kind: "DaemonSet",
            prepare_create: workloads::daemon_set_create,
            prepare_update: workloads::daemon_set_update,
            check: workloads::daemon_set,
            check_update: workloads::fixed_selector,
            ..COUNTED
        },
    ),
    (
        APPS,
        Rules {
            kind: "StatefulSet",
            name: names::label,
            prepare_create: workloads::stateful_set_create,
            check: workloads::stateful_set,
            check_update: workloads::stateful_set_update,
            ..COUNTED
        },
    ),
    (
        BATCH,
        Rules {
            kind: "Job",
            orphans: true,
            fields: &[("status.successful", "/status/succeeded")],
            check: jobs::check,
            check_update: jobs::check_update,
            ..COUNTED
        },
    ),
    (BATCH, Rules { kind: "CronJob", check: cron::check, check_create: cron::check_create, ..COUNTED }),
    (NETWORK, Rules { kind: "Ingress", check: network::ingress, ..COUNTED }),
    (NETWORK, Rules { kind: "IngressClass", ..COUNTED }),
    (NETWORK, Rules { kind: "NetworkPolicy", check: network::policy, ..COUNTED }),
    (
        "discovery.k8s.io",
        Rules {
            kind: "EndpointSlice",
            check: network::endpoint_slice,
            check_update: network::endpoint_slice_update,
            ..COUNTED
        },
    ),
    (
        "coordination.k8s.io",
        Rules { kind: "Lease", unconditional_update: false, create_on_update: true, check: scheduling::lease, ..PLAIN },
    ),
    (RBAC, Rules { kind: "Role", check: access::role, ..ACCESS }),
    (RBAC, Rules { kind: "ClusterRole", check: access::cluster_role, ..ACCESS }),
    (RBAC, Rules { kind: "RoleBinding", check: access::role_binding, check_update: access::binding_update, ..ACCESS }),
    (
        RBAC,
        Rules {
            kind: "ClusterRoleBinding",
            check: access::cluster_role_binding,
            check_update: access::binding_update,
            ..ACCESS
        },
    ),
    (STORAGE, Rules { kind: "StorageClass", returns_deleted: true, ..PLAIN }),
    (STORAGE, Rules { kind: "CSIDriver", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "CSINode", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "CSIStorageCapacity", unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "VolumeAttachment", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "VolumeAttributesClass", returns_deleted: true, ..PLAIN }),
    (
        "scheduling.k8s.io",
        Rules {
            kind: "PriorityClass",
            check: scheduling::priority,
            check_update: scheduling::priority_update,
            ..COUNTED
        },
    ),
    ("node.k8s.io", Rules { kind: "RuntimeClass", unconditional_update: false, create_on_update: true, ..PLAIN }),
    (
        "certificates.k8s.io",
        Rules {
            kind: "CertificateSigningRequest",
            name: names::path_segment,
            fields: &[("spec.signerName", "/spec/signerName")],
            parts: &[certificates::APPROVAL],
            ..PLAIN
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "ValidatingWebhookConfiguration",
            unconditional_update: false,
            check: crate::admission::policy::form::hooks,
            ..COUNTED
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "MutatingWebhookConfiguration",
            unconditional_update: false,
            check: crate::admission::policy::form::hooks,
            ..COUNTED
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "ValidatingAdmissionPolicy",
            unconditional_update: false,
            check: crate::admission::policy::form::policy,
            ..COUNTED
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "ValidatingAdmissionPolicyBinding",
            unconditional_update: false,
            check: crate::admission::policy::form::binding,
            ..COUNTED
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "MutatingAdmissionPolicy",
            unconditional_update: false,
            check: crate::admission::policy::form::policy,
            ..COUNTED
        },
    ),
    (
        ADMISSION,
        Rules {
            kind: "MutatingAdmissionPolicyBinding",
            unconditional_update: false,
            check: crate::admission::policy::form::binding,
            ..COUNTED
        },
    ),
    ("apiregistration.k8s.io", Rules { kind: "APIService", unconditional_update: false, ..PLAIN }),
    (
        "apiextensions.k8s.io",
        Rules {
            kind: "CustomResourceDefinition",
            unconditional_update: false,
            prepare_create: definitions::prepare_create,
            prepare_update: definitions::prepare_update,
            check: definitions::check::check,
            check_update: definitions::check::check_update,
            ..COUNTED
        },
    ),
    (DEVICES, Rules { kind: "DeviceClass", returns_deleted: true, ..COUNTED }),
    (DEVICES, Rules { kind: "ResourceClaim", returns_deleted: true, ..PLAIN }),
    (DEVICES, Rules { kind: "ResourceClaimTemplate", returns_deleted: true, ..PLAIN }),
    (
        DEVICES,
        Rules {
            kind: "ResourceSlice",
            returns_deleted: true,
            fields: &[("spec.driver", "/spec/driver"), ("spec.nodeName", "/spec/nodeName")],
            ..COUNTED
        },
    ),
    ("flowcontrol.apiserver.k8s.io", Rules { kind: "FlowSchema", ..COUNTED }),
    ("flowcontrol.apiserver.k8s.io", Rules { kind: "PriorityLevelConfiguration", ..COUNTED }),
    (
        "policy",
        Rules {
            kind: "PodDisruptionBudget",
            name: names::path_segment,
            unconditional_update: false,
            prepare_create: budgets::prepare_create,
            check: budgets::check,
            ..COUNTED
        },
    ),
];

const POD: &[(&str, &str)] = &[
    ("spec.hostNetwork", "/spec/hostNetwork"),
    ("spec.nodeName", "/spec/nodeName"),
    ("spec.restartPolicy", "/spec/restartPolicy"),
    ("spec.schedulerName", "/spec/schedulerName"),
    ("spec.serviceAccountName", "/spec/serviceAccountName"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIP"),
];

/// In the form in which events are stored, with the names of both kinds.
const EVENT: &[(&str, &str)] = &[
    ("regarding.apiVersion", "/involvedObject/apiVersion"),
    ("regarding.fieldPath", "/involvedObject/fieldPath"),
    ("regarding.kind", "/involvedObject/kind"),
    ("regarding.name", "/involvedObject/name"),
    ("regarding.namespace", "/involvedObject/namespace"),
    ("regarding.resourceVersion", "/involvedObject/resourceVersion"),
    ("regarding.uid", "/involvedObject/uid"),
    ("reportingController", "/reportingComponent"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("source", "/source/component"),
    ("type", "/type"),
];
