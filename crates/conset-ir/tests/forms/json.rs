//! Tests of the JSON schedule: files of other programs, and errors.

use conset_ir::{At, Binding, CellId, Document, InputError, LinkId, Parameters, Schedule, json};

/// Only the required keys.
const THIRD_PARTY: &str = r#"{"format": "conset-schedule", "version": 1,
 "machine": {"name": "iwarp", "topology": {"kind": "torus", "dims": [8, 8]}, "channels_per_cell": 12,
             "clocks": {"link_per_word": 2, "access_per_word": 2, "sync": 352, "phase": 176}},
 "sets": [{"name": "halo",
   "connections": [{"id": 0, "source": 3, "target": 4, "words": 133}],
   "phases": [{"routes": [{"connection": 0, "cells": [3, 4], "channels": [0, 5]}],
               "timetable": [{"connection": 0, "start": 0, "duration": 266}], "makespan": 266}],
   "bounds": {"phases": 1, "clocks": 794}, "predicted_clocks": 794}]}"#;

fn schedule(text: &str) -> Result<Schedule, InputError> {
    match json::parse("s.json", text.as_bytes())? {
        Document::Schedule(schedule) => Ok(schedule),
        other => panic!("a {}", other.kind()),
    }
}

/// The file of another program with one change.
fn changed(from: &str, to: &str) -> Result<Schedule, InputError> {
    assert!(THIRD_PARTY.contains(from), "{from}");
    schedule(&THIRD_PARTY.replacen(from, to, 1))
}

fn path(error: &InputError) -> &str {
    match &error.at {
        At::Path(path) => path,
        other => panic!("{other:?}: {error}"),
    }
}

#[test]
fn a_third_partys_file_loads() {
    let schedule = schedule(THIRD_PARTY).unwrap();
    assert_eq!(*schedule.machine().parameters(), Parameters::iwarp());
    let set = &schedule.sets()[0];
    assert_eq!((set.bounds.clocks, set.bounds.clocks_by), (794, Binding::Nothing));
    let route = set.timetable.routing().phases()[0].get(0);
    assert_eq!(route.words, 133);
    assert_ne!(route.links()[0], LinkId::NONE);
    assert!(schedule.origin().is_none());
}

#[test]
fn what_is_merely_wrong_loads_for_the_checker_to_refuse() {
    let far = changed("\"cells\": [3, 4]", "\"cells\": [3, 40]").unwrap();
    let route = far.sets()[0].timetable.routing().phases()[0].get(0);
    assert_eq!(route.links(), [LinkId::NONE]);
    for (from, to) in [
        ("\"channels\": [0, 5]", "\"channels\": [0, 4000000000]"),
        ("\"channels\": [0, 5]", "\"channels\": [0, 5], \"words\": 7"),
        ("\"channels\": [0, 5]", "\"channels\": [0, 5], \"words\": 0, \"links\": [null]"),
        ("\"makespan\": 266", "\"makespan\": 1"),
        (
            "\"routes\": [{\"connection\": 0, \"cells\": [3, 4], \"channels\": [0, 5]}],
               \"timetable\": [{\"connection\": 0, \"start\": 0, \"duration\": 266}]",
            "\"routes\": [], \"timetable\": []",
        ),
    ] {
        changed(from, to).unwrap();
    }
}

#[test]
fn inconsistent_shapes_are_placed_by_path() {
    for (from, to, at) in [
        ("\"cells\": [3, 4]", "\"cells\": [3, 64]", "sets[0].phases[0].routes[0].cells"),
        ("\"cells\": [3, 4]", "\"cells\": [3]", "sets[0].phases[0].routes[0]"),
        (
            "\"cells\": [3, 4], \"channels\": [0, 5]",
            "\"cells\": [], \"channels\": []",
            "sets[0].phases[0].routes[0]",
        ),
        (
            "{\"connection\": 0, \"cells\"",
            "{\"connection\": 1, \"cells\"",
            "sets[0].phases[0].timetable[0]",
        ),
        (
            "\"timetable\": [{\"connection\": 0, \"start\": 0, \"duration\": 266}]",
            "\"timetable\": []",
            "sets[0].phases[0].routes[0]",
        ),
        (
            "\"timetable\": [",
            "\"timetable\": [{\"connection\": 7, \"start\": 0, \"duration\": 266}, ",
            "sets[0].phases[0].timetable[0]",
        ),
        ("\"source\": 3", "\"source\": 64", "sets[0].connections[0].source"),
        ("\"words\": 133", "\"words\": 0", "sets[0].connections[0].words"),
        ("\"id\": 0", "\"id\": 1", "sets[0].connections[0].id"),
        ("\"name\": \"halo\"", "\"name\": \"h o\"", "sets[0].name"),
        ("\"channels_per_cell\": 12", "\"channels_per_cell\": 0", "machine.channels_per_cell"),
        ("[8, 8]", "[70000, 70000]", "machine.topology"),
        (
            "\"channels\": [0, 5]}",
            "\"channels\": [0, 5], \"links\": [256]}",
            "sets[0].phases[0].routes[0].links",
        ),
    ] {
        assert_eq!(path(&changed(from, to).unwrap_err()), at, "{to}");
    }
}

