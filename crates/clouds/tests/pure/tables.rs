// SPDX-License-Identifier: Apache-2.0
//! The files that are part of the program can be read.

use bivouac_clouds::fake::Shapes;
use bivouac_clouds::registry::ALL;
use bivouac_clouds::tables::Tables;

#[test]
fn tables_and_shapes_can_be_read() {
    for entry in ALL {
        let folder = format!("{}/src/{}", env!("CARGO_MANIFEST_DIR"), entry.name);
        let map = std::fs::read_to_string(format!("{folder}/map.yaml")).unwrap();
        Tables::parse(&map).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let shapes = Shapes::parse(entry.shapes).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert!(shapes.spec.iter().all(|section| section.starts_with("3.")), "{}", entry.name);
        assert!(!shapes.goods.is_empty());
    }
}
