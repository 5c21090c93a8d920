// SPDX-License-Identifier: Apache-2.0

use bivouac_market::{Catalogue, Flaw, Least, Memory, Row, Wish};

use crate::prices::{dollars, readings, row, situation};

/// Five honest sellers of one GPU, 8 times apart, and one more.
fn among_honest<'a>(more: &[Row<'a>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = [("a", "0.60"), ("b", "1.90"), ("c", "2.00"), ("d", "2.40"), ("e", "4.80")]
        .map(|(cloud, price)| row(cloud, "r", "m", "H100", price))
        .to_vec();
    rows.extend_from_slice(more);
    rows
}

fn flaw_of(cloud: &str, rows: &[Row<'_>]) -> Vec<Option<Flaw>> {
    Catalogue::new(rows).iter().filter(|offer| offer.cloud == cloud).map(|offer| offer.flaw).collect()
}

#[test]
fn what_cannot_be_true_is_set_aside() {
    let of = |price: &str| flaw_of("x", &among_honest(&[row("x", "r", "m", "H100", price)]));
    assert_eq!(of("0"), [Some(Flaw::Zero)]);
    assert_eq!(of("-2.00"), [Some(Flaw::Negative)]);
    assert_eq!(of("0.01"), [Some(Flaw::TooCheap)]);
    assert_eq!(of("70.00"), [Some(Flaw::TooDear)]);
    assert_eq!(of("1460.00"), [Some(Flaw::Unit)], "per month");
    assert_eq!(of("17520.00"), [Some(Flaw::Unit)], "per year");
    assert_eq!(of("9000000000000"), [Some(Flaw::Unit)]);
    assert_eq!(of("0.25"), [None], "8 times cheaper happens");
    assert_eq!(of("24.00"), [None], "so does 12 times dearer");
    assert_eq!(flaw_of("a", &among_honest(&[])), [None]);
    let with = |change: fn(&mut Row<'_>)| {
        let mut odd = row("x", "r", "m", "H100", "2.00");
        change(&mut odd);
        flaw_of("x", &among_honest(&[odd]))
    };
    assert_eq!(with(|row| row.currency = "EUR"), [Some(Flaw::Currency)]);
    assert_eq!(with(|row| row.currency = "USD"), [None]);
    assert_eq!(with(|row| row.machine = ""), [Some(Flaw::NoMachine)]);
    assert_eq!(with(|row| row.sold_out = true), [Some(Flaw::SoldOut)]);
}

#[test]
fn prices_are_compared_per_gpu_and_by_kind_of_payment() {
    let eight = Row { gpus: 8000, ..row("x", "r", "m8", "H100", "17.00") };
    let spot = Row { on_demand: None, spot: Some(dollars("0.05")), ..row("x", "r", "s", "H100", "1") };
    assert_eq!(flaw_of("x", &among_honest(&[eight, spot])), [None, None], "no other spot price says it is wrong");
    let form = row("x", "r", "m", "NVIDIA H100 80GB HBM3", "0.01");
    assert_eq!(
        flaw_of("x", &[form, row("y", "r", "m", "nvidia-h100-80gb", "2"), row("z", "r", "m", "H100-80GB-SXM", "2")]),
        [Some(Flaw::TooCheap)]
    );
}

#[test]
fn spot_is_measured_by_on_demand_too() {
    let spot = |cloud, price| Row { spot: Some(dollars(price)), ..row(cloud, "r", "s", "H100", "2.00") };
    let of = |price| flaw_of("x", &among_honest(&[spot("x", price), spot("y", price)]));
    assert_eq!(of("0.01"), [None, Some(Flaw::TooCheap)], "two of them agree, and still");
    assert_eq!(of("0.05"), [None, None]);
}

#[test]
fn many_wrong_rows_of_one_seller_do_not_make_them_right() {
    let regions: Vec<String> = (0..50).map(|n| format!("r{n}")).collect();
    let wrong: Vec<Row<'_>> = regions.iter().map(|region| row("x", region, "m", "H100", "0.01")).collect();
    let flaws = flaw_of("x", &among_honest(&wrong));
    assert_eq!(flaws, vec![Some(Flaw::TooCheap); 50]);
}

#[test]
fn if_two_sellers_disagree_beyond_belief_none_is_believed() {
    let rows = [row("x", "r", "m", "B300", "5.00"), row("y", "r", "m", "B300", "43800.00")];
    assert_eq!(flaw_of("x", &rows), [Some(Flaw::TooCheap)]);
    assert_eq!(flaw_of("y", &rows), [Some(Flaw::TooDear)]);
}

#[test]
fn the_dearest_of_the_same_offers_counts() {
    let rows =
        [row("a", "r", "m", "H100", "1.00"), row("a", "r", "m", "H100", "1.20"), row("a", "r", "m", "H100", "1.20")];
    assert_eq!(flaw_of("a", &rows), [Some(Flaw::Twice), Some(Flaw::Twice), None]);
    let elsewhere = [row("a", "r", "m", "H100", "1.00"), row("a", "q", "m", "H100", "1.20")];
    assert_eq!(flaw_of("a", &elsewhere), [None, None]);
}

#[test]
fn a_flawed_offer_is_never_chosen_and_always_counted() {
    let rows = among_honest(&[row("x", "r", "m", "H100", "0"), row("y", "r", "m", "H100", "0.01")]);
    let (catalogue, memory) = (Catalogue::new(&rows), Memory::default());
    let readings = readings(&catalogue);
    let wish = Wish { least: Least { gpus: 1000, ..Least::default() }, ..Wish::default() };
    let decision = catalogue.choose(&wish, situation(&memory, &readings, 0), 10).unwrap();
    assert_eq!(decision.choices.len(), 5);
    assert_eq!(decision.choices[0].price, dollars("0.60"));
    let survey = catalogue.survey(&wish, situation(&memory, &readings, 0));
    assert_eq!((survey.open.len(), survey.doubtful()), (5, 2));
    assert_eq!(survey.flawed.into_iter().collect::<Vec<_>>(), [(Flaw::Zero, 1), (Flaw::TooCheap, 1)]);
}
