//! For every form and every kind of value, parsing what was written gives the same value.

use conset_ir::{Document, Form, binary, json, machine_file, text};
use proptest::prelude::*;

use crate::support::{KINDS, Rng, document};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1200, ..ProptestConfig::default() })]

    #[test]
    fn text_comes_back(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Rng(seed), kind);
        let written = text::write(&value);
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(Form::Text));
        let back = text::parse("f.cset", &written);
        prop_assert_eq!(back, Ok(value), "{}", written);
    }

    #[test]
    fn json_comes_back(seed: u64, kind in prop::sample::select(&[1, 4][..])) {
        let value = document(&mut Rng(seed), kind);
        let written = json::write(&value).expect("these kinds have a JSON form");
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(Form::Json));
        let back = json::parse("f.json", written.as_bytes());
        prop_assert_eq!(back, Ok(value), "{}", written);
    }

    #[test]
    fn binary_comes_back(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Rng(seed), kind);
        let written = binary::write(&value);
        prop_assert_eq!(Document::sniff(&written), Some(Form::Binary));
        prop_assert_eq!(binary::parse("f.csb", &written), Ok(value));
    }

    #[test]
    fn machine_files_come_back(seed: u64) {
        let Document::Machine(machine) = document(&mut Rng(seed), 0) else { unreachable!() };
        let written = machine_file::write(&machine);
        prop_assert_eq!(Document::sniff(written.as_bytes()), Some(Form::MachineFile));
        prop_assert_eq!(machine_file::parse("f.toml", &written), Ok((*machine).clone()));
    }

    #[test]
    fn the_form_is_found_whatever_the_name(seed: u64, kind in 0..KINDS) {
        let value = document(&mut Rng(seed), kind);
        let forms = [Some(text::write(&value).into_bytes()), json::write(&value).map(String::into_bytes), Some(binary::write(&value))];
        for bytes in forms.into_iter().flatten() {
            prop_assert_eq!(Document::parse_any("wrong.toml", &bytes), Ok(value.clone()));
        }
    }
}

#[test]
fn only_programs_and_schedules_have_a_json_form() {
    for kind in 0..KINDS {
        let value = document(&mut Rng(kind as u64), kind);
        let mut out = Vec::new();
        let can = matches!(value, Document::Program { .. } | Document::Schedule(_));
        assert_eq!(json::write(&value).is_some(), can);
        assert_eq!(json::write_to(&value, &mut out).is_ok(), can);
    }
}
