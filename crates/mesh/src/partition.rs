//! Partitions: the part of each item, where items are the elements of a mesh, the vertices of a graph
//! or the rows of a matrix.
//!
//! A partition comes from the input itself (a partitioned Gmsh mesh, a decomposition), from a file
//! (one number per line, as METIS writes), or from METIS: multilevel k-way partitioning of the graph
//! of items (module `dual`), with the option that reduces the maximum number of neighbours, because
//! that determines the number of phases (METIS manual, `METIS_OPTION_MINCONN`). The input and the
//! seed determine the result. [`Partitioner`] makes several partitions of one input, and
//! [`repair`] changes a partition for the exchange that it causes.
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

pub mod repair;

use std::sync::{Mutex, PoisonError};

use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use conset_ir::{At, InputError, Result, ShapeError, counted, limits};

use crate::dual::{ItemGraph, item_graph};
use crate::model::{Matrix, Mesh, Source};
use crate::read::{Cursor, MAX_INT};

/// How METIS divides, and what it minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartitionMethod {
    /// Multilevel k-way partitioning for a small edge cut and few neighbours.
    #[default]
    KwayCut,
    /// Multilevel k-way partitioning for a small total communication volume and few neighbours.
    KwayVolume,
    /// Multilevel recursive bisection for a small edge cut.
    Bisection,
}

impl PartitionMethod {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::KwayCut => "k-way cut",
            PartitionMethod::KwayVolume => "k-way volume",
            PartitionMethod::Bisection => "bisection",
        }
    }
}

/// The imbalance that METIS allows by default, in thousandths.
pub const DEFAULT_IMBALANCE: u32 = 30;

/// The greatest imbalance that can be allowed, in thousandths: ten times the average.
pub const MAX_IMBALANCE: u32 = 9000;

/// Options of [`partition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionOptions {
    /// Number of parts.
    pub parts: usize,
    /// Seed of METIS's random numbers.
    pub seed: u64,
    /// How METIS divides, and what it minimises.
    pub method: PartitionMethod,
    /// By how many thousandths the weight of a part may exceed the average. METIS may miss this for
    /// small parts.
    pub imbalance: u32,
}

impl PartitionOptions {
    /// A partition into `parts` parts, with seed 1.
    pub fn new(parts: usize) -> Self {
        let method = PartitionMethod::default();
        Self { parts, seed: 1, method, imbalance: DEFAULT_IMBALANCE }
    }

    /// Sets [`PartitionOptions::seed`].
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets [`PartitionOptions::method`].
    #[must_use]
    pub fn method(self, method: PartitionMethod) -> Self {
        Self { method, ..self }
    }

    /// Sets [`PartitionOptions::imbalance`].
    #[must_use]
    pub fn imbalance(self, thousandths: u32) -> Self {
        Self { imbalance: thousandths, ..self }
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
    Partitioner::new(source, options.parts, file)?.partition(options)
}

/// Makes partitions of one input into one number of parts; the graph of items is computed once.
///
/// ```
/// use conset_mesh::partition::{PartitionOptions, Partitioner};
/// use conset_mesh::{Graph, Source};
///
/// let path = Graph::new(vec![0, 1, 3, 5, 6], vec![1, 0, 2, 1, 3, 2], false)?;
/// let source = Source::Graph(path);
/// let partitioner = Partitioner::new(&source, 2, "path.graph")?;
/// let partition = partitioner.partition(&PartitionOptions::new(2).seed(7))?;
/// assert_eq!(partitioner.cut(&partition), 1);
/// assert_eq!(partitioner.imbalance(&partition), 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Partitioner {
    graph: ItemGraph,
    parts: usize,
    file: String,
}

