//! Step plans: the CM-5's measurements (section 3 of its paper), closed forms, words that are passed on,
//! random plans under both protocols.

use crate::build;
use std::sync::Arc;

use conset_fabric::messages::{MessageOptions, MessagesReport, predict, run_checked, run_steps};
use conset_fabric::{FaultKind, coverage_fault};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Piece, Protocol, SetImage,
    StepMessages, Steps,
};
use proptest::prelude::*;

/// One message in a step: source, target, words.
type Row = (u32, u32, u32);

/// A plan with a connection for each message.
fn plan(machine: &Arc<Machine>, steps: &[Vec<Row>]) -> Steps {
    let rows: Vec<Row> = steps.iter().flatten().copied().collect();
    let set = build::set(&rows);
    let mut messages = StepMessages::new();
    let mut ids = (0..).map(ConnectionId);
    for step in steps {
        for &(source, target, _) in step {
            let piece = Piece::whole(&set, ids.next().unwrap());
            messages.push(CellId(source), CellId(target), &[piece]).unwrap();
        }
        messages.end_step().unwrap();
    }
    Steps::new(machine.clone(), Arc::new(set), messages).unwrap()
}

fn run(steps: &Steps) -> MessagesReport {
    let report = run_steps(steps, &MessageOptions::default()).unwrap();
    assert!(report.payload_ok, "{report:?}");
    report
}

fn run_on(spec: &str, step: &[Row]) -> u64 {
    run(&plan(&build::machine(spec, |_| ()), &[step.to_vec()])).clocks
}

fn near(clocks: u64, expected: f64, tolerance: f64) -> bool {
    (clocks as f64 / expected - 1.0).abs() <= tolerance
}

#[test]
fn one_message_takes_the_time_that_the_cm5_paper_measured() {
    for bytes in [16u32, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 10240] {
        let clocks = run_on("cm5:32", &[(0, 1, bytes / 4)]);
        let microseconds = 73.0 + 0.112 * f64::from(bytes);
        assert!(near(clocks, 100.0 * microseconds, 0.01), "{bytes} bytes: {clocks}");
    }
}

#[test]
fn distance_and_messages_in_small_clusters_do_not_matter_on_the_cm5() {
    for bytes in [16u32, 512, 4096, 8192] {
        let words = bytes / 4;
        let near_by = run_on("cm5:256", &[(0, 1, words)]) as f64;
        for target in [4, 16, 64] {
            let clocks = run_on("cm5:256", &[(0, target, words)]);
            assert!(near(clocks, near_by, 0.03), "{bytes} bytes to {target}: {clocks}");
        }
    }
    let alone = run_on("cm5:32", &[(0, 1, 2560)]) as f64;
    for pairs in [[(0, 1), (2, 3)], [(0, 4), (1, 5)], [(0, 16), (1, 17)]] {
        let clocks = run_on("cm5:32", &pairs.map(|(from, to)| (from, to, 2560)));
        assert!(near(clocks, alone, 0.03), "{pairs:?}: {clocks}");
    }
    let four: Vec<Row> = (0..4).map(|cell| (cell, cell + 4, 2560)).collect();
    assert!(near(run_on("cm5:32", &four), alone, 0.03));
}

#[test]
fn sixteen_messages_between_clusters_share_eight_links_of_the_cm5() {
    for spec in ["cm5:32", "cm5:256"] {
        let alone = run_on(spec, &[(0, 16, 2560)]) as f64;
        let all: Vec<Row> = (0..16).map(|cell| (cell, cell + 16, 2560)).collect();
        let ratio = run_on(spec, &all) as f64 / alone;
        assert!((1.8..=2.2).contains(&ratio), "{spec}: {ratio}");
    }
}

