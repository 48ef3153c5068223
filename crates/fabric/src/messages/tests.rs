//! Tests that inspect the message-passing machine between two clocks.

use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Duplex, LinkId, Machine, Parameters};

use super::agents::{ReceiverState, SenderState};
use super::engine::{Message, MessageEngine};
use crate::engine::Stop;
use crate::network::NONE;
use crate::payload::Payload;

/// Checks that words of a message keep their order.
struct Ordered(Vec<u32>);

impl Payload for Ordered {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        assert_eq!((from, to.1), (to, self.0[to.0.index()]));
        self.0[to.0.index()] += 1;
    }
}

/// Words of a message that are in the network.
fn under_way(engine: &MessageEngine, number: u32) -> u32 {
    let worm = &engine.worms[index(number)];
    let source = &engine.agents[worm.message.source.index()];
    let target = &engine.agents[worm.message.target.index()];
    let put = match source.sending {
        _ if source.pending.contains(&number) => 0,
        SenderState::Software if source.sent == number => 0,
        SenderState::Word | SenderState::Full if source.sent == number => source.send_next,
        _ => worm.length,
    };
    let taken = match target.receiving {
        ReceiverState::Word if target.received == number => target.receive_next + 1,
        ReceiverState::Empty if target.received == number => target.receive_next,
        _ => 0,
    };
    put - taken
}

#[test]
fn every_word_is_somewhere_in_every_clock_and_every_channel_has_one_owner() {
    for (spec, depth, link) in [("torus:3x4", 2, 2), ("mesh:3x3", 8, 3), ("fat-tree:6", 1, 1)] {
        let machine = Machine::from_spec(spec).unwrap();
        let mut parameters = machine.parameters().clone();
        (parameters.channel_depth, parameters.link_clocks_per_word) = (depth, link);
        parameters.c_send = 30;
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        let mut engine = MessageEngine::new(machine.clone(), true);
        let cells = to_u32(machine.agent_count());
        let count = 4 * cells;
        for i in 0..count {
            let (source, target) = (CellId(i % cells), CellId(i * i * 7 % cells));
            let label = ConnectionId(i);
            engine.send(Message { source, target, words: 9, label }).unwrap();
            engine.receive(target, 1);
        }
        let mut data = Ordered(vec![0; index(count)]);
        let mut carried = vec![0; machine.link_count()];
        let mut then = 0;
        loop {
            let on = engine.step(&mut data);
            engine.base.network.audit(engine.base.in_flight.iter());
            let queued: u32 = engine.base.network.occupied().map(|(_, words)| words).sum();
            let live = (0..to_u32(engine.worms.len())).filter(|&n| engine.worms[index(n)].live);
            assert_eq!(live.map(|n| under_way(&engine, n)).sum::<u32>(), queued, "{spec}");
            for (row, _) in engine.base.network.occupied().filter(|&(row, _)| row < engine.launch) {
                let words = engine.base.network.head(row).unwrap();
                assert_eq!(engine.channels[index(row)].owner, words.stream(), "{spec}");
            }
            let most = (engine.now() - then) / u64::from(link) + 1;
            then = engine.now();
            for (row, last) in carried.iter_mut().enumerate() {
                let words = engine.link_words(LinkId::from_index(row));
                assert!(words - *last <= most, "{spec}");
                *last = words;
            }
            if !on {
                break;
            }
        }
        assert_eq!(engine.unfinished(), 0, "{spec}");
        assert!(
            engine
                .channels
                .iter()
                .all(|channel| channel.owner == NONE && channel.waiters.head == NONE)
        );
        assert!(data.0.iter().all(|&words| words == 9));
    }
}

