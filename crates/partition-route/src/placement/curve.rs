//! Initial placement along a space-filling curve.
//!
//! Parts are taken in breadth-first order from one end of their graph, component by component;
//! cells along a serpentine through the region, in which each cell is next to the one before. Best
//! for long and thin programs: a strip, a ring, an ordered list.

use super::metric::Metric;
use super::part_graph::PartGraph;
use conset_ir::convert::{index, to_u32};

/// A cell for each part. There must be as many cells as parts.
pub(super) fn assign(metric: &Metric, graph: &PartGraph, mut cells: Vec<u32>) -> Vec<u32> {
    if let Metric::Grid(grid) = metric {
        cells.sort_by_cached_key(|&cell| position(grid.of(cell), grid.dims()));
    }
    let mut place = vec![0; graph.parts()];
    for (part, cell) in part_sequence(graph).into_iter().zip(cells) {
        place[index(part)] = cell;
    }
    place
}

/// The position of a cell on the serpentine: along the first dimension to and fro, one step in the
/// second dimension after each, and so on.
fn position(at: &[u32], dims: &[u32]) -> u64 {
    let mut position = 0u64;
    for (&at, &size) in at.iter().zip(dims).rev() {
        let along = if position % 2 == 1 { size - 1 - at } else { at };
        position = position * u64::from(size) + u64::from(along);
    }
    position
}

/// All parts, breadth first from an end of each component.
fn part_sequence(graph: &PartGraph) -> Vec<u32> {
    let count = graph.parts();
    let mut row = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    for root in 0..to_u32(count) {
        if seen[index(root)] {
            continue;
        }
        // The part found last is at an end of the component. Two searches find one from which the
        // component is longest.
        let start = row.len();
        for _ in 0..2 {
            let end = row.get(start..).and_then(<[u32]>::last).copied().unwrap_or(root);
            for &part in &row[start..] {
                seen[index(part)] = false;
            }
            row.truncate(start);
            append_component(graph, end, &mut seen, &mut row);
        }
    }
    row
}

/// Appends the component of a part, neighbours with few partners first.
fn append_component(graph: &PartGraph, root: u32, seen: &mut [bool], row: &mut Vec<u32>) {
    let mut head = row.len();
    seen[index(root)] = true;
    row.push(root);
    while head < row.len() {
        let first = row.len();
        for (other, _) in graph.of(row[head]) {
            if !std::mem::replace(&mut seen[index(other)], true) {
                row.push(other);
            }
        }
        row[first..].sort_unstable_by_key(|&part| (graph.degree(part), part));
        head += 1;
    }
}
