//! All-to-all personalised communication on a torus or mesh: rounds that are products of those of
//! rings or lines.
//!
//! A connection crosses the dimensions in order. On a torus, its part in each dimension belongs to a step of
//! that dimension's ring ([`super::ring_aapc`]). The product of one step for each dimension
//! contains connections that use every link of its rings once: in a dimension, the rings through
//! the cells of the other dimensions' steps. A *round* consists of products of one class for each
//! dimension such that two products differ in at least two dimensions, so that no ring is used
//! twice: of the step numbers k, l, m, ..., those whose last less all others is the same modulo the
//! greatest number of steps in a dimension. Products in some directions and products in the
//! opposite directions share no link, so they share rounds; the second ones are shifted so that no
//! cell sends or receives twice. On 8x8 cells the 64 rounds use every link and every agent all the
//! time, so no timetable is shorter. On n x n cells, n a multiple of 4, the n^3/8 rounds use every
//! link. In dimensions of size 2 the rounds are the exchanges with the cell whose number differs in
//! certain bits.
//!
//! Consecutive rounds have the same cells. This matters where only some cells are busy in a round,
//! as on large tori: an idle cell would start its part of the next round early, on links that are
//! in use. Cells that send to themselves are usually idle too, so the rounds that contain them come
//! second, after a round of the same cells.
//!
//! On tori with a short or odd side these rounds are more than necessary. There the products of the
//! rounds of all rings ([`super::ring_rounds`]) are often fewer: in a round of a product, the cell
//! `(x, y)` sends along its row to where `x` sends in a round of the row's ring, and from there along
//! the column to where `y` sends in a round of the column's. In a row at most one message is for each
//! column, so no two meet. If one side has at most 8 cells, which need as many rounds, products are
//! as few as agents or the links of the other side allow: 56 rounds on 7x8, where the rounds above
//! are 64. Cells that have nothing to send in a round must not start the next one early, so products
//! are for machines with timed starts.
//!
//! On a mesh, rounds are those of its lines, combined as in [`super::line_rounds`].
//!
//! Every connection of any set has a place in these rounds. Connections that a set lacks leave idle
//! entries, which cost little if they are few; pricing shows whether the result is useful.
//! Connections between the same two cells are in the same round.

use conset_ir::convert::to_u32;
use conset_ir::{Connection, ConnectionSet, Topology};

use super::line_rounds::LineRounds;
use super::paths::Paths;
use super::ring_aapc::{Ring, Step};
use super::ring_rounds::RingRounds;

/// A round for every connection, and a path.
pub(super) struct GridRounds {
    pub(super) rounds: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// A dimension of more than one cell.
struct Dimension {
    size: u32,
    stride: u32,
}

/// The dimensions of a torus, ring, hypercube or mesh whose rounds are known.
struct RoundGrid {
    dimensions: Vec<Dimension>,
    parts: Parts,
}

/// What rounds are combined from, for each dimension.
enum Parts {
    /// Steps of rings. The numbers modulo `shifts` of the steps of a round add up to the same.
    Steps { rings: Vec<Ring>, shifts: u32 },
    /// Rounds of rings.
    Rings(Vec<RingRounds>),
    /// Classes of rounds of lines, at most `most` in a class.
    Lines { lines: Vec<&'static LineRounds>, most: u32 },
}

impl Parts {
    /// Those of the rings of a torus; rounds of rings if starts are timed and these are fewer.
    fn of_rings(dimensions: &[Dimension], timed: bool) -> Option<Self> {
        let rings: Vec<Ring> =
            dimensions.iter().map(|d| Ring::new(d.size)).collect::<Option<_>>()?;
        let shifts = rings.iter().map(|ring| ring.steps()).max()?.max(2);
        let classes: u64 = rings.iter().map(|ring| u64::from(ring.classes())).product();
        let rounds = (classes * u64::from(shifts)) << (dimensions.len() - 1);
        let products: Option<Vec<RingRounds>> =
            dimensions.iter().map(|d| RingRounds::new(d.size).filter(|_| timed)).collect();
        let count = |rings: &Vec<RingRounds>| -> u64 {
            rings.iter().map(|ring| u64::from(ring.rounds())).product()
        };
        let products = products.filter(|rings| count(rings) < rounds);
        Some(products.map_or(Self::Steps { rings, shifts }, Self::Rings))
    }

