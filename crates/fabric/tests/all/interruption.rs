//! Exchanges that go on after a fault: what was delivered until then, what is dead, and the next exchange on the same machine.

use crate::build;
use std::sync::Arc;

use crate::build::CellTables;
use conset_fabric::messages::{MessageFabric, MessageOptions};
use conset_fabric::{
    Damage, Detection, Fabric, FabricOptions, FaultKind, Interruption, SetBuffers,
};
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, Image, Machine, Piece, Protocol, StepMessages,
    Steps,
};

/// Outgoing words that are all different.
fn data_of(set: &ConnectionSet) -> SetBuffers {
    let mut data = SetBuffers::new(set);
    for (id, _) in set.iter() {
        let words = data.outgoing(id).iter_mut().zip(1..);
        words.for_each(|(place, word)| *place = (u64::from(id.0) << 32) + word);
    }
    data
}

fn has_arrived(data: &mut SetBuffers, id: ConnectionId) -> bool {
    let sent = data.outgoing(id).to_vec();
    data.incoming(id) == sent
}

/// The connections that were delivered completely.
fn delivered(interruption: &Interruption, set: &ConnectionSet) -> Vec<u32> {
    let words = |id: ConnectionId| {
        let runs = interruption.delivered.iter().filter(|run| run.connection == id);
        runs.map(|run| run.words).sum::<u32>()
    };
    set.iter().filter(|&(id, row)| words(id) == row.words).map(|(id, _)| id.0).collect()
}

fn fabric(machine: &Arc<Machine>, set: &ConnectionSet, plan: &str, detection: Detection) -> Fabric {
    let options = FabricOptions::default().detection(detection).trace(true);
    let fabric = Fabric::load(build::build(machine, set.clone()), options);
    fabric.with_faults(&plan.parse().unwrap()).unwrap()
}

#[test]
fn a_fabric_goes_on_without_a_dead_cell() {
    let machine = build::machine("ring:5", |p| p.streams = 4);
    let set = build::set(&[(0, 1, 30), (0, 3, 100), (1, 2, 20)]);
    let plan = "cell c3 dead at 600\ncell c3 misses switch 1\nlink c1 -> c2 corrupts word 1000000\n\
                link c0 -> c1 stalled 5 at 550";
    let mut fabric = fabric(&machine, &set, plan, Detection::Checked);
    let mut data = data_of(&set);
    let stopped = fabric.exchange_or_drain(0, &mut data).unwrap_err();
    assert!(stopped.to_string().contains("is dead"), "{stopped}");
    assert_eq!(delivered(&stopped, &set), [0, 2]);
    assert_eq!((stopped.dead_cells, stopped.dead_links), (vec![CellId(3)], vec![]));
    assert_eq!((stopped.repeated, stopped.damaged, stopped.phases), (0, vec![], vec![]));
    assert!(stopped.discarded > 0 && stopped.drained == fabric.now());
    assert_eq!(fabric.faults_acted(), [Some(600), None, None, Some(550)]);
    let spans = fabric.trace().streams.len();
    assert_eq!(spans, 4, "both ends of two streams");
    // Without the cell, for which nobody waits at switches.
    let rest = build::set(&[(0, 2, 50)]);
    fabric.resume(build::build(
        &Arc::new(machine.with_dead(&[CellId(3)], &[]).unwrap()),
        rest.clone(),
    ));
    let mut data = data_of(&rest);
    fabric.exchange_or_drain(0, &mut data).unwrap();
    assert!(has_arrived(&mut data, ConnectionId(0)) && fabric.now() > stopped.drained);
    assert_eq!(fabric.trace().streams.len(), spans, "the trace ends with the fault");
}

