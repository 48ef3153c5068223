//! Step plans: orders and routes, delivery by every planner, the cost model. The schedules that the
//! CM-5 paper prints are compared in `crates/conset/tests/all/reproduce.rs`.

use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, ConnectionSet, Duplex, LinkId, Machine, Protocol, Steps};
use conset_scheduler::steps::{
    Levels, LevelsSpec, StepOrder, factorisations, least_clocks, least_clocks_direct,
    message_clocks, predict,
};

use crate::common::{Numbers, machine, machine_with, set, way};

fn all_to_all(cells: u32, words: u32) -> ConnectionSet {
    let pairs = (0..cells).flat_map(|a| (0..cells).map(move |b| (a, b, words)));
    set(&pairs.filter(|(a, b, _)| a != b).collect::<Vec<_>>())
}

/// A plan with links that nobody waits for.
fn plan(machine: &Arc<Machine>, set: &ConnectionSet, radices: &[u32], order: StepOrder) -> Steps {
    let levels = Levels::new(machine, radices, order).unwrap();
    levels.plan(machine, &Arc::new(set.clone()), Protocol::Rendezvous, &mut |_, _, _| ()).unwrap()
}

/// The pairs of each step, the lower cell first, as the paper prints them.
fn pairs(steps: &Steps) -> Vec<Vec<(u32, u32)>> {
    let of = |messages: Vec<(u32, u32)>| -> Vec<(u32, u32)> {
        let mut pairs: Vec<_> = messages.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
        pairs.dedup();
        pairs
    };
    let ends = |(_, messages): (_, _)| of(messages);
    steps
        .iter()
        .map(|(id, m)| (id, m.map(|m| (m.source.0, m.target.0)).collect()))
        .map(ends)
        .collect()
}

#[test]
fn within_a_pair_the_lower_cell_sends_first() {
    let (machine, set) = (machine("ring:4"), all_to_all(4, 1));
    for order in [StepOrder::Pairwise, StepOrder::Balanced, StepOrder::Greedy] {
        let steps = plan(&machine, &set, &[4], order);
        for (_, messages) in steps.iter() {
            let ends: Vec<_> = messages.map(|m| (m.source, m.target)).collect();
            for pair in ends.chunks(2) {
                assert!(pair[0].0 < pair[0].1 && (pair[0].1, pair[0].0) == pair[1], "{pair:?}");
            }
        }
    }
}

#[test]
fn the_greedy_order_of_a_complete_exchange_is_the_pairwise_one() {
    for cells in [4, 8, 16, 32] {
        let (machine, set) = (machine(&format!("ring:{cells}")), all_to_all(cells, 3));
        let [greedy, pairwise] = [StepOrder::Greedy, StepOrder::Pairwise]
            .map(|order| plan(&machine, &set, &[cells], order));
        assert_eq!(greedy, pairwise, "{cells} cells");
    }
}

#[test]
fn balanced_steps_have_few_messages_across_halves_until_the_last() {
    // Pairs across the two halves of 32 cells: 2 in 15 steps, then 16, then 14 in 15 steps.
    let steps = plan(&machine("ring:32"), &all_to_all(32, 1), &[32], StepOrder::Balanced);
    let across = |pairs: Vec<(u32, u32)>| pairs.iter().filter(|p| p.0 < 16 && p.1 >= 16).count();
    let counts: Vec<usize> = pairs(&steps).into_iter().map(across).collect();
    assert_eq!((&counts[..15], counts[15], &counts[16..]), (&[2; 15][..], 16, &[14; 15][..]));
}

