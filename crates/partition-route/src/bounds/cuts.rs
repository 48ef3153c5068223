//! Cut bounds: words that must leave a set of cells, over the live links that leave it.
//!
//! Every set of cells gives a valid bound. These sets are tried:
//!
//! * each single cell (its links in and out);
//! * in shapes with coordinates, slabs of each dimension, by first position and length (all lengths
//!   up to half of a dimension of 16; powers of two and the half of longer ones), and in meshes
//!   also every slab that begins at 0; these are the narrow places of toruses and meshes;
//! * in a fat-tree or cluster, each group of leaves with the switches that serve no other group;
//! * in other graphs, the neighbourhoods of several cells, of every size.
//!
//! Finding the best bisection is a hard problem and is not attempted.

use conset_ir::convert::{index, to_u32};
use conset_ir::witness::{CellRange, ranges};
use conset_ir::{Binding, CellId, ConnectionSet, Machine, Topology, TreeLevel, Witness};

use super::LoadBound;
use crate::network::{BoundedBfs, Network};

/// All slab lengths are tried up to this size of a dimension.
const ALL_LENGTHS_UP_TO: usize = 16;
/// Words between positions of a dimension are summed up in a table up to this size of a dimension.
const MAX_TABLE_SIZE: usize = 256;
/// Cells whose neighbourhoods are tried in graphs without coordinates.
const NEIGHBOURHOODS: usize = 8;

/// An amount from one position to another: words of a connection, or a link.
type Transfer = (u32, u32, u128);

/// The best cut of each kind.
pub(super) fn bounds(machine: &Machine, set: &ConnectionSet) -> Vec<LoadBound> {
    let mut found = Vec::new();
    let group_of: Vec<u32> = machine.cells().map(|cell| cell.0).collect();
    found.extend(best_group(machine, set, &group_of, |cell| CellId(cell).to_string()));
    match machine.topology() {
        Topology::FatTree { .. } | Topology::Cluster { .. } => {
            let (levels, leaves) = (machine.topology().tree_levels(), machine.agent_count());
            for (level, size) in levels.iter().map(|level| level.leaves).enumerate().skip(1) {
                if size >= leaves {
                    break;
                }
                let groups = tree_groups(machine, &levels, level);
                found.extend(best_group(machine, set, &groups, |group| {
                    let last = ((index(group) + 1) * size).min(leaves) - 1;
                    format!("the leaves c{} to c{last}", index(group) * size)
                }));
            }
        }
        Topology::Graph { .. } => found.extend(neighbourhoods(machine, set)),
        _ => found.extend(slabs(machine, set)),
    }
    found
}

/// The cut that binds most so far.
#[derive(Default)]
struct TightestCut {
    clocks: u128,
    words: u128,
    /// Links, each counted as the words that it moves in [`link_clocks`].
    links: u128,
    place: usize,
    inwards: bool,
}

impl TightestCut {
    fn offer(&mut self, link_clocks: u128, words: u128, links: u128, place: usize, inwards: bool) {
        // If no link can carry the words, the set is infeasible; that error is raised elsewhere.
        if links == 0 {
            return;
        }
        let clocks = (words * link_clocks).div_ceil(links);
        if clocks > self.clocks {
            *self = TightestCut { clocks, words, links, place, inwards };
        }
    }

    /// The bound of this cut. `cells` names the set of cells, `side` proves the bound.
    fn bound(&self, binding: Binding, cells: &str, side: Witness) -> LoadBound {
        let way = if self.inwards { "into" } else { "out of" };
        let explanation = format!("{} words {way} {cells} over {} links", self.words, self.links);
        LoadBound::new(binding, self.clocks, explanation, side)
    }

    /// The side that words leave: the inside, or for words that go inwards, the outside.
    fn side(&self, machine: &Machine, inside: impl Fn(CellId) -> bool) -> Witness {
        Witness::Cut(ranges(machine.cells().map(|cell| inside(cell) != self.inwards)))
    }
}

/// Clocks in which every link moves a whole number of words: those of a word, if all links are alike.
fn link_clocks(machine: &Machine) -> u128 {
    match machine.link_clocks_range().map(u128::from) {
        [fast, slow] if fast < slow => fast * slow,
        [clocks, _] => clocks,
    }
}

