//! Phases for sets that are invariant under the translations of a torus: one connection is planned
//! for all its translates.
//!
//! If every cell sends equally many connections of every *offset* (target less source, modulo the
//! size of each dimension), routes can be translates too. The routes of an offset cross the
//! dimensions in order, and together take `hops + 1` channels on every cell. Dividing the set into
//! phases is then a bin packing of a few hundred numbers, whatever the number of cells; the
//! channels of a cell are the size of a bin. It is solved by first fit, longest first. Long offsets
//! waste much of a bin, so an offset's connections may be divided into parts, by the sum of the
//! source's coordinates modulo the number of parts. The channels that a part takes on a cell then
//! depend only on that sum for the cell. Offsets of exactly half a dimension alternate between both
//! directions.
//!
//! The planner detects the symmetry from the connections alone.

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Topology};

use super::paths::{Paths, dimension_ordered};

/// Numbers of parts tried.
const PARTS: [u32; 4] = [1, 2, 3, 4];

/// Phases and paths of a regular set.
pub(super) struct SymmetricPlan {
    pub(super) phases: u32,
    pub(super) phase_of: Vec<u32>,
    pub(super) paths: Paths,
}

/// Divides a regular set; `None` where it is not regular, the topology no torus, or the sides of
/// the torus leave no parts that are small enough.
pub(super) fn plan(
    topology: &Topology,
    set: &ConnectionSet,
    channels: u32,
) -> Option<SymmetricPlan> {
    if !topology.wraps() || set.is_empty() {
        return None;
    }
    let dims = topology.dims()?;
    let cells = dims.iter().map(|&d| index(d)).product::<usize>();
    let offset_of = |s: u32, t: u32| {
        let (mut s, mut t, mut stride, mut offset) = (s, t, 1, 0);
        for &d in &dims {
            offset += stride * ((t % d + d - s % d) % d);
            (s, t, stride) = (s / d, t / d, stride * d);
        }
        index(offset)
    };
    // Copies of an offset at one cell are told apart by the order in which they come.
    let mut offsets: Vec<u32> = Vec::with_capacity(set.len());
    let mut counts = vec![0u32; cells];
    for c in set.connections() {
        let offset = offset_of(c.source.0, c.target.0);
        counts[offset] += 1;
        offsets.push(to_u32(offset));
    }
    if counts.iter().any(|&count| !index(count).is_multiple_of(cells)) {
        return None;
    }
    let mut first = vec![0u32; cells + 1];
    for offset in 0..cells {
        first[offset + 1] = first[offset] + counts[offset] / to_u32(cells);
    }
    let orbit_of = orbits_of_connections(set, &offsets, &first, cells)?;

    let steps: Vec<Vec<i64>> = (0..to_u32(cells)).map(|o| steps(o, &dims)).collect();
    let steps_of = |orbit: usize| {
        let offset = first.partition_point(|&f| index(f) <= orbit) - 1;
        steps[offset].as_slice()
    };
    let orbit_count = index(first[cells]);
    let divides = |parts: &u32| *parts == 1 || dims.iter().all(|d| d % parts == 0);
    let packed = PARTS.into_iter().filter(divides).filter_map(|parts| {
        let need: Vec<u32> =
            (0..orbit_count).flat_map(|orbit| need(steps_of(orbit), parts)).collect();
        pack(&need, index(parts), channels).map(|(phases, phase_of)| (phases, phase_of, parts))
    });
    let (phases, phase_of_part, parts) = packed.min_by_key(|packed| packed.0)?;
    let mut paths = Paths::with_capacity(set.len());
    for (c, &offset) in set.connections().iter().zip(&offsets) {
        paths.push(dimension_ordered(c.source.0, &steps[index(offset)], &dims));
    }
    let part = |(c, &orbit): (&conset_ir::Connection, &u32)| {
        phase_of_part[index(orbit * parts + class_of(c.source.0, &dims, parts))]
    };
    let phase_of = set.connections().iter().zip(&orbit_of).map(part).collect();
    Some(SymmetricPlan { phases, phase_of, paths })
}

/// The orbit of each connection; `None` if a cell has not its share of an offset.
fn orbits_of_connections(
    set: &ConnectionSet,
    offsets: &[u32],
    first: &[u32],
    cells: usize,
) -> Option<Vec<u32>> {
    // Sorted by (offset, source), the copies at one cell stand together.
    let mut order: Vec<u32> = (0..to_u32(set.len())).collect();
    let source = |x: u32| set.connections()[index(x)].source.0;
    order.sort_by_key(|&x| (offsets[index(x)], source(x)));
    let mut orbit_of = vec![0; set.len()];
    let mut row = 0;
    for offset in 0..cells {
        let copies = first[offset + 1] - first[offset];
        for cell in 0..to_u32(cells) {
            for copy in 0..copies {
                let x = order[row];
                if source(x) != cell {
                    return None;
                }
                orbit_of[index(x)] = first[offset] + copy;
                row += 1;
            }
        }
    }
    Some(orbit_of)
}

