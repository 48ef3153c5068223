//! Phases that are executed side by side give what they give one after the other, which a run with a trace
//! still is.

use crate::build;
use std::sync::Arc;

use crate::build::PhaseTables;
use conset_fabric::{Checked, FabricOptions, Fault, Jitter, run_with};
use conset_ir::{ConnectionSet, Direction, Machine, Sink};

/// All-to-all of 300 words on 6x6 cells, which has more words than are executed in order.
fn all_to_all() -> (Arc<Machine>, ConnectionSet, Vec<PhaseTables>) {
    let machine = build::machine("torus:6x6", |p| p.timed_starts = 1);
    let set = build::all_to_all(36, 300);
    let tables = build::tables(&machine, &set);
    assert!(tables.len() > 8, "{} phases", tables.len());
    (machine, set, tables)
}

/// A run on three threads without a trace, and one in order.
fn both(
    change: impl FnOnce(&mut [PhaseTables]),
    jitter: Option<Jitter>,
) -> [Result<Checked, Fault>; 2] {
    let (machine, set, mut tables) = all_to_all();
    change(&mut tables);
    let image = build::image(&machine, set, &tables);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    [false, true].map(|trace| {
        let options = FabricOptions::default().trace(trace).jitter(jitter);
        let run = pool.install(|| run_with(image.clone(), 0, 7, options));
        run.map(|mut checked| {
            checked.trace = None;
            checked
        })
    })
}

#[test]
fn correct_images_take_the_same_clocks() {
    for jitter in [None, Some(Jitter { seed: 5, most: 40 })] {
        let [apart, in_order] = both(|_| (), jitter);
        assert_eq!(apart, in_order);
        assert!(apart.unwrap().payload_ok);
    }
}

#[test]
fn wrong_words_are_counted_in_the_same_way() {
    // In two phases, two receives of a cell read each other's channel.
    let [apart, in_order] = both(
        |phases| {
            let last = phases.len() - 1;
            for phase in [2, last] {
                let cell = phases[phase].iter_mut().find(|cell| receives(cell).len() > 1);
                let cell = cell.expect("a cell receives twice in the phase");
                let [a, b] = [receives(cell)[0], receives(cell)[1]];
                let [first, second] = [a, b].map(|row| cell.operations[row]);
                cell.operations[a].channel = second.channel;
                cell.operations[b].channel = first.channel;
                let gates = [first, second].map(|operation| Sink::Gate(operation.connection));
                for entry in &mut cell.entries {
                    if let Some(gate) = gates.iter().position(|gate| *gate == entry.sink) {
                        entry.sink = gates[1 - gate];
                    }
                }
            }
        },
        None,
    );
    assert_eq!(apart, in_order);
    let checked = apart.unwrap();
    assert!(!checked.payload_ok && checked.wrong > 600, "{} wrong words", checked.wrong);
}

#[test]
fn words_that_are_not_received_are_missing_in_both() {
    let [apart, in_order] = both(
        |phases| {
            for cell in &mut phases[3] {
                cell.operations.clear();
            }
        },
        None,
    );
    assert_eq!(apart, in_order);
    assert!(apart.unwrap().missing > 300);
}

#[test]
fn words_that_are_left_over_are_extra_in_both() {
    let [apart, in_order] = both(
        |phases| {
            for phase in [1, 5] {
                let cell = phases[phase].iter_mut().find(|cell| !receives(cell).is_empty());
                let cell = cell.expect("a cell receives in the phase");
                let row = receives(cell)[0];
                cell.operations[row].words -= 7;
            }
        },
        None,
    );
    assert_eq!(apart, in_order);
    let checked = apart.unwrap();
    assert_eq!((checked.missing, checked.extra), (14, 14));
}

#[test]
fn the_first_fault_is_reported_with_its_clock() {
    // Nobody sends what the cells of two phases wait for.
    let [apart, in_order] = both(
        |phases| {
            for phase in [4, 7] {
                for cell in &mut phases[phase] {
                    cell.operations.retain(|operation| operation.direction != Direction::Send);
                }
            }
        },
        None,
    );
    assert_eq!(apart, in_order);
    assert_eq!(apart.unwrap_err().phase.map(|phase| phase.index()), Some(4));
}

fn receives(cell: &build::CellTables) -> Vec<usize> {
    let receives = |row: &usize| cell.operations[*row].direction == Direction::Receive;
    (0..cell.operations.len()).filter(receives).collect()
}
