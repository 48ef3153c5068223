//! Differences between successive contexts: the entries that a context switch changes.
//!
//! A switch that writes a whole context also writes entries that are already there. A *delta* has,
//! for each cell, the entries to write (*set*: new or changed), the channels whose entry is removed
//! (*cleared*) and the number of unchanged entries (*kept*). Applying the delta turns the first
//! context into the second.
//!
//! The first phase of a set is compared with an empty context. [`Delta::between`] also yields the
//! difference from the last context to the first, for a set that is executed repeatedly.
//!
//! The cost of a switch in the machine model does not depend on the delta (`t_phase` is constant).

use std::borrow::Cow;
use std::cmp::Ordering;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{CellId, ChannelEntry, ChannelId, PhaseImage, SetImage};

/// The numbers of changed and unchanged entries of a switch.
///
/// A record of counts with public fields; it has no invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaTotals {
    /// Channels with a new or changed entry.
    pub set: u64,
    /// Channels whose entry is removed.
    pub cleared: u64,
    /// Channels whose entry is unchanged.
    pub kept: u64,
    /// Cells whose table changes.
    pub changed_cells: u64,
}

/// The changes at one cell, borrowed.
///
/// A view with public fields. It is `#[non_exhaustive]`: only [`Delta::cells`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellDelta<'a> {
    /// The cell.
    pub cell: CellId,
    /// Entries to write, in channel order.
    pub set: &'a [ChannelEntry],
    /// Channels whose entry is removed, in order.
    pub cleared: &'a [ChannelId],
    /// Number of unchanged entries.
    pub kept: u32,
}

impl CellDelta<'_> {
    /// A table with these changes applied, in channel order.
    #[must_use]
    pub fn apply(&self, table: &[ChannelEntry]) -> Vec<ChannelEntry> {
        let rewritten = |channel| self.set.binary_search_by_key(&channel, |e| e.channel).is_ok();
        let gone = |channel| self.cleared.binary_search(&channel).is_ok() || rewritten(channel);
        let mut table: Vec<ChannelEntry> =
            table.iter().copied().filter(|entry| !gone(entry.channel)).collect();
        table.extend_from_slice(self.set);
        table.sort_by_key(|entry| entry.channel);
        table
    }
}

/// The changes of a switch at all cells with an entry before or after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    cells: Vec<ChangeEnds>,
    set: Vec<ChannelEntry>,
    cleared: Vec<ChannelId>,
    totals: DeltaTotals,
}

/// A cell, and where its changes end in the flat lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChangeEnds {
    cell: CellId,
    set: u32,
    cleared: u32,
    kept: u32,
}

impl Delta {
    /// The difference between two contexts of the same machine; `None` is the empty context.
    pub fn between(before: Option<&PhaseImage>, after: Option<&PhaseImage>) -> Self {
        let mut delta = Self::default();
        let count = |phase: Option<&PhaseImage>| phase.map_or(0, PhaseImage::cell_count);
        for cell in 0..count(before).max(count(after)) {
            let cell = CellId::from_index(cell);
            let (old, new) = (table(before, cell), table(after, cell));
            if !(old.is_empty() && new.is_empty()) {
                delta.add_cell(cell, &old, &new);
            }
        }
        delta
    }

    /// The cells that have an entry before or after, in id order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = CellDelta<'_>> {
        (0..self.cells.len()).map(|row| {
            let (set, cleared) = match row {
                0 => (0, 0),
                _ => (index(self.cells[row - 1].set), index(self.cells[row - 1].cleared)),
            };
            let this = self.cells[row];
            CellDelta {
                cell: this.cell,
                set: &self.set[set..index(this.set)],
                cleared: &self.cleared[cleared..index(this.cleared)],
                kept: this.kept,
            }
        })
    }

    /// The sums over all cells.
    pub fn totals(&self) -> DeltaTotals {
        self.totals
    }

    fn add_cell(&mut self, cell: CellId, old: &[ChannelEntry], new: &[ChannelEntry]) {
        let (sets, clears) = (self.set.len(), self.cleared.len());
        let (mut i, mut j, mut kept) = (0, 0, 0);
        while i < old.len() || j < new.len() {
            let order = match (old.get(i), new.get(j)) {
                (Some(a), Some(b)) => a.channel.cmp(&b.channel),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            match order {
                Ordering::Less => self.cleared.push(old[i].channel),
                Ordering::Equal if old[i] == new[j] => kept += 1,
                Ordering::Equal | Ordering::Greater => self.set.push(new[j]),
            }
            i += usize::from(order != Ordering::Greater);
            j += usize::from(order != Ordering::Less);
        }
        let (set, cleared) = (to_u32(self.set.len()), to_u32(self.cleared.len()));
        self.cells.push(ChangeEnds { cell, set, cleared, kept });
        let changed = self.set.len() > sets || self.cleared.len() > clears;
        self.totals.set += to_u64(self.set.len() - sets);
        self.totals.cleared += to_u64(self.cleared.len() - clears);
        self.totals.kept += u64::from(kept);
        self.totals.changed_cells += u64::from(changed);
    }
}

/// The table of a cell in channel order. Images that this crate generates have that order.
fn table(phase: Option<&PhaseImage>, cell: CellId) -> Cow<'_, [ChannelEntry]> {
    let Some(phase) = phase.filter(|phase| cell.index() < phase.cell_count()) else {
        return Cow::Borrowed(&[]);
    };
    let entries = phase.cell(cell).entries;
    if entries.is_sorted_by_key(|entry| entry.channel) {
        return Cow::Borrowed(entries);
    }
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| entry.channel);
    Cow::Owned(entries)
}

/// The changes of each switch of a set, one per phase: from the empty context to that of the first
/// phase, and from the context of each phase to the next.
pub fn deltas(set: &SetImage) -> Vec<Delta> {
    let before = std::iter::once(None).chain(set.phases.iter().map(Some));
    before.zip(&set.phases).map(|(before, after)| Delta::between(before, Some(after))).collect()
}