#[test]
fn whole_numbers_beyond_64_bits_are_not_called_fractions() {
    let start = |number: &str| changed("\"start\": 0", &format!("\"start\": {number}"));
    let most = start("18446744073709551615").unwrap();
    assert_eq!(most.sets()[0].timetable.phases()[0].slots[0].start, u64::MAX);
    let error = start("18446744073709551616").unwrap_err();
    assert_eq!(error.message, "18446744073709551616 is out of range, expected u64");
    assert!(start("0.5").unwrap_err().message.contains("floating point `0.5`"));
    assert!(start("1e30").unwrap_err().message.contains("floating point"));
    let words = "\"words\": -99999999999999999999999";
    let error = changed("\"words\": 133", words).unwrap_err();
    assert_eq!(error.message, "-99999999999999999999999 is out of range, expected u32");
}

#[test]
fn unknown_and_missing_keys_are_placed_by_line() {
    let error = changed("\"channels\": [0, 5]", "\"chanels\": [0, 5]").unwrap_err();
    let At::Text { line: 6, column, offset } = error.at else { panic!("{error}") };
    assert!(THIRD_PARTY[..offset].ends_with("\"chanels\"".trim_matches('"')) || column > 1);
    assert_eq!(error.help.as_deref(), Some("did you mean `channels`?"));
    for (from, to, said) in [
        ("\"sync\": 352, ", "", "missing field `sync`"),
        (", \"makespan\": 266", "", "missing field `makespan`"),
        (" \"sets\"", " \"extra\": 1, \"sets\"", "unknown field `extra`"),
        ("\"dims\": [8, 8]", "\"dims\": [8, 8], \"wrap\": true", "unknown field `wrap`"),
        ("\"start\": 0", "\"start\": -1", "invalid value"),
        ("\"start\": 0", "\"start\": 0.5", "invalid type"),
        ("\"start\": 0", "\"start\": 1e999", "number out of range"),
        ("\"start\": 0", "\"start\": 99999999999999999999999", "is out of range"),
        ("\"cells\": [3, 4]", "\"cells\": [3, null]", "found null"),
        ("\"cells\": [3, 4]", "\"cells\": [3, 4], \"cells\": [3, 4]", "duplicate field `cells`"),
        ("\"words\": 133}", "\"words\": 133", "expected `,` or `}`"),
    ] {
        let error = changed(from, to).unwrap_err();
        assert!(error.message.contains(said), "{error}");
        assert!(matches!(error.at, At::Text { .. }), "{error}");
    }
}

#[test]
fn parts_and_node_numbers_are_optional_and_belong_together() {
    let with = |keys: &str| changed("\"sets\"", &format!("{keys} \"sets\""));
    let map = |keys: &str| with(keys).unwrap().part_map().cloned().unwrap();
    assert_eq!(map("\"parts\": [4, 3],").cells(), [CellId(4), CellId(3)]);
    assert_eq!(map("\"parts\": [4],").number(7), 7);
    let numbers = "\"parts\": [4], \"node_numbers\": {\"from\": 1, \"listed\": [[2, 9]]},";
    assert_eq!((map(numbers).number(2), map(numbers).number(3)), (9, 4));
    for (keys, place) in [
        ("\"node_numbers\": {\"from\": 1},", "node_numbers"),
        ("\"parts\": [4, 4],", "parts"),
        ("\"parts\": [4, 640],", "parts[1]"),
        (
            "\"parts\": [4], \"node_numbers\": {\"from\": 1, \"listed\": [[2, 9], [2, 8]]},",
            "node_numbers",
        ),
    ] {
        let error = with(keys).unwrap_err();
        assert_eq!(error.at, At::Path(place.into()), "{error}");
    }
}

