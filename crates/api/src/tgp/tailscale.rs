// SPDX-License-Identifier: Apache-2.0
//! How a machine joins the tailnet that carries the cluster's traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tailnet of a class's machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TailscaleConfig {
    /// Hostname in the tailnet; made from the claim's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Tags of the device; `tag:k8s` and `tag:gpu` when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether the device goes by itself when the machine is away; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// Whether the machine uses routes of others; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_routes: Option<bool>,
    /// Routes that the machine offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advertise_routes: Vec<String>,
    /// OAuth client that mints keys; the operator's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth_credentials_secret_ref: Option<OAuthSecretRef>,
    /// What the Tailscale operator should set up besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_config: Option<TailscaleOperatorConfig>,
}

/// A Secret with an OAuth client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OAuthSecretRef {
    /// Name of the Secret.
    pub name: String,
    /// Its namespace; the operator's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Key of the client's id; `client-id` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_key: Option<String>,
    /// Key of the client's secret; `client-secret` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_key: Option<String>,
}

/// Use of the Tailscale operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TailscaleOperatorConfig {
    /// Whether to make a Connector; true when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector_enabled: Option<bool>,
    /// What the Connector does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector_spec: Option<ConnectorSpec>,
}

/// What a Tailscale Connector does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectorSpec {
    /// Routes into the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_router: Option<SubnetRouter>,
    /// Whether it is a way out to the internet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<bool>,
    /// Whether it is an app connector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_connector: Option<bool>,
}

/// Routes that a Connector offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetRouter {
    /// The routes in CIDR form.
    pub advertise_routes: Vec<String>,
}
