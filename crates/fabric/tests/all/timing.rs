//! Times with a closed form, order between connections, and unusual machines.

use crate::build;
use crate::build::CellTables;
use conset_fabric::trace::routes::TracedRoutes;
use conset_fabric::{
    Fabric, FabricOptions, FaultKind, SetBuffers, TraceSource, run_checked, write_perfetto,
};
use conset_ir::{
    CellId, ChannelId, ConnectionId, ConnectionSet, Direction, Duplex, Image, PhaseId, StreamClocks,
};
use proptest::prelude::*;

/// Clocks of the one phase of `image`.
fn clocks(image: Image) -> u64 {
    let checked = run_checked(image, 0, 5, false).unwrap();
    assert!(checked.payload_ok, "{checked:?}");
    assert_eq!(checked.report.phases.len(), 1);
    checked.report.phases[0].clocks
}

#[test]
fn one_stream_alone_takes_the_time_of_the_closed_form() {
    for spec in ["mesh:3x3", "torus:2x3", "ring:5", "hypercube:3", "fat-tree:5", "ring:1"] {
        for (link, access, depth, setup, duplex) in [
            (2u32, 2u32, 8, 0u32, "full"),
            (2, 10, 8, 0, "half"),
            (3, 1, 1, 7, "full"),
            (1, 4, 1, 30, "half"),
            (5, 5, 2, 1, "full"),
        ] {
            let machine = build::machine(spec, |p| {
                p.link_clocks_per_word = link;
                p.access_clocks_per_word = access;
                p.channel_depth = depth;
                p.stream_setup = setup;
                p.set("duplex", duplex).unwrap();
            });
            let (link, access, setup) = (u64::from(link), u64::from(access), u64::from(setup));
            for (from, to) in
                machine.endpoints().flat_map(|a| machine.endpoints().map(move |b| (a, b)))
            {
                for m in [1u32, 2, 7, 40] {
                    let hops = u64::from(machine.hops_from(from)[to.index()]);
                    let m64 = u64::from(m);
                    let expected = match (hops, duplex) {
                        (0, "half") => 2 * setup + 2 * m64 * access,
                        (0, _) => setup + 2 * access + (m64 - 1) * access,
                        _ => setup + access + hops * link + access + (m64 - 1) * access.max(link),
                    };
                    let image = build::build(&machine, build::set(&[(from.0, to.0, m)]));
                    assert_eq!(clocks(image), expected, "{spec} {from} {to} {m} {link} {access}");
                }
            }
        }
    }
}

/// Links between a node and the network have a rate of their own, and streams between nodes an overhead.
#[test]
fn one_stream_in_a_cluster_takes_the_time_of_its_links() {
    for (setup, network, overhead) in [(0, 7, 0), (0, 2, 9), (4, 7, 9), (4, 0, 0)] {
        let machine = build::machine("cluster:2x2", |p| {
            (p.link_clocks_per_word, p.access_clocks_per_word, p.channel_depth) = (3, 4, 4);
            (p.stream_setup, p.network_clocks_per_word, p.network_overhead) =
                (setup, network, overhead);
        });
        for (from, to) in machine.endpoints().flat_map(|a| machine.endpoints().map(move |b| (a, b)))
        {
            if from == to {
                continue;
            }
            let links = build::route(&machine, from, to);
            let each = links.iter().map(|&link| u64::from(machine.link_clocks(link)));
            let between = u64::from(machine.network_overhead(from, to));
            assert_eq!(between > 0, overhead > 0 && from.0 / 2 != to.0 / 2);
            let slowest = each.clone().max().unwrap().max(4);
            let expected = u64::from(setup) + between + 4 + each.sum::<u64>() + 4 + 19 * slowest;
            let image = build::build(&machine, build::set(&[(from.0, to.0, 20)]));
            assert_eq!(clocks(image), expected, "{from} {to} {setup} {network} {overhead}");
        }
    }
}

/// Parts of a connection may come in any order. The second one to wait in the channel begins with the number that would
/// follow if there were no other between them.
#[test]
fn parts_of_a_connection_follow_each_other_through_a_channel() {
    let machine = build::machine("mesh:2x1", |p| (p.streams, p.channel_depth) = (1, 8));
    let set = build::set(&[(0, 1, 12), (0, 1, 60)]);
    let mut phase = vec![CellTables::default(); 2];
    let links = build::route(&machine, CellId(0), CellId(1));
    let mut add = |id: u32, channel: u32, words| {
        let channels = [ChannelId(channel); 2];
        build::add(&mut phase, &machine, ConnectionId(id), CellId(0), &links, &channels, words);
    };
    for words in [(0, 2), (7, 1), (3, 4), (2, 1), (8, 4)] {
        add(0, 0, words);
    }
    add(1, 1, (0, 60));
    for cell in &mut phase {
        let mut rows = std::collections::BTreeSet::new();
        cell.entries.retain(|entry| rows.insert(entry.channel));
    }
    // The receiver first takes the other connection, and the words of all parts wait.
    phase[1].operations.rotate_right(1);
    phase[0].operations.swap(4, 5);
    let checked = run_checked(build::image(&machine, set, &[phase]), 0, 5, false).unwrap();
    assert!(checked.payload_ok, "{checked:?}");
}

