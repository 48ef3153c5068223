//! Tests that inspect the engine between two clocks.

#[path = "../tests/build/mod.rs"]
mod build;
mod specification;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Image, LinkId};

use crate::agents::AgentsSnapshot;
use crate::base::BaseSnapshot;
use crate::engine::{Engine, Stop, Submission};
use crate::fault::{FaultKind, GateProblem};
use crate::injection::HardwareFaults;
use crate::payload::Payload;
use build::PhaseTables;

/// Counts the words delivered per connection.
struct Count(Vec<u64>);

impl Payload for Count {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        assert_eq!(from, to);
        assert_eq!(u64::from(to.1), self.0[to.0.index()], "words of a connection keep their order");
        self.0[to.0.index()] += 1;
    }
}

/// An engine in phase 0 of the image, with all operations submitted but those left out.
fn start(image: &Image, leave_out: impl Fn(ConnectionId, Direction) -> bool) -> Engine {
    let mut engine = Engine::new(image.machine().clone());
    let set = &image.sets()[0];
    engine.switch(&set.phases[0]).unwrap();
    for (cell, context) in set.phases[0].cells() {
        for operation in context.operations {
            if !leave_out(operation.connection, operation.direction) {
                engine.submit(&set.set, cell, operation, Submission::LISTED).unwrap();
            }
        }
    }
    engine
}

#[test]
fn every_word_is_somewhere_in_every_clock() {
    for (spec, duplex, depth) in [("torus:4x4", "full", 3), ("mesh:3x3", "half", 1)] {
        let machine = build::machine(spec, |p| {
            p.set("duplex", duplex).unwrap();
            p.channel_depth = depth;
            p.access_clocks_per_word = 3;
            p.stream_setup = 5;
            p.streams = 2;
            p.channels_per_cell = 40;
        });
        let cells = to_u32(machine.cell_count());
        let pairs: Vec<_> = (0..3 * cells).map(|i| (i % cells, i * i * 7 % cells, 9)).collect();
        let set = build::set(&pairs);
        let image = build::build(&machine, set.clone());
        assert_eq!(image.sets()[0].phases.len(), 1);
        let mut engine = start(&image, |_, _| false);
        let mut count = Count(vec![0; set.len()]);
        let mut last = vec![0; machine.link_count()];
        let mut then = engine.now();
        while engine.step(&mut count) {
            engine.audit();
            let clocks = engine.now() - then;
            then = engine.now();
            // Words may begin at both ends of the interval.
            let at_most = clocks / u64::from(machine.parameters().link_clocks_per_word) + 1;
            for (row, last) in last.iter_mut().enumerate() {
                let words = engine.link_words(LinkId::from_index(row));
                assert!(words - *last <= at_most, "l{row} carried {} in {clocks}", words - *last);
                *last = words;
            }
        }
        assert_eq!(engine.unfinished(), 0, "{spec}");
        assert!(count.0.iter().all(|&words| words == 9));
    }
}

#[test]
fn streams_on_a_link_share_it_evenly() {
    for streams in [1u32, 2, 5, 63, 64, 65, 130] {
        let machine = build::machine("mesh:3x1", |p| {
            p.channels_per_cell = 200;
            p.streams = 200;
            p.access_clocks_per_word = 1;
            p.link_clocks_per_word = 3;
            p.channel_depth = 4;
        });
        let image = build::build(&machine, build::set(&vec![(0, 2, 20); index(streams)]));
        let mut engine = start(&image, |_, _| false);
        let mut count = Count(vec![0; index(streams)]);
        while engine.step(&mut count) {
            let (least, most) = (count.0.iter().min().unwrap(), count.0.iter().max().unwrap());
            assert!(most - least <= 1, "{streams} streams: {:?}", count.0);
        }
        assert_eq!(engine.unfinished(), 0);
        let words = u64::from(streams) * 20;
        assert_eq!(engine.now() - 528, 1 + words * 3 + 3 + 1, "{streams} streams");
    }
}

