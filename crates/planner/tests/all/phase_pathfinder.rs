//! Plans by phases keep every rule that their machine has, whatever the set, and need few phases.

use crate::{cases, common};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{check, machine};
use conset_ir::{CellId, Connection, ConnectionSet, Duplex, Machine, Parameters};
use conset_partition_route::bounds;
use conset_planner::phase_pathfinder::{self, PhasePlans};
use conset_planner::{Found, Limits, Plan, Problem};
use proptest::prelude::*;

fn plans_of(problem: &Problem<'_>, seed: u64) -> Option<PhasePlans> {
    let config = phase_pathfinder::PhaseConfig {
        last_rounds: 16,
        switches: u64::MAX,
        ..phase_pathfinder::PhaseConfig::default()
    };
    phase_pathfinder::plans(
        problem,
        &config,
        Limits::of_work(phase_pathfinder::budget(problem)),
        seed,
    )
}

fn plans(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<PhasePlans> {
    let bounds = bounds::bounds(machine, set).ok()?.summary();
    plans_of(&Problem::new(machine, set, bounds)?, seed)
}

/// The plan with starts.
fn planned(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Option<Plan> {
    common::planned(machine, set, |problem| {
        let PhasePlans { with_starts, work, .. } = plans_of(problem, seed)?;
        Some(Found { plan: with_starts?, work })
    })
}

/// The plans whose streams share links.
fn shared(machine: &Arc<Machine>, set: &Arc<ConnectionSet>, seed: u64) -> Vec<Plan> {
    plans(machine, set, seed).unwrap().shared
}

/// Recounts a plan whose streams share links, from the machine model alone. Returns the most streams of an
/// agent, in a direction and phase.
fn check_shared(machine: &Machine, set: &ConnectionSet, plan: &Plan) -> usize {
    let p = machine.parameters();
    let mut carried = vec![0; set.len()];
    let (mut clocks, mut most) = (0, 0);
    for streams in &plan.phases {
        let mut channels = vec![0; machine.cell_count()];
        let mut ports: BTreeMap<(u32, bool), (u64, usize)> = BTreeMap::new();
        let mut links: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for stream in streams {
            let c = &set.connections()[stream.connection as usize];
            assert_eq!([stream.cells[0], *stream.cells.last().unwrap()], [c.source.0, c.target.0]);
            assert_eq!(stream.start, 0);
            carried[stream.connection as usize] += stream.words;
            stream.cells.iter().for_each(|&cell| channels[cell as usize] += 1);
            let words = u64::from(stream.words);
            let (link, access) = (p.link_clocks_per_word, p.access_clocks_per_word);
            let pace = if stream.cells.len() == 1 { access } else { access.max(link) };
            let turned = c.source == c.target && p.duplex == Duplex::Half;
            let busy = (words * u64::from(pace) + u64::from(p.stream_setup)) << u32::from(turned);
            let receives = p.duplex == Duplex::Full;
            let ends = [(c.source.0, false), (c.target.0, receives)];
            for end in &ends[..if turned { 1 } else { 2 }] {
                let port = ports.entry(*end).or_default();
                *port = (port.0 + busy, port.1 + 1);
            }
            for pair in stream.cells.windows(2) {
                *links.entry((pair[0], pair[1])).or_default() += words * p.word_clocks();
            }
        }
        assert!(channels.into_iter().all(|used| used <= p.channels_per_cell));
        let share = |(&(a, b), &load): (&(u32, u32), &u64)| {
            let parallel = machine.links_between(CellId(a), CellId(b)).count() as u64;
            assert!(parallel > 0, "c{a} and c{b} are no neighbours");
            load / (parallel * u64::from(p.streams_per_link()))
        };
        let busiest = links.iter().map(share).chain(ports.values().map(|port| port.0)).max();
        clocks += p.switch_clocks() + busiest.unwrap_or(0);
        most = most.max(ports.values().map(|port| port.1).max().unwrap_or(0));
    }
    assert_eq!(plan.clocks, clocks);
    assert!(set.connections().iter().zip(carried).all(|(c, carried)| c.words == carried));
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn plans_keep_every_rule(
        machine in machine(),
        sends in prop::collection::vec((any::<u32>(), any::<u32>(), 1..900u32), 1..90),
        seed in 0..4u64,
    ) {
        let set = Arc::new(cases::set(&machine, &sends));
        // At once, because no other test of the crate takes so long.
        let plans = || plans(&machine, &set, seed);
        let (found, again) = rayon::join(plans, plans);
        prop_assert_eq!(&found, &again);
        // These sets are so small that a plan is always found.
        prop_assert!(found.is_some());
        let PhasePlans { with_starts, shared, .. } = found.as_ref().unwrap();
        let with_starts = with_starts.as_ref().unwrap();
        check(&machine, &set, with_starts);
        let bounds = bounds::bounds(&machine, &set).unwrap().summary();
        prop_assert!(with_starts.clocks >= bounds.clocks);
        prop_assert!(!shared.is_empty());
        prop_assert!(shared.is_sorted_by_key(|plan| plan.clocks));
        for plan in shared {
            check_shared(&machine, &set, plan);
        }
    }
}

/// The halo of 4x4x4 parts, each with up to 26 neighbours, one part on a cell.
fn halo(words: impl Fn(i32) -> u32) -> ConnectionSet {
    let part = |x: i32, y: i32, z: i32| CellId((x + 4 * y + 16 * z) as u32);
    let inside = |at: i32| (0..4).contains(&at);
    let mut connections = Vec::new();
    for at in 0..64 {
        let (x, y, z) = (at % 4, at / 4 % 4, at / 16);
        for to in (0..27).filter(|&to| to != 13) {
            let step = (to % 3 - 1, to / 3 % 3 - 1, to / 9 - 1);
            let (u, v, w) = (x + step.0, y + step.1, z + step.2);
            if inside(u) && inside(v) && inside(w) {
                let words = words(step.0.abs() + step.1.abs() + step.2.abs());
                connections.push(Connection::new(part(x, y, z), part(u, v, w), words));
            }
        }
    }
    ConnectionSet::new("halo", connections).unwrap()
}

#[test]
fn a_halo_in_three_dimensions_needs_the_phases_of_its_bound() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:8x8").unwrap());
    let set = Arc::new(halo(|shared| [0, 16, 4, 1][shared as usize]));
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let plan = planned(&machine, &set, 1).unwrap();
    check(&machine, &set, &plan);
    assert_eq!(plan.phases.len(), bounds.phases as usize);
    let over = plan.clocks as f64 / bounds.clocks as f64;
    assert!(over < 1.1, "{} clocks, {over} over {bounds:?}", plan.clocks);
}

/// Each cell sends to those so many columns and rows further on, round and round.
fn shifts(side: u32, by: &[(u32, u32)], words: u32) -> ConnectionSet {
    let connect = |cell: u32, by: (u32, u32)| {
        let target = (cell % side + by.0) % side + (cell / side + by.1) % side * side;
        Connection::new(CellId(cell), CellId(target), words)
    };
    let cells = 0..side * side;
    let connections = cells.flat_map(|cell| by.iter().map(move |&by| connect(cell, by))).collect();
    ConnectionSet::new("shifts", connections).unwrap()
}

#[test]
fn streams_go_round_a_torus_both_ways_to_share_its_links() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:8x8").unwrap());
    let set = Arc::new(shifts(8, &[(3, 3)], 64));
    // Three streams would use a link on shortest routes, and with five of eight on them two.
    let plan = &shared(&machine, &set, 1)[0];
    assert_eq!(check_shared(&machine, &set, plan), 1);
    assert_eq!(plan.clocks, machine.parameters().switch_clocks() + 2 * 128);
}

