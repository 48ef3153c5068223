//! Recursive bisection of cells and parts together.
//!
//! A piece is a range of cells and as many parts. Pieces are divided level by level, so that when a
//! part chooses its side, the positions of all parts outside its piece are known to about the same
//! precision: each counts as placed in the middle of its piece, and attracts its partners to the
//! nearer side.

use std::collections::{BinaryHeap, VecDeque};

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use conset_ir::{Machine, Topology};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::metric::Metric;
use super::part_graph::PartGraph;
use crate::network::{BoundedBfs, Network};

/// Initial divisions: sweeps from one end of the graph to the other, then greedy growing.
const STARTS: usize = 5;
/// How many of the initial divisions are sweeps.
const SWEEPS: usize = 3;
/// Fiduccia-Mattheyses passes for each start.
const PASSES: usize = 4;
/// Pairs of parts examined for one piece, beyond which starts and passes are reduced.
const WORK_BUDGET: usize = 1 << 21;
/// Cells of a piece that are examined to find its middle.
const SAMPLES: usize = 64;
/// Moves without a better division after which a pass ends; an eighth of the parts if that is more.
const FRUITLESS_MOVES: usize = 64;

/// A range of the lists of cells and parts.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: usize,
    end: usize,
}

/// A cell for each part. There must be as many cells as parts.
pub(super) fn assign(
    machine: &Machine,
    network: &Network,
    metric: &Metric,
    graph: &PartGraph,
    mut cells: Vec<u32>,
    rng: &mut ChaCha8Rng,
) -> Vec<u32> {
    let count = graph.parts();
    let mut parts: Vec<u32> = (0..to_u32(count)).collect();
    let mut bipartition = Bipartition::new(graph);
    // The position of each part, as far as it is known.
    let mut place = vec![cells.get(count / 2).copied().unwrap_or(0); count];
    let mut queue = VecDeque::from([Piece { start: 0, end: count }]);
    let mut bfs = BoundedBfs::new(network.cells);
    while let Some(piece) = queue.pop_front() {
        let size = piece.end - piece.start;
        if size == 0 {
            continue;
        }
        if size == 1 {
            place[index(parts[piece.start])] = cells[piece.start];
            continue;
        }
        let own = &mut cells[piece.start..piece.end];
        let first = split_cells(machine, network, &mut bfs, own);
        let centres = [middle(metric, &own[..first]), middle(metric, &own[first..])];
        let members = &mut parts[piece.start..piece.end];
        bipartition.divide(graph, metric, &place, centres, members, first, rng);
        for (row, &part) in members.iter().enumerate() {
            place[index(part)] = centres[usize::from(row >= first)];
        }
        let cut = piece.start + first;
        queue.push_back(Piece { start: piece.start, end: cut });
        queue.push_back(Piece { start: cut, end: piece.end });
    }
    place
}

/// Sorts cells such that a first half and a second half are far apart; returns the size of the
/// first, at least 1 and less than all.
fn split_cells(
    machine: &Machine,
    network: &Network,
    bfs: &mut BoundedBfs,
    cells: &mut [u32],
) -> usize {
    match machine.topology() {
        Topology::FatTree { .. } | Topology::Cluster { .. } => {
            cells.sort_unstable();
            let (low, high) = (cells[0], cells[cells.len() - 1]);
            // The largest groups of which the cells are in more than one.
            let mut levels = machine.topology().tree_levels().into_iter().rev();
            let leaves = levels.find_map(|level| {
                let leaves = to_u32(level.leaves);
                (low / leaves != high / leaves).then_some(leaves)
            });
            nearest_border(cells, |cell| cell / leaves.unwrap_or(1))
        }
        Topology::Graph { .. } => {
            // From one end to the other: the cell farthest from any cell is at an end.
            let mut last = cells[0];
            bfs.run(&network.next, cells[0], |_, _| false);
            let far = |bfs: &BoundedBfs, cell: u32| (bfs.hops(cell), cell);
            for &cell in cells.iter() {
                if far(bfs, cell) > far(bfs, last) {
                    last = cell;
                }
            }
            bfs.run(&network.next, last, |_, _| false);
            cells.sort_unstable_by_key(|&cell| far(bfs, cell));
            cells.len() / 2
        }
        topology => {
            let dims = topology.dims().unwrap_or_default();
            let mut stride = 1;
            let mut longest = (0, 1, 1);
            for &size in &dims {
                let at = |cell: &u32| cell / stride % size;
                let low = cells.iter().map(at).min().unwrap_or(0);
                let high = cells.iter().map(at).max().unwrap_or(0);
                if high - low > longest.0 {
                    longest = (high - low, stride, size);
                }
                stride = stride.saturating_mul(size);
            }
            let at = |cell: u32| cell / longest.1 % longest.2;
            cells.sort_unstable_by_key(|&cell| (at(cell), cell));
            nearest_border(cells, at)
        }
    }
}