#[test]
fn a_stream_that_arrived_wrongly_is_not_delivered() {
    let machine = build::machine("ring:4", |p| p.streams = 4);
    let set = build::set(&[(0, 1, 30), (1, 2, 90), (0, 1, 40)]);
    for (effect, detection) in [
        ("corrupts", Detection::Checked),
        ("duplicates", Detection::Checked),
        ("drops", Detection::Checked),
        ("duplicates", Detection::Plain),
        ("drops", Detection::Plain),
        ("duplicates", Detection::Simulator),
    ] {
        let plan = format!("link c0 -> c1 {effect} word 9");
        let mut fabric = fabric(&machine, &set, &plan, detection);
        let mut data = data_of(&set);
        let stopped = fabric.exchange_or_drain(0, &mut data).unwrap_err();
        let [wrong] = stopped.damaged[..] else { panic!("{plan} {detection:?}: {stopped:?}") };
        let right: Vec<u32> = (0..3).filter(|&id| id != wrong.0).collect();
        assert_eq!(delivered(&stopped, &set), right, "{plan} {detection:?}");
        assert!(right.iter().all(|&id| has_arrived(&mut data, ConnectionId(id))));
        assert_eq!((stopped.dead_cells, stopped.dead_links), (vec![], vec![]));
        // The word is counted once, so that all is well now.
        fabric.exchange_or_drain(0, &mut data).unwrap();
        assert!(set.iter().all(|(id, _)| has_arrived(&mut data, id)));
    }
}

/// Of links in parallel, one pair is named, and none of a dead cell.
#[test]
fn dead_links_are_named_once() {
    let machine = build::machine("ring:2", |_| ());
    let set = build::set(&[(0, 1, 100), (1, 0, 5)]);
    let mut fabric = fabric(&machine, &set, "link c0 -> c1 dead", Detection::Plain);
    let stopped = fabric.exchange_or_drain(0, &mut data_of(&set)).unwrap_err();
    assert_eq!(stopped.dead_links, [(CellId(0), CellId(1))]);
    assert!(stopped.discarded > 0 && stopped.damaged.is_empty(), "words that did not come");
    assert_eq!(delivered(&stopped, &set), [1]);
    assert!(fabric.exchange_or_drain(1, &mut data_of(&set)).is_err(), "no such set");
}

/// Two parts of x0, each in a phase of its own, and x1 in the second phase.
fn two_phases(machine: &Arc<Machine>) -> (ConnectionSet, Image) {
    let set = build::set(&[(0, 2, 20), (0, 1, 5)]);
    let mut phases = vec![vec![CellTables::default(); machine.cell_count()]; 2];
    let mut add = |phase: usize, id: u32, to: u32, words, channel| {
        let links = build::route(machine, CellId(0), CellId(to));
        let channels = vec![ChannelId(channel); links.len() + 1];
        let id = ConnectionId(id);
        build::add(&mut phases[phase], machine, id, CellId(0), &links, &channels, words);
    };
    add(0, 0, 2, (0, 12), 0);
    add(1, 0, 2, (12, 8), 0);
    add(1, 1, 1, (0, 5), 1);
    let image = build::image(machine, set.clone(), &phases);
    (set, image)
}

#[test]
fn what_earlier_phases_delivered_stays_delivered() {
    let machine = build::machine("mesh:3x1", |p| p.streams = 4);
    let (set, image) = two_phases(&machine);
    let options = FabricOptions::default().detection(Detection::Plain);
    let fabric = Fabric::load(image, options);
    let plan = "link c1 -> c2 duplicates word 15".parse().unwrap();
    let mut fabric = fabric.with_faults(&plan).unwrap();
    let stopped = fabric.exchange_or_drain(0, &mut data_of(&set)).unwrap_err();
    assert_eq!((stopped.phases.len(), stopped.damaged), (1, vec![ConnectionId(0)]));
    let runs = stopped.delivered.iter().map(|run| (run.connection.0, run.first_word, run.words));
    assert_eq!(runs.collect::<Vec<_>>(), [(0, 0, 12), (1, 0, 5)]);
}

