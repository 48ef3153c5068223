//! Message passing: closed forms, deadlock, the paper's tables, unusual machines.

use crate::build;
use std::sync::Arc;

use conset_fabric::messages::{
    ActiveMessages, Message, MessageEngine, MessageOptions, MessageOrder, MessageRoutes,
    MessagesReport, Put, SendLists, predict, run_checked, run_lists,
};
use conset_fabric::{
    Detection, FabricOptions, FaultKind, HardwareFaults, Jitter, MessageProblem, Payload,
    SetBuffers, Stop, WaitCause,
};
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Direction, Duplex, LinkId, Machine,
    Parameters, Protocol, Topology,
};
use conset_mesh::patterns;

fn run(machine: &Arc<Machine>, set: &ConnectionSet) -> MessagesReport {
    let report = run_checked(machine, set, &MessageOptions::default()).unwrap();
    assert!(report.payload_ok, "{report:?}");
    assert_eq!((report.messages, report.words), (set.len(), set.words()));
    report
}

fn random(seed: u64) -> MessageOptions {
    MessageOptions::default().seed(seed).with_order(MessageOrder::Random)
}

#[test]
fn one_message_alone_takes_the_time_of_the_closed_form() {
    let specs = ["mesh:3x3", "torus:2x3", "torus:5", "hypercube:3", "fat-tree:5", "ring:1"];
    for spec in specs {
        for (link, access, depth, extra, software) in
            [(2u32, 2u32, 8, 4, (400u32, 400u32)), (2, 10, 1, 0, (7, 0)), (1, 3, 2, 1, (0, 90))]
        {
            let machine = build::machine(spec, |p| {
                p.link_clocks_per_word = link;
                p.access_clocks_per_word = access;
                p.channel_depth = depth;
                p.message_extra_words = extra;
                (p.c_send, p.c_receive) = software;
            });
            for from in machine.endpoints() {
                let hops = machine.hops_from(from);
                for to in machine.endpoints() {
                    for m in [1u32, 2, 50] {
                        let d = hops[to.index()];
                        let expected =
                            software.0 + access + d * link + software.1 + (m + extra) * access;
                        let report = run(&machine, &build::set(&[(from.0, to.0, m)]));
                        assert_eq!(report.clocks, u64::from(expected), "{spec} {from} {to} {m}");
                        assert_eq!(report.word_hops, u64::from(d * (m + extra)));
                    }
                }
            }
        }
    }
}

#[test]
fn half_duplex_copies_first_and_receives_in_the_foreground() {
    let machine = build::machine("iwarp-fem:4x4", |_| ());
    // Copied and spooled at the link's rate, received at 10 clocks a word.
    let alone = run(&machine, &build::set(&[(0, 1, 100)])).clocks;
    assert_eq!(alone, 400 + 100 * 2 + 2 + 2 + 400 + 104 * 10);
    // Both copy at the same time, then both receive.
    assert_eq!(run(&machine, &build::set(&[(0, 1, 100), (1, 0, 100)])).clocks, alone);
    // The second launch waits until cell 0 has received: its processor is at that.
    let both = run(&machine, &build::set(&[(0, 1, 100), (1, 0, 100), (0, 2, 1)])).clocks;
    assert_eq!(both, alone + 400 + 2 + 2 + 2 * 2 + 400 + 5 * 10);
}

#[test]
fn launches_and_receptions_share_a_processor() {
    let machine = build::machine("ring:8", |_| ());
    let options = MessageOptions::default().trace(true);
    // The second launch of cell 0 could begin when the first message, short enough to stand in
    // queues, has left. But then the message from cell 1 is there, and its software has begun.
    let set = build::set(&[(0, 2, 4), (0, 2, 4), (1, 0, 100)]);
    let trace = run_checked(&machine, &set, &options).unwrap().trace.unwrap();
    let spans = |direction, x| {
        let mut spans = trace.streams.iter();
        spans.find(|s| s.direction == direction && s.connection.0 == x).unwrap()
    };
    let received = spans(Direction::Receive, 2);
    assert_eq!(spans(Direction::Send, 1).open, received.open + 400);
    // The words of both go on at the same time.
    assert_eq!(received.close, received.open + 400 + 104 * 2);
}

