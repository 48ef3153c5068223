//! Distances between the ends of connections: in hops, and by prices of links or cells.
//!
//! Hops are computed from coordinates if no cell or link is dead, otherwise by a breadth-first
//! search from each source up to its farthest target. After [`HOP_SEARCH_BUDGET`] expanded cells,
//! all further distances count as 1 hop, which is a valid lower bound. Prices need a search of the
//! whole machine from each source, so nothing is proved by prices if that takes more than
//! [`PRICE_SEARCH`] cells and links. (The search that finds the prices takes many times as
//! long.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use conset_ir::convert::{index, to_u32};
use conset_ir::limits::PRICE_SEARCH;
use conset_ir::{Connection, ConnectionSet, LinkId, Machine};

use crate::live::Live;

/// Cells that all searches for hops may expand.
const HOP_SEARCH_BUDGET: usize = 1 << 30;

/// Distances between the ends of the connections of a set.
pub(super) struct ConnectionDistances<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    hops: Option<Vec<u32>>,
    neighbours: Option<NeighbourLists>,
    /// Connections in the order of their sources.
    by_source: Option<Vec<u32>>,
}

impl<'a> ConnectionDistances<'a> {
    pub(super) fn new(machine: &'a Machine, set: &'a ConnectionSet) -> Self {
        Self { machine, set, hops: None, neighbours: None, by_source: None }
    }

    /// The hops of each connection.
    pub(super) fn hops(&mut self) -> &[u32] {
        if self.hops.is_none() {
            self.hops = Some(self.by_coordinates().unwrap_or_else(|| self.by_search()));
        }
        self.hops.as_deref().expect("it was just made")
    }

    fn by_coordinates(&self) -> Option<Vec<u32>> {
        let machine = self.machine;
        if !machine.dead_cells().is_empty() || !machine.dead_links().is_empty() {
            return None;
        }
        let (dims, wraps) = (machine.topology().dims()?, machine.topology().wraps());
        let between = |mut a: u32, mut b: u32| {
            let mut hops = 0;
            for &size in &dims {
                let apart = (a % size).abs_diff(b % size);
                hops += if wraps { apart.min(size - apart) } else { apart };
                (a, b) = (a / size, b / size);
            }
            hops
        };
        Some(self.set.connections().iter().map(|c| between(c.source.0, c.target.0)).collect())
    }

    fn by_search(&mut self) -> Vec<u32> {
        self.prepare();
        let (next, rows) = self.prepared();
        let connections = self.set.connections();
        let mut hops = vec![0; connections.len()];
        let mut seen = vec![(u32::MAX, 0u32); self.machine.cell_count()];
        // The source whose target each cell is.
        let mut is_target = vec![u32::MAX; self.machine.cell_count()];
        let mut queue = VecDeque::new();
        let mut expanded = 0;
        for row in rows.chunk_by(|&a, &b| source(connections, a) == source(connections, b)) {
            let from = source(connections, row[0]);
            if expanded >= HOP_SEARCH_BUDGET {
                row.iter().for_each(|&x| {
                    let connection = &connections[index(x)];
                    hops[index(x)] = u32::from(connection.source != connection.target);
                });
                continue;
            }
            let mut open = 0;
            for &x in row {
                let target = connections[index(x)].target.index();
                open += u32::from(std::mem::replace(&mut is_target[target], from) != from);
            }
            queue.clear();
            queue.push_back(from);
            seen[index(from)] = (from, 0);
            while let Some(cell) = queue.pop_front() {
                expanded += 1;
                open -= u32::from(is_target[index(cell)] == from);
                if open == 0 {
                    break;
                }
                let hops = seen[index(cell)].1;
                for &to in &next.ends[next.row(cell)] {
                    if seen[index(to)].0 != from {
                        seen[index(to)] = (from, hops + 1);
                        queue.push_back(to);
                    }
                }
            }
            for &x in row {
                hops[index(x)] = seen[connections[index(x)].target.index()].1;
            }
        }
        hops
    }

    /// The sum over all connections of their words times the least price of a route, given a price
    /// for each link.
    pub(super) fn by_links(&mut self, prices: &[u32]) -> Result<u128, String> {
        check_count(prices, self.machine.link_count(), "links")?;
        self.prepare();
        let next = self.prepared().0;
        // The cheapest of parallel links.
        let mut steps = vec![u64::MAX; next.ends.len()];
        for (&entry, &price) in next.entry_of_link.iter().zip(prices) {
            if entry != NO_ENTRY {
                steps[index(entry)] = steps[index(entry)].min(u64::from(price));
            }
        }
        let words = |x: u32| u128::from(self.set.connections()[index(x)].words);
        self.priced(|at| steps[at], |_| 0, words)
    }