#[test]
fn a_stalled_receiver_freezes_its_own_route_and_nothing_else() {
    let machine = build::machine("ring:8", |p| {
        p.streams = 4;
        p.channel_depth = 5;
    });
    // All share links with the stalled one, x1.
    let set = build::set(&[(0, 3, 100), (0, 3, 100), (1, 4, 100), (2, 3, 100), (0, 1, 100)]);
    let image = build::build(&machine, set);
    let stalled = ConnectionId(1);
    let mut engine = start(&image, |x, d| x == stalled && d == Direction::Receive);
    let mut count = Count(vec![0; 5]);
    while engine.run(&mut count) != Stop::Idle {
        engine.take_finished(&mut Vec::new());
    }
    assert_eq!(count.0, [100, 0, 100, 100, 100]);
    assert_eq!(engine.unfinished(), 1);
    let frozen: Vec<(u32, u32)> = engine.base.network.occupied().collect();
    assert_eq!(frozen.len(), 4, "a channel on each of its cells");
    for (row, words) in frozen {
        assert_eq!((words, engine.base.network.queued(row)), (5, 5), "every queue is full");
        assert_eq!(engine.base.network.head(row).unwrap().stream(), stalled.0);
        assert_eq!(engine.base.network.held(row), 5);
    }
}

#[test]
fn operations_can_come_one_at_a_time() {
    let machine = build::machine("ring:4", |p| p.stream_setup = 10);
    let set = build::set(&[(0, 2, 3)]);
    let image = build::build(&machine, set.clone());
    let mut engine = start(&image, |_, _| true);
    let tables: &PhaseTables = &build::tables(&machine, &set)[0];
    let (send, receive) = (tables[0].operations[0], tables[2].operations[0]);
    let mut count = Count(vec![0]);
    assert_eq!(engine.run(&mut count), Stop::Idle);
    assert_eq!(engine.busiest_link(), None, "no link has carried a word");
    let start = engine.now();
    let mut finished = Vec::new();
    for word in 0..3 {
        let how = Submission { held: false, costs_setup: word == 0 };
        for (cell, operation) in [(0, &send), (2, &receive)] {
            let one = conset_ir::Operation { first_word: word, words: 1, ..*operation };
            engine.submit(&set, CellId(cell), &one, how).unwrap();
        }
        assert_eq!(engine.run(&mut count), Stop::Finished);
        engine.take_finished(&mut finished);
        assert_eq!(engine.operation(finished[0]).direction, Direction::Send);
        assert_eq!(engine.run(&mut count), Stop::Finished);
        engine.take_finished(&mut finished);
        assert_eq!(engine.operation(finished[0]).first_word, word);
    }
    // Each word waits for the one before to be delivered; the stream is set up once.
    assert_eq!(engine.now() - start, 10 + 3 * (2 + 2 * 2 + 2));
    assert_eq!(engine.unfinished(), 0);
}

#[test]
fn timers_go_off_in_order() {
    let mut engine = Engine::new(build::machine("ring:1", |_| ()));
    let mut count = Count(vec![]);
    for (clocks, key) in [(30, 1), (10, 7), (10, 3), (u64::MAX, 9)] {
        engine.set_timer(clocks, key);
    }
    let mut expired = Vec::new();
    let mut seen = Vec::new();
    while engine.run(&mut count) == Stop::Timer {
        engine.take_timers(&mut expired);
        seen.push((engine.now(), expired.clone()));
    }
    assert_eq!(seen, [(10, vec![3, 7]), (30, vec![1]), (u64::MAX, vec![9])]);
}