#[test]
fn messages_are_received_one_after_the_other_in_order_of_arrival() {
    let machine = build::machine("mesh:5x1", |_| ());
    // The last comes over the same links as the first, which is nearer.
    let set = build::set(&[(4, 2, 10), (1, 2, 10), (0, 2, 10)]);
    let options = MessageOptions::default().trace(true);
    let report = run_checked(&machine, &set, &options).unwrap();
    let trace = report.trace.unwrap();
    let received: Vec<_> =
        trace.streams.iter().filter(|s| s.direction == Direction::Receive).collect();
    let order: Vec<u32> = received.iter().map(|s| s.connection.0).collect();
    assert_eq!(order, [1, 0, 2]);
    for pair in received.windows(2) {
        assert_eq!(pair[1].open, pair[0].close);
    }
    assert_eq!(report.clocks, 400 + 2 + 2 + 3 * (400 + 14 * 2));
    // Each message has a header's arrival, which the receiver that is busy does not see at once.
    assert!(received.iter().all(|s| s.arrived.is_some_and(|arrived| arrived <= s.open)));
    assert!(received[2].arrived < Some(received[2].open));
    assert_eq!(trace.transfers().len(), 3);
}

#[test]
fn two_pools_of_a_link_share_it_and_one_pool_does_not() {
    // Both come over the link from 7 to 0; only the first crosses the dateline before it.
    let machine = build::machine("ring:9", |p| {
        (p.c_send, p.c_receive, p.message_extra_words) = (0, 0, 0);
        p.access_clocks_per_word = 1;
    });
    let words = 1000u32;
    // From 7 over 8, 0, 1 to 2: pool 1 from 0 on. From 0 over 1 to 2: pool 0. From 1 to 2.
    let shared = run(&machine, &build::set(&[(7, 1, words), (0, 1, words)])).clocks;
    let share = u64::from(words) * 4;
    assert!(shared.abs_diff(share) < 40, "{shared}");
    // The same pool: one after the other; the second has to wait for the tail of the first.
    let set = build::set(&[(3, 5, words), (4, 6, words)]);
    let options = MessageOptions::default().trace(true);
    let trace = run_checked(&machine, &set, &options).unwrap().trace.unwrap();
    let ends: Vec<u64> = trace
        .streams
        .iter()
        .filter(|s| s.direction == Direction::Receive)
        .map(|s| s.close)
        .collect();
    assert!(ends[1] - ends[0] >= u64::from(words) * 2 - 40, "{ends:?}");
}

#[test]
fn a_ring_without_datelines_deadlocks_and_says_how() {
    for spec in ["ring:8", "ring:5", "torus:4x4"] {
        let machine = build::machine(spec, |_| ());
        let cells = machine.agent_count() as u32;
        let ring = if spec == "torus:4x4" { 4 } else { cells };
        // Every cell sends half way around its ring.
        let to = |c: u32| c / ring * ring + (c % ring + ring / 2) % ring;
        let pairs: Vec<_> = (0..cells).map(|c| (c, to(c), 100)).collect();
        let set = build::set(&pairs);
        let without = MessageOptions::default().datelines(false);
        let fault = run_checked(&machine, &set, &without).unwrap_err();
        let FaultKind::Deadlock { waits, closed: true, unfinished } = &fault.kind else {
            panic!("{fault}")
        };
        assert_eq!(*unfinished, cells as usize);
        assert_eq!(waits.len(), ring as usize);
        for (row, wait) in waits.iter().enumerate() {
            let WaitCause::Header { holder, link, pool: 0, .. } = wait.cause else {
                panic!("{fault}")
            };
            let next = &waits[(row + 1) % waits.len()];
            let WaitCause::Header { message, .. } = next.cause else { panic!("{fault}") };
            assert_eq!(holder, message, "each waits for the next");
            assert_eq!(machine.link(link).source, wait.cell);
        }
        assert!(fault.to_string().contains("waits for pool 0 of l"), "{fault}");
        run(&machine, &set);
    }
}

/// A permutation of `cells` cells.
fn permutation(cells: u32, seed: u64) -> ConnectionSet {
    let all = build::set(&vec![(0, 0, 1); cells as usize]);
    let mut lists = SendLists::in_order(&all, 1);
    lists.shuffle(seed);
    let targets = lists.of(0).iter().enumerate();
    build::set(&targets.map(|(from, to)| (from as u32, to.0, 40)).collect::<Vec<_>>())
}

fn permutations(specs: &[&str], seeds: std::ops::Range<u64>) {
    for spec in specs {
        let machine = build::machine(spec, |_| ());
        for seed in seeds.clone() {
            run(&machine, &permutation(machine.agent_count() as u32, seed));
        }
    }
}

#[test]
fn random_permutations_finish() {
    let small = ["ring:7", "torus:4x4", "torus:2x3x3", "mesh:5x3", "hypercube:4", "fat-tree:11"];
    permutations(&small, 0..40);
    permutations(&["iwarp"], 0..60);
}

#[test]
#[ignore = "ten thousand runs; for release builds"]
fn ten_thousand_random_permutations_finish() {
    permutations(&["iwarp"], 0..10_000);
}

