//! Few phases, by negotiated congestion.
//!
//! A number of phases is fixed and every connection has a phase and a route at all times, too many
//! for the channels of some cells at first. Cells that are too full cost more from iteration to
//! iteration, for being so now and for having been so before (PathFinder, McMurchie and Ebeling,
//! 1995): what has another way takes it in the end, and what has none stays. In an iteration every
//! connection is ripped up that passes a cell that is too full, and some others to make room, and
//! takes the cheapest route in its own phase or in one of some others; routes need not be shortest.
//!
//! Numbers of phases are tried from the bound upwards. An attempt ends when nothing is too full,
//! when what is has not become less for some iterations (then it goes round in circles), or when
//! its share of the work is done. Sets with an order or with requirements are not for this way.

use conset_ir::{ConnectionId, ConnectionSet, Machine};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::balance::Division;
use super::way::{CLOSED, UNIT, Way};
use conset_partition_route::network::{Distances, Network, UNREACHABLE};

/// Phases beside its own that a connection looks at.
const SAMPLED: usize = 4;
/// Of so many connections that could stay one is ripped up.
const STIRRED: u32 = 32;
/// Iterations without success after which an attempt ends.
const PATIENCE: u32 = 24;
/// Iterations of an attempt at most.
const ITERATIONS: u32 = 400;
/// Cells that the searches look at in all.
const LOOKED_AT: u64 = 1 << 24;
/// Cells of all phases together.
const HELD: usize = 1 << 22;

/// A division with as few phases as are found, at least `fewest` and at most `most`.
pub(super) fn fewest(
    machine: &Machine,
    set: &ConnectionSet,
    network: &Network,
    (fewest, most): (u32, u32),
    seed: u64,
) -> Option<Division> {
    let fewest = fewest.max(1);
    if set.is_empty() || network.cells.saturating_mul(most as usize) > HELD || fewest > most {
        return None;
    }
    let share = LOOKED_AT / u64::from(most - fewest + 1);
    (fewest..=most).find_map(|phases| {
        let mut search = Search::new(machine, set, network, phases, seed)?;
        search.negotiate(share).then_some(search.division)
    })
}

struct Search<'a> {
    set: &'a ConnectionSet,
    network: &'a Network,
    channels: u32,
    division: Division,
    /// By phase and cell: routes, and how much too full it has been.
    taken: Vec<u32>,
    past: Vec<u32>,
    /// The price of a route too many.
    present: u32,
    /// Connections, far ones first.
    sequence: Vec<u32>,
    distances: Distances,
    way: Way,
    rng: ChaCha8Rng,
    looked_at: u64,
}

impl<'a> Search<'a> {
    fn new(
        machine: &Machine,
        set: &'a ConnectionSet,
        network: &'a Network,
        phases: u32,
        seed: u64,
    ) -> Option<Self> {
        let mut distances = Distances::new(network, set.connections().iter().map(|c| c.target.0));
        let hops = set.connections().iter();
        let hops = hops.map(|c| distances.aim(network, c.source.0, c.target.0));
        let hops: Vec<u32> = hops.collect();
        if hops.contains(&UNREACHABLE) {
            return None;
        }
        let mut sequence: Vec<u32> = (0..set.len() as u32).collect();
        sequence.sort_by_key(|&x| std::cmp::Reverse(hops[x as usize]));
        let held = network.cells * phases as usize;
        let division =
            Division { phases, phase_of: vec![0; set.len()], paths: vec![Vec::new(); set.len()] };
        Some(Self {
            set,
            network,
            channels: machine.parameters().channels_per_cell,
            division,
            taken: vec![0; held],
            past: vec![0; held],
            present: UNIT,
            sequence,
            distances,
            way: Way::new(network.cells),
            rng: ChaCha8Rng::seed_from_u64(seed),
            looked_at: 0,
        })
    }

    /// Whether nothing is too full in the end.
    fn negotiate(&mut self, share: u64) -> bool {
        let (mut best, mut idle) = (u64::MAX, 0);
        for iteration in 0..ITERATIONS {
            for row in 0..self.sequence.len() {
                let x = self.sequence[row] as usize;
                let stirred = self.rng.random_range(0..STIRRED) == 0;
                if iteration == 0 || stirred || self.is_crowded(x) {
                    self.route_anew(x);
                }
            }
            let over = self.learn();
            if over == 0 {
                return true;
            }
            idle = if over < best { 0 } else { idle + 1 };
            best = best.min(over);
            if idle > PATIENCE || self.looked_at > share {
                return false;
            }
            self.present = (self.present + self.present / 4).min(UNIT << 8);
        }
        false
    }

