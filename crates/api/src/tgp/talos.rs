// SPDX-License-Identifier: Apache-2.0
//! How a machine becomes a Talos node.

use super::SecretKeyRef;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Talos on the machines of a class, or of one provider of it.
///
/// Three generations are on the wire: a template in the class, a Secret with the whole config, and either. All are
/// accepted. A config without both is accepted too, because the first examples had none; the class then says that it
/// waits for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!(has(self.machineConfigTemplate) && has(self.machineConfigSecretRef))",
    "give machineConfigTemplate or machineConfigSecretRef, not both"
))]
pub struct TalosConfig {
    /// Installer or disk image; the operator's own choice when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Machine config as a Go template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("size(self) > 0", "machineConfigTemplate must not be empty"))]
    pub machine_config_template: Option<String>,
    /// Machine config in a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_config_secret_ref: Option<SecretKeyRef>,
    /// Image of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_image: Option<String>,
}
