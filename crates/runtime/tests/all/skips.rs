//! A cell that skips a collective call, or makes one twice: the run ends with an error, and before
//! that no word of another round comes to any program.

#![allow(clippy::print_stdout, reason = "what failed")]

use std::sync::atomic::AtomicUsize;

use conset_runtime::ir::CellId;
use conset_runtime::{CellError, RunError, World};

use crate::common::skips::{Says, drawn, perform, plans};
use crate::common::{message, ring_image, threads};

const CELLS: u32 = 6;
const SEEDS: u64 = 300;

/// Over all seeds: runs that ended well, and runs in which a word of another round came.
fn outcomes(world: impl Fn(&World, u64) -> World, says: Says) -> (usize, usize) {
    let (image, plans) = plans(CELLS);
    let (mut ended_well, mut delivered) = (0, 0);
    for seed in 0..SEEDS {
        let script = drawn(seed, CELLS, 5);
        let wrong = AtomicUsize::new(0);
        let world = world(&World::new(image.clone()), seed);
        let result = world.try_run(|cell| perform(cell, &plans, &script, says, &wrong));
        ended_well += usize::from(result.is_ok());
        let wrong = wrong.into_inner();
        delivered += usize::from(wrong > 0);
        if says != Says::Nothing && (wrong > 0 || result.is_ok()) {
            println!("seed {seed}: {script:?}: {wrong} words, {result:?}");
        }
    }
    (ended_well, delivered)
}

fn on_threads(world: &World, seed: u64) -> World {
    threads(world.image().clone(), [1, 2, 3, 6][seed as usize % 4])
}

#[test]
fn no_word_of_another_round_is_delivered_on_the_fabric() {
    for says in [Says::Place, Says::Round] {
        assert_eq!(outcomes(|world, _| world.clone(), says), (0, 0), "{says:?}");
    }
}

#[test]
fn no_word_of_another_round_is_delivered_on_threads() {
    for says in [Says::Place, Says::Round] {
        assert_eq!(outcomes(on_threads, says), (0, 0), "{says:?}");
    }
}

/// All calls are made in the same few lines of `perform`. So that programs above are found to be out
/// of step is due to what they say.
#[test]
fn where_programs_do_not_say_where_they_are_words_of_another_round_may_come() {
    let (ended_well, delivered) = outcomes(on_threads, Says::Nothing);
    assert_eq!(ended_well, 0);
    assert!(delivered > 0);
}

#[test]
fn the_error_names_both_calls_and_where_they_are() {
    let round = |cell: &mut conset_runtime::Cell<'_>| {
        let mut incoming = [[0u64; 1]];
        cell.exchange("s", &[[1u64]], &mut incoming)?;
        if cell.id() != CellId(2) {
            cell.exchange("s", &[[2u64]], &mut incoming)?;
        }
        cell.exchange("s", &[[3u64]], &mut incoming)?;
        Ok::<_, CellError>(incoming[0][0])
    };
    for world in [World::new(ring_image(4, 1)), threads(ring_image(4, 1), 2)] {
        let error = world.try_run(round).unwrap_err();
        let RunError::Mismatch { calls } = &error else { panic!("{error}") };
        assert!(calls.iter().all(|call| call.number == 2), "{error}");
        assert!(calls.iter().any(|call| call.cell == CellId(2)), "{error}");
        let line = |row: usize| -> u32 {
            let place = calls[row].place.as_ref().unwrap();
            let (file, line) = place.rsplit_once(':').unwrap();
            assert!(file.ends_with("skips.rs"), "{place}");
            line.parse().unwrap()
        };
        let later = usize::from(calls[1].cell == CellId(2));
        assert_eq!(line(later), line(1 - later) + 2, "{error}");
        assert!(error.to_string().contains("c2 is in its 2nd collective call, the "), "{error}");
        // Who is where does not matter where that is so by intent; that all end it does.
        let error = message(world.same_places(false).try_run(round));
        assert!(error.contains("c2 has ended while"), "{error}");
    }
}

#[test]
fn cells_may_be_at_different_places() {
    for world in [World::new(ring_image(4, 1)), threads(ring_image(4, 1), 2)] {
        let (found, _) = world
            .same_places(false)
            .try_run(|cell| {
                let mut incoming = [[0u64; 1]];
                if cell.id() == CellId(0) {
                    cell.exchange("s", &[[7u64]], &mut incoming)?;
                } else {
                    cell.exchange("s", &[[9u64]], &mut incoming)?;
                }
                Ok(incoming[0][0])
            })
            .unwrap();
        assert_eq!(found, [9, 7, 9, 9]);
    }
}
