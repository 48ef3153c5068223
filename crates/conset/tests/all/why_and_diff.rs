//! Explanations and comparisons: small cases with known answers, and for random programs that
//! what `why` proposes does what it says.

use crate::common;
use std::sync::Arc;

use conset::diff::{Both, diff};
use conset::why::{self, AlternativeRoute, Explanation, Feasibility, PartPosition, WaitCause, why};
use conset::{CompileOptions, Compiled, Compiler};
use conset_ir::{
    Binding, Bounds, CellId, ChannelId, Connection, ConnectionId, ConnectionSet, LinkFinder,
    Machine, Parameters, PhaseId, PhaseRoutes, PhaseTimes, Program, Proof, Routing, Schedule,
    SetSchedule, Slot, Timetable, Topology,
};
use conset_scheduler::predict::predict;
use proptest::prelude::*;

fn ring(cells: u32, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    let mut parameters = Parameters::iwarp();
    change(&mut parameters);
    let ring = Topology::Ring { cells };
    Arc::new(Machine::new("ring", ring, parameters, vec![], vec![]).unwrap())
}

fn set(rows: &[(u32, u32, u32)]) -> ConnectionSet {
    let connection =
        |&(from, to, words): &(u32, u32, u32)| Connection::new(CellId(from), CellId(to), words);
    ConnectionSet::new("s", rows.iter().map(connection).collect()).unwrap()
}

/// A route of a hand-made phase: connection, words, cells, start.
type Row<'a> = (u32, u32, &'a [u32], u64);