#[test]
fn agents_have_one_stream_in_a_phase_if_that_takes_few_phases() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:6x6").unwrap());
    let set = Arc::new(shifts(6, &[(1, 2), (2, 3), (3, 1), (2, 2)], 512));
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    assert!(bounds.phases < 4);
    let plans = shared(&machine, &set, 1);
    let streams = plans.iter().map(|plan| (plan.phases.len(), check_shared(&machine, &set, plan)));
    assert!(streams.clone().any(|of| of == (4, 1)), "{:?}", streams.collect::<Vec<_>>());
}

#[test]
fn a_plan_far_above_the_best_one_is_not_improved() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:6x6").unwrap());
    let set = Arc::new(shifts(6, &[(1, 2), (2, 3), (3, 1), (2, 2)], 64));
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let problem = Problem::new(&machine, &set, bounds).unwrap();
    let default = phase_pathfinder::PhaseConfig::default();
    let config = phase_pathfinder::PhaseConfig { improved: set.len() - 1, ..default };
    let work = phase_pathfinder::budget(&problem);
    let plans = |clocks: u64| {
        let limits = Limits { work, clocks };
        phase_pathfinder::plans(&problem, &config, limits, 1).unwrap()
    };
    let [free, far] = [u64::MAX, bounds.clocks / 2].map(plans);
    assert!(far.work < free.work / 4, "{} of {}", far.work, free.work);
    let [free, far] = [free, far].map(|plans| plans.with_starts.unwrap());
    check(&machine, &set, &far);
    assert_eq!(far.phases.len(), free.phases.len());
    assert!(free.clocks < far.clocks);
    // Whatever may still become the best plan is improved as if there was no other.
    let near = plans(far.clocks).with_starts.unwrap();
    assert_eq!(near, free);
}

#[test]
fn one_cell_a_ring_of_two_and_a_connection_to_itself_are_planned() {
    let link = |a: u32, b: u32| Connection::new(CellId(a), CellId(b), 7);
    for (spec, ends) in [("ring:1", (0, 0)), ("ring:2", (0, 1)), ("torus:2x3", (4, 4))] {
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        for channels in [2, 3] {
            let parameters =
                Parameters { channels_per_cell: channels, ..machine.parameters().clone() };
            let machine = Arc::new(machine.with_parameters(parameters).unwrap());
            let set = ConnectionSet::new("s", vec![link(ends.0, ends.1); 7]).unwrap();
            let set = Arc::new(set);
            let plan = planned(&machine, &set, 0).unwrap();
            check(&machine, &set, &plan);
            assert_eq!(plan.phases.len() as u32, 7u32.div_ceil(channels));
        }
    }
}

#[test]
fn sets_that_it_does_not_plan_are_left_alone() {
    let machine = Arc::new(Machine::from_spec("iwarp-timed:4x4").unwrap());
    for set in common::declined(true) {
        assert_eq!(planned(&machine, &set, 0), None);
    }
}