    /// Those of the lines of a mesh.
    fn of_lines(dimensions: &[Dimension]) -> Option<Self> {
        let lines: Vec<&LineRounds> =
            dimensions.iter().map(|d| LineRounds::of(d.size)).collect::<Option<_>>()?;
        let most = lines.iter().map(|line| line.most_rounds()).max()?;
        Some(Self::Lines { lines, most })
    }
}

impl RoundGrid {
    /// `None` where the topology has no rounds. Rounds may be products of rounds of rings if starts
    /// are timed.
    fn new(topology: &Topology, timed: bool) -> Option<Self> {
        let mut stride = 1u32;
        let mut dimensions = Vec::new();
        for size in topology.dims()? {
            if size > 1 {
                dimensions.push(Dimension { size, stride });
            }
            stride = stride.checked_mul(size)?;
        }
        let parts = match topology {
            Topology::Mesh { .. } => Parts::of_lines(&dimensions)?,
            _ => Parts::of_rings(&dimensions, timed)?,
        };
        Some(Self { dimensions, parts })
    }

    /// The steps of a connection, one for each dimension. Of rounds of rings, the rounds are
    /// classes; of lines, the rounds of a class are its steps.
    fn steps(&self, connection: &Connection, steps: &mut Vec<Step>) {
        let (s, t) = (connection.source.0, connection.target.0);
        let ends = self.dimensions.iter().map(|d| (s / d.stride % d.size, t / d.stride % d.size));
        steps.clear();
        match &self.parts {
            Parts::Steps { rings, .. } => {
                steps.extend(ends.zip(rings).map(|((from, to), ring)| ring.step_of(from, to)));
            }
            Parts::Rings(rings) => steps.extend(ends.zip(rings).map(|((from, to), ring)| {
                let (class, forward) = ring.round_of(from, to);
                Step { class, step: 0, forward }
            })),
            Parts::Lines { lines, .. } => {
                steps.extend(ends.zip(lines).map(|((from, to), line)| {
                    let [class, step] = line.place_of(from, to);
                    Step { class, step, forward: from < to }
                }));
            }
        }
    }

