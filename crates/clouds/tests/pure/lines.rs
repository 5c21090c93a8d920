// SPDX-License-Identifier: Apache-2.0
//! Lines that break for real: nobody there, a server that cannot speak TLS, a certificate that nobody signed, an answer
//! that drips.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bivouac_clouds::{Fault, Outcome, find, kit, line};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};

/// Asks a cloud for its offers at an address where it is not well.
async fn asked_at(base: &str) -> Fault {
    let entry = find("lambda").unwrap();
    let credentials = kit::credentials(entry);
    let cloud = (entry.client)(&credentials, line::to_the_world().unwrap(), base).unwrap();
    let fault = cloud.offers().await.unwrap_err();
    assert!(credentials.secrets().all(|secret| !fault.to_string().contains(secret.reveal())), "{fault}");
    fault
}

/// A server that does the same with everybody who comes.
async fn serving<F: Future<Output = ()> + Send + 'static>(
    with: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(with(stream));
        }
    });
    address
}

#[tokio::test]
async fn nobody_is_there() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = asked_at(&format!("http://{address}")).await;
    assert_eq!((fault.outcome, fault.status), (Outcome::Transient, None));
    assert!(fault.says.to_lowercase().contains("refused"), "{fault}");
}

#[tokio::test]
async fn plain_http_where_tls_is_wanted() {
    let address = serving(async |mut stream: TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    assert_eq!(asked_at(&format!("https://{address}")).await.outcome, Outcome::Transient);
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_not_trusted() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = serving(move |stream| {
        let acceptor = acceptor.clone();
        async move { drop(acceptor.accept(stream).await) }
    })
    .await;
    let fault = asked_at(&format!("https://{address}")).await;
    assert_eq!((fault.outcome, fault.status), (Outcome::Transient, None));
    assert!(fault.says.to_lowercase().contains("certificate"), "{fault}");
}

/// Time is virtual, so that nobody has to wait for the end of patience.
#[tokio::test(start_paused = true)]
async fn an_answer_that_drips_is_not_waited_for() {
    let address = serving(async |mut stream: TcpStream| {
        let mut question = [0; 1024];
        let _ = stream.read(&mut question).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{").await;
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let began = tokio::time::Instant::now();
    let fault = asked_at(&format!("http://{address}")).await;
    assert_eq!(fault.outcome, Outcome::Transient, "{fault}");
    let patience = Duration::from_secs(20)..=Duration::from_secs(60);
    assert!(patience.contains(&began.elapsed()), "{:?}", began.elapsed());
}
