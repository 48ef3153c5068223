//! Rounds of a torus of two dimensions: the steps of its rings, multiplied.
//!
//! A connection crosses its row, then its column. Its row's message belongs to a step of the ring
//! ([`super::ring`]), its column's to another; the product of two steps has 16 connections that
//! use all links of four rows in one direction and of four columns. A *round* holds products of
//! one class of rows and one of columns: the k-th step of the rows with the (k + j)-th of the
//! columns forwards, and with the (k + j + 1)-th backwards, so that no cell sends or receives
//! twice and no link is used twice. On 8x8 cells the 64 rounds use every link and every agent all
//! the time, which no timetable can beat; on n x n the n^3/8 rounds use every link.
//!
//! Rounds in succession have the same cells. That matters where only some cells are busy in a
//! round, as on large tori: an idle cell would start its share of the next round early, on links
//! that are in use. Cells that send to themselves are idle too, as a rule, so the rounds that
//! have them come second, after one of the same cells.
//!
//! Every connection of any set has its place in these rounds, whatever the pattern. A set that
//! lacks some connections leaves holes, which is good as long as they are few; what it is worth
//! for a set is seen by pricing it. Connections between the same two cells meet in a round.

use conset_ir::{ConnectionSet, Topology};

use super::paths::Paths;
use super::ring::{Ring, Step};

/// A round for every connection, and a path.
pub(super) struct Template {
    pub(super) rounds: u32,
    pub(super) round_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// Puts the connections of a set into the rounds of a torus; `None` where the topology has none.
pub(super) fn rounds(topology: &Topology, set: &ConnectionSet) -> Option<Template> {
    let Topology::Torus { dims } = topology else { return None };
    let &[width, height] = dims.as_slice() else { return None };
    let (row, column) = (Ring::new(width)?, Ring::new(height)?);
    let shifts = row.steps().max(column.steps()).max(2);
    let mut round_of = Vec::with_capacity(set.len());
    let mut paths = Paths::with_capacity(set.len());
    for connection in set.connections() {
        let (s, t) = (connection.source.0, connection.target.0);
        let along = row.step_of(s % width, t % width);
        let across = column.step_of(s / width, t / width);
        let shift = across.step + 2 * shifts - along.step - u32::from(!along.forward);
        let classes = u64::from(row.cells_of(along.class)) * u64::from(column.classes());
        let tiling = classes + u64::from(column.cells_of(across.class));
        let cells = tiling * u64::from(shifts) + u64::from(shift % shifts);
        let family = u64::from(along.forward != across.forward);
        let among = match (row.has_selves(along.class), column.has_selves(across.class)) {
            (false, false) => 2 * family,
            (true, true) => 2 * family + 1,
            (false, true) => 4 + family,
            (true, false) => 6 + family,
        };
        round_of.push(8 * cells + among);
        paths.push(path((s, t), (width, height), (along, across)));
    }
    let (rounds, round_of) = without_holes(&round_of);
    Some(Template { rounds, round_of, paths })
}

/// Numbers the rounds that are used from 0, in their order: a large torus has billions.
fn without_holes(round_of: &[u64]) -> (u32, Vec<u32>) {
    let mut used = round_of.to_vec();
    used.sort_unstable();
    used.dedup();
    let place = |round: &u64| used.partition_point(|other| other < round) as u32;
    (used.len() as u32, round_of.iter().map(place).collect())
}

/// The cells of a route along the row, then across.
fn path(
    (s, t): (u32, u32),
    (width, height): (u32, u32),
    (along, across): (Step, Step),
) -> impl Iterator<Item = u32> {
    let (mut x, mut y) = (s % width, s / width);
    let (to_x, to_y) = (t % width, t / width);
    let mut over = false;
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        let cell = x + width * y;
        if x != to_x {
            x = if along.forward { x + 1 } else { x + width - 1 } % width;
        } else if y != to_y {
            y = if across.forward { y + 1 } else { y + height - 1 } % height;
        } else {
            over = true;
        }
        Some(cell)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    /// In a complete exchange no round has two connections of one agent or one link.
    #[test]
    fn rounds_share_nothing() {
        for (width, height) in [(4, 4), (8, 8), (4, 8), (16, 8), (16, 16)] {
            let cells = width * height;
            let pairs = (0..cells).flat_map(|s| (0..cells).map(move |t| (s, t)));
            let connections =
                pairs.map(|(s, t)| Connection::new(CellId(s), CellId(t), 1)).collect();
            let set = ConnectionSet::new("all", connections).unwrap();
            let topology = Topology::Torus { dims: vec![width, height] };
            let template = rounds(&topology, &set).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for (x, c) in set.iter() {
                let round = template.round_of[x.index()];
                assert!(round < template.rounds);
                let path = template.paths.of(x.index());
                assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
                assert!(seen.insert((round, "send", c.source.0, 0)), "{width}x{height}");
                assert!(seen.insert((round, "receive", c.target.0, 0)), "{width}x{height}");
                for pair in path.windows(2) {
                    assert!(seen.insert((round, "link", pair[0], pair[1])), "{width}x{height}");
                }
            }
        }
    }

    #[test]
    fn other_machines_have_no_rounds() {
        let set = ConnectionSet::new("none", vec![]).unwrap();
        for topology in [
            Topology::Torus { dims: vec![8] },
            Topology::Torus { dims: vec![6, 8] },
            Topology::Torus { dims: vec![4, 4, 4] },
            Topology::Mesh { dims: vec![8, 8] },
        ] {
            assert!(rounds(&topology, &set).is_none());
        }
    }
}