#[test]
fn all_to_all_in_any_order_finishes_on_every_shape() {
    for spec in ["ring:9", "torus:2x2x2", "torus:5x4", "mesh:4x4", "hypercube:4", "fat-tree:20"] {
        let machine = build::machine(spec, |p| p.channel_depth = 1);
        let set = build::all_to_all(machine.agent_count() as u32, 30);
        for seed in 0..5 {
            let report = run_checked(&machine, &set, &random(seed)).unwrap();
            assert!(report.payload_ok, "{spec} {seed}");
            assert_eq!(report, run_checked(&machine, &set, &random(seed)).unwrap());
        }
    }
}

#[test]
fn the_papers_predictions_come_out() {
    let machine = Machine::from_spec("iwarp").unwrap();
    let table = [
        ("torus", [3456, 5248, 19584, 134_272]),
        ("hypercube", [5184, 7872, 29376, 201_408]),
        ("all-to-all", [55296, 83968, 313_344, 2_148_352]),
    ];
    for (pattern, predicted) in table {
        for (words, predicted) in [32, 256, 2048, 16384].into_iter().zip(predicted) {
            let set = patterns::generate(pattern, &machine, words).unwrap();
            let mut connections = set.connections().to_vec();
            if pattern == "all-to-all" {
                // The paper counts 64 messages per cell.
                let selves = machine.endpoints().map(|c| Connection::new(c, c, words));
                connections.extend(selves);
            }
            let set = ConnectionSet::new("s", connections).unwrap();
            assert_eq!(predict(&machine, &set), predicted, "{pattern} {words}");
        }
    }
    // Table 6, from the degree and the words of Table 4.
    let machine = Machine::from_spec("iwarp-fem").unwrap();
    let meshes = [(8u32, 133u32, 8378u64), (5, 189, 6752), (13, 638, 19508), (22, 1070, 32852)];
    for (degree, words, predicted) in meshes {
        let part = |k: u32| (words * (k + 1) / degree) - (words * k / degree);
        let pairs = (0..degree).flat_map(|k| [(0, k + 1, part(k)), (k + 1, 0, part(k))]);
        let ours = predict(&machine, &build::set(&pairs.collect::<Vec<_>>()));
        assert!(ours.abs_diff(predicted) * 50 < predicted, "{ours} for {predicted}");
    }
}

#[test]
fn predictions_count_software_between_nodes_and_words_copied() {
    let of = |duplex| {
        let machine = build::machine("cluster:2x2", |p| {
            p.duplex = duplex;
            (p.c_send, p.c_receive, p.network_overhead) = (50, 30, 11);
            (p.access_clocks_per_word, p.link_clocks_per_word) = (3, 5);
        });
        predict(&machine, &build::set(&[(0, 1, 8), (0, 2, 10), (0, 3, 7), (3, 0, 6)]))
    };
    // c0 sends a message in its node and two to the other one, from which it receives one.
    let software = 3 * 50 + 30 + 3 * 11;
    assert_eq!(of(Duplex::Full), software + 25 * 3);
    assert_eq!(of(Duplex::Half), software + 25 * 2 * 5 + 6 * 3);
}

#[test]
fn orders_of_sending_have_names() {
    let names = MessageOrder::ALL.map(MessageOrder::name);
    assert_eq!(names, ["given", "longest-first", "staggered", "random"]);
    assert_eq!(MessageOptions::default().seed(7).seed, 7);
}

/// No parameter of the model is fitted to these.
#[test]
fn the_papers_measurements_are_near() {
    let machine = build::machine("iwarp", |_| ());
    let table = [
        ("torus", 32, 3760.0),
        ("torus", 256, 5720.0),
        ("torus", 2048, 20012.0),
        ("hypercube", 32, 6208.0),
        ("hypercube", 256, 10792.0),
        ("hypercube", 2048, 48320.0),
    ];
    for (pattern, words, measured) in table {
        let set = patterns::generate(pattern, &machine, words).unwrap();
        let error = run(&machine, &set).clocks as f64 / measured - 1.0;
        assert!(error.abs() < 0.12, "{pattern} {words}: {error}");
    }
    let seeds = 8;
    for (words, measured) in [(32, 120_960.0), (256, 274_136.0)] {
        let set = patterns::generate("all-to-all", &machine, words).unwrap();
        let clocks: u64 =
            (0..seeds).map(|s| run_checked(&machine, &set, &random(s)).unwrap().clocks).sum();
        let error = clocks as f64 / seeds as f64 / measured - 1.0;
        assert!(error.abs() < 0.15, "all-to-all {words}: {error}");
    }
}

