//! Programs of cells on an emulated machine with faults: the consequence of a fault is an error, never a hang.

use std::sync::Arc;

use conset_fabric::{FaultExtent, FaultKind, WaitCause};
use conset_runtime::ir::{CellId, Image, NodeLists};
use conset_runtime::{
    Cell, CellError, FaultPlan, Layout, Op, Plan, RunError, RunReport, ThreadOptions, Transport,
    World,
};
use proptest::prelude::*;

use crate::common::build;

const CELLS: u32 = 5;

/// Entries of the vectors, all of them shared by all cells.
const WORDS: u32 = 30;

/// Several phases of all-to-all on a ring.
fn image() -> (Arc<Image>, Plan) {
    let machine = build::machine("ring:5", |p| p.channels_per_cell = 4);
    let set = build::all_to_all(CELLS, WORDS);
    let ids: Vec<u32> = (0..WORDS).collect();
    let lists = NodeLists::from_lists(set.connections().iter().map(|_| &ids[..]));
    let image = Arc::new(build::build(&machine, set.with_nodes(lists).unwrap()));
    assert!(image.sets()[0].phases.len() > 2);
    let ids: Vec<Vec<u64>> = (0..CELLS).map(|_| (0..u64::from(WORDS)).collect()).collect();
    let layout = Layout::from_image(&image, 0, 1, &ids).unwrap();
    let plan = Plan::new(&image, 0, layout, 1).unwrap();
    (image, plan)
}

/// Sums the vectors of all cells twice, blocking or not.
fn exchange(cell: &mut Cell<'_>, plan: &Plan, nonblocking: bool) -> Result<Vec<f64>, CellError> {
    let mut vector: Vec<f64> = (0..WORDS).map(|i| f64::from(i + 100 * cell.id().0)).collect();
    for _ in 0..2 {
        if nonblocking {
            let pending = cell.start(plan, Op::Add, &vector)?;
            cell.compute(100)?;
            cell.wait(plan, pending, &mut vector)?;
        } else {
            cell.exchange_nodes(plan, Op::Add, &mut vector)?;
        }
    }
    Ok(vector)
}

type Outcome = Result<(Vec<Vec<f64>>, RunReport), RunError>;

fn run(faults: &FaultPlan, nonblocking: bool) -> Outcome {
    let (image, plan) = image();
    World::new(image).faults(faults.clone()).try_run(|cell| exchange(cell, &plan, nonblocking))
}

fn with(plan: &str, nonblocking: bool) -> Outcome {
    run(&plan.parse().unwrap(), nonblocking)
}

fn fault(plan: &str, nonblocking: bool) -> FaultKind {
    match with(plan, nonblocking) {
        Err(RunError::Fault(fault)) => fault.kind,
        other => panic!("{plan}: {:?}", other.map(|run| run.1)),
    }
}

#[test]
fn a_dead_part_is_named() {
    for nonblocking in [false, true] {
        for at in ["", " at 700", " at 3000"] {
            let FaultKind::Deadlock { waits, .. } =
                fault(&format!("link c0 -> c1 dead{at}"), nonblocking)
            else {
                panic!("a deadlock")
            };
            assert!(matches!(waits.last().unwrap().cause, WaitCause::DeadLink { .. }), "{waits:?}");
            let FaultKind::Deadlock { waits, .. } =
                fault(&format!("cell c3 dead{at}"), nonblocking)
            else {
                panic!("a deadlock")
            };
            let last = waits.last().unwrap().cause;
            let is_dead = matches!(last, WaitCause::DeadLink { .. } | WaitCause::DeadCell { .. });
            assert!(is_dead, "{waits:?}");
        }
    }
}

#[test]
fn what_only_takes_longer_arrives() {
    for nonblocking in [false, true] {
        let (words, report) = with("", nonblocking).unwrap();
        for plan in [
            "link c0 -> c1 stalled 900 at 700",
            "cell c2 stalled 900 at 700",
            "cell c2 slow 20",
            "cell c2 late 900 at switch 1",
        ] {
            let (late, longer) = with(plan, nonblocking).unwrap();
            assert!(late == words, "{plan}");
            assert!(longer.clocks > report.clocks, "{plan}: {} clocks", longer.clocks);
        }
    }
}

#[test]
fn wrong_words_and_switches_are_errors() {
    for nonblocking in [false, true] {
        let switch = fault("cell c4 misses switch 1", nonblocking);
        assert_eq!(switch, FaultKind::Absent { cell: CellId(4), switch: 1 });
        for plan in [
            "link c0 -> c1 drops word 3",
            "link c0 -> c1 duplicates word 3",
            "link c0 -> c1 reorders word 3",
            "cell c2 keeps context at switch 1",
            "cell c2 loads p0 at switch 1",
        ] {
            let kind = fault(plan, nonblocking);
            assert!(!matches!(kind, FaultKind::Absent { .. }), "{plan}: {kind}");
        }
        // The last words of a stream: nothing comes behind them.
        let last = format!("link c0 -> c1 drops words from {}", WORDS - 1);
        let kind = fault(&last, nonblocking);
        assert!(matches!(kind, FaultKind::LostWords { .. }), "{kind}");
        // Nobody sees a changed value but the program.
        let (words, _) = with("", nonblocking).unwrap();
        let (changed, _) = with("link c0 -> c1 corrupts words from 0", nonblocking).unwrap();
        assert!(words != changed);
    }
}

#[test]
fn plans_for_other_machines_and_transports_are_refused() {
    let error = with("link c0 -> c2 dead", false).unwrap_err();
    assert!(matches!(error, RunError::FaultPlan(_)), "{error}");
    let world = World::new(image().0).faults(FaultPlan::default());
    let error = world.on(Transport::Threads(ThreadOptions::workers(2))).run(|_| ()).unwrap_err();
    assert_eq!(error, RunError::FaultsElsewhere);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every run ends: with words that arrived, or with a fault.
    #[test]
    fn no_plan_hangs(seed in any::<u64>(), faults in 1usize..4, nonblocking in any::<bool>()) {
        let extent = FaultExtent { clocks: 8000, words: 300, switches: 8 };
        let plan = FaultPlan::draw(image().0.machine(), &extent, seed, faults);
        match run(&plan, nonblocking) {
            Ok(_) | Err(RunError::Fault(_)) => {}
            Err(other) => prop_assert!(false, "{plan}{other}"),
        }
    }
}
