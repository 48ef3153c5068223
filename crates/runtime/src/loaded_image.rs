//! A loaded image, with the tables that every transport looks up.

use std::ops::Range;
use std::sync::Arc;

use conset_fabric::{FaultKind, coverage_fault};
use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Image, Lists, PhaseId};

use crate::phase::PhaseName;

/// The connections of each cell of a set: rows of ids.
#[derive(Clone, Debug)]
pub(crate) struct CellConnections {
    first: Vec<u32>,
    ids: Vec<ConnectionId>,
    /// The words of each.
    words: Vec<u32>,
}

impl CellConnections {
    fn new(cells: usize, set: &ConnectionSet, end: impl Fn(&Connection) -> CellId) -> Self {
        let mut first = vec![0u32; cells + 1];
        for connection in set.connections() {
            first[end(connection).index() + 1] += 1;
        }
        for cell in 0..cells {
            first[cell + 1] += first[cell];
        }
        let mut next = first.clone();
        let mut ids = vec![ConnectionId(0); set.len()];
        for (id, connection) in set.iter() {
            let cell = end(connection).index();
            ids[index(next[cell])] = id;
            next[cell] += 1;
        }
        let words = ids.iter().map(|&id| set.get(id).words).collect();
        Self { first, ids, words }
    }

    pub(crate) fn of(&self, cell: CellId) -> &[ConnectionId] {
        &self.ids[self.range(cell)]
    }

    /// The words of each connection of a cell.
    pub(crate) fn words_of(&self, cell: CellId) -> &[u32] {
        &self.words[self.range(cell)]
    }

    fn range(&self, cell: CellId) -> Range<usize> {
        index(self.first[cell.index()])..index(self.first[cell.index() + 1])
    }
}

/// A set's connections by their ends, and whether its image may be executed.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSet {
    pub(crate) outgoing: CellConnections,
    pub(crate) incoming: CellConnections,
    /// Why its image must not be executed as a whole.
    pub(crate) broken: Option<FaultKind>,
    /// Its last phase, if it has phases.
    pub(crate) last_phase: Option<PhaseId>,
    /// What is looked up of its step plan, if it has one.
    pub(crate) steps: Option<LoadedSteps>,
}

/// What is looked up of a step plan.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSteps {
    /// The messages that each cell sends or receives, in the order of the plan.
    pub(crate) lists: Lists<u32>,
}

/// An image and its tables.
#[derive(Clone, Debug)]
pub(crate) struct LoadedImage {
    pub(crate) image: Arc<Image>,
    pub(crate) sets: Vec<LoadedSet>,
    /// The live cells, in the order of their ids: a cell's *place* is its number among them.
    pub(crate) live: Arc<[CellId]>,
    /// Phases of the sets before each set, and of all.
    pub(crate) first_phase: Vec<u32>,
    /// What ranks compare their images by; made when first needed.
    #[cfg(feature = "mpi")]
    pub(crate) digest: std::sync::OnceLock<u64>,
}

impl LoadedImage {
    pub(crate) fn new(image: Arc<Image>) -> Self {
        let cells = image.machine().cell_count();
        let sets = image.sets().iter().map(|s| LoadedSet {
            outgoing: CellConnections::new(cells, &s.set, |c| c.source),
            incoming: CellConnections::new(cells, &s.set, |c| c.target),
            broken: coverage_fault(s),
            last_phase: s.phases.len().checked_sub(1).map(PhaseId::from_index),
            steps: s.steps.as_ref().map(|steps| LoadedSteps { lists: steps.lists() }),
        });
        let mut first_phase = vec![0];
        for set in image.sets() {
            first_phase.push(first_phase[first_phase.len() - 1] + to_u32(set.phases.len()));
        }
        Self {
            sets: sets.collect(),
            live: image.machine().endpoints().collect(),
            first_phase,
            #[cfg(feature = "mpi")]
            digest: std::sync::OnceLock::new(),
            image,
        }
    }

    /// The connections of a set.
    pub(crate) fn set(&self, set: usize) -> &ConnectionSet {
        &self.image.sets()[set].set
    }

    /// The name of a phase.
    pub(crate) fn phase_name(&self, set: usize, phase: PhaseId) -> String {
        PhaseName { set: self.set(set).name(), phase }.to_string()
    }
}
