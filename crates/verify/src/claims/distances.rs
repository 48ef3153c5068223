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
use conset_ir::{CellId, Connection, ConnectionSet, LinkId, Machine};

use crate::live::Live;

/// Cells that all searches for hops may expand.
const HOP_SEARCH_BUDGET: usize = 1 << 30;

/// Distances between the ends of the connections of a set.
pub(super) struct ConnectionDistances<'a> {
    machine: &'a Machine,
    set: &'a ConnectionSet,
    hops: Option<Vec<u32>>,
    neighbours: Option<NeighbourLists>,
    /// Connections in the order of their sources, and of their words where these are equal.
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
        let from = |x: u32| source(&connections[index(x)]);
        for row in rows.chunk_by(|&a, &b| from(a) == from(b)) {
            let from = from(row[0]);
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
        let steps = self.prepared().0.cheapest(prices);
        self.priced(source, |at, _| steps[at], |_| 0, |c| u128::from(c.words))
    }

    /// The sum over all connections of the least price of a route, given a price for each cell.
    pub(super) fn by_cells(&mut self, prices: &[u32]) -> Result<u128, String> {
        check_count(prices, self.machine.cell_count(), "cells")?;
        self.prepare();
        let price = |cell: u32| u64::from(prices[index(cell)]);
        let ends = &self.prepared().0.ends;
        self.priced(source, |at, _| price(ends[at]), price, |_| 1)
    }

    /// The sum over all connections of the least price of a route, given a price for each cell, and
    /// one for each word on each link.
    pub(super) fn by_cells_and_links(
        &mut self,
        cells: &[u32],
        links: &[u32],
    ) -> Result<u128, String> {
        check_count(cells, self.machine.cell_count(), "cells")?;
        check_count(links, self.machine.link_count(), "links")?;
        self.prepare();
        let next = self.prepared().0;
        let steps = next.cheapest(links);
        let price = |cell: u32| u64::from(cells[index(cell)]);
        // Less than the price if it exceeds 64 bits, which proves less.
        let step = |at: usize, words: u32| {
            u64::from(words).saturating_mul(steps[at]).saturating_add(price(next.ends[at]))
        };
        self.priced(|c| (c.source, c.words), step, price, |_| 1)
    }

    /// The sum of weights times distances. Connections are in groups by `group`, those of a group
    /// have the same source. `step` is the price of an entry of the lists of neighbours for the words
    /// of a connection of the group, `start` that of a source.
    fn priced<G: PartialEq>(
        &self,
        group: impl Fn(&Connection) -> G,
        step: impl Fn(usize, u32) -> u64,
        start: impl Fn(u32) -> u64,
        weight: impl Fn(&Connection) -> u128,
    ) -> Result<u128, String> {
        let (next, rows) = self.prepared();
        let of = |x: u32| &self.set.connections()[index(x)];
        let cells = self.machine.cell_count();
        let groups = || rows.chunk_by(|&a, &b| group(of(a)) == group(of(b)));
        let work = groups().count().saturating_mul(cells + next.ends.len());
        if work > PRICE_SEARCH {
            return Err(format!(
                "a proof by prices expands {work} cells and links, more than the limit of \
                 {PRICE_SEARCH}"
            ));
        }
        let mut travelled = 0u128;
        let mut distance = vec![u64::MAX; cells];
        let mut heap = BinaryHeap::new();
        for row in groups() {
            distance.fill(u64::MAX);
            let &Connection { source: CellId(from), words, .. } = of(row[0]);
            distance[index(from)] = start(from);
            heap.push(Reverse((start(from), from)));
            while let Some(Reverse((reached, cell))) = heap.pop() {
                if reached > distance[index(cell)] {
                    continue;
                }
                for at in next.row(cell) {
                    let (to, through) = (next.ends[at], reached.saturating_add(step(at, words)));
                    if through < distance[index(to)] {
                        distance[index(to)] = through;
                        heap.push(Reverse((through, to)));
                    }
                }
            }
            for &x in row {
                // Another rule refuses an unreachable target; it contributes nothing here.
                let far = distance[of(x).target.index()];
                travelled += if far == u64::MAX { 0 } else { weight(of(x)) * u128::from(far) };
            }
        }
        Ok(travelled)
    }

    fn prepare(&mut self) {
        if self.neighbours.is_none() {
            self.neighbours = Some(NeighbourLists::new(self.machine));
            let mut rows: Vec<u32> = (0..to_u32(self.set.len())).collect();
            rows.sort_by_key(|&x| {
                let connection = &self.set.connections()[index(x)];
                (connection.source, connection.words)
            });
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

fn source(connection: &Connection) -> u32 {
    connection.source.0
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

    /// The price of each entry: that of the cheapest of its links.
    fn cheapest(&self, prices: &[u32]) -> Vec<u64> {
        let mut steps = vec![u64::MAX; self.ends.len()];
        for (&entry, &price) in self.entry_of_link.iter().zip(prices) {
            if entry != NO_ENTRY {
                steps[index(entry)] = steps[index(entry)].min(u64::from(price));
            }
        }
        steps
    }

    /// The entries of a cell.
    fn row(&self, cell: u32) -> Range<usize> {
        index(self.first[index(cell)])..index(self.first[index(cell) + 1])
    }
}
