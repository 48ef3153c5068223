//! Comparing how two schedules belong to their inputs: the cell of each part, and the file's own
//! numbers of nodes.
//!
//! Parts match by number, and nodes by theirs, which count from 0. Only nodes that both schedules
//! exchange are compared, because a schedule has the numbers of these only. Images and the schedules
//! of connection sets have neither parts nor numbers; with one of them, there is nothing to compare.

use conset_ir::{CellId, PartMap, ScheduleOf, ScheduledSet};
use serde::Serialize;

use crate::schedule_diff::Both;
use crate::table_diff::TruncatedList;

/// The differences between the parts and node numbers of two schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartDiff {
    /// Whether there are none, or only one of the schedules has parts.
    pub identical: bool,
    /// The number of parts, if there are any.
    pub parts: Both<Option<usize>>,
    /// Parts on another cell, and parts that only one of the schedules has.
    pub moved: TruncatedList<PartChange>,
    /// Nodes with another number in the file.
    pub renumbered: TruncatedList<NumberChange>,
}

/// A part with another cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartChange {
    /// The part.
    pub part: usize,
    /// Its cell before, if there was this part.
    pub a: Option<CellId>,
    /// Its cell after, if there is this part.
    pub b: Option<CellId>,
}

/// A node with another number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NumberChange {
    /// The node, from 0.
    pub node: u32,
    /// Its number before.
    pub a: u64,
    /// Its number after.
    pub b: u64,
}

/// Compares the parts of two schedules; `None` if neither has any.
pub(crate) fn compare<S: ScheduledSet>(
    a: &ScheduleOf<S>,
    b: &ScheduleOf<S>,
    limit: usize,
) -> Option<PartDiff> {
    let maps = (a.part_map(), b.part_map());
    if maps == (None, None) {
        return None;
    }
    let count = |map: Option<&PartMap>| map.map(|map| map.cells().len());
    let mut diff = PartDiff {
        identical: true,
        parts: Both { a: count(maps.0), b: count(maps.1) },
        moved: TruncatedList::new(),
        renumbered: TruncatedList::new(),
    };
    let (Some(map_a), Some(map_b)) = maps else { return Some(diff) };
    let (cells_a, cells_b) = (map_a.cells(), map_b.cells());
    for part in 0..cells_a.len().max(cells_b.len()) {
        let (a, b) = (cells_a.get(part).copied(), cells_b.get(part).copied());
        if a != b {
            diff.moved.add(limit, || PartChange { part, a, b });
        }
    }
    let exchanged = exchanged_nodes(b);
    for node in exchanged_nodes(a) {
        let (a, b) = (map_a.number(node), map_b.number(node));
        if a != b && exchanged.binary_search(&node).is_ok() {
            diff.renumbered.add(limit, || NumberChange { node, a, b });
        }
    }
    diff.identical = diff.moved.total == 0 && diff.renumbered.total == 0;
    Some(diff)
}

/// The nodes in the lists of all sets, ascending.
fn exchanged_nodes<S: ScheduledSet>(schedule: &ScheduleOf<S>) -> Vec<u32> {
    let mut nodes = Vec::new();
    for set in schedule.sets() {
        let set = set.set();
        let lists = set.nodes().into_iter();
        nodes.extend(lists.flat_map(|lists| set.iter().flat_map(|(id, _)| lists.of(id))));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