/// Which cells are on a side ([`Witness::Cut`]).
pub(super) fn inside(machine: &Machine, side: &[CellRange]) -> Vec<bool> {
    let mut inside = vec![false; machine.cell_count()];
    side.iter().for_each(|(first, last)| inside[first.index()..=last.index()].fill(true));
    inside
}

/// The ends of all live links, and the words that each moves in [`link_clocks`].
pub(super) fn live_links(machine: &Machine) -> impl Iterator<Item = (CellId, CellId, u128)> + '_ {
    let clocks = link_clocks(machine);
    machine.cells().flat_map(|cell| machine.outgoing(cell)).map(move |&link| {
        let ends = machine.link(link);
        (ends.source, ends.target, clocks / u128::from(machine.link_clocks(link)))
    })
}

/// The tightest of several disjoint groups of cells; `u32::MAX` is no group.
fn best_group(
    machine: &Machine,
    set: &ConnectionSet,
    group_of: &[u32],
    name: impl Fn(u32) -> String,
) -> Option<LoadBound> {
    let groups = group_of.iter().filter(|&&g| g != u32::MAX).max().map_or(0, |&g| index(g) + 1);
    // Words out, words in, links out, links in.
    let mut sums = vec![[0u128; 4]; groups];
    let mut add = |from: CellId, to: CellId, amount: u128, row: usize| {
        let (from, to) = (group_of[from.index()], group_of[to.index()]);
        if from == to {
            return;
        }
        if from != u32::MAX {
            sums[index(from)][row] += amount;
        }
        if to != u32::MAX {
            sums[index(to)][row + 1] += amount;
        }
    };
    for connection in set.connections() {
        add(connection.source, connection.target, u128::from(connection.words), 0);
    }
    for (from, to, words) in live_links(machine) {
        add(from, to, words, 2);
    }
    let mut best = TightestCut::default();
    for (group, sum) in sums.iter().enumerate() {
        best.offer(link_clocks(machine), sum[0], sum[2], group, false);
        best.offer(link_clocks(machine), sum[1], sum[3], group, true);
    }
    let place = to_u32(best.place);
    (best.clocks > 0).then(|| {
        let side = best.side(machine, |cell| group_of[cell.index()] == place);
        best.bound(Binding::Bisection, &name(place), side)
    })
}

/// The groups of a level of a tree, each with the switches up to that level.
fn tree_groups(machine: &Machine, levels: &[TreeLevel], level: usize) -> Vec<u32> {
    let mut groups = Vec::with_capacity(machine.cell_count());
    for below in &levels[..=level] {
        for group in 0..below.groups {
            let id = to_u32(group * below.leaves / levels[level].leaves);
            groups.extend(std::iter::repeat_n(id, below.nodes));
        }
    }
    groups.resize(machine.cell_count(), u32::MAX);
    groups
}

/// The tightest slab of any dimension.
fn slabs(machine: &Machine, set: &ConnectionSet) -> Option<LoadBound> {
    let dims = machine.topology().dims()?;
    let mut stride = 1u32;
    let mut best: Option<LoadBound> = None;
    for (dimension, &size) in dims.iter().enumerate() {
        let at = |cell: CellId| cell.0 / stride % size;
        let words =
            set.connections().iter().map(|c| (at(c.source), at(c.target), u128::from(c.words)));
        let words = summed(index(size), words);
        let links = live_links(machine).map(|(from, to, words)| (at(from), at(to), words));
        let links = summed(index(size), links);
        let found = slabs_of(machine, (dimension, index(size)), &words, &links, &at);
        if let Some(found) = found.filter(|f| best.as_ref().is_none_or(|b| f.clocks > b.clocks)) {
            best = Some(found);
        }
        stride = stride.saturating_mul(size);
    }
    best
}

