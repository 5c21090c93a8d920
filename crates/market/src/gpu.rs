// SPDX-License-Identifier: Apache-2.0
//! What GPUs are called: every cloud has words of its own for the same chip.
//!
//! A name is read as words: who makes it and the brand say nothing, then comes the model, then how much memory it has
//! and how it is mounted. `NVIDIA A100-SXM4-80GB`, `a100_80gb_sxm4` and `A100-80G` are the same. A name that does not
//! read like this is a name of its own, and fits itself.

use std::fmt;

use models::{MODELS, Model};

mod models;

/// A GPU as somebody names it: the one to be had, or the one that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gpu {
    Known(Known),
    /// Not in our list, in small letters and without separators.
    Other(String),
}

/// A GPU of a model that we know. What the name leaves open is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Known {
    model: usize,
    memory_gib: Option<u16>,
    form: Option<Form>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    Nvidia,
    Amd,
}

/// How it is mounted, which decides how fast it speaks to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    Pcie,
    Sxm,
    Nvl,
    Oam,
    /// For servers, for desks: the same chip with another fan.
    Server,
    Workstation,
}

/// Words before the model that say nothing about it.
const BRANDS: [&str; 8] = ["nvidia", "amd", "geforce", "tesla", "instinct", "quadro", "gpu", "graphics"];
/// Words behind it that say nothing either.
const NOISE: [&str; 7] = ["generation", "blackwell", "hbm2", "hbm2e", "hbm3", "hbm3e", "mega"];

// === impl Gpu ===

impl Gpu {
    /// Reads a name in anybody's spelling.
    pub fn named(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let words = words.iter().position(|word| !BRANDS.contains(word)).and_then(|first| words.get(first..));
        let words = words.unwrap_or_default();
        known(words).map_or_else(|| Self::Other(words.concat()), Self::Known)
    }

    /// Whether this one will do for somebody who wants that one: what the wish leaves open may be anything.
    pub fn fits(&self, wish: &Self) -> bool {
        match (self, wish) {
            (Self::Known(one), Self::Known(wish)) => {
                one.model == wish.model
                    && wish.memory_gib.is_none_or(|wanted| one.memory_gib() == Some(wanted))
                    && wish.form.is_none_or(|wanted| one.form == Some(wanted))
            }
            (one, wish) => one == wish,
        }
    }

    /// The memory of one of them, where the name or the model tells.
    pub fn memory_gib(&self) -> Option<u16> {
        match self {
            Self::Known(known) => known.memory_gib(),
            Self::Other(_) => None,
        }
    }

    /// However it is mounted.
    pub fn chip(&self) -> Self {
        match self {
            Self::Known(known) => Self::Known(Known { form: None, ..*known }),
            other => other.clone(),
        }
    }

    pub fn vendor(&self) -> Option<Vendor> {
        match self {
            Self::Known(known) => known.entry().map(|entry| entry.vendor),
            Self::Other(_) => None,
        }
    }
}

/// `A100-80GB`, `H100-SXM`, `RTX4090`: the name that we use. It reads as the same GPU.
impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self {
            Self::Other(name) => return f.pad(name),
            Self::Known(known) => known,
        };
        let mut name = known.entry().map_or_else(String::new, |entry| entry.name.to_owned());
        let several = known.entry().is_some_and(|entry| entry.memories_gib.len() > 1);
        if let Some(memory) = known.memory_gib.filter(|_| several) {
            name.push_str(&format!("-{memory}GB"));
        }
        if let Some(form) = known.form {
            name.push_str(form.suffix());
        }
        f.pad(&name)
    }
}

// === impl Known ===

impl Known {
    fn entry(&self) -> Option<&'static Model> {
        MODELS.get(self.model)
    }

    /// What the name says, or what every one of the model has.
    fn memory_gib(&self) -> Option<u16> {
        let only = |entry: &'static Model| match entry.memories_gib {
            [only] => Some(*only),
            _ => None,
        };
        self.memory_gib.or_else(|| only(self.entry()?))
    }
}

impl Vendor {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
        }
    }
}