/// A random set, also with connections of a cell to itself, several between two cells, and an order.
fn random(numbers: &mut Numbers, cells: u64) -> ConnectionSet {
    let count = numbers.below(4 * cells + 1);
    let ends: Vec<_> = (0..count)
        .map(|_| {
            let [a, b] = [0, 0].map(|_| numbers.below(cells) as u32);
            (a, b, 1 + numbers.below(300) as u32)
        })
        .collect();
    let pairs = numbers.below(2) * count / 3;
    let order = (0..pairs).filter_map(|_| {
        let [a, b] = [0, 0].map(|_| numbers.below(count) as u32);
        (a < b).then_some((ConnectionId(a), ConnectionId(b)))
    });
    let order = order.collect();
    set(&ends).with_order(order).unwrap()
}

/// Follows all pieces; every word must be where it is sent from, and end at its target.
fn deliver(steps: &Steps) {
    let mut at: Vec<CellId> = steps.set().connections().iter().map(|c| c.source).collect();
    for message in steps.messages().iter() {
        assert_ne!(message.source, message.target);
        for piece in message.pieces {
            assert!(piece.is_whole(steps.set()));
            assert_eq!(at[piece.connection.index()], message.source);
            at[piece.connection.index()] = message.target;
        }
    }
    for (id, connection) in steps.set().iter() {
        assert_eq!(at[id.index()], connection.target, "{id}");
    }
}

#[test]
fn every_planner_delivers_every_set() {
    let mut numbers = Numbers(7);
    for cells in 1..=40 {
        let machine = machine(&format!("ring:{cells}"));
        let set = random(&mut numbers, cells);
        for radices in factorisations(cells as u32, 3) {
            for order in StepOrder::ALL {
                for protocol in [Protocol::Standing, Protocol::Rendezvous] {
                    let mut route = |from, to, links: &mut Vec<LinkId>| {
                        links.extend(way(&machine, from, to));
                    };
                    let levels = Levels::new(&machine, &radices, order).unwrap();
                    let set = Arc::new(set.clone());
                    let steps = levels.plan(&machine, &set, protocol, &mut route).unwrap();
                    deliver(&steps);
                    let clocks = predict(&steps, protocol, &mut route);
                    assert!(clocks >= least_clocks(&machine, &set, protocol));
                    if steps.is_direct() {
                        assert!(clocks >= least_clocks_direct(&machine, &set, protocol));
                    }
                }
            }
        }
    }
}

/// The messages of a planner by their words, least first.
fn words_of(machine: &Arc<Machine>, set: &ConnectionSet, spec: &str) -> Vec<u64> {
    let levels = Levels::of_spec(machine, LevelsSpec::parse(spec).unwrap()).unwrap();
    let set = Arc::new(set.clone());
    let steps = levels.plan(machine, &set, Protocol::Standing, &mut |_, _, _| ()).unwrap();
    deliver(&steps);
    let mut words: Vec<u64> = steps.messages().iter().map(|message| message.words()).collect();
    words.sort_unstable();
    words
}

