//! The greedy order GS of the CM-5 paper (section 5): a matching of the cells that are left, step by
//! step.
//!
//! ```text
//! until nothing is left:
//!     for each cell a that is free, in order:
//!         pair it with the least free cell b to which it has something to send
//!         both send what they have for each other, and are busy until the next step
//! ```
//!
//! "Needs to communicate" is read as "has something to send": with "to send or receive" the order
//! has more steps and is not the fastest at a density of 50 %, as the paper's is. Of a complete
//! exchange it makes the pairwise order.

use conset_ir::Lists;
use conset_ir::convert::index;

use super::levels::Level;

/// The messages as pairs of step and number.
pub(super) fn arrange(level: &Level) -> Vec<(u32, u32)> {
    let pairs = level.messages.iter().zip(0..).map(|(message, row)| (message.source, row));
    let by_source: Lists<u32> = Lists::new(index(level.cells), pairs);
    // Per cell, its messages that are left, by target.
    let mut left: Vec<Vec<u32>> =
        (0..level.cells).map(|cell| by_source.of(cell).to_vec()).collect();
    let mut sent = vec![false; level.messages.len()];
    let mut arranged = Vec::with_capacity(level.messages.len());
    // The step in which a cell is busy.
    let mut busy = vec![u32::MAX; index(level.cells)];
    let mut step = 0;
    // Cells with something left to send.
    let mut senders: Vec<u32> = (0..level.cells).filter(|&a| !left[index(a)].is_empty()).collect();
    while !senders.is_empty() {
        for &a in &senders {
            if busy[index(a)] == step {
                continue;
            }
            let free = |&row: &u32| {
                !sent[index(row)] && busy[index(level.messages[index(row)].target)] != step
            };
            let Some(row) = left[index(a)].iter().copied().find(free) else { continue };
            let b = level.messages[index(row)].target;
            let back = level.find(b, a).filter(|&back| !sent[index(back)]);
            let mut pair = [Some(row), back];
            if b < a {
                pair.reverse();
            }
            for row in pair.into_iter().flatten() {
                sent[index(row)] = true;
                arranged.push((step, row));
            }
            busy[index(a)] = step;
            busy[index(b)] = step;
        }
        for &a in &senders {
            left[index(a)].retain(|&row| !sent[index(row)]);
        }
        senders.retain(|&a| !left[index(a)].is_empty());
        step += 1;
    }
    debug_assert_eq!(arranged.len(), level.messages.len());
    arranged
}
