// SPDX-License-Identifier: Apache-2.0
//! Addresses and ports that services get, each of them once.
//!
//! What is taken is kept in memory and read from the store at the start. A write takes what it needs before its commit and
//! gives it back if the commit fails, so two writers can never have the same.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    field::{Error, Problem},
    kinds::services,
    object::{as_object, child_object},
};

const PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// A range of addresses: the first one and the length of the common part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceRange(pub Ipv4Addr, pub u8);

impl Default for ServiceRange {
    fn default() -> Self {
        Self(Ipv4Addr::new(10, 96, 0, 0), 12)
    }
}

impl ServiceRange {
    fn size(self) -> u32 {
        u32::MAX.checked_shr(u32::from(self.1)).unwrap_or_default()
    }

    fn base(self) -> u32 {
        u32::from(self.0) & !self.size()
    }

    /// The address of the service of the server itself.
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base() + 1)
    }

    fn has(self, address: Ipv4Addr) -> bool {
        let address = u32::from(address);
        address > self.base() && address < self.base() + self.size()
    }
}

#[derive(Debug, Clone, Default)]
struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<u16>,
}

/// What is taken, by all services together.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    range: ServiceRange,
    taken: Arc<Mutex<Taken>>,
}

/// What one write took. It is given back unless the write is kept.
#[derive(Debug, Default)]
#[must_use = "what was taken is given back when this is dropped"]
pub struct Held {
    from: Option<Addresses>,
    addresses: Vec<Ipv4Addr>,
    ports: Vec<u16>,
}

impl Addresses {
    pub fn new(range: ServiceRange) -> Self {
        Self { range, taken: Arc::default() }
    }

    /// The same for a server whose store holds the same.
    pub fn fork(&self) -> Self {
        Self { range: self.range, taken: Arc::new(Mutex::new(self.lock().clone())) }
    }

    pub fn range(&self) -> ServiceRange {
        self.range
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a stored service has.
    pub fn note(&self, service: &Value) {
        let mut taken = self.lock();
        taken.addresses.extend(addresses_of(service));
        taken.ports.extend(ports_of(service));
    }

    /// Frees what a service had and has no more.
    pub fn free(&self, before: &Value, now: Option<&Value>) {
        let mut taken = self.lock();
        let kept: BTreeSet<Ipv4Addr> = now.into_iter().flat_map(addresses_of).collect();
        for one in addresses_of(before).filter(|one| !kept.contains(one)) {
            taken.addresses.remove(&one);
        }
        let kept: BTreeSet<u16> = now.into_iter().flat_map(ports_of).collect();
        for one in ports_of(before).filter(|one| !kept.contains(one)) {
            taken.ports.remove(&one);
        }
    }

    /// Gives a service what its type needs. `random` chooses.
    pub fn allocate(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        mut random: impl FnMut() -> u64,
    ) -> Result<Held, Error> {
        let mut held = Held { from: Some(self.clone()), addresses: Vec::new(), ports: Vec::new() };
        let mut taken = self.lock();
        let outcome = self.address(service, old, &mut taken, &mut held, &mut random);
        let outcome = outcome.and_then(|()| self.node_ports(service, old, &mut taken, &mut held, &mut random));
        drop(taken);
        outcome.map(|()| held)
    }

    fn address(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        taken: &mut Taken,
        held: &mut Held,
        random: &mut impl FnMut() -> u64,
    ) -> Result<(), Error> {
        let spec = child_object(as_object(service), "spec");
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default();
        let own = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !services::needs_address(kind) || own == "None" {
            return Ok(());
        }
        let had: BTreeSet<Ipv4Addr> = old.into_iter().flat_map(addresses_of).collect();
        if own.is_empty() {
            let size = self.range.size();
            let start = u32::try_from(random() % u64::from(size.max(2))).unwrap_or_default();
            let all = (0..size).map(|step| Ipv4Addr::from(self.range.base() + 1 + (start + step) % (size.max(2) - 1)));
            let free = all.into_iter().find(|one| !taken.addresses.contains(one)).ok_or_else(|| full("serviceIP"))?;
            taken.addresses.insert(free);
            held.addresses.push(free);
            spec.insert("clusterIP".into(), free.to_string().into());
            spec.insert("clusterIPs".into(), json!([free.to_string()]));
            return Ok(());
        }
        let refuse = |why: &str| {
            Err(Error::invalid("spec.clusterIPs", json!([own]), format!("failed to allocate IP {own}: {why}")))
        };
        match own.parse::<Ipv4Addr>() {
            Ok(address) if had.contains(&address) => Ok(()),
            Ok(address) if !self.range.has(address) => refuse("the provided network does not match the current range"),
            Ok(address) if taken.addresses.insert(address) => {
                held.addresses.push(address);
                Ok(())
            }
            Ok(_) => refuse("provided IP is already allocated"),
            Err(_) => refuse("the provided network does not match the current range"),
        }
    }

    fn node_ports(
        &self,
        service: &mut Value,
        old: Option<&Value>,
        taken: &mut Taken,
        held: &mut Held,
        random: &mut impl FnMut() -> u64,
    ) -> Result<(), Error> {
        let spec = child_object(as_object(service), "spec");
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default();
        if !services::needs_ports(kind) {
            return Ok(());
        }
        let wanted = kind == "NodePort" || spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false));
        let mut own: BTreeSet<u16> = old.into_iter().flat_map(ports_of).collect();
        let health = services::needs_health_port(spec);
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for (index, port) in ports.into_iter().flatten().enumerate() {
            let path = format!("spec.ports[{index}].nodePort");
            let asked = port.get("nodePort").and_then(Value::as_u64).unwrap_or_default();
            if asked == 0 && !wanted {
                continue;
            }
            let given = take(asked, &path, &mut own, taken, held, random)?;
            as_object(port).insert("nodePort".into(), given.into());
        }
        if health {
            let asked = spec.get("healthCheckNodePort").and_then(Value::as_u64).unwrap_or_default();
            let given = take(asked, "spec.healthCheckNodePort", &mut own, taken, held, random)?;
            spec.insert("healthCheckNodePort".into(), given.into());
        }
        Ok(())
    }
}