#[test]
fn a_rendezvous_has_the_closed_form_and_an_exchange_is_two_messages_in_turn() {
    for spec in ["mesh:3x3", "torus:2x3", "hypercube:3", "fat-tree:5/2.3", "ring:1", "delta:3x3"] {
        for duplex in [Duplex::Half, Duplex::Full] {
            let machine = build::machine(spec, |p| {
                (p.protocol, p.duplex) = (Protocol::Rendezvous, duplex);
                (p.c_send, p.c_receive) = (50, 70);
                (p.link_clocks_per_word, p.access_clocks_per_word) = (2, 7);
                p.message_extra_words = 3;
            });
            for from in machine.endpoints() {
                let hops = machine.hops_from(from);
                for to in machine.endpoints() {
                    let d = u64::from(hops[to.index()]);
                    let one = 50 + 70 + 7 + 2 * d + (20 + 3) * 7;
                    let set = build::set(&[(from.0, to.0, 20)]);
                    let message = run_checked(&machine, &set, &MessageOptions::default()).unwrap();
                    assert_eq!(message.clocks, one, "{spec} {from} {to}");
                    if from != to {
                        let both = vec![(from.0, to.0, 20), (to.0, from.0, 20)];
                        let clocks = run(&plan(&machine, &[both])).clocks;
                        assert_eq!(clocks, 2 * one, "{spec} {duplex:?} {from} {to}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_prediction_of_rendezvous_is_that_of_free_cells() {
    // A shift by one, of which every cell sends and receives one message.
    let set = build::set(&(0..32).map(|c| (c, (c + 1) % 32, 100)).collect::<Vec<_>>());
    let half = build::machine("cm5:32", |_| ());
    assert_eq!(predict(&half, &set), 2 * (7205 + 4500));
    let full = build::machine("cm5:32", |p| p.duplex = Duplex::Full);
    assert_eq!(predict(&full, &set), 7205 + 4500);
    let report = run_checked(&full, &set, &MessageOptions::default()).unwrap();
    assert!(near(report.clocks, 7205.0 + 4500.0, 0.02), "{}", report.clocks);
}

#[test]
fn copies_delay_what_the_cell_passes_on() {
    for spec in ["t3d:2x2x2", "delta:2x2"] {
        let clocks = |copy| {
            let machine = build::machine(spec, |p| p.copy_clocks_per_word = copy);
            let connection = Connection::new(CellId(0), CellId(3), 100);
            let set = Arc::new(ConnectionSet::new("s", vec![connection]).unwrap());
            let mut messages = StepMessages::new();
            for (source, target) in [(0, 1), (1, 3)] {
                let piece = Piece::whole(&set, ConnectionId(0));
                messages.push(CellId(source), CellId(target), &[piece]).unwrap();
                messages.end_step().unwrap();
            }
            run(&Steps::new(machine, set, messages).unwrap()).clocks
        };
        assert_eq!(clocks(7), clocks(0) + 700, "{spec}");
    }
}

/// The words that a plan does not bring to their targets, without a run.
#[test]
fn words_that_no_plan_would_deliver_are_counted() {
    let machine = build::machine("ring:4", |_| ());
    let set = Arc::new(build::set(&[(0, 2, 8), (0, 1, 6), (1, 3, 9)]));
    let fault = |rows: &[(u32, u32, u32, u32, u32)]| {
        let mut messages = StepMessages::new();
        for &(source, target, connection, first_word, words) in rows {
            let piece = Piece { connection: ConnectionId(connection), first_word, words };
            messages.push(CellId(source), CellId(target), &[piece]).unwrap();
            messages.end_step().unwrap();
        }
        let steps = Steps::new(machine.clone(), set.clone(), messages).unwrap();
        coverage_fault(&SetImage::of_steps(steps))
    };
    let missing = |connection, missing, connections| {
        let connection = ConnectionId(connection);
        Some(FaultKind::Coverage { connection, missing, extra: 0, connections })
    };
    let rest = [(0, 1, 1, 0, 6), (1, 3, 2, 0, 9)];
    let with_rest = |rows: &[_]| fault(&[rows, &rest].concat());
    assert_eq!(with_rest(&[(0, 2, 0, 0, 8)]), None);
    assert_eq!(with_rest(&[(0, 2, 0, 4, 4), (0, 2, 0, 0, 4)]), None);
    // Words 2 and 3 are sent by a cell that has passed them on; 0 and 1 stay there.
    assert_eq!(with_rest(&[(0, 1, 0, 0, 4), (0, 2, 0, 2, 6)]), missing(0, 2 + 2, 1));
    // Only the first half is at c1.
    assert_eq!(with_rest(&[(0, 1, 0, 0, 4), (1, 2, 0, 0, 4), (1, 2, 0, 4, 4)]), missing(0, 4, 1));
    assert_eq!(fault(&[(0, 2, 0, 0, 8)]), missing(1, 6, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_plans_are_delivered_and_skipping_changes_nothing(
        spec in prop::sample::select(
            vec!["cm5:9", "t3d:2x2x3", "delta:3x3", "ring:5", "iwarp-fem:3x3", "cm5:24"],
        ),
        rows in prop::collection::vec((0..100u32, 0..100u32, 1..400u32, any::<bool>()), 1..40),
    ) {
        let machine = build::machine(spec, |_| ());
        let cells = machine.agent_count() as u32;
        let mut steps = vec![Vec::new()];
        for (source, target, words, last) in rows {
            let (source, target) = (source % cells, target % cells);
            if source != target {
                steps.last_mut().unwrap().push((source, target, words));
            }
            if last {
                steps.push(Vec::new());
            }
        }
        let plan = plan(&machine, &steps);
        let report = run(&plan);
        prop_assert_eq!(report.messages, plan.messages().len());
        let ticked = run_steps(&plan, &MessageOptions::default().skip(false));
        prop_assert_eq!(Ok(report), ticked);
    }
}
