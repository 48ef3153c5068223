//! Places of messages in buffers.

use std::sync::Arc;

use super::*;
use conset_ir::Machine;

/// Connections of 3 to 730 words between all pairs of 5 cells, the same words each way.
fn all_pairs() -> SetImage {
    let cells = (0..5).map(CellId);
    let pairs = cells.clone().flat_map(|a| cells.clone().map(move |b| (a, b)));
    let words = |a: CellId, b: CellId| 3 + 727 * (a.0 + b.0) / 7;
    let connections =
        pairs.filter(|(a, b)| a != b).map(|(a, b)| Connection::new(a, b, words(a, b)));
    let set = ConnectionSet::new("pairs", connections.collect()).unwrap();
    SetImage::of_phases(Arc::new(set), Vec::new())
}

#[test]
fn messages_begin_at_lines_of_the_cache_and_do_not_overlap() {
    let machine = Machine::from_spec("ring:5").unwrap();
    let image = all_pairs();
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
