//! The complete exchange of a line of cells in rounds, as few as its links allow.
//!
//! In a round no cell sends or receives twice and no link carries two messages. The middle link of a
//! line of `n` cells carries floor(n^2/4) messages in each direction, so this many rounds are needed.
//! They are grouped in `n` *classes* of floor or ceil(n/4) rounds. In a class every cell sends once and
//! receives once: it is a permutation, and the classes together are a Latin square.
//!
//! The rounds of several lines can be combined to rounds of a mesh, whatever its dimensions: for each
//! dimension a class, whose messages cross the dimensions in order, and the rounds of a message in its
//! lines added modulo the greatest number of rounds of these classes. In a row, all messages of a round
//! of the mesh are of one round of the line; in a column they are as well, since a column is
//! entered by one message of every row. For n x n cells, n a multiple of 4, these are n^3/4 rounds,
//! as few as the links of the middle allow.
//!
//! If no link of a class carries more messages than the class has rounds, these can be divided over
//! the rounds: those in one direction are intervals of a line. Such a Latin square is found by a
//! local search. It begins with a random one and exchanges, in two classes, the messages of some cells
//! to the same cells, which keeps all permutations; an exchange is undone if the excess on
//! links increases. For up to 64 cells it takes less than a second, for 16 cells less than a millisecond.

use std::sync::OnceLock;

use conset_ir::convert::{index, to_u32};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::matching::matching;

/// The longest line.
const LONGEST: u32 = 64;

/// Random Latin squares that are tried.
const ATTEMPTS: u64 = 8;

/// The rounds of a line of one size.
#[derive(Clone, Debug)]
pub(super) struct LineRounds {
    cells: u32,
    /// The class of each message and its round in the class, at `source * cells + target`.
    places: Vec<[u32; 2]>,
    /// The rounds of each class; 0 if all its cells send to themselves.
    rounds: Vec<u32>,
}

impl LineRounds {
    /// The rounds of a line, which are searched for once; `None` for a single cell, and for lines that
    /// are too long.
    pub(super) fn of(cells: u32) -> Option<&'static Self> {
        static KNOWN: [OnceLock<LineRounds>; index(LONGEST) + 1] =
            [const { OnceLock::new() }; index(LONGEST) + 1];
        let known = KNOWN.get(index(cells)).filter(|_| cells > 1)?;
        Some(known.get_or_init(|| Self::search(index(cells))))
    }

    /// The rounds of the first Latin square that is found without excess, or of the best one.
    fn search(cells: usize) -> Self {
        let mut best = Square::searched(cells, 0);
        for seed in 1..ATTEMPTS {
            if best.excess == 0 {
                break;
            }
            let other = Square::searched(cells, seed);
            if other.excess < best.excess {
                best = other;
            }
        }
        best.divided()
    }

    /// Number of classes.
    pub(super) fn classes(&self) -> u32 {
        self.cells
    }

    /// Rounds of a class.
    pub(super) fn rounds(&self, class: u32) -> u32 {
        self.rounds[index(class)]
    }

    /// The greatest number of rounds of a class.
    pub(super) fn most_rounds(&self) -> u32 {
        self.rounds.iter().copied().max().unwrap_or(0)
    }

    /// The class of the message between two coordinates, and its round in the class.
    pub(super) fn place_of(&self, source: u32, target: u32) -> [u32; 2] {
        self.places[index(source * self.cells + target)]
    }
}

/// A Latin square of classes and cells, and the load of links.
struct Square {
    cells: usize,
    /// The target of each cell in each class, at `class * cells + source`.
    targets: Vec<usize>,
    /// The source of each cell in each class, at `class * cells + target`.
    sources: Vec<usize>,
    /// Messages on the link behind each cell, towards larger coordinates, at `class * cells + cell`.
    /// The other direction has as many: the cells on either side send and receive equally often.
    loads: Vec<u32>,
    /// The intended rounds of each class.
    rounds: Vec<u32>,
    /// The sum over classes and links of the squares of loads beyond the rounds of the class.
    excess: u32,
    rng: ChaCha8Rng,
}

impl Square {
    /// What a search from a random Latin square ends with.
    fn searched(cells: usize, seed: u64) -> Self {
        let mut square = Self::random(cells, seed);
        square.search();
        square
    }

    /// A random Latin square: for one class after the other a matching of the messages that are left.
    fn random(cells: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut left: Vec<Vec<usize>> = vec![(0..cells).collect(); cells];
        let mut order: Vec<usize> = (0..cells).collect();
        let (mut targets, mut sources) = (vec![0; cells * cells], vec![0; cells * cells]);
        for class in 0..cells {
            left.iter_mut().for_each(|left| left.shuffle(&mut rng));
            order.shuffle(&mut rng);
            // What is left is a regular graph, which has a perfect matching.
            let found = matching(order.iter().copied(), cells, |cell| left[cell].iter().copied());
            for (target, source) in found.into_iter().enumerate() {
                let source = source.expect("a perfect matching");
                targets[class * cells + source] = target;
                sources[class * cells + target] = source;
                left[source].retain(|&other| other != target);
            }
        }
        let (fewest, larger) = (cells / 4, cells * cells / 4 - cells * (cells / 4));
        let rounds = (0..cells).map(|class| to_u32(fewest + usize::from(class < larger))).collect();
        let loads = vec![0; cells * cells];
        let mut square = Self { cells, targets, sources, loads, rounds, excess: 0, rng };
        for class in 0..cells {
            for source in 0..cells {
                let target = square.targets[class * cells + source];
                square.loads_of(class, source..target).iter_mut().for_each(|load| *load += 1);
            }
            square.excess += square.excess_of(class);
        }
        square
    }

