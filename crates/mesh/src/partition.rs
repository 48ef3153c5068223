//! Partitions: the part of each item, where items are the elements of a mesh, the vertices of a graph
//! or the rows of a matrix.
//!
//! A partition comes from the input itself (a partitioned Gmsh mesh, a decomposition), from a file
//! (one number per line, as METIS writes), or from METIS: multilevel k-way partitioning of the graph
//! of items (module `dual`), with the option that reduces the maximum number of neighbours, because
//! that determines the number of phases (METIS manual, `METIS_OPTION_MINCONN`). The input and the
//! seed determine the result.
//!
//! METIS is a C library with restrictions, which this module works around:
//!
//! * METIS has global state (the C library's random numbers, signal handlers), so calls are
//!   serialised by a lock.
//! * With one part METIS divides by zero, and with about as many parts as items (or very many parts
//!   with few items each) it prints messages and leaves parts empty. In these cases the items are
//!   divided here: evenly, in depth-first order.
//! * The k-way refinement takes minutes for more than some thousand parts. Recursive bisection is used
//!   there, which does not reduce the number of neighbours.
//! * METIS adds weights in 31 bits, so larger ones are scaled. It prints messages if a few weights
//!   dominate or most are 0, so a weight above a part's fair share (which cannot be balanced anyway)
//!   is reduced to that share, and no weight is 0.
//! * METIS may leave parts empty; these get items of the largest parts. A partition made here has no
//!   empty part.

use std::sync::{Mutex, PoisonError};

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{At, InputError, Result, ShapeError, limits};

use crate::dual::{ItemGraph, item_graph};
use crate::model::{Matrix, Source};
use crate::read::{Cursor, MAX_INT};

/// Options of [`partition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionOptions {
    /// Number of parts.
    pub parts: usize,
    /// Seed of METIS's random numbers.
    pub seed: u64,
}

impl PartitionOptions {
    /// A partition into `parts` parts, with seed 1.
    pub fn new(parts: usize) -> Self {
        Self { parts, seed: 1 }
    }

    /// Sets [`PartitionOptions::seed`].
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// The part of each item.
///
/// ```
/// use conset_mesh::Partition;
///
/// let partition = Partition::new(2, vec![0, 0, 1])?;
/// assert_eq!(partition.sizes(), [2, 1]);
/// # Ok::<(), conset_ir::ShapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    part_count: usize,
    part_of: Vec<u32>,
}

impl Partition {
    /// A partition into parts `0..part_count`, some of which may be empty.
    ///
    /// # Errors
    /// A part out of range, no parts, more than [`limits::PARTS`].
    pub fn new(part_count: usize, part_of: Vec<u32>) -> Result<Self, ShapeError> {
        if part_count == 0 || part_count > limits::PARTS {
            return Err(ShapeError::new(
                "parts",
                format!("{part_count} parts, expected 1 to {}", limits::PARTS),
            ));
        }
        if let Some(item) = part_of.iter().position(|&part| index(part) >= part_count) {
            return Err(ShapeError::new(
                format!("parts[{item}]"),
                format!("part {} of {part_count}", part_of[item]),
            ));
        }
        Ok(Self { part_count, part_of })
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.part_count
    }

    /// The part of each item.
    pub fn part_of(&self) -> &[u32] {
        &self.part_of
    }

    /// Number of items in each part.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.part_count];
        for &part in &self.part_of {
            sizes[index(part)] += 1;
        }
        sizes
    }
}

/// Number of items of `source` that a partition distributes; 0 for a list of connections, whose parts
/// are given.
pub fn item_count(source: &Source) -> usize {
    match source {
        Source::Mesh(mesh) => mesh.element_count(),
        Source::Graph(graph) => graph.vertex_count(),
        Source::Matrix(matrix) => matrix.row_count(),
        Source::Decomposition(decomposition) => decomposition.mesh().element_count(),
        Source::Connections(_) => 0,
    }
}

