// SPDX-License-Identifier: Apache-2.0
//! The CURVE certificate by which the brokers of one cluster know each other. A key pair comes from 32 random bytes that
//! the caller brings; everything after that is arithmetic.

use std::fmt;

use crypto_box::SecretKey;

/// The text of a certificate file.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate(String);

/// The key stays out of logs.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(..)")
    }
}

impl Certificate {
    /// Keys as Flux reads them. `host` is the lead broker; Flux takes no underscore in a value.
    pub fn new(seed: [u8; 32], host: &str) -> Self {
        let secret = SecretKey::from(seed);
        let host: String = host.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).collect();
        Self(format!(
            "#   ****  Made by Bivouac: the brokers of one MiniCluster share this key.  ****\n\
             metadata\n    name = \"flux-cert-generator\"\n    keygen.hostname = \"{host}\"\n\
             curve\n    public-key = \"{}\"\n    secret-key = \"{}\"\n",
            z85::encode(secret.public_key().as_bytes()),
            z85::encode(secret.to_bytes()),
        ))
    }

    /// A certificate that a user wrote, or that was stored before. `None` when Flux would not take it.
    pub fn read(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='))?;
            line.trim().strip_prefix('"')?.strip_suffix('"')
        };
        let key = |name: &str| <[u8; 32]>::try_from(z85::decode(value(name)?).ok()?).ok();
        let pair = SecretKey::from(key("secret-key")?).public_key().as_bytes() == &key("public-key")?;
        let section = |name: &str| text.lines().any(|line| line.trim_end() == name);
        let short = text.lines().all(|line| line.len() < 256);
        (pair && section("metadata") && section("curve") && short).then(|| Self(text.to_owned()))
    }

    pub fn as_text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Certificate;

    /// A pair that libsodium made and that brokers run with; it is in the contracts' sample of a custom configuration.
    const UPSTREAM: &str = "metadata\n    name = \"flux-cert-generator\"\n    keygen.hostname = \"flux-sample-0\"\n\
        curve\n    public-key = \"}D{Y3<amLLl*TIt>@b*umPD-nBr#I}[PnV!lZBkW\"\n    \
        secret-key = \"5khD%TixeW<j<6ssPNG>s<nY1E}5)fyk@TI)g8Xu\"\n";

    #[test]
    fn a_pair_of_libsodium_is_a_pair_for_us() {
        assert!(Certificate::read(UPSTREAM).is_some());
    }

    #[test]
    fn our_own_certificate_can_be_read() {
        let made = Certificate::new([7; 32], "a_b-0");
        assert_eq!(Certificate::read(made.as_text()), Some(made.clone()));
        assert!(made.as_text().contains("keygen.hostname = \"ab-0\""), "no underscore: Flux refuses it");
        assert_eq!(made, Certificate::new([7; 32], "a_b-0"), "the same bytes give the same certificate");
        assert_ne!(made, Certificate::new([8; 32], "a_b-0"));
    }

    #[test]
    fn what_flux_refuses_is_refused() {
        let wrong_pair = UPSTREAM.replace("5khD", "5khE");
        let no_metadata = UPSTREAM.replace("metadata", "");
        for text in ["", "curve\n", &wrong_pair, &no_metadata, &UPSTREAM.replace("public-key", "key")] {
            assert_eq!(Certificate::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_key_is_not_in_debug_texts() {
        assert_eq!(format!("{:?}", Certificate::new([7; 32], "a")), "Certificate(..)");
    }
}