impl Partitioner {
    /// A partitioner of `source`; `file` is its name for errors.
    ///
    /// # Errors
    /// As [`partition`].
    pub fn new(source: &Source, parts: usize, file: &str) -> Result<Self> {
        let fail = |message: String| InputError::new(file, At::Whole, message);
        if let Source::Connections(list) = source {
            let stated = counted(list.part_count(), "part");
            return Err(fail(format!("the input already has {stated}"))
                .help("leave out <parts> and <partition>"));
        }
        if let Source::Matrix(matrix) = source {
            check_square(matrix, file)?;
        }
        let items = item_count(source);
        if parts == 0 || parts > limits::PARTS {
            return Err(fail(format!("{parts} parts; expected 1 to {}", limits::PARTS)));
        }
        if items == 0 {
            return Err(fail("there is nothing to divide into parts".to_owned())
                .help("the input needs at least one element, vertex or row"));
        }
        if parts > items {
            let (of, most) = (counted(items, "item"), counted(items, "part"));
            return Err(fail(format!("{parts} parts for {of}"))
                .help(format!("use at most {most} (<parts> {items}) or a smaller machine")));
        }
        Ok(Self { graph: item_graph(source), parts, file: file.to_owned() })
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The number of items and of their connections: a measure of the work of a partition.
    pub fn size(&self) -> usize {
        self.graph.len() + self.graph.neighbours.len()
    }

    /// Whether every method and seed gives the same partition.
    pub fn is_fixed(&self) -> bool {
        // Measured: with this many items per part METIS neither prints messages nor leaves most
        // parts empty.
        let enough = if self.parts > MAX_KWAY_PARTS { 16 } else { 2 };
        self.parts == 1 || self.graph.len() < enough * self.parts
    }

    /// Whether k-way partitioning takes seconds at most.
    pub fn has_kway(&self) -> bool {
        self.parts <= MAX_KWAY_PARTS
    }

    /// A partition with the given seed, method and imbalance; [`PartitionOptions::parts`] is that of
    /// the partitioner. No part is empty.
    ///
    /// # Errors
    /// METIS has not enough memory.
    pub fn partition(&self, options: &PartitionOptions) -> Result<Partition> {
        let parts = self.parts;
        if parts == 1 {
            return Ok(Partition { part_count: 1, part_of: vec![0; self.graph.len()] });
        }
        let mut part_of = if self.is_fixed() {
            divide_evenly(&self.graph, parts)
        } else {
            let options = PartitionOptions { parts, ..*options };
            call_metis(&self.graph, &options).map_err(|error| {
                let message = format!("METIS failed: {error}");
                let failure = InputError::new(&self.file, At::Whole, message);
                match error.contains("memory") {
                    true => failure.help("increase the memory limit (<memory>)"),
                    false => failure,
                }
            })?
        };
        fill_empty_parts(&self.graph, parts, &mut part_of);
        Ok(Partition { part_count: parts, part_of })
    }

    /// As [`cut`].
    pub fn cut(&self, partition: &Partition) -> u64 {
        cut_of(&self.graph, partition)
    }

    /// By how much the weight of the heaviest part exceeds the average, as a fraction; with several
    /// weights per item, the greatest of them.
    pub fn imbalance(&self, partition: &Partition) -> f64 {
        Weights::new(&self.graph).imbalance(partition)
    }
}

/// The weight of the edges between items of different parts in the graph that METIS divides; without
/// edge weights their number. A list of connections has no items. A matrix must be square.
pub fn cut(source: &Source, partition: &Partition) -> u64 {
    cut_of(&item_graph(source), partition)
}

fn cut_of(graph: &ItemGraph, partition: &Partition) -> u64 {
    let part_of = partition.part_of();
    let mut cut = 0;
    for item in 0..graph.len() {
        for entry in index(graph.first[item])..index(graph.first[item + 1]) {
            if part_of[index(graph.neighbours[entry])] != part_of[item] {
                cut += graph.edge_weights.as_ref().map_or(1, |weights| u64::from(weights[entry]));
            }
        }
    }
    // Every edge is in the rows of both ends.
    cut / 2
}

/// By how much the weight of the heaviest part of a partition of `source` exceeds the average, as a
/// fraction; with several weights per item, the greatest of them.
pub fn imbalance(source: &Source, partition: &Partition) -> f64 {
    let mesh =
        |mesh: &Mesh| mesh.element_weights().map(|w| (w.to_vec(), mesh.weights_per_element()));
    let weights = match source {
        Source::Mesh(input) => mesh(input),
        Source::Decomposition(decomposition) => mesh(decomposition.mesh()),
        Source::Graph(graph) => {
            graph.vertex_weights().map(|w| (w.to_vec(), graph.weights_per_vertex()))
        }
        Source::Matrix(_) | Source::Connections(_) => None,
    };
    Weights::of(weights.as_ref()).imbalance(partition)
}

/// The weights of items that are balanced, one row for each item.
pub(crate) struct Weights<'a> {
    /// The weights of all items in order; `None` if each item weighs 1.
    weights: Option<&'a [u32]>,
    /// The number of weights per item.
    per_item: usize,
}

