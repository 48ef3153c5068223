//! What every planner asks of a machine and a set, worked out once: the network with its link
//! capacities, the ports of agents, the clocks of streams.
//!
//! Parallel links are one edge here. An edge's *capacity* is how many streams at full rate it
//! carries at a time: its links times the clocks an agent takes for a word over those a link
//! takes.

use std::sync::Arc;

use conset_ir::{Bounds, CellId, ConnectionSet, Duplex, Machine, Parameters, StreamClocks};

use crate::plan::Stream;

/// Stands for "no way" among hop counts.
pub(crate) const UNREACHABLE: u16 = u16::MAX;

/// A set to be planned on a machine.
pub struct Problem<'a> {
    pub(crate) set: &'a Arc<ConnectionSet>,
    parameters: &'a Parameters,
    pub(crate) bounds: Bounds,
    /// Edges of each cell: cell `c` has the edges `first[c]..first[c + 1]`.
    pub(crate) first: Vec<u32>,
    /// The cell at the head of each edge.
    pub(crate) heads: Vec<u32>,
    /// Streams at full rate that each edge carries at a time.
    pub(crate) capacity: Vec<u16>,
    /// The ports of each connection: of its source, of its target. Equal for a connection of a
    /// cell to itself with half duplex.
    pub(crate) ports: Vec<[u32; 2]>,
    pub(crate) port_count: usize,
    pub(crate) channels: u32,
    pub(crate) word_clocks: u64,
    pub(crate) link_clocks: u64,
    pub(crate) setup: u64,
    pub(crate) switch: u64,
    /// Hops to the target of each connection: row of the target, column of the cell.
    distances: Vec<u16>,
    row_of: Vec<u32>,
}

/// Entries that the table of distances may have.
const DISTANCES: usize = 1 << 25;

impl<'a> Problem<'a> {
    /// Prepares a set for planning. `None` where planners do not apply: connections without a
    /// way, or a machine with too many cells for the table of distances.
    pub fn new(
        machine: &'a Arc<Machine>,
        set: &'a Arc<ConnectionSet>,
        bounds: Bounds,
    ) -> Option<Self> {
        let parameters = machine.parameters();
        let cells = machine.cell_count();
        let share = (parameters.access_clocks_per_word / parameters.link_clocks_per_word).max(1);
        let (mut first, mut heads, mut capacity) = (vec![0], Vec::new(), Vec::new());
        for cell in machine.cells() {
            let mut row: Vec<u32> =
                machine.outgoing(cell).iter().map(|&link| machine.link(link).target.0).collect();
            row.sort_unstable();
            for run in row.chunk_by(|a, b| a == b) {
                heads.push(run[0]);
                capacity.push((run.len() as u32 * share).min(1 << 12) as u16);
            }
            first.push(heads.len() as u32);
        }
        let half = parameters.duplex == Duplex::Half;
        let port = |cell: CellId, side: u32| if half { cell.0 } else { 2 * cell.0 + side };
        let ports = set.connections().iter().map(|c| [port(c.source, 0), port(c.target, 1)]);
        let mut this = Self {
            set,
            parameters,
            bounds,
            first,
            heads,
            capacity,
            ports: ports.collect(),
            port_count: if half { cells } else { 2 * cells },
            channels: parameters.channels_per_cell,
            word_clocks: parameters.word_clocks(),
            link_clocks: u64::from(parameters.link_clocks_per_word),
            setup: u64::from(parameters.stream_setup),
            switch: parameters.switch_clocks(),
            distances: Vec::new(),
            row_of: vec![u32::MAX; cells],
        };
        this.fill_distances()?;
        let reachable = |x: usize| this.hops(x) != UNREACHABLE;
        (0..set.len()).all(reachable).then_some(this)
    }

