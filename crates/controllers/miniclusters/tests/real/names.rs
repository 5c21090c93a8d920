// SPDX-License-Identifier: Apache-2.0
//! A small server of names: it knows the pods behind headless Services, from what the API server says of them.

use std::net::Ipv4Addr;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, api::ListParams};
use tokio::net::UdpSocket;

const HEADER: usize = 12;
const ADDRESS: u16 = 1;
const UNKNOWN: u8 = 3;

/// Answers until nobody can ask.
pub async fn answer(socket: UdpSocket, client: Client) {
    let mut buffer = [0; 512];
    while let Ok((size, asker)) = socket.recv_from(&mut buffer).await {
        if let Some((name, kind, end)) = question(&buffer[..size]) {
            let reply = reply(&buffer[..end], kind, address(&client, &name).await);
            let _ = socket.send_to(&reply, asker).await;
        }
    }
}

/// The name, what is asked of it, and where the question ends.
fn question(message: &[u8]) -> Option<(String, u16, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*message.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at + 1..=at + length)?).to_lowercase());
        at += length + 1;
    }
    let kind = message.get(at + 1..at + 3)?;
    Some((labels.join("."), u16::from_be_bytes([kind[0], kind[1]]), at + 5))
}

/// A name that is known has no other kind of address: then the answer is empty.
fn reply(question: &[u8], kind: u16, address: Option<Ipv4Addr>) -> Vec<u8> {
    let answers = address.filter(|_| kind == ADDRESS);
    let mut reply = question.to_vec();
    // An answer, by one who has the right to give it.
    reply[2] |= 0x84;
    reply[3] = if address.is_some() { 0 } else { UNKNOWN };
    reply[4..HEADER].copy_from_slice(&[0, 1, 0, u8::from(answers.is_some()), 0, 0, 0, 0]);
    if let Some(address) = answers {
        // The name of the question, an address of the Internet, good for a second.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}

/// `pod.service.namespace.svc.cluster.local`.
async fn address(client: &Client, name: &str) -> Option<Ipv4Addr> {
    let mut parts = name.strip_suffix(".svc.cluster.local")?.split('.');
    let (pod, service, namespace) = (parts.next()?, parts.next()?, parts.next()?);
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace).list(&of_service).await.ok()?;
    let mut all = slices.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    all.find(|one| one.hostname.as_deref() == Some(pod))?.addresses.first()?.parse().ok()
}
