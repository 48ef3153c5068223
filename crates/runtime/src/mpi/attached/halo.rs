//! A halo: which entries of a rank's vectors are exchanged with which ranks, and the messages for it.

use conset_ir::convert::{index, to_i64};

use super::HaloNumber;
use super::copies::Copies;
use super::field::Positions;
use super::rendezvous::SharedEntry;
use super::wire::{Shape, Wire};
use crate::error::MpiError;
use crate::mpi::comm::Comm;

/// The entries that are exchanged with one rank, in the order in which they travel: both ranks have
/// the same order.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) rank: usize,
    pub(super) positions: Positions,
}

/// What kind of ids the halo was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Copies of one value: each rank exchanges them with each other.
    Copies,
    /// Owners and their ghosts.
    Owned,
}

/// Which way entries travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From owners to ghosts.
    Forward,
    /// From ghosts to owners.
    Backward,
    /// From each copy to each other.
    Copies,
}

/// The messages for entries of one size.
pub(super) struct Slot {
    way: Way,
    /// Bytes of an entry of all fields together.
    entry: usize,
    pub(super) wire: Wire,
    /// The exchange under way: a number that its token has.
    pub(super) token: Option<u64>,
}

/// Entries of a rank's vectors that other ranks have too ([`super::Attached::shared_halo`] and its
/// siblings make it). It belongs to one rank; all ranks make the same calls in the same order.
///
/// It can be dropped at any time at which none of its exchanges is under way, without the other
/// ranks.
pub struct Halo {
    pub(super) numbered: HaloNumber,
    pub(super) kind: Kind,
    pub(super) entries: usize,
    /// From this rank to the ghosts of its entries; none for copies.
    pub(super) sends: Vec<Link>,
    /// The ghosts of this rank, or its copies.
    pub(super) receives: Vec<Link>,
    /// For each of `receives`, where it is received in place.
    pub(super) runs: Vec<i64>,
    pub(super) copies: Copies,
    pub(super) slots: Vec<Slot>,
    pub(super) tokens: u64,
    /// An exchange failed while messages were under way.
    pub(super) failed: bool,
}

impl Halo {
    pub(super) fn new(
        numbered: HaloNumber,
        kind: Kind,
        entries: usize,
        (sends, receives): (Vec<Link>, Vec<Link>),
    ) -> Self {
        let runs = receives.iter();
        let runs = runs.map(|link| link.positions.run_start().map_or(-1, to_i64)).collect();
        let copies = match kind {
            Kind::Copies => Copies::new(numbered.comm().rank(), &receives),
            Kind::Owned => Copies::default(),
        };
        Self {
            numbered,
            kind,
            entries,
            sends,
            receives,
            runs,
            copies,
            slots: Vec::new(),
            tokens: 0,
            failed: false,
        }
    }

    /// Entries of the vectors that are exchanged, ghosts and copies included.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The ranks from which entries are received, ascending.
    pub fn sources(&self) -> impl Iterator<Item = usize> + '_ {
        self.receives.iter().map(|link| link.rank)
    }

    /// The ranks to which entries are sent, ascending.
    pub fn targets(&self) -> impl Iterator<Item = usize> + '_ {
        self.links(Way::Forward).0.iter().map(|link| link.rank)
    }

    /// Entries that one exchange receives.
    pub fn received_entries(&self) -> usize {
        self.receives.iter().map(|link| link.positions.len()).sum()
    }

    /// Entries that one exchange sends.
    pub fn sent_entries(&self) -> usize {
        self.links(Way::Forward).0.iter().map(|link| link.positions.len()).sum()
    }

    /// On how many ranks each entry is, of a halo of shared ids; of others, 2 for ghosts and 1 for
    /// owned entries.
    pub fn multiplicity(&self) -> Vec<u32> {
        let mut copies = vec![1; self.entries];
        for link in &self.receives {
            link.positions.iter().for_each(|position| copies[index(position)] += 1);
        }
        copies
    }

    /// Which entries count for this rank in sums over all entries: those that are no ghosts; of
    /// copies those whose lowest rank this is. Every id counts on one rank.
    pub fn owned(&self) -> Vec<bool> {
        let mut owned = vec![true; self.entries];
        let rank = self.comm().rank();
        let elsewhere = |link: &&Link| self.kind == Kind::Owned || link.rank < rank;
        for link in self.receives.iter().filter(elsewhere) {
            link.positions.iter().for_each(|position| owned[index(position)] = false);
        }
        owned
    }

    /// What is sent and what is received.
    pub(super) fn links(&self, way: Way) -> (&[Link], &[Link]) {
        match (self.kind, way) {
            (Kind::Copies, _) | (_, Way::Copies) => (&self.receives, &self.receives),
            (Kind::Owned, Way::Forward) => (&self.sends, &self.receives),
            (Kind::Owned, Way::Backward) => (&self.receives, &self.sends),
        }
    }

    /// Messages for entries of a size that are not under way; they are made if need be.
    pub(super) fn idle_slot(&mut self, way: Way, entry: usize) -> Result<usize, MpiError> {
        let fits = |slot: &Slot| slot.token.is_none() && (slot.way, slot.entry) == (way, entry);
        if let Some(found) = self.slots.iter().position(fits) {
            return Ok(found);
        }
        let shapes = |links: &[Link]| -> Vec<Shape> {
            let shape = |link: &Link| Shape {
                rank: link.rank,
                bytes: link.positions.len().saturating_mul(entry),
            };
            links.iter().map(shape).collect()
        };
        let (sends, receives) = self.links(way);
        let wire = Wire::new(self.comm(), self.numbered.tag(), shapes(receives), shapes(sends))?;
        self.slots.push(Slot { way, entry, wire, token: None });
        Ok(self.slots.len() - 1)
    }

    pub(super) fn comm(&self) -> &Comm {
        self.numbered.comm()
    }

    /// The number of the halo: 0 for the first one on the communicator.
    pub fn number(&self) -> u64 {
        self.numbered.number()
    }
}

impl Drop for Halo {
    fn drop(&mut self) {
        // Messages that are still under way must not be taken for those of another halo.
        if self.failed || self.slots.iter().any(|slot| slot.token.is_some()) {
            self.numbered.keep();
        }
    }
}

impl std::fmt::Debug for Halo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Halo")
            .field("number", &self.number())
            .field("kind", &self.kind)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

/// The links of entries that are sorted by peer.
pub(super) fn links<'a>(entries: impl Iterator<Item = &'a SharedEntry>) -> Vec<Link> {
    let mut links: Vec<(u32, Vec<u32>)> = Vec::new();
    for entry in entries {
        match links.last_mut().filter(|last| last.0 == entry.peer) {
            Some((_, positions)) => positions.push(entry.position),
            None => links.push((entry.peer, vec![entry.position])),
        }
    }
    let link = |(peer, positions)| Link { rank: index(peer), positions: Positions::new(positions) };
    links.into_iter().map(link).collect()
}
