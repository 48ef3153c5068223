//! Clusters: one phase where channels allow it, claims that hold with slow and expensive networks,
//! and plans in which the words between two nodes travel in one message.

use std::collections::BTreeSet;
use std::sync::Arc;

use conset::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, Parameters, Program, Protocol,
};
use conset::steps::{StepAlgorithm, StepCompiler};
use conset::{Compiler, run};
use proptest::prelude::*;

fn machine(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let machine = Machine::from_spec(spec).unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    Arc::new(machine.with_parameters(parameters).unwrap())
}

fn set(rows: impl IntoIterator<Item = (u32, u32, u32)>) -> ConnectionSet {
    let connect = |(a, b, words)| Connection::new(CellId(a), CellId(b), words);
    ConnectionSet::new("s", rows.into_iter().map(connect).collect()).unwrap()
}

fn all_to_all(cells: u32, words: u32) -> ConnectionSet {
    let pairs = (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b)));
    set(pairs.filter(|(a, b)| a != b).map(|(a, b)| (a, b, words)))
}

/// The 26 neighbours of each cell of a grid that wraps around, with words by the part they share.
fn halo(side: u32) -> ConnectionSet {
    let cells =
        (0..side).flat_map(|z| (0..side).flat_map(move |y| (0..side).map(move |x| [x, y, z])));
    let number = |at: [u32; 3]| at[0] + side * (at[1] + side * at[2]);
    let offsets = || (0..27u32).map(|n| [n % 3, n / 3 % 3, n / 9]).filter(|o| *o != [1, 1, 1]);
    set(cells.flat_map(|at| {
        offsets().map(move |offset| {
            let other = [0, 1, 2].map(|d| (at[d] + offset[d] + side - 1) % side);
            let same = offset.iter().filter(|&&o| o == 1).count() as u32;
            (number(at), number(other), [1, 16, 256][same as usize])
        })
    }))
}

#[test]
fn a_halo_takes_one_phase_by_the_first_plan() {
    for spec in ["cluster:64", "cluster:16x4", "cluster:1x64"] {
        let program = Program::from(halo(4));
        let compiled = Compiler::new(&machine(spec, |_| ())).compile(&program).unwrap();
        let set = &compiled.schedule().sets()[0];
        assert_eq!((set.timetable.phases().len(), set.bounds.phases), (1, 1), "{spec}");
        let search = compiled.sets()[0].search.as_ref().unwrap();
        assert_eq!(search.winner().unwrap().planner, "one-phase");
        let summary = &run::run(&compiled, 1, false, &mut |_| ()).unwrap()[0].summary;
        assert!(summary.payload_ok && summary.bound_clocks <= summary.measured_clocks);
        let ratio = summary.predicted_clocks as f64 / summary.measured_clocks as f64;
        assert!((0.85..1.15).contains(&ratio), "{spec}: {summary:?}");
    }
}

#[test]
fn channels_are_not_scarce() {
    let compiled = Compiler::new(&machine("cluster:150", |_| ()))
        .compile(&Program::from(all_to_all(150, 1)))
        .unwrap();
    assert_eq!(compiled.schedule().sets()[0].timetable.phases().len(), 1);
}

#[test]
fn an_order_is_kept() {
    let chain: Vec<(u32, u32, u32)> = (0..8).map(|cell| (cell, cell + 1, 100)).collect();
    let order = (0..7).map(|x| (ConnectionId(x), ConnectionId(x + 1))).collect();
    let set = set(chain).with_order(order).unwrap();
    let machine = machine("cluster:3x3", |_| ());
    let compiled = Compiler::new(&machine).compile(&Program::from(set)).unwrap();
    let summary = &run::run(&compiled, 1, false, &mut |_| ()).unwrap()[0].summary;
    // Each waits for the one before: eight set-ups and the words of eight connections.
    assert!(summary.payload_ok && summary.measured_clocks >= 8 * (400 + 100));
}