impl Form {
    fn read(word: &str) -> Option<Self> {
        match word {
            "pcie" => Some(Self::Pcie),
            "nvl" => Some(Self::Nvl),
            "oam" => Some(Self::Oam),
            "se" => Some(Self::Server),
            "wk" => Some(Self::Workstation),
            // sxm, sxm2, … sxm6
            _ => word.strip_prefix("sxm").filter(|rest| rest.len() <= 1).map(|_| Self::Sxm),
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Pcie => "-PCIE",
            Self::Sxm => "-SXM",
            Self::Nvl => "-NVL",
            Self::Oam => "-OAM",
            Self::Server => "-SE",
            Self::Workstation => "-WK",
        }
    }
}

/// The model is the longest beginning that one has as its name; every word behind it must mean something.
fn known(words: &[&str]) -> Option<Known> {
    let (words, last) = without_count(words);
    let words: Vec<&str> = words.iter().copied().chain(last).collect();
    let (model, used) = (1..=words.len()).rev().find_map(|used| {
        let name = words.get(..used)?.concat();
        MODELS.iter().position(|model| model.is_called(&name)).map(|model| (model, used))
    })?;
    let mut known = Known { model, memory_gib: None, form: None };
    for word in words.get(used..)? {
        match (memory(word), Form::read(word)) {
            (Some(memory), _) => known.memory_gib = Some(memory),
            (_, Some(form)) => known.form = Some(form),
            _ if NOISE.contains(word) => {}
            _ => return None,
        }
    }
    Some(known)
}