/// Each send of a cell to itself opens with the receive on its own channel, although another one is before that in the
/// list and the port has one stream at a time.
#[test]
fn parts_of_a_connection_to_the_own_cell_alternate_with_their_own_receives() {
    let machine = build::machine("mesh:2x1", |p| {
        (p.duplex, p.streams, p.channel_depth) = (Duplex::Half, 1, 2);
    });
    let set = build::set(&[(0, 0, 20)]);
    let mut phase = vec![CellTables::default(); 2];
    for (channel, words) in [(ChannelId(0), (0, 10)), (ChannelId(1), (10, 10))] {
        build::add(&mut phase, &machine, ConnectionId(0), CellId(0), &[], &[channel], words);
    }
    // Both sends, then the receives in the opposite order.
    let all = phase[0].operations.clone();
    phase[0].operations = [0, 2, 3, 1].map(|place: usize| all[place]).to_vec();
    let checked = run_checked(build::image(&machine, set, &[phase]), 0, 5, false).unwrap();
    assert!(checked.payload_ok, "{checked:?}");
}

proptest! {
    /// What planners and timetables count on ([`StreamClocks`]), against a run.
    #[test]
    fn one_stream_alone_takes_the_time_that_planners_count_on(
        spec in prop::sample::select(vec!["mesh:3x3", "ring:5", "ring:2", "fat-tree:5", "ring:1"]),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        itself in any::<bool>(),
        (link, access, setup) in (1u32..30, 1u32..30, prop::sample::select(vec![0u32, 1, 50, 900])),
        (depth, streams, half) in (1u32..9, 1u32..4, any::<bool>()),
        words in 1u32..3000,
    ) {
        let machine = build::machine(spec, |p| {
            (p.link_clocks_per_word, p.access_clocks_per_word) = (link, access);
            (p.stream_setup, p.channel_depth, p.streams) = (setup, depth, streams);
            p.duplex = if half { Duplex::Half } else { Duplex::Full };
        });
        let cells: Vec<CellId> = machine.endpoints().collect();
        let from = *ends.0.get(&cells);
        let to = if itself { from } else { *ends.1.get(&cells) };
        let hops = machine.hops_from(from)[to.index()] as usize;
        let stream = StreamClocks::between(machine.parameters(), from == to);
        let set = build::set(&[(from.0, to.0, words)]);
        prop_assert_eq!(machine.parameters().longest_stream(&set), stream.of(words));
        prop_assert_eq!(clocks(build::build(&machine, set)), stream.until_received(words, hops));
    }
}

#[test]
fn the_two_directions_of_an_agent_add_up_with_half_duplex_only() {
    for (duplex, expected) in [("full", 1000 + 2 + 10), ("half", 2000 + 2 + 10)] {
        let machine = build::machine("ring:4", |p| {
            p.access_clocks_per_word = 10;
            p.set("duplex", duplex).unwrap();
        });
        let image = build::build(&machine, build::set(&[(0, 1, 100), (1, 0, 100)]));
        // With half duplex the second waits at both ends until the first is over there.
        let took = clocks(image);
        assert!(took.abs_diff(expected) <= 12, "{duplex}: {took}");
    }
}

#[test]
fn opening_a_stream_costs_its_port() {
    let machine = build::machine("ring:4", |p| p.stream_setup = 100);
    let image = build::build(&machine, build::set(&[(0, 1, 10); 5]));
    // Five times setup and words; the receiver is behind by one word and one link.
    assert_eq!(clocks(image), 5 * (100 + 10 * 2) + 2 + 2);
}

#[test]
fn an_order_between_connections_that_share_no_cell_is_kept() {
    let x = ConnectionId;
    let machine = build::machine("ring:8", |_| ());
    let connections = [(0, 1, 50), (4, 5, 50), (6, 7, 20)];
    let both = clocks(build::build(&machine, build::set(&connections)));
    let set = build::set(&connections).with_order(vec![(x(1), x(0)), (x(2), x(1))]).unwrap();
    let ordered = clocks(build::build(&machine, set));
    let alone = |m: u64| 2 + 2 + 2 + (m - 1) * 2;
    assert_eq!(both, alone(50));
    assert_eq!(ordered, 2 * alone(50) + alone(20));
}

