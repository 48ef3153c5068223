//! Long connections cut into parts.
//!
//! A round lasts as long as its longest connection, and a connection alone holds its links for all
//! of its words. Where words are uneven, or where a link must carry two connections that other
//! links could share, parts of a connection do better: each takes its own round, its own route and,
//! if need be, its own phase. A part is planned as if it were a connection, with the ends of its
//! connection and some of its words; what comes out is a plan of the set in which routes carry
//! parts.
//!
//! * No part is longer than a given share of the longest connection. All parts of a connection but
//!   the last have that length, so that rounds can be full; a rest that is not worth a route of its
//!   own is shared out among the parts.
//! * A connection that asks for a bandwidth or a latency, or has a place in the set's order, stays
//!   whole: what it was promised is promised for all of its words together.
//! * Words are dealt out in the order of phases, and in a phase of rounds.
//!
//! Whether a cut gains anything is seen by pricing the plan: parts open more streams and take more
//! channels.

use conset_ir::{Connection, ConnectionId, ConnectionSet};

/// A set in parts.
pub(super) struct Cut {
    /// A connection for each part, those of one connection one behind the other.
    pub(super) parts: ConnectionSet,
    /// The connection of each part, ascending.
    pub(super) of: Vec<u32>,
}

/// A last part below this share of the others is shared out among them.
const REST: u32 = 8;

/// Cuts what is longer than the longest connection divided by `pieces`; `None` where everything
/// that is has to stay whole, or where there would be more than `most` parts.
pub(super) fn cut(set: &ConnectionSet, pieces: u32, most: usize) -> Option<Cut> {
    let longest = set.connections().iter().map(|c| c.words).max()?;
    let length = longest.div_ceil(pieces.max(1)).max(1);
    let whole = whole(set);
    let (mut rows, mut of, mut first) = (Vec::new(), Vec::new(), Vec::with_capacity(set.len()));
    for (x, c) in set.iter() {
        first.push(ConnectionId(rows.len() as u32));
        let words = lengths(c.words, if whole[x.index()] { c.words } else { length });
        for words in words {
            rows.push(Connection { words, name: None, ..c.clone() });
            of.push(x.0);
        }
        if rows.len() > most {
            return None;
        }
    }
    if rows.len() == set.len() {
        return None;
    }
    let order = set.order().iter().map(|&(a, b)| (first[a.index()], first[b.index()]));
    let parts = ConnectionSet::new(set.name(), rows).ok()?.with_order(order.collect()).ok()?;
    Some(Cut { parts, of })
}

/// The words of each part of a connection.
fn lengths(words: u32, length: u32) -> impl Iterator<Item = u32> {
    let rest = words % length;
    let full = words / length;
    if full == 0 || u64::from(rest) * u64::from(REST) >= u64::from(length) {
        let last = Some(rest).filter(|&rest| rest > 0);
        return (0..full).map(move |_| length).chain(last).collect::<Vec<_>>().into_iter();
    }
    let share = |part| length + rest / full + u32::from(part < rest % full);
    (0..full).map(share).collect::<Vec<_>>().into_iter()
}

/// Which connections stay whole.
fn whole(set: &ConnectionSet) -> Vec<bool> {
    let asks = |c: &Connection| c.min_bandwidth.is_some() || c.max_latency.is_some();
    let mut whole: Vec<bool> = set.connections().iter().map(asks).collect();
    for &(before, after) in set.order() {
        whole[before.index()] = true;
        whole[after.index()] = true;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::CellId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_all_of_the_words(
            words in prop::collection::vec((1u32..5000, any::<bool>()), 1..40),
            order in prop::collection::vec((0usize..40, 0usize..40), 0..3),
            pieces in 2u32..9,
        ) {
            let connect = |&(words, asks): &(u32, bool)| Connection {
                min_bandwidth: asks.then_some(1),
                ..Connection::new(CellId(0), CellId(1), words)
            };
            let id = |x: usize| ConnectionId((x % words.len()) as u32);
            let order = order.iter().map(|&(a, b)| (id(a), id(b))).filter(|(a, b)| a < b);
            let set = ConnectionSet::new("s", words.iter().map(connect).collect()).unwrap();
            let set = set.with_order(order.collect()).unwrap();
            let Some(cut) = cut(&set, pieces, 1 << 10) else { return Ok(()) };
            let mut sums = vec![0; set.len()];
            let mut counts = vec![0u32; set.len()];
            for (part, &x) in cut.parts.connections().iter().zip(&cut.of) {
                sums[x as usize] += part.words;
                counts[x as usize] += 1;
            }
            for (id, c) in set.iter() {
                prop_assert_eq!(sums[id.index()], c.words);
                prop_assert!(counts[id.index()] <= pieces);
                let ordered = set.order().iter().any(|&(a, b)| a == id || b == id);
                if ordered || c.min_bandwidth.is_some() {
                    prop_assert_eq!(counts[id.index()], 1);
                }
            }
            prop_assert_eq!(cut.parts.order().len(), set.order().len());
            prop_assert!(super::cut(&set, pieces, set.len()).is_none());
        }
    }
}