/// Each part has check words of its own.
#[test]
fn parts_of_connections_are_checked_apart() {
    let machine = build::machine("mesh:3x1", |p| p.streams = 4);
    let (set, image) = two_phases(&machine);
    for word in [None, Some(3), Some(12 + 2 + 5)] {
        let plan = word.map(|word| format!("link c1 -> c2 corrupts word {word}"));
        let plan = plan.unwrap_or_default().parse().unwrap();
        let options = FabricOptions::default().detection(Detection::Checked);
        let mut fabric = Fabric::load(image.clone(), options).with_faults(&plan).unwrap();
        let mut data = data_of(&set);
        match (word, fabric.exchange_or_drain(0, &mut data)) {
            (None, Ok(_)) => assert!(set.iter().all(|(id, _)| has_arrived(&mut data, id))),
            (Some(word), Err(stopped)) => {
                let FaultKind::CheckFailed { connection, damage, .. } = stopped.fault.kind else {
                    panic!("{stopped}")
                };
                // The check words of the first part are not words of the connection.
                let wrong = Damage::Wrong(if word < 12 { word } else { word - 2 });
                assert_eq!((connection, damage), (ConnectionId(0), wrong));
                assert_eq!(stopped.phases.len(), usize::from(word > 12));
            }
            (_, outcome) => panic!("{word:?}: {outcome:?}"),
        }
    }
}

#[test]
fn cells_see_lost_words_and_a_simulator_sees_words_in_the_places_of_others() {
    let machine = build::machine("mesh:4x1", |p| p.streams = 4);
    let set = build::set(&[(0, 1, 30), (1, 2, 30), (2, 3, 30)]);
    // From the lost word on, x0 has a wrong word in every clock in which x1 may have one.
    let plan = "link c0 -> c1 drops word 9\nlink c1 -> c2 reorders word 20";
    for (detection, damaged) in [(Detection::Plain, vec![0]), (Detection::Simulator, vec![0, 1])] {
        let stopped = fabric(&machine, &set, plan, detection)
            .exchange_or_drain(0, &mut data_of(&set))
            .unwrap_err();
        let damaged: Vec<_> = damaged.into_iter().map(ConnectionId).collect();
        assert_eq!(stopped.damaged, damaged, "{detection:?}: {stopped}");
    }
}

/// The exchange ends while words are on links, at agents, and in queues of several streams.
#[test]
fn nothing_is_left_of_an_exchange_that_cannot_go_on() {
    let machine = build::machine("mesh:3x1", |p| p.streams = 4);
    let (set, image) = two_phases(&machine);
    for at in 0..20 {
        let options = FabricOptions::default().detection(Detection::Plain);
        let plan = format!("cell c2 loads p9 at switch 0\nlink c0 -> c1 stalled {at} at 540");
        let fabric = Fabric::load(image.clone(), options);
        let mut fabric = fabric.with_faults(&plan.parse().unwrap()).unwrap();
        let mut data = data_of(&set);
        let stopped = fabric.exchange_or_drain(0, &mut data).unwrap_err();
        assert!(matches!(stopped.fault.kind, FaultKind::Misrouted { .. }), "{stopped}");
        fabric.exchange_or_drain(0, &mut data).unwrap();
        assert!(set.iter().all(|(id, _)| has_arrived(&mut data, id)));
    }
}

fn message_machine(protocol: Protocol) -> Arc<Machine> {
    build::machine("ring:4", |p| (p.protocol, p.c_send, p.c_receive) = (protocol, 11, 7))
}

#[test]
fn messages_go_on_after_a_wrong_one() {
    for protocol in [Protocol::Standing, Protocol::Rendezvous] {
        let machine = message_machine(protocol);
        let extra = machine.parameters().message_extra_words;
        let set = build::set(&[(0, 1, 30), (0, 1, 40), (1, 2, 900), (2, 1, 5)]);
        // In the second message; two check words follow the first one.
        let word = extra + 30 + 2 + extra + 3;
        let plan = format!("link c0 -> c1 corrupts word {word}\ncell c2 dead at 900000");
        let plan = plan.parse().unwrap();
        let mut fabric = MessageFabric::new(machine, &plan, Detection::Checked).unwrap();
        let (mut data, options) = (data_of(&set), MessageOptions::default());
        let stopped = fabric.exchange_or_drain(&set, &options, &mut data).unwrap_err();
        let FaultKind::CheckFailed { connection, .. } = stopped.fault.kind else {
            panic!("{stopped}")
        };
        assert_eq!((connection, &stopped.damaged[..]), (ConnectionId(1), &[ConnectionId(1)][..]));
        assert_eq!(delivered(&stopped, &set), [0, 2, 3], "all that is not damaged");
        assert!([0, 2, 3].iter().all(|&id| has_arrived(&mut data, ConnectionId(id))));
        assert!(stopped.fault.clock < stopped.drained && stopped.drained == fabric.now());
        assert_eq!((stopped.discarded, &stopped.dead_cells[..]), (0, &[][..]));
        let [Some(acted), None] = fabric.faults_acted() else { panic!() };
        assert!(*acted < stopped.fault.clock);
        // The word is counted once.
        fabric.exchange_or_drain(&set, &options, &mut data).unwrap();
        assert!(has_arrived(&mut data, ConnectionId(1)) && fabric.now() > stopped.drained);
    }
}

