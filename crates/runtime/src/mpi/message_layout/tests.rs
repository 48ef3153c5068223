//! Places of messages in buffers.

use std::sync::Arc;

use super::*;
use conset_ir::Machine;

/// Connections of 3 to 730 words, or so many times as many, between all pairs of 5 cells, the same words
/// each way.
fn all_pairs(times: u32) -> SetImage {
    let cells = (0..5).map(CellId);
    let pairs = cells.clone().flat_map(|a| cells.clone().map(move |b| (a, b)));
    let words = |a: CellId, b: CellId| times * (3 + 727 * (a.0 + b.0) / 7);
    let connections =
        pairs.filter(|(a, b)| a != b).map(|(a, b)| Connection::new(a, b, words(a, b)));
    let set = ConnectionSet::new("pairs", connections.collect()).unwrap();
    SetImage::of_phases(Arc::new(set), Vec::new())
}

#[test]
fn messages_begin_at_lines_of_the_cache_and_do_not_overlap() {
    let machine = Machine::from_spec("ring:5").unwrap();
    let image = all_pairs(1);
    let out = |cell: CellId| -> Vec<ConnectionId> {
        image.set.iter().filter(|(_, c)| c.source == cell).map(|(id, _)| id).collect()
    };
    for (ranks, size) in [(5, 1), (5, 2), (5, 4), (5, 8), (2, 4)] {
        let rank_map = RankMap::new(machine.endpoints().collect(), ranks);
        let plan = ExchangePlan::new(&image, By::Messages, size);
        let tags = &mut TagAllocator::new((0, 1000), 0, 1);
        let bundles = tagged_bundles(&plan, &rank_map, (0, tags), Direction::Send).unwrap();
        let (mut local, mut count) = (LocalOffsets::new(), 0);
        for (&cell, bundles) in rank_map.cells_of(0).iter().zip(&bundles) {
            let (messages, runs, _) = layout_sends(0, &plan, bundles, &out(cell), &mut local);
            let mut end = 0;
            for message in &messages.messages {
                let (start, bytes) = (message.words.start * size, message.words.len() * size);
                assert!(start.is_multiple_of(alignment(bytes)));
                assert!(message.words.start >= end && message.words.end <= messages.room);
                end = message.words.end;
                count += 1;
            }
            // The words of a connection follow the head of its message.
            for run in runs.iter().filter(|run| image.set.get(run.connection).target.0 == 4) {
                let words = run.at - plan.head..run.at + run.words.len();
                assert!(messages.messages.iter().any(|message| message.words == words));
            }
        }
        // With 2 ranks, the cells of this one are 0 and 1.
        assert_eq!(count, if ranks == 5 { 4 } else { 6 });
    }
}

#[test]
fn both_ends_have_the_same_messages_and_bodies() {
    let machine = Machine::from_spec("ring:5").unwrap();
    let image = all_pairs(10);
    let of = |cell: CellId, end: fn(&Connection) -> CellId| -> Vec<ConnectionId> {
        image.set.iter().filter(|(_, c)| end(c) == cell).map(|(id, _)| id).collect()
    };
    for (ranks, size) in [(5, 1), (3, 4), (2, 8)] {
        let rank_map = RankMap::new(machine.endpoints().collect(), ranks);
        let plan = ExchangePlan::new(&image, By::Messages, size);
        // By sender, receiver and tag: the words, and the connection of a body.
        let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
        for own in 0..ranks {
            let tags = &mut TagAllocator::new((0, 1000), 0, 1);
            let leaving = tagged_bundles(&plan, &rank_map, (own, tags), Direction::Send).unwrap();
            let arriving =
                tagged_bundles(&plan, &rank_map, (own, tags), Direction::Receive).unwrap();
            let mut local = LocalOffsets::new();
            let cells = rank_map.cells_of(own);
            let leaving: Vec<_> = (cells.iter().zip(&leaving))
                .map(|(&cell, bundles)| {
                    let out = of(cell, |c| c.source);
                    (layout_sends(own, &plan, bundles, &out, &mut local).0, out)
                })
                .collect();
            let arriving = cells.iter().zip(&arriving).map(|(&cell, bundles)| {
                let inn = of(cell, |c| c.target);
                (layout_receives(own, &plan, bundles, &inn, &local).0, inn)
            });
            for (all, ends, is_send) in
                [(&mut sent, leaving, true), (&mut received, arriving.collect(), false)]
            {
                for (messages, connections) in ends {
                    for message in &messages.messages {
                        let mut bodies = messages.bodies.iter();
                        let body = bodies.find(|body| body.address.tag == message.tag);
                        let body = body.filter(|body| body.address.rank == message.rank);
                        let connection = body.map(|body| connections[body.slot]);
                        let pair = if is_send { (own, message.rank) } else { (message.rank, own) };
                        let before =
                            all.insert((pair, message.tag), (message.words.len(), connection));
                        assert_eq!(before, None, "a tag of its own");
                    }
                }
            }
        }
        assert_eq!(sent, received);
        let long = |id: ConnectionId| index(image.set.get(id).words) * size > COPIED_MOST;
        let bodies: Vec<_> =
            sent.values().filter_map(|(words, body)| Some((*words, (*body)?))).collect();
        let apart = image.set.iter().filter(|(id, c)| {
            long(*id) && rank_map.find(c.source).unwrap().0 != rank_map.find(c.target).unwrap().0
        });
        assert_eq!(bodies.len(), apart.count());
        assert!(bodies.iter().all(|&(words, id)| words == index(image.set.get(id).words)));
        assert!(bodies.is_empty() == (size == 1) && bodies.len() <= sent.len() / 2);
    }
}
