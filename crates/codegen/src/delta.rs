//! What a context switch changes: the difference between successive contexts, cell by cell.
//!
//! A switch that writes a whole context writes what is already there. A *delta* says for each
//! cell which channels get an entry that they had not (*set*: new, or overwritten), which lose
//! theirs (*cleared*), and how many keep theirs. Setting and clearing what the delta says turns
//! the one context into the other and leaves nothing of the first behind.
//!
//! The first phase of a set is compared with an empty context. A set that is executed again and
//! again goes from its last context to its first: [`Delta::between`] gives that one too.
//!
//! What the model charges for a switch does not depend on this (`t_phase` is a constant).

use std::borrow::Cow;
use std::cmp::Ordering;

use conset_ir::{CellId, ChannelEntry, ChannelId, PhaseImage, SetImage};

/// Entries that a switch touches or leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Channels that get an entry which they had not.
    pub set: u64,
    /// Channels that lose their entry.
    pub cleared: u64,
    /// Channels that keep their entry.
    pub kept: u64,
    /// Cells of which the table changes.
    pub changed_cells: u64,
}

/// What changes at one cell, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellDelta<'a> {
    /// The cell.
    pub cell: CellId,
    /// Entries to write, in channel order.
    pub set: &'a [ChannelEntry],
    /// Channels whose entry is to be cleared, in order.
    pub cleared: &'a [ChannelId],
    /// Number of entries that stay as they are.
    pub kept: u32,
}

impl CellDelta<'_> {
    /// The table that comes out of another, in channel order.
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

/// What a switch changes. Only cells with an entry before or after take part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    cells: Vec<Row>,
    set: Vec<ChannelEntry>,
    cleared: Vec<ChannelId>,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    cell: CellId,
    /// Ends of the cell's share of the flat lists.
    set: u32,
    cleared: u32,
    kept: u32,
}

impl Delta {
    /// The difference from one context to another of the same machine; `None` is the empty one.
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
                _ => (self.cells[row - 1].set as usize, self.cells[row - 1].cleared as usize),
            };
            let this = self.cells[row];
            CellDelta {
                cell: this.cell,
                set: &self.set[set..this.set as usize],
                cleared: &self.cleared[cleared..this.cleared as usize],
                kept: this.kept,
            }
        })
    }

    /// The sums over all cells.
    pub fn totals(&self) -> Totals {
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
        let end = |n: usize| u32::try_from(n).expect("a phase's entries are limited");
        let (set, cleared) = (end(self.set.len()), end(self.cleared.len()));
        self.cells.push(Row { cell, set, cleared, kept });
        let changed = self.set.len() > sets || self.cleared.len() > clears;
        self.totals.set += (self.set.len() - sets) as u64;
        self.totals.cleared += (self.cleared.len() - clears) as u64;
        self.totals.kept += u64::from(kept);
        self.totals.changed_cells += u64::from(changed);
    }
}

/// A cell's table in channel order; images of this crate are in that order already.
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

/// What each switch of a set changes: from the empty context to the first phase's, and from each
/// phase's to the next one's. As many as the set has phases.
pub fn deltas(set: &SetImage) -> Vec<Delta> {
    let before = std::iter::once(None).chain(set.phases.iter().map(Some));
    before.zip(&set.phases).map(|(before, after)| Delta::between(before, Some(after))).collect()
}
