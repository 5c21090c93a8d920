// SPDX-License-Identifier: Apache-2.0

use bivouac_market::{Capacity, Catalogue, Row, sample, table};

use crate::prices::{dollars, row};

#[test]
fn every_price_is_one_offer() {
    let spot = Row { spot: Some(dollars("0.30")), ..row("runpod", "eu", "4090", "NVIDIA GeForce RTX 4090", "0.69") };
    let catalogue = Catalogue::new(&[spot, row("vultr", "ewr", "vcg-a40", "NVIDIA_A40", "1.70")]);
    let seen: Vec<String> = catalogue
        .iter()
        .map(|offer| {
            let gpu = offer.gpu.unwrap();
            format!("{} {} {gpu} {} ${}", offer.cloud, offer.machine, offer.capacity, offer.price)
        })
        .collect();
    assert_eq!(
        seen,
        ["vultr vcg-a40 A40 on-demand $1.70", "runpod 4090 RTX4090 on-demand $0.69", "runpod 4090 RTX4090 spot $0.30"]
    );
    for offer in catalogue.iter() {
        assert_eq!(catalogue.get(offer.id), Some(offer));
    }
    assert!(Catalogue::new(&[]).is_empty());
}

#[test]
fn two_spellings_of_a_gpu_are_one_machine() {
    let rows = [row("x", "a", "m", "NVIDIA H100 PCIe", "2.00"), row("x", "b", "m", "h100_pcie", "2.10")];
    let catalogue = Catalogue::new(&rows);
    let gpus: Vec<String> = catalogue.iter().map(|offer| offer.gpu.unwrap().to_string()).collect();
    assert_eq!(gpus, ["H100-PCIE", "H100-PCIE"]);
}

#[test]
fn the_order_of_rows_changes_nothing() {
    let text = sample::table(3000, 7);
    let rows = table::read(&text).unwrap();
    let (one, mut other) = (Catalogue::new(&rows), rows.clone());
    other.reverse();
    other.rotate_left(977);
    let other = Catalogue::new(&other);
    assert_eq!(one.snapshot(), other.snapshot());
    assert!(one.iter().eq(other.iter()));
}

#[test]
fn every_change_has_another_snapshot() {
    let first = Row { spot: Some(dollars("1")), zone: "a-1", ..row("x", "a", "m", "H100", "2.00") };
    let base = [first, row("y", "b", "n", "L4", "0.50")];
    let snapshot = |rows: &[Row<'_>]| Catalogue::new(rows).snapshot();
    let changes: [fn(&mut Row<'_>); 13] = [
        |row| row.cloud = "z",
        |row| row.region = "z",
        |row| row.zone = "z",
        |row| row.machine = "z",
        |row| row.gpu = "H200",
        |row| row.gpus = 2000,
        |row| row.gpu_memory_gib = Some(94),
        |row| row.vcpus = 1,
        |row| row.memory_mib = 1,
        |row| row.arch = bivouac_market::Arch::Arm64,
        |row| row.on_demand = Some(dollars("2.000001")),
        |row| row.spot = None,
        |row| row.sold_out = true,
    ];
    let mut seen = vec![snapshot(&base)];
    for change in changes {
        let mut rows = base;
        change(&mut rows[0]);
        seen.push(snapshot(&rows));
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
    assert_eq!(snapshot(&base).to_string().len(), 64);
    assert_eq!(snapshot(&base), snapshot(&base));
}

#[test]
fn a_list_is_sorted_by_price() {
    let text = sample::table(2000, 3);
    let catalogue = Catalogue::new(&table::read(&text).unwrap());
    let offers: Vec<_> = catalogue.iter().collect();
    for pair in offers.windows(2) {
        let key = |n: usize| (pair[n].machine, pair[n].cloud, pair[n].capacity);
        if key(0) == key(1) {
            assert!(pair[0].price <= pair[1].price);
        }
    }
    assert!(offers.iter().any(|offer| offer.capacity == Capacity::Spot));
}
