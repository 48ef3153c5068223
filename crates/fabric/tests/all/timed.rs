//! Timed starts: when streams open, and that a late start costs time and
//! nothing else.

use crate::build;
use std::sync::Arc;

use conset_fabric::{Checked, FabricOptions, Jitter, run_with};
use conset_ir::{ConnectionId, Direction, Machine, Parameters};
use proptest::prelude::*;

/// Runs pairs with planned starts `starts`, by connection.
fn run(
    machine: &Arc<Machine>,
    pairs: &[(u32, u32, u32)],
    starts: &[u64],
    jitter: Option<Jitter>,
) -> Checked {
    let set = build::set(pairs);
    let mut tables = build::tables(machine, &set);
    for operation in tables.iter_mut().flatten().flat_map(|cell| &mut cell.operations) {
        operation.start = starts[operation.connection.index()];
    }
    let image = build::image(machine, set, &tables);
    run_with(image, 0, 3, FabricOptions::default().trace(true).jitter(jitter)).unwrap()
}

fn timed(spec: &str, change: impl FnOnce(&mut Parameters)) -> Arc<Machine> {
    build::machine(spec, |p| {
        p.timed_starts = 1;
        change(p);
    })
}

/// Runs with jitter are reproducible only if these delays stay.
#[test]
fn delays_of_a_seed_never_change() {
    let machine = timed("ring:8", |_| ());
    let jitter = Some(Jitter { seed: 5, most: 1000 });
    let checked = run(&machine, &[(0, 2, 5), (4, 5, 5)], &[300, 300], jitter);
    let delays = |connection| opened(&checked, connection).iter().map(|end| end.1 - 300).collect();
    let delays: [Vec<u64>; 2] = [delays(0), delays(1)];
    assert!(delays.iter().flatten().all(|&delay| delay <= 1000));
    assert_eq!(delays, [[601, 464], [590, 134]]);
}

/// When the ends of a connection were opened, in clocks from the end of the only switch.
fn opened(checked: &Checked, connection: u32) -> Vec<(Direction, u64)> {
    let switch = checked.report.phases[0].switch;
    let streams = &checked.trace.as_ref().unwrap().streams;
    let of = streams.iter().filter(|span| span.connection == ConnectionId(connection));
    of.map(|span| (span.direction, span.open - switch)).collect()
}

#[test]
fn streams_open_at_their_planned_starts_at_both_ends() {
    for (setup, duplex) in [(0, "full"), (98, "full"), (7, "half")] {
        let machine = timed("ring:8", |p| {
            p.stream_setup = setup;
            p.set("duplex", duplex).unwrap();
        });
        let checked = run(&machine, &[(0, 2, 50), (4, 5, 10), (6, 6, 5)], &[300, 77, 900], None);
        assert!(checked.payload_ok);
        for (connection, start) in [(0, 300), (1, 77), (2, 900)] {
            let opened = opened(&checked, connection);
            assert_eq!(opened.len(), 2);
            assert!(opened.iter().all(|end| end.1 >= start), "{opened:?}");
            assert!(opened.iter().any(|end| end.1 == start), "{opened:?}");
        }
    }
}

#[test]
fn a_start_that_cannot_be_kept_only_delays() {
    let machine = timed("ring:8", |_| ());
    let pairs = [(0, 1, 100), (0, 2, 100), (0, 3, 100)];
    // The second is due while the first runs, and follows it directly; the third keeps its start.
    let checked = run(&machine, &pairs, &[10, 50, 1000], None);
    assert_eq!(
        opened(&checked, 1).into_iter().find(|end| end.0 == Direction::Send).unwrap().1,
        210
    );
    assert_eq!(
        opened(&checked, 2).into_iter().find(|end| end.0 == Direction::Send).unwrap().1,
        1000
    );
    assert_eq!(checked.report.phases[0].clocks, 1000 + 200 + 3 * 2 + 2);
}

#[test]
fn without_timed_starts_the_plan_is_an_order_only() {
    let machine = build::machine("ring:8", |_| ());
    let pairs = [(0, 1, 100), (0, 2, 100)];
    let early = run(&machine, &pairs, &[0, 1], None);
    let late = run(&machine, &pairs, &[5000, 9000], Some(Jitter { seed: 1, most: 64 }));
    assert_eq!(early, late);
}

#[test]
fn starts_beyond_all_clocks_end_nothing() {
    let machine = timed("ring:4", |_| ());
    let checked = run(&machine, &[(0, 1, 10), (2, 3, 10)], &[u64::MAX, u64::MAX - 1], None);
    assert!(checked.payload_ok);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever starts are late, all words arrive, and no phase takes longer than the plan's last
    /// start, the lateness and all its words one after the other.
    #[test]
    fn late_starts_only_cost_time(
        spec in prop::sample::select(vec!["torus:4x4", "ring:5", "mesh:3x3", "fat-tree:9"]),
        (half, streams, depth, setup) in (any::<bool>(), 1u32..3, 1u32..10, 0u32..40),
        pairs in prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..200, 0u64..3000), 1..40),
        seed: u64,
    ) {
        let machine = timed(spec, |p| {
            p.set("duplex", if half { "half" } else { "full" }).unwrap();
            (p.streams, p.channel_depth, p.stream_setup, p.channels_per_cell) = (streams, depth, setup, 64);
        });
        let cells = machine.agent_count() as u32;
        let mut starts: Vec<u64> = pairs.iter().map(|row| row.3).collect();
        starts.sort_unstable();
        let pairs: Vec<_> = pairs.iter().map(|&(s, t, w, _)| (s % cells, t % cells, w)).collect();
        let words: u64 = pairs.iter().map(|row| u64::from(row.2)).sum();
        let alone = pairs.len() as u64 * (2 * u64::from(setup) + 100) + 4 * words;
        for most in [0, 16, 64, 100_000] {
            let checked = run(&machine, &pairs, &starts, Some(Jitter { seed, most }));
            prop_assert!(checked.payload_ok);
            let clocks: u64 = checked.report.phases.iter().map(|phase| phase.clocks).max().unwrap();
            prop_assert!(clocks <= starts[starts.len() - 1] + u64::from(most) + alone);
        }
    }
}
