//! Units: the pieces of connections that are scheduled, their slots, and lower bounds of the number
//! of slots.

use super::SlotConfig;
use crate::problem::Problem;
use conset_ir::convert::{index, to_u32, to_u64};

/// The units of a set: those of connection `x` are `first[x]..first[x + 1]`.
pub(super) struct Units {
    pub(super) first: Vec<u32>,
    pub(super) connection: Vec<u32>,
    /// Words of each unit.
    pub(super) words: Vec<u32>,
    /// The slots of each unit: its clocks rounded to the nearest number of slots, so that errors
    /// cancel out. Exact starts are computed at the end.
    pub(super) slots: Vec<u16>,
    /// Clocks of a slot.
    pub(super) slot: u64,
    /// Slots of the longest unit.
    pub(super) longest: usize,
    /// The least number of slots for ports and links.
    pub(super) fewest_slots: u32,
}

/// Ways to cut a set that are worth an attempt: words of a unit at most, and slots of such a unit.
/// `budget` is that of the search: it is not worth many units.
pub(super) fn cuts(problem: &Problem<'_>, config: &SlotConfig, budget: u64) -> Vec<(u32, u32)> {
    let words = || problem.set.connections().iter().map(|c| c.words);
    let longest = words().max().unwrap_or(0).max(1);
    let mean = to_u32(words().map(u64::from).sum::<u64>() / to_u64(words().len().max(1)));
    // Units shorter than a quarter of a switch are not worth their channels.
    let least = to_u32((problem.switch / 4 / problem.word_clocks).min(u64::from(longest)).max(1));
    let uneven = longest > mean + mean / 2;
    let cuts = if uneven { &config.uneven_cuts } else { &config.cuts };
    let of = |whole: u32| {
        cuts.iter().map(move |&(pieces, slots)| (whole.div_ceil(pieces).max(least), slots))
    };
    let lengths = of(longest).chain(of(mean.max(1)).filter(|_| uneven));
    // No attempt is worth many units for each connection.
    let count = |length: u32| words().map(|words| u64::from(words.div_ceil(length))).sum::<u64>();
    let most = (MOST * to_u64(problem.set.len())).max(budget / PER_UNIT);
    lengths.filter(|&(length, _)| count(length) <= most).collect()
}

/// Units for each connection, on average, that an attempt may have, whatever the budget.
const MOST: u64 = 4;

/// The budget for each unit of attempts that have more units than that.
const PER_UNIT: u64 = 1 << 19;

impl Units {
    /// Cuts connections into units of at most `length` words, the longest of which has `grain`
    /// slots.
    pub(super) fn cut(problem: &Problem<'_>, (length, grain): (u32, u32)) -> Self {
        let connections = problem.set.connections();
        let mut this = Self {
            first: vec![0],
            connection: Vec::new(),
            words: Vec::new(),
            slots: Vec::new(),
            slot: 0,
            longest: 1,
            fewest_slots: 0,
        };
        for (x, connection) in connections.iter().enumerate() {
            let pieces = connection.words.div_ceil(length).max(1);
            for piece in 0..pieces {
                let (words, rest) = (connection.words / pieces, connection.words % pieces);
                this.words.push(words + u32::from(piece < rest));
                this.connection.push(to_u32(x));
            }
            this.first.push(to_u32(this.words.len()));
        }
        let clocks =
            |unit: usize| problem.clocks(index(this.connection[unit])).of(this.words[unit]);
        let longest = (0..this.words.len()).map(clocks).max().unwrap_or(1);
        let slot = longest.div_ceil(u64::from(grain)).max(1);
        this.slots = (0..this.words.len())
            .map(|unit| ((clocks(unit) + slot / 2) / slot).clamp(1, u64::from(grain)))
            .map(|slots| u16::try_from(slots).unwrap_or(u16::MAX))
            .collect();
        this.slot = slot;
        this.longest = this.slots.iter().copied().max().map_or(1, usize::from);
        this.fewest_slots = this.fewest(problem);
        this
    }

    fn fewest(&self, problem: &Problem<'_>) -> u32 {
        let mut ports = vec![0u64; problem.port_count];
        let mut hops = 0;
        for (&x, &slots) in self.connection.iter().zip(&self.slots) {
            let [source, target] = problem.ports[index(x)].map(index);
            ports[source] += u64::from(slots);
            if target != source {
                ports[target] += u64::from(slots);
            }
            hops += u64::from(slots) * u64::from(problem.hops(index(x)));
        }
        let capacity: u64 = problem.capacity.iter().map(|&c| u64::from(c)).sum();
        let ports = ports.into_iter().max().unwrap_or(0);
        let links = hops.div_ceil(capacity.max(1));
        // The bound of time counts words and not slots; a flow or a cut may prove more.
        let phases = u64::from(problem.bounds.phases);
        let clocks = problem.bounds.clocks.saturating_sub(phases * problem.switch);
        let flow = if self.are_equal() {
            // The last words of each phase may be on their way for so long.
            let latency =
                |x: usize| problem.clocks(x).pipeline_latency(usize::from(problem.hops(x)));
            let latency = (0..problem.set.len()).map(latency).max().unwrap_or(0);
            clocks.saturating_sub(phases * latency).div_ceil(self.slot)
        } else {
            clocks / self.slot
        };
        let slots = ports.max(links).max(flow).max(to_u64(self.longest));
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    /// Whether all units have equally many words, but for one, so that their slots have no errors
    /// that could cancel out.
    fn are_equal(&self) -> bool {
        let least = self.words.iter().copied().min().unwrap_or(0);
        self.words.iter().all(|&words| words <= least + 1)
    }

    /// Whether the longest unit is much longer than they are on average.
    pub(super) fn are_uneven(&self) -> bool {
        let sum: u64 = self.words.iter().map(|&words| u64::from(words)).sum();
        let longest = u64::from(self.words.iter().copied().max().unwrap_or(0));
        longest * to_u64(self.words.len()) > sum + sum / 4
    }

    pub(super) fn count(&self) -> usize {
        self.words.len()
    }

    /// The units of a connection.
    pub(super) fn of(&self, x: u32) -> std::ops::Range<usize> {
        index(self.first[index(x)])..index(self.first[index(x) + 1])
    }
}