/// The partition that the input itself has, if any. A list of connections has parts but no items.
pub fn stated(source: &Source) -> Option<Partition> {
    let mesh = match source {
        Source::Mesh(mesh) => mesh,
        Source::Decomposition(decomposition) => decomposition.mesh(),
        Source::Connections(list) => return Partition::new(list.part_count(), Vec::new()).ok(),
        Source::Graph(_) | Source::Matrix(_) => return None,
    };
    if mesh.part_count() == 0 {
        return None;
    }
    Some(Partition { part_count: mesh.part_count(), part_of: mesh.parts().to_vec() })
}

/// Reads a partition file: one line with the part of each item, from 0. `parts` is the number of
/// parts; `None` means one more than the largest part in the file. Parts may be empty.
///
/// # Errors
/// A token that is not a number, a part out of range, or a number of lines other than `items`.
pub fn read_file(
    file: &str,
    bytes: &[u8],
    items: usize,
    parts: Option<usize>,
) -> Result<Partition> {
    let mut cursor = Cursor::new(file, bytes);
    let mut part_of = Vec::with_capacity(cursor.capacity(to_u64(items), 2));
    let limit = parts.unwrap_or(limits::PARTS).min(limits::PARTS);
    loop {
        cursor.skip_space();
        if cursor.at_end() {
            break;
        }
        let part = cursor.integer("the number of a part", u64::MAX)?;
        if part_of.len() == items {
            return Err(cursor.error(format!("more lines than the {items} items of the input")));
        }
        if part >= to_u64(limit) {
            let error = cursor.error(format!("part {part}; expected 0 to {}", limit.max(1) - 1));
            let from_one = part == to_u64(limit) && !part_of.contains(&0);
            return Err(match from_one {
                true => error.help("parts must count from 0; these seem to count from 1"),
                false => error,
            });
        }
        cursor.end_line("one part per line")?;
        part_of.push(to_u32(part));
    }
    if part_of.len() < items {
        return Err(cursor
            .error_at(cursor.offset(), format!("{} lines for {items} items", part_of.len()))
            .help("a partition has one line for each element, vertex or row"));
    }
    let largest = part_of.iter().max().map_or(0, |&part| index(part) + 1);
    Partition::new(parts.unwrap_or(largest), part_of).map_err(|error| error.in_file(file))
}

/// Partitions the items of `source` with METIS; `file` is its name for errors. No part is empty.
///
/// # Errors
/// No parts, more parts than items, a matrix that is not square, or an input whose parts are given
/// (a list of connections).
pub fn partition(source: &Source, options: &PartitionOptions, file: &str) -> Result<Partition> {
    let fail = |message: String| InputError::new(file, At::Whole, message);
    if let Source::Connections(list) = source {
        return Err(fail(format!("the input already has {} parts", list.part_count()))
            .help("leave out <parts> and <partition>"));
    }
    if let Source::Matrix(matrix) = source {
        check_square(matrix, file)?;
    }
    let items = item_count(source);
    if options.parts == 0 || options.parts > limits::PARTS {
        return Err(fail(format!("{} parts; expected 1 to {}", options.parts, limits::PARTS)));
    }
    if options.parts > items {
        return Err(fail(format!("{} parts for {items} items", options.parts))
            .help(format!("use at most {items} parts (<parts> {items}) or a smaller machine")));
    }
    if options.parts == 1 {
        return Ok(Partition { part_count: 1, part_of: vec![0; items] });
    }
    let graph = item_graph(source);
    // Measured: with this many items per part METIS neither prints messages nor leaves most parts
    // empty.
    let enough = if options.parts > MAX_KWAY_PARTS { 16 } else { 2 };
    let mut part_of = if items < enough * options.parts {
        divide_evenly(&graph, options.parts)
    } else {
        call_metis(&graph, options).map_err(|error| {
            let failure = fail(format!("METIS failed: {error}"));
            match error.contains("memory") {
                true => failure.help("increase the memory limit (<memory>)"),
                false => failure,
            }
        })?
    };
    fill_empty_parts(&graph, options.parts, &mut part_of);
    Ok(Partition { part_count: options.parts, part_of })
}