#[test]
fn the_sets_order_is_kept_whatever_the_lists_say() {
    let machine = build::machine("iwarp:4x4", |_| ());
    for pattern in ["butterfly", "broadcast-tree", "reduction-tree"] {
        let set = patterns::generate(pattern, &machine, 20).unwrap();
        assert!(!set.order().is_empty());
        for seed in 0..4 {
            let options = random(seed).trace(true);
            let report = run_checked(&machine, &set, &options).unwrap();
            assert!(report.payload_ok);
            let trace = report.trace.unwrap();
            let (mut sent, mut received) = (vec![0; set.len()], vec![0; set.len()]);
            for s in &trace.streams {
                match s.direction {
                    Direction::Send => sent[s.connection.index()] = s.open,
                    Direction::Receive => received[s.connection.index()] = s.close,
                }
            }
            for (before, after) in set.order() {
                assert!(received[before.index()] <= sent[after.index()], "{pattern} {seed}");
            }
        }
    }
}

#[test]
fn odd_machines_and_sets_run() {
    for (spec, cells) in [("ring:1", 1), ("ring:2", 2), ("torus:2x1x3", 6), ("fat-tree:17", 17)] {
        let machine = build::machine(spec, |p| p.message_extra_words = 0);
        let pairs: Vec<_> = (0..cells * cells).map(|i| (i / cells, i % cells, 1 + i % 5)).collect();
        run(&machine, &build::set(&pairs));
    }
    let machine = build::machine("iwarp", |_| ());
    let report = run(&machine, &build::set(&[]));
    assert_eq!((report.clocks, report.word_hops, report.busiest_link), (0, 0, None));
    // A hot spot, and messages of a cell to itself that are far longer than any queue.
    run(&machine, &build::set(&(0..64).map(|c| (c, 9, 33)).collect::<Vec<_>>()));
    run(&machine, &build::set(&[(5, 5, 3000), (5, 5, 1), (6, 5, 7)]));
}

#[test]
fn dead_links_are_walked_round_and_dead_ends_are_refused() {
    let torus = Topology::Torus { dims: vec![4, 4] };
    let holed = Machine::new(
        "holed",
        torus,
        Parameters::iwarp(),
        vec![CellId(6)],
        vec![(CellId(0), CellId(1))],
    );
    let machine = Arc::new(holed.unwrap());
    let live = |c: &u32| *c != 6;
    let pairs: Vec<_> =
        (0..16).filter(live).flat_map(|a| (0..16).filter(live).map(move |b| (a, b, 20))).collect();
    for seed in 0..5 {
        assert!(run_checked(&machine, &build::set(&pairs), &random(seed)).unwrap().payload_ok);
    }
    let refuse = |machine: &Arc<Machine>, pair, problem| {
        let fault = run_checked(machine, &build::set(&[pair]), &MessageOptions::default());
        let fault = fault.unwrap_err();
        let FaultKind::Message { problem: found, .. } = fault.kind else { panic!("{fault}") };
        assert_eq!(found, problem, "{fault}");
    };
    refuse(&machine, (0, 6, 1), MessageProblem::NoAgent(CellId(6)));
    refuse(&machine, (6, 0, 1), MessageProblem::NoAgent(CellId(6)));
    refuse(&machine, (0, 99, 1), MessageProblem::NoAgent(CellId(99)));
    refuse(&machine, (99, 0, 1), MessageProblem::NoAgent(CellId(99)));
    let one_way = Topology::Graph { cells: 3, switches: 0, links: vec![(0, 1), (1, 2)] };
    let one_way = Machine::new("one-way", one_way, Parameters::iwarp(), vec![], vec![]).unwrap();
    refuse(&Arc::new(one_way), (2, 0, 1), MessageProblem::NoRoute);
}

/// Remembers the words of each message.
struct Heard(Vec<(ConnectionId, u32)>);

impl Payload for Heard {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        assert_eq!(from, to);
        self.0.push(to);
    }
}

