// SPDX-License-Identifier: Apache-2.0
//! A container image as an OCI archive: one layer with one program. The same program gives the same bytes.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const USER: &str = "65532:65532";
const EPOCH: &str = "1970-01-01T00:00:00Z";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

pub struct Image {
    version: String,
    layer: Blob,
    config: Blob,
    manifest: Blob,
}

struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Image {
    /// `arch` in Rust's spelling.
    pub fn of(program: &[u8], version: &str, arch: &str) -> Result<Self> {
        let layer = Blob::new(tar([("bivouac", 0o755, program)])?);
        let arch = match arch {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let labels = json!({
            "org.opencontainers.image.title": "bivouac",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": "Apache-2.0",
        });
        let config = Blob::json(&json!({
            "architecture": arch,
            "os": "linux",
            "created": EPOCH,
            "config": {"User": USER, "Entrypoint": ["/bivouac"], "WorkingDir": "/", "Labels": labels},
            // The layer is not compressed, so its digest is that of its content.
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
            "history": [{"created": EPOCH, "created_by": "cargo xtask dist"}],
        }))?;
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor(CONFIG_TYPE),
            "layers": [layer.descriptor(LAYER_TYPE)],
        }))?;
        Ok(Self { version: version.to_owned(), layer, config, manifest })
    }

    /// What the image is called where only its content counts.
    pub fn digest(&self) -> &str {
        &self.manifest.digest
    }

    pub fn archive(&self) -> Result<Vec<u8>> {
        let mut manifest = self.manifest.descriptor(MANIFEST_TYPE);
        if let Some(fields) = manifest.as_object_mut() {
            fields.insert("annotations".into(), json!({"org.opencontainers.image.ref.name": self.version}));
        }
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [manifest],
        });
        let index = serde_json::to_vec(&index)?;
        let blobs = [&self.layer, &self.config, &self.manifest].map(|blob| (blob.path(), 0o644, blob.bytes.as_slice()));
        let fixed = [
            ("oci-layout".to_owned(), 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#.as_slice()),
            ("index.json".to_owned(), 0o644, index.as_slice()),
        ];
        tar(fixed.into_iter().chain(blobs))
    }
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let hash = Sha256::digest(&bytes);
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest: format!("sha256:{hex}"), bytes }
    }

    fn json(value: &Value) -> Result<Self> {
        Ok(Self::new(serde_json::to_vec(value)?))
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest, "size": self.bytes.len()})
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

/// Names, modes and contents; owner and time are always the same.
fn tar<'a>(files: impl IntoIterator<Item = (impl AsRef<str>, u32, &'a [u8])>) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, mode, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(mode);
        header.set_size(u64::try_from(bytes.len())?);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, name.as_ref(), bytes)?;
    }
    Ok(archive.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::{Blob, Image};
    use serde_json::Value;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            let mut bytes = Vec::new();
            Read::read_to_end(&mut entry, &mut bytes).unwrap();
            (entry.path().unwrap().display().to_string(), bytes)
        };
        archive.entries().unwrap().map(read).collect()
    }

    /// Follows a descriptor, and checks that it tells the truth.
    fn follow<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
        assert_eq!(Blob::new(bytes.clone()).digest, digest);
        assert_eq!(descriptor["size"], bytes.len());
        bytes
    }

    #[test]
    fn the_index_leads_to_the_program() {
        let image = Image::of(b"a program", "1.2.3", "x86_64").unwrap();
        let files = unpack(&image.archive().unwrap());
        assert_eq!(files.len(), 5, "{:?}", files.keys());
        assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["digest"], image.digest());
        let manifest: Value = serde_json::from_slice(follow(&files, &index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(follow(&files, &manifest["config"])).unwrap();
        let layer = follow(&files, &manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(config["architecture"], "amd64");
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"][0], "/bivouac");
        assert_eq!(unpack(layer), BTreeMap::from([("bivouac".to_owned(), b"a program".to_vec())]));
        let mode = tar::Archive::new(layer).entries().unwrap().next().unwrap().unwrap().header().mode().unwrap();
        assert_eq!(mode, 0o755);
    }

    #[test]
    fn the_same_program_gives_the_same_bytes() {
        let image = |program: &[u8]| Image::of(program, "1.2.3", "x86_64").unwrap().archive().unwrap();
        assert_eq!(image(b"a"), image(b"a"));
        assert_ne!(image(b"a"), image(b"b"));
    }
}