/// How far to go in each dimension, the short way round.
fn steps(offset: u32, dims: &[u32]) -> Vec<i64> {
    let mut rest = offset;
    dims.iter()
        .map(|&d| {
            let ahead = rest % d;
            rest /= d;
            let turn = (offset / d + offset).is_multiple_of(2);
            match (2 * ahead).cmp(&d) {
                std::cmp::Ordering::Less => i64::from(ahead),
                std::cmp::Ordering::Equal if turn => i64::from(ahead),
                _ => i64::from(ahead) - i64::from(d),
            }
        })
        .collect()
}

/// The class of a cell: the sum of its coordinates modulo the number of parts.
fn class_of(cell: u32, dims: &[u32], parts: u32) -> u32 {
    let mut rest = cell;
    let mut sum = 0;
    for &d in dims {
        sum += rest % d;
        rest /= d;
    }
    sum % parts
}

/// The channels that each part of an orbit takes on a cell of each class: part by part.
fn need(steps: &[i64], parts: u32) -> Vec<u32> {
    let k = index(parts);
    let mut taken = vec![0; k * k];
    for part in 0..k {
        let mut class = part;
        taken[part * k + class] += 1;
        for &step in steps {
            for _ in 0..step.unsigned_abs() {
                class = if step > 0 { class + 1 } else { class + k - 1 } % k;
                taken[part * k + class] += 1;
            }
        }
    }
    taken
}

/// Packs parts, with a need in each class, into phases with capacity in each: first fit, greatest
/// first. `None` where one does not fit into an empty phase.
fn pack(need: &[u32], classes: usize, capacity: u32) -> Option<(u32, Vec<u32>)> {
    let of = |part: u32| &need[index(part) * classes..(index(part) + 1) * classes];
    let mut order: Vec<u32> = (0..to_u32(need.len() / classes)).collect();
    order.sort_by_key(|&part| std::cmp::Reverse(of(part).iter().sum::<u32>()));
    let mut taken: Vec<u32> = Vec::new();
    let mut phase_of = vec![0; order.len()];
    // Full phases in front are not looked at again.
    let mut open = 0;
    for part in order {
        let need = of(part);
        if need.iter().any(|&need| need > capacity) {
            return None;
        }
        while taken[open * classes..].len() >= classes
            && taken[open * classes..][..classes].iter().all(|&taken| taken == capacity)
        {
            open += 1;
        }
        let fits =
            |phase: &[u32]| phase.iter().zip(need).all(|(taken, need)| taken + need <= capacity);
        let found = taken[open * classes..].chunks(classes).position(fits);
        let phase = found.map_or(taken.len() / classes, |found| open + found);
        if found.is_none() {
            taken.resize(taken.len() + classes, 0);
        }
        for (taken, need) in taken[phase * classes..].iter_mut().zip(need) {
            *taken += need;
        }
        phase_of[index(part)] = to_u32(phase);
    }
    Some((to_u32(taken.len() / classes), phase_of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    fn set(pairs: impl Iterator<Item = (u32, u32)>) -> ConnectionSet {
        let connections = pairs.map(|(s, t)| Connection::new(CellId(s), CellId(t), 1)).collect();
        ConnectionSet::new("s", connections).unwrap()
    }

    #[test]
    fn a_complete_exchange_takes_as_few_phases_as_its_channels_allow() {
        let torus = |n: u32| Topology::Torus { dims: vec![n, n] };
        for (n, bound) in [(4, 4), (8, 27), (16, 192)] {
            let all = (0..n * n).flat_map(|s| (0..n * n).map(move |t| (s, t)));
            let set = set(all.filter(|(s, t)| s != t));
            let orbits = plan(&torus(n), &set, 12).unwrap();
            assert_eq!(orbits.phases, bound, "{n}");
            let mut taken = vec![0u32; index(orbits.phases * n * n)];
            for (x, c) in set.iter() {
                let path = orbits.paths.of(x.index());
                assert_eq!((path[0], path[path.len() - 1]), (c.source.0, c.target.0));
                for &cell in path {
                    taken[index(orbits.phase_of[x.index()] * n * n + cell)] += 1;
                }
            }
            assert!(taken.into_iter().all(|taken| taken <= 12));
        }
    }

    #[test]
    fn irregular_sets_have_no_orbits() {
        let ring = Topology::Ring { cells: 6 };
        let shift = |k: u32| (0..6).map(move |s| (s, (s + k) % 6));
        assert_eq!(plan(&ring, &set(shift(1).chain(shift(1))), 4).unwrap().phases, 1);
        assert!(plan(&ring, &set(shift(1).take(5)), 4).is_none());
        // As many as cells, but two from one cell.
        let wrong = shift(1).take(5).chain([(0, 1)]);
        assert!(plan(&ring, &set(wrong), 4).is_none());
        // Six routes of four cells with three channels: every second of them at a time.
        assert_eq!(plan(&ring, &set(shift(3)), 3).unwrap().phases, 2);
        let seven = set((0..7).map(|s| (s, (s + 3) % 7)));
        assert!(plan(&Topology::Ring { cells: 7 }, &seven, 3).is_none());
        assert!(plan(&Topology::Mesh { dims: vec![6] }, &set(shift(1)), 4).is_none());
    }
}
