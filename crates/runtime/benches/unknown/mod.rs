//! The pattern of the benches of exchanges with unknown partners, and the image of what was recorded of
//! it.

use conset_runtime::ir::{CellId, Image};
use conset_runtime::recorded_set;

use crate::planned::planned;

/// The targets of a rank or cell: 3 others, or 1 of 2.
pub(crate) fn targets(rank: usize, ranks: usize) -> Vec<usize> {
    let mut targets: Vec<usize> =
        [1, 2, 4].iter().filter(|&&step| step < ranks).map(|step| (rank + step) % ranks).collect();
    if ranks == 4 {
        targets.push((rank + 3) % ranks);
    }
    targets.sort_unstable();
    targets
}

/// The image of the recorded pattern with so many words a message.
pub(crate) fn compiled(ranks: usize, words: usize) -> Image {
    // As `Cell::take_record` gives it.
    let sent = |rank| targets(rank, ranks).into_iter().map(CellId::from_index);
    let records: Vec<Vec<_>> =
        (0..ranks).map(|rank| sent(rank).map(|cell| (cell, words as u64)).collect()).collect();
    planned(recorded_set("recorded", &records).expect("a set"), ranks)
}