#[test]
fn programs_send_and_receive_one_message_at_a_time() {
    let machine = build::machine("ring:4", |_| ());
    let mut engine = MessageEngine::new(machine, true);
    let mut heard = Heard(vec![]);
    let message = |s, t, words, x| Message {
        source: CellId(s),
        target: CellId(t),
        words,
        label: ConnectionId(x),
    };
    engine.send(message(0, 1, 3, 70)).unwrap();
    engine.send(message(0, 1, 0, 71)).unwrap();
    let mut events = Vec::new();
    // No cell receives: the first message waits in the network, short enough to have left its sender.
    assert_eq!(engine.run(&mut heard), Stop::Finished);
    engine.take_events(&mut events);
    assert_eq!((events.len(), events[0].direction), (1, Direction::Send));
    assert_eq!(engine.run(&mut heard), Stop::Idle);
    let FaultKind::Deadlock { waits, closed: false, unfinished: 2 } = engine.explain().unwrap()
    else {
        panic!()
    };
    assert_eq!(waits[0].cause, WaitCause::Unwanted { message: ConnectionId(70) });
    engine.set_timer(1000, 5);
    assert_eq!(engine.run(&mut heard), Stop::Timer);
    let mut keys = Vec::new();
    engine.take_timers(&mut keys);
    assert_eq!(keys, [5]);
    let now = engine.now();
    engine.receive(CellId(1), 1);
    assert_eq!(engine.run(&mut heard), Stop::Finished);
    engine.take_events(&mut events);
    while events[0].direction == Direction::Send {
        assert_eq!(engine.run(&mut heard), Stop::Finished);
        engine.take_events(&mut events);
    }
    assert_eq!((events[0].message.label, engine.now() - now), (ConnectionId(70), 400 + 7 * 2));
    engine.receive(CellId(1), 1);
    while engine.run(&mut heard) != Stop::Idle {
        engine.take_events(&mut events);
    }
    assert_eq!((engine.unfinished(), engine.explain()), (0, None));
    assert_eq!(heard.0, [0, 1, 2].map(|i| (ConnectionId(70), i)));
}

#[test]
fn waits_lead_to_the_message_that_nobody_receives() {
    let message = |source, target, words, label| Message {
        source: CellId(source),
        target: CellId(target),
        words,
        label: ConnectionId(label),
    };
    let waits = |engine: &mut MessageEngine| {
        let mut heard = Heard(vec![]);
        while engine.run(&mut heard) == Stop::Finished {
            engine.take_events(&mut Vec::new());
        }
        let Some(FaultKind::Deadlock { waits, closed: false, .. }) = engine.explain() else {
            panic!()
        };
        waits.iter().map(|wait| (wait.cell, wait.cause)).collect::<Vec<_>>()
    };
    let unwanted =
        |cell, label| (CellId(cell), WaitCause::Unwanted { message: ConnectionId(label) });
    // A header behind a long message that nobody receives, on a link with two pools.
    let machine = build::machine("ring:6", |_| ());
    let mut engine = MessageEngine::new(machine.clone(), true);
    engine.send(message(1, 0, 1, 4)).unwrap();
    engine.send(message(1, 3, 100, 6)).unwrap();
    engine.send(message(0, 3, 100, 5)).unwrap();
    engine.receive(CellId(0), 1);
    let link = machine.links_between(CellId(1), CellId(2)).next().unwrap();
    let (blocked, holder) = (ConnectionId(6), ConnectionId(5));
    let header = WaitCause::Header { message: blocked, link, pool: 0, holder };
    assert_eq!(waits(&mut engine), [(CellId(1), header), unwanted(3, 5)]);
    // A message that is not launched before the one that its cell sends has left.
    let mut engine = MessageEngine::new(machine, true);
    engine.send(message(0, 1, 3, 7)).unwrap();
    engine.send(message(0, 1, 100, 8)).unwrap();
    engine.receive(CellId(1), 1);
    assert_eq!(waits(&mut engine), [unwanted(1, 8)]);
    engine.send(message(0, 1, 3, 9)).unwrap();
    let (last, before) = (ConnectionId(9), ConnectionId(8));
    let launch = (CellId(0), WaitCause::Launch { message: last, before });
    assert_eq!(waits(&mut engine), [launch, unwanted(1, 8)]);
    // A message that has arrived behind another one, which nobody receives.
    let mut engine = MessageEngine::new(build::machine("ring:6", |_| ()), true);
    engine.send(message(2, 1, 3, 7)).unwrap();
    engine.send(message(0, 1, 3, 8)).unwrap();
    engine.receive(CellId(1), 1);
    assert_eq!(waits(&mut engine), [unwanted(1, 8)]);
    engine.send(message(2, 1, 3, 9)).unwrap();
    let reception = (CellId(1), WaitCause::Reception { message: last, before });
    assert_eq!(waits(&mut engine), [reception, unwanted(1, 8)]);
}

