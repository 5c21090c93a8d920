// SPDX-License-Identifier: Apache-2.0
//! Cells of networks, nodes, storage and events.

use serde_json::Value;

use super::{
    age,
    cells::{Row, some},
    nodes,
};
use crate::object::{Object, text};

impl Row<'_> {
    pub(super) fn network(&self, column: &str) -> Value {
        match (self.kind, column) {
            ("Service", "Type") => self.text("/spec/type").into(),
            ("Service", "Cluster-IP") => match self.text("/spec/type") {
                "ExternalName" => "<none>".into(),
                _ => self.or_none("/spec/clusterIP"),
            },
            ("Service", "External-IP") => self.external_address(),
            ("Service", "Port(s)") => self.service_ports(),
            ("Service", "Selector") => self.labels("/spec/selector"),
            ("Endpoints", "Endpoints") => "<none>".into(),
            ("EndpointSlice", "AddressType") => self.text("/addressType").into(),
            ("EndpointSlice", "Ports") => {
                let ports = self
                    .list("/ports")
                    .iter()
                    .map(|port| port.get("port").map_or_else(|| "*".into(), Value::to_string));
                some(ports.collect(), "<unset>")
            }
            ("EndpointSlice", "Endpoints") => {
                let all = self.list("/endpoints").iter().filter_map(|one| one.get("addresses")?.as_array());
                some(all.flatten().filter_map(Value::as_str).map(str::to_owned).collect(), "<unset>")
            }
            ("Ingress", "Class") => self.or_none("/spec/ingressClassName"),
            ("Ingress", "Hosts") => {
                let hosts =
                    self.list("/spec/rules").iter().map(|rule| text(rule, "/host")).filter(|host| !host.is_empty());
                some(hosts.map(str::to_owned).collect(), "*")
            }
            ("Ingress", "Address") => {
                let all = self.list("/status/loadBalancer/ingress").iter();
                let texts: Vec<&str> = all
                    .map(|one| if text(one, "/ip").is_empty() { text(one, "/hostname") } else { text(one, "/ip") })
                    .collect();
                texts.join(",").into()
            }
            ("Ingress", "Ports") => if self.list("/spec/tls").is_empty() { "80" } else { "80, 443" }.into(),
            ("IngressClass", "Controller") => self.text("/spec/controller").into(),
            ("IngressClass", "Parameters") => self.or_none("/spec/parameters/name"),
            ("NetworkPolicy", "Pod-Selector") => self.selector("/spec/podSelector"),
            ("IPAddress", "ParentRef") => {
                let part = |field: &str| self.text(&format!("/spec/parentRef/{field}"));
                [part("resource"), part("namespace"), part("name")].join("/").into()
            }
            ("ServiceCIDR", "CIDRs") => {
                some(self.list("/spec/cidrs").iter().filter_map(Value::as_str).map(str::to_owned).collect(), "<none>")
            }
            _ => Value::Null,
        }
    }

    fn external_address(&self) -> Value {
        let given: Vec<String> =
            self.list("/spec/externalIPs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        match self.text("/spec/type") {
            "ExternalName" => self.text("/spec/externalName").into(),
            "LoadBalancer" => {
                let mut all: Vec<String> = self
                    .list("/status/loadBalancer/ingress")
                    .iter()
                    .map(|one| {
                        if text(one, "/ip").is_empty() { text(one, "/hostname") } else { text(one, "/ip") }.to_owned()
                    })
                    .collect();
                all.extend(given);
                some(all, "<pending>")
            }
            _ => some(given, "<none>"),
        }
    }

    fn service_ports(&self) -> Value {
        let ports = self.list("/spec/ports").iter().map(|port| {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            let node = match number("nodePort") {
                0 => String::new(),
                node => format!(":{node}"),
            };
            format!("{}{node}/{}", number("port"), text(port, "/protocol"))
        });
        some(ports.collect(), "<none>")
    }

    pub(super) fn node(&self, column: &str) -> Value {
        let info = |field: &str| match self.text(&format!("/status/nodeInfo/{field}")) {
            "" => Value::from("<unknown>"),
            found => found.into(),
        };
        match column {
            "Status" => nodes::status(self.object).into(),
            "Roles" => nodes::roles(self.object).into(),
            "Version" => self.text("/status/nodeInfo/kubeletVersion").into(),
            "Internal-IP" => nodes::address(self.object, "InternalIP").into(),
            "External-IP" => nodes::address(self.object, "ExternalIP").into(),
            "OS-Image" => info("osImage"),
            "Kernel-Version" => info("kernelVersion"),
            "Container-Runtime" => info("containerRuntimeVersion"),
            _ => Value::Null,
        }
    }

    pub(super) fn storage(&self, column: &str) -> Value {
        let modes = || {
            let short = |mode: &str| match mode {
                "ReadWriteOnce" => "RWO",
                "ReadOnlyMany" => "ROX",
                "ReadWriteMany" => "RWX",
                "ReadWriteOncePod" => "RWOP",
                _ => "",
            };
            let pointer = if self.kind == "PersistentVolume" { "/spec/accessModes" } else { "/status/accessModes" };
            let texts: Vec<&str> = self.list(pointer).iter().filter_map(Value::as_str).map(short).collect();
            Value::from(texts.join(","))
        };
        match (self.kind, column) {
            (_, "Status") if self.object.is_going() => "Terminating".into(),
            (_, "Status") => self.text("/status/phase").into(),
            ("PersistentVolumeClaim", "Volume") => self.text("/spec/volumeName").into(),
            ("PersistentVolumeClaim", "Capacity") => self.text("/status/capacity/storage").into(),
            ("PersistentVolume", "Capacity") => self.text("/spec/capacity/storage").into(),
            (_, "Access Modes") => modes(),
            (_, "Reclaim Policy") => self.text("/spec/persistentVolumeReclaimPolicy").into(),
            ("PersistentVolume", "Claim") => {
                match (self.text("/spec/claimRef/namespace"), self.text("/spec/claimRef/name")) {
                    (_, "") => "".into(),
                    (namespace, name) => format!("{namespace}/{name}").into(),
                }
            }
            (_, "StorageClass") => self.text("/spec/storageClassName").into(),
            (_, "VolumeAttributesClass") => self.or_unset("/spec/volumeAttributesClassName"),
            (_, "Reason") => self.text("/status/reason").into(),
            (_, "VolumeMode") => self.or_unset("/spec/volumeMode"),
            (_, "Provisioner") => self.text("/provisioner").into(),
            (_, "ReclaimPolicy") => self.text("/reclaimPolicy").into(),
            (_, "VolumeBindingMode") => self.text("/volumeBindingMode").into(),
            (_, "AllowVolumeExpansion") => self.flag("/allowVolumeExpansion").into(),
            (_, "DriverName") => self.text("/driverName").into(),
            (_, "Attacher") => self.text("/spec/attacher").into(),
            (_, "PV") => self.text("/spec/source/persistentVolumeName").into(),
            (_, "Node") => self.text("/spec/nodeName").into(),
            (_, "Attached") => self.flag("/status/attached").into(),
            (_, "Drivers") => self.size("/spec/drivers").into(),
            _ => Value::Null,
        }
    }

    pub(super) fn event(&self, column: &str) -> Value {
        let (first, last) = (self.text("/firstTimestamp"), self.text("/lastTimestamp"));
        let at = self.text("/eventTime");
        let pick = |time: &'_ str| if time.is_empty() { at.to_owned() } else { time.to_owned() };
        let count = self.number("/count").max(self.number("/series/count"));
        match column {
            "Last Seen" => {
                let series = self.text("/series/lastObservedTime");
                age::since(&if series.is_empty() { pick(last) } else { series.to_owned() }, self.now).into()
            }
            "Type" => self.text("/type").into(),
            "Reason" => self.text("/reason").into(),
            "Object" => {
                let kind = self.text("/involvedObject/kind").to_lowercase();
                format!("{kind}/{}", self.text("/involvedObject/name")).into()
            }
            "Subobject" => self.text("/involvedObject/fieldPath").into(),
            "Source" => match (self.text("/source/component"), self.text("/source/host")) {
                ("", _) => self.text("/reportingComponent").into(),
                (component, "") => component.into(),
                (component, host) => format!("{component}, {host}").into(),
            },
            "Message" => self.text("/message").trim().into(),
            "First Seen" => age::since(&pick(first), self.now).into(),
            "Count" => count.max(1).into(),
            _ => Value::Null,
        }
    }
}