#[test]
fn a_stall_that_somebody_waits_for_is_under_way() {
    let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
    let plan = "cell c1 stalled 5000 at 100\ncell c2 late 5 at switch 0".parse().unwrap();
    let mut engine = MessageEngine::new(machine, true).with_faults(&plan).unwrap();
    assert_eq!((engine.take_switch_faults().late, engine.take_switch_faults().late), (5, 0));
    let mut words = Ordered(vec![0]);
    engine.set_timer(200, 0);
    assert_eq!(engine.run(&mut words), Stop::Timer);
    assert!(!engine.is_moving(), "nobody waits for the cell");
    engine.clear_timers();
    assert_eq!((engine.run(&mut words), engine.now()), (Stop::Idle, 200));
    let (source, target) = (CellId(0), CellId(1));
    engine.send(Message { source, target, words: 3, label: ConnectionId(0) }).unwrap();
    engine.receive(target, 1);
    engine.set_timer(2000, 0);
    while engine.run(&mut words) != Stop::Timer {
        engine.take_events(&mut Vec::new());
    }
    assert!(engine.is_moving(), "the message waits for the end of the stall");
    engine.clear_timers();
    while engine.run(&mut words) != Stop::Idle {
        engine.take_events(&mut Vec::new());
    }
    assert_eq!((words.0[0], engine.is_moving()), (3, false));
}

/// Runs a message on a machine with other parameters, until nothing moves; returns the words that came.
fn run_message(
    (source, target, words): (u32, u32, u32),
    change: impl FnOnce(&mut Parameters),
) -> (u32, MessageEngine) {
    let machine = Machine::from_spec("ring:3").unwrap();
    let mut parameters = machine.parameters().clone();
    change(&mut parameters);
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let mut engine = MessageEngine::new(machine, true);
    let (source, target, label) = (CellId(source), CellId(target), ConnectionId(0));
    engine.send(Message { source, target, words, label }).unwrap();
    engine.receive(target, 1);
    let mut came = Ordered(vec![0]);
    while engine.run(&mut came) != Stop::Idle {
        engine.take_events(&mut Vec::new());
    }
    assert_eq!(engine.unfinished(), 0);
    (came.0[0], engine)
}

#[test]
fn a_header_alone_is_no_word_of_data() {
    let (came, engine) = run_message((0, 1, 0), |p| p.message_extra_words = 0);
    assert_eq!((came, engine.delivered(), engine.word_hops()), (0, 0, 1));
}

/// Whole periods are skipped in a message of so many words.
#[test]
fn the_words_behind_extra_ones_are_counted_from_0() {
    let (came, engine) = run_message((0, 1, 20_000), |p| p.message_extra_words = 3);
    assert_eq!((came, engine.delivered()), (20_000, 20_000));
}

/// The receiver is faster than the sender and takes each word as it comes: a channel of one word does not hold it up.
#[test]
fn a_message_to_the_own_cell_moves_at_the_rate_of_its_sender() {
    let clocks = |words| {
        let (_, engine) = run_message((0, 0, words), |p| {
            (p.duplex, p.channel_depth, p.message_extra_words) = (Duplex::Half, 1, 0);
            (p.link_clocks_per_word, p.access_clocks_per_word) = (2, 1);
        });
        engine.now()
    };
    assert_eq!(clocks(30) - clocks(10), 20 * (2 + 2), "each word is copied, then moved");
}

#[test]
fn the_software_of_a_message_is_under_way_and_a_timer_is_not() {
    let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
    let mut engine = MessageEngine::new(machine, true);
    let mut words = Ordered(vec![0]);
    engine.set_timer(10, 1);
    engine.set_timer(9_000, 2);
    assert!(!engine.is_moving());
    let (source, target) = (CellId(0), CellId(1));
    engine.send(Message { source, target, words: 3, label: ConnectionId(0) }).unwrap();
    assert!(engine.is_moving());
    assert_eq!((engine.run(&mut words), engine.now()), (Stop::Timer, 10));
    engine.clear_timers();
    engine.receive(target, 1);
    while engine.run(&mut words) != Stop::Idle {
        engine.take_events(&mut Vec::new());
    }
    assert_eq!((engine.unfinished(), engine.is_moving()), (0, false));
    assert!(engine.now() < 9_000, "the second timer was forgotten");
}