/// The cells poll from the start of the round on.
#[test]
fn a_round_takes_the_same_clocks_whenever_it_begins() {
    let machine = build::machine("ring:4", |p| {
        (p.active_words, p.c_active_send, p.c_active_receive) = (2, 10, 5);
        (p.c_poll, p.control_reduce) = (64, 20);
    });
    let set = build::set(&[(0, 2, 3)]);
    let put = Put { source: CellId(0), target: CellId(2), words: 3, item_words: 1 };
    let clocks = [0, 1001, 1022].map(|start| {
        let mut active = ActiveMessages::new(&machine).unwrap();
        active.pass_until(start);
        active.run(&[put], &mut SetBuffers::new(&set), &mut |_| ()).unwrap()
    });
    assert_eq!(clocks[1..], [clocks[0]; 2]);
}

#[test]
fn with_half_duplex_a_rendezvous_occupies_both_directions() {
    let clocks = |duplex, pairs: &[_]| {
        let machine = build::machine("ring:4", |p| {
            (p.protocol, p.duplex) = (Protocol::Rendezvous, duplex);
        });
        run(&machine, &build::set(pairs)).clocks
    };
    let (one, both) = ([(0, 1, 50)], [(0, 1, 50), (1, 0, 50)]);
    assert_eq!(clocks(Duplex::Half, &both), 2 * clocks(Duplex::Half, &one));
    assert_eq!(clocks(Duplex::Full, &both), clocks(Duplex::Full, &one));
}

#[test]
fn hardware_faults_are_told_from_messages_that_nobody_receives() {
    let machine = build::machine("ring:4", |_| ());
    let stopped = |plan: Option<&str>, receives| {
        let mut engine = MessageEngine::new(machine.clone(), true);
        if let Some(plan) = plan {
            engine.give_faults(HardwareFaults::new(&plan.parse().unwrap(), &machine).unwrap());
        }
        let (source, target, label) = (CellId(0), CellId(2), ConnectionId(3));
        engine.send(Message { source, target, words: 9, label }).unwrap();
        engine.receive(target, receives);
        let mut data = SetBuffers::new(&build::set(&[(0, 2, 9); 5]));
        while engine.run(&mut data) == Stop::Finished {
            engine.take_events(&mut Vec::new());
        }
        engine.hardware_fault()
    };
    assert_eq!(stopped(None, 0), None);
    assert_eq!(stopped(Some("cell c3 dead"), 0), None, "the message is not received");
    assert_eq!(stopped(Some("cell c3 dead"), 1), None);
    let links = [(0, 1), (1, 2)]
        .map(|(from, to)| machine.links_between(CellId(from), CellId(to)).next().unwrap());
    let Some(FaultKind::Deadlock { waits, .. }) = stopped(Some("link c1 -> c2 dead"), 1) else {
        panic!()
    };
    let dead = WaitCause::StoppedLink { message: ConnectionId(3), link: links[1] };
    assert_eq!(waits.last().unwrap().cause, dead);
    // The words behind a lost header arrive where no header came before, and a lost word is missing at the end.
    let Some(FaultKind::StrayWord { cell, link, message, word }) =
        stopped(Some("link c1 -> c2 drops word 0"), 1)
    else {
        panic!()
    };
    assert_eq!((cell, link, message, word), (CellId(2), links[1], ConnectionId(3), 1));
    let kinds = [
        stopped(Some("link c0 -> c1 drops word 6"), 1),
        stopped(Some("link c0 -> c1 duplicates word 6"), 1),
    ];
    let [
        Some(FaultKind::LostWords { links: lost, sent: 13, received: 12, .. }),
        Some(FaultKind::ExcessWords { links: excess, sent: 13, received: 14, .. }),
    ] = &kinds
    else {
        panic!("{kinds:?}")
    };
    let last_first = [links[1], links[0]];
    assert_eq!((&lost[..], &excess[..]), (&last_first[..], &last_first[..]));
}