/// A timetable by hand: channels are the lowest free, durations two clocks a word.
fn timetable(machine: &Arc<Machine>, set: ConnectionSet, phases: &[&[Row<'_>]]) -> Timetable {
    let finder = LinkFinder::new(machine);
    let (mut routed, mut timed) = (Vec::new(), Vec::new());
    for phase in phases {
        let mut used = vec![0; machine.cell_count()];
        let mut routes = PhaseRoutes::new();
        let mut slots = Vec::new();
        for &(x, words, cells, start) in *phase {
            let cells: Vec<CellId> = cells.iter().map(|&c| CellId(c)).collect();
            let links: Vec<_> = finder.along(&cells).collect();
            let mut channels = Vec::new();
            for cell in &cells {
                channels.push(ChannelId(used[cell.index()]));
                used[cell.index()] += 1;
            }
            routes.push(ConnectionId(x), words, &cells, &links, &channels).unwrap();
            slots.push(Slot { start, duration: 2 * u64::from(words) });
        }
        let makespan = slots.iter().map(Slot::end).max().unwrap_or(0);
        routed.push(routes);
        timed.push(PhaseTimes { slots, makespan });
    }
    let routing = Routing::new(machine.clone(), Arc::new(set), routed).unwrap();
    Timetable::new(routing, timed).unwrap()
}

fn explain(timetable: &Timetable, x: u32) -> Explanation {
    conset_verify::check_timetable(timetable).unwrap();
    why(timetable, &predict(timetable), ConnectionId(x)).unwrap()
}

/// Does everything that is proposed and compares with what was claimed; returns how much it was.
fn check_claims(timetable: &Timetable, why: &Explanation) -> usize {
    let mut done = 0;
    let mut check =
        |part: PartPosition, to: PhaseId, way: &AlternativeRoute, claimed: why::Clocks| {
            let after = why::apply(timetable, part, to, way).unwrap();
            let checked = conset_verify::check_timetable(&after);
            assert!(checked.is_ok(), "{:?} to {to}: {}", part, checked.unwrap_err());
            let clocks = predict(&after).clocks;
            assert_eq!(clocks, claimed.set, "{part:?} to {to}");
            assert_eq!(clocks as i64 - why.set_clocks as i64, claimed.change);
            done += 1;
        };
    for part in &why.parts {
        for choice in &part.phase_choices.tried {
            assert_eq!(choice.clocks.is_some(), choice.verdict == Feasibility::Feasible);
            assert_eq!(!choice.full.is_empty(), choice.verdict == Feasibility::Full);
            assert!(choice.full.iter().all(|full| !full.connections.is_empty()));
            if let (Some(way), Some(clocks)) = (&choice.route, choice.clocks) {
                check(part.part, choice.phase, way, clocks);
            }
        }
        for other in &part.route.others {
            assert_eq!(other.clocks.is_some(), other.verdict == Feasibility::Feasible);
            if let (Some(way), Some(clocks)) = (&other.route, other.clocks) {
                check(part.part, part.part.phase, way, clocks);
            }
        }
        assert!(part.start.earliest <= part.start.start);
    }
    done
}

#[test]
fn a_needless_phase_is_found_out() {
    let machine = ring(8, |_| ());
    let rows: [&[Row<'_>]; 2] = [&[(0, 64, &[0, 1], 0)], &[(1, 64, &[2, 3], 0)]];
    let timetable = timetable(&machine, set(&[(0, 1, 64), (2, 3, 64)]), &rows);
    let why = explain(&timetable, 0);
    assert_eq!(why.set_clocks, 2 * (528 + 128));
    let choice = &why.parts[0].phase_choices.tried[0];
    assert_eq!(
        (choice.verdict, choice.hops, choice.max_sharing),
        (Feasibility::Feasible, Some(1), Some(1))
    );
    // The emptied phase goes, and its switch with it.
    let clocks = choice.clocks.unwrap();
    assert_eq!((clocks.phase, clocks.set, clocks.change), (128, 656, -656));
    assert_eq!(check_claims(&timetable, &why), 1);
}

#[test]
fn full_cells_are_named_with_who_fills_them() {
    let machine = ring(6, |p| p.channels_per_cell = 1);
    let rows: [&[Row<'_>]; 3] = [
        &[(0, 5, &[0, 1], 0), (1, 5, &[2, 3], 0)],
        &[(2, 5, &[1, 0], 0)],
        &[(3, 5, &[3, 4], 0), (4, 5, &[5], 0)],
    ];
    let ends = [(0, 1, 5), (2, 3, 5), (1, 0, 5), (3, 4, 5), (5, 5, 5)];
    let timetable = timetable(&machine, set(&ends), &rows);
    let why = explain(&timetable, 2);
    let tried = &why.parts[0].phase_choices.tried;
    assert_eq!(tried[0].phase, PhaseId(0));
    assert_eq!(tried[0].verdict, Feasibility::Full);
    let cells: Vec<(CellId, &[ConnectionId])> =
        tried[0].full.iter().map(|full| (full.cell, full.connections.as_slice())).collect();
    let x0 = &[ConnectionId(0)][..];
    assert_eq!(cells, [(CellId(1), x0), (CellId(0), x0)]);
    assert_eq!(tried[1].verdict, Feasibility::Feasible);
    check_claims(&timetable, &why);
    // The ends have room, the cells between have not: they are the witness.
    let machine = ring(4, |p| p.channels_per_cell = 1);
    let rows: [&[Row<'_>]; 2] = [&[(0, 5, &[0, 1, 2], 0)], &[(1, 5, &[1], 0), (2, 5, &[3], 0)]];
    let timetable = self::timetable(&machine, set(&[(0, 2, 5), (1, 1, 5), (3, 3, 5)]), &rows);
    let why = explain(&timetable, 0);
    let full: Vec<CellId> =
        why.parts[0].phase_choices.tried[0].full.iter().map(|full| full.cell).collect();
    assert_eq!(full, [CellId(1), CellId(3)]);
    assert_eq!(why.parts[0].route.shortest_count, 2);
    assert_eq!(why.parts[0].route.others[0].verdict, Feasibility::Feasible);
    assert_eq!(check_claims(&timetable, &why), 1);
    // A connection to itself takes one channel and no link.
    let why = explain(&timetable, 1);
    assert_eq!((why.parts[0].route.shortest_hops, why.parts[0].route.max_sharing), (0, 0));
    assert_eq!(why.parts[0].phase_choices.tried[0].verdict, Feasibility::Full);
}

#[test]
fn a_start_is_explained_by_its_agents() {
    let machine = ring(5, |_| ());
    let ends = [(0, 1, 10), (0, 2, 10), (3, 2, 5)];
    let at = |start| {
        let rows: [&[Row<'_>]; 1] =
            [&[(0, 10, &[0, 1], 0), (1, 10, &[0, 1, 2], start), (2, 5, &[3, 2], 0)]];
        explain(&timetable(&machine, set(&ends), &rows), 1).parts[0].start.clone()
    };
    let start = at(20);
    assert_eq!((start.start, start.end, start.earliest), (20, 40, 20));
    let waits: Vec<_> = start.waits.iter().map(|w| (w.connection.0, w.end, w.at)).collect();
    assert_eq!(waits, [(0, 20, WaitCause::Source), (2, 10, WaitCause::Target)]);
    assert_eq!(start.chain.len(), 1);
    assert_eq!(start.chain[0].connection, ConnectionId(0));
    // A pause that nothing explains: it could start earlier.
    let start = at(33);
    assert_eq!((start.earliest, start.chain.len()), (20, 0));
}

#[test]
fn order_contracts_and_parts_are_kept() {
    let machine = ring(6, |_| ());
    let ordered = set(&[(0, 1, 5), (2, 3, 10), (4, 5, 5)])
        .with_order(vec![(ConnectionId(0), ConnectionId(1)), (ConnectionId(1), ConnectionId(2))])
        .unwrap();
    let rows: [&[Row<'_>]; 4] = [
        &[(0, 5, &[0, 1], 0)],
        &[(1, 4, &[2, 3], 0)],
        &[(1, 6, &[2, 3], 0)],
        &[(2, 5, &[4, 5], 0)],
    ];
    let timetable = timetable(&machine, ordered, &rows);
    let why = explain(&timetable, 1);
    assert_eq!((why.parts_total, why.parts[0].words, why.parts[1].words), (2, 4, 6));
    // Parts may meet in one phase, and meet those before and after them.
    assert_eq!(check_claims(&timetable, &why), 6);
    let first = explain(&timetable, 0);
    let verdicts: Vec<Feasibility> =
        first.parts[0].phase_choices.tried.iter().map(|choice| choice.verdict).collect();
    assert_eq!(verdicts, [Feasibility::Feasible, Feasibility::Order, Feasibility::Order]);
    assert_eq!(first.parts[0].phase_choices.tried[1].blocked_by, [ConnectionId(1)]);

    let mut strict = vec![Connection::new(CellId(0), CellId(1), 5); 2];
    strict[0].min_bandwidth = Some(400);
    let strict = ConnectionSet::new("s", strict).unwrap();
    let rows: [&[Row<'_>]; 2] = [&[(0, 5, &[0, 1], 0)], &[(1, 5, &[0, 1], 0)]];
    let timetable = self::timetable(&machine, strict, &rows);
    let choice = &explain(&timetable, 1).parts[0].phase_choices.tried[0];
    assert_eq!(choice.verdict, Feasibility::Contract);
    assert_eq!(choice.blocked_by, [ConnectionId(0)]);
}

#[test]
fn what_is_not_there_is_none_or_an_error() {
    let machine = ring(4, |_| ());
    let empty = timetable(&machine, set(&[]), &[]);
    assert!(why(&empty, &predict(&empty), ConnectionId(0)).is_none());
    let part = PartPosition { phase: PhaseId(0), row: 0 };
    let way =
        AlternativeRoute { cells: vec![CellId(0)], links: vec![], channels: vec![ChannelId(0)] };
    assert!(why::apply(&empty, part, PhaseId(0), &way).is_err());
}

#[test]
fn many_phases_are_limited_to_the_nearest() {
    let machine = ring(4, |_| ());
    let rows: Vec<[Row<'_>; 1]> = (0..50).map(|x| [(x, 3, &[0, 1][..], 0)]).collect();
    let phases: Vec<&[Row<'_>]> = rows.iter().map(<[Row<'_>; 1]>::as_slice).collect();
    let timetable = timetable(&machine, set(&[(0, 1, 3); 50]), &phases);
    let choices = explain(&timetable, 45).parts[0].phase_choices.clone();
    assert_eq!((choices.tried.len(), choices.left_out), (why::PHASES, 49 - why::PHASES));
    assert_eq!(choices.tried[0].phase, PhaseId(17));
    assert_eq!(choices.tried.last().unwrap().phase, PhaseId(49));
    assert_eq!(choices.room_at_ends, 49);
}

#[test]
fn a_phase_with_room_is_tried_however_far_away() {
    let machine = ring(4, |p| p.channels_per_cell = 1);
    let mut rows: Vec<[Row<'_>; 1]> = vec![[(0, 3, &[2, 3], 0)]];
    rows.extend((1..90).map(|x| [(x, 3, &[0, 1][..], 0)]));
    let phases: Vec<&[Row<'_>]> = rows.iter().map(<[Row<'_>; 1]>::as_slice).collect();
    let mut ends = vec![(0, 1, 3); 90];
    ends[0] = (2, 3, 3);
    let timetable = timetable(&machine, set(&ends), &phases);
    let why = explain(&timetable, 80);
    let choices = &why.parts[0].phase_choices;
    assert_eq!((choices.tried.len(), choices.room_at_ends), (why::PHASES, 1));
    assert_eq!(
        (choices.tried[0].phase, choices.tried[0].verdict),
        (PhaseId(0), Feasibility::Feasible)
    );
    assert_eq!(choices.tried[1].verdict, Feasibility::Full);
    assert_eq!(check_claims(&timetable, &why), 1);
}

fn compiled(machine: &Arc<Machine>, program: &Program, seed: u64) -> Option<Compiled> {
    Compiler::new(machine).seed(seed).compile(program).ok()
}

/// The same by the first few planners, for what does not depend on how good a schedule is.
fn quickly_compiled(machine: &Arc<Machine>, program: &Program, seed: u64) -> Option<Compiled> {
    let options = CompileOptions::new().seed(seed).max_plans(3);
    Compiler::new(machine).options(options).compile(program).ok()
}

fn adopted(timetable: Timetable) -> Compiled {
    let machine = timetable.routing().machine().clone();
    let bounds =
        Bounds { phases: 0, phases_by: Binding::Nothing, clocks: 0, clocks_by: Binding::Nothing };
    let predicted_clocks = predict(&timetable).clocks;
    let set = SetSchedule { timetable, bounds, proof: Proof::default(), predicted_clocks };
    Compiled::import(Schedule::new(machine, vec![set], None).unwrap(), &mut |_| ()).unwrap()
}

#[test]
fn every_kind_of_change_is_counted() {
    let machine = ring(6, |_| ());
    let ends = [(0, 1, 5), (0, 2, 5), (2, 5, 5), (3, 4, 5)];
    let before: [&[Row<'_>]; 2] = [
        &[(0, 5, &[0, 1], 0), (1, 5, &[0, 1, 2], 10), (2, 5, &[2, 3, 4, 5], 0)],
        &[(3, 5, &[3, 4], 0)],
    ];
    // x0 and x1 change places in time; x2 goes the other way round; x3 moves.
    let after: [&[Row<'_>]; 1] = [&[
        (0, 5, &[0, 1], 10),
        (1, 5, &[0, 1, 2], 0),
        (2, 5, &[2, 1, 0, 5], 0),
        (3, 5, &[3, 4], 0),
    ]];
    let a = adopted(timetable(&machine, set(&ends), &before));
    let b = adopted(timetable(&machine, set(&ends), &after));
    let found = diff(&a, &b, usize::MAX);
    let set = &found.sets[0];
    assert!(!found.identical && found.schedule.machine.is_empty());
    assert_eq!((set.common, set.renumbered), (4, 0));
    assert_eq!((set.moved, set.rerouted, set.restarted, set.rebooked), (1, 1, 2, 0));
    assert_eq!(set.phases, Both { a: 2, b: 1 });
    assert_eq!(set.placements.total, 4);
    // Those of x0 (two cells) and x1 (three) stay: starts are no matter of tables.
    assert_eq!(set.entries.unchanged, 5);
    assert_eq!(set.entries.entries.total, set.entries.entries.first.len());
    assert!(diff(&a, &b, 1).sets[0].placements.first.len() == 1);
    assert!(diff(&a, &a, 1).identical && diff(&b, &b, 1).identical);
}

#[test]
fn connections_and_machines_that_change_are_told() {
    let named = |rows: &[(u32, u32, u32, &str)]| {
        let connection = |&(from, to, words, name): &(u32, u32, u32, &str)| {
            let mut c = Connection::new(CellId(from), CellId(to), words);
            c.name = (!name.is_empty()).then(|| name.into());
            c
        };
        Program::from(ConnectionSet::new("s", rows.iter().map(connection).collect()).unwrap())
    };
    let machine = ring(6, |_| ());
    let a = named(&[(0, 1, 5, "left"), (1, 2, 5, ""), (3, 4, 5, "")]);
    let b = named(&[(4, 5, 2, ""), (0, 1, 7, "left"), (1, 2, 5, "")]);
    let other = ring(6, |p| p.t_sync = 7);
    let a = compiled(&machine, &a, 1).unwrap();
    let b = compiled(&other, &b, 1).unwrap();
    let found = diff(&a, &b, usize::MAX);
    assert_eq!(found.schedule.machine.len(), 1);
    assert_eq!(found.schedule.machine[0].what, "t_sync");
    let set = &found.sets[0];
    assert_eq!((set.added.total, set.removed.total, set.changed.total), (1, 1, 1));
    assert_eq!(set.changed.first[0].changes[0].what, "words");
    assert_eq!((set.common, set.renumbered, set.moved, set.rerouted), (2, 2, 0, 0));
    // The two that stayed have all their entries though their ids are others.
    assert!(set.entries.unchanged >= 2, "{:?}", set.entries);

    let renamed = Program::from(ConnectionSet::new("t", Vec::new()).unwrap());
    let c = compiled(&machine, &renamed, 1).unwrap();
    let found = diff(&a, &c, 3);
    assert_eq!(
        (found.schedule.removed.as_slice(), found.schedule.added.as_slice()),
        (&["s".to_owned()][..], &["t".to_owned()][..])
    );
    assert!(!found.identical && diff(&c, &c, 3).identical);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn what_why_proposes_verifies_and_costs_what_it_says(
        (machine, set, seed) in common::case(),
        picks in prop::collection::vec(any::<u16>(), 1..4),
        contract in prop::option::of((1u32..200, 20u32..2000)),
    ) {
        let mut connections = set.connections().to_vec();
        if let Some((bandwidth, latency)) = contract {
            for c in connections.iter_mut().step_by(5) {
                c.min_bandwidth = Some(bandwidth);
                c.max_latency = Some(latency);
            }
        }
        let order = set.order().to_vec();
        let set = ConnectionSet::new("random", connections).unwrap().with_order(order).unwrap();
        let count = set.len();
        let Some(compiled) = compiled(&Arc::new(machine), &set.into(), seed) else { return Ok(()) };
        let timetable = &compiled.schedule().sets()[0].timetable;
        let prediction = &compiled.sets()[0].prediction;
        for pick in picks.into_iter().filter(|_| count > 0) {
            let x = ConnectionId::from_index(usize::from(pick) % count);
            let why = why(timetable, prediction, x).unwrap();
            let routes = timetable.routing().phases().iter().flat_map(|phase| phase.iter());
            prop_assert_eq!(why.parts_total, routes.filter(|r| r.connection == x).count());
            check_claims(timetable, &why);
        }
    }

    #[test]
    fn diffs_are_empty_exactly_where_nothing_changed(
        (machine, set, seed) in common::case(),
        other_seed in any::<u64>(),
    ) {
        let (machine, program) = (Arc::new(machine), Program::from(set));
        let Some(a) = quickly_compiled(&machine, &program, seed) else { return Ok(()) };
        prop_assert!(diff(&a, &a, 2).identical);
        let b = quickly_compiled(&machine, &program, other_seed).unwrap();
        let found = diff(&a, &b, usize::MAX);
        prop_assert_eq!(found.identical, a.schedule().sets() == b.schedule().sets());
        let (set, back) = (&found.sets[0], &diff(&b, &a, usize::MAX).sets[0]);
        prop_assert_eq!(set.moved, back.moved);
        prop_assert_eq!(set.rerouted, back.rerouted);
        prop_assert_eq!(set.entries.unchanged, back.entries.unchanged);
        prop_assert_eq!(set.entries.added, back.entries.removed);
        // A schedule and its image say the same.
        let image = Compiled::import_image((**a.image()).clone(), &mut |_| ()).unwrap();
        let lifted = diff(&a, &image, usize::MAX);
        prop_assert!(lifted.identical, "{lifted:?}");
    }
}