#[test]
fn an_order_that_the_phases_contradict_is_a_deadlock_with_a_reason() {
    let x = ConnectionId;
    let machine = build::machine("ring:8", |p| p.channels_per_cell = 1);
    let set = build::set(&[(0, 1, 5), (1, 2, 5)]).with_order(vec![(x(1), x(0))]).unwrap();
    let image = build::build(&machine, set);
    assert_eq!(image.sets()[0].phases.len(), 2);
    let fault = run_checked(image, 0, 0, false).unwrap_err();
    assert_eq!(fault.phase, Some(PhaseId(0)));
    assert!(fault.to_string().contains("holds x0 back until x1 is finished"), "{fault}");
}

#[test]
fn odd_machines_and_sets_run() {
    for (spec, cells) in [("ring:1", 1), ("torus:2x1", 2), ("torus:2x2x2", 8), ("fat-tree:17", 17)]
    {
        let machine = build::machine(spec, |_| ());
        let pairs: Vec<_> = (0..cells * cells).map(|i| (i / cells, i % cells, 1 + i % 5)).collect();
        let set = build::set(&pairs);
        let hops: u64 = set
            .connections()
            .iter()
            .map(|c| u64::from(c.words * machine.hops_from(c.source)[c.target.index()]))
            .sum();
        let checked = run_checked(build::build(&machine, set.clone()), 0, 1, true).unwrap();
        assert!(checked.payload_ok, "{spec}");
        assert_eq!((checked.report.words, checked.report.word_hops), (set.words(), hops), "{spec}");
        assert_eq!(checked.trace.unwrap().streams.len(), 2 * set.len());
    }
    let machine = build::machine("iwarp", |_| ());
    let empty = ConnectionSet::new("empty", vec![]).unwrap();
    let checked = run_checked(build::build(&machine, empty), 0, 1, false).unwrap();
    assert_eq!((checked.payload_ok, checked.report.clocks), (true, 0));
}

#[test]
fn parallel_links_of_a_ring_of_two_are_both_used() {
    let machine = build::machine("ring:2", |p| {
        p.access_clocks_per_word = 1;
        p.streams = 2;
    });
    let set = build::set(&[(0, 1, 100), (0, 1, 100)]);
    let mut tables = build::tables(&machine, &set);
    let shared = clocks(build::image(&machine, set.clone(), &tables));
    // The second connection over the other link.
    let other = machine.links_between(CellId(0), CellId(1)).nth(1).unwrap();
    tables[0] = vec![build::CellTables::default(); 2];
    let channel = conset_ir::ChannelId;
    for (row, link) in [(0, machine.outgoing(CellId(0))[0]), (1, other)] {
        let channels = [channel(row), channel(row)];
        let id = ConnectionId(row);
        build::add(&mut tables[0], &machine, id, CellId(0), &[link], &channels, (0, 100));
    }
    let apart = clocks(build::image(&machine, set, &tables));
    assert_eq!((shared, apart), (200 * 2 + 2, 200 + 1 + 2));
}

#[test]
fn a_connection_waits_for_all_parts_of_the_one_before_it() {
    let machine = build::machine("ring:4", |p| p.streams = 2);
    let set = build::set(&[(0, 1, 90), (1, 2, 5)]);
    let set = set.with_order(vec![(ConnectionId(0), ConnectionId(1))]).unwrap();
    let mut phase = vec![CellTables::default(); 4];
    for (id, from, to, channel, words) in
        [(0, 0, 1, 0, (0, 4)), (0, 0, 1, 1, (4, 86)), (1, 1, 2, 2, (0, 5))]
    {
        let links = build::route(&machine, CellId(from), CellId(to));
        let (id, channels) = (ConnectionId(id), [ChannelId(channel); 2]);
        build::add(&mut phase, &machine, id, CellId(from), &links, &channels, words);
    }
    let checked = run_checked(build::image(&machine, set, &[phase]), 0, 5, true).unwrap();
    assert!(checked.payload_ok);
    let streams = checked.trace.unwrap().streams;
    let of = |id: u32| streams.iter().filter(move |span| span.connection.0 == id);
    let received = of(0).map(|span| span.close).max().unwrap();
    let sent = of(1).filter(|span| span.direction == Direction::Send).map(|span| span.open);
    assert_eq!(sent.collect::<Vec<_>>(), [received]);
}