/// Transfers between different positions; those between the same two positions are merged if the
/// table is small.
fn summed(size: usize, transfers: impl Iterator<Item = Transfer>) -> Vec<Transfer> {
    let transfers = transfers.filter(|step| step.0 != step.1);
    if size > MAX_TABLE_SIZE {
        return transfers.collect();
    }
    let mut table = vec![0u128; size * size];
    for (from, to, amount) in transfers {
        table[index(from) * size + index(to)] += amount;
    }
    let rows = table.into_iter().enumerate().filter(|(_, amount)| *amount > 0);
    rows.map(|(at, amount)| (to_u32(at / size), to_u32(at % size), amount)).collect()
}

/// The tightest slab of one dimension.
fn slabs_of(
    machine: &Machine,
    (dimension, size): (usize, usize),
    words: &[Transfer],
    links: &[Transfer],
    at: &impl Fn(CellId) -> u32,
) -> Option<LoadBound> {
    let clocks = link_clocks(machine);
    let mut result: Option<LoadBound> = None;
    // A slab is its first position and its length.
    let mut keep = |best: &TightestCut, (first, length): (usize, usize)| {
        if result.as_ref().map_or(0, |r| r.clocks) < best.clocks {
            let last = (first + length - 1) % size;
            let name = format!("positions {first} to {last} of dimension {dimension}");
            let inside = |cell| (index(at(cell)) + size - first) % size < length;
            let side = best.side(machine, inside);
            result = Some(best.bound(Binding::DimensionCut, &name, side));
        }
    };
    let lengths = (1..=size / 2)
        .filter(|h| size <= ALL_LENGTHS_UP_TO || h.is_power_of_two() || *h == size / 2);
    for length in lengths {
        let mut best = TightestCut::default();
        for inwards in [false, true] {
            let words = leaving_slab(size, length, words, inwards);
            let links = leaving_slab(size, length, links, inwards);
            for start in 0..size {
                best.offer(clocks, words[start], links[start], start, inwards);
            }
        }
        keep(&best, (best.place, length));
    }
    if !machine.topology().wraps() {
        let mut best = TightestCut::default();
        for inwards in [false, true] {
            let words = leaving_prefix(size, words, inwards);
            let links = leaving_prefix(size, links, inwards);
            for last in 0..size {
                best.offer(clocks, words[last], links[last], last, inwards);
            }
        }
        keep(&best, (0, best.place + 1));
    }
    result
}

/// For each first position, the amount that leaves (or enters) the slab of `length` positions from
/// there, cyclically; `length` is at most half the size.
fn leaving_slab(size: usize, length: usize, transfers: &[Transfer], inwards: bool) -> Vec<u128> {
    let mut change = vec![0i128; size + 1];
    for &(from, to, amount) in transfers {
        let (inside, outside) = if inwards { (to, from) } else { (from, to) };
        let ahead = (index(outside) + size - index(inside)) % size;
        // Slabs that contain `inside` begin at inside - length + 1 to inside. If `outside` lies
        // ahead within the length, the last of these slabs contain it too; if behind, the first.
        let (skip, count) = if ahead < length {
            (0, ahead)
        } else if size - ahead < length {
            (length - (size - ahead), size - ahead)
        } else {
            (0, length)
        };
        let begin = (index(inside) + size - (length - 1) + skip) % size;
        let amount = signed(amount);
        change[begin] += amount;
        let end = begin + count;
        change[end.min(size)] -= amount;
        if end > size {
            change[0] += amount;
            change[end - size] -= amount;
        }
    }
    running_sums(&change[..size])
}

/// For each last position, the amount that leaves (or enters) the positions from 0 to there.
fn leaving_prefix(size: usize, transfers: &[Transfer], inwards: bool) -> Vec<u128> {
    let mut change = vec![0i128; size + 1];
    for &(from, to, amount) in transfers {
        let (inside, outside) = if inwards { (to, from) } else { (from, to) };
        if inside < outside {
            change[index(inside)] += signed(amount);
            change[index(outside)] -= signed(amount);
        }
    }
    running_sums(&change[..size])
}

fn signed(amount: u128) -> i128 {
    i128::try_from(amount).expect("a set has fewer than 2^127 words")
}

/// The sums of the changes up to each position; none is negative.
fn running_sums(change: &[i128]) -> Vec<u128> {
    let mut sum = 0i128;
    change
        .iter()
        .map(|change| {
            sum += change;
            sum.unsigned_abs()
        })
        .collect()
}