/// Under rendezvous a message waits at its source, behind the one before it, and so does the message of its target.
#[test]
fn waits_under_rendezvous_lead_from_target_to_target() {
    let machine = build::machine("ring:6", |p| p.protocol = Protocol::Rendezvous);
    let message = |source, target, label| Message {
        source: CellId(source),
        target: CellId(target),
        words: 50,
        label: ConnectionId(label),
    };
    let mut engine = MessageEngine::new(machine, true);
    assert!(engine.is_quiet(CellId(0)));
    for (source, target, label) in [(0, 1, 4), (0, 1, 5), (1, 3, 6)] {
        engine.send(message(source, target, label)).unwrap();
    }
    assert!(!engine.is_quiet(CellId(0)));
    engine.receive(CellId(1), 1);
    let mut heard = Heard(vec![]);
    while engine.run(&mut heard) == Stop::Finished {
        engine.take_events(&mut Vec::new());
    }
    // The first message, whose number is free again, has been received.
    engine.send(message(0, 2, 7)).unwrap();
    assert!(!engine.is_quiet(CellId(0)), "two messages are pending");
    let Some(FaultKind::Deadlock { waits, closed: false, .. }) = engine.explain() else { panic!() };
    let [first, second, third] = waits[..] else { panic!("{waits:?}") };
    let launch = WaitCause::Launch { message: ConnectionId(7), before: ConnectionId(5) };
    assert_eq!((first.cell, first.cause), (CellId(0), launch));
    let asked = |label| WaitCause::Rendezvous { message: ConnectionId(label) };
    assert_eq!((second.cell, second.cause), (CellId(1), asked(5)));
    assert_eq!((third.cell, third.cause), (CellId(3), asked(6)));
    // A message that is being sent is not blocked, and its source is not quiet.
    engine.receive_from(CellId(1), CellId(0));
    let Some(FaultKind::Deadlock { waits, .. }) = engine.explain() else { panic!() };
    let [wait] = waits[..] else { panic!("{waits:?}") };
    assert_eq!((wait.cell, wait.cause), (CellId(2), asked(7)));
    while engine.run(&mut heard) == Stop::Finished {
        engine.take_events(&mut Vec::new());
    }
    engine.receive(CellId(2), 1);
    assert!(!engine.is_quiet(CellId(0)), "it sends the last one");
    while engine.run(&mut heard) == Stop::Finished {
        engine.take_events(&mut Vec::new());
    }
    assert!(engine.is_quiet(CellId(0)));
}

#[test]
fn routes_for_models_are_found_once_and_stay() {
    for spec in ["ring:6", "torus:4x4", "fat-tree:9", "cluster:2x2"] {
        let machine = build::machine(spec, |_| ());
        let mut routes = MessageRoutes::new(&machine);
        for _ in 0..2 {
            for (source, target) in
                machine.endpoints().flat_map(|a| machine.endpoints().map(move |b| (a, b)))
            {
                let mut links = vec![LinkId(0)];
                assert!(routes.links(source, target, &mut links));
                let mut at = source;
                for &link in &links[1..] {
                    assert_eq!(machine.link(link).source, at);
                    at = machine.link(link).target;
                }
                assert_eq!((links[0], at), (LinkId(0), target), "{spec} {source} {target}");
                let hops = machine.hops_from(source)[target.index()] as usize;
                assert_eq!(links.len() - 1, hops, "{spec} {source} {target}");
            }
        }
    }
    let one_way = Topology::Graph { cells: 3, switches: 0, links: vec![(0, 1), (1, 2)] };
    let one_way = Machine::new("one-way", one_way, Parameters::iwarp(), vec![], vec![]).unwrap();
    let mut routes = MessageRoutes::new(&one_way);
    assert!(!routes.links(CellId(2), CellId(0), &mut Vec::new()));
}

#[test]
fn messages_between_nodes_take_the_overhead_at_both_ends() {
    for (protocol, duplex) in [
        (Protocol::Standing, Duplex::Full),
        (Protocol::Standing, Duplex::Half),
        (Protocol::Rendezvous, Duplex::Full),
    ] {
        let machine = build::machine("cluster:2x2", |p| {
            (p.protocol, p.duplex) = (protocol, duplex);
            (p.c_send, p.c_receive, p.network_overhead) = (50, 80, 11);
            (p.access_clocks_per_word, p.link_clocks_per_word) = (3, 5);
            (p.network_clocks_per_word, p.message_extra_words) = (7, 2);
        });
        let without = build::machine("cluster:2x2", |p| {
            *p = Parameters { network_overhead: 0, ..machine.parameters().clone() };
        });
        for (target, overhead) in [(1, 0), (2, 11), (3, 11)] {
            // The words have come when the software of the receiver ends.
            let set = build::set(&[(0, target, 2)]);
            let clocks = run(&machine, &set).clocks - run(&without, &set).clocks;
            assert_eq!(clocks, 2 * overhead, "{protocol:?} {duplex:?} {target}");
            if protocol == Protocol::Rendezvous {
                assert_eq!(predict(&machine, &set), 50 + 80 + 2 * overhead + 4 * 3);
            }
        }
    }
}

