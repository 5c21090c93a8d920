// SPDX-License-Identifier: Apache-2.0
//! The kinds that are not plain, as the real server was seen to treat them.

use super::{Rules, budgets, cron, jobs, pod, services, workloads};
use crate::names;

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
    (CORE, Rules { kind: "Namespace", name: names::label, fields: &[("status.phase", "/status/phase")], ..PLAIN }),
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
    (CORE, Rules { kind: "PodTemplate", returns_deleted: true, ..COUNTED }),
    (
        CORE,
        Rules {
            kind: "ReplicationController",
            orphans: true,
            fields: &[("status.replicas", "/status/replicas")],
            ..COUNTED
        },
    ),
    (CORE, Rules { kind: "Secret", fields: &[("type", "/type")], ..PLAIN }),
    (CORE, Rules { kind: "ServiceAccount", returns_deleted: true, ..PLAIN }),
    (
        CORE,
        Rules {
            kind: "Service",
            name: names::label,
            returns_deleted: true,
            fields: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
            prepare_create: services::prepare_create,
            prepare_update: services::prepare_update,
            check: services::check,
            check_update: services::check_update,
            ..PLAIN
        },
    ),
    (CORE, Rules { kind: "Endpoints", create_on_update: true, ..PLAIN }),
    (CORE, Rules { kind: "Event", create_on_update: true, fields: EVENT, ..PLAIN }),
    ("events.k8s.io", Rules { kind: "Event", create_on_update: true, fields: EVENT, ..PLAIN }),
    (CORE, Rules { kind: "LimitRange", create_on_update: true, ..PLAIN }),
    (CORE, Rules { kind: "ResourceQuota", returns_deleted: true, ..PLAIN }),
    (CORE, Rules { kind: "Node", status_apart: false, fields: &[("spec.unschedulable", "/spec/unschedulable")], ..PLAIN }),
    (CORE, Rules { kind: "PersistentVolumeClaim", returns_deleted: true, ..PLAIN }),
    (CORE, Rules { kind: "PersistentVolume", returns_deleted: true, ..PLAIN }),
    (
        APPS,
        Rules {
            kind: "Deployment",
            counts_annotations: true,
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
    (NETWORK, Rules { kind: "Ingress", ..COUNTED }),
    (NETWORK, Rules { kind: "IngressClass", ..COUNTED }),
    (NETWORK, Rules { kind: "NetworkPolicy", ..COUNTED }),
    ("discovery.k8s.io", Rules { kind: "EndpointSlice", ..COUNTED }),
    ("coordination.k8s.io", Rules { kind: "Lease", unconditional_update: false, create_on_update: true, ..PLAIN }),
    (RBAC, Rules { kind: "Role", ..ACCESS }),
    (RBAC, Rules { kind: "ClusterRole", ..ACCESS }),
    (RBAC, Rules { kind: "RoleBinding", ..ACCESS }),
    (RBAC, Rules { kind: "ClusterRoleBinding", ..ACCESS }),
    (STORAGE, Rules { kind: "StorageClass", returns_deleted: true, ..PLAIN }),
    (STORAGE, Rules { kind: "CSIDriver", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "CSINode", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "CSIStorageCapacity", unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "VolumeAttachment", returns_deleted: true, unconditional_update: false, ..PLAIN }),
    (STORAGE, Rules { kind: "VolumeAttributesClass", returns_deleted: true, ..PLAIN }),
    ("scheduling.k8s.io", Rules { kind: "PriorityClass", ..COUNTED }),
    ("node.k8s.io", Rules { kind: "RuntimeClass", unconditional_update: false, create_on_update: true, ..PLAIN }),
    (
        "certificates.k8s.io",
        Rules {
            kind: "CertificateSigningRequest",
            name: names::path_segment,
            fields: &[("spec.signerName", "/spec/signerName")],
            ..PLAIN
        },
    ),
    (ADMISSION, Rules { kind: "ValidatingWebhookConfiguration", unconditional_update: false, ..COUNTED }),
    (ADMISSION, Rules { kind: "MutatingWebhookConfiguration", unconditional_update: false, ..COUNTED }),
    (ADMISSION, Rules { kind: "ValidatingAdmissionPolicy", unconditional_update: false, check: crate::admission::policy::check, ..COUNTED }),
    (ADMISSION, Rules { kind: "ValidatingAdmissionPolicyBinding", unconditional_update: false, ..COUNTED }),
    (ADMISSION, Rules { kind: "MutatingAdmissionPolicy", unconditional_update: false, check: crate::admission::policy::check, ..COUNTED }),
    (ADMISSION, Rules { kind: "MutatingAdmissionPolicyBinding", unconditional_update: false, ..COUNTED }),
    ("apiregistration.k8s.io", Rules { kind: "APIService", unconditional_update: false, ..PLAIN }),
    ("apiextensions.k8s.io", Rules { kind: "CustomResourceDefinition", unconditional_update: false, ..COUNTED }),
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

const EVENT: &[(&str, &str)] = &[
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