/// Section 4 of the C3 paper on a mesh of 16 by 16 cells, messages of one word.
#[test]
fn algorithms_of_the_c3_paper() {
    let machine = machine("mesh:16x16");
    let count = |words: &[u64], size| words.iter().filter(|&&w| w == size).count();
    for source in [0, 136] {
        let to_all: Vec<_> = (0..256).filter(|&c| c != source).map(|c| (source, c, 1)).collect();
        let to_one: Vec<_> = to_all.iter().map(|&(s, d, words)| (d, s, words)).collect();
        for (ends, inverse) in [(to_all, ""), (to_one, "/inverse")] {
            let of = |spec: &str| words_of(&machine, &set(&ends), &format!("{spec}{inverse}"));
            // To the heads of the other rows 16 words each, which are sent on one by one.
            let rows = of("levels:16x16/rows");
            assert_eq!((count(&rows, 16), count(&rows, 1), rows.len()), (15, 240, 255));
            // To the heads of the squares 16 each, from there to the heads of the lines of four.
            let squares = of("levels:16x4x4/tiles");
            assert_eq!((count(&squares, 16), count(&squares, 4), squares.len()), (15, 48, 255));
            // Halves: 128, two times 64, four times 32, ..
            let halves = of("halves");
            let sizes = (0..8).map(|depth| count(&halves, 1 << depth)).collect::<Vec<_>>();
            assert_eq!(sizes, [128, 64, 32, 16, 8, 4, 2, 1]);
            // The source's part keeps three quarters, then three quarters of these, ..
            let uneven = of("halves:0.75");
            assert_eq!((uneven.len(), uneven[254]), (255, 64));
            assert!(uneven.contains(&48) && !uneven.contains(&128));
        }
    }
    // All-to-all in squares, one message between squares, all-to-all in squares. Messages of 15 words
    // would have those of a cell to itself.
    let squares = words_of(&machine, &all_to_all(256, 1), "levels:16x16/tiles/s1d1,d1s1");
    let sizes = [15, 16, 256].map(|size| count(&squares, size));
    assert_eq!(sizes, [2 * 240, 2 * (256 * 15 - 240), 240]);
    assert_eq!(squares.len(), 2 * 256 * 15 + 240);
    let [rows, columns] = ["rows", "columns"].map(|numbering| {
        words_of(&machine, &all_to_all(256, 1), &format!("levels:16x16/{numbering}"))
    });
    assert_eq!((rows.len(), count(&rows, 16)), (2 * 256 * 15, 2 * 256 * 15));
    assert_eq!(rows, columns);
}

/// In rows, the cells of a message agree in one coordinate; in tiles, in their tile or their place.
#[test]
fn messages_stay_in_rows_columns_and_tiles() {
    let machine = machine("mesh:4x4");
    let set = Arc::new(all_to_all(16, 1));
    let at = |cell: CellId| (cell.0 % 4, cell.0 / 4);
    type Group = fn((u32, u32)) -> (u32, u32);
    let tile: Group = |(x, y)| (x / 2, y / 2);
    let place: Group = |(x, y)| (x % 2, y % 2);
    let (x, y): (Group, Group) = (|(x, _)| (x, 0), |(_, y)| (y, 0));
    for (spec, groups) in [
        ("levels:4x4/rows/ring", [x, y]),
        ("levels:4x4/columns/ring", [y, x]),
        ("levels:4x4/tiles/ring", [place, tile]),
    ] {
        let levels = Levels::of_spec(&machine, LevelsSpec::parse(spec).unwrap()).unwrap();
        let steps = levels.plan(&machine, &set, Protocol::Standing, &mut |_, _, _| ()).unwrap();
        let messages: Vec<_> =
            steps.messages().iter().map(|m| (at(m.source), at(m.target))).collect();
        let half = messages.len() / 2;
        for (level, group) in [&messages[..half], &messages[half..]].into_iter().zip(groups) {
            assert!(level.iter().all(|&(source, target)| group(source) == group(target)), "{spec}");
        }
    }
}

#[test]
fn radices_must_cover_all_cells() {
    let machine = machine("ring:10");
    for wrong in [&[3, 3][..], &[], &[1, 10], &[1 << 31, 1 << 31]] {
        assert!(Levels::new(&machine, wrong, StepOrder::Ring).is_err(), "{wrong:?}");
    }
    assert!(Levels::new(&machine, &[4, 3], StepOrder::Ring).is_ok());
}

#[test]
fn steps_of_a_ring_do_not_wait_in_a_chain() {
    // Every cell sends once and receives once; messages of a chain alternate, so three rounds.
    for cells in [6u32, 7] {
        let ends: Vec<_> = (0..cells).map(|a| (a, (a + 1) % cells, 10)).collect();
        let machine = machine(&format!("ring:{cells}"));
        let steps = plan(&machine, &set(&ends), &[cells], StepOrder::Ring);
        let clocks = predict(&steps, Protocol::Rendezvous, &mut |_, _, _| ());
        let message = 400 + 400 + (10 + 4) * 2;
        assert_eq!(clocks, u64::from(2 + cells % 2) * message);
    }
}

