//! Loads of resources that are independent of the routes: agents, cells, average links and cuts.
//!
//! They are computed from the set and the machine's list of links, in linear time. Only the slabs
//! of a dimension with `n` positions take O(n^2); they are computed for up to
//! [`SLAB_POSITION_LIMIT`] positions.

use conset_ir::convert::{index, to_u64};
use conset_ir::witness::CellRange;
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Duplex, LinkId, Machine};

use super::ramps::LinkPrices;
use super::share;
use crate::live::Live;

/// Positions of a dimension up to which all its slabs are considered.
const SLAB_POSITION_LIMIT: usize = 256;

/// Words and streams that agents send and receive.
pub(super) struct AgentLoads<'a> {
    machine: &'a Machine,
    /// For each cell, words sent and clocks of set-ups for them, and the same of words received.
    sums: Vec<[(u64, u64); 2]>,
}

impl<'a> AgentLoads<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self { machine, sums: vec![[(0, 0); 2]; machine.cell_count()] }
    }

    pub(super) fn add(&mut self, source: CellId, target: CellId, words: u32) {
        let setup = u64::from(self.machine.parameters().stream_setup)
            + u64::from(self.machine.network_overhead(source, target));
        for (direction, cell) in [source, target].into_iter().enumerate() {
            let (all, setups) = &mut self.sums[cell.index()][direction];
            *all += u64::from(words);
            *setups += setup;
        }
    }

    pub(super) fn clear(&mut self, cell: CellId) {
        self.sums[cell.index()] = [(0, 0); 2];
    }

    /// The least time of an agent, with or without its set-ups. With several streams at a time
    /// set-ups can overlap with words, so they are a bound of their own.
    pub(super) fn clocks(&self, cell: CellId, with_setups: bool) -> u128 {
        let [out, into] = self.clocks_of_directions(cell, with_setups);
        out.max(into)
    }

    /// The least time in which an agent sends, and in which it receives; with half duplex both are
    /// the time of all its words.
    fn clocks_of_directions(&self, cell: CellId, with_setups: bool) -> [u128; 2] {
        let parameters = self.machine.parameters();
        let access = u128::from(parameters.access_clocks_per_word);
        let streams = u128::from(parameters.streams);
        let clocks = |(words, setups): (u64, u64)| {
            let (words, setups) = (u128::from(words) * access, u128::from(setups));
            let setups = if with_setups { setups } else { 0 };
            if streams == 1 { words + setups } else { words.max(setups.div_ceil(streams)) }
        };
        let [out, into] = self.sums[cell.index()];
        match parameters.duplex {
            Duplex::Full => [clocks(out), clocks(into)],
            Duplex::Half => [clocks((out.0 + into.0, out.1 + into.1)); 2],
        }
    }

    fn busiest(&self, with_setups: bool) -> u128 {
        let all = self.machine.cells().map(|cell| self.clocks(cell, with_setups));
        all.max().unwrap_or(0)
    }
}

/// Computes the loads of sets on a machine.
pub(super) struct LoadCounter<'a> {
    machine: &'a Machine,
    live: Live<'a>,
}