/// The position nearest to the middle where the key changes; the middle if it never does.
fn nearest_border(cells: &[u32], key: impl Fn(u32) -> u32) -> usize {
    let half = cells.len() / 2;
    let borders = (1..cells.len()).filter(|&i| key(cells[i - 1]) != key(cells[i]));
    borders.min_by_key(|&i| (i.abs_diff(half), i)).unwrap_or(half)
}

/// A cell in the middle of some cells: the middle of the box around them, or the one of a few
/// samples that is nearest to the others.
fn middle(metric: &Metric, cells: &[u32]) -> u32 {
    if let Some(cell) = metric.middle_of_box(cells) {
        return cell;
    }
    // Steps of the golden ratio do not resonate with the numbering of the cells.
    let scattered =
        |i: u32| to_usize((u64::from(i.wrapping_mul(0x9e37_79b9)) * to_u64(cells.len())) >> 32);
    let samples: Vec<u32> = match cells.len() {
        0..=SAMPLES => cells.to_vec(),
        _ => (0..to_u32(SAMPLES)).map(|i| cells[scattered(i)]).collect(),
    };
    let sum = |&a: &u32| samples.iter().map(|&b| u64::from(metric.hops(a, b))).sum::<u64>();
    samples.iter().copied().min_by_key(sum).unwrap_or(0)
}

/// Scratch memory of the division of parts; by part unless stated otherwise.
struct Bipartition {
    /// The piece in which a part was last divided, to tell members from others.
    seen: Vec<u32>,
    now: u32,
    side: Vec<bool>,
    best: Vec<bool>,
    /// Words saved by changing sides.
    gain: Vec<i64>,
    /// Words times hops to parts outside that are saved by being on the second side rather than the
    /// first.
    external_gain: Vec<i64>,
    moved: Vec<bool>,
    /// Hops in the graph from the start of a search.
    distance: Vec<i32>,
    /// The position of each part in each sweep.
    sweeps: Vec<[i32; SWEEPS]>,
    heaps: [BinaryHeap<(i64, u32)>; 2],
    log: Vec<u32>,
}

impl Bipartition {
    fn new(graph: &PartGraph) -> Self {
        let count = graph.parts();
        Self {
            seen: vec![0; count],
            now: 0,
            side: vec![false; count],
            best: vec![false; count],
            gain: vec![0; count],
            external_gain: vec![0; count],
            moved: vec![false; count],
            distance: vec![0; count],
            sweeps: vec![[0; SWEEPS]; count],
            heaps: [BinaryHeap::new(), BinaryHeap::new()],
            log: Vec::new(),
        }
    }