/// A driver that lets a switch pass by itself, while its timers go on, has the same machine as one
/// that switches at once.
#[test]
fn a_context_can_be_loaded_when_its_time_has_passed() {
    let machine = build::machine("ring:3", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5), (1, 2, 9)]));
    let set = &image.sets()[0];
    let run = |engine: &mut Engine| {
        for (cell, context) in set.phases[0].cells() {
            for operation in context.operations {
                engine.submit(&set.set, cell, operation, Submission::LISTED).unwrap();
            }
        }
        let mut count = Count(vec![0; set.set.len()]);
        let mut stops = Vec::new();
        loop {
            let stop = engine.run(&mut count);
            let (mut expired, mut finished) = (Vec::new(), Vec::new());
            engine.take_timers(&mut expired);
            engine.take_finished(&mut finished);
            stops.push((stop, engine.now(), expired, finished, engine.is_moving()));
            if stop == Stop::Idle {
                return stops;
            }
        }
    };
    let mut at_once = Engine::new(machine.clone());
    at_once.switch(&set.phases[0]).unwrap();
    let expected = run(&mut at_once);
    let mut engine = Engine::new(machine);
    engine.set_timer(100, 7);
    engine.set_timer(528, 8);
    engine.set_timer(1000, 9);
    for (clock, key) in [(100, 7), (528, 8)] {
        assert!(!engine.is_moving());
        assert_eq!(engine.run(&mut Count(Vec::new())), Stop::Timer);
        let mut expired = Vec::new();
        engine.take_timers(&mut expired);
        assert_eq!((engine.now(), expired), (clock, vec![key]));
    }
    engine.load(&set.phases[0]).unwrap();
    assert_eq!(engine.now(), 528);
    let mut found = run(&mut engine);
    let timer = found.remove(found.len() - 2);
    assert_eq!(timer, (Stop::Timer, 1000, vec![9], vec![], false));
    found.last_mut().unwrap().1 = expected.last().unwrap().1;
    assert_eq!(found, expected);
    assert!(expected[0].4, "the other connection is in progress");
}

#[test]
fn only_live_agents_have_operations() {
    let machine = build::machine("fat-tree:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5)]));
    let set = &image.sets()[0];
    let mut engine = Engine::new(machine.clone());
    engine.switch(&set.phases[0]).unwrap();
    let operation = set.phases[0].cell(CellId(0)).operations[0];
    for cell in [machine.agent_count(), machine.cell_count()].map(CellId::from_index) {
        let submitted = engine.submit(&set.set, cell, &operation, Submission::LISTED);
        let Err(FaultKind::Gate { problem, .. }) = submitted else { panic!("{submitted:?}") };
        assert_eq!(problem, GateProblem::NoAgent, "{cell}");
    }
    engine.submit(&set.set, CellId(0), &operation, Submission::LISTED).unwrap();
    engine.run(&mut Count(vec![0]));
    assert_eq!([0, 1].map(|cell| engine.agent_words(CellId(cell))), [5, 0]);
}

/// Links and agents that stop or go on while another engine has the faults.
#[test]
fn faults_go_from_one_engine_to_another() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5), (2, 3, 5)]));
    let plan = "link c0 -> c1 stalled 3000 at 600\ncell c2 stalled 3000 at 600";
    let faults = HardwareFaults::new(&plan.parse().unwrap(), &machine).unwrap();
    let mut other = Engine::new(machine);
    let mut engine = start(&image, |_, _| false);
    let mut count = Count(vec![0; 2]);
    other.give_faults(faults);
    // They stop in the other engine, in which nobody waits for them.
    other.set_timer(1000, 0);
    assert_eq!(other.run(&mut count), Stop::Timer);
    assert!(!other.is_moving(), "nobody waits for the ends of the stalls");
    engine.give_faults(other.take_faults().unwrap());
    engine.pass_until(1000);
    while engine.unfinished() > 0 {
        assert_ne!(engine.run(&mut count), Stop::Idle, "the stalls end");
        engine.take_finished(&mut Vec::new());
        assert!(engine.now() >= 3600 || count.0 == [0, 0], "both connections are held up");
    }
    assert_eq!(count.0, [5, 5]);
    assert_eq!(engine.take_faults().unwrap().0.acted(), [Some(600), Some(600)]);
    // And in one that has them back when the stalls are over.
    let mut engine = start(&image, |_, _| false);
    let faults = HardwareFaults::new(&plan.parse().unwrap(), &image.machine().clone()).unwrap();
    engine.pass_until(700);
    engine.give_faults(faults);
    // Faults that come back at once hold back what they have held back before.
    let mut count = Count(vec![0; 2]);
    for _ in 0..2 {
        engine.set_timer(100, 0);
        while engine.run(&mut count) != Stop::Timer {
            engine.take_finished(&mut Vec::new());
        }
        engine.take_timers(&mut Vec::new());
        assert!(engine.is_moving(), "operations wait for the ends of the stalls");
        let faults = engine.take_faults().unwrap();
        engine.give_faults(faults);
    }
    assert_eq!(engine.agent_words(CellId(1)), 0, "nothing has come over the link");
    assert_eq!(engine.agent_words(CellId(2)), 0, "the cell has sent nothing");
    let faults = engine.take_faults().unwrap();
    other.pass_until(engine.now());
    other.give_faults(faults);
    other.set_timer(5000, 0);
    assert_eq!(other.run(&mut count), Stop::Timer);
    engine.pass_until(other.now());
    engine.give_faults(other.take_faults().unwrap());
    let mut count = Count(vec![0; 2]);
    while engine.unfinished() > 0 {
        assert_ne!(engine.run(&mut count), Stop::Idle, "the stalls are over");
        engine.take_finished(&mut Vec::new());
        engine.take_timers(&mut Vec::new());
    }
}

