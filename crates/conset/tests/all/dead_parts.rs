//! Machines with dead parts: a schedule is repaired after a link or a cell died, and the best
//! placement never refuses what can be compiled as it was given.

use crate::common;
use std::sync::Arc;

use conset::incremental::{ReuseOutcome, ReuseReport};
use conset::input::{self, LoadedProgram};
use conset::partition_route::placement::Method;
use conset::{CompileError, Compiled, Compiler, run};
use conset_ir::document::Document;
use conset_ir::{CellId, Connection, ConnectionSet, Machine, Program, Schedule};
use proptest::prelude::*;

fn from(
    machine: &Arc<Machine>,
    program: &Program,
    old: &Schedule,
) -> Result<Compiled, CompileError> {
    Compiler::new(machine).reuse(old).compile(program)
}

fn fresh(machine: &Arc<Machine>, program: &Program) -> Compiled {
    Compiler::new(machine).compile(program).unwrap()
}

fn kept(compiled: &Compiled) -> &ReuseReport {
    match compiled.sets()[0].reuse.as_ref() {
        Some(ReuseOutcome::Reused(kept)) => kept,
        other => panic!("not kept: {other:?}"),
    }
}

/// Connections of which a route crosses a dead part of a machine.
fn crossing(old: &Compiled, machine: &Machine) -> usize {
    let routing = old.schedule().sets()[0].timetable.routing();
    let routes = routing.phases().iter().flat_map(|phase| phase.iter());
    let dead = routes.filter(|route| !machine.carries(route.cells));
    let mut crossing: Vec<_> = dead.map(|route| route.connection).collect();
    crossing.sort_unstable();
    crossing.dedup();
    crossing.len()
}

fn delivers(compiled: &Compiled) {
    let words = compiled.schedule().sets()[0].timetable.routing().set().words();
    let runs = run::run(compiled, 0, false, &mut |_| ()).unwrap();
    assert!(runs[0].summary.payload_ok);
    assert_eq!(runs[0].summary.words, words);
}

#[test]
fn a_schedule_is_repaired_after_any_link_died() {
    let whole = Arc::new(Machine::from_spec("torus:3x4").unwrap());
    // Long words, so that connections are in parts.
    for (pattern, words) in [("all-to-all", 30), ("random", 3000)] {
        let program = input::pattern(pattern, &whole, words).unwrap().program;
        let old = fresh(&whole, &program);
        let count = program.sets()[0].len();
        for cell in whole.cells() {
            for &link in whole.outgoing(cell) {
                let link = whole.link(link);
                let hurt = whole.with_dead(&[], &[(link.source, link.target)]).unwrap();
                let hurt = Arc::new(hurt);
                // The checker has seen it, and no dead link is in it.
                let new = from(&hurt, &program, old.schedule()).unwrap();
                let report = kept(&new);
                assert_eq!(
                    report.machine_lost,
                    [format!("link {} -> {}", link.source, link.target)]
                );
                assert_eq!(report.rerouted, crossing(&old, &hurt));
                assert_eq!(report.kept + report.moved + report.rerouted, count);
                assert!(report.kept > count / 2, "{report:?}");
                assert_eq!((report.inserted, report.removed), (0, 0));
                delivers(&new);
                // Alive again, everything stands.
                let back = from(&whole, &program, new.schedule()).unwrap();
                assert_eq!((kept(&back).kept, kept(&back).machine_lost.len()), (count, 0));
            }
        }
    }
}

#[test]
fn a_schedule_is_repaired_after_a_cell_died() {
    let whole = Arc::new(Machine::from_spec("torus:4x4").unwrap());
    let program = input::pattern("all-to-all", &whole, 30).unwrap().program;
    let old = fresh(&whole, &program);
    let dead = CellId(5);
    let hurt = Arc::new(whole.with_dead(&[dead], &[]).unwrap());
    // Its own connections are refused as in any compile ...
    let refused = from(&hurt, &program, old.schedule()).unwrap_err();
    let message = refused.to_string();
    assert!(matches!(refused, CompileError::Input(_)) && message.contains("c5"), "{message}");
    // ... and without them the others are kept or go round.
    let set = &program.sets()[0];
    let others = set.connections().iter().filter(|c| c.source != dead && c.target != dead);
    let others: Vec<Connection> = others.cloned().collect();
    let program = Program::from(ConnectionSet::new(set.name(), others).unwrap());
    let new = from(&hurt, &program, old.schedule()).unwrap();
    assert_eq!(kept(&new).machine_lost, ["cell c5"]);
    assert_eq!(kept(&new).removed, 30);
    assert!(kept(&new).rerouted > 0 && kept(&new).kept > 100, "{:?}", kept(&new));
    delivers(&new);
}