/// Machine types say how many there are, as in `a100-80gx8`: that is not part of the name.
fn without_count<'a>(words: &'a [&'a str]) -> (&'a [&'a str], Option<&'a str>) {
    let Some((last, before)) = words.split_last() else { return (words, None) };
    let counted = last.rsplit_once('x').filter(|(name, count)| {
        !name.is_empty() && matches!(count.len(), 1 | 2) && count.bytes().all(|byte| byte.is_ascii_digit())
    });
    (before, Some(counted.map_or(*last, |(name, _)| name)))
}

fn memory(word: &str) -> Option<u16> {
    let number = word.strip_suffix("gb").or_else(|| word.strip_suffix("gib")).or_else(|| word.strip_suffix('g'))?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Gpu::named(text).to_string()
    }

    /// The table of names by cloud: ours first, then everybody's.
    const TABLE: &[(&str, &[&str])] = &[
        ("RTX3090", &["NVIDIA GeForce RTX 3090", "RTX 3090", "RTX3090", "rtx_3090"]),
        ("RTX4090", &["NVIDIA GeForce RTX 4090", "RTX 4090", "rtx4090"]),
        ("RTX5090", &["NVIDIA GeForce RTX 5090", "RTX 5090"]),
        ("A4000", &["NVIDIA RTX A4000", "A4000", "RTX A4000", "RTXA4000"]),
        ("A5000", &["NVIDIA RTX A5000", "A5000", "RTX A5000"]),
        ("A6000", &["NVIDIA RTX A6000", "a6000", "A6000x4", "RTX A6000"]),
        ("A10", &["a10", "A10", "A10G", "NVIDIA A10"]),
        ("A16", &["NVIDIA_A16"]),
        ("A40", &["NVIDIA A40", "NVIDIA_A40", "A40"]),
        ("L4", &["NVIDIA L4", "nvidia-l4", "L4", "NVIDIA_L4"]),
        ("L40S", &["NVIDIA L40S", "NVIDIA_L40S", "l40s"]),
        ("T4", &["Tesla T4", "nvidia-tesla-t4", "NVIDIA_T4"]),
        ("V100", &["v100", "nvidia-tesla-v100", "Tesla V100", "V100x2"]),
        ("V100-32GB", &["V100-32G", "V100-32Gx4", "V100-32GB"]),
        ("V100-32GB-SXM", &["Tesla V100-SXM2-32GB"]),
        ("A100", &["A100", "a100", "nvidia-tesla-a100", "NVIDIA_A100"]),
        ("A100-SXM", &["a100_sxm4", "A100 SXM4"]),
        ("A100-PCIE", &["A100 PCIE"]),
        ("A100-80GB", &["A100-80G", "A100-80Gx8", "nvidia-a100-80gb", "NVIDIA_A100_80GB"]),
        ("A100-80GB-PCIE", &["NVIDIA A100 80GB PCIe"]),
        ("A100-80GB-SXM", &["NVIDIA A100-SXM4-80GB", "a100_80gb_sxm4", "A100-80GB-SXM"]),
        ("H100", &["H100", "H100x8", "NVIDIA_H100"]),
        ("H100-80GB", &["nvidia-h100-80gb", "NVIDIA H100 80GB HBM3", "NVIDIA_H100_80GB", "nvidia-h100-mega-80gb"]),
        ("H100-PCIE", &["NVIDIA H100 PCIe", "h100_pcie", "H100 PCIE"]),
        ("H100-SXM", &["h100_sxm5", "H100 SXM"]),
        ("H100-NVL", &["NVIDIA H100 NVL", "H100 NVL"]),
        ("H200", &["NVIDIA H200", "nvidia-h200-141gb", "H200"]),
        ("H200-NVL", &["NVIDIA H200 NVL"]),
        ("B200", &["NVIDIA B200", "nvidia-b200", "B200"]),
        ("B200-SXM", &["b200_sxm6"]),
        ("GH200", &["gh200"]),
        ("MI300X", &["AMD_MI300X", "mi300x"]),
        ("MI300X-OAM", &["AMD Instinct MI300X OAM"]),
        ("MI325X", &["AMD_MI325X"]),
        ("P100", &["NVIDIA_P100"]),
        ("P4", &["NVIDIA_P4"]),
        ("K80", &["NVIDIA_K80"]),
        ("RTX6000-ADA", &["NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada"]),
    ];

    #[test]
    fn everybody_s_name_is_ours() {
        for (ours, theirs) in TABLE {
            for one in *theirs {
                assert_eq!(name(one), *ours, "{one}");
            }
            assert_eq!(name(ours), *ours, "our own name reads as itself");
        }
    }

    #[test]
    fn a_wish_leaves_open_what_it_does_not_say() {
        let fits = |one: &str, wish: &str| Gpu::named(one).fits(&Gpu::named(wish));
        assert!(fits("NVIDIA A100-SXM4-80GB", "A100") && fits("a100", "A100"));
        assert!(fits("A100-80GB-SXM", "A100-80GB") && !fits("A100-40GB", "A100-80GB"));
        assert!(!fits("A100", "A100-80GB"), "nobody knows which one it is");
        assert!(fits("H200", "H200-141GB"), "there is no other");
        assert!(fits("H100-SXM", "H100") && !fits("H100-PCIE", "H100-SXM") && !fits("H200", "H100"));
    }

    #[test]
    fn a_strange_name_fits_itself_alone() {
        let fits = |one: &str, wish: &str| Gpu::named(one).fits(&Gpu::named(wish));
        for strange in
            ["tpu-v5p-8", "Inferentia2", "PRO-6000-MIG-48GB", "H100-MIG-1g.10gb", "Radeon Pro V520", "", "A100-blue"]
        {
            assert!(matches!(Gpu::named(strange), Gpu::Other(_)), "{strange}: {:?}", Gpu::named(strange));
            assert!(fits(strange, strange) && !fits(strange, "A100") && !fits("A100", strange));
        }
        assert!(fits("TPU v5p 8", "tpu-v5p-8"), "separators and case do not matter");
    }

    #[test]
    fn memory_comes_from_the_name_or_the_model() {
        let memory = |name: &str| Gpu::named(name).memory_gib();
        assert_eq!(
            (memory("A100-80GB"), memory("A100"), memory("L40S"), memory("tpu")),
            (Some(80), None, Some(48), None)
        );
        assert_eq!(Gpu::named("mi300x").vendor(), Some(Vendor::Amd));
        assert_eq!(Gpu::named("T4").vendor(), Some(Vendor::Nvidia));
    }

    #[test]
    fn no_two_models_share_a_name() {
        let mut seen = std::collections::BTreeMap::new();
        for model in MODELS {
            for name in model.names() {
                assert_eq!(seen.insert(name.to_ascii_lowercase().replace('-', ""), model.name), None, "{name}");
            }
            assert!(!model.memories_gib.is_empty() && model.memories_gib.is_sorted());
        }
        for form in [Form::Pcie, Form::Sxm, Form::Nvl, Form::Oam, Form::Server, Form::Workstation] {
            assert_eq!(Form::read(&form.suffix().to_ascii_lowercase().replace('-', "")), Some(form));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_some_gpu_and_reads_as_itself(text in ".{0,40}") {
            let gpu = Gpu::named(&text);
            proptest::prop_assert!(gpu.fits(&gpu));
            proptest::prop_assert_eq!(Gpu::named(&gpu.to_string()), gpu);
        }
    }
}
