//! How unevenly the shortest routes of a set load the cells of a network, however well they are chosen.
//!
//! On a torus all cells can carry equally many routes. On a mesh those in the middle carry more, so they
//! need more phases than the channels of all cells together. The estimate routes the connections, or a sample
//! of them, one after the other in all phases as one, over cells whose price grows steeply with their load.

use conset_ir::convert::{index, to_u64};

use super::routes::RouteSearch;
use crate::problem::{Incoming, Problem};

/// Connections of which a larger set is represented.
const SAMPLE: usize = 1 << 15;

/// How often each connection gets a new route.
const PASSES: u32 = 3;

/// The price of a cell with an average load, and in how many parts that is divided. (The price of eight
/// times that load, before its division, has 62 bits.)
const AVERAGE_PRICE: u64 = 1 << 8;
const SHARES: u64 = 1 << 6;

/// The greatest load of a cell and the average load, both in channels, if the routes of a set are chosen
/// so that loads are even.
pub(super) fn loads(problem: &Problem<'_>, incoming: &Incoming) -> (u64, u64) {
    let set = problem.set;
    let sample: Vec<usize> = (0..set.len()).step_by(set.len().div_ceil(SAMPLE).max(1)).collect();
    let channels: u64 = sample.iter().map(|&x| u64::from(problem.hops(x)) + 1).sum();
    let cells = to_u64(problem.cell_count()).max(1);
    let mut search = RouteSearch::new(problem.cell_count());
    let mut loads = vec![0u64; problem.cell_count()];
    let mut routes: Vec<Vec<u32>> = vec![Vec::new(); sample.len()];
    for _ in 0..PASSES {
        for (&x, route) in sample.iter().zip(&mut routes) {
            if problem.interrupt.is_requested() {
                return (1, 1);
            }
            route.iter().for_each(|&cell| loads[index(cell)] -= 1);
            search.aim(problem, incoming, x);
            let price = |cell: u32| {
                let share = (loads[index(cell)] * cells * SHARES / channels.max(1)).min(8 * SHARES);
                1 + AVERAGE_PRICE * share.pow(6) / SHARES.pow(6)
            };
            search.cheapest(price, route);
            route.iter().for_each(|&cell| loads[index(cell)] += 1);
        }
    }
    (loads.into_iter().max().unwrap_or(0), channels.div_ceil(cells))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conset_ir::{CellId, Connection, ConnectionSet, Machine};
    use conset_partition_route::bounds;

    use super::*;

    /// The greatest load of all pairs of a machine over the average, in per cent.
    fn unevenness(spec: &str) -> u64 {
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        let cells = || machine.cells();
        let pairs = cells().flat_map(|a| cells().filter(move |&b| a != b).map(move |b| (a, b)));
        let connections = pairs.map(|(a, b): (CellId, CellId)| Connection::new(a, b, 1)).collect();
        let set = Arc::new(ConnectionSet::new("all", connections).unwrap());
        let bounds = bounds::bounds(&machine, &set).unwrap().summary();
        let problem = Problem::new(&machine, &set, bounds).unwrap();
        let (busiest, average) = loads(&problem, &problem.incoming());
        busiest * 100 / average
    }

    #[test]
    fn middles_of_meshes_are_crowded() {
        assert!(unevenness("torus:7x6") <= 102);
        let mesh = unevenness("mesh:8x8");
        assert!((105..112).contains(&mesh), "{mesh}");
    }
}
