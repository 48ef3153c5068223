//! What must hold of every timetable, and how short those of known patterns must be.

use std::sync::Arc;

use conset_ir::{
    CellId, ChannelId, ConnectionId, Duplex, LinkId, Machine, PhaseId, PhaseRoutes, Routing,
    Timetable,
};
use conset_scheduler::{ScheduleError, timetable};
use proptest::prelude::*;

use crate::common::{
    Ends, Numbers, bound, check, machine, machine_with, neighbours, one_phase, route, set,
};

fn planned(machine: &Arc<Machine>, ends: &[Ends]) -> Timetable {
    let timetable = timetable(one_phase(machine, set(ends))).unwrap();
    check(&timetable, 0);
    timetable
}

fn half(spec: &str) -> Arc<Machine> {
    machine_with(spec, |p| p.duplex = Duplex::Half)
}

#[test]
fn the_torus_pattern_takes_four_rounds() {
    // Paper, table 1: 8 clocks a word.
    let machine = machine("iwarp");
    let planned = planned(&machine, &neighbours(&machine, 256));
    assert_eq!(planned.phases()[0].makespan, 4 * 512);
}

#[test]
fn equal_durations_reach_the_bound_in_any_order_of_the_set() {
    let shapes = [
        "torus:8x8",
        "torus:7x5",
        "torus:9x9",
        "torus:2x5",
        "torus:2x2x2",
        "torus:3x3x3",
        "torus:4x4x4",
        "ring:5",
        "ring:2",
        "ring:1",
        "mesh:5x3",
        "hypercube:6",
        "torus:16x16",
    ];
    for shape in shapes {
        let machine = machine(shape);
        let mut ends = neighbours(&machine, 100);
        for seed in 0..6 {
            let planned = planned(&machine, &ends);
            assert_eq!(planned.phases()[0].makespan, bound(&planned, 0), "{shape} {seed}");
            Numbers(seed).shuffle(&mut ends);
        }
    }
}

#[test]
fn half_duplex_reaches_the_bound_on_even_tori() {
    for shape in ["torus:8x8", "torus:4x6", "torus:2x4", "hypercube:5", "mesh:4x3"] {
        let machine = half(shape);
        let mut ends = neighbours(&machine, 100);
        for seed in 0..4 {
            let planned = planned(&machine, &ends);
            assert_eq!(planned.phases()[0].makespan, bound(&planned, 0), "{shape} {seed}");
            Numbers(seed).shuffle(&mut ends);
        }
    }
    // Five cells in a ring: two of five can be paired at a time, so ten connections need 5.
    let ring = half("ring:5");
    assert_eq!(planned(&ring, &neighbours(&ring, 1)).phases()[0].makespan, 5 * 2);
}

#[test]
fn all_to_all_with_itself_is_a_latin_square() {
    let machine = machine("torus:4x3");
    let mut ends: Vec<Ends> = (0..12).flat_map(|a| (0..12).map(move |b| (a, b, 10))).collect();
    Numbers(5).shuffle(&mut ends);
    assert_eq!(planned(&machine, &ends).phases()[0].makespan, 12 * 20);
}

#[test]
fn every_phase_of_all_to_all_reaches_its_bound() {
    let machine = machine("iwarp");
    let mut ends: Vec<Ends> =
        (0..64).flat_map(|a| (0..64).filter(move |&b| a != b).map(move |b| (a, b, 32))).collect();
    Numbers(9).shuffle(&mut ends);
    let timetable = timetable(route(&machine, set(&ends))).unwrap();
    for phase in 0..timetable.phases().len() {
        check(&timetable, phase);
        assert_eq!(timetable.phases()[phase].makespan, bound(&timetable, phase));
    }
}

#[test]
fn self_connections_book_what_they_use() {
    let both = planned(&machine("ring:2"), &[(0, 0, 10), (0, 1, 5), (1, 0, 5)]);
    assert_eq!(both.phases()[0].makespan, 30);
    let turns = planned(&half("ring:2"), &[(0, 0, 10), (0, 1, 5), (1, 0, 5)]);
    assert_eq!(turns.phases()[0].slots[0].duration, 40);
    assert_eq!(turns.phases()[0].makespan, 60);
}

#[test]
fn nothing_to_do_takes_no_time() {
    let machine = machine("ring:1");
    let none = Routing::new(machine.clone(), Arc::new(set(&[])), vec![]).unwrap();
    assert!(timetable(none).unwrap().phases().is_empty());
    let empty = planned(&machine, &[]);
    assert_eq!(empty.phases()[0].makespan, 0);
    assert_eq!(planned(&machine, &[(0, 0, 7)]).phases()[0].makespan, 14);
}

