// SPDX-License-Identifier: Apache-2.0
//! Prices that somebody knows better than the cloud: agreed ones, or those of a cloud that tells none.

use crate::market::Listing;
use crate::table::{self, TableError};

/// A price list of one's own. Its prices count instead of what the clouds say; it adds no offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPrices(Vec<(String, Listing)>);

// === impl OwnPrices ===

impl OwnPrices {
    /// A file in the form of [`table`]. A line without a region is for all regions, one without a zone for all zones.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let own = |row: crate::Row<'_>| (row.cloud.to_owned(), row.into());
        Ok(Self(table::read(text)?.into_iter().map(own).collect()))
    }

    /// With the clouds' own names instead of those that a person wrote, or what is wrong with one of those.
    pub fn with_names<E>(self, name: impl Fn(&str) -> Result<&'static str, E>) -> Result<Self, E> {
        self.0.into_iter().map(|(cloud, line)| Ok((name(&cloud)?.to_owned(), line))).collect::<Result<_, E>>().map(Self)
    }

    /// Puts our prices into the list of a cloud. Returns how many lines for this cloud name nothing in it.
    pub fn correct(&self, cloud: &str, listings: &mut [Listing]) -> usize {
        let mut lines: Vec<&Listing> = self.0.iter().filter(|(name, _)| name == cloud).map(|(_, line)| line).collect();
        // The more exact one counts, and the later one of two that say the same.
        lines.sort_by_key(|line| (!line.zone.is_empty(), !line.region.is_empty()));
        let fits = |line: &Listing, listing: &Listing| {
            line.machine == listing.machine
                && (line.region.is_empty() || line.region == listing.region)
                && (line.zone.is_empty() || line.zone == listing.zone)
        };
        for listing in &mut *listings {
            let ours: Vec<_> = lines.iter().filter(|line| fits(line, listing)).collect();
            for line in ours {
                listing.on_demand = line.on_demand.or(listing.on_demand);
                listing.spot = line.spot.or(listing.spot);
            }
        }
        lines.iter().filter(|line| !listings.iter().any(|listing| fits(line, listing))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(machine: &str, region: &str, on_demand: &str) -> Listing {
        let (machine, region) = (machine.to_owned(), region.to_owned());
        Listing { machine, region, on_demand: on_demand.parse().ok(), ..Listing::default() }
    }

    fn corrected(lines: &str, mut listings: Vec<Listing>) -> (Vec<String>, usize) {
        let own = OwnPrices::read(&format!("{}\n{lines}", table::HEADER)).unwrap();
        let unused = own.correct("here", &mut listings);
        let price = |price: Option<bivouac_core::Money>| price.map(|price| price.to_string()).unwrap_or_default();
        (listings.iter().map(|one| format!("{}/{}", price(one.on_demand), price(one.spot))).collect(), unused)
    }

    #[test]
    fn the_most_exact_line_counts_whatever_the_order() {
        let offers = || vec![listing("a", "x", "4"), listing("a", "y", "4"), listing("b", "x", "4")];
        for lines in ["here,y,,a,G,1,0,0,2,\nhere,,,a,G,1,0,0,3,", "here,,,a,G,1,0,0,3,\nhere,y,,a,G,1,0,0,2,"] {
            assert_eq!(corrected(lines, offers()).0, ["3.00/", "2.00/", "4.00/"]);
        }
    }

    #[test]
    fn a_line_says_one_price_or_both_and_adds_no_offer() {
        let offers = vec![listing("a", "x", "4")];
        assert_eq!(corrected("here,x,,a,G,1,0,0,,1.5", offers.clone()).0, ["4.00/1.50"]);
        assert_eq!(corrected("here,x,,z,G,1,0,0,1,\nthere,x,,a,G,1,0,0,1,", offers), (vec!["4.00/".to_owned()], 1));
    }

    #[test]
    fn a_cloud_has_more_than_one_name_and_a_wrong_one_is_told() {
        let own = |cloud: &str| OwnPrices::read(&format!("{}\n{cloud},x,,a,G,1,0,0,2,", table::HEADER)).unwrap();
        let name = |name: &str| if name == "Home" { Ok("here") } else { Err(name.to_owned()) };
        assert_eq!(own("Home").with_names(name), Ok(own("here")));
        assert_eq!(own("hier").with_names(name), Err("hier".to_owned()));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert_eq!(OwnPrices::read("a,b"), Err(TableError::Header));
    }
}
