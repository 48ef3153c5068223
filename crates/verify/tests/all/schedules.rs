//! Rules of whole programs: each entry point of the checker refuses what breaks its rule, and accepts what
//! does not.

use crate::common::{Draft, compile, machine, set};
use conset_ir::*;
use conset_verify::{self as verify, Rule};

/// A program of two sets on a machine whose switch takes 100 clocks, with these predictions.
fn program(predicted: [u64; 2], start: u64) -> Schedule {
    let machine = machine("mesh:2", &[("t_sync", "60"), ("t_phase", "40")]);
    let sets = predicted.into_iter().enumerate().map(|(row, predicted_clocks)| {
        let rows = set(&[(0, 1, 10)]).connections().to_vec();
        let named = ConnectionSet::new(format!("s{row}"), rows).unwrap();
        let mut draft: Draft = compile(&machine, named, |_| 1);
        draft.route(0).start = start;
        let bounds = Bounds {
            phases: 0,
            phases_by: Binding::Nothing,
            clocks: 0,
            clocks_by: Binding::Nothing,
        };
        let timetable = draft.timetable();
        SetSchedule { timetable, bounds, proof: Proof::default(), predicted_clocks }
    });
    Schedule::new(machine.clone(), sets.collect(), None).unwrap()
}

#[test]
fn every_set_of_a_program_is_checked() {
    let report = verify::check_schedule(&program([130, 130], 0)).unwrap();
    assert_eq!((report.sets, report.phases, report.words), (2, 2, 20));
    for predicted in [[130, 1], [1, 130]] {
        let rejection = verify::check_schedule(&program(predicted, 0)).unwrap_err();
        assert_eq!((rejection.total(), rejection.rules()), (1, vec![Rule::Claim]));
    }
}

#[test]
fn clocks_of_all_sets_together_are_limited() {
    let of = |predicted, start| verify::check_clocks(&program(predicted, start));
    let time = limits::TIME;
    assert_eq!(of([time - 5, 5], 0), Ok(()));
    let rejection = of([time - 5, 6], 0).unwrap_err();
    assert_eq!((rejection.total(), rejection.rules()), (1, vec![Rule::Claim]));
    assert_eq!(rejection.violations()[0].set, "s1");
    // The switch and the slot of each set come in addition to its start.
    let slot = program([0, 0], 0).sets()[0].timetable.phases()[0].slots[0].duration;
    let half = time / 2 - 100 - slot;
    assert_eq!(of([0, 0], half), Ok(()));
    let rejection = of([0, 0], half + 1).unwrap_err();
    assert_eq!((rejection.total(), rejection.rules()), (1, vec![Rule::Duration]));
    // A whole check says the same, and looks at no set then.
    let rejection = verify::check_schedule(&program([time, time], 0)).unwrap_err();
    assert_eq!((rejection.total(), rejection.rules()), (1, vec![Rule::Claim]));
}

#[test]
fn a_stated_digest_is_compared() {
    let program = program([130, 130], 0).with_digest();
    let digest = program.digest().unwrap();
    assert_eq!(verify::check_digest(&program), Ok(()));
    assert!(verify::check_schedule(&program).is_ok());
    let other = program.with_stated_digest(Some(digest ^ 1));
    for rejection in [verify::check_digest(&other).err(), verify::check_schedule(&other).err()] {
        assert_eq!(rejection.unwrap().rules(), vec![Rule::Digest]);
    }
    assert_eq!(verify::check_digest(&other.with_stated_digest(None)), Ok(()));
}
