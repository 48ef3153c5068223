//! Incremental compilation of sets with split connections: parts stay as they are, bit
//! by bit, whatever else changes; figures add up; chains of changes stay legal.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset::incremental::{ReuseOutcome, ReuseReport};
use conset::{CompileOptions, Compiled, Compiler, input};
use conset_ir::document::Document;
use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, LinkId, Machine, PhaseRoutes,
    Program, Routing, Schedule, SetSchedule, binary,
};
use conset_scheduler::{fixed_starts, predict};
use proptest::prelude::*;

/// One plan is enough: what is kept is the question.
fn options() -> CompileOptions {
    CompileOptions::new().max_plans(1).seed(1)
}

fn from(machine: &Arc<Machine>, set: &ConnectionSet, old: &Schedule) -> Result<Compiled, String> {
    let program: Program = set.clone().into();
    Compiler::new(machine)
        .options(options())
        .reuse(old)
        .compile(&program)
        .map_err(|e| e.to_string())
}

fn kept(compiled: &Compiled) -> Option<&ReuseReport> {
    match compiled.sets()[0].reuse.as_ref() {
        Some(ReuseOutcome::Reused(kept)) => Some(kept),
        _ => None,
    }
}

fn bytes(schedule: &Schedule) -> Vec<u8> {
    binary::write(&Document::Schedule(schedule.clone()))
}

/// A schedule in which every phase is two, the first with half of the words and the second with
/// the rest. Connections of one word, and those whose order is kept inside a phase, stay whole.
fn halved(schedule: &Schedule) -> Schedule {
    let old = &schedule.sets()[0].timetable;
    let set = old.routing().set().clone();
    let mut phase_of = vec![0; set.len()];
    for (phase, routes) in old.routing().iter() {
        routes.iter().for_each(|route| phase_of[route.connection.index()] = phase.0);
    }
    let mut whole: Vec<bool> = set.connections().iter().map(|c| c.words < 2).collect();
    for &(a, b) in set.order() {
        let together = phase_of[a.index()] == phase_of[b.index()];
        whole[a.index()] |= together;
        whole[b.index()] |= together;
    }
    let (mut phases, mut starts) = (Vec::new(), Vec::new());
    for (routes, times) in old.routing().phases().iter().zip(old.phases()) {
        for half in 0..2 {
            let (mut part, mut begin) = (PhaseRoutes::new(), Vec::new());
            for (route, slot) in routes.iter().zip(&times.slots) {
                let words = match (whole[route.connection.index()], half) {
                    (true, 0) => route.words,
                    (true, _) => continue,
                    (false, 0) => route.words / 2,
                    (false, _) => route.words - route.words / 2,
                };
                let (cells, links) = (route.cells, route.links());
                part.push(route.connection, words, cells, links, route.channels).unwrap();
                begin.push(slot.start);
            }
            if !part.is_empty() {
                phases.push(part);
                starts.push(begin);
            }
        }
    }
    let routing = Routing::new(schedule.machine().clone(), set, phases).unwrap();
    let timetable = fixed_starts::with_starts(routing, &starts).unwrap();
    let predicted_clocks = predict::predict(&timetable).clocks;
    let set = SetSchedule { timetable, predicted_clocks, ..schedule.sets()[0].clone() };
    Schedule::new(schedule.machine().clone(), vec![set], schedule.origin().cloned())
        .unwrap()
        .with_digest()
}

type Part = (u32, Vec<CellId>, Vec<LinkId>, Vec<ChannelId>);

/// The parts of each connection in the order of phases, by its ends and words.
fn parts(schedule: &Schedule) -> BTreeMap<(CellId, CellId, u32), Vec<Vec<Part>>> {
    let routing = schedule.sets()[0].timetable.routing();
    let mut parts = vec![Vec::new(); routing.set().len()];
    for route in routing.phases().iter().flat_map(|routes| routes.iter()) {
        let (cells, links) = (route.cells.to_vec(), route.links().to_vec());
        let part = (route.words, cells, links, route.channels.to_vec());
        parts[route.connection.index()].push(part);
    }
    let mut by_ends: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (c, parts) in routing.set().connections().iter().zip(parts) {
        by_ends.entry((c.source, c.target, c.words)).or_default().push(parts);
    }
    by_ends
}