#[test]
fn other_formats_and_newer_versions_are_refused_by_name() {
    let newer = changed("\"version\": 1,", "\"version\": 9, \"new_key\": 1,").unwrap_err();
    assert_eq!(newer.message, "version 9 of conset-schedule is newer than 8");
    assert!(changed("\"version\": 1", "\"version\": 0").is_err());
    let other = changed("conset-schedule", "geojson").unwrap_err();
    assert!(other.message.contains("`geojson`"), "{other}");
    for (text, said) in [
        ("{}", "no key `format`"),
        ("{\"format\": \"conset-set\"}", "no key `version`"),
        ("", "EOF"),
        ("[1]", "expected an object"),
        ("{\"format\": 3}", "invalid type"),
    ] {
        let error = json::parse("s.json", text.as_bytes()).unwrap_err();
        assert!(error.message.contains(said), "{error}");
    }
}

#[test]
fn the_header_may_stand_anywhere_and_a_byte_order_mark_before_it() {
    let moved = THIRD_PARTY.replacen("\"format\": \"conset-schedule\", \"version\": 1,", "", 1);
    let moved = moved.strip_suffix('}').unwrap().to_owned()
        + ",\"version\":1,\"format\":\"conset-schedule\"}";
    assert_eq!(schedule(&moved), schedule(THIRD_PARTY));
    assert_eq!(schedule(&format!("\u{FEFF}{THIRD_PARTY}")), schedule(THIRD_PARTY));
}

#[test]
fn timetable_entries_find_their_routes_in_any_order() {
    let text = THIRD_PARTY
        .replace("\"words\": 133}", "\"words\": 133}, {\"id\": 1, \"source\": 4, \"target\": 3, \"words\": 9}")
        .replace(
            "\"routes\": [",
            "\"routes\": [{\"connection\": 0, \"cells\": [3, 4], \"channels\": [1, 1], \"words\": 3},
              {\"connection\": 1, \"cells\": [4, 3], \"channels\": [2, 2]}, ",
        )
        .replace(
            "\"timetable\": [{\"connection\": 0, \"start\": 0, \"duration\": 266}]",
            "\"timetable\": [{\"connection\": 1, \"start\": 10, \"duration\": 1},
              {\"connection\": 0, \"start\": 20, \"duration\": 2},
              {\"connection\": 0, \"start\": 30, \"duration\": 3}]",
        );
    let schedule = schedule(&text).unwrap();
    let times = &schedule.sets()[0].timetable.phases()[0];
    assert_eq!(times.slots.iter().map(|slot| slot.start).collect::<Vec<_>>(), [20, 10, 30]);
}

#[test]
fn depth_does_not_overflow_the_stack() {
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(200_000);
        assert!(json::parse("d.json", deep.as_bytes()).is_err());
        let inside = format!("{{\"format\": \"conset-set\", \"version\": 1, \"x\": {deep}");
        assert!(json::parse("d.json", inside.as_bytes()).is_err());
        let before = format!("{{\"x\": {deep}");
        assert!(json::parse("d.json", before.as_bytes()).is_err());
    }
}

#[test]
fn a_connection_set_needs_little() {
    let text = r#"{"format": "conset-set", "version": 1, "machine": "iwarp:4x4", "sets": [
        {"name": "a", "connections": [{"source": 1, "target": 2, "words": 3}, {"id": 1, "source": 2, "target": 2, "words": 1}],
         "order": [[0, 1]]}]}"#;
    let Document::Program { machine, program } = json::parse("a.json", text.as_bytes()).unwrap()
    else {
        panic!()
    };
    assert_eq!(machine.unwrap().cell_count(), 16);
    assert_eq!(program.sets()[0].order().len(), 1);
    let wrong = text.replace("\"source\": 1", "\"source\": 16");
    let error = json::parse("a.json", wrong.as_bytes()).unwrap_err();
    assert_eq!(path(&error), "sets[0].connections[0].source");
    let wrong = text.replace("iwarp:4x4", "iwrap:4x4");
    let error = json::parse("a.json", wrong.as_bytes()).unwrap_err();
    assert!(error.message.contains("`iwrap` is not a machine"), "{error}");
}

#[test]
fn each_connection_and_route_is_a_line() {
    let text = json::write_schedule(&schedule(THIRD_PARTY).unwrap());
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.iter().any(|l| *l == "  {\"id\": 0, \"source\": 3, \"target\": 4, \"words\": 133}]"
            || l.trim()
                == "{\"id\": 0, \"source\": 3, \"target\": 4, \"words\": 133}], \"phases\": ["),
        "{text}"
    );
}
