// SPDX-License-Identifier: Apache-2.0
//! Writes every CRD as YAML into the directory given as argument.

use std::{error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("usage: print_crds DIR")?);
    fs::create_dir_all(&dir)?;
    for crd in bivouac_api::crds() {
        let file = format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
        fs::write(dir.join(file), serde_saphyr::to_string(&crd)?)?;
    }
    Ok(())
}