/// Checks that a matrix is square, because its columns are distributed as its rows are.
pub(crate) fn check_square(matrix: &Matrix, file: &str) -> Result<()> {
    let (rows, columns) = (matrix.row_count(), matrix.column_count());
    if rows == columns {
        return Ok(());
    }
    let message = format!("a matrix of {rows} rows and {columns} columns is not square");
    Err(InputError::new(file, At::Whole, message)
        .help("rows and columns have the same distribution, so the matrix must be square"))
}

/// METIS is not thread-safe: it seeds and uses the C library's random numbers.
static METIS: Mutex<()> = Mutex::new(());

/// The largest sum of weights that is passed to METIS, which adds in 31 bits.
const MAX_WEIGHT_SUM: u128 = 1 << 29;

/// The largest number of parts for k-way partitioning. Above it k-way refinement takes minutes (one
/// minute for 65536 parts of two million triangles) and recursive bisection seconds.
const MAX_KWAY_PARTS: usize = 8192;

/// A number as METIS's `idx_t`. All counts are within [`limits::NODES`], which fits 31 bits.
fn metis_int<N: TryInto<i32>>(number: N) -> i32 {
    number.try_into().unwrap_or_else(|_| unreachable!("the limits fit 31 bits"))
}

fn call_metis(graph: &ItemGraph, options: &PartitionOptions) -> Result<Vec<u32>, String> {
    let signed = |values: &[u32]| values.iter().map(|&v| metis_int(v)).collect::<Vec<i32>>();
    let (first, neighbours) = (signed(&graph.first), signed(&graph.neighbours));
    let weights_per_item = graph.weights.as_ref().map_or(1, |weights| weights.1);
    let weights = graph
        .weights
        .as_ref()
        .map(|(weights, per_item)| fair_weights(weights, *per_item, options.parts));
    let wide = |values: &Vec<u32>| values.iter().map(|&v| u64::from(v)).collect::<Vec<u64>>();
    let edge_weights = graph.edge_weights.as_ref().map(|weights| scaled(&wide(weights)));
    let _guard = METIS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut call = metis::Graph::new(
        metis_int(weights_per_item),
        metis_int(options.parts),
        &first,
        &neighbours,
    )
    .map_err(|error| error.to_string())?
    .set_option(metis::option::Seed(metis_int(options.seed & MAX_INT)))
    .set_option(metis::option::MinConn(true));
    if let Some(weights) = &weights {
        call = call.set_vwgt(weights);
    }
    if let Some(weights) = &edge_weights {
        call = call.set_adjwgt(weights);
    }
    let mut part_of = vec![0i32; graph.len()];
    let done = if options.parts > MAX_KWAY_PARTS {
        call.part_recursive(&mut part_of)
    } else {
        call.part_kway(&mut part_of)
    };
    done.map_err(|error| error.to_string())?;
    Ok(part_of.into_iter().map(to_u32).collect())
}

/// Weights that METIS can balance, separately for each constraint: no weight is above the fair share of
/// a part, and a weight of 0 becomes a thousandth of the smallest other weight.
fn fair_weights(weights: &[u32], per_item: usize, parts: usize) -> Vec<i32> {
    let mut fair = vec![0i32; weights.len()];
    for constraint in 0..per_item {
        let column = weights.iter().skip(constraint).step_by(per_item);
        let mut column: Vec<u64> = column.map(|&w| 1 + 1000 * u64::from(w)).collect();
        limit_to_fair_share(&mut column, to_u64(parts));
        for (item, weight) in scaled(&column).into_iter().enumerate() {
            fair[item * per_item + constraint] = weight;
        }
    }
    fair
}

