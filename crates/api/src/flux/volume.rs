// SPDX-License-Identifier: Apache-2.0
//! A volume of a container of a MiniCluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{or_null, unset};

/// A volume and where it is mounted. The kind of volume is told by the field that is set; where several are, the first
/// of these wins: `csiDriver`, `secretName`, `emptyDir`, `hostPath`, `configMapName`, `claimName`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.emptyDir) && self.emptyDir) || (has(self.path) && self.path != '')",
        "message": "a volume must have a path to be mounted at, unless it is an emptyDir",
    },
    {
        "rule": "!has(self.path) || self.path == '' || self.path.startsWith('/')",
        "message": "a volume must be mounted at an absolute path",
    },
    {
        "rule": "!has(self.emptyDirSizeLimit) || self.emptyDirSizeLimit.matches('^[0-9.]*[ekKMGTPEim]*[0-9]*$')",
        "message": "emptyDirSizeLimit is a quantity such as 64Gi",
    },
]))]
pub struct Volume {
    /// Where the volume is mounted.
    #[serde(skip_serializing_if = "unset")]
    pub path: String,
    /// Mount it for reading only.
    pub read_only: bool,
    /// Name of a CSI driver that makes the volume with the pod.
    #[serde(skip_serializing_if = "unset")]
    pub csi_driver: String,
    /// Settings for the CSI driver.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub csi_driver_attributes: BTreeMap<String, String>,
    /// Name of a Secret.
    #[serde(skip_serializing_if = "unset")]
    pub secret_name: String,
    /// An empty directory that goes with the pod.
    pub empty_dir: bool,
    /// Where the empty directory is kept; `memory` for RAM.
    #[serde(skip_serializing_if = "unset")]
    pub empty_dir_medium: String,
    /// Most that the empty directory may hold, such as `64Gi`.
    #[serde(skip_serializing_if = "unset")]
    #[schemars(length(max = 20))]
    pub empty_dir_size_limit: String,
    /// A directory of the node; it must exist.
    #[serde(skip_serializing_if = "unset")]
    pub host_path: String,
    /// Name of a ConfigMap.
    #[serde(skip_serializing_if = "unset")]
    pub config_map_name: String,
    /// Keys of the ConfigMap and the files they become.
    #[serde(deserialize_with = "or_null", skip_serializing_if = "unset")]
    pub items: BTreeMap<String, String>,
    /// Name of a PersistentVolumeClaim.
    #[serde(skip_serializing_if = "unset")]
    pub claim_name: String,
}
