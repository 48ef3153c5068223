//! Runs with skipping give the same results as runs without: clocks, counts, words, and
//! every time in the trace.

use crate::build;
use conset_fabric::messages::{self, Message, MessageEngine, MessageOptions, MessageOrder};
use conset_fabric::{Fabric, FabricOptions, Jitter, SetBuffers, Stop, run_with};
use conset_ir::{ConnectionId, Image};
use proptest::prelude::*;

/// Runs an image with and without skipping and compares all results.
fn both_ways(image: Image) {
    let image = std::sync::Arc::new(image);
    let run = |skip| run_with(image.clone(), 0, 3, FabricOptions::default().trace(true).skip(skip));
    assert_eq!(run(true), run(false));
}

/// The same with timed starts, some of them delayed.
fn both_ways_timed(
    machine: &std::sync::Arc<conset_ir::Machine>,
    pairs: &[(u32, u32, u32)],
    step: u64,
) {
    let parameters = conset_ir::Parameters { timed_starts: 1, ..machine.parameters().clone() };
    let machine = std::sync::Arc::new(machine.with_parameters(parameters).unwrap());
    let set = build::set(pairs);
    let mut tables = build::tables(&machine, &set);
    build::plan_starts(&mut tables, step);
    let image = std::sync::Arc::new(build::image(&machine, set, &tables));
    for jitter in [None, Some(Jitter { seed: 5, most: 64 })] {
        let run = |skip| {
            run_with(
                image.clone(),
                0,
                3,
                FabricOptions::default().trace(true).skip(skip).jitter(jitter),
            )
        };
        let skipped = run(true).unwrap();
        assert!(skipped.payload_ok);
        assert_eq!(Ok(skipped), run(false));
    }
}

/// Sends a set by messages with and without skipping.
fn messages_both_ways(machine: &std::sync::Arc<conset_ir::Machine>, pairs: &[(u32, u32, u32)]) {
    let set = build::set(pairs);
    for order in [MessageOrder::Given, MessageOrder::Random] {
        let options = MessageOptions::default().seed(5).with_order(order).trace(true);
        let skipped = messages::run_checked(machine, &set, &options).unwrap();
        let options = options.skip(false);
        assert!(skipped.payload_ok);
        assert_eq!(skipped, messages::run_checked(machine, &set, &options).unwrap());
    }
}

#[test]
fn skipping_changes_nothing_on_a_grid_of_configurations() {
    for spec in ["torus:4x4", "ring:7", "fat-tree:6"] {
        for (link, access, duplex) in [(2, 2, "full"), (2, 10, "half"), (3, 2, "full")] {
            for (streams, depth, setup) in [(1, 8, 0), (3, 1, 50), (2, 5, 7)] {
                let machine = build::machine(spec, |p| {
                    p.link_clocks_per_word = link;
                    p.access_clocks_per_word = access;
                    p.set("duplex", duplex).unwrap();
                    (p.streams, p.channel_depth, p.stream_setup) = (streams, depth, setup);
                });
                let cells = machine.agent_count() as u32;
                for words in [40, 700] {
                    let pairs: Vec<_> = (0..3 * cells)
                        .map(|i| (i % cells, (i * 5 + i / cells + 1) % cells, words + i % 3))
                        .collect();
                    both_ways(build::build(&machine, build::set(&pairs)));
                    both_ways_timed(&machine, &pairs, u64::from(words));
                    messages_both_ways(&machine, &pairs);
                }
            }
        }
    }
}

#[test]
fn skipped_words_are_moved() {
    let machine = build::machine("torus:3x3", |p| p.streams = 2);
    let set = build::set(&[(0, 1, 5000), (0, 4, 6000), (8, 8, 3000), (2, 1, 1)]);
    let image = build::build(&machine, set.clone());
    let mut fabric = Fabric::load(image, FabricOptions::default());
    let mut data = SetBuffers::new(&set);
    for (id, connection) in set.iter() {
        let words = data.outgoing(id);
        for (i, word) in words.iter_mut().enumerate() {
            *word = (u64::from(id.0) << 40) + i as u64 * u64::from(connection.words);
        }
    }
    fabric.exchange(0, &mut data).unwrap();
    for row in 0..4 {
        let sent = data.outgoing(ConnectionId(row)).to_vec();
        assert_eq!(data.incoming(ConnectionId(row)), sent);
    }
}