/// Reduces weights to the fair share of a part in their sum, repeatedly, because the reduction makes
/// the share smaller.
fn limit_to_fair_share(weights: &mut [u64], parts: u64) {
    // This converges in a few rounds; what remains after 64 rounds is insignificant.
    for _ in 0..64 {
        let share = to_u64(sum(weights).div_ceil(u128::from(parts)));
        if weights.iter().all(|&w| w <= share) {
            return;
        }
        for weight in weights.iter_mut() {
            *weight = (*weight).min(share);
        }
    }
}

fn sum(weights: &[u64]) -> u128 {
    weights.iter().map(|&w| u128::from(w)).sum()
}

/// The weights scaled so that their sum fits 31 bits; at least 1 each.
fn scaled(weights: &[u64]) -> Vec<i32> {
    let total = sum(weights).max(MAX_WEIGHT_SUM);
    // A weight is at most the sum, so its share of `MAX_WEIGHT_SUM` fits, and so does the sum of all
    // shares.
    let scale = |w: u64| metis_int((u128::from(w) * MAX_WEIGHT_SUM / total).max(1));
    weights.iter().map(|&w| scale(w)).collect()
}

/// Divides the items, in depth-first order of the graph, into parts of equal size.
fn divide_evenly(graph: &ItemGraph, parts: usize) -> Vec<u32> {
    let items = graph.len();
    let mut part_of = vec![u32::MAX; items];
    let mut stack = Vec::new();
    let mut done = 0;
    for start in 0..to_u32(items) {
        stack.push(start);
        while let Some(item) = stack.pop() {
            if part_of[index(item)] != u32::MAX {
                continue;
            }
            part_of[index(item)] = to_u32(done * to_u64(parts) / to_u64(items));
            done += 1;
            let neighbours = graph.neighbours_of(index(item)).iter().rev();
            stack.extend(neighbours.filter(|&&next| part_of[index(next)] == u32::MAX));
        }
    }
    part_of
}