impl<'a> LoadCounter<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        Self { machine, live: Live::new(machine) }
    }

    pub(super) fn live_cells(&self) -> u128 {
        count(self.machine.cells().filter(|&cell| self.live.is_alive(cell)))
    }

    /// Clocks per word of the fastest link.
    fn link_clocks(&self) -> u128 {
        let [clocks, _] = self.machine.link_clocks_range();
        u128::from(clocks)
    }

    /// The ends of live links.
    fn links(&self) -> impl Iterator<Item = (CellId, CellId)> + '_ {
        let all = (0..self.machine.link_count()).map(LinkId::from_index);
        all.filter(|&link| self.live.is_link_alive(link)).map(|link| {
            let link = self.machine.link(link);
            (link.source, link.target)
        })
    }

    fn known(&self, cell: CellId) -> Result<(), String> {
        match cell.index() < self.machine.cell_count() {
            true => Ok(()),
            false => Err(format!("there is no {cell}")),
        }
    }

    /// The least number of phases for the connections that end at a cell.
    pub(super) fn ends_of(&self, set: &ConnectionSet, cell: CellId) -> Result<u64, String> {
        self.known(cell)?;
        let at = |c: &&Connection| c.source == cell || c.target == cell;
        let ends = to_u64(set.connections().iter().filter(at).count());
        Ok(ends.div_ceil(u64::from(self.machine.parameters().channels_per_cell)))
    }

    /// The greatest such number of all cells.
    pub(super) fn most_ends(&self, set: &ConnectionSet) -> u64 {
        let mut ends = vec![0u64; self.machine.cell_count()];
        for connection in set.connections() {
            ends[connection.source.index()] += 1;
            ends[connection.target.index()] += u64::from(connection.source != connection.target);
        }
        let most = ends.into_iter().max().unwrap_or(0);
        most.div_ceil(u64::from(self.machine.parameters().channels_per_cell))
    }

    /// The load of an agent that sends, and that of one that receives.
    pub(super) fn agent(&self, set: &ConnectionSet, cell: CellId) -> Result<[u128; 2], String> {
        self.known(cell)?;
        let mut agents = AgentLoads::new(self.machine);
        set.connections().iter().for_each(|c| agents.add(c.source, c.target, c.words));
        Ok(agents.clocks_of_directions(cell, true))
    }

    pub(super) fn busiest_agent(&self, set: &ConnectionSet) -> u128 {
        let mut agents = AgentLoads::new(self.machine);
        set.connections().iter().for_each(|c| agents.add(c.source, c.target, c.words));
        agents.busiest(true)
    }

    /// The greater of the load of the busiest agent, without set-ups, and the average load of links.
    pub(super) fn agents_or_links(
        &self,
        set: &ConnectionSet,
        members: &[ConnectionId],
        hops: &[u32],
    ) -> u128 {
        let mut agents = AgentLoads::new(self.machine);
        for &x in members {
            let connection = set.get(x);
            agents.add(connection.source, connection.target, connection.words);
        }
        let rows = members.iter().map(|x| x.index());
        agents.busiest(false).max(self.average_link(set, hops, rows))
    }

    /// The clocks of the word-hops of some connections, divided by all links.
    pub(super) fn average_link(
        &self,
        set: &ConnectionSet,
        hops: &[u32],
        rows: impl Iterator<Item = usize>,
    ) -> u128 {
        let of = |row: usize| u128::from(set.connections()[row].words) * u128::from(hops[row]);
        let word_hops: u128 = rows.map(of).sum();
        share(word_hops.checked_mul(self.link_clocks()), count(self.links()))
    }

    /// The price of a word on every live link, given prices of links.
    pub(super) fn price_of_links(&self, prices: &[u32]) -> u128 {
        let rows = prices.iter().enumerate();
        let live = rows.filter(|&(row, _)| self.live.is_link_alive(LinkId::from_index(row)));
        live.map(|(_, &price)| u128::from(price)).sum()
    }

    /// The price of a channel of every live cell, given prices of cells.
    pub(super) fn price_of_cells(&self, prices: &[u32]) -> u128 {
        let rows = prices.iter().enumerate();
        let live = rows.filter(|&(row, _)| self.live.is_alive(CellId::from_index(row)));
        live.map(|(_, &price)| u128::from(price)).sum()
    }

    /// The clocks of the words that leave one side of a cut, divided by the live links that leave it.
    pub(super) fn cut<'b>(
        &self,
        connections: impl Iterator<Item = &'b Connection>,
        side: &[CellRange],
    ) -> Result<u128, String> {
        let inside = self.inside(side)?;
        let leaving = connections.filter(|c| leaves(&inside, c.source, c.target));
        let words: u128 = leaving.map(|c| u128::from(c.words)).sum();
        let moved = self.out_of(&inside).sum;
        Ok(share(words.checked_mul(self.clocks_of_all_rates()), moved))
    }

    /// The words that each live link moves over a cut in as many clocks as all rates divide.
    pub(super) fn over_cut(&self, side: &[CellRange]) -> Result<LinkPrices, String> {
        self.inside(side).map(|inside| self.out_of(&inside))
    }

    fn out_of(&self, inside: &[bool]) -> LinkPrices {
        self.link_prices(|link| {
            let ends = self.machine.link(link);
            match leaves(inside, ends.source, ends.target) {
                true => self.clocks_of_all_rates() / u128::from(self.machine.link_clocks(link)),
                false => 0,
            }
        })
    }

    /// In as many clocks a link of any rate moves a whole number of words.
    fn clocks_of_all_rates(&self) -> u128 {
        let [fast, slow] = self.machine.link_clocks_range().map(u128::from);
        if fast == slow { fast } else { fast * slow }
    }

    /// The cells of one side of a cut.
    fn inside(&self, side: &[CellRange]) -> Result<Vec<bool>, String> {
        let mut inside = vec![false; self.machine.cell_count()];
        let mut next = 0;
        for &(first, last) in side {
            self.known(last)?;
            if first > last || first.index() < next {
                return Err(format!("the range {first} to {last} is not ascending"));
            }
            inside[first.index()..=last.index()].fill(true);
            next = last.index() + 1;
        }
        Ok(inside)
    }

    /// The given price of each live link.
    pub(super) fn link_prices(&self, price: impl Fn(LinkId) -> u128) -> LinkPrices {
        LinkPrices::new(&self.live, price)
    }

    /// The greatest load of a cut around a slab of positions of any dimension, for topologies with
    /// dimensions.
    pub(super) fn slabs(&self, set: &ConnectionSet) -> u128 {
        let topology = self.machine.topology();
        let mut stride = 1;
        let mut most = 0;
        for size in topology.dims().unwrap_or_default() {
            if (2..=SLAB_POSITION_LIMIT).contains(&index(size)) {
                let at = |cell: CellId| index(cell.0 / stride % size);
                let words = set.connections().iter();
                let words = PositionSums::new(
                    index(size),
                    words.map(|c| (at(c.source), at(c.target), u128::from(c.words))),
                );
                let links = self.links().map(|(from, to)| (at(from), at(to), 1));
                let links = PositionSums::new(index(size), links);
                most = most.max(self.tightest(&words, &links, topology.wraps()));
            }
            stride = stride.saturating_mul(size);
        }
        most
    }

    fn tightest(&self, words: &PositionSums, links: &PositionSums, wraps: bool) -> u128 {
        let size = words.size;
        let mut most = 0;
        for first in 0..if wraps { size } else { 1 } {
            for length in 1..size {
                for [a, b] in [[first, first + length], [first + length, first + size]] {
                    let load = words.leaving(a, b) * self.link_clocks();
                    most = most.max(share(Some(load), links.leaving(a, b)));
                }
            }
        }
        most
    }
}

