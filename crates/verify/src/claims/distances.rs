//! How far connections go at least: in hops, and by prices of links or of cells.
//!
//! Hops are counted by coordinates where nothing is dead, else by a search from each source as
//! far as its furthest target. Once [`LOOKED_AT`] cells were looked at, hops count as 1, which is
//! less and still true. Prices take a search of the whole machine from each source, so a set and
//! a machine on which that is more than [`PRICED`] cells and links cannot be proved by prices;
//! whoever finds prices searches many times as long.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use conset_ir::{ConnectionSet, LinkId, Machine};

use crate::live::Live;

/// Cells that searches for hops look at in all.
const LOOKED_AT: usize = 1 << 30;
/// Cells and links that searches by prices look at in all.
const PRICED: usize = 1 << 22;

/// Distances between the ends of a set's connections.
pub(super) struct Distances<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    hops: Option<Vec<u32>>,
    neighbours: Option<Neighbours>,
    /// Connections in the order of their sources.
    by_source: Option<Vec<u32>>,
}

impl<'a> Distances<'a> {
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
        let mut wanted = vec![u32::MAX; self.machine.cell_count()];
        let mut queue = VecDeque::new();
        let mut looked_at = 0;
        for row in rows.chunk_by(|&a, &b| source(connections, a) == source(connections, b)) {
            let from = source(connections, row[0]);
            if looked_at >= LOOKED_AT {
                row.iter().for_each(|&x| {
                    let connection = &connections[x as usize];
                    hops[x as usize] = u32::from(connection.source != connection.target);
                });
                continue;
            }
            let mut open = 0;
            for &x in row {
                let target = connections[x as usize].target.index();
                open += u32::from(std::mem::replace(&mut wanted[target], from) != from);
            }
            queue.clear();
            queue.push_back(from);
            seen[from as usize] = (from, 0);
            while let Some(cell) = queue.pop_front() {
                looked_at += 1;
                open -= u32::from(wanted[cell as usize] == from);
                if open == 0 {
                    break;
                }
                let hops = seen[cell as usize].1;
                for &to in &next.ends[next.row(cell)] {
                    if seen[to as usize].0 != from {
                        seen[to as usize] = (from, hops + 1);
                        queue.push_back(to);
                    }
                }
            }
            for &x in row {
                hops[x as usize] = seen[connections[x as usize].target.index()].1;
            }
        }
        hops
    }

    /// Words times the least price of a way, over all connections; a price for each link.
    pub(super) fn by_links(&mut self, prices: &[u32]) -> Result<u128, String> {
        self.right_count(prices, self.machine.link_count(), "links")?;
        self.prepare();
        let next = self.prepared().0;
        // Of parallel links the cheapest.
        let mut steps = vec![u64::MAX; next.ends.len()];
        for (&entry, &price) in next.entry_of_link.iter().zip(prices) {
            if entry != NO_ENTRY {
                steps[entry as usize] = steps[entry as usize].min(u64::from(price));
            }
        }
        let words = |x: u32| u128::from(self.set.connections()[x as usize].words);
        self.priced(|at| steps[at], |_| 0, words)
    }

    /// The least price of a route, over all connections; a price for each cell.
    pub(super) fn by_cells(&mut self, prices: &[u32]) -> Result<u128, String> {
        self.right_count(prices, self.machine.cell_count(), "cells")?;
        self.prepare();
        let price = |cell: u32| u64::from(prices[cell as usize]);
        let ends = &self.prepared().0.ends;
        self.priced(|at| price(ends[at]), price, |_| 1)
    }

    fn right_count(&self, prices: &[u32], count: usize, of: &str) -> Result<(), String> {
        match prices.len() == count {
            true => Ok(()),
            false => Err(format!("{} prices for {count} {of}", prices.len())),
        }
    }

    /// Weights times distances. `step` is the price of an entry of the neighbours' lists, `start`
    /// that of a source.
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
        if work > PRICED {
            return Err(format!(
                "a proof by prices looks at {work} cells and links, at most {PRICED} are looked at"
            ));
        }
        let mut travelled = 0u128;
        let mut distance = vec![u64::MAX; cells];
        let mut heap = BinaryHeap::new();
        for row in by_source() {
            distance.fill(u64::MAX);
            let from = source(connections, row[0]);
            distance[from as usize] = start(from);
            heap.push(Reverse((start(from), from)));
            while let Some(Reverse((reached, cell))) = heap.pop() {
                if reached > distance[cell as usize] {
                    continue;
                }
                for at in next.row(cell) {
                    let (to, through) = (next.ends[at] as usize, reached + step(at));
                    if through < distance[to] {
                        distance[to] = through;
                        heap.push(Reverse((through, to as u32)));
                    }
                }
            }
            for &x in row {
                let target = connections[x as usize].target.index();
                // A target without a way is another rule's fault; it proves nothing here.
                let far = Some(distance[target]).filter(|&far| far != u64::MAX).unwrap_or(0);
                travelled += weight(x) * u128::from(far);
            }
        }
        Ok(travelled)
    }

    fn prepare(&mut self) {
        if self.neighbours.is_none() {
            self.neighbours = Some(Neighbours::new(self.machine));
            let mut rows: Vec<u32> = (0..self.set.len() as u32).collect();
            rows.sort_by_key(|&x| self.set.connections()[x as usize].source);
            self.by_source = Some(rows);
        }
    }

    fn prepared(&self) -> (&Neighbours, &[u32]) {
        match (&self.neighbours, &self.by_source) {
            (Some(neighbours), Some(rows)) => (neighbours, rows),
            _ => unreachable!("`prepare` came before"),
        }
    }
}

fn source(connections: &[conset_ir::Connection], x: u32) -> u32 {
    connections[x as usize].source.0
}

/// Stands for "the link is dead".
const NO_ENTRY: u32 = u32::MAX;

/// The neighbours of each cell over live links, each once.
struct Neighbours {
    /// Where the entries of a cell begin.
    first: Vec<u32>,
    /// The neighbours.
    ends: Vec<u32>,
    /// The entry that each link belongs to.
    entry_of_link: Vec<u32>,
}

impl Neighbours {
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
                this.entry_of_link[link.index()] = this.ends.len() as u32;
            }
            this.ends.push(parallel[0].1);
            this.first[parallel[0].0 as usize + 1] += 1;
        }
        for cell in 0..machine.cell_count() {
            this.first[cell + 1] += this.first[cell];
        }
        this
    }

    /// The entries of a cell.
    fn row(&self, cell: u32) -> std::ops::Range<usize> {
        self.first[cell as usize] as usize..self.first[cell as usize + 1] as usize
    }
}