impl<'a> Weights<'a> {
    fn new(graph: &'a ItemGraph) -> Self {
        Self::of(graph.weights.as_ref())
    }

    fn of(weights: Option<&'a (Vec<u32>, usize)>) -> Self {
        match weights {
            Some((weights, per_item)) => Self { weights: Some(weights), per_item: *per_item },
            None => Self { weights: None, per_item: 1 },
        }
    }

    /// A weight of an item.
    pub(crate) fn weight(&self, item: u32, constraint: usize) -> u64 {
        self.weights.map_or(1, |all| u64::from(all[index(item) * self.per_item + constraint]))
    }

    /// The number of weights per item.
    pub(crate) fn per_item(&self) -> usize {
        self.per_item
    }

    /// The weights of each part, all constraints of a part in a row.
    pub(crate) fn of_parts(&self, partition: &Partition) -> Vec<u64> {
        let mut sums = vec![0; partition.part_count() * self.per_item];
        for (item, &part) in (0..).zip(partition.part_of()) {
            for constraint in 0..self.per_item {
                sums[index(part) * self.per_item + constraint] += self.weight(item, constraint);
            }
        }
        sums
    }

    fn imbalance(&self, partition: &Partition) -> f64 {
        let sums = self.of_parts(partition);
        let of_constraint = |constraint: usize| {
            let column = sums.iter().skip(constraint).step_by(self.per_item);
            let greatest = column.clone().max().map_or(0, |&sum| sum);
            let total: u64 = column.sum();
            match total {
                0 => 0.0,
                _ => to_f64(greatest) * to_f64(partition.part_count()) / to_f64(total) - 1.0,
            }
        };
        (0..self.per_item).map(of_constraint).fold(0.0, f64::max)
    }
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
    .set_option(metis::option::Seed(metis_int(options.seed & MAX_INT)));
    // Without a request recursive bisection of very many parts keeps METIS's own limit, which is
    // narrower.
    if options.parts <= MAX_KWAY_PARTS || options.imbalance != DEFAULT_IMBALANCE {
        let thousandths = options.imbalance.clamp(1, MAX_IMBALANCE);
        call = call.set_option(metis::option::UFactor(metis_int(thousandths)));
    }
    if let Some(weights) = &weights {
        call = call.set_vwgt(weights);
    }
    if let Some(weights) = &edge_weights {
        call = call.set_adjwgt(weights);
    }
    let mut part_of = vec![0i32; graph.len()];
    let kway = options.parts <= MAX_KWAY_PARTS && options.method != PartitionMethod::Bisection;
    let done = if kway {
        call = call.set_option(metis::option::MinConn(true));
        if options.method == PartitionMethod::KwayVolume {
            call = call.set_option(metis::option::ObjType::Vol);
        }
        call.part_kway(&mut part_of)
    } else {
        call.part_recursive(&mut part_of)
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
    use crate::model::{ConnectionList, Graph};

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
        partition(source, &PartitionOptions::new(parts).seed(seed), "f").unwrap()
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
                let error = partition(&source, &PartitionOptions::new(n + 1), "f");
                assert!(error.unwrap_err().help.unwrap().contains(&format!("at most {n}")));
                assert!(partition(&source, &PartitionOptions::new(0), "f").is_err());
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
        assert!(partition(&source, &PartitionOptions::new(3), "f").is_err());
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