/// Whether a connection or link leaves the cells inside.
fn leaves(inside: &[bool], from: CellId, to: CellId) -> bool {
    inside[from.index()] && !inside[to.index()]
}

fn count(items: impl Iterator) -> u128 {
    u128::from(to_u64(items.count()))
}

/// Two-dimensional prefix sums of amounts from one position to another.
struct PositionSums {
    size: usize,
    /// The amount from positions below the row to positions below the column.
    below: Vec<u128>,
}

impl PositionSums {
    fn new(size: usize, amounts: impl Iterator<Item = (usize, usize, u128)>) -> Self {
        let width = size + 1;
        let mut below = vec![0; width * width];
        for (from, to, amount) in amounts {
            below[(from + 1) * width + to + 1] += amount;
        }
        for row in 1..width {
            for column in 1..width {
                below[row * width + column] += below[row * width + column - 1];
            }
            for column in 1..width {
                below[row * width + column] += below[(row - 1) * width + column];
            }
        }
        Self { size, below }
    }

    /// The amount from positions `rows` to positions `columns`; neither range wraps.
    fn between(&self, rows: [usize; 2], columns: [usize; 2]) -> u128 {
        let at = |row: usize, column: usize| self.below[row * (self.size + 1) + column];
        at(rows[1], columns[1]) + at(rows[0], columns[0])
            - at(rows[0], columns[1])
            - at(rows[1], columns[0])
    }

    /// The amount that leaves the positions from `first` to before `end`, a range that may wrap.
    fn leaving(&self, first: usize, end: usize) -> u128 {
        let size = self.size;
        let spans = |first: usize, end: usize| {
            let (first, end) =
                if first >= size { (first - size, end - size) } else { (first, end) };
            [[first, end.min(size)], [0, end.saturating_sub(size)]]
        };
        let inside = spans(first, end);
        let all: u128 = inside.iter().map(|&rows| self.between(rows, [0, size])).sum();
        let pairs = inside.iter().flat_map(|&rows| inside.map(|columns| (rows, columns)));
        all - pairs.map(|(rows, columns)| self.between(rows, columns)).sum::<u128>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_positions_are_those_of_their_amounts() {
        let size = 5;
        let amount = |from: usize, to: usize| (1 + 7 * from + 31 * to) as u128;
        let all = || (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
        let sums = PositionSums::new(size, all().map(|(from, to)| (from, to, amount(from, to))));
        for (first, end) in
            (0..2 * size).flat_map(|first| (first..first + size).map(move |e| (first, e)))
        {
            let inside = |at: usize| (first..end).any(|position| position % size == at);
            let leaving = all().filter(|&(from, to)| inside(from) && !inside(to));
            let expected: u128 = leaving.map(|(from, to)| amount(from, to)).sum();
            assert_eq!(sums.leaving(first, end), expected, "{first} to {end}");
        }
    }
}