#[test]
fn a_rendezvous_takes_software_way_and_words_and_holds_its_links() {
    let machine = machine_with("mesh:4", |p| p.duplex = Duplex::Half);
    let of = |ends: &[_]| {
        let mut route = |from, to, links: &mut Vec<LinkId>| links.extend(way(&machine, from, to));
        predict(
            &plan(&machine, &set(ends), &[4], StepOrder::Linear),
            Protocol::Rendezvous,
            &mut route,
        )
    };
    let message = |words: u64, hops: u64| 800 + hops * 2 + (words + 4) * 2;
    assert_eq!(of(&[(0, 3, 100)]), message(100, 3));
    // Cell 1 sends over the link from c1 to c2, which c0's message to c3 holds.
    assert_eq!(of(&[(0, 3, 100), (1, 2, 50)]), message(50, 1) + (100 + 4) * 2 + 3 * 2);
    // Without links in common both are under way together.
    assert_eq!(of(&[(0, 1, 100), (2, 3, 50)]), message(100, 1));
    // An exchange is two messages in turn.
    assert_eq!(of(&[(0, 1, 100), (1, 0, 50)]), message(100, 1) + message(50, 1));
}

#[test]
fn loaded_is_at_the_bound_without_contention() {
    let mut numbers = Numbers(11);
    let machine = machine("fat-tree:32");
    for density in [10, 25, 50, 75] {
        let pairs = (0..32u32).flat_map(|a| (0..32).map(move |b| (a, b, 64)));
        let ends: Vec<_> = pairs.filter(|p| p.0 != p.1 && numbers.below(100) < density).collect();
        let set = set(&ends);
        let steps = plan(&machine, &set, &[32], StepOrder::Loaded);
        let clocks = predict(&steps, Protocol::Rendezvous, &mut |_, _, _| ());
        let bound = least_clocks_direct(&machine, &set, Protocol::Rendezvous);
        assert!(clocks * 100 <= bound * 102, "{density} %: {clocks} of {bound}");
    }
}

/// Nodes of cells with these software clocks and rates.
fn nodes(spec: &str, duplex: Duplex) -> Arc<Machine> {
    machine_with(spec, |p| {
        (p.c_send, p.c_receive, p.network_overhead) = (100, 70, 11);
        (p.access_clocks_per_word, p.link_clocks_per_word) = (3, 5);
        (p.network_clocks_per_word, p.message_extra_words) = (9, 4);
        (p.duplex, p.channel_depth) = (duplex, 4);
    })
}

#[test]
fn the_busiest_cell_bounds_the_clocks() {
    use Protocol::{Rendezvous, Standing};
    // Cell 0 sends two messages, one of them to another node, and receives one from there.
    let mixed = &[(0, 1, 10), (0, 1, 5), (0, 2, 20), (3, 0, 8)][..];
    let to_one = &[(1, 0, 100), (3, 0, 100)][..];
    let short = &[(0, 1, 1), (0, 2, 1), (1, 0, 1)][..];
    let (full, half) = (Duplex::Full, Duplex::Half);
    let (sent, received) = (35, 8);
    for (protocol, duplex, ends, direct, any) in [
        (
            Rendezvous,
            full,
            mixed,
            3 * 170 + 2 * 22 + (sent + received + 3 * 4) * 5,
            2 * 170 + (sent + received + 2 * 4) * 5,
        ),
        // The last word of each message leaves at the rate of the agent.
        (
            Standing,
            full,
            mixed,
            2 * 100 + 11 + (sent + 2 * 4 - 2) * 5 + 2 * 3,
            100 + (sent + 4 - 1) * 5 + 3,
        ),
        (
            Standing,
            half,
            mixed,
            2 * 100 + 70 + 2 * 11 + sent * 5 + received * 3,
            100 + 70 + sent * 5 + received * 3,
        ),
        (Standing, full, to_one, 2 * 70 + 11 + (200 + 2 * 4) * 3, 70 + (200 + 4) * 3),
        // Software of all messages.
        (Standing, full, short, 2 * 100 + 70 + 11, 100 + 70),
    ] {
        let (machine, set) = (nodes("cluster:2x2", duplex), set(ends));
        let found = [least_clocks_direct, least_clocks].map(|f| f(&machine, &set, protocol));
        assert_eq!(found, [direct, any], "{protocol:?} {duplex:?} {ends:?}");
    }
}

