// SPDX-License-Identifier: Apache-2.0

use bivouac_market::{Listing, Market, Reading, Refusal, Wish};
use jiff::SignedDuration;

use crate::prices::{at, row};

fn reading(minute: i64) -> Reading {
    Reading { read_at: at(minute), good_for: SignedDuration::from_mins(15) }
}

fn listed(region: &str, price: &str) -> Vec<Listing> {
    vec![Listing::from(row("", region, "m", "L4", price))]
}

#[test]
fn a_new_list_takes_the_place_of_the_old_one() {
    let market = Market::default();
    market.list("a", listed("r", "0.50"), reading(0));
    market.list("b", listed("r", "0.60"), reading(0));
    let before = market.view();
    market.list("a", listed("r", "0.70"), reading(1));
    let after = market.view();
    let cheapest = |view: &bivouac_market::View| {
        let decision = view.choose(&Wish::default(), at(1), 1).unwrap();
        assert_eq!(decision.snapshot, view.catalogue.snapshot());
        format!("{} {}", view.catalogue.get(decision.choices[0].offer).unwrap().cloud, decision.choices[0].price)
    };
    assert_eq!((cheapest(&before), cheapest(&after)), ("a 0.50".to_owned(), "b 0.60".to_owned()));
    market.list("a", listed("r", "0.70"), reading(2));
    assert!(
        std::sync::Arc::ptr_eq(&market.view().catalogue, &after.catalogue),
        "the same prices are the same catalogue"
    );
    market.drop_cloud("b");
    assert_eq!(cheapest(&market.view()), "a 0.70");
}

#[test]
fn an_old_list_is_not_bought_by() {
    let market = Market::default();
    market.list("a", listed("r", "0.50"), reading(0));
    assert!(market.view().choose(&Wish::default(), at(15), 1).is_ok());
    let survey = market.view().choose(&Wish::default(), at(16), 1).unwrap_err();
    assert_eq!(survey.to_string(), "no offer can be taken: 1 in price lists that are too old");
    market.list("a", listed("r", "0.50"), reading(16));
    assert!(market.view().choose(&Wish::default(), at(16), 1).is_ok());
    assert!(market.view().choose(&Wish::default(), at(-60), 1).is_ok(), "a clock that goes back makes nothing old");
}

#[test]
fn what_was_learned_outlives_the_prices() {
    let market = Market::default();
    market.list("a", listed("r", "0.50"), reading(0));
    let view = market.view();
    market.refused(&view.catalogue.iter().next().unwrap(), Refusal::Quota, at(0));
    market.list("a", listed("r", "0.40"), reading(1));
    assert!(market.view().choose(&Wish::default(), at(2), 1).is_err());
    market.sold(&market.view().catalogue.iter().next().unwrap());
    assert!(market.view().choose(&Wish::default(), at(2), 1).is_ok());
}

/// Questions are answered from a whole catalogue while others take its place.
#[test]
fn nobody_sees_half_a_catalogue() {
    let market = Market::default();
    let list =
        |price: &str| (0..200).map(|n| Listing { region: format!("r{n}"), ..listed("", price).remove(0) }).collect();
    market.list("a", list("1.00"), reading(0));
    let lists: [Vec<Listing>; 2] = [list("1.00"), list("2.00")];
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..50).for_each(|n| market.list("a", lists[n % 2].clone(), reading(0))));
        let mut asked = 0;
        while !writer.is_finished() || asked == 0 {
            let view = market.view();
            let survey = view.survey(&Wish::default(), at(0));
            assert_eq!(survey.open.len(), 200);
            assert!(survey.open.iter().all(|choice| choice.price == survey.open[0].price));
            asked += 1;
        }
    });
}