/// A word of a packet is spoiled in its place in the put.
#[test]
fn faults_act_on_packets() {
    let machine = build::machine("ring:4", |p| (p.active_words, p.c_active_send) = (2, 10));
    let set = build::set(&[(0, 1, 6)]);
    let (mut data, mut packets) = (SetBuffers::new(&set), Vec::new());
    let put = Put { source: CellId(0), target: CellId(1), words: 6, item_words: 1 };
    let mut active = ActiveMessages::new(&machine).unwrap();
    active.pass_until(1000);
    assert_eq!(active.now(), 1000);
    let plan = "link c0 -> c1 corrupts word 3".parse().unwrap();
    active.give_faults(HardwareFaults::new(&plan, &machine).unwrap());
    let clocks = active.run(&[put], &mut data, &mut |packet| packets.push(packet)).unwrap();
    assert!(clocks > 0 && active.now() >= 1000 + clocks);
    assert_eq!(packets.len(), 6, "three packets, sent and taken");
    assert!(packets.iter().all(|packet| packet.start < packet.end && packet.end <= clocks));
    let spoiled = data.incoming(ConnectionId(0)).iter().map(|&word| word != 0);
    assert_eq!(spoiled.collect::<Vec<_>>(), [false, false, false, true, false, false]);
    let faults = active.take_faults().unwrap();
    assert!(active.take_faults().is_none());
    // What a fault has done is told of the put.
    let plan = format!("link c0 -> c1 dead at {}", active.now()).parse().unwrap();
    active.give_faults(HardwareFaults::new(&plan, &machine).unwrap());
    let other = Put { source: CellId(2), target: CellId(3), ..put };
    let set = build::set(&[(2, 3, 6), (2, 3, 6), (2, 3, 6), (2, 3, 6), (2, 3, 6), (0, 1, 6)]);
    let puts = [other, other, other, other, other, put];
    let stopped = active.run(&puts, &mut SetBuffers::new(&set), &mut |_| ());
    let Err(FaultKind::Deadlock { waits, .. }) = stopped else { panic!("{stopped:?}") };
    let WaitCause::StoppedLink { message, .. } = waits.last().unwrap().cause else { panic!() };
    assert_eq!(message, ConnectionId(5));
    let mut engine = MessageEngine::new(machine, true);
    engine.give_faults(faults);
}

#[test]
fn options_are_set_one_by_one() {
    let options = random(9).datelines(false).skip(false).trace(true);
    assert_eq!((options.seed, options.order), (9, MessageOrder::Random));
    assert_eq!((options.datelines, options.skip, options.trace), (false, false, true));
    let all = MessageOptions::default().seed(9).datelines(false).skip(false).trace(true);
    assert_eq!(all.with_order(MessageOrder::Random), options);
    let jitter = Some(Jitter { seed: 1, most: 2 });
    let options = FabricOptions::default().trace(true).count_errors(true).skip(false);
    let options = options.detection(Detection::Checked).jitter(jitter);
    assert_eq!((options.trace, options.count_errors, options.skip), (true, true, false));
    assert_eq!((options.detection, options.jitter), (Detection::Checked, jitter));
    let all = FabricOptions::default().jitter(jitter).skip(false).count_errors(true);
    assert_eq!(all.detection(Detection::Checked).trace(true), options);
}

#[test]
fn lists_of_the_callers_are_followed() {
    let machine = build::machine("ring:6", |_| ());
    let set = build::set(&[(0, 1, 5), (0, 2, 5), (0, 3, 5)]);
    let mut lists = SendLists::in_order(&set, 6);
    lists.of_mut(0).reverse();
    let options = MessageOptions::default().trace(true);
    let trace = run_lists(&machine, &set, &lists, &options).unwrap().trace.unwrap();
    let sent = trace.streams.iter().filter(|s| s.direction == Direction::Send);
    assert_eq!(sent.map(|s| s.connection.0).collect::<Vec<_>>(), [2, 1, 0]);
    // Also where the set has an order, which here holds one of them back for some time.
    let set = build::set(&[(0, 1, 5), (0, 2, 5), (0, 3, 5), (4, 5, 5)]);
    let set = set.with_order(vec![(ConnectionId(3), ConnectionId(0))]).unwrap();
    let mut lists = SendLists::in_order(&set, 6);
    lists.of_mut(0).reverse();
    let trace = run_lists(&machine, &set, &lists, &options).unwrap().trace.unwrap();
    let sent = trace.streams.iter().filter(|s| s.direction == Direction::Send && s.cell.0 == 0);
    assert_eq!(sent.map(|s| s.connection.0).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn no_link_carries_more_than_it_can() {
    let machine = build::machine("torus:4x4", |p| p.link_clocks_per_word = 3);
    let set = build::all_to_all(16, 64);
    let report = run_checked(&machine, &set, &random(3)).unwrap();
    let (link, words) = report.busiest_link.unwrap();
    assert!(words * 3 <= report.clocks, "{link}");
    let hops: u64 = set
        .connections()
        .iter()
        .map(|c| u64::from(machine.hops_from(c.source)[c.target.index()] * (c.words + 4)))
        .sum();
    assert_eq!(report.word_hops, hops);
    assert!(link < LinkId(machine.link_count() as u32));
}
