//! For every form and every kind of value, parsing what was written gives the same value.

use conset_ir::{Document, json};
use proptest::prelude::*;

use crate::support::{KINDS, Rng, document};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn json_comes_back(seed: u64, kind in prop::sample::select(&[1, 4][..])) {
        let value = document(&mut Rng(seed), kind);
        let text = json::write(&value).expect("these kinds have a JSON form");
        prop_assert_eq!(Document::sniff(text.as_bytes()), Some(conset_ir::Form::Json));
        let back = json::parse("f.json", text.as_bytes());
        prop_assert_eq!(back, Ok(value), "{}", text);
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
