//! The complete exchange of a ring in rounds, as few as links and agents allow.
//!
//! In a round no cell sends or receives twice and no link carries two messages. The messages are
//! those of [`super::ring_aapc`], in *chains* that close the ring in one direction: on a ring of `n` =
//! 2m cells, the chain of two *places* (coordinates modulo m) `a` and `b` has the four messages
//! between the cells `a`, `b`, `a + m`, `b + m` in their order, and the chain of a single place the
//! two messages over m links. The chains of all pairs of places, in each direction, and of all single
//! places, in either direction, are the complete exchange, without the cells that send to themselves.
//!
//! On a ring of `n` = 2m - 1 cells the chains are those of the ring with one more cell, which is left
//! out: the message to it and the one from it become one over m - 1 links, and the messages over
//! it lose a link. Then no chain of a single place is needed, and every link is used by every chain.
//!
//! A round is a chain in each direction, if they have no place in common: a matching of chains. A
//! cell is busy in n - 1 rounds and sends to itself in another one. This makes the greater of n and
//! n^2/8 rounds, rounded as needed, for all n up to 32 but 5, which takes 6.
//!
//! Unlike the steps of [`super::ring_aapc`], rounds of rings may be combined freely: the products of
//! the rounds of two rings are the rounds of a torus ([`super::grid_aapc`]).

use conset_ir::convert::{index, to_u32};

use super::matching::matching;

/// The longest ring.
const LONGEST: u32 = 32;

/// The rounds of a ring of one size.
#[derive(Clone, Debug)]
pub(super) struct RingRounds {
    cells: u32,
    /// Places.
    half: u32,
    rounds: u32,
    /// The rounds of the chains of places a <= b, at `(direction * half + a) * half + b`.
    chains: Vec<u32>,
    /// For each place the round in which its cells send to themselves.
    selves: Vec<u32>,
}

/// The places of a chain; twice the same of a single place.
type Chain = [u32; 2];

impl RingRounds {
    /// The rounds of a ring; `None` for a single cell, and for rings that are too long.
    pub(super) fn new(cells: u32) -> Option<Self> {
        if !(2..=LONGEST).contains(&cells) {
            return None;
        }
        let half = cells.div_ceil(2);
        let pairs = || (0..half).flat_map(|a| (a + 1..half).map(move |b| [a, b]));
        let single = |side: u32| {
            let places =
                (0..half).filter(move |place| cells.is_multiple_of(2) && place % 2 == side);
            places.map(|place| [place; 2])
        };
        let sides: [Vec<Chain>; 2] = [0, 1].map(|side| pairs().chain(single(side)).collect());
        let apart = |a: &Chain, b: &Chain| a.iter().all(|place| !b.contains(place));
        let partners = matching(0..sides[0].len(), sides[1].len(), |row| {
            let first = &sides[0][row];
            (0..sides[1].len()).filter(|&other| apart(first, &sides[1][other]))
        });
        let mut rounds = to_u32(sides[0].len());
        let mut chains = vec![0; index(2 * half * half)];
        let mut busy: Vec<Vec<bool>> = vec![Vec::new(); index(half)];
        let mut put = |side: u32, chain: Chain, round: u32| {
            chains[index((side * half + chain[0]) * half + chain[1])] = round;
            for place in chain {
                let busy = &mut busy[index(place)];
                busy.resize(busy.len().max(index(round) + 1), false);
                busy[index(round)] = true;
            }
        };
        sides[0].iter().zip(0..).for_each(|(&chain, round)| put(0, chain, round));
        for (&chain, partner) in sides[1].iter().zip(partners) {
            let round = partner.map_or(rounds, to_u32);
            rounds = rounds.max(round + 1);
            put(1, chain, round);
        }
        // A place is idle in the first round that it does not use, at the latest in round n - 1.
        let idle = |busy: &Vec<bool>| busy.iter().position(|&busy| !busy).unwrap_or(busy.len());
        let selves: Vec<u32> = busy.iter().map(|busy| to_u32(idle(busy))).collect();
        let rounds = selves.iter().map(|round| round + 1).fold(rounds, u32::max);
        Some(Self { cells, half, rounds, chains, selves })
    }

    /// Number of rounds.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The round of the message between two coordinates, and whether it goes towards larger ones.
    pub(super) fn round_of(&self, source: u32, target: u32) -> (u32, bool) {
        let m = self.half;
        let (a, b) = (source % m, target % m);
        if source == target {
            return (self.selves[index(a)], true);
        }
        let ahead = if target > source { target - source } else { target + self.cells - source };
        let (chain, forward) = match a == b {
            true if self.cells.is_multiple_of(2) => ([a, a], a.is_multiple_of(2)),
            // Over the cell that is left out, whose place is the last one.
            true => ([a, m - 1], ahead < m),
            false => ([a.min(b), a.max(b)], ahead < m),
        };
        let side = u32::from(!forward);
        (self.chains[index((side * m + chain[0]) * m + chain[1])], forward)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// No round has two messages of an agent or a link, all routes are shortest, and there are as
    /// many rounds as agents or links need.
    #[test]
    fn rounds_share_nothing_and_are_as_few_as_possible() {
        for n in 2..=LONGEST {
            let ring = RingRounds::new(n).unwrap();
            let mut seen = BTreeSet::new();
            for (s, t) in (0..n).flat_map(|s| (0..n).map(move |t| (s, t))) {
                let (round, forward) = ring.round_of(s, t);
                assert!(round < ring.rounds());
                assert!(seen.insert((round, "send", s)) && seen.insert((round, "receive", t)));
                let (mut at, mut links) = (s, 0);
                while at != t {
                    let next = if forward { (at + 1) % n } else { (at + n - 1) % n };
                    let link = if forward { "forward" } else { "backward" };
                    assert!(seen.insert((round, link, at)), "{n}: {s} {t}");
                    (at, links) = (next, links + 1);
                }
                assert!(links <= n / 2, "{n}: {s} {t}");
            }
            let hops: u32 = (1..n).map(|ahead| ahead.min(n - ahead)).sum();
            let fewest = n.max(hops.div_ceil(2));
            assert_eq!(ring.rounds(), if n == 5 { 6 } else { fewest }, "{n}");
        }
    }

    #[test]
    fn single_cells_and_long_rings_have_none() {
        assert!([0, 1, LONGEST + 1, u32::MAX].into_iter().all(|n| RingRounds::new(n).is_none()));
    }
}