/// Connections whose parts are the same in both, bit by bit.
fn same_parts(a: &Schedule, b: &Schedule) -> usize {
    let mut b = parts(b);
    let mut same = 0;
    for (key, connections) in parts(a) {
        let Some(others) = b.get_mut(&key) else { continue };
        for parts in connections {
            if let Some(row) = others.iter().position(|other| *other == parts) {
                others.swap_remove(row);
                same += 1;
            }
        }
    }
    same
}

fn machine() -> impl Strategy<Value = Machine> {
    let specs =
        ["torus:4x4", "mesh:4x3", "ring:2", "mesh:3x2x2", "ring:7", "torus:3x3x2", "mesh:1"];
    (prop::sample::select(specs.to_vec()), any::<bool>()).prop_map(|(spec, dead)| {
        let machine = Machine::from_spec(spec).unwrap();
        match dead && machine.cell_count() > 9 {
            true => Machine::new(
                "dead",
                machine.topology().clone(),
                machine.parameters().clone(),
                vec![CellId(4)],
                vec![],
            )
            .unwrap(),
            false => machine,
        }
    })
}

/// Connections of up to thousands of words, some of which ask for something, with some order.
/// Nothing is asked for where links are parallel, because such sets are not kept.
fn set(machine: &Machine) -> impl Strategy<Value = ConnectionSet> + use<> {
    let ends = |row: usize| machine.link(LinkId(row as u32));
    let twice = |l: conset_ir::Link| machine.links_between(l.source, l.target).count() > 1;
    let parallel = (0..machine.link_count()).any(|row| twice(ends(row)));
    let end = prop::sample::select(machine.endpoints().collect::<Vec<_>>());
    let connection =
        (end.clone(), end, 1u32..3000, 0u8..10).prop_map(move |(a, b, words, asks)| {
            let (min_bandwidth, max_latency) = match asks {
                _ if parallel => (None, None),
                0 => (Some(9), None),
                1 => (None, Some(2000)),
                _ => (None, None),
            };
            Connection { min_bandwidth, max_latency, ..Connection::new(a, b, words) }
        });
    let pairs = prop::collection::vec((any::<u16>(), any::<u16>()), 0..4);
    (prop::collection::vec(connection, 1..40), pairs).prop_map(|(connections, pairs)| {
        let n = connections.len() as u32;
        let pairs = pairs.into_iter().map(|(a, b)| (u32::from(a) % n, u32::from(b) % n));
        let order = pairs.filter(|(a, b)| a < b).map(|(a, b)| (ConnectionId(a), ConnectionId(b)));
        ConnectionSet::new("random", connections).unwrap().with_order(order.collect()).unwrap()
    })
}

fn case() -> impl Strategy<Value = (Arc<Machine>, ConnectionSet)> {
    machine().prop_flat_map(|machine| {
        let set = set(&machine);
        (Just(Arc::new(machine)), set)
    })
}

/// What happens to a set: rows that go and rows that get other words (counted round), and ends and
/// words of new ones.
type Edit = (Vec<u8>, Vec<(u8, u32)>, Vec<(u8, u8, u32)>);

fn edit() -> impl Strategy<Value = Edit> {
    (
        prop::collection::vec(any::<u8>(), 0..3),
        prop::collection::vec((any::<u8>(), 1u32..4000), 0..3),
        prop::collection::vec((any::<u8>(), any::<u8>(), 1u32..4000), 0..3),
    )
}

fn edited(machine: &Machine, set: &ConnectionSet, (gone, words, new): &Edit) -> ConnectionSet {
    let ends: Vec<CellId> = machine.endpoints().collect();
    let at = |row: &u8| usize::from(*row) % set.len().max(1);
    let mut connections = Vec::new();
    let mut id_of = vec![None; set.len()];
    for (id, connection) in set.iter() {
        if gone.iter().any(|row| at(row) == id.index()) {
            continue;
        }
        id_of[id.index()] = Some(ConnectionId::from_index(connections.len()));
        let other = words.iter().find(|(row, _)| at(row) == id.index());
        let words = other.map_or(connection.words, |row| row.1);
        connections.push(Connection { words, ..connection.clone() });
    }
    let end = |row: u8| ends[usize::from(row) % ends.len()];
    connections.extend(new.iter().map(|&(a, b, words)| Connection::new(end(a), end(b), words)));
    let order = set.order().iter();
    let order = order.filter_map(|&(a, b)| Some((id_of[a.index()]?, id_of[b.index()]?)));
    let order = order.collect();
    ConnectionSet::new(set.name(), connections).unwrap().with_order(order).unwrap()
}

