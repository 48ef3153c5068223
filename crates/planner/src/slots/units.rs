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

impl Units {
    /// Cuts the longest connection into so many units, unless they would be too short to be
    /// worth their channels.
    pub(super) fn new(problem: &Problem<'_>, pieces: u32) -> Self {
        let longest = problem.set.connections().iter().map(|c| c.words).max().unwrap_or(0).max(1);
        // A quarter of a switch.
        let least = (problem.switch / 4 / problem.word_clocks).min(u64::from(longest)) as u32;
        Self::of_length(problem, longest.div_ceil(pieces).max(least).max(1))
    }

    fn of_length(problem: &Problem<'_>, length: u32) -> Self {
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
        let flow = (left / slot.max(1)) as u32;
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
