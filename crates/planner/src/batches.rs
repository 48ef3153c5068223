//! Division of a large set into *batches*, which are planned one after the other.
//!
//! The routes of a set are all in memory while it is planned, checked and written. A set for which
//! they do not fit is divided first. Phases are divided by context switches anyway, so batches lose
//! little if each could be a run of phases of a good plan of the whole set: its words are evenly
//! spread over agents and links.
//!
//! On a torus, ring, hypercube or mesh batches are runs of the rounds of all-to-all communication
//! ([`crate::grid_aapc`]), which lose nothing. On other machines each batch has the same share of
//! the connections of every cell, at random.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{ConnectionSet, Lists, Machine};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::grid_aapc;

/// Divides a set into `count` batches of nearly equal size, at most one for each connection: row
/// `b` of the result has the connections of batch `b`, in ascending order.
///
/// Connections of the same round are in the same batch, so a batch may be empty if rounds are large.
/// An order between connections is ignored.
pub fn batches(machine: &Machine, set: &ConnectionSet, count: u32, seed: u64) -> Lists {
    let count = to_u64(set.len()).min(u64::from(count)).max(1);
    let timed = machine.parameters().has_timed_starts();
    let keys = grid_aapc::round_keys(machine.topology(), set, timed);
    let keys = keys.unwrap_or_else(|| shares(machine, set, seed));
    let mut order: Vec<u32> = (0..to_u32(set.len())).collect();
    order.sort_unstable_by_key(|&x| (keys[index(x)], x));
    let mut batch_of = vec![0u32; set.len()];
    let mut done = 0;
    for round in order.chunk_by(|&a, &b| keys[index(a)] == keys[index(b)]) {
        let batch = to_u32(done * count / to_u64(set.len()));
        round.iter().for_each(|&x| batch_of[index(x)] = batch);
        done += to_u64(round.len());
    }
    let rows = batch_of.iter().copied().zip(0..to_u32(set.len()));
    Lists::new(usize::try_from(count).expect("at most the connections"), rows)
}

/// For each connection the share of its source's connections that come before it, in a random order.
fn shares(machine: &Machine, set: &ConnectionSet, seed: u64) -> Vec<u64> {
    let sources = set.connections().iter().map(|c| c.source.0).zip(0..to_u32(set.len()));
    let mut by_source = Lists::new(machine.cell_count(), sources);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut shares = vec![0; set.len()];
    for source in 0..by_source.rows() {
        let own = by_source.of_mut(source);
        own.shuffle(&mut rng);
        let degree = to_u64(own.len());
        for (place, &x) in (0u64..).zip(&*own) {
            shares[index(x)] = (place << 32) / degree;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    fn all_to_all(spec: &str) -> (Machine, ConnectionSet) {
        let machine = Machine::from_spec(spec).unwrap();
        let cells = machine.cells().collect::<Vec<CellId>>();
        let pairs = cells.iter().flat_map(|&s| cells.iter().map(move |&t| (s, t)));
        let connections = pairs.filter(|(s, t)| s != t).map(|(s, t)| Connection::new(s, t, 3));
        let set = ConnectionSet::new("all", connections.collect()).unwrap();
        (machine, set)
    }

    /// Every connection is in one batch, and batches are about equally large at each source.
    #[test]
    fn batches_divide_the_set_evenly() {
        for (spec, count) in [("torus:8x8", 4), ("mesh:5x6", 7), ("torus:5x5", 3), ("ring:6", 1)] {
            let (machine, set) = all_to_all(spec);
            let batches = batches(&machine, &set, count, 1);
            assert_eq!(batches.rows(), count);
            let mut all: Vec<u32> = batches.items().to_vec();
            all.sort_unstable();
            assert_eq!(all, (0..to_u32(set.len())).collect::<Vec<u32>>());
            let share = set.len() / index(count);
            for batch in 0..count {
                let own = batches.of(batch);
                assert!(own.is_sorted());
                assert!(own.len().abs_diff(share) <= machine.cell_count(), "{spec} {batch}");
            }
        }
    }

    #[test]
    fn rounds_of_a_torus_stay_whole() {
        let (machine, set) = all_to_all("torus:8x8");
        let keys = grid_aapc::round_keys(machine.topology(), &set, false).unwrap();
        let batches = batches(&machine, &set, 5, 1);
        let mut seen = std::collections::BTreeMap::new();
        for batch in 0..batches.rows() {
            for &x in batches.of(batch) {
                assert_eq!(*seen.entry(keys[index(x)]).or_insert(batch), batch);
            }
        }
    }

    #[test]
    fn there_are_no_more_batches_than_connections() {
        let (machine, set) = all_to_all("mesh:2");
        assert_eq!(batches(&machine, &set, 9, 1).rows(), 2);
        let nothing = ConnectionSet::new("nothing", Vec::new()).unwrap();
        let none = batches(&machine, &nothing, 9, 1);
        assert_eq!((none.rows(), none.items().len()), (1, 0));
    }
}
