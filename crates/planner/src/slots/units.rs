//! Connections cut into units, and how many slots these need at least.

use crate::problem::Problem;

/// The units of a set: those of connection `x` are `first[x]..first[x + 1]`.
pub(super) struct Units {
    pub(super) first: Vec<u32>,
    pub(super) connection: Vec<u32>,
    /// Words of each unit.
    pub(super) words: Vec<u32>,
    /// Words of the longest unit.
    pub(super) longest: u32,
    /// Slots that ports and links need at least.
    pub(super) fewest_slots: u32,
}

/// Lengths of units in words that are worth an attempt.
pub(super) fn lengths(problem: &Problem<'_>, pieces: &[u32]) -> Vec<u32> {
    let words = || problem.set.connections().iter().map(|c| c.words);
    let longest = words().max().unwrap_or(0).max(1);
    let mean = (words().map(u64::from).sum::<u64>() / words().len().max(1) as u64) as u32;
    // Units shorter than a quarter of a switch are not worth their channels.
    let least = (problem.switch / 4 / problem.word_clocks).min(u64::from(longest)).max(1) as u32;
    let of = |whole: u32| pieces.iter().map(move |&pieces| whole.div_ceil(pieces).max(least));
    let uneven = longest > mean + mean / 2;
    let lengths = of(longest).chain(of(mean.max(1)).filter(|_| uneven));
    // No attempt is worth many units for each connection.
    let count = |length: u32| words().map(|words| u64::from(words.div_ceil(length))).sum::<u64>();
    lengths.filter(|&length| count(length) <= MOST * problem.set.len() as u64).collect()
}

/// Units for each connection, on average, that an attempt may have.
const MOST: u64 = 6;

impl Units {
    /// Cuts connections into units of at most so many words.
    pub(super) fn of_length(problem: &Problem<'_>, length: u32) -> Self {
        let connections = problem.set.connections();
        let mut this = Self {
            first: vec![0],
            connection: Vec::new(),
            words: Vec::new(),
            longest: 0,
            fewest_slots: 0,
        };
        let mut ports = vec![0u32; problem.port_count];
        let mut hops = 0u64;
        for (x, connection) in connections.iter().enumerate() {
            let pieces = connection.words.div_ceil(length).max(1);
            for piece in 0..pieces {
                let (words, rest) = (connection.words / pieces, connection.words % pieces);
                this.words.push(words + u32::from(piece < rest));
                this.connection.push(x as u32);
            }
            this.first.push(this.words.len() as u32);
            let [source, target] = problem.ports[x];
            ports[source as usize] += pieces;
            ports[target as usize] += pieces;
            hops += u64::from(pieces) * u64::from(problem.hops(x));
        }
        let capacity: u64 = problem.capacity.iter().map(|&c| u64::from(c)).sum();
        let ports = ports.into_iter().max().unwrap_or(0);
        let links = hops.div_ceil(capacity.max(1)) as u32;
        this.longest = this.words.iter().copied().max().unwrap_or(0);
        // The bound of time counts words and not units; a flow or a cut may prove more.
        let left = problem.bounds.clocks
            - (u64::from(problem.bounds.phases) * problem.switch).min(problem.bounds.clocks);
        let slot = u64::from(this.longest) * problem.word_clocks + problem.setup;
        let flow = u32::try_from(left / slot.max(1)).unwrap_or(u32::MAX);
        this.fewest_slots = ports.max(links).max(flow).max(1);
        this
    }

    pub(super) fn count(&self) -> usize {
        self.words.len()
    }

    /// The units of a connection.
    pub(super) fn of(&self, x: u32) -> std::ops::Range<usize> {
        self.first[x as usize] as usize..self.first[x as usize + 1] as usize
    }

    /// The length of a slot.
    pub(super) fn clocks(&self, problem: &Problem<'_>) -> u64 {
        u64::from(self.longest) * problem.word_clocks + problem.setup
    }
}