/// Receivers count words, and go on with the next message.
#[test]
fn messages_go_on_after_one_with_a_lost_word() {
    let machine = message_machine(Protocol::Standing);
    let extra = machine.parameters().message_extra_words;
    let set = Arc::new(build::set(&[(0, 1, 30), (0, 1, 40), (1, 2, 9)]));
    let mut messages = StepMessages::new();
    for (source, target, id) in [(0, 1, 0), (0, 1, 1), (1, 2, 2)] {
        let piece = Piece::whole(&set, ConnectionId(id));
        messages.push(CellId(source), CellId(target), &[piece]).unwrap();
        messages.end_step().unwrap();
    }
    let steps = Steps::new(machine.clone(), set.clone(), messages).unwrap();
    let plan = format!("link c0 -> c1 drops word {}", extra + 3).parse().unwrap();
    for by_steps in [false, true] {
        let mut fabric = MessageFabric::new(machine.clone(), &plan, Detection::Plain).unwrap();
        let mut data = data_of(&set);
        let stopped = match by_steps {
            true => fabric.exchange_steps_or_drain(&steps, &mut data),
            false => fabric.exchange_or_drain(&set, &MessageOptions::default(), &mut data),
        };
        let stopped = stopped.unwrap_err();
        assert!(matches!(stopped.fault.kind, FaultKind::LostWords { .. }), "{stopped}");
        assert_eq!(stopped.damaged, [ConnectionId(0)]);
        assert_eq!(delivered(&stopped, &set), [1, 2], "by steps: {by_steps}");
    }
}

#[test]
fn step_plans_forget_what_was_only_passed_on() {
    let machine = message_machine(Protocol::Standing);
    let set = Arc::new(build::set(&[(0, 2, 8), (3, 3, 4), (0, 1, 6), (0, 3, 5)]));
    let mut messages = StepMessages::new();
    for (source, target, ids) in [(0, 1, vec![0, 2]), (1, 2, vec![0]), (0, 3, vec![3])] {
        let pieces = ids.into_iter().map(|id| Piece::whole(&set, ConnectionId(id)));
        messages.push(CellId(source), CellId(target), &pieces.collect::<Vec<_>>()).unwrap();
        messages.end_step().unwrap();
    }
    let steps = Steps::new(machine.clone(), set.clone(), messages).unwrap();
    let plan = "link c1 -> c2 dead".parse().unwrap();
    let mut fabric = MessageFabric::new(machine.clone(), &plan, Detection::Checked).unwrap();
    let mut data = data_of(&set);
    let stopped = fabric.exchange_steps_or_drain(&steps, &mut data).unwrap_err();
    assert_eq!(delivered(&stopped, &set), [1, 2, 3]);
    assert!([1, 2, 3].iter().all(|&id| has_arrived(&mut data, ConnectionId(id))));
    assert!(stopped.delivered.is_sorted());
    assert_eq!(stopped.dead_links, [(CellId(1), CellId(2))]);
    assert!(stopped.discarded > 0, "the words before the dead link");
    // On a machine without the link, messages go round it.
    fabric.resume(Arc::new(machine.with_dead(&[], &stopped.dead_links).unwrap()));
    fabric.exchange_or_drain(&set, &MessageOptions::default(), &mut data).unwrap();
    assert!(has_arrived(&mut data, ConnectionId(0)));
}