/// A word of which the next one is in another send, or in none, has none to change places with, whoever receives it.
#[test]
fn a_word_changes_places_with_the_next_one_of_its_send() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5), (2, 3, 9)]));
    for (word, acts) in [(3, true), (4, false)] {
        let plan = format!("link c0 -> c1 reorders word {word}").parse().unwrap();
        let engine = start(&image, |x, d| (x, d) == (ConnectionId(0), Direction::Receive));
        let mut engine = engine.with_faults(&plan).unwrap();
        let mut count = Count(vec![0; 2]);
        while engine.run(&mut count) != Stop::Idle {
            engine.take_finished(&mut Vec::new());
        }
        assert_eq!(engine.link_words(LinkId(0)) + engine.link_words(LinkId(1)), 5);
        assert_eq!(engine.faults_acted()[0].is_some(), acts, "word {word}");
    }
}

/// States that differ in nothing else.
#[test]
fn snapshots_have_the_times_of_words_on_links_and_the_turns_of_streams() {
    let machine = build::machine("mesh:2x1", |p| {
        (p.streams, p.stream_setup) = (2, 0);
        (p.access_clocks_per_word, p.link_clocks_per_word) = (3, 50);
    });
    let image = build::build(&machine, build::set(&[(0, 1, 9), (0, 1, 9)]));
    let mut engine = start(&image, |_, _| false);
    let mut count = Count(vec![0; 2]);
    engine.step(&mut count);
    let mut agents = AgentsSnapshot::default();
    engine.agents.save(&mut agents);
    assert!(engine.agents.matches(&agents));
    engine.step(&mut count);
    assert!(!engine.agents.matches(&agents), "the other stream has its turn");
    engine.settle();
    assert_eq!(engine.base.in_flight.iter().count(), 1);
    let mut base = BaseSnapshot::default();
    engine.base.save(&mut base);
    assert!(engine.base.matches(&base));
    engine.pass_until(engine.now() + 1);
    assert!(!engine.base.matches(&base), "the word arrives one clock earlier");
}

#[test]
fn an_engine_says_which_words_were_lost() {
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(0, 1, 5), (1, 2, 5), (2, 3, 5)]));
    let plan = "link c1 -> c2 drops words from 3\nlink c2 -> c3 dead".parse().unwrap();
    let mut engine = start(&image, |_, _| false).with_faults(&plan).unwrap();
    let mut words = crate::SetBuffers::new(&image.sets()[0].set);
    while !matches!(engine.run(&mut words), Stop::Idle) {
        engine.take_finished(&mut Vec::new());
        engine.take_fault();
    }
    let Some(FaultKind::LostWords { cell, connection, sent, received, .. }) =
        engine.lost_words_fault()
    else {
        panic!()
    };
    assert_eq!((cell, connection, sent, received), (CellId(2), ConnectionId(1), 5, 3));
}
