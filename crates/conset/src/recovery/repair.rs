//! What is done after a fault: dead parts are removed, and what is left is compiled and loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use conset_fabric::{FaultKind, FaultyPart, Interruption};
use conset_ir::{CellId, ConnectionId, ConnectionSet, Machine, Program};

use super::carrier::LinkEnds;
use super::driver::Driver;
use super::{NamedConnection, Repair};
use crate::CompileError;

/// How many streams arrived wrongly.
#[derive(Default)]
pub(super) struct Suspicions {
    /// By number of the set in the program, and connection.
    connections: BTreeMap<(usize, ConnectionId), u32>,
    links: BTreeMap<LinkEnds, u32>,
}

/// A rest that does not fit the machine.
pub(super) struct Refusal {
    pub(super) message: String,
    /// The connections that have no path any more.
    pub(super) without_path: Vec<NamedConnection>,
}

impl Driver<'_> {
    /// Compiles what an interruption has left, and loads it.
    pub(super) fn repair(
        &mut self,
        interruption: &Interruption,
    ) -> Result<Result<Repair, Refusal>, CompileError> {
        let mut repair = Repair { removed: self.dead_parts(interruption), ..Repair::default() };
        self.machine = without(&self.machine, &repair.removed)?;
        let suspects = self.suspects(interruption);
        repair.repeated = self.take_delivered(interruption);
        repair.lost = self.take_lost();
        self.rest.retain(|rest| !rest.is_empty());
        if self.is_complete() {
            return Ok(Ok(repair));
        }
        // Without one of the suspects the machine may be in one piece, and not without another one.
        let suspects =
            suspects.into_iter().map(|(source, target)| FaultyPart::Link(source, target));
        let mut removals: Vec<Option<FaultyPart>> = suspects.map(Some).collect();
        if removals.is_empty() {
            removals.push(None);
        }
        let mut refusal = None;
        for removal in removals {
            let machine = without(&self.machine, removal.as_slice())?;
            let program = self.program_left()?;
            match self.carrier.load(&machine, &program, &mut repair)? {
                Ok(()) => {
                    repair.removed.extend(removal);
                    self.machine = machine;
                    self.loaded = program.sets().to_vec();
                    return Ok(Ok(repair));
                }
                Err(reason) => {
                    refusal.get_or_insert_with(|| self.refusal(&machine, reason));
                }
            }
        }
        Ok(Err(refusal.expect("one removal was tried")))
    }

    /// The parts that have stopped for ever and are still in the machine. A cell for which a context switch waits is
    /// as good as dead.
    fn dead_parts(&self, interruption: &Interruption) -> Vec<FaultyPart> {
        let absent = match interruption.fault.kind {
            FaultKind::Absent { cell, .. } => Some(cell),
            _ => None,
        };
        let mut cells: Vec<CellId> =
            interruption.dead_cells.iter().copied().chain(absent).collect();
        cells.sort_unstable();
        cells.dedup();
        cells.retain(|&cell| self.machine.is_alive(cell));
        let is_new = |&(source, target): &LinkEnds| {
            let new_cell = |cell| cells.contains(&cell);
            self.machine.links_between(source, target).next().is_some()
                && !new_cell(source)
                && !new_cell(target)
        };
        let links = interruption.dead_links.iter().copied().filter(is_new);
        let links = links.map(|(source, target)| FaultyPart::Link(source, target));
        cells.iter().copied().map(FaultyPart::Cell).chain(links).collect()
    }

    /// Counts the streams that arrived wrongly. Returns the links of those connections that did so too often, the
    /// one with most such streams first; none if there are no such connections.
    fn suspects(&mut self, interruption: &Interruption) -> Vec<LinkEnds> {
        let rest = &self.rest[0];
        let mut links = Vec::new();
        for &connection in &interruption.damaged {
            let of_route = self.carrier.links_of(self.exchanged, connection);
            for &link in &of_route {
                *self.suspicions.links.entry(link).or_default() += 1;
            }
            let key = (rest.number, rest.original_id(connection));
            let count = self.suspicions.connections.entry(key).or_default();
            *count += 1;
            if *count > self.options.repeats {
                links.extend(of_route);
            }
        }
        links.sort_unstable();
        links.dedup();
        // Stable, so that equal ones stay in order.
        links.sort_by_key(|link| std::cmp::Reverse(self.suspicions.links[link]));
        links
    }

    /// Removes what was delivered from what is left; returns the connections that are sent again because they
    /// arrived wrongly.
    fn take_delivered(&mut self, interruption: &Interruption) -> Vec<NamedConnection> {
        let before = &self.rest[0];
        let left = before.without(&interruption.delivered);
        let damaged = interruption.damaged.iter().map(|&id| before.original_id(id));
        let damaged = damaged.map(|id| (id, left.words_left(id))).filter(|(_, words)| *words > 0);
        let set = &self.sets[left.number];
        let repeated = damaged.map(|(id, words)| NamedConnection::new(set, id, words)).collect();
        self.rest[0] = left;
        repeated
    }

    /// Removes the connections of dead cells from what is left, and returns them.
    fn take_lost(&mut self) -> Vec<NamedConnection> {
        let mut lost = Vec::new();
        for rest in &mut self.rest {
            let set = &self.sets[rest.number];
            for (id, words) in rest.remove_lost(&self.machine, set) {
                lost.push(NamedConnection::new(set, id, words));
            }
        }
        lost
    }

    /// What is left as a program.
    fn program_left(&self) -> Result<Program, CompileError> {
        let sets = self.rest.iter().map(|rest| rest.set(&self.sets[rest.number]).map(Arc::new));
        let program = sets.collect::<Result<Vec<_>, _>>().and_then(Program::new);
        program.map_err(|error| CompileError::bug("recovery", &error))
    }

    fn refusal(&self, machine: &Machine, message: String) -> Refusal {
        let mut hops: BTreeMap<CellId, Vec<u32>> = BTreeMap::new();
        let mut without_path = self.connections_left();
        without_path.retain(|connection| {
            let from = hops.entry(connection.source);
            let from = from.or_insert_with(|| machine.hops_from(connection.source));
            from[connection.target.index()] == u32::MAX
        });
        Refusal { message, without_path }
    }
}

impl NamedConnection {
    pub(super) fn new(set: &ConnectionSet, id: ConnectionId, words: u64) -> Self {
        let connection = set.get(id);
        Self {
            set: set.name().to_owned(),
            name: connection.name.as_deref().map_or_else(|| id.to_string(), str::to_owned),
            source: connection.source,
            target: connection.target,
            words,
        }
    }
}

/// A machine without some parts.
fn without(machine: &Arc<Machine>, parts: &[FaultyPart]) -> Result<Arc<Machine>, CompileError> {
    if parts.is_empty() {
        return Ok(machine.clone());
    }
    let (mut cells, mut links) = (Vec::new(), Vec::new());
    for part in parts {
        match *part {
            FaultyPart::Cell(cell) => cells.push(cell),
            FaultyPart::Link(source, target) => links.push((source, target)),
        }
    }
    let machine = machine.with_dead(&cells, &links);
    machine.map(Arc::new).map_err(|error| CompileError::bug("recovery", &error))
}