    fn loads_of(&mut self, class: usize, links: std::ops::Range<usize>) -> &mut [u32] {
        match links.is_empty() {
            true => &mut [],
            false => &mut self.loads[class * self.cells..][links],
        }
    }

    fn excess_of(&self, class: usize) -> u32 {
        let loads = &self.loads[class * self.cells..][..self.cells];
        loads.iter().map(|load| load.saturating_sub(self.rounds[class]).pow(2)).sum()
    }

    /// Exchanges messages of two classes while the excess does not grow, until there is none or a
    /// limit is reached.
    fn search(&mut self) {
        let mut cycle = Vec::new();
        for _ in 0..8 * self.cells.pow(3) {
            if self.excess == 0 {
                break;
            }
            let first = self.rng.random_range(0..self.cells);
            let second = (first + self.rng.random_range(1..self.cells)) % self.cells;
            // Each cell's target in the second class is the next one's in the first.
            let start = self.rng.random_range(0..self.cells);
            cycle.clear();
            cycle.push(start);
            let mut at = start;
            loop {
                at = self.sources[first * self.cells + self.targets[second * self.cells + at]];
                if at == start {
                    break;
                }
                cycle.push(at);
            }
            let before = self.excess_of(first) + self.excess_of(second);
            self.exchange(&cycle, first, second);
            let after = self.excess_of(first) + self.excess_of(second);
            if after > before {
                self.exchange(&cycle, first, second);
            } else {
                self.excess = self.excess + after - before;
            }
        }
    }

    /// Exchanges the messages of some cells in two classes.
    fn exchange(&mut self, members: &[usize], first: usize, second: usize) {
        for &source in members {
            let [a, b] = [first, second].map(|class| class * self.cells + source);
            let (old, new) = (self.targets[a], self.targets[b]);
            self.loads_of(first, source..old).iter_mut().for_each(|load| *load -= 1);
            self.loads_of(first, source..new).iter_mut().for_each(|load| *load += 1);
            self.loads_of(second, source..new).iter_mut().for_each(|load| *load -= 1);
            self.loads_of(second, source..old).iter_mut().for_each(|load| *load += 1);
            self.targets.swap(a, b);
            self.sources[first * self.cells + new] = source;
            self.sources[second * self.cells + old] = source;
        }
    }

    /// Divides the messages of each class over its rounds; over more rounds if a link has an excess.
    fn divided(&self) -> LineRounds {
        let n = self.cells;
        let mut places = vec![[0; 2]; n * n];
        let mut rounds = vec![0; n];
        for (class, rounds) in rounds.iter_mut().enumerate() {
            // The first cell that a round can still leave, on the way ahead and on the way back.
            let mut free: [Vec<usize>; 2] = Default::default();
            let mut put = |way: usize, (from, to): (usize, usize), message: usize| {
                let free = &mut free[way];
                let fits = free.iter().position(|&free| free <= from);
                let round = fits.unwrap_or_else(|| {
                    free.push(0);
                    free.len() - 1
                });
                free[round] = to;
                places[message] = [to_u32(class), to_u32(round)];
                *rounds = (*rounds).max(to_u32(round) + 1);
            };
            for source in 0..n {
                let target = self.targets[class * n + source];
                if source < target {
                    put(0, (source, target), source * n + target);
                }
                // From the other end of the line.
                let source = n - 1 - source;
                let target = self.targets[class * n + source];
                if source > target {
                    put(1, (n - 1 - source, n - 1 - target), source * n + target);
                }
            }
            for cell in (0..n).filter(|cell| self.targets[class * n + cell] == *cell) {
                places[cell * n + cell] = [to_u32(class), 0];
            }
        }
        LineRounds { cells: to_u32(n), places, rounds }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No round has two messages of an agent or a link, every cell sends once in a class, and there
    /// are as many rounds as the middle link needs.
    #[test]
    fn rounds_share_nothing_and_are_as_few_as_possible() {
        for n in (2..=20).chain([32, 33]) {
            let line = LineRounds::of(n).unwrap();
            let mut seen = BTreeSet::new();
            for (s, t) in (0..n).flat_map(|s| (0..n).map(move |t| (s, t))) {
                let [class, round] = line.place_of(s, t);
                assert!(class < line.classes() && round < line.rounds(class).max(1));
                assert!(
                    seen.insert((class, 0, "send", s)) && seen.insert((class, 0, "receive", t))
                );
                let way = if s < t { "ahead" } else { "back" };
                for link in s.min(t)..s.max(t) {
                    assert!(seen.insert((class, round, way, link)), "{n}: {s} {t}");
                }
            }
            let rounds: u32 = (0..n).map(|class| line.rounds(class)).sum();
            assert_eq!(rounds, n * n / 4, "{n}");
            assert_eq!(line.most_rounds(), (n * n / 4).div_ceil(n), "{n}");
        }
    }

    #[test]
    fn single_cells_and_long_lines_have_none() {
        assert!([0, 1, LONGEST + 1, u32::MAX].into_iter().all(|n| LineRounds::of(n).is_none()));
    }
}
