//! The machine of a schedule: its head, and the block of its links.

use std::collections::BTreeMap;

use conset::report::MachineSummary;
use conset_ir::{CellId, Duplex, LinkId, Machine, PartMap};

use crate::columns::Block;
use crate::head::MachineHead;

/// The head.
pub(crate) fn head(machine: &Machine) -> MachineHead<'_> {
    let topology = machine.topology();
    let parameters = machine.parameters();
    let numbers: BTreeMap<_, _> =
        parameters.numbers().into_iter().map(|(name, value, _, _)| (name, value)).collect();
    MachineHead {
        summary: MachineSummary::new(machine),
        kind: topology.kind(),
        dims: topology.dims(),
        wraps: topology.wraps(),
        levels: MachineHead::levels(topology),
        cell_count: machine.cell_count(),
        agents: machine.agent_count(),
        dead_cells: machine.dead_cells(),
        dead_links: machine.dead_links(),
        parameters: numbers,
        duplex: match parameters.duplex {
            Duplex::Full => "full",
            Duplex::Half => "half",
        },
        protocol: parameters.protocol.name(),
    }
}

/// The columns `link_source` and `link_target` (all links by id), `live` (1 for live links) and
/// `part_cell` (the cell of each part).
pub(crate) fn block(machine: &Machine, parts: Option<&PartMap>) -> Block {
    let links = || (0..machine.link_count()).map(|link| machine.link(LinkId::from_index(link)));
    let mut is_live = vec![0u64; machine.link_count()];
    for cell in machine.cells() {
        for link in machine.outgoing(cell) {
            is_live[link.index()] = 1;
        }
    }
    let places: &[CellId] = parts.map_or(&[], PartMap::cells);
    let mut block = Block::default();
    block
        .delta("link_source", links().map(|link| link.source.0.into()))
        .delta("link_target", links().map(|link| link.target.0.into()))
        .plain("live", is_live.iter().copied())
        .plain("part_cell", places.iter().map(|cell| cell.0.into()));
    block
}

/// The position of a link among the links that leave its source: what routes are stored by.
pub(crate) struct LinkChoices(Vec<u64>);

impl LinkChoices {
    /// The positions of all live links.
    pub(crate) fn new(machine: &Machine) -> Self {
        let mut choices = vec![0; machine.link_count()];
        for cell in machine.cells() {
            for (choice, link) in (0u64..).zip(machine.outgoing(cell)) {
                choices[link.index()] = choice;
            }
        }
        Self(choices)
    }

    /// The position of a link.
    pub(crate) fn of(&self, link: LinkId) -> u64 {
        self.0[link.index()]
    }
}
