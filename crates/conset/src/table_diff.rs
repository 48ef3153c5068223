//! Comparing the forwarding tables of two images of a set, entry by entry.
//!
//! Tables are compared in channel order. The gates of the first image are translated to the ids of
//! the second. A link id means the same link only on machines of the same topology; on others,
//! entries over links are never the same.

use std::cmp::Ordering;

use conset_ir::convert::{to_f64, to_u64};
use conset_ir::{
    CellId, ChannelEntry, ChannelId, ConnectionId, Feed, PhaseId, PhaseRoutes, RouteRef, SetImage,
    Sink, Timetable,
};
use conset_verify::Verified;
use serde::Serialize;

use crate::pairing::ConnectionPairs;

/// A list of which only the first items are kept, and its full length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TruncatedList<T> {
    /// The number of items.
    pub total: usize,
    /// The first items.
    pub first: Vec<T>,
}

impl<T> TruncatedList<T> {
    pub(crate) fn new() -> Self {
        Self { total: 0, first: Vec::new() }
    }

    /// Counts an item, and keeps it if fewer than `limit` are kept.
    pub(crate) fn add(&mut self, limit: usize, item: impl FnOnce() -> T) {
        self.total += 1;
        if self.first.len() < limit {
            self.first.push(item());
        }
    }
}

/// The differences between the forwarding tables of two compilations of a set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableDiff {
    /// Unchanged entries.
    pub unchanged: u64,
    /// Channels with another entry.
    pub changed: u64,
    /// Entries only in the first.
    pub removed: u64,
    /// Entries only in the second.
    pub added: u64,
    /// Unchanged entries divided by all of these; 1 if there are none.
    pub stability: f64,
    /// The tables that differ, by phase and cell.
    pub tables: TruncatedList<CellTable>,
    /// The entries that differ, by phase, cell and channel.
    pub entries: TruncatedList<EntryChange>,
}

impl TableDiff {
    /// Whether all entries are unchanged.
    pub fn is_identical(&self) -> bool {
        self.changed + self.removed + self.added == 0
    }
}

/// A table of one cell in one phase that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CellTable {
    /// The phase.
    pub phase: PhaseId,
    /// The cell.
    pub cell: CellId,
    /// Unchanged entries.
    pub unchanged: u64,
    /// Channels with another entry.
    pub changed: u64,
    /// Entries only in the first.
    pub removed: u64,
    /// Entries only in the second.
    pub added: u64,
}

/// An entry that differs. The first one has the connection ids of the first compilation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryChange {
    /// The phase.
    pub phase: PhaseId,
    /// The cell.
    pub cell: CellId,
    /// The channel.
    pub channel: ChannelId,
    /// The entry before, such as `gate x3 -> l7/ch2`.
    pub a: Option<String>,
    /// The entry after.
    pub b: Option<String>,
}

/// Compares the tables of two images of a set. Linear but for sorting tables.
pub(crate) fn compare(
    a: &SetImage,
    b: &SetImage,
    pairs: &ConnectionPairs,
    same_links: bool,
    limit: usize,
) -> TableDiff {
    let mut comparison = TableComparison::new(pairs, same_links, limit);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for p in 0..a.phases.len().max(b.phases.len()) {
        let cells = |set: &SetImage| set.phases.get(p).map_or(0, |phase| phase.cell_count());
        for c in 0..cells(a).max(cells(b)) {
            let (phase, cell) = (PhaseId::from_index(p), CellId::from_index(c));
            sorted(a, phase, cell, &mut old);
            sorted(b, phase, cell, &mut new);
            comparison.cell(phase, cell, &old, &new);
        }
    }
    comparison.finish()
}

/// Compares the tables of an earlier compilation of a set with those of a new one and its image,
/// for the same machine and without details. Tables of the earlier compilation are generated only
/// for phases whose routes differ.
pub(crate) fn compare_with_image(
    a: &Verified<Timetable>,
    b: &Timetable,
    image: &SetImage,
) -> TableDiff {
    let pairs = &ConnectionPairs::of(a.routing().set(), b.routing().set());
    let mut comparison = TableComparison::new(pairs, true, 0);
    let (old, new) = (a.routing().phases(), b.routing().phases());
    let mut table = Vec::new();
    for p in 0..old.len().max(new.len()) {
        let phase = PhaseId::from_index(p);
        if let (Some(a), Some(b)) = (old.get(p), new.get(p))
            && are_same(a, b, pairs)
        {
            comparison.found.unchanged += a.iter().map(|r| to_u64(r.cells.len())).sum::<u64>();
            continue;
        }
        let tables = (p < old.len()).then(|| conset_codegen::image::entries(a, phase));
        for cell in a.routing().machine().cells() {
            sorted(image, phase, cell, &mut table);
            let before = tables.as_ref().map_or(&[][..], |tables| tables.cell(cell));
            comparison.cell(phase, cell, before, &table);
        }
    }
    comparison.finish()
}

