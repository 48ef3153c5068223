//! Incremental compilation: nothing changes without a change, little with a small one,
//! and whatever comes out has been through the checker.

use crate::common;
use std::sync::Arc;

use conset::incremental::{RecompileReason, ReuseOutcome, ReuseReport};
use conset::{Algorithm, CompileError, CompileOptions, Compiled, Compiler, input};
use conset_ir::document::Document;
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, Program, Schedule, binary,
};
use proptest::prelude::*;

fn options() -> CompileOptions {
    CompileOptions::new().algorithm(Algorithm::Auto).seed(1)
}

fn from(
    machine: &Arc<Machine>,
    program: &Program,
    old: &Schedule,
) -> Result<Compiled, CompileError> {
    Compiler::new(machine).options(options()).reuse(old).compile(program)
}

fn kept(compiled: &Compiled, row: usize) -> &ReuseReport {
    match compiled.sets()[row].reuse.as_ref() {
        Some(ReuseOutcome::Reused(kept)) => kept,
        other => panic!("not kept: {other:?}"),
    }
}

fn bytes(schedule: &Schedule) -> Vec<u8> {
    binary::write(&Document::Schedule(schedule.clone()))
}

fn all_to_all(machine: &Arc<Machine>) -> ConnectionSet {
    let program = input::pattern("all-to-all", machine, 40).unwrap().program;
    program.sets()[0].as_ref().clone()
}

/// A set with some of its connections left out and others put in.
fn edited(
    set: &ConnectionSet,
    leave_out: impl Fn(usize) -> bool,
    add: &[(u32, u32, u32)],
) -> ConnectionSet {
    let rows = set.connections().iter().enumerate().filter(|(row, _)| !leave_out(*row));
    let mut connections: Vec<Connection> = rows.map(|(_, c)| c.clone()).collect();
    connections.extend(add.iter().map(|&(a, b, w)| Connection::new(CellId(a), CellId(b), w)));
    ConnectionSet::new(set.name(), connections).unwrap()
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let machine = Arc::new(Machine::from_spec("torus:4x4").unwrap());
    let second = input::pattern("hypercube", &machine, 40).unwrap().program;
    let program = Program::new(vec![
        Arc::new(all_to_all(&machine)),
        second.sets()[0].clone(),
        Arc::new(ConnectionSet::new("none", vec![]).unwrap()),
    ])
    .unwrap();
    for algorithm in [Algorithm::Paper, Algorithm::Auto] {
        let options = options().algorithm(algorithm);
        let old = Compiler::new(&machine).options(options.clone()).compile(&program).unwrap();
        let new = from(&machine, &program, old.schedule()).unwrap();
        assert!(bytes(old.schedule()) == bytes(new.schedule()));
        for row in 0..3 {
            let kept = kept(&new, row);
            assert_eq!(
                (kept.moved, kept.inserted, kept.removed, kept.phases_touched),
                (0, 0, 0, 0)
            );
            assert!(kept.entries.as_ref().unwrap().is_identical() && !kept.drifted);
        }
    }
}

#[test]
fn a_small_change_changes_little() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let set = all_to_all(&machine);
    let old = Compiler::new(&machine).options(options()).compile(&set.clone().into()).unwrap();
    // Ten of 4032 go, five come back with other words.
    let gone = |row: usize| row % 400 == 7;
    let add: Vec<(u32, u32, u32)> = (0..10)
        .filter(|i| i % 2 == 0)
        .map(|i| set.get(ConnectionId(400 * i + 7)))
        .map(|c| (c.source.0, c.target.0, 60))
        .collect();
    let set = edited(&set, gone, &add);
    let fresh = Compiler::new(&machine).options(options()).compile(&set.clone().into()).unwrap();
    let new = from(&machine, &set.into(), old.schedule()).unwrap();
    let kept = kept(&new, 0);
    assert_eq!((kept.inserted, kept.removed), (5, 11));
    assert!(kept.moved < 20, "{} moved", kept.moved);
    assert!(kept.entries.as_ref().unwrap().stability > 0.97, "{kept:?}");
    let phases = |c: &Compiled| c.schedule().sets()[0].timetable.phases().len();
    assert!(phases(&new) <= phases(&fresh) + 1, "{} of {}", phases(&new), phases(&fresh));
    let clocks = |c: &Compiled| c.sets()[0].prediction.clocks as f64;
    assert!(clocks(&new) < 1.1 * clocks(&fresh), "{} of {}", clocks(&new), clocks(&fresh));
}

