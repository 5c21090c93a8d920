// SPDX-License-Identifier: Apache-2.0
//! The embedded API server as a program of its own, over plain HTTP on loopback, for a quick look with kubectl:
//!
//! ```text
//! cargo run -p bivouac-apiserver --example apiserver -- 127.0.0.1:8001
//! kubectl --server http://127.0.0.1:8001 get namespaces
//! ```
#![allow(clippy::print_stdout, reason = "an example speaks to a person")]

use bivouac_apiserver::{ApiServer, Settings, serve};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8001".to_owned());
    let server = ApiServer::start(Settings::default()).await?;
    let listener = TcpListener::bind(&address).await?;
    println!("http://{}", listener.local_addr()?);
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    Ok(serve(server, listener, None, stop).await?)
}