#[test]
fn a_connection_split_over_two_phases_arrives_whole() {
    let machine = build::machine("ring:4", |_| ());
    let set = build::set(&[(0, 2, 10)]);
    let links = build::route(&machine, CellId(0), CellId(2));
    let channels = [conset_ir::ChannelId(3); 3];
    let mut tables = vec![vec![build::CellTables::default(); 4]; 2];
    for (phase, part) in [(0, (0, 4)), (1, (4, 6))] {
        build::add(
            &mut tables[phase],
            &machine,
            ConnectionId(0),
            CellId(0),
            &links,
            &channels,
            part,
        );
    }
    let image = build::image(&machine, set.clone(), &tables);
    let mut fabric = Fabric::load(image, FabricOptions::default());
    let mut data = SetBuffers::new(&set);
    let words: Vec<u64> = (0..10).map(|i| i * i + 3).collect();
    data.outgoing(ConnectionId(0)).copy_from_slice(&words);
    let report = fabric.exchange(0, &mut data).unwrap();
    assert_eq!(data.incoming(ConnectionId(0)), words);
    assert_eq!(report.clocks, (528 + 8 + 3 * 2) + (528 + 8 + 5 * 2));
    assert_eq!(report.phases[0].busiest_link, Some((links[0], 4)));
    assert_eq!(report.phases[1].busiest_agent, Some((CellId(0), 6)));
    // With one part missing, the run is clean and the words are not there.
    let part = build::image(&machine, set, &tables[..1]);
    let fault =
        Fabric::load(part.clone(), FabricOptions::default()).exchange(0, &mut data).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Coverage { missing: 6, extra: 0, .. }), "{fault}");
    let checked = run_checked(part, 0, 0, false).unwrap();
    assert_eq!((checked.payload_ok, checked.missing), (false, 6));
}

#[test]
fn repeated_runs_are_the_same_and_so_are_repeated_exchanges() {
    let machine = build::machine("torus:4x4", |p| p.streams = 3);
    let image = std::sync::Arc::new(build::build(&machine, build::all_to_all(16, 30)));
    let first = run_checked(image.clone(), 0, 1, true).unwrap();
    assert_eq!(first, run_checked(image.clone(), 0, 1, true).unwrap());
    let mut fabric = Fabric::load(image.clone(), FabricOptions::default());
    let mut data = SetBuffers::new(&image.sets()[0].set);
    for round in 1..4 {
        assert_eq!(fabric.exchange(0, &mut data).unwrap(), first.report);
        assert_eq!(fabric.now(), round * first.report.clocks);
    }
}

#[test]
fn the_trace_shows_the_seven_steps_and_every_stream() {
    let machine = build::machine("iwarp:4x4", |_| ());
    let image = std::sync::Arc::new(build::build(&machine, build::all_to_all(16, 3)));
    let phases = image.sets()[0].phases.len();
    let checked = run_checked(image.clone(), 0, 1, true).unwrap();
    let trace = checked.trace.unwrap();
    assert_eq!(trace.switches.len(), 7 * phases);
    let priced: u64 = trace.switches.iter().map(|s| s.clocks).sum();
    assert_eq!(priced, 528 * phases as u64);
    let end = trace.streams.iter().map(|s| s.close).max().unwrap();
    assert_eq!(end, checked.report.clocks);
    let mut json = Vec::new();
    let routes = TracedRoutes::of_image(&image);
    let source = TraceSource { trace: &trace, routes, label: "" };
    write_perfetto(&mut json, &mut [source]).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.starts_with("{\"displayTimeUnit\"") && json.ends_with("}\n]}\n"));
    let hops: usize =
        trace.transfers().len() + usize::try_from(checked.report.word_hops / 3).unwrap();
    // The two steps that take time and the phase; streams at agents, at links, at channels.
    let slices = 3 * phases + 2 * 240 + (hops - 240) + hops;
    assert_eq!(json.matches("\"ph\":\"X\"").count(), slices);
    assert_eq!(json.matches("\"ph\":\"i\"").count(), 5 * phases);
    assert_eq!(json.matches("\"ph\":\"s\"").count(), 240);
    // 352 clocks.
    assert!(json.contains("\"dur\":352,"));
}

#[test]
fn a_huge_price_costs_no_time_to_wait_for() {
    let machine = build::machine("ring:4", |p| {
        p.link_clocks_per_word = 1_000_000_000;
        p.access_clocks_per_word = 1;
        p.channel_depth = 4096;
        p.streams = 4096;
    });
    let image = build::build(&machine, build::set(&[(0, 2, 1000)]));
    assert_eq!(clocks(image), 1 + 1 + 1_000_000_000 * 1001);
}
