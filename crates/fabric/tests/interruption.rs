//! Exchanges that go on after a fault: what was delivered until then, what is dead, and the next exchange on the same machine.

mod build;

use std::sync::Arc;

use conset_fabric::messages::{MessageFabric, MessageOptions};
use conset_fabric::{Detection, Fabric, FabricOptions, FaultKind, Interruption, SetBuffers};
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Machine, Piece, Protocol, StepMessages, Steps,
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
    let plan = "cell c3 dead at 600\ncell c3 misses switch 1\nlink c1 -> c2 corrupts word 1000000";
    let mut fabric = fabric(&machine, &set, plan, Detection::Checked);
    let mut data = data_of(&set);
    let stopped = fabric.exchange_or_drain(0, &mut data).unwrap_err();
    assert!(stopped.to_string().contains("is dead"), "{stopped}");
    assert_eq!(delivered(&stopped, &set), [0, 2]);
    assert_eq!((stopped.dead_cells, stopped.dead_links), (vec![CellId(3)], vec![]));
    assert_eq!((stopped.repeated, stopped.damaged, stopped.phases), (0, vec![], vec![]));
    assert!(stopped.discarded > 0 && stopped.drained == fabric.now());
    assert_eq!(fabric.faults_acted(), [Some(600), None, None]);
    let spans = fabric.trace().streams.len();
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
    let set = build::set(&[(0, 1, 100)]);
    let mut fabric = fabric(&machine, &set, "link c0 -> c1 dead", Detection::Plain);
    let stopped = fabric.exchange_or_drain(0, &mut data_of(&set)).unwrap_err();
    assert_eq!(stopped.dead_links, [(CellId(0), CellId(1))]);
    assert!(fabric.exchange_or_drain(1, &mut data_of(&set)).is_err(), "no such set");
}

fn message_machine(protocol: Protocol) -> Arc<Machine> {
    build::machine("ring:4", |p| (p.protocol, p.c_send, p.c_receive) = (protocol, 11, 7))
}

#[test]
fn messages_go_on_after_a_wrong_one() {
    for protocol in [Protocol::Standing, Protocol::Rendezvous] {
        let machine = message_machine(protocol);
        let extra = machine.parameters().message_extra_words;
        let set = build::set(&[(0, 1, 30), (0, 1, 40), (1, 2, 90), (3, 1, 5)]);
        let plan = format!("link c0 -> c1 corrupts word {}\ncell c2 dead at 900000", extra + 3);
        let plan = plan.parse().unwrap();
        let mut fabric = MessageFabric::new(machine, &plan, Detection::Checked).unwrap();
        let (mut data, options) = (data_of(&set), MessageOptions::default());
        let stopped = fabric.exchange_or_drain(&set, &options, &mut data).unwrap_err();
        let FaultKind::CheckFailed { connection, .. } = stopped.fault.kind else {
            panic!("{stopped}")
        };
        assert_eq!((connection, &stopped.damaged[..]), (ConnectionId(0), &[ConnectionId(0)][..]));
        assert_eq!(delivered(&stopped, &set), [1, 2, 3], "all that is not damaged");
        assert!((1..4).all(|id| has_arrived(&mut data, ConnectionId(id))));
        assert!(stopped.fault.clock < stopped.drained && stopped.drained == fabric.now());
        assert_eq!((stopped.discarded, &stopped.dead_cells[..]), (0, &[][..]));
        let [Some(acted), None] = fabric.faults_acted() else { panic!() };
        assert!(*acted < stopped.fault.clock);
        // The word is counted once.
        fabric.exchange_or_drain(&set, &options, &mut data).unwrap();
        assert!(has_arrived(&mut data, ConnectionId(0)) && fabric.now() > stopped.drained);
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
    let mut fabric = MessageFabric::new(machine, &plan, Detection::Checked).unwrap();
    let mut data = data_of(&set);
    let stopped = fabric.exchange_steps_or_drain(&steps, &mut data).unwrap_err();
    assert_eq!(delivered(&stopped, &set), [1, 2, 3]);
    assert!([1, 2, 3].iter().all(|&id| has_arrived(&mut data, ConnectionId(id))));
    assert!(stopped.delivered.is_sorted());
    assert_eq!(stopped.dead_links, [(CellId(1), CellId(2))]);
    assert!(stopped.discarded > 0, "the words before the dead link");
}
