//! Attempts, and what phases know of their streams.

use std::sync::Arc;

use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_partition_route::bounds::bounds;

use super::*;

#[test]
fn an_attempt_that_fails_changes_nothing() {
    let machine = Machine::from_spec("iwarp-timed:4x4").unwrap();
    let parameters = conset_ir::Parameters { channels_per_cell: 4, ..machine.parameters().clone() };
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let connect = |from| Connection::new(CellId(from), CellId((from * 7 + 5) % 16), 9 * from + 9);
    let set = Arc::new(ConnectionSet::new("s", (0..16).map(connect).collect()).unwrap());
    let problem = Problem::new(&machine, &set, bounds(&machine, &set).unwrap().summary()).unwrap();
    let config = crate::slot_pathfinder::SlotConfig::default();
    let plan = crate::slot_pathfinder::plan(&problem, &config, 1 << 16, 0).unwrap().plan;
    let mut full_cells = 0;
    for steps in 0..10 {
        let mut search = EjectionSearch::new(&problem, &plan, 0);
        let before = search.streams.clone();
        assert!(!search.is_in_conflict());
        if search.attempt(0, steps, u64::MAX) {
            continue;
        }
        let streams = |search: EjectionSearch<'_>| {
            let busy = |phase: ExactPhase| {
                let of = |busy: Vec<Busy>| busy.into_iter().map(|b| (b.from, b.to, b.stream));
                (
                    phase.through.into_iter().map(|through| through.len()).collect(),
                    phase.busy.into_iter().map(|busy| of(busy).collect()).collect(),
                )
            };
            search.phases.into_iter().map(busy).collect::<Vec<(Vec<usize>, Vec<Vec<_>>)>>()
        };
        for phase in &search.phases {
            for (cell, through) in phase.through.iter().enumerate() {
                let weights = through.iter().map(|&row| search.weight_of(row));
                let is_full = through.len() == 4;
                let lightest = weights.min().filter(|_| is_full).unwrap_or(0);
                full_cells += u32::from(is_full);
                assert_eq!(phase.lightest[cell], lightest);
            }
        }
        assert_eq!(search.streams, before);
        assert_eq!(search.clocks(), plan.clocks);
        assert_eq!(streams(search), streams(EjectionSearch::new(&problem, &plan, 0)));
    }
    assert!(full_cells > 0);
}

#[test]
fn a_stream_shorter_than_a_latency_stays_out() {
    let machine = Arc::new(Machine::from_spec("ring:64").unwrap());
    let parameters =
        conset_ir::Parameters { timed_starts: 1, stream_setup: 0, ..machine.parameters().clone() };
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let connect = |from, to, words| Connection::new(CellId(from), CellId(to), words);
    let rows = vec![connect(0, 1, 40), connect(10, 40, 100), connect(50, 51, 20)];
    let set = Arc::new(ConnectionSet::new("s", rows).unwrap());
    let problem = Problem::new(&machine, &set, bounds(&machine, &set).unwrap().summary()).unwrap();
    let stream = |connection, words, cells| vec![Stream { connection, words, start: 0, cells }];
    let phases = vec![
        stream(0, 40, vec![0, 1]),
        stream(1, 100, (10..=40).collect()),
        stream(2, 20, vec![50, 51]),
    ];
    let mut search = EjectionSearch::new(&problem, &Plan { phases, clocks: 0 }, 0);
    assert!(search.phases[0].may_overlap);
    (1..3).for_each(|phase| search.phases[phase].length = 0);
    search.release(2);
    assert_eq!(search.find(2).map(|place| place.phase), Some(0));
    // With the long route in the phase, targets may open streams later than the short one lasts.
    search.release(1);
    search.phase_of[1] = 0;
    search.book(1);
    assert!(search.find(2).is_none());
}
