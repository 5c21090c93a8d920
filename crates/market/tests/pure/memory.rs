// SPDX-License-Identifier: Apache-2.0

use bivouac_market::{Catalogue, Memory, Refusal, Row, Wish};

use crate::prices::{at, readings, row, situation};

/// Two zones of one region, another region, another cloud; cheapest first.
fn catalogue() -> Catalogue {
    let zone = |zone, price| Row { zone, ..row("a", "east", "m", "L4", price) };
    Catalogue::new(&[
        zone("1", "0.50"),
        zone("2", "0.51"),
        row("a", "west", "m", "L4", "0.52"),
        row("b", "east", "m", "L4", "0.53"),
    ])
}

fn chosen(memory: &Memory, minute: i64) -> String {
    let catalogue = catalogue();
    let readings = readings(&catalogue);
    match catalogue.choose(&Wish::default(), situation(memory, &readings, minute), 1) {
        Ok(decision) => {
            let offer = catalogue.get(decision.choices[0].offer).unwrap();
            format!("{} {} {}", offer.cloud, offer.region, offer.zone)
        }
        Err(survey) => survey.to_string(),
    }
}

fn after(refusals: &[Refusal]) -> Memory {
    let (catalogue, mut memory) = (catalogue(), Memory::default());
    let first = catalogue.iter().min_by_key(|offer| offer.price).unwrap();
    refusals.iter().for_each(|why| memory.refused(&first, *why, at(0)));
    memory
}

#[test]
fn what_was_refused_rests() {
    assert_eq!(chosen(&after(&[]), 0), "a east 1");
    for (why, next, minutes) in [
        (Refusal::Capacity, "a east 2", 3),
        (Refusal::Quota, "a west ", 15),
        (Refusal::Payment, "b east ", 10),
        (Refusal::Unauthorized, "b east ", 10),
    ] {
        let memory = after(&[why]);
        assert_eq!(chosen(&memory, 0), next, "{why:?}");
        assert_eq!(chosen(&memory, minutes - 1), next, "{why:?}");
        assert_eq!(chosen(&memory, minutes), "a east 1", "{why:?} is over");
        assert_eq!(memory.next_wake(at(0)), Some(at(minutes)));
    }
}

#[test]
fn a_sale_ends_every_rest() {
    let catalogue = catalogue();
    let first = catalogue.iter().min_by_key(|offer| offer.price).unwrap();
    let mut memory = after(&[Refusal::Capacity, Refusal::Quota, Refusal::Payment]);
    memory.sold(&first);
    assert_eq!(chosen(&memory, 1), "a east 1");
}

#[test]
fn waking_forgets_only_what_is_over() {
    let mut memory = after(&[Refusal::Capacity, Refusal::Quota]);
    memory.wake(at(3));
    assert_eq!(chosen(&memory, 3), "a west ", "the quota still holds");
    memory.wake(at(15));
    assert_eq!(memory.next_wake(at(0)), None);
}

#[test]
fn at_the_same_price_whoever_keeps_its_word_is_asked() {
    let catalogue = Catalogue::new(&[row("a", "r", "m", "L4", "0.50"), row("b", "r", "m", "L4", "0.50")]);
    let readings = readings(&catalogue);
    let offers: Vec<_> = catalogue.iter().collect();
    let mut memory = Memory::default();
    let best = |memory: &Memory| {
        let decision = catalogue.choose(&Wish::default(), situation(memory, &readings, 30), 2).unwrap();
        catalogue.get(decision.choices[0].offer).unwrap().cloud.to_owned()
    };
    assert_eq!(best(&memory), "a");
    memory.refused(&offers[0], Refusal::Capacity, at(0));
    assert_eq!((best(&memory), memory.tally(&offers[0]).chance()), ("b".to_owned(), 333));
    (0..3).for_each(|_| memory.sold(&offers[0]));
    let tally = memory.tally(&offers[0]);
    assert_eq!((best(&memory), tally.asked(), tally.got(), tally.chance()), ("a".to_owned(), 4, 3, 666));
    (0..100).for_each(|_| memory.sold(&offers[0]));
    assert_eq!(memory.tally(&offers[0]).got(), 32, "what is long ago is forgotten");
}

#[test]
fn nothing_left_says_until_when() {
    let (catalogue, mut memory) = (catalogue(), Memory::default());
    let readings = readings(&catalogue);
    for (minute, offer) in catalogue.iter().enumerate() {
        memory.refused(&offer, Refusal::Capacity, at(i64::try_from(minute).unwrap()));
    }
    let survey = catalogue.choose(&Wish::default(), situation(&memory, &readings, 2), 1).unwrap_err();
    assert_eq!(survey.to_string(), "no offer can be taken: 4 not asked again yet, because there was none left");
    assert_eq!(survey.wakes, Some(at(3)));
}