    fn fill_distances(&mut self) -> Option<()> {
        let cells = self.row_of.len();
        let mut targets = Vec::new();
        for connection in self.set.connections() {
            let row = &mut self.row_of[connection.target.index()];
            if *row == u32::MAX {
                *row = targets.len() as u32;
                targets.push(connection.target.0);
            }
        }
        if cells >= usize::from(UNREACHABLE) || targets.len().saturating_mul(cells) > DISTANCES {
            return None;
        }
        let mut back = vec![Vec::new(); cells];
        for cell in 0..cells as u32 {
            for edge in self.edges(cell) {
                back[self.heads[edge] as usize].push(cell);
            }
        }
        self.distances = vec![UNREACHABLE; targets.len() * cells];
        let mut queue = std::collections::VecDeque::new();
        for (row, &target) in self.distances.chunks_mut(cells.max(1)).zip(&targets) {
            row[target as usize] = 0;
            queue.push_back(target);
            while let Some(cell) = queue.pop_front() {
                for &tail in &back[cell as usize] {
                    if row[tail as usize] == UNREACHABLE {
                        row[tail as usize] = row[cell as usize] + 1;
                        queue.push_back(tail);
                    }
                }
            }
        }
        Some(())
    }

    /// The edges that leave a cell.
    #[inline]
    pub(crate) fn edges(&self, cell: u32) -> std::ops::Range<usize> {
        self.first[cell as usize] as usize..self.first[cell as usize + 1] as usize
    }

    pub(crate) fn edge_count(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn cell_count(&self) -> usize {
        self.row_of.len()
    }

    /// Hops from every cell to a connection's target.
    #[inline]
    pub(crate) fn distances(&self, x: usize) -> &[u16] {
        let cells = self.cell_count();
        let row = self.row_of[self.set.connections()[x].target.index()] as usize;
        &self.distances[row * cells..(row + 1) * cells]
    }

    /// Hops between a connection's ends.
    pub(crate) fn hops(&self, x: usize) -> u16 {
        self.distances(x)[self.set.connections()[x].source.index()]
    }

    /// The edge from a cell to a neighbour.
    pub(crate) fn edge(&self, cell: u32, neighbour: u32) -> usize {
        let edges = self.edges(cell);
        let row = &self.heads[edges.clone()];
        edges.start + row.binary_search(&neighbour).expect("routes go to neighbours")
    }

    /// What streams of a connection cost the agents at its ends.
    pub(crate) fn clocks(&self, x: usize) -> StreamClocks {
        StreamClocks::new(self.parameters, &self.set.connections()[x])
    }

    /// The earliest start of a stream behind those booked. For each edge, `edges` holds the
    /// clocks at which its streams are through, seen from the first link of a route; for each
    /// port `ports` holds when it is free, and when its last word is delivered.
    pub(crate) fn earliest(&self, stream: &Stream, edges: &[Vec<u64>], ports: &[[u64; 2]]) -> u64 {
        let x = stream.connection as usize;
        let [source, target] = self.ports[x];
        let latency = self.clocks(x).flight(stream.cells.len() - 1);
        let received = ports[target as usize][1].saturating_sub(latency);
        let mut start = ports[source as usize][0].max(ports[target as usize][0]).max(received);
        for (hop, pair) in stream.cells.windows(2).enumerate() {
            let edge = self.edge(pair[0], pair[1]);
            let through = &edges[edge];
            let capacity = usize::from(self.capacity[edge]);
            if through.len() >= capacity {
                // The streams that are through last hold the capacity; one of them has to end.
                let free = through[through.len() - capacity];
                start = start.max(free.saturating_sub(hop as u64 * self.link_clocks + self.setup));
            }
        }
        start
    }

    /// Books a stream; returns the clock at which its last word is delivered.
    pub(crate) fn book(
        &self,
        stream: &Stream,
        edges: &mut [Vec<u64>],
        ports: &mut [[u64; 2]],
    ) -> u64 {
        let x = stream.connection as usize;
        let [source, target] = self.ports[x].map(|port| port as usize);
        let clocks = self.clocks(x);
        let end = stream.start + clocks.of(stream.words);
        let delivered = end + clocks.flight(stream.cells.len() - 1);
        for (hop, pair) in stream.cells.windows(2).enumerate() {
            let edge = self.edge(pair[0], pair[1]);
            let through = &mut edges[edge];
            let clock = end + hop as u64 * self.link_clocks;
            let place = through.partition_point(|&other| other <= clock);
            through.insert(place, clock);
            // More than the capacity of them never matter.
            if through.len() > usize::from(self.capacity[edge]) {
                through.remove(0);
            }
        }
        ports[source][0] = ports[source][0].max(end);
        ports[target][0] = ports[target][0].max(end);
        ports[target][1] = ports[target][1].max(delivered);
        delivered
    }
}