    /// Sorts the members such that the `first` ones that belong to the first centre come first.
    #[allow(clippy::too_many_arguments)]
    fn divide(
        &mut self,
        graph: &PartGraph,
        metric: &Metric,
        place: &[u32],
        centres: [u32; 2],
        members: &mut [u32],
        first: usize,
        rng: &mut ChaCha8Rng,
    ) {
        self.now += 1;
        for &part in members.iter() {
            self.seen[index(part)] = self.now;
        }
        // The approximate distance of a word that crosses between the halves.
        let centre_distance = i64::from(metric.hops(centres[0], centres[1]).max(1));
        for &part in members.iter() {
            self.external_gain[index(part)] = 0;
            for (other, words) in graph.of(part) {
                if self.seen[index(other)] != self.now {
                    let there = place[index(other)];
                    let hops = centres.map(|centre| i64::from(metric.hops(centre, there)));
                    let saved = hops[0] - hops[1];
                    self.external_gain[index(part)] += words * saved;
                }
            }
        }
        let pairs = members.iter().map(|&p| graph.degree(p)).sum::<usize>() + members.len();
        let rounds = WORK_BUDGET / pairs.min(graph.len() + members.len()).max(1);
        let starts = (rounds / PASSES).clamp(1, STARTS);
        let passes = rounds.clamp(1, PASSES);
        self.find_sweeps(graph, members, members[rng.random_range(0..members.len())]);
        let mut best = None;
        for turn in 0..starts {
            let start = members[rng.random_range(0..members.len())];
            if turn < SWEEPS {
                self.sweep(members, turn, first);
            } else {
                self.grow(graph, members, start, first, centre_distance);
            }
            for _ in 0..passes {
                if !self.pass(graph, members, first, centre_distance) {
                    break;
                }
            }
            let cost = self.cost(graph, members, centre_distance);
            if best.is_none_or(|b| cost < b) {
                best = Some(cost);
                for &part in members.iter() {
                    self.best[index(part)] = self.side[index(part)];
                }
            }
        }
        members.sort_unstable_by_key(|&part| (self.best[index(part)], part));
    }

    /// Words times hops between the halves of a division.
    fn cost(&self, graph: &PartGraph, members: &[u32], centre_distance: i64) -> i128 {
        let mut cost = 0i128;
        for &part in members {
            if self.side[index(part)] {
                cost -= 2 * i128::from(self.external_gain[index(part)]);
            }
            for (other, words) in graph.of(part) {
                let member = self.seen[index(other)] == self.now;
                if member && self.side[index(part)] != self.side[index(other)] {
                    cost += i128::from(words * centre_distance);
                }
            }
        }
        cost
    }

    /// Moves all members to the second side, then one after the other to the first: the one with
    /// the greatest gain.
    fn grow(
        &mut self,
        graph: &PartGraph,
        members: &[u32],
        start: u32,
        first: usize,
        centre_distance: i64,
    ) {
        for &part in members {
            self.side[index(part)] = true;
        }
        self.start_pass(graph, members, centre_distance);
        let mut next = start;
        for _ in 0..first {
            self.move_part(graph, next, centre_distance);
            match self.best_move(1) {
                Some(part) => next = part,
                None => break,
            }
        }
    }

    /// Finds four ends of the members' graph, like the corners of a sheet. The distances to them
    /// give three directions to sweep over it: from corner to corner, and from edge to edge in two
    /// ways.
    fn find_sweeps(&mut self, graph: &PartGraph, members: &[u32], start: u32) {
        let end = |bipartition: &Self| *bipartition.log.last().expect("a piece has members");
        self.reach(graph, members, start);
        let a = end(self);
        self.reach(graph, members, a);
        let b = end(self);
        for &part in members {
            let distance = self.distance[index(part)];
            self.sweeps[index(part)] = [distance, distance, distance];
        }
        self.reach(graph, members, b);
        let row = |part: &u32| index(*part);
        let aside = |part: &&u32| self.sweeps[row(part)][0].min(self.distance[row(part)]);
        let c = members.iter().max_by_key(aside).copied().unwrap_or(a);
        self.add_distances(members, [-1, -1, -1]);
        self.reach(graph, members, c);
        let d = end(self);
        self.add_distances(members, [0, 1, -1]);
        self.reach(graph, members, d);
        self.add_distances(members, [0, -1, 1]);
    }

    fn add_distances(&mut self, members: &[u32], signs: [i32; 3]) {
        for &part in members {
            let distance = self.distance[index(part)];
            for (sweep, sign) in self.sweeps[index(part)].iter_mut().zip(signs) {
                *sweep += sign * distance;
            }
        }
    }

