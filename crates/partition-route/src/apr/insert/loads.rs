//! What each phase's agents and edges have to carry, so that an insertion can go where a phase gets
//! longer the least. Sums of clocks, whatever the timetable makes of them; routes are counted as
//! they are booked and nothing is ever taken off, so moves count everything again.

use conset_ir::{CellId, ConnectionSet, Machine};

use crate::apr::layered_graph::LayeredGraph;

/// Loads that are held at most; beyond, the phase is chosen by its cells alone.
const HELD: usize = 1 << 25;

/// Clocks that agents' sides and edges are busy in each phase, and the most of each phase.
pub(super) struct Loads {
    sides: Vec<[u32; 2]>,
    agent_clocks: Vec<u64>,
    link_clocks: Vec<u64>,
    side_count: usize,
    edge_count: usize,
    side: Vec<u64>,
    edge: Vec<u64>,
    most: Vec<u64>,
}

impl Loads {
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, copies: &LayeredGraph) -> Self {
        let parameters = machine.parameters();
        let ports = |&(source, target): &(u32, u32)| {
            parameters.duplex.ports(CellId(source), CellId(target))
        };
        let words = || set.connections().iter().map(|c| c.words);
        let link = u64::from(parameters.link_clocks_per_word);
        let mut this = Self {
            sides: copies.ends.iter().map(ports).collect(),
            agent_clocks: words().map(|words| parameters.end_clocks(words)).collect(),
            link_clocks: words().map(|words| u64::from(words) * link).collect(),
            side_count: parameters.duplex.port_count(copies.network.cells),
            edge_count: copies.network.next.edge_count(),
            side: Vec::new(),
            edge: Vec::new(),
            most: Vec::new(),
        };
        this.count_again(copies);
        this
    }

    pub(super) fn count_again(&mut self, copies: &LayeredGraph) {
        self.side.clear();
        self.edge.clear();
        self.most.clear();
        for _ in 0..copies.state.phases {
            self.open_phase();
        }
        for phase in 0..copies.state.phases {
            for &x in copies.state.members(phase) {
                self.book(copies, x);
            }
        }
    }

    pub(super) fn open_phase(&mut self) {
        self.most.push(0);
        let phases = self.most.len();
        if phases.saturating_mul(self.side_count + self.edge_count) > HELD {
            self.side.clear();
            self.edge.clear();
            return;
        }
        self.side.resize(phases * self.side_count, 0);
        self.edge.resize(phases * self.edge_count, 0);
    }

    fn are_held(&self) -> bool {
        self.side.len() == self.most.len() * self.side_count
    }

    pub(super) fn book(&mut self, copies: &LayeredGraph, x: u32) {
        if !self.are_held() {
            return;
        }
        let phase = copies.state.phase_of[x as usize] as usize;
        let mut most = self.most[phase];
        for side in self.sides[x as usize] {
            let load = &mut self.side[phase * self.side_count + side as usize];
            *load = load.saturating_add(self.agent_clocks[x as usize]);
            most = most.max(*load);
        }
        for pair in copies.state.route(x).windows(2) {
            let edge = copies.network.next.edge(pair[0], pair[1]);
            let load = &mut self.edge[phase * self.edge_count + edge];
            *load = load.saturating_add(self.link_clocks[x as usize]);
            most = most.max(*load);
        }
        self.most[phase] = most;
    }

    pub(super) fn growth_by_sides(&self, x: u32, phase: u32) -> u64 {
        if !self.are_held() {
            return 0;
        }
        let base = phase as usize * self.side_count;
        let loads = self.sides[x as usize].map(|side| self.side[base + side as usize]);
        let load = loads[0].max(loads[1]).saturating_add(self.agent_clocks[x as usize]);
        load.saturating_sub(self.most[phase as usize])
    }

    /// The same by the links of the path found last.
    pub(super) fn growth_by_links(&self, copies: &LayeredGraph, x: u32, phase: u32) -> u64 {
        if !self.are_held() {
            return 0;
        }
        let base = phase as usize * self.edge_count;
        let edges = copies.path.windows(2).map(|pair| copies.network.next.edge(pair[0], pair[1]));
        let load = edges.map(|edge| self.edge[base + edge]).max().unwrap_or(0);
        load.saturating_add(self.link_clocks[x as usize]).saturating_sub(self.most[phase as usize])
    }
}