/// The messages between nodes of a plan, and the pairs of nodes that they join.
fn between_nodes(machine: &Machine, algorithm: &str, set: &ConnectionSet) -> (usize, usize, u64) {
    let compiled = StepCompiler::new(&Arc::new(machine.clone()))
        .algorithm(StepAlgorithm::parse(algorithm).unwrap())
        .compile(&Program::from(set.clone()), &mut |_| ())
        .unwrap();
    let runs = compiled.run(1, false).unwrap();
    assert!(runs[0].summary.payload_ok, "{algorithm}");
    let steps = &compiled.schedule().sets()[0].steps;
    let nodes = |cell| machine.topology().node_of(cell);
    let between: Vec<(u32, u32)> = steps
        .messages()
        .iter()
        .filter(|message| machine.is_between_nodes(message.source, message.target))
        .map(|message| (nodes(message.source), nodes(message.target)))
        .collect();
    let pairs: BTreeSet<_> = between.iter().collect();
    (between.len(), pairs.len(), runs[0].summary.measured_clocks)
}

#[test]
fn words_between_two_nodes_travel_in_one_message() {
    let set = all_to_all(24, 2);
    for protocol in [Protocol::Standing, Protocol::Rendezvous] {
        let machine = machine("cluster:6x4", |p| p.protocol = protocol);
        let (messages, pairs, clocks) = between_nodes(&machine, "nodes", &set);
        assert_eq!((messages, pairs), (30, 30), "each of 6 nodes to 5 others");
        let (messages, pairs, direct) = between_nodes(&machine, "loaded", &set);
        assert_eq!((messages, pairs), (30 * 16, 30));
        assert!(clocks < direct, "{clocks} {direct}: few messages between nodes are cheaper");
        // `auto` finds a plan at least as cheap.
        let (.., best) = between_nodes(&machine, "best", &set);
        assert!(best <= clocks + clocks / 8, "{best} {clocks}");
    }
}

fn clusters() -> impl Strategy<Value = (Arc<Machine>, ConnectionSet)> {
    let numbers = (1..5u32, 1..5u32, 0..40u32, 0..6u32, 1..4u32, 1..4u32);
    let more = (0..30u32, any::<bool>(), 1..4u32, 1..9u32);
    (numbers, more).prop_flat_map(|(numbers, (setup, timed, streams, depth))| {
        let (nodes, cells, overhead, network, link, access) = numbers;
        let machine = machine(&format!("cluster:{nodes}x{cells}"), |p| {
            (p.network_overhead, p.network_clocks_per_word) = (overhead, network);
            (p.link_clocks_per_word, p.access_clocks_per_word) = (link, access);
            (p.stream_setup, p.streams, p.channel_depth) = (setup, streams, depth);
            p.timed_starts = timed.into();
        });
        let count = nodes * cells;
        let rows = proptest::collection::vec((0..count, 0..count, 1..80u32), 1..30);
        rows.prop_map(move |rows| (machine.clone(), set(rows)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The checker proves all bounds and predictions before it accepts a schedule; the fabric takes
    /// no less than the bounds.
    #[test]
    fn claims_hold_on_any_cluster((machine, set) in clusters()) {
        let program = Program::from(set);
        let compiled = Compiler::new(&machine).compile(&program).unwrap();
        prop_assert_eq!(compiled.candidates_refused(), 0);
        let summary = &run::run(&compiled, 1, false, &mut |_| ()).unwrap()[0].summary;
        prop_assert!(summary.payload_ok);
        prop_assert!(summary.bound_clocks <= summary.measured_clocks, "{:?}", summary);
        let steps = StepCompiler::new(&machine).compile(&program, &mut |_| ()).unwrap();
        prop_assert!(steps.searches().iter().all(|search| search.refused == 0));
        for run in steps.run(1, false).unwrap() {
            prop_assert!(run.summary.payload_ok);
            prop_assert!(run.summary.bound_clocks <= run.summary.measured_clocks);
        }
    }
}