#[test]
fn phases_that_nobody_needs_any_more_go() {
    let machine = Arc::new(Machine::from_spec("torus:4x4").unwrap());
    let set = all_to_all(&machine);
    let old = Compiler::new(&machine).options(options()).compile(&set.clone().into()).unwrap();
    let few = edited(&set, |row| row % 40 != 0, &[]);
    let new = from(&machine, &few.into(), old.schedule()).unwrap();
    assert_eq!(new.schedule().sets()[0].timetable.phases().len(), 1);
    let empty = edited(&set, |_| true, &[]);
    let new = from(&machine, &empty.into(), old.schedule()).unwrap();
    assert_eq!(
        new.sets()[0].reuse,
        Some(ReuseOutcome::Recompiled(RecompileReason::NothingMatches))
    );
}

#[test]
fn what_cannot_be_kept_is_said() {
    let machine = Arc::new(Machine::from_spec("torus:4x4").unwrap());
    let set = all_to_all(&machine);
    let old = Compiler::new(&machine).options(options()).compile(&set.clone().into()).unwrap();
    let other = Arc::new(Machine::from_spec("mesh:4x4").unwrap());
    let error = from(&other, &set.clone().into(), old.schedule()).unwrap_err();
    assert!(matches!(error, CompileError::Input(_)) && error.to_string().contains("topology"));
    let nothing = Schedule::new(machine.clone(), vec![], None).unwrap();
    let error = from(&machine, &set.clone().into(), &nothing).unwrap_err();
    assert!(error.to_string().contains("no sets"), "{error}");
    let named = ConnectionSet::new("another", set.connections().to_vec()).unwrap();
    let new = from(&machine, &named.into(), old.schedule()).unwrap();
    assert_eq!(new.sets()[0].reuse, Some(ReuseOutcome::Recompiled(RecompileReason::NoSuchSet)));
    // Phases allowed: what stands takes more, a fresh compile says what it takes.
    let options = options().max_phases(1);
    let refused =
        Compiler::new(&machine).options(options).reuse(old.schedule()).compile(&set.into());
    assert!(matches!(refused, Err(CompileError::Infeasible(_))));
}

/// Edits of a set: which rows go, which get other words, what is new, which row is renamed.
type Edits = (Vec<u8>, Vec<(u8, u8, u32)>, bool);

fn edits() -> impl Strategy<Value = Edits> {
    (
        prop::collection::vec(any::<u8>(), 60),
        prop::collection::vec((any::<u8>(), any::<u8>(), 1u32..40), 0..12),
        any::<bool>(),
    )
}

/// Nine of ten rows stay as they are; the order of those that stay may go.
fn apply(machine: &Machine, set: &ConnectionSet, (rows, new, ordered): &Edits) -> ConnectionSet {
    let ends: Vec<CellId> = machine.endpoints().collect();
    let mut id_of = vec![None; set.len()];
    let mut connections = Vec::new();
    for (id, connection) in set.iter() {
        let edit = rows[id.index()];
        if edit < 13 {
            continue;
        }
        id_of[id.index()] = Some(ConnectionId::from_index(connections.len()));
        let mut connection = connection.clone();
        if edit < 26 {
            connection.words = 1 + connection.words % 39;
        }
        connections.push(connection);
    }
    let end = |at: u8| ends[usize::from(at) % ends.len()];
    connections.extend(new.iter().map(|&(a, b, words)| Connection::new(end(a), end(b), words)));
    let mut order: Vec<_> = set
        .order()
        .iter()
        .filter_map(|&(a, b)| Some((id_of[a.index()]?, id_of[b.index()]?)))
        .collect();
    if *ordered && connections.len() > 1 {
        // An order that the older compile knew nothing of.
        let last = ConnectionId::from_index(connections.len() - 1);
        order.push((ConnectionId(0), last));
    }
    ConnectionSet::new(set.name(), connections).unwrap().with_order(order).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn random_edits_verify_and_take_few_phases(
        ((machine, set, _), edits) in (common::case(), edits()),
    ) {
        let machine = Arc::new(machine);
        let Ok(old) = Compiler::new(&machine).options(options()).compile(&set.clone().into()) else {
            return Ok(());
        };
        let same = from(&machine, &set.clone().into(), old.schedule()).unwrap();
        prop_assert!(bytes(old.schedule()) == bytes(same.schedule()));
        let set: Program = apply(&machine, &set, &edits).into();
        let Ok(fresh) = Compiler::new(&machine).options(options()).compile(&set) else {
            return Ok(());
        };
        // Whatever comes out was checked, or this is an error of ours.
        let new = match from(&machine, &set, old.schedule()) {
            Ok(new) => new,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let phases = |c: &Compiled| c.schedule().sets()[0].timetable.phases().len();
        prop_assert!(
            phases(&new) <= phases(&fresh) + 2 + phases(&fresh) / 4,
            "{} phases, fresh {}", phases(&new), phases(&fresh)
        );
        let again = from(&machine, &set, old.schedule()).unwrap();
        prop_assert!(bytes(new.schedule()) == bytes(again.schedule()));
    }
}