#[test]
fn messages_between_nodes_take_longer() {
    let clocks = |protocol, duplex, source, target| {
        let machine = nodes("cluster:2x2", duplex);
        let mut route = |from, to, links: &mut Vec<LinkId>| links.extend(way(&machine, from, to));
        let set = set(&[(source, target, 10)]);
        predict(&plan(&machine, &set, &[4], StepOrder::Linear), protocol, &mut route)
    };
    let (full, half) = (Duplex::Full, Duplex::Half);
    // Software, two links, and the words with header and trailer, at the rate of the slowest link.
    assert_eq!(clocks(Protocol::Rendezvous, full, 2, 3), 170 + 2 * 5 + 14 * 5);
    assert_eq!(clocks(Protocol::Rendezvous, full, 0, 2), 170 + 2 * 11 + 4 * 5 + 14 * 9);
    // The words behind the header wait in the network while the software of the receiver runs.
    let (inside, between) = (2 * 5 + 70 + 13 * 5 + 3, 4 * 5 + 70 + 2 * 11 + 13 * 9 + 3);
    assert_eq!(clocks(Protocol::Standing, full, 2, 3), 100 + 3 + inside);
    assert_eq!(clocks(Protocol::Standing, full, 0, 2), 100 + 3 + between);
    // With half duplex the processor copies the words first.
    assert_eq!(clocks(Protocol::Standing, half, 2, 3), 100 + 10 * 5 + 3 + inside);
    let machine = nodes("cluster:2x2", full);
    let [rendezvous, standing] = [Protocol::Rendezvous, Protocol::Standing];
    assert_eq!(message_clocks(&machine, rendezvous, 10), 170 + 14 * 5);
    assert_eq!(message_clocks(&machine, standing, 10), 100 + 14 * 5);
}

#[test]
fn nodes_exchange_one_message_between_leaders() {
    let messages = |spec: &str, set: &ConnectionSet| {
        let machine = nodes(spec, Duplex::Full);
        let levels = Levels::of_spec(&machine, LevelsSpec::parse("nodes/linear").unwrap()).unwrap();
        let set = Arc::new(set.clone());
        let steps = levels.plan(&machine, &set, Protocol::Standing, &mut |_, _, _| ()).unwrap();
        deliver(&steps);
        let ends = steps.messages().iter().map(|m| (m.source.0, m.target.0, m.words()));
        ends.collect::<Vec<_>>()
    };
    // Cell 1 has most words for the other node. There cell 3 has as many as cell 5.
    let set = set(&[(0, 3, 8), (1, 4, 1), (1, 5, 8), (2, 0, 7)]);
    let mut found = messages("cluster:2x3", &set);
    found.sort_unstable();
    assert_eq!(found, [(0, 1, 8), (1, 3, 17), (2, 0, 7), (3, 4, 1), (3, 5, 8)]);
    // A cell leads for one other node at most if the node has enough cells.
    let between: Vec<_> = messages("cluster:3x3", &all_to_all(9, 2))
        .into_iter()
        .filter(|&(source, target, _)| source / 3 != target / 3)
        .collect();
    let mut senders: Vec<u32> = between.iter().map(|message| message.0).collect();
    senders.sort_unstable();
    senders.dedup();
    assert_eq!((between.len(), senders.len()), (6, 6), "{between:?}");
    assert!(between.iter().all(|message| message.2 == 9 * 2), "{between:?}");
}