#[test]
fn skipped_words_of_messages_are_moved() {
    let set = build::set(&[(0, 1, 5000), (2, 3, 6000)]);
    let mut data = SetBuffers::new(&set);
    let mut engine = MessageEngine::new(build::machine("ring:4", |_| ()), true);
    for (label, connection) in set.iter() {
        let words = data.outgoing(label).iter_mut().zip(1..);
        words.for_each(|(place, word)| *place = (u64::from(label.0) << 40) + word);
        let (source, target, words) = (connection.source, connection.target, connection.words);
        engine.send(Message { source, target, words, label }).unwrap();
        engine.receive(target, 1);
    }
    while engine.run(&mut data) == Stop::Finished {
        engine.take_events(&mut Vec::new());
    }
    for (id, _) in set.iter() {
        let sent = data.outgoing(id).to_vec();
        assert_eq!(data.incoming(id), sent);
    }
}

#[test]
fn wrong_words_are_counted_one_by_one() {
    let machine = build::machine("ring:4", |_| ());
    let set = build::set(&[(0, 2, 900), (1, 2, 900)]);
    let mut tables = build::tables(&machine, &set);
    // The two receivers listen at each other's channels.
    let sinks: Vec<usize> = (0..tables[0][2].entries.len())
        .filter(|&e| matches!(tables[0][2].entries[e].sink, conset_ir::Sink::Gate(_)))
        .collect();
    let sink = |tables: &build::PhaseTables, i: usize| tables[2].entries[sinks[i]].sink;
    let (one, other) = (sink(&tables[0], 0), sink(&tables[0], 1));
    tables[0][2].entries[sinks[0]].sink = other;
    tables[0][2].entries[sinks[1]].sink = one;
    let channels: Vec<_> = tables[0][2].operations.iter().map(|o| o.channel).collect();
    tables[0][2].operations[0].channel = channels[1];
    tables[0][2].operations[1].channel = channels[0];
    let image = build::image(&machine, set, &tables);
    let checked = run_with(image.clone(), 0, 3, FabricOptions::default()).unwrap();
    assert_eq!((checked.payload_ok, checked.wrong), (false, 1800));
    both_ways(image);
}

#[test]
fn words_without_number_cost_little() {
    // 10^9 words; simulating every clock would take minutes.
    let machine = build::machine("ring:4", |p| p.channels_per_cell = 4);
    let most = conset_ir::limits::WORDS;
    let pairs = [(0, 1, most), (1, 3, most), (2, 3, most / 2 + 1)];
    let set = build::set(&pairs);
    let checked =
        run_with(build::build(&machine, set.clone()), 0, 3, FabricOptions::default()).unwrap();
    assert!(checked.payload_ok);
    assert_eq!(checked.report.words, set.words());
    let machine_set = messages::run_checked(&machine, &set, &MessageOptions::default()).unwrap();
    assert!(machine_set.payload_ok);
}

/// Cases that failed in the past.
#[test]
fn streams_that_end_within_a_period_are_skipped_rightly() {
    let set_up = |p: &mut conset_ir::Parameters, setup| {
        (p.link_clocks_per_word, p.access_clocks_per_word, p.streams) = (1, 1, 1);
        (p.channel_depth, p.stream_setup) = (1, setup);
    };
    let one = build::machine("torus:3x4", |p| {
        set_up(p, 10);
        (p.message_extra_words, p.c_send, p.c_receive) = (0, 0, 0);
    });
    let several = build::machine("ring:5", |p| {
        set_up(p, 0);
        (p.message_extra_words, p.c_send, p.c_receive) = (0, 0, 28);
    });
    let four = [(4, 3, 59), (4, 3, 11), (1, 1, 372), (3, 1, 492)];
    for (machine, pairs) in [(one, &[(0, 0, 72)][..]), (several, &four)] {
        both_ways(build::build(&machine, build::set(pairs)));
        messages_both_ways(&machine, pairs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn skipping_changes_nothing(
        spec in prop::sample::select(vec!["torus:3x4", "ring:5", "mesh:3x3", "hypercube:3", "fat-tree:9"]),
        (link, access, half) in (1u32..4, 1u32..6, any::<bool>()),
        (streams, depth, setup) in (1u32..4, 1u32..10, 0u32..40),
        (extra, send, receive) in (0u32..6, 0u32..300, 0u32..300),
        pairs in prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..600), 1..25),
        step in 0u64..900,
    ) {
        let machine = build::machine(spec, |p| {
            p.link_clocks_per_word = link;
            p.access_clocks_per_word = access;
            p.set("duplex", if half { "half" } else { "full" }).unwrap();
            (p.streams, p.channel_depth, p.stream_setup) = (streams, depth, setup);
            (p.message_extra_words, p.c_send, p.c_receive) = (extra, send, receive);
        });
        let cells = machine.agent_count() as u32;
        let pairs: Vec<_> = pairs.iter().map(|&(s, t, w)| (s % cells, t % cells, w)).collect();
        both_ways(build::build(&machine, build::set(&pairs)));
        both_ways_timed(&machine, &pairs, step);
        messages_both_ways(&machine, &pairs);
    }
}
