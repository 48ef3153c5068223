//! Merged sets keep every connection, and sets are merged only if that is faster.

use std::sync::Arc;

use conset::{Compiler, run};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, NodeLists, Program};

fn shift(name: &str, cells: u32, by: u32, words: u32) -> ConnectionSet {
    let to = |cell: u32| CellId((cell + by) % cells);
    let connection = |cell| Connection {
        name: Some(format!("from{cell}").into()),
        ..Connection::new(CellId(cell), to(cell), words)
    };
    ConnectionSet::new(name, (0..cells).map(connection).collect()).unwrap()
}

fn program(sets: Vec<ConnectionSet>) -> Program {
    Program::new(sets.into_iter().map(Arc::new).collect()).unwrap()
}

#[test]
fn two_shifts_share_a_phase_and_the_third_set_stays() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let nodes = |set: ConnectionSet| {
        let lists: Vec<Vec<u32>> =
            set.connections().iter().map(|c| (0..c.words).collect()).collect();
        set.with_nodes(NodeLists::from_lists(lists.iter().map(Vec::as_slice))).unwrap()
    };
    let east = nodes(shift("east", 64, 1, 20));
    let order = vec![(ConnectionId(0), ConnectionId(1))];
    let south = nodes(shift("south", 64, 8, 20)).with_order(order).unwrap();
    let program = program(vec![east, shift("far", 64, 9, 5), south]);
    let compiled = Compiler::new(&machine).fuse(["south", "east"]).compile(&program).unwrap();
    let fusions = compiled.fusions();
    assert!(fusions[0].fused, "{fusions:?}");
    assert_eq!((fusions[0].phases_apart, fusions[0].phases_fused), (2, 1));
    let sets = compiled.schedule().sets();
    let names: Vec<&str> = sets.iter().map(|set| set.timetable.routing().set().name()).collect();
    assert_eq!(names, ["east.south", "far"]);
    let merged = sets[0].timetable.routing().set();
    assert_eq!(merged.len(), 128);
    assert_eq!(merged.get(ConnectionId(3)).name.as_deref(), Some("east.from3"));
    assert_eq!(merged.get(ConnectionId(67)).name.as_deref(), Some("south.from3"));
    assert_eq!(merged.order(), [(ConnectionId(64), ConnectionId(65))]);
    assert_eq!(merged.nodes().unwrap().of(ConnectionId(100)).len(), 20);
    let runs = run::run(&compiled, 1, false, &mut |_| ()).unwrap();
    assert!(runs.iter().all(|run| run.summary.payload_ok));
}

#[test]
fn sets_stay_separate_if_merging_is_not_faster() {
    // A free switch: nothing is saved, and the words get in each other's way or not.
    let machine = Machine::from_spec("ring:4").unwrap();
    let mut parameters = machine.parameters().clone();
    (parameters.t_sync, parameters.t_phase) = (0, 0);
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let program = program(vec![shift("a", 4, 1, 50), shift("b", 4, 1, 50)]);
    let compiled = Compiler::new(&machine).fuse(["a", "b"]).compile(&program).unwrap();
    let fusions = compiled.fusions();
    assert!(!fusions[0].fused, "{fusions:?}");
    let alone = Compiler::new(&machine).compile(&program).unwrap();
    assert_eq!(compiled.schedule(), alone.schedule());
}

#[test]
fn groups_that_cannot_be_merged_are_errors_that_help() {
    let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
    let program = program(vec![shift("a", 4, 1, 5), shift("b", 4, 2, 5), shift("a.b", 4, 3, 5)]);
    let error = |names: &[&str]| {
        let mut compiler = Compiler::new(&machine).fuse(names.iter().copied());
        compiler.compile(&program).unwrap_err().to_string()
    };
    assert!(error(&["a"]).contains("two or more"));
    assert!(error(&["a", "c"]).contains("no set `c`"));
    assert!(error(&["a", "a"]).contains("twice"));
    assert!(error(&["a", "b"]).contains("`a.b`, is already used"));
}