/// Holds the figures against the two schedules.
fn check(old: &Schedule, new: &Compiled) -> Result<(), TestCaseError> {
    let Some(kept) = kept(new) else { return Ok(()) };
    let len = |schedule: &Schedule| schedule.sets()[0].timetable.routing().set().len();
    prop_assert_eq!(kept.kept + kept.moved + kept.inserted, len(new.schedule()));
    prop_assert_eq!(kept.kept + kept.moved + kept.removed, len(old));
    let same = same_parts(old, new.schedule());
    prop_assert!(same >= kept.kept, "{} kept, {same} the same", kept.kept);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn parts_that_nobody_touches_are_what_they_were(
        ((machine, set), edit) in (case(), edit()),
    ) {
        let Ok(whole) = Compiler::new(&machine).options(options()).compile(&set.clone().into()) else {
            return Ok(());
        };
        let halved = halved(whole.schedule());
        for old in [whole.schedule(), &halved] {
            let same = from(&machine, &set, old).map_err(TestCaseError::fail)?;
            prop_assert!(bytes(old) == bytes(same.schedule()));
            let figures = kept(&same).expect("all is as it was");
            prop_assert_eq!((figures.kept, figures.phases_touched), (set.len(), 0));
            prop_assert!(figures.entries.as_ref().unwrap().is_identical());
            let edited = edited(&machine, &set, &edit);
            match from(&machine, &edited, old) {
                Ok(new) => check(old, &new)?,
                // What cannot be had afresh either is the set's fault.
                Err(error) => {
                    let fresh = Compiler::new(&machine).options(options()).compile(&edited.into());
                    prop_assert!(fresh.is_err(), "{error}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn chains_of_changes_stay_legal(
        ((machine, set), edits) in (case(), prop::collection::vec(edit(), 20)),
    ) {
        let Ok(first) = Compiler::new(&machine).options(options()).compile(&set.clone().into()) else {
            return Ok(());
        };
        let (mut old, mut set) = (halved(first.schedule()), set);
        for edit in edits {
            set = edited(&machine, &set, &edit);
            let Ok(new) = from(&machine, &set, &old) else {
                let fresh = Compiler::new(&machine).options(options()).compile(&set.into());
                prop_assert!(fresh.is_err());
                return Ok(());
            };
            check(&old, &new)?;
            old = new.schedule().clone();
        }
    }
}

#[test]
fn a_change_of_a_set_in_parts_changes_little() {
    let machine = Arc::new(Machine::from_spec("mesh:6x6").unwrap());
    let program = input::pattern("random:0.1", &machine, 2048).unwrap().program;
    let set = program.sets()[0].as_ref().clone();
    let old = Compiler::new(&machine).seed(1).compile(&program).unwrap();
    let in_parts = |schedule: &Schedule| {
        let routing = schedule.sets()[0].timetable.routing();
        routing.phases().iter().map(PhaseRoutes::len).sum::<usize>() > routing.set().len()
    };
    assert!(in_parts(old.schedule()), "the example is no longer one of parts");
    let clocks = |compiled: &Compiled| compiled.sets()[0].prediction.clocks as f64;
    let others = |edit: Edit| {
        let set = edited(&machine, &set, &edit);
        from(&machine, &set, old.schedule()).unwrap()
    };
    // Nothing but what goes is touched.
    let gone = others((vec![7], vec![], vec![]));
    let figures = kept(&gone).unwrap();
    assert_eq!((figures.kept, figures.moved, figures.removed), (set.len() - 1, 0, 1));
    assert!(clocks(&gone) <= clocks(&old));
    // What comes takes no longer than in a phase of its own: no other phase is wrecked by it.
    let more = others((vec![], vec![(9, 1500)], vec![(3, 30, 1500)]));
    let figures = kept(&more).unwrap();
    assert_eq!((figures.kept, figures.moved, figures.inserted), (set.len() - 1, 0, 2));
    let parameters = machine.parameters();
    let alone = (parameters.switch_clocks() + 1500 * parameters.word_clocks() + 64) as f64;
    assert!(clocks(&more) <= clocks(&old) + alone, "{} of {}", clocks(&more), clocks(&old));
}