/// Nothing is left. That is the server's fault, not the caller's.
fn full(what: &str) -> Error {
    let detail = format!("failed to allocate a {what}: range is full");
    Error { problem: Problem::Internal, ..Error::forbidden("", detail) }
}

/// Takes the port that is asked for, or any. A service may use its own ports twice.
fn take(
    asked: u64,
    path: &str,
    own: &mut BTreeSet<u16>,
    taken: &mut Taken,
    held: &mut Held,
    random: &mut impl FnMut() -> u64,
) -> Result<u16, Error> {
    let refuse = |why: &str| Err(Error::invalid(path, asked, why));
    let port = if asked == 0 {
        let count = PORTS.len() as u64;
        let start = random();
        let all = (0..count)
            .filter_map(|step| u16::try_from(u64::from(*PORTS.start()) + (start % count + step) % count).ok());
        match all.into_iter().find(|port| !taken.ports.contains(port)) {
            Some(port) => port,
            None => return Err(full("nodePort")),
        }
    } else {
        match u16::try_from(asked).ok().filter(|port| PORTS.contains(port)) {
            Some(port) if own.contains(&port) => return Ok(port),
            Some(port) if taken.ports.contains(&port) => return refuse("provided port is already allocated"),
            Some(port) => port,
            None => {
                return refuse("provided port is not in the valid range. The range of valid ports is 30000-32767");
            }
        }
    };
    taken.ports.insert(port);
    held.ports.push(port);
    own.insert(port);
    Ok(port)
}

fn addresses_of(service: &Value) -> impl Iterator<Item = Ipv4Addr> {
    let list = service.pointer("/spec/clusterIPs").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|one| one.as_str()?.parse().ok())
}

fn ports_of(service: &Value) -> impl Iterator<Item = u16> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let ports = ports.filter_map(|port| port.get("nodePort")?.as_u64());
    let health = service.pointer("/spec/healthCheckNodePort").and_then(Value::as_u64);
    ports.chain(health).filter_map(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

impl Held {
    /// The write stands.
    pub fn keep(mut self) {
        self.from = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(from) = &self.from {
            let mut taken = from.lock();
            for one in self.addresses.iter() {
                taken.addresses.remove(one);
            }
            for one in self.ports.iter() {
                taken.ports.remove(one);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str) -> Value {
        json!({ "spec": { "type": kind, "ports": [{ "port": 1 }] } })
    }

    #[test]
    fn every_address_is_given_once_and_comes_back() {
        let addresses = Addresses::new(ServiceRange(Ipv4Addr::new(10, 0, 0, 0), 29));
        let mut held = Vec::new();
        let mut given = BTreeSet::new();
        for seed in 0..6 {
            let mut one = service("ClusterIP");
            held.push(addresses.allocate(&mut one, None, || seed * 7).expect("free"));
            assert!(given.insert(one["spec"]["clusterIP"].to_string()), "{one}");
        }
        addresses.allocate(&mut service("ClusterIP"), None, || 0).expect_err("full");
        held.pop();
        addresses.allocate(&mut service("ClusterIP"), None, || 0).expect("free again").keep();
    }

    #[test]
    fn ports_are_freed_with_the_service_that_had_them() {
        let addresses = Addresses::default();
        let mut one = service("NodePort");
        addresses.allocate(&mut one, None, || 5).expect("free").keep();
        let port = one["spec"]["ports"][0]["nodePort"].clone();
        let mut two = service("NodePort");
        two["spec"]["ports"][0]["nodePort"] = port.clone();
        let error = addresses.allocate(&mut two, None, || 5).expect_err("taken");
        assert_eq!(error.detail, "provided port is already allocated");
        addresses.free(&one, None);
        addresses.allocate(&mut two, None, || 5).expect("free").keep();
    }
}
