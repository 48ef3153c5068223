//! Routes by nodes: the words between two nodes travel in one message.
//!
//! In a cluster, messages between nodes cost more than those within a node. So the cells of a node
//! first send what they have for another node to one of them, the *leader* for this node (gather);
//! the two leaders of a pair of nodes exchange one message in each direction; then each leader sends
//! what it has received to the cells of its node (scatter). Words between cells of one node go
//! directly, with the gather.
//!
//! Every pair of nodes has leaders of its own, in both directions the same. A node assigns its pairs
//! one by one, the one with the most words first, to the cell that is done first with all that it has
//! been assigned: the message to the other node, and the messages of the other cells that have words
//! for it. So a cell that has these words itself is preferred.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionSet, Machine};

use super::message_clocks;

/// The leaders of a set on a machine, by the numbers of its cells.
#[derive(Clone, Debug)]
pub(super) struct NodeLeaders {
    /// Per cell, its node, counted from 0 without gaps.
    node_of: Vec<u32>,
    /// Per cell, its position in its node.
    position: Vec<u32>,
    /// Own node, other node, leader; sorted.
    leaders: Vec<(u32, u32, u32)>,
}

/// Words of a cell from or for another node: own node, other node, cell, words.
type Share = (u32, u32, u32, u64);

impl NodeLeaders {
    /// Assigns the leaders. `cells` are in the order of their numbers.
    pub(super) fn new(machine: &Machine, cells: &[CellId], set: &ConnectionSet) -> Self {
        let (node_of, position) = nodes(machine, cells);
        let mut this = Self { node_of, position, leaders: Vec::new() };
        let shares = this.shares(machine, cells, set);
        let protocol = machine.parameters().protocol;
        let clocks = |words: u64| message_clocks(machine, protocol, words);
        let mut load = vec![0u64; cells.len()];
        for of_node in shares.chunk_by(|a, b| a.0 == b.0) {
            let words = |pair: &[Share]| pair.iter().map(|share| share.3).sum::<u64>();
            let mut pairs: Vec<&[Share]> = of_node.chunk_by(|a, b| a.1 == b.1).collect();
            pairs.sort_by_key(|pair| Reverse(words(pair)));
            let members = this.members(of_node[0].0);
            for pair in pairs {
                let gathered: u64 = pair.iter().map(|share| clocks(share.3)).sum();
                let cost = |cell: u32| {
                    let own = pair.iter().filter(|share| share.2 == cell);
                    let own: u64 = own.map(|share| clocks(share.3)).sum();
                    clocks(words(pair)) + gathered - own
                };
                let leader = members.clone().min_by_key(|&cell| load[index(cell)] + cost(cell));
                // A node with a share has a cell.
                let Some(leader) = leader else { continue };
                load[index(leader)] += cost(leader);
                this.leaders.push((pair[0].0, pair[0].1, leader));
            }
        }
        this.leaders.sort_unstable();
        this
    }

    /// The words of each cell from and for each other node.
    fn shares(&self, machine: &Machine, cells: &[CellId], set: &ConnectionSet) -> Vec<Share> {
        let mut numbers = vec![u32::MAX; machine.cell_count()];
        for (number, cell) in cells.iter().enumerate() {
            numbers[cell.index()] = to_u32(number);
        }
        let number = |cell: CellId| numbers.get(cell.index()).copied().filter(|&n| n != u32::MAX);
        let mut shares: Vec<Share> = Vec::with_capacity(2 * set.len());
        for connection in set.connections() {
            let ends = (number(connection.source), number(connection.target));
            let (Some(a), Some(b)) = ends else { continue };
            let (from, to) = (self.node_of[index(a)], self.node_of[index(b)]);
            if from != to {
                let words = u64::from(connection.words);
                shares.extend([(from, to, a, words), (to, from, b, words)]);
            }
        }
        shares.sort_unstable();
        shares.dedup_by(|next, last| {
            let same = (next.0, next.1, next.2) == (last.0, last.1, last.2);
            if same {
                last.3 += next.3;
            }
            same
        });
        shares
    }

    /// The cells of a node.
    fn members(&self, node: u32) -> std::ops::Range<u32> {
        // The cells of a node have consecutive numbers.
        let first = self.node_of.partition_point(|&other| other < node);
        let end = self.node_of.partition_point(|&other| other <= node);
        to_u32(first)..to_u32(end)
    }

    /// The number of levels: gather, between nodes, scatter.
    pub(super) const LEVELS: usize = 3;

    /// Where a piece is before a level, or after the last one.
    pub(super) fn place(&self, level: usize, source: u32, target: u32) -> u32 {
        let [from, to] = [source, target].map(|cell| self.node_of[index(cell)]);
        match level {
            0 => source,
            1 | 2 if from != to => {
                let (own, other) = if level == 1 { (from, to) } else { (to, from) };
                let row = self.leaders.binary_search_by_key(&(own, other), |row| (row.0, row.1));
                // Every pair of nodes with a connection has leaders.
                row.map_or(target, |row| self.leaders[row].2)
            }
            _ => target,
        }
    }

    /// One more than the greatest digit of a cell in a level, and the digits: nodes between nodes,
    /// else positions in nodes.
    pub(super) fn digits(&self, level: usize) -> (u64, Vec<u32>) {
        let digits = if level == 1 { &self.node_of } else { &self.position };
        (digits.iter().max().map_or(1, |&most| u64::from(most) + 1), digits.clone())
    }
}

/// Per cell, the number of its node among those of the cells, and its position in the node.
fn nodes(machine: &Machine, cells: &[CellId]) -> (Vec<u32>, Vec<u32>) {
    let (mut node_of, mut position) = (Vec::new(), Vec::new());
    let of = |cell: &CellId| machine.topology().node_of(*cell);
    for (node, members) in cells.chunk_by(|a, b| of(a) == of(b)).enumerate() {
        for place in 0..members.len() {
            node_of.push(to_u32(node));
            position.push(to_u32(place));
        }
    }
    (node_of, position)
}