#[test]
fn order_is_kept_between_all_parts_of_a_phase() {
    let machine = machine("ring:6");
    let x = ConnectionId;
    let pairs = vec![(x(2), x(0)), (x(0), x(1)), (x(3), x(1))];
    let set = set(&[(0, 1, 10), (2, 3, 4), (4, 5, 30), (0, 4, 2)]).with_order(pairs).unwrap();
    // The first connection in two parts.
    let mut routes = PhaseRoutes::new();
    let channels = [ChannelId(0); 2];
    for (id, words, from, to) in
        [(1, 4, 2, 3), (0, 3, 0, 1), (2, 30, 4, 5), (0, 7, 0, 1), (3, 2, 0, 4)]
    {
        let cells = [CellId(from), CellId(to)];
        routes.push(x(id), words, &cells, &[LinkId(0)], &channels).unwrap();
    }
    let routing = Routing::new(machine, Arc::new(set), vec![routes]).unwrap();
    let timetable = timetable(routing).unwrap();
    check(&timetable, 0);
    let slots = &timetable.phases()[0].slots;
    assert_eq!(slots[2].start, 0);
    // And until the last words of what comes before are received, over a link and by an agent.
    assert_eq!(slots[1].start.min(slots[3].start), 60 + 4);
    assert_eq!(slots[0].start, 84 + 4);
}

#[test]
fn a_phase_that_no_clock_counts_is_refused() {
    let machine = machine_with("ring:2", |p| p.access_clocks_per_word = 1_000_000_000);
    let ends = vec![(0, 1, 1 << 30); 9];
    let error = timetable(one_phase(&machine, set(&ends))).unwrap_err();
    assert_eq!(error, ScheduleError::TooLong { phase: PhaseId(0) });
    assert!(error.to_string().contains("p0"));
}

/// The least makespan of any timetable of a few routes: some best timetable has every slot start
/// at 0 or where another ends, so placing routes one by one, each at its first fit, in every
/// sequence, meets it.
fn optimum(jobs: &[([u32; 2], u64)]) -> u64 {
    fn place(
        jobs: &[([u32; 2], u64)],
        left: u32,
        booked: &mut Vec<(u32, u64, u64)>,
        best: &mut u64,
    ) {
        let end = booked.iter().map(|b| b.2).max().unwrap_or(0);
        if end >= *best {
            return;
        }
        if left == 0 {
            *best = end;
            return;
        }
        for (row, &(ports, duration)) in jobs.iter().enumerate() {
            if left & (1 << row) == 0 {
                continue;
            }
            // Not before the latest start so far: sequences by start suffice.
            let from = booked.iter().map(|b| b.1).max().unwrap_or(0);
            let busy = booked.iter().filter(|b| ports.contains(&b.0)).map(|b| b.2).max();
            let start = from.max(busy.unwrap_or(0));
            let depth = booked.len();
            booked.extend(ports.map(|port| (port, start, start + duration)));
            place(jobs, left & !(1 << row), booked, best);
            booked.truncate(depth);
        }
    }
    let mut best = u64::MAX;
    place(jobs, (1 << jobs.len()) - 1, &mut Vec::new(), &mut best);
    best
}

fn few_ends(cells: u32, most: usize, words: u32) -> impl Strategy<Value = Vec<Ends>> {
    prop::collection::vec((0..cells, 0..cells, 1..=words), 0..=most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_phase_has_a_right_timetable(
        ends in few_ends(12, 60, 40),
        pairs in prop::collection::vec((0usize..60, 0usize..60), 0..20),
        is_half: bool,
        setup in 0u32..9,
        link in 1u32..6,
    ) {
        let machine = machine_with("torus:4x3", |p| {
            p.duplex = if is_half { Duplex::Half } else { Duplex::Full };
            p.stream_setup = setup;
            p.link_clocks_per_word = link;
        });
        let n = ends.len();
        let pairs = pairs.iter().filter(|(a, b)| a < b && *b < n);
        let pairs = pairs.map(|&(a, b)| (ConnectionId(b as u32), ConnectionId(a as u32)));
        let set = set(&ends).with_order(pairs.collect()).unwrap();
        let timetable = timetable(one_phase(&machine, set)).unwrap();
        check(&timetable, 0);
        for (slot, &(source, target, words)) in timetable.phases()[0].slots.iter().zip(&ends) {
            let word = if source == target { 2 } else { link.max(2) };
            let twice = if source == target && is_half { 2 } else { 1 };
            prop_assert_eq!(slot.duration, u64::from(twice * (words * word + setup)));
        }
    }

    #[test]
    fn equal_words_reach_the_bound_with_full_duplex(
        ends in prop::collection::vec((0u32..12, 0u32..12), 0..120),
        words in 1u32..50,
    ) {
        let machine = machine("mesh:4x3");
        let ends: Vec<Ends> = ends.iter().map(|&(s, t)| (s, t, words)).collect();
        // Self-connections have no link, so all durations are equal only if links are no slower.
        let planned = planned(&machine, &ends);
        prop_assert_eq!(planned.phases()[0].makespan, bound(&planned, 0));
    }

    #[test]
    fn tiny_phases_are_close_to_the_optimum(
        ends in few_ends(4, 6, 9),
        is_half: bool,
    ) {
        let machine = if is_half { half("ring:4") } else { machine("ring:4") };
        let planned = planned(&machine, &ends);
        let times = &planned.phases()[0];
        let jobs: Vec<([u32; 2], u64)> = ends
            .iter()
            .zip(&times.slots)
            .map(|(&(s, t, _), slot)| {
                let receive = if is_half { 2 * t } else { 2 * t + 1 };
                ([2 * s, receive], slot.duration)
            })
            .collect();
        let best = optimum(&jobs);
        prop_assert!(best <= times.makespan);
        prop_assert!(times.makespan <= best * 2, "{} against {best}", times.makespan);
    }
}
