//! Lists of sends and receives: what the CM-5 paper measured (section 3), closed forms,
//! deadlocks, wrong lists, random plans under both protocols.

mod build;

use std::sync::Arc;

use conset_fabric::messages::{
    MessageOptions, MessagesReport, StepOperation, predict, run_checked, run_steps,
};
use conset_fabric::{Fault, FaultKind};
use conset_ir::{CellId, Direction, Duplex, Machine, Protocol};
use proptest::prelude::*;

type Lists = Vec<Vec<StepOperation>>;

/// One message in a step: source, target, words.
type Row = (u32, u32, u32);

/// The lists of a plan; in a step, a cell's operations are in the order of the step's messages.
fn lists(cells: usize, steps: &[Vec<Row>]) -> Lists {
    let mut lists = vec![Vec::new(); cells];
    for (group, step) in (0..).zip(steps) {
        for &(source, target, words) in step {
            let mut put = |cell: u32, direction, peer| {
                let op = StepOperation::new(direction, CellId(peer), words, group);
                lists[cell as usize].push(op);
            };
            put(source, Direction::Send, target);
            put(target, Direction::Receive, source);
        }
    }
    lists
}

fn run(machine: &Arc<Machine>, lists: &Lists) -> MessagesReport {
    let report = run_steps(machine, "plan", lists, &MessageOptions::default()).unwrap();
    assert!(report.payload_ok, "{report:?}");
    report
}

fn run_on(spec: &str, step: &[Row]) -> u64 {
    let machine = build::machine(spec, |_| ());
    run(&machine, &lists(machine.agent_count(), &[step.to_vec()])).clocks
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
fn a_rendezvous_has_the_closed_form_and_an_exchange_depends_on_the_duplex() {
    for spec in ["mesh:3x3", "torus:2x3", "hypercube:3", "fat-tree:5/2.3", "ring:1", "delta:3x3"] {
        for (duplex, exchanges) in [(Duplex::Half, 2), (Duplex::Full, 1)] {
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
                        let both = lists(machine.agent_count(), &[both]);
                        assert_eq!(run(&machine, &both).clocks, exchanges * one);
                    }
                }
            }
        }
    }
}

#[test]
fn copies_delay_the_next_operation_of_the_cell() {
    let machine = build::machine("t3d:2x2x2", |_| ());
    let mut plan = lists(8, &[vec![(0, 1, 10)], vec![(1, 2, 10)]]);
    let without = run(&machine, &plan).clocks;
    plan[1][0].copied = 100;
    assert_eq!(run(&machine, &plan).clocks, without + 700);
}

#[test]
fn pools_are_refused_and_the_prediction_of_rendezvous_is_that_of_free_cells() {
    let pool = build::machine("ring:4", |p| p.protocol = Protocol::Pool);
    let error = refused(&pool, &lists(4, &[vec![(0, 1, 5)]])).to_string();
    assert!(error.contains("not emulated"), "{error}");
    // A shift by one of which every cell sends and receives one message.
    let set = build::set(&(0..32).map(|c| (c, (c + 1) % 32, 100)).collect::<Vec<_>>());
    let half = build::machine("cm5:32", |_| ());
    assert_eq!(predict(&half, &set), 2 * (7205 + 4500));
    let full = build::machine("cm5:32", |p| p.duplex = Duplex::Full);
    assert_eq!(predict(&full, &set), 7205 + 4500);
    let report = run_checked(&full, &set, &MessageOptions::default()).unwrap();
    assert!(near(report.clocks, 7205.0 + 4500.0, 0.02), "{}", report.clocks);
}

fn refused(machine: &Arc<Machine>, plan: &Lists) -> Fault {
    run_steps(machine, "plan", plan, &MessageOptions::default()).unwrap_err()
}

#[test]
fn lists_that_do_not_fit_together_are_refused_with_their_place() {
    let machine = build::machine("cm5:4", |_| ());
    let good = lists(4, &[vec![(0, 1, 5), (2, 3, 5)], vec![(1, 0, 2)]]);
    let changed = |change: &dyn Fn(&mut Lists)| {
        let mut plan = good.clone();
        change(&mut plan);
        refused(&machine, &plan).to_string()
    };
    for (said, change) in [
        ("operation 0 of c0: the other cell does not receive it", &|p: &mut Lists| {
            p[1].remove(0);
        }),
        ("operation 0 of c1: the other cell does not send it", &|p: &mut Lists| {
            p[0].remove(0);
        }),
        ("operation 0 of c3: the other cell sends another number of words", &|p: &mut Lists| {
            p[3][0].words = 6;
        }),
        ("operation 1 of c1: its group comes before", &|p: &mut Lists| p[1][0].group = 7),
        ("operation 0 of c0: one of its ends has no live agent", &|p: &mut Lists| {
            p[0][0].peer = CellId(99);
        }),
        ("words", &|p: &mut Lists| {
            (p[2][0].words, p[3][0].words) = (0, 0);
        }),
    ] as [(&str, &dyn Fn(&mut Lists)); 6]
    {
        let error = changed(change);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn cells_that_wait_for_each_other_are_a_deadlock_with_its_cycle() {
    let half = build::machine("cm5:8", |_| ());
    let send = |peer| StepOperation::new(Direction::Send, CellId(peer), 5, 0);
    let receive = |peer| StepOperation::new(Direction::Receive, CellId(peer), 5, 0);
    // Three cells send first, in a ring; then all receive first.
    let ring: Lists = (0..3).map(|c| vec![send((c + 1) % 3), receive((c + 2) % 3)]).collect();
    let back: Lists = ring.iter().map(|list| vec![list[1], list[0]]).collect();
    for plan in [&ring, &back] {
        let FaultKind::Deadlock { waits, closed, .. } = refused(&half, plan).kind else {
            panic!("no deadlock");
        };
        assert!(closed && waits.len() == 3, "{waits:?}");
    }
    // With full duplex, and on machines whose messages leave at once, both are fine.
    for spec in ["t3d:2x2x2", "delta:2x2", "iwarp-fem:2x2"] {
        let machine = build::machine(spec, |_| ());
        run(&machine, &ring);
        run(&machine, &back);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_plans_are_delivered_and_skipping_changes_nothing(
        spec in prop::sample::select(
            vec!["cm5:9", "t3d:2x2x3", "delta:3x3", "ring:5", "iwarp-fem:3x3", "cm5:24"],
        ),
        rows in prop::collection::vec((0..100u32, 0..100u32, 1..400u32, any::<bool>()), 1..40),
        copied in 0..3u32,
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
        let mut plan = lists(machine.agent_count(), &steps);
        plan.iter_mut().flatten().for_each(|op| op.copied = copied);
        let report = run(&machine, &plan);
        prop_assert_eq!(report.messages, steps.iter().map(Vec::len).sum::<usize>());
        let ticked = run_steps(&machine, "plan", &plan, &MessageOptions::default().skip(false));
        prop_assert_eq!(Ok(report), ticked);
    }
}