/// Whether two phases have the same routes in the same order.
fn are_same(a: &PhaseRoutes, b: &PhaseRoutes, pairs: &ConnectionPairs) -> bool {
    let same = |(a, b): (RouteRef<'_>, RouteRef<'_>)| {
        pairs.in_b(a.connection) == Some(b.connection)
            && (a.cells, a.links(), a.channels) == (b.cells, b.links(), b.channels)
    };
    a.len() == b.len() && a.iter().zip(b.iter()).all(same)
}

/// A comparison, cell by cell.
struct TableComparison<'a> {
    pairs: &'a ConnectionPairs,
    same_links: bool,
    limit: usize,
    found: TableDiff,
}

impl<'a> TableComparison<'a> {
    fn new(pairs: &'a ConnectionPairs, same_links: bool, limit: usize) -> Self {
        let found = TableDiff {
            unchanged: 0,
            changed: 0,
            removed: 0,
            added: 0,
            stability: 1.0,
            tables: TruncatedList::new(),
            entries: TruncatedList::new(),
        };
        Self { pairs, same_links, limit, found }
    }

    fn is_same(&self, a: &ChannelEntry, b: &ChannelEntry) -> bool {
        let same_gate = |x: ConnectionId, y: ConnectionId| self.pairs.in_b(x) == Some(y);
        let feed = match (a.feed, b.feed) {
            (Feed::Gate(x), Feed::Gate(y)) => same_gate(x, y),
            (Feed::Link(x), Feed::Link(y)) => self.same_links && x == y,
            _ => false,
        };
        let sink = match (a.sink, b.sink) {
            (Sink::Gate(x), Sink::Gate(y)) => same_gate(x, y),
            (Sink::Forward { .. }, Sink::Forward { .. }) => self.same_links && a.sink == b.sink,
            _ => false,
        };
        feed && sink
    }

    /// Compares the tables of a cell, both in channel order.
    fn cell(&mut self, phase: PhaseId, cell: CellId, old: &[ChannelEntry], new: &[ChannelEntry]) {
        let mut table = CellTable { phase, cell, unchanged: 0, changed: 0, removed: 0, added: 0 };
        merge(old, new, |a, b| {
            let count = match (a, b) {
                (Some(a), Some(b)) if self.is_same(a, b) => {
                    table.unchanged += 1;
                    return;
                }
                (Some(_), Some(_)) => &mut table.changed,
                (Some(_), None) => &mut table.removed,
                (None, _) => &mut table.added,
            };
            *count += 1;
            self.found.entries.add(self.limit, || EntryChange {
                phase,
                cell,
                channel: a.or(b).expect("one of them is there").channel,
                a: a.map(text),
                b: b.map(text),
            });
        });
        self.found.unchanged += table.unchanged;
        self.found.changed += table.changed;
        self.found.removed += table.removed;
        self.found.added += table.added;
        if table.changed + table.removed + table.added > 0 {
            self.found.tables.add(self.limit, || table);
        }
    }

    fn finish(mut self) -> TableDiff {
        let found = &mut self.found;
        let all = found.unchanged + found.changed + found.removed + found.added;
        if all > 0 {
            found.stability = to_f64(found.unchanged) / to_f64(all);
        }
        self.found
    }
}

/// The table of a cell in a phase in channel order; empty where there is none.
fn sorted(set: &SetImage, phase: PhaseId, cell: CellId, into: &mut Vec<ChannelEntry>) {
    into.clear();
    if let Some(phase) = set.phases.get(phase.index()).filter(|p| cell.index() < p.cell_count()) {
        into.extend_from_slice(phase.cell(cell).entries);
        into.sort_by_key(|entry| entry.channel);
    }
}

fn merge(
    a: &[ChannelEntry],
    b: &[ChannelEntry],
    mut visit: impl FnMut(Option<&ChannelEntry>, Option<&ChannelEntry>),
) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.channel.cmp(&y.channel),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        visit(a.get(i).filter(|_| order.is_le()), b.get(j).filter(|_| order.is_ge()));
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
}

fn text(entry: &ChannelEntry) -> String {
    let from = match entry.feed {
        Feed::Gate(x) => format!("gate {x}"),
        Feed::Link(link) => link.to_string(),
    };
    let to = match entry.sink {
        Sink::Gate(x) => format!("gate {x}"),
        Sink::Forward { link, channel } => format!("{link}/{channel}"),
    };
    format!("{from} -> {to}")
}
