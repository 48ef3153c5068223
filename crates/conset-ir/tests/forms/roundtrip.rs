//! For every form and kind of value, parsing the written text yields an equal value.

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Document, FileFormat, LinkFinder,
    Machine, PhaseRoutes, Protocol, Routing, binary, json, machine_file, text,
};
use proptest::prelude::*;

use crate::numbers::Numbers;
use crate::support::{KINDS, document};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1200, ..ProptestConfig::default() })]

    #[test]
    fn text_comes_back(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Numbers(seed), kind);
        let written = text::write(&value);
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(FileFormat::Text));
        let back = text::parse("f.cset", &written);
        prop_assert_eq!(back, Ok(value), "{}", written);
    }

    #[test]
    fn json_comes_back(seed: u64, kind in prop::sample::select(&[1, 4][..])) {
        let value = document(&mut Numbers(seed), kind);
        let written = json::write(&value).expect("these kinds have a JSON form");
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(FileFormat::Json));
        let back = json::parse("f.json", written.as_bytes());
        prop_assert_eq!(back, Ok(value), "{}", written);
    }

    #[test]
    fn binary_comes_back(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Numbers(seed), kind);
        let written = binary::write(&value);
        prop_assert_eq!(Document::sniff(&written), Some(FileFormat::Binary));
        prop_assert_eq!(binary::parse("f.csb", &written), Ok(value));
    }

    #[test]
    fn machine_files_come_back(seed: u64) {
        let Document::Machine(machine) = document(&mut Numbers(seed), 0) else { unreachable!() };
        let written = machine_file::write(&machine);
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(FileFormat::MachineFile));
        prop_assert_eq!(machine_file::parse("f.toml", &written), Ok((*machine).clone()));
    }

    #[test]
    fn the_form_is_found_whatever_the_name(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Numbers(seed), kind);
        let forms = [Some(text::write(&value).into_bytes()), json::write(&value).map(String::into_bytes), Some(binary::write(&value))];
        for bytes in forms.into_iter().flatten() {
            prop_assert_eq!(Document::parse_any("wrong.toml", &bytes), Ok(value.clone()));
        }
    }
}

#[test]
fn only_programs_and_schedules_have_a_json_form() {
    for kind in 0..KINDS {
        let value = document(&mut Numbers(kind as u64), kind);
        let mut out = Vec::new();
        let can =
            matches!(value, Document::Program { .. } | Document::Schedule(_) | Document::Steps(_));
        assert_eq!(json::write(&value).is_some(), can);
        assert_eq!(json::write_to(&value, &mut out).is_ok(), can);
    }
}

/// Routes along live links take a byte or two for each cell, whatever the size of the machine.
#[test]
fn binary_routes_are_compact() {
    let machine = Arc::new(Machine::from_spec("torus:32x32").unwrap());
    let finder = LinkFinder::new(&machine);
    let mut phase = PhaseRoutes::new();
    let connections: Vec<Connection> =
        (0..1000).map(|c| Connection::new(CellId(c), CellId((c + 16 * 32) % 1024), 64)).collect();
    for (row, connection) in connections.iter().enumerate() {
        let cells: Vec<CellId> =
            (0..17).map(|hop| CellId((connection.source.0 + 32 * hop) % 1024)).collect();
        let channels = [ChannelId(row as u32 % 12); 17];
        let links: Vec<_> = finder.along(&cells).collect();
        phase.push(ConnectionId(row as u32), 64, &cells, &links, &channels).unwrap();
    }
    let set = ConnectionSet::new("far", connections).unwrap();
    let routing = Document::from(Routing::new(machine, Arc::new(set), vec![phase]).unwrap());
    let (small, large) = (binary::write(&routing), text::write(&routing));
    // 17 bytes of route, 2 of its head, 5 of its connection.
    assert!(small.len() < 25 * 1000, "{} bytes", small.len());
    assert!(small.len() * 8 < large.len(), "{} against {} bytes", small.len(), large.len());
    assert_eq!(text::parse("f", &large), Ok(routing.clone()));
    assert_eq!(binary::parse("f", &small), Ok(routing));
}

#[test]
fn a_machine_is_written_with_the_lowest_version_that_has_its_parameters() {
    for (spec, version, major) in [
        ("iwarp:4x4", 1, 1),
        ("delta:4x4", 1, 1),
        ("fat-tree:8/1.2", 1, 1),
        ("iwarp-timed:4x4", 2, 2),
        ("fat-tree:8/2.2", 4, 3),
        ("cm5:8", 4, 3),
        ("t3d:2x2x2", 4, 3),
    ] {
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        let document = Document::Machine(machine.clone());
        let written = text::write(&document);
        assert!(written.starts_with(&format!("conset machine {version}\n")), "{written}");
        assert_eq!(written.contains("timed_starts"), version == 2);
        assert_eq!(binary::write(&document)[8], major);
        let file = machine_file::write(&machine);
        assert_eq!(file.contains("timed_starts"), version == 2);
        assert_eq!(file.contains("protocol"), machine.parameters().protocol != Protocol::Standing);
        assert_eq!(file.contains("parents"), spec.contains("/2") || spec.contains("cm5"));
        assert_eq!(machine_file::parse("m.toml", &file).as_ref(), Ok(&*machine));
        assert_eq!(text::parse("m", &written).as_ref(), Ok(&document));
        assert_eq!(binary::parse("m", &binary::write(&document)), Ok(document));
        let program = conset_ir::Program::new(Vec::new()).unwrap();
        let program = Document::Program { machine: Some(machine), program };
        let written = json::write(&program).unwrap();
        assert!(written.contains(&format!("\"version\": {version}")), "{written}");
        assert_eq!(written.contains("timed_starts"), version == 2);
        assert_eq!(json::parse("f.json", written.as_bytes()), Ok(program));
    }
}
