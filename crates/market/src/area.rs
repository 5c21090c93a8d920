// SPDX-License-Identifier: Apache-2.0
//! Which part of the world a region is in, as far as its name tells.
//!
//! Every cloud names regions in its own way: `europe-west4`, `EU-RO-1`, `fra`, `ams1`, `Paris, FR`. People say `eu`.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    Us,
    Canada,
    Europe,
    Asia,
    Australia,
    SouthAmerica,
    MiddleEast,
    Africa,
}

/// What a region's name begins with, or is, in small letters.
const BEGINNINGS: &[(Area, &[&str])] = &[
    (Area::Us, &["us", "usa", "northamerica-south", "nyc", "ny", "sfo", "ca1", "ca2", "atl", "richmond"]),
    (Area::Canada, &["ca", "canada", "northamerica", "tor", "yto", "montreal"]),
    (
        Area::Europe,
        &[
            "eu", "eur", "europe", "uk", "ams", "fra", "lon", "fin", "ice", "par", "waw", "gra", "sbg", "norway",
            "germany",
        ],
    ),
    (Area::Asia, &["ap", "asia", "sgp", "blr", "japan", "korea", "india", "kr", "jp", "tokyo"]),
    (Area::Australia, &["australia", "oceania", "oc", "syd", "mel"]),
    (Area::SouthAmerica, &["southamerica", "sa", "sao", "brazil", "scl"]),
    (Area::MiddleEast, &["me", "il", "israel", "uae", "tlv", "qatar"]),
    (Area::Africa, &["africa", "af", "jnb", "southafrica"]),
];

/// Airports, by which some clouds name regions.
const AIRPORTS: &[(Area, &[&str])] = &[
    (Area::Us, &["ewr", "ord", "dfw", "sea", "lax", "mia", "sjc", "hnl", "den", "iad"]),
    (Area::Europe, &["cdg", "lhr", "mad", "sto", "man", "waw", "ams", "fra"]),
    (Area::Asia, &["nrt", "icn", "itm", "bom", "del", "sgp", "hkg"]),
];

/// Countries behind a city, as in `Paris, FR`.
const COUNTRIES: &[(Area, &[&str])] = &[
    (Area::Us, &["us"]),
    (Area::Canada, &["ca"]),
    (
        Area::Europe,
        &[
            "fr", "de", "nl", "be", "at", "ch", "pl", "cz", "ro", "bg", "hu", "se", "no", "fi", "dk", "es", "pt", "it",
            "gb", "uk", "ie", "is", "ee", "lv", "lt", "gr", "hr", "si", "sk", "ua",
        ],
    ),
    (Area::Asia, &["jp", "kr", "cn", "tw", "hk", "sg", "in", "th", "vn", "my", "id", "ph"]),
    (Area::Australia, &["au", "nz"]),
    (Area::SouthAmerica, &["br", "ar", "cl", "co"]),
    (Area::MiddleEast, &["il", "ae", "sa", "qa", "tr"]),
    (Area::Africa, &["za", "ke", "ng", "eg"]),
];

// === impl Area ===

impl Area {
    pub fn name(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Canada => "canada",
            Self::Europe => "eu",
            Self::Asia => "asia",
            Self::Australia => "australia",
            Self::SouthAmerica => "south-america",
            Self::MiddleEast => "middle-east",
            Self::Africa => "africa",
        }
    }

    /// `None` where the name tells nothing.
    pub fn of(region: &str) -> Option<Self> {
        let lower = region.to_ascii_lowercase();
        if let Some((_, country)) = lower.rsplit_once(", ") {
            return found(COUNTRIES, |word| word == country);
        }
        let first: String = lower.chars().take_while(char::is_ascii_alphabetic).collect();
        let joined: String = lower.split('-').take(2).collect::<Vec<_>>().join("-");
        let exact = |word: &str| word == lower || word == first || joined.starts_with(word) && word.contains('-');
        found(AIRPORTS, |word| word == first)
            .or_else(|| found(BEGINNINGS, exact))
            .or_else(|| found(BEGINNINGS, |word| word.len() > 3 && lower.starts_with(word)))
    }

    /// Whether a region is where somebody wants it: the name itself, a part of it, or its part of the world.
    pub fn is_meant(region: &str, wish: &str) -> bool {
        let (region, wish) = (region.to_ascii_lowercase(), wish.trim().to_ascii_lowercase());
        match Self::of(&region) {
            Some(area) if area.name() == wish => true,
            _ => region == wish || wish.len() > 2 && region.contains(&wish),
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn found(table: &[(Area, &[&str])], is_it: impl Fn(&str) -> bool) -> Option<Area> {
    table.iter().find(|(_, words)| words.iter().any(|word| is_it(word))).map(|(area, _)| *area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_s_names_of_regions() {
        for (area, regions) in [
            (Area::Us, &["us-east-1", "us-west-1", "us-central1", "US-KS-2", "ewr", "ny2", "nyc2", "ca1", "sfo3"][..]),
            (
                Area::Europe,
                &[
                    "eu-north1",
                    "europe-west4",
                    "EU-RO-1",
                    "EUR-IS-1",
                    "ams1",
                    "fra",
                    "FIN-01",
                    "Paris, FR",
                    "europe-central-1",
                    "lhr",
                ],
            ),
            (Area::Canada, &["ca-central-1", "CA-MTL-1", "northamerica-northeast1", "tor1", "Montreal, CA"]),
            (
                Area::Asia,
                &["ap-southeast-1", "asia-east1", "AP-JP-1", "nrt", "icn", "asia-northeast-1", "blr1", "Tokyo, JP"],
            ),
            (Area::Australia, &["australia-east-1", "australia-southeast1", "syd", "OC-AU-1"]),
            (Area::SouthAmerica, &["southamerica-east1", "sa-east-1"]),
            (Area::MiddleEast, &["me-west-1", "me-central1", "il-central-1"]),
            (Area::Africa, &["africa-south1", "af-south-1"]),
        ] {
            for region in regions.iter() {
                assert_eq!(Area::of(region), Some(area), "{region}");
            }
        }
        assert_eq!((Area::of(""), Area::of("somewhere-1"), Area::of("moon")), (None, None, None));
    }

    #[test]
    fn a_wish_is_a_name_a_part_or_an_area() {
        for (region, wish, is) in [
            ("europe-west4", "eu", true),
            ("us-east-1", "eu", false),
            ("us-east-1", "us-east-1", true),
            ("us-east-1", "east", true),
            ("us-west-1", "east", false),
            ("ams1", "EU", true),
            ("me-west-1", "us", false),
            ("asia-east1", "us", false),
            ("anything", "", false),
        ] {
            assert_eq!(Area::is_meant(region, wish), is, "{region} {wish}");
        }
    }
}