    /// Puts the members that a sweep reaches first on the first side.
    fn sweep(&mut self, members: &[u32], which: usize, first: usize) {
        self.log.clear();
        self.log.extend_from_slice(members);
        let sweeps = &self.sweeps;
        self.log.sort_unstable_by_key(|&part| (sweeps[index(part)][which], part));
        for (row, &part) in self.log.iter().enumerate() {
            self.side[index(part)] = row >= first;
        }
    }

    /// Lists all members in the order of their distance from `start`, and records the distances;
    /// unreachable members come last.
    fn reach(&mut self, graph: &PartGraph, members: &[u32], start: u32) {
        for &part in members {
            self.moved[index(part)] = false;
        }
        self.log.clear();
        let mut base = 0;
        for &root in std::iter::once(&start).chain(members) {
            if std::mem::replace(&mut self.moved[index(root)], true) {
                continue;
            }
            let mut head = self.log.len();
            self.log.push(root);
            self.distance[index(root)] = base;
            while head < self.log.len() {
                let from = self.log[head];
                head += 1;
                for (other, _) in graph.of(from) {
                    let row = index(other);
                    if self.seen[row] == self.now && !self.moved[row] {
                        self.moved[row] = true;
                        self.distance[row] = self.distance[index(from)] + 1;
                        base = base.max(self.distance[row]);
                        self.log.push(other);
                    }
                }
            }
        }
    }

    /// One pass: members change sides in pairs, one each way, those with the greatest gain first,
    /// each once; then the best division of the pass is restored. False if that is the one before
    /// the pass.
    fn pass(
        &mut self,
        graph: &PartGraph,
        members: &[u32],
        first: usize,
        centre_distance: i64,
    ) -> bool {
        self.start_pass(graph, members, centre_distance);
        self.log.clear();
        let mut gained = 0;
        let mut best = (0, 0);
        for _ in 0..first.min(members.len() - first) {
            for from in [0, 1] {
                let Some(part) = self.best_move(from) else { break };
                gained += self.gain[index(part)];
                self.move_part(graph, part, centre_distance);
                self.log.push(part);
            }
            if self.log.len() % 2 == 1 {
                break;
            }
            if gained > best.0 {
                best = (gained, self.log.len());
            }
            if self.log.len() > best.1 + FRUITLESS_MOVES.max(members.len() / 8) {
                break;
            }
        }
        for &part in &self.log[best.1..] {
            self.side[index(part)] = !self.side[index(part)];
        }
        best.0 > 0
    }

    /// Computes the gains of all members and marks them movable.
    fn start_pass(&mut self, graph: &PartGraph, members: &[u32], centre_distance: i64) {
        for heap in &mut self.heaps {
            heap.clear();
        }
        for &part in members {
            let side = self.side[index(part)];
            let external_gain = self.external_gain[index(part)];
            let mut gain = if side { -external_gain } else { external_gain };
            for (other, words) in graph.of(part) {
                if self.seen[index(other)] == self.now {
                    let together = side == self.side[index(other)];
                    gain +=
                        if together { -words * centre_distance } else { words * centre_distance };
                }
            }
            self.gain[index(part)] = gain;
            self.moved[index(part)] = false;
            self.heaps[usize::from(side)].push((gain, part));
        }
    }

    /// The member of a side with the greatest gain.
    fn best_move(&mut self, side: usize) -> Option<u32> {
        while let Some((gain, part)) = self.heaps[side].pop() {
            let row = index(part);
            if !self.moved[row] && self.gain[row] == gain && usize::from(self.side[row]) == side {
                return Some(part);
            }
        }
        None
    }

    /// Moves a part to the other side; it stays there for the rest of the pass.
    fn move_part(&mut self, graph: &PartGraph, part: u32, centre_distance: i64) {
        let side = !self.side[index(part)];
        self.side[index(part)] = side;
        self.moved[index(part)] = true;
        for (other, words) in graph.of(part) {
            let row = index(other);
            if self.seen[row] != self.now || self.moved[row] {
                continue;
            }
            let move_part = 2 * words * centre_distance;
            self.gain[row] += if self.side[row] == side { -move_part } else { move_part };
            self.heaps[usize::from(self.side[row])].push((self.gain[row], other));
        }
    }
}