    /// Whether a connection passes a cell that is too full.
    fn is_crowded(&self, x: usize) -> bool {
        let row = self.division.phase_of[x] as usize * self.network.cells;
        self.division.paths[x].iter().any(|&cell| self.taken[row + cell as usize] > self.channels)
    }

    /// Rips a connection up and gives it the cheapest route of those that are looked for.
    fn route_anew(&mut self, x: usize) {
        let old = self.division.phase_of[x];
        let mut best = std::mem::take(&mut self.division.paths[x]);
        self.book(old, &best, false);
        let mut cheapest = (self.find(x, old), old);
        if cheapest.0 < u64::MAX {
            best.clone_from(&self.way.path);
        }
        for _ in 0..SAMPLED.min(self.division.phases as usize - 1) {
            let phase = self.rng.random_range(0..self.division.phases);
            let price = self.find(x, phase);
            if price < cheapest.0 {
                cheapest = (price, phase);
                best.clone_from(&self.way.path);
            }
        }
        self.division.phase_of[x] = cheapest.1;
        self.book(cheapest.1, &best, true);
        self.division.paths[x] = best;
    }

    fn book(&mut self, phase: u32, path: &[u32], add: bool) {
        let row = phase as usize * self.network.cells;
        for &cell in path {
            let taken = &mut self.taken[row + cell as usize];
            *taken = if add { *taken + 1 } else { *taken - 1 };
        }
    }

    /// Finds the cheapest route in a phase; its price.
    fn find(&mut self, x: usize, phase: u32) -> u64 {
        let c = self.set.get(ConnectionId(x as u32));
        let ends = (c.source.0, c.target.0);
        self.distances.aim(self.network, ends.0, ends.1);
        let row = phase as usize * self.network.cells;
        let (channels, present) = (self.channels, self.present);
        let (taken, past) = (&self.taken[row..], &self.past[row..]);
        let price = |cell: u32| {
            let used = taken[cell as usize];
            let over = (used + 1).saturating_sub(channels);
            let crowd = UNIT * used.min(channels) / channels / 4;
            let now = present.saturating_mul(over);
            (UNIT + crowd + past[cell as usize]).saturating_add(now).min(CLOSED >> 8)
        };
        let found = self.way.find(self.network, &self.distances, ends, price, |_| 0);
        self.looked_at += self.way.looked_at() as u64;
        if !found {
            return u64::MAX;
        }
        self.way.path.iter().map(|&cell| u64::from(price(cell))).sum()
    }

    /// Routes too many in all; cells that have too many become dearer for good.
    fn learn(&mut self) -> u64 {
        let mut sum = 0;
        for (&taken, past) in self.taken.iter().zip(&mut self.past) {
            let over = taken.saturating_sub(self.channels);
            *past = (*past + over * UNIT / 4).min(UNIT << 8);
            sum += u64::from(over);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_found_fits(
            topology in 0usize..7,
            pairs in prop::collection::vec((0u32..64, 0u32..64), 1..60),
            channels in 1u32..6,
            seed in any::<u64>(),
        ) {
            let spec = ["torus:2x3", "mesh:3x3", "ring:2", "torus:2x2x2", "fat-tree:9", "ring:1",
                "torus:4x4"][topology];
            let machine = Machine::from_spec(spec).unwrap();
            let mut parameters = machine.parameters().clone();
            parameters.channels_per_cell = channels;
            let machine = Machine::new(
                machine.name(), machine.topology().clone(), parameters, vec![], vec![],
            ).unwrap();
            let cells: Vec<CellId> = machine.endpoints().collect();
            let any = |at: u32| cells[at as usize % cells.len()];
            let rows = pairs.iter().map(|&(s, t)| Connection::new(any(s), any(t), 9));
            let set = ConnectionSet::new("s", rows.collect()).unwrap();
            let network = Network::new(&machine);
            // As many phases as connections are enough for any.
            let range = (1, set.len() as u32);
            let found = fewest(&machine, &set, &network, range, seed).unwrap();
            let mut taken = vec![0; network.cells * found.phases as usize];
            for (x, c) in set.iter() {
                let path = &found.paths[x.index()];
                prop_assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
                for pair in path.windows(2) {
                    prop_assert!(network.next.of(pair[0]).contains(&pair[1]));
                }
                let row = found.phase_of[x.index()] as usize * network.cells;
                path.iter().for_each(|&cell| taken[row + cell as usize] += 1);
            }
            prop_assert!(taken.iter().all(|&taken| taken <= channels));
        }
    }
}
