//! The load of agents and edges in each phase, by which an insertion selects the phase that grows
//! least.
//!
//! Loads are sums of clocks, whatever the timetable makes of them. They are counted as routes are
//! added and never reduced, so after moves they are counted again.

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionSet, Machine};

use crate::apr::layered_graph::LayeredGraph;

/// The most loads that are held; beyond, the phase is selected by its cells alone.
const LOADS_MEMORY_LIMIT: usize = 1 << 25;

/// Clocks for which agent ports and edges are busy in each phase, and the maximum of each phase.
pub(super) struct PhaseLoads {
    ports: Vec<[u32; 2]>,
    agent_clocks: Vec<u64>,
    link_clocks: Vec<u64>,
    port_count: usize,
    edge_count: usize,
    port: Vec<u64>,
    edge: Vec<u64>,
    most: Vec<u64>,
}

impl PhaseLoads {
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, graph: &LayeredGraph) -> Self {
        let parameters = machine.parameters();
        let ports = |&(source, target): &(u32, u32)| {
            parameters.duplex.ports(CellId(source), CellId(target))
        };
        let words = || set.connections().iter().map(|c| c.words);
        let [_, link] = machine.link_clocks_range().map(u64::from);
        let mut this = Self {
            ports: graph.ends.iter().map(ports).collect(),
            agent_clocks: words().map(|words| parameters.end_clocks(words)).collect(),
            link_clocks: words().map(|words| u64::from(words) * link).collect(),
            port_count: parameters.duplex.port_count(graph.network.cells),
            edge_count: graph.network.next.edge_count(),
            port: Vec::new(),
            edge: Vec::new(),
            most: Vec::new(),
        };
        this.recount(graph);
        this
    }

    pub(super) fn recount(&mut self, graph: &LayeredGraph) {
        self.port.clear();
        self.edge.clear();
        self.most.clear();
        for _ in 0..graph.state.phases {
            self.open_phase();
        }
        for phase in 0..graph.state.phases {
            for &x in graph.state.members(phase) {
                self.book(graph, x);
            }
        }
    }

    pub(super) fn open_phase(&mut self) {
        self.most.push(0);
        let phases = self.most.len();
        if phases.saturating_mul(self.port_count + self.edge_count) > LOADS_MEMORY_LIMIT {
            self.port.clear();
            self.edge.clear();
            return;
        }
        self.port.resize(phases * self.port_count, 0);
        self.edge.resize(phases * self.edge_count, 0);
    }

    fn are_tracked(&self) -> bool {
        self.port.len() == self.most.len() * self.port_count
    }

    pub(super) fn book(&mut self, graph: &LayeredGraph, x: u32) {
        if !self.are_tracked() {
            return;
        }
        let phase = index(graph.state.phase_of[index(x)]);
        let mut most = self.most[phase];
        for port in self.ports[index(x)] {
            let load = &mut self.port[phase * self.port_count + index(port)];
            *load = load.saturating_add(self.agent_clocks[index(x)]);
            most = most.max(*load);
        }
        for pair in graph.state.route(x).windows(2) {
            let edge = graph.network.next.edge(pair[0], pair[1]);
            let load = &mut self.edge[phase * self.edge_count + edge];
            *load = load.saturating_add(self.link_clocks[index(x)]);
            most = most.max(*load);
        }
        self.most[phase] = most;
    }

    pub(super) fn growth_by_ports(&self, x: u32, phase: u32) -> u64 {
        if !self.are_tracked() {
            return 0;
        }
        let base = index(phase) * self.port_count;
        let loads = self.ports[index(x)].map(|port| self.port[base + index(port)]);
        let load = loads[0].max(loads[1]).saturating_add(self.agent_clocks[index(x)]);
        load.saturating_sub(self.most[index(phase)])
    }

    /// The growth of a phase by the links of the path found last.
    pub(super) fn growth_by_links(&self, graph: &LayeredGraph, x: u32, phase: u32) -> u64 {
        if !self.are_tracked() {
            return 0;
        }
        let base = index(phase) * self.edge_count;
        let edges = graph.path.windows(2).map(|pair| graph.network.next.edge(pair[0], pair[1]));
        let load = edges.map(|edge| self.edge[base + edge]).max().unwrap_or(0);
        load.saturating_add(self.link_clocks[index(x)]).saturating_sub(self.most[index(phase)])
    }
}
