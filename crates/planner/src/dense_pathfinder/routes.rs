//! Cheapest minimal routes of a connection in all phases of a block at once.
//!
//! The cells on shortest routes form an acyclic graph. One pass over it in the order of hops, with
//! a lane for each phase, finds the price of the cheapest route in every phase of a block.

use conset_ir::convert::{index, to_u32, to_u64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::block::{Block, LANES, Lanes};
use crate::problem::{Incoming, Problem};

const NONE: u32 = u32::MAX;

/// The shortest routes of a connection, and the reusable memory of the search.
pub(super) struct RouteSearch {
    /// The cells on shortest routes, from the source to the target.
    cells: Vec<u32>,
    /// The edges into row `r` of `cells` are `first[r]..first[r + 1]` of `edges`.
    first: Vec<u32>,
    /// The row of the tail, and the edge.
    edges: Vec<(u32, u32)>,
    row_of: Vec<u32>,
    prices: Vec<Lanes>,
    pub(super) work: u64,
}

impl RouteSearch {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            cells: Vec::new(),
            first: Vec::new(),
            edges: Vec::new(),
            row_of: vec![NONE; cells],
            prices: Vec::new(),
            work: 0,
        }
    }

    /// Lists the cells and edges on shortest routes of connection `x`.
    pub(super) fn aim(&mut self, problem: &Problem<'_>, incoming: &Incoming, x: usize) {
        let distances = problem.distances(x);
        let source = problem.set.connections()[x].source.0;
        self.cells.clear();
        self.cells.push(source);
        self.row_of[index(source)] = 0;
        let mut next = 0;
        while let Some(&cell) = self.cells.get(next) {
            next += 1;
            let ahead = distances[index(cell)];
            for edge in problem.edges(cell) {
                let head = problem.head(edge);
                if distances[index(head)] < ahead && self.row_of[index(head)] == NONE {
                    self.row_of[index(head)] = to_u32(self.cells.len());
                    self.cells.push(head);
                }
            }
        }
        self.edges.clear();
        self.first.clear();
        for &cell in &self.cells {
            self.first.push(to_u32(self.edges.len()));
            let ahead = distances[index(cell)];
            let tails = incoming.of(cell).iter();
            let tails = tails.map(|&(tail, edge)| (self.row_of[index(tail)], tail, edge));
            let is_before =
                |&(row, tail, _): &(u32, u32, u32)| row != NONE && distances[index(tail)] > ahead;
            self.edges.extend(tails.filter(is_before).map(|(row, _, edge)| (row, edge)));
        }
        self.first.push(to_u32(self.edges.len()));
        self.cells.iter().for_each(|&cell| self.row_of[index(cell)] = NONE);
        self.prices.resize(self.prices.len().max(self.cells.len()), [0; LANES]);
        self.work += to_u64(self.cells.len());
    }

    fn edges_into(&self, row: usize) -> &[(u32, u32)] {
        &self.edges[index(self.first[row])..index(self.first[row + 1])]
    }

    /// The price of the cheapest route in each phase of a block.
    pub(super) fn prices(&mut self, block: &Block, loads: &Lanes, present: i16) -> Lanes {
        self.prices[0] = *block.channel_prices(self.cells[0]);
        for row in 1..self.cells.len() {
            let mut least = [i16::MAX; LANES];
            for &(tail, edge) in self.edges_into(row) {
                let mut prices = self.prices[index(tail)];
                block.add_load_prices(index(edge), loads, present, &mut prices);
                for (least, price) in least.iter_mut().zip(prices) {
                    *least = (*least).min(price);
                }
            }
            for (least, &price) in least.iter_mut().zip(block.channel_prices(self.cells[row])) {
                *least = least.saturating_add(price);
            }
            self.prices[row] = least;
        }
        self.work += to_u64(self.cells.len());
        self.prices[self.cells.len() - 1]
    }

    /// Stores in `route` the cells of the cheapest route, from the target to the source, by the prices of
    /// cells.
    pub(super) fn cheapest(&self, price: impl Fn(u32) -> u64, route: &mut Vec<u32>) {
        let mut totals: Vec<(u64, usize)> = vec![(price(self.cells[0]), 0)];
        for row in 1..self.cells.len() {
            let tails = self.edges_into(row).iter().map(|&(tail, _)| index(tail));
            let (least, tail) = tails.map(|tail| (totals[tail].0, tail)).min().unwrap_or_default();
            totals.push((least + price(self.cells[row]), tail));
        }
        route.clear();
        let mut row = self.cells.len() - 1;
        route.push(self.cells[row]);
        while row > 0 {
            row = totals[row].1;
            route.push(self.cells[row]);
        }
    }

    /// Stores in `route` the edges of the cheapest route in a lane of the block searched last; of
    /// equal ones a random one.
    pub(super) fn trace(
        &self,
        (block, lane): (&Block, usize),
        loads: &Lanes,
        present: i16,
        rng: &mut ChaCha8Rng,
        route: &mut Vec<u32>,
    ) {
        route.clear();
        let mut row = self.cells.len() - 1;
        while row > 0 {
            let (mut best, mut equal) = (None, 0u32);
            for &(tail, edge) in self.edges_into(row) {
                let over = block.load_price(index(edge), lane, loads, present);
                let price = self.prices[index(tail)][lane].saturating_add(over);
                let is_less = best.is_none_or(|(least, _)| price < least);
                let is_equal = best.is_some_and(|(least, _)| price == least);
                equal = if is_less { 1 } else { equal + u32::from(is_equal) };
                if is_less || is_equal && rng.random_range(0..equal) == 0 {
                    best = Some((price, (tail, edge)));
                }
            }
            let (_, (tail, edge)) = best.expect("every row behind the first has an edge into it");
            route.push(edge);
            row = index(tail);
        }
        route.reverse();
    }
}