    /// The sum over all connections of the least price of a route, given a price for each cell.
    pub(super) fn by_cells(&mut self, prices: &[u32]) -> Result<u128, String> {
        check_count(prices, self.machine.cell_count(), "cells")?;
        self.prepare();
        let price = |cell: u32| u64::from(prices[index(cell)]);
        let ends = &self.prepared().0.ends;
        self.priced(|at| price(ends[at]), price, |_| 1)
    }

    /// The sum of weights times distances. `step` is the price of an entry of the lists of
    /// neighbours, `start` that of a source.
    fn priced(
        &self,
        step: impl Fn(usize) -> u64,
        start: impl Fn(u32) -> u64,
        weight: impl Fn(u32) -> u128,
    ) -> Result<u128, String> {
        let (next, rows) = self.prepared();
        let connections = self.set.connections();
        let cells = self.machine.cell_count();
        let by_source = || rows.chunk_by(|&a, &b| source(connections, a) == source(connections, b));
        let work = by_source().count().saturating_mul(cells + next.ends.len());
        if work > PRICE_SEARCH {
            return Err(format!(
                "a proof by prices expands {work} cells and links, more than the limit of \
                 {PRICE_SEARCH}"
            ));
        }
        let mut travelled = 0u128;
        let mut distance = vec![u64::MAX; cells];
        let mut heap = BinaryHeap::new();
        for row in by_source() {
            distance.fill(u64::MAX);
            let from = source(connections, row[0]);
            distance[index(from)] = start(from);
            heap.push(Reverse((start(from), from)));
            while let Some(Reverse((reached, cell))) = heap.pop() {
                if reached > distance[index(cell)] {
                    continue;
                }
                for at in next.row(cell) {
                    let (to, through) = (next.ends[at], reached + step(at));
                    if through < distance[index(to)] {
                        distance[index(to)] = through;
                        heap.push(Reverse((through, to)));
                    }
                }
            }
            for &x in row {
                let target = connections[index(x)].target.index();
                // Another rule refuses an unreachable target; it contributes nothing here.
                let far = Some(distance[target]).filter(|&far| far != u64::MAX).unwrap_or(0);
                travelled += weight(x) * u128::from(far);
            }
        }
        Ok(travelled)
    }

    fn prepare(&mut self) {
        if self.neighbours.is_none() {
            self.neighbours = Some(NeighbourLists::new(self.machine));
            let mut rows: Vec<u32> = (0..to_u32(self.set.len())).collect();
            rows.sort_by_key(|&x| self.set.connections()[index(x)].source);
            self.by_source = Some(rows);
        }
    }

    fn prepared(&self) -> (&NeighbourLists, &[u32]) {
        match (&self.neighbours, &self.by_source) {
            (Some(neighbours), Some(rows)) => (neighbours, rows),
            _ => unreachable!("every caller calls `prepare` first"),
        }
    }
}

fn check_count(prices: &[u32], count: usize, of: &str) -> Result<(), String> {
    match prices.len() == count {
        true => Ok(()),
        false => Err(format!("{} prices for {count} {of}", prices.len())),
    }
}

fn source(connections: &[Connection], x: u32) -> u32 {
    connections[index(x)].source.0
}

/// The entry of a dead link.
const NO_ENTRY: u32 = u32::MAX;

/// The neighbours of each cell over live links, without duplicates.
struct NeighbourLists {
    /// The first entry of each cell.
    first: Vec<u32>,
    /// The neighbours.
    ends: Vec<u32>,
    /// The entry of each link.
    entry_of_link: Vec<u32>,
}

impl NeighbourLists {
    fn new(machine: &Machine) -> Self {
        let live = Live::new(machine);
        let ids = (0..machine.link_count()).map(LinkId::from_index);
        let mut links: Vec<(u32, u32, LinkId)> = ids
            .filter(|&link| live.is_link_alive(link))
            .map(|link| (machine.link(link).source.0, machine.link(link).target.0, link))
            .collect();
        links.sort_unstable();
        let mut this = Self {
            first: vec![0; machine.cell_count() + 1],
            ends: Vec::new(),
            entry_of_link: vec![NO_ENTRY; machine.link_count()],
        };
        for parallel in links.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for (.., link) in parallel {
                this.entry_of_link[link.index()] = to_u32(this.ends.len());
            }
            this.ends.push(parallel[0].1);
            this.first[index(parallel[0].0) + 1] += 1;
        }
        for cell in 0..machine.cell_count() {
            this.first[cell + 1] += this.first[cell];
        }
        this
    }

    /// The entries of a cell.
    fn row(&self, cell: u32) -> Range<usize> {
        index(self.first[index(cell)])..index(self.first[index(cell) + 1])
    }
}
