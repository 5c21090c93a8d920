// SPDX-License-Identifier: Apache-2.0
//! The models that people rent.

use super::Vendor::{self, Amd, Nvidia};

pub struct Model {
    /// As we write it.
    pub name: &'static str,
    /// What else it is called, brands and separators left out.
    pub aliases: &'static [&'static str],
    pub vendor: Vendor,
    /// How much memory there is with it, smallest first.
    pub memories_gib: &'static [u16],
}

pub const MODELS: &[Model] = &[
    model("A10", &["a10g"], Nvidia, &[24]),
    model("A16", &[], Nvidia, &[16]),
    model("A30", &[], Nvidia, &[24]),
    model("A40", &[], Nvidia, &[48]),
    model("A100", &[], Nvidia, &[40, 80]),
    model("A4000", &["rtxa4000"], Nvidia, &[16]),
    model("A4500", &["rtxa4500"], Nvidia, &[20]),
    model("A5000", &["rtxa5000"], Nvidia, &[24]),
    model("A6000", &["rtxa6000"], Nvidia, &[48]),
    model("B200", &[], Nvidia, &[180, 192]),
    model("B300", &[], Nvidia, &[288]),
    model("GH200", &[], Nvidia, &[96, 144]),
    model("H100", &[], Nvidia, &[80, 94]),
    model("H200", &[], Nvidia, &[141]),
    model("K80", &[], Nvidia, &[12]),
    model("L4", &[], Nvidia, &[24]),
    model("L40", &[], Nvidia, &[48]),
    model("L40S", &[], Nvidia, &[48]),
    model("M60", &[], Nvidia, &[8]),
    model("P4", &[], Nvidia, &[8]),
    model("P100", &[], Nvidia, &[12, 16]),
    model("P4000", &[], Nvidia, &[8]),
    model("P5000", &[], Nvidia, &[16]),
    model("P6000", &[], Nvidia, &[24]),
    model("RTX3090", &["3090"], Nvidia, &[24]),
    model("RTX4000", &[], Nvidia, &[8]),
    model("RTX4090", &["4090"], Nvidia, &[24]),
    model("RTX5000", &[], Nvidia, &[16]),
    model("RTX5090", &["5090"], Nvidia, &[32]),
    model("RTX6000", &[], Nvidia, &[24]),
    model("RTX2000-ADA", &[], Nvidia, &[16]),
    model("RTX4000-ADA", &[], Nvidia, &[20]),
    model("RTX5000-ADA", &[], Nvidia, &[32]),
    model("RTX6000-ADA", &[], Nvidia, &[48]),
    model("RTXPRO4000", &[], Nvidia, &[24]),
    model("RTXPRO4500", &[], Nvidia, &[32]),
    model("RTXPRO5000", &[], Nvidia, &[48, 72]),
    model("RTXPRO6000", &[], Nvidia, &[96]),
    model("T4", &[], Nvidia, &[16]),
    model("T4G", &[], Nvidia, &[16]),
    model("V100", &[], Nvidia, &[16, 32]),
    model("MI250", &[], Amd, &[128]),
    model("MI300X", &[], Amd, &[192]),
    model("MI325X", &[], Amd, &[256]),
    model("MI355X", &[], Amd, &[288]),
];

const fn model(
    name: &'static str,
    aliases: &'static [&'static str],
    vendor: Vendor,
    memories_gib: &'static [u16],
) -> Model {
    Model { name, aliases, vendor, memories_gib }
}

impl Model {
    /// Whether small letters without separators are one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        let same = |one: &str| {
            let letters = one.bytes().filter(|byte| *byte != b'-').map(|byte| byte.to_ascii_lowercase());
            letters.eq(name.bytes())
        };
        same(self.name) || self.aliases.contains(&name)
    }

    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}