/// The tightest neighbourhood of any of a few cells.
fn neighbourhoods(machine: &Machine, set: &ConnectionSet) -> Option<LoadBound> {
    let network = Network::new(machine);
    let mut bfs = BoundedBfs::new(network.cells);
    let starts: Vec<CellId> = machine.endpoints().collect();
    let mut result: Option<LoadBound> = None;
    for &start in starts.iter().step_by(starts.len().div_ceil(NEIGHBOURHOODS).max(1)) {
        // Cells by their distance; unreachable cells come last.
        let mut place = vec![u32::MAX; network.cells];
        let mut count = 0;
        bfs.run(&network.next, start.0, |cell, _| {
            place[index(cell)] = count;
            count += 1;
            false
        });
        for row in place.iter_mut().filter(|row| **row == u32::MAX) {
            *row = count;
            count += 1;
        }
        let at = |cell: CellId| place[cell.index()];
        let words: Vec<Transfer> = set
            .connections()
            .iter()
            .map(|c| (at(c.source), at(c.target), u128::from(c.words)))
            .collect();
        let links: Vec<Transfer> =
            live_links(machine).map(|(from, to, words)| (at(from), at(to), words)).collect();
        let mut best = TightestCut::default();
        for inwards in [false, true] {
            let words = leaving_prefix(network.cells, &words, inwards);
            let links = leaving_prefix(network.cells, &links, inwards);
            for last in 0..network.cells {
                best.offer(link_clocks(machine), words[last], links[last], last, inwards);
            }
        }
        if result.as_ref().map_or(0, |r| r.clocks) < best.clocks {
            let cells = format!("the {} cells nearest to {start}", best.place + 1);
            let side = best.side(machine, |cell| index(at(cell)) <= best.place);
            result = Some(best.bound(Binding::Bisection, &cells, side));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The amount that leaves a slab, cell by cell.
    fn by_hand(
        size: usize,
        first: usize,
        length: usize,
        transfers: &[Transfer],
        inwards: bool,
    ) -> u128 {
        let inside = |p: u32| (p as usize + size - first) % size < length;
        let leaves = |s: &&Transfer| {
            if inwards { !inside(s.0) && inside(s.1) } else { inside(s.0) && !inside(s.1) }
        };
        transfers.iter().filter(leaves).map(|s| s.2).sum()
    }

    #[test]
    fn slabs_count_what_leaves_them() {
        for size in [2usize, 3, 5, 8, 9] {
            let n = size as u32;
            let all =
                (0..n).flat_map(|a| (0..n).map(move |b| (a, b, u128::from(1 + 3 * a + 7 * b))));
            let transfers = summed(size, all);
            for length in 1..=size / 2 {
                for inwards in [false, true] {
                    let sums = leaving_slab(size, length, &transfers, inwards);
                    for (first, &sum) in sums.iter().enumerate() {
                        let hand = by_hand(size, first, length, &transfers, inwards);
                        assert_eq!(sum, hand, "{size} {first} {length} {inwards}");
                    }
                }
            }
            for inwards in [false, true] {
                let sums = leaving_prefix(size, &transfers, inwards);
                for (last, &sum) in sums.iter().enumerate() {
                    assert_eq!(sum, by_hand(size, 0, last + 1, &transfers, inwards));
                }
            }
        }
    }

    #[test]
    fn groups_of_a_tree_have_their_definitions_links() {
        for (spec, outs) in [
            ("fat-tree:64", vec![2, 4]),
            ("fat-tree:256/2.2.2.4", vec![4, 8]),
            ("cluster:16x4", vec![1]),
        ] {
            let machine = Machine::from_spec(spec).unwrap();
            for (level, out) in [1, 2].into_iter().zip(outs) {
                let groups = tree_groups(&machine, &machine.topology().tree_levels(), level);
                let links = live_links(&machine)
                    .filter(|(a, b, _)| groups[a.index()] == 0 && groups[b.index()] != 0)
                    .count();
                assert_eq!(links, out, "{spec}");
            }
        }
    }
}