/// Moves an item of a largest part to each empty part: the item with the fewest neighbours in its own
/// part.
fn fill_empty_parts(graph: &ItemGraph, parts: usize, part_of: &mut [u32]) {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); parts];
    for (item, &part) in (0..).zip(&*part_of) {
        members[index(part)].push(item);
    }
    let empty: Vec<usize> = (0..parts).filter(|&part| members[part].is_empty()).collect();
    if empty.is_empty() {
        return;
    }
    let mut largest: std::collections::BinaryHeap<(usize, usize)> =
        members.iter().enumerate().map(|(part, items)| (items.len(), part)).collect();
    for part in empty {
        let Some((size, from)) = largest.pop() else { return };
        let inside = |item: u32| {
            let same_part = |&&next: &&u32| index(part_of[index(next)]) == from;
            graph.neighbours_of(index(item)).iter().filter(same_part).count()
        };
        let Some(row) = (0..size).min_by_key(|&row| inside(members[from][row])) else { return };
        let item = members[from].swap_remove(row);
        part_of[index(item)] = to_u32(part);
        largest.push((size - 1, from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConnectionList, Graph, Mesh};

    /// Vertices `0..n` in a row.
    fn path(n: u32) -> Graph {
        let lists: Vec<Vec<u32>> = (0..n)
            .map(|v| {
                [v.checked_sub(1), Some(v + 1).filter(|&w| w < n)].into_iter().flatten().collect()
            })
            .collect();
        let mut first = vec![0];
        for list in &lists {
            first.push(first[first.len() - 1] + list.len() as u32);
        }
        Graph::new(first, lists.concat(), false).unwrap()
    }

    fn parts_of(source: &Source, parts: usize, seed: u64) -> Partition {
        partition(source, &PartitionOptions { parts, seed }, "f").unwrap()
    }

    #[test]
    fn no_part_is_empty_at_any_size() {
        for n in [1, 2, 3, 5, 8, 13, 64, 100] {
            let alone = Source::Graph(Graph::new(vec![0; n + 1], vec![], false).unwrap());
            let row = Source::Graph(path(n as u32));
            let triangles = (0..n as u32).flat_map(|e| [e, e + 1, e + 2]).collect();
            let first = (0..=n as u32).map(|e| 3 * e).collect();
            let strip = Mesh::new(2, n + 2, vec![], first, triangles).unwrap();
            for source in [alone, row, Source::Mesh(strip)] {
                for parts in (1..=n).filter(|&parts| parts < 20 || parts + 5 > n) {
                    let partition = parts_of(&source, parts, 7);
                    assert!(partition.sizes().iter().all(|&s| s > 0), "{n} into {parts}");
                    assert_eq!(partition.sizes().iter().sum::<usize>(), n);
                }
                let error = partition(&source, &PartitionOptions { parts: n + 1, seed: 0 }, "f");
                assert!(error.unwrap_err().help.unwrap().contains(&format!("at most {n}")));
                assert!(partition(&source, &PartitionOptions { parts: 0, seed: 0 }, "f").is_err());
            }
        }
    }

    #[test]
    fn equal_calls_on_many_threads_give_equal_parts() {
        let source = Source::Graph(path(3000));
        let expected = parts_of(&source, 16, 3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for other in 0..4 {
                        parts_of(&source, 16, other);
                        assert_eq!(parts_of(&source, 16, 3), expected);
                    }
                });
            }
        });
    }

    #[test]
    fn extreme_weights_are_balanced() {
        let n = 400;
        for weights in [
            vec![u32::MAX >> 1; n],
            vec![0; n],
            (0..n as u32).map(|v| if v % 20 == 0 { 1 << 30 } else { 1 }).collect(),
        ] {
            let graph = path(n as u32).with_vertex_weights(weights, 1).unwrap();
            let edges = vec![u32::MAX >> 1; graph.neighbours().len()];
            let source = Source::Graph(graph.with_edge_weights(edges).unwrap());
            let sizes = parts_of(&source, 8, 1).sizes();
            assert!(sizes.iter().all(|&size| size > 0), "{sizes:?}");
        }
        assert_eq!(fair_weights(&[0, 0, 0, 5], 1, 2), [1, 1, 1, 4]);
    }

    #[test]
    fn many_equal_elements_stay_within_the_limits() {
        let n = 1 << 17;
        let nodes = [0u32, 1, 2].repeat(n);
        let first = (0..=n as u32).map(|e| 3 * e).collect();
        let mesh = Mesh::new(2, 3, vec![], first, nodes).unwrap();
        let graph = item_graph(&Source::Mesh(mesh));
        assert!(graph.neighbours.len() <= n * 64);
    }

    #[test]
    fn parts_of_connections_are_given() {
        let source = Source::Connections(ConnectionList::new(3, vec![(0, 1, 5)]).unwrap());
        assert_eq!(stated(&source).unwrap().part_count(), 3);
        assert!(partition(&source, &PartitionOptions { parts: 3, seed: 0 }, "f").is_err());
    }

    #[test]
    fn partition_files_are_checked() {
        let read = |text: &str, items, parts| read_file("p", text.as_bytes(), items, parts);
        assert_eq!(read("0\n2\n1\n", 3, None).unwrap().part_count(), 3);
        assert_eq!(read("0\n2\r\n1", 3, Some(5)).unwrap().part_count(), 5);
        let place = |error: InputError| match error.at {
            At::Text { line, .. } => line,
            other => panic!("{other:?}"),
        };
        assert_eq!(place(read("0\n1\n", 3, None).unwrap_err()), 3);
        assert_eq!(place(read("0\n1\n1\n0\n", 3, None).unwrap_err()), 4);
        assert_eq!(place(read("0\n1 1\n0\n", 3, None).unwrap_err()), 2);
        assert_eq!(place(read("0\nx\n0\n", 3, None).unwrap_err()), 2);
        let error = read("1\n2\n", 2, Some(2)).unwrap_err();
        assert!(error.help.unwrap().contains("count from 1"));
        assert!(read("99999999\n", 1, None).is_err(), "more parts than any machine has");
        assert!(read("", 0, None).is_err(), "no parts");
    }
}
