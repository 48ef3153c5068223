//! First fit: connections move into idle entries of other rounds, so that fewer rounds remain.
//!
//! Rounds made for a complete exchange have idle entries where a set lacks connections, and where
//! the sizes of a torus are not multiples of 4. Rounds are processed again, those with the longest
//! connections first and among these the fullest first. Each connection goes into the first round
//! processed before in which its agents and links are free; otherwise it stays. So no round becomes
//! longer. Rounds keep their order, and connections keep their routes.
//!
//! A bit set for each port and edge says in which rounds it is busy. The cost is proportional to
//! connections, hops and rounds / 64.

use conset_ir::ConnectionSet;
use conset_ir::convert::{index, to_u32};

use super::paths::Paths;
use conset_partition_route::network::Network;

/// Words of bits that are held.
const TABLE_MEMORY_LIMIT: usize = 1 << 24;

/// Words of bits that are looked at for all connections together.
const EXPANSION_LIMIT: usize = 1 << 32;

/// Moves connections into holes of other rounds; returns the number of rounds and the round of
/// each connection.
pub(super) fn fill_rounds(
    network: &Network,
    set: &ConnectionSet,
    rounds: u32,
    round_of: Vec<u32>,
    paths: &Paths,
) -> (u32, Vec<u32>) {
    let words = index(rounds).div_ceil(64);
    let rows = network.outgoing().edge_count() + 2 * network.cell_count();
    let hops: usize = (0..set.len()).map(|x| paths.of(x).len() + 1).sum();
    if rows.saturating_mul(words) > TABLE_MEMORY_LIMIT
        || hops.saturating_mul(words) > EXPANSION_LIMIT
        || rounds <= fewest(network, set, paths, rows)
    {
        return (rounds, round_of);
    }
    let order = by_length(set, rounds, &round_of);
    let mut rank = vec![0u32; index(rounds)];
    for (row, &round) in order.iter().enumerate() {
        rank[index(round)] = to_u32(row);
    }
    let mut sequence: Vec<u32> = (0..to_u32(set.len())).collect();
    sequence.sort_by_key(|&x| {
        let hops = paths.of(index(x)).len();
        (rank[index(round_of[index(x)])], std::cmp::Reverse(hops))
    });
    let mut busy = vec![0u64; rows * words];
    let mut taken = vec![0u64; words];
    let mut placed = vec![0u32; set.len()];
    let mut at = Vec::new();
    for x in sequence {
        let own = rank[index(round_of[index(x)])];
        at.clear();
        at.extend(resources(network, set, paths, index(x)));
        taken.fill(0);
        for &row in &at {
            let busy = &busy[row * words..][..index(own) / 64 + 1];
            taken.iter_mut().zip(busy).for_each(|(taken, busy)| *taken |= busy);
        }
        let free = taken.iter().position(|&word| word != u64::MAX);
        let free = free.map(|word| 64 * to_u32(word) + taken[word].trailing_ones());
        let place = free.map_or(own, |free| free.min(own));
        placed[index(x)] = place;
        for &row in &at {
            busy[row * words + index(place) / 64] |= 1 << (place % 64);
        }
    }
    let mut used = vec![false; index(rounds)];
    for &place in &placed {
        used[index(order[index(place)])] = true;
    }
    let mut number = vec![0u32; index(rounds)];
    let mut count = 0;
    for (round, _) in used.iter().enumerate().filter(|(_, used)| **used) {
        number[round] = count;
        count += 1;
    }
    (count, placed.iter().map(|&place| number[index(order[index(place)])]).collect())
}

/// The agent ports and the edges that a connection keeps busy.
fn resources<'a>(
    network: &'a Network,
    set: &ConnectionSet,
    paths: &'a Paths,
    x: usize,
) -> impl Iterator<Item = usize> + 'a {
    let edges = network.outgoing().edge_count();
    let c = &set.connections()[x];
    let ports = [edges + 2 * c.source.index(), edges + 2 * c.target.index() + 1];
    let links = paths.of(x).windows(2).map(|pair| network.outgoing().edge(pair[0], pair[1]));
    ports.into_iter().chain(links)
}

/// Connections of the busiest agent port or edge.
fn fewest(network: &Network, set: &ConnectionSet, paths: &Paths, rows: usize) -> u32 {
    let mut load = vec![0u32; rows];
    for x in 0..set.len() {
        for row in resources(network, set, paths, x) {
            load[row] += 1;
        }
    }
    load.into_iter().max().unwrap_or(0)
}

/// The rounds, those with the longest connections and of these the fullest first.
fn by_length(set: &ConnectionSet, rounds: u32, round_of: &[u32]) -> Vec<u32> {
    let mut weight = vec![(0u32, 0u32); index(rounds)];
    for (c, &round) in set.connections().iter().zip(round_of) {
        let weight = &mut weight[index(round)];
        *weight = (weight.0.max(c.words), weight.1 + 1);
    }
    let mut order: Vec<u32> = (0..rounds).collect();
    order.sort_by_key(|&round| std::cmp::Reverse(weight[index(round)]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid_aapc;
    use conset_ir::{CellId, Connection, Machine};

    fn compacted(spec: &str, pairs: &[(u32, u32)]) -> (u32, u32) {
        let machine = Machine::from_spec(spec).unwrap();
        let connect = |&(s, t): &(u32, u32)| Connection::new(CellId(s), CellId(t), 5);
        let set = ConnectionSet::new("s", pairs.iter().map(connect).collect()).unwrap();
        let found = grid_aapc::rounds(machine.topology(), &set, false).unwrap();
        let network = Network::new(&machine);
        let (rounds, round_of) =
            fill_rounds(&network, &set, found.rounds, found.round_of.clone(), &found.paths);
        let mut seen = std::collections::BTreeSet::new();
        for (x, &round) in round_of.iter().enumerate() {
            assert!(round < rounds);
            for row in resources(&network, &set, &found.paths, x) {
                assert!(seen.insert((round, row)), "{spec} {x}");
            }
        }
        (found.rounds, rounds)
    }

    #[test]
    fn holes_are_filled_and_nothing_is_shared() {
        let all = |n: u32| -> Vec<(u32, u32)> {
            (0..n).flat_map(|s| (0..n).map(move |t| (s, t))).filter(|(s, t)| s != t).collect()
        };
        // Nothing to gain where links are all in use.
        let (before, after) = compacted("torus:12x12", &all(144));
        assert_eq!((before, after), (216, 216));
        for (spec, n, most) in [("torus:6x10", 60, 84), ("torus:5x5", 25, 32), ("ring:9", 9, 13)] {
            let (before, after) = compacted(spec, &all(n));
            assert!(after <= most, "{spec} {before} {after}");
        }
        let shift: Vec<(u32, u32)> = (0..64).map(|s| (s, (s + 1) % 64)).collect();
        assert!(compacted("torus:8x8", &shift).1 <= 3);
        assert_eq!(compacted("torus:8x8", &[]), (0, 0));
    }
}
