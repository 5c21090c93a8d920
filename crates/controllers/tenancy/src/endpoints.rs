// SPDX-License-Identifier: Apache-2.0
//! Where a team reaches the platform's services, read from the platform's own Gateways.

use bivouac_engines::gateway::{Gateway, Listener};
use bivouac_runtime::reconcile::Live;

/// The Gateway of the platform's services, as (namespace, name).
pub const SERVICE_GATEWAY: (&str, &str) = ("envoy-gateway-system", "otterscale-gateway");
/// The Gateway of served models.
pub const MODEL_GATEWAY: (&str, &str) = ("kserve", "kserve-gateway");

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    pub service: Option<String>,
    pub model: Option<String>,
}

impl Endpoints {
    pub fn is_empty(&self) -> bool {
        self.service.is_none() && self.model.is_none()
    }
}

pub fn observe(live: &Live<'_>) -> Endpoints {
    // A Gateway that cannot be read has no endpoint to offer.
    let gateway = |(namespace, name)| (*live.get::<Gateway>(namespace, name)?).clone().try_parse::<Gateway>().ok();
    Endpoints {
        service: gateway(SERVICE_GATEWAY).as_ref().and_then(service),
        model: gateway(MODEL_GATEWAY).as_ref().and_then(model),
    }
}

/// The one address that the Gateway asks for. With several there is no telling which one people should use.
fn service(gateway: &Gateway) -> Option<String> {
    match gateway.spec.addresses.as_slice() {
        [only] => only.value.clone(),
        _ => None,
    }
}

/// HTTPS before HTTP; a hostname before an address.
fn model(gateway: &Gateway) -> Option<String> {
    let with = |protocol: &str| gateway.spec.listeners.iter().find(|listener| listener.protocol == protocol);
    let (scheme, listener) =
        with("HTTPS").map(|one| ("https", one)).or_else(|| with("HTTP").map(|one| ("http", one)))?;
    let host = match hostname(listener) {
        Some(hostname) => hostname.to_owned(),
        None => format!("{}:{}", address(gateway)?, listener.port),
    };
    Some(format!("{scheme}://{host}"))
}

/// A wildcard is a pattern, not a place.
fn hostname(listener: &Listener) -> Option<&str> {
    listener.hostname.as_deref().filter(|name| !name.is_empty() && !name.starts_with('*'))
}

fn address(gateway: &Gateway) -> Option<&str> {
    let given = gateway.status.iter().flat_map(|status| &status.addresses);
    given.chain(&gateway.spec.addresses).find_map(|address| address.value.as_deref())
}

#[cfg(test)]
mod tests {
    use super::{Gateway, model, service};
    use serde_json::{Value, json};

    fn gateway(spec: Value, status: Value) -> Gateway {
        serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "g"},
            "spec": spec, "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn the_service_endpoint_is_the_only_address() {
        let one = json!({"addresses": [{"type": "IPAddress", "value": "10.0.0.1"}]});
        assert_eq!(service(&gateway(one, json!({}))).as_deref(), Some("10.0.0.1"));
        let two = json!({"addresses": [{"value": "10.0.0.1"}, {"value": "10.0.0.2"}]});
        assert_eq!(service(&gateway(two, json!({}))), None);
        assert_eq!(service(&gateway(json!({}), json!({}))), None);
    }

    #[test]
    fn the_model_endpoint_prefers_https_and_hostnames() {
        let http = json!({"protocol": "HTTP", "port": 80, "hostname": "plain.example.com"});
        let https = json!({"protocol": "HTTPS", "port": 8443, "hostname": "models.example.com"});
        let bare = json!({"protocol": "HTTPS", "port": 8443, "hostname": "*.example.com"});
        let given = json!({"addresses": [{"value": "192.0.2.1"}]});
        let of = |listeners: Value, status: &Value| model(&gateway(json!({"listeners": listeners}), status.clone()));
        assert_eq!(of(json!([http, https]), &given).as_deref(), Some("https://models.example.com"));
        assert_eq!(of(json!([http]), &given).as_deref(), Some("http://plain.example.com"));
        assert_eq!(of(json!([bare]), &given).as_deref(), Some("https://192.0.2.1:8443"));
        assert_eq!(of(json!([bare]), &json!({})), None, "no address yet");
        assert_eq!(of(json!([{"protocol": "TCP", "port": 1}]), &given), None);
    }
}