    /// What tells rounds apart, in their order.
    fn key(&self, steps: &[Step]) -> u64 {
        match &self.parts {
            Parts::Steps { rings, shifts } => key(rings, steps, *shifts),
            Parts::Rings(rings) => rings.iter().zip(steps).fold(0, |key, (ring, step)| {
                key * u64::from(ring.rounds()) + u64::from(step.class)
            }),
            Parts::Lines { lines, most } => {
                let (mut class, mut rounds, mut sum) = (0, 1, 0);
                for (line, step) in lines.iter().zip(steps) {
                    class = class * u64::from(line.classes()) + u64::from(step.class);
                    rounds = rounds.max(line.rounds(step.class));
                    sum += step.step;
                }
                class * u64::from((*most).max(1)) + u64::from(sum % rounds)
            }
        }
    }
}

/// For each connection a number that increases with its round; connections of the same round have
/// the same. `None` where the topology has no rounds.
pub(super) fn round_keys(
    topology: &Topology,
    set: &ConnectionSet,
    timed: bool,
) -> Option<Vec<u64>> {
    let grid = RoundGrid::new(topology, timed)?;
    let mut steps = Vec::with_capacity(grid.dimensions.len());
    let key = |connection: &Connection| {
        grid.steps(connection, &mut steps);
        grid.key(&steps)
    };
    Some(set.connections().iter().map(key).collect())
}

/// Puts the connections of a set into the rounds of a torus, ring, hypercube or mesh; `None` where the
/// topology has none.
pub(super) fn rounds(topology: &Topology, set: &ConnectionSet, timed: bool) -> Option<GridRounds> {
    let grid = RoundGrid::new(topology, timed)?;
    let mut keys = Vec::with_capacity(set.len());
    let mut paths = Paths::with_capacity(set.len());
    let mut steps = Vec::with_capacity(grid.dimensions.len());
    for connection in set.connections() {
        grid.steps(connection, &mut steps);
        keys.push(grid.key(&steps));
        let ends = (connection.source.0, connection.target.0);
        paths.push(path(ends, &grid.dimensions, &steps));
    }
    let (rounds, round_of) = without_holes(&keys);
    Some(GridRounds { rounds, round_of, paths })
}

/// What tells rounds apart that are no products, in their order: first by the cells, then those
/// without cells that send to themselves first.
fn key(rings: &[Ring], steps: &[Step], shifts: u32) -> u64 {
    let forward = steps[0].forward;
    let (mut tiling, mut family, mut selves) = (0u64, 0u64, 0u64);
    for (ring, step) in rings.iter().zip(steps) {
        tiling = tiling * u64::from(ring.classes()) + u64::from(ring.cells_of(step.class));
        family = 2 * family + u64::from(step.forward != forward);
        selves = 2 * selves + u64::from(ring.has_selves(step.class));
    }
    let (last, others) = steps.split_last().expect("a dimension");
    let others: u32 = others.iter().map(|step| step.step).sum();
    let shift = (last.step + others * (shifts - 1)) % shifts;
    // Backwards two shifts change places, so that two rounds have the same cells, or all the
    // shifts move on by one.
    let shift = match (forward, shifts % 2) {
        (true, _) => shift,
        (false, 0) => shift ^ 1,
        (false, _) => (shift + shifts - 1) % shifts,
    };
    let cells = tiling * u64::from(shifts) + u64::from(shift);
    let families = 1u64 << (rings.len() - 1);
    let all = 2 * families - 1;
    let among = match selves {
        0 => 2 * family,
        _ if selves == all => 2 * family + 1,
        _ => (1 + selves) * families + family,
    };
    cells * 2 * families * families + among
}

/// Numbers the rounds that are used from 0, in their order: a large torus has billions.
fn without_holes(keys: &[u64]) -> (u32, Vec<u32>) {
    let mut used = keys.to_vec();
    used.sort_unstable();
    used.dedup();
    let place = |key: &u64| to_u32(used.partition_point(|other| other < key));
    (to_u32(used.len()), keys.iter().map(place).collect())
}

/// The cells of a route over the dimensions in order.
fn path<'a>(
    (s, t): (u32, u32),
    dimensions: &'a [Dimension],
    steps: &'a [Step],
) -> impl Iterator<Item = u32> + 'a {
    let mut at = s;
    let ahead = dimensions.iter().zip(steps).flat_map(move |(d, step)| {
        let (mut place, to) = (s / d.stride % d.size, t / d.stride % d.size);
        std::iter::from_fn(move || {
            if place == to {
                return None;
            }
            let from = place;
            place = match step.forward {
                true if place + 1 == d.size => 0,
                true => place + 1,
                false if place == 0 => d.size - 1,
                false => place - 1,
            };
            Some((from, place, d.stride))
        })
    });
    std::iter::once(s).chain(ahead.map(move |(from, place, stride)| {
        at = at - from * stride + place * stride;
        at
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::CellId;

    fn complete(cells: u32) -> ConnectionSet {
        let pairs = (0..cells).flat_map(|s| (0..cells).map(move |t| (s, t)));
        let connections = pairs.map(|(s, t)| Connection::new(CellId(s), CellId(t), 1)).collect();
        ConnectionSet::new("all", connections).unwrap()
    }

    /// In a complete exchange no round has two connections of one agent or one link.
    #[test]
    fn rounds_share_nothing() {
        let torus = |dims: &[u32]| Topology::Torus { dims: dims.to_vec() };
        let tori = [&[4u32, 4][..], &[8, 8], &[4, 8], &[16, 8], &[16, 16], &[12, 12], &[6, 10]];
        let more = [&[4u32, 4, 4][..], &[8, 4, 2], &[3, 5, 6], &[7], &[1, 9, 1], &[2, 2, 2, 3]];
        let others = [Topology::Ring { cells: 16 }, Topology::Hypercube { dimension: 5 }];
        let meshes = [&[2u32, 2][..], &[5], &[4, 4], &[8, 8], &[6, 9], &[1, 7, 10], &[4, 3, 5]];
        let meshes = meshes.map(|dims| Topology::Mesh { dims: dims.to_vec() });
        let all = tori.into_iter().chain(more).map(torus).chain(others).chain(meshes);
        for (topology, timed) in
            all.flat_map(|topology| [false, true].map(|t| (topology.clone(), t)))
        {
            let set = complete(to_u32(topology.agents().unwrap()));
            let grid_rounds = rounds(&topology, &set, timed).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for (x, c) in set.iter() {
                let round = grid_rounds.round_of[x.index()];
                assert!(round < grid_rounds.rounds);
                let path = grid_rounds.paths.of(x.index());
                assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
                assert!(seen.insert((round, "send", c.source.0, 0)), "{topology:?}");
                assert!(seen.insert((round, "receive", c.target.0, 0)), "{topology:?}");
                for pair in path.windows(2) {
                    assert!(seen.insert((round, "link", pair[0], pair[1])), "{topology:?}");
                }
            }
        }
    }

    #[test]
    fn rounds_are_as_few_as_links_and_agents_allow() {
        let torus = |dims: &[u32]| Topology::Torus { dims: dims.to_vec() };
        let mesh = |dims: &[u32]| Topology::Mesh { dims: dims.to_vec() };
        for (topology, timed, fewest) in [
            (torus(&[8, 8]), false, 64),
            (torus(&[8, 8]), true, 64),
            (torus(&[12, 12]), true, 216),
            (torus(&[16, 8]), true, 256),
            (torus(&[4, 4, 4]), true, 64),
            (torus(&[7, 7]), true, 49),
            (torus(&[7, 8]), false, 64),
            (torus(&[7, 8]), true, 56),
            (torus(&[9, 8]), true, 80),
            (torus(&[7, 13]), true, 147),
            (torus(&[3, 4, 7]), true, 84),
            (Topology::Ring { cells: 16 }, true, 32),
            (Topology::Hypercube { dimension: 6 }, true, 64),
            (mesh(&[2, 2]), false, 4),
            (mesh(&[4, 4]), false, 16),
            (mesh(&[8, 8]), true, 128),
            (mesh(&[12, 12]), true, 432),
            (mesh(&[8, 4]), false, 64),
            (mesh(&[4, 4, 8]), true, 256),
        ] {
            let set = complete(to_u32(topology.agents().unwrap()));
            assert_eq!(rounds(&topology, &set, timed).unwrap().rounds, fewest, "{topology:?}");
        }
    }

    #[test]
    fn other_machines_have_no_rounds() {
        let set = ConnectionSet::new("none", vec![]).unwrap();
        for topology in [
            Topology::Torus { dims: vec![1, 1] },
            Topology::Ring { cells: 1 },
            Topology::Hypercube { dimension: 0 },
            Topology::fat_tree(16),
            Topology::Mesh { dims: vec![1, 1] },
            Topology::Mesh { dims: vec![2, 1000] },
        ] {
            assert!(rounds(&topology, &set, true).is_none());
        }
    }
}