#[test]
fn another_machine_is_still_another_machine() {
    let machine = Arc::new(Machine::from_spec("torus:3x4").unwrap());
    let program = input::pattern("torus", &machine, 30).unwrap().program;
    let old = fresh(&machine, &program);
    let other = Arc::new(Machine::from_spec("torus:4x3").unwrap());
    let refused = from(&other, &program, old.schedule()).unwrap_err();
    assert!(refused.to_string().contains("another machine"), "{refused}");
}

/// The set of a text form, compiled with a placement.
fn placed(
    loaded: &LoadedProgram,
    machine: &Arc<Machine>,
    method: Method,
) -> Result<(), CompileError> {
    let mut loaded = loaded.clone();
    input::place(&mut loaded, machine, method, 0, &mut |_| ())?;
    Compiler::new(machine).max_plans(1).compile(&loaded.program).map(|_| ())
}

/// Only some cells reach others here: links lead one way, and a latency is asked for.
const ONE_WAY: &str = "conset set 1
machine graph:2+3
  channels_per_cell 8
  streams 4
  link_clocks_per_word 2
  access_clocks_per_word 1
  t_sync 1000
  t_phase 0
  link c1 -> c0
  link c4 -> c2
  link c3 -> c2
  link c3 -> c1
  link c4 -> c0
  link c2 -> c0
  link c4 -> c3
set s0
  x0 c0 -> c0 words 2
  x1 c1 -> c0 words 1 min_bandwidth 1
  x2 c0 -> c0 words 1 max_latency 20
  order x1 before x2
";

const DEAD_LINKS: &str = "conset set 1
machine fat-tree:5
  channels_per_cell 16
  streams 1
  t_sync 0
  t_phase 0
  duplex half
  dead_link c0 -> c5
  dead_link c5 -> c8
  dead_link c7 -> c5
set s0
  x0 c2 -> c3 words 2
  x1 c2 -> c4 words 2
  x2 c3 -> c2 words 3
set s1
  x0 c3 -> c0 words 52
  x1 c4 -> c1 words 68
  x2 c2 -> c3 words 3844
";

#[test]
fn the_best_placement_can_be_routed() {
    for text in [ONE_WAY, DEAD_LINKS] {
        let document = Document::parse_any("case.cset", text.as_bytes()).unwrap();
        let Document::Program { machine, program } = document else { panic!("a program") };
        let machine = machine.unwrap();
        let loaded = LoadedProgram::from(program);
        placed(&loaded, &machine, Method::Given).unwrap();
        placed(&loaded, &machine, Method::Best).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Dead cells and links, links that lead one way, latencies that only near cells can keep.
    #[test]
    fn best_places_whatever_can_be_compiled_as_given(
        (machine, set, seed) in common::case(),
        dead in prop::collection::vec(any::<u16>(), 0..6),
    ) {
        let links = |row: u16| {
            let link = usize::from(row).checked_rem(machine.link_count())?;
            let link = machine.link(conset_ir::LinkId::from_index(link));
            Some((link.source, link.target))
        };
        let dead: Vec<_> = dead.into_iter().filter_map(links).collect();
        let machine = Arc::new(machine.with_dead(&[], &dead).unwrap());
        let mut connections = set.connections().to_vec();
        for (row, connection) in connections.iter_mut().enumerate() {
            if (seed >> (row % 64)) % 8 == 0 {
                connection.max_latency = Some(30 + (seed % 64) as u32);
            }
        }
        let wishes = ConnectionSet::new("s", connections).unwrap();
        let program = Program::from(wishes.with_order(set.order().to_vec()).unwrap());
        let loaded = LoadedProgram::from(program);
        if placed(&loaded, &machine, Method::Given).is_ok() {
            let best = placed(&loaded, &machine, Method::Best);
            prop_assert!(best.is_ok(), "{}", best.unwrap_err());
        }
    }
}
