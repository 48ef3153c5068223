//! Spark98 pack files: a mesh already cut into parts (O'Hallaron, CMU-CS-97-178).
//!
//! All numbers, in this order: `nodes dimension`, `elements corners`, `parts`, `processors`; for
//! each part three counts (its nodes; those it is the first to hold; those it alone holds); the
//! nodes of each part with their global numbers and coordinates; the number of elements of each
//! part; the elements of each part with their global numbers and corners (local numbers); for
//! each part the size of its matrix, and the matrices as pairs; the length of each part's
//! communication lists; for each part, for each part, a count and so many local nodes; a
//! closing 0. Global numbers count from 1, local ones from 0.
//!
//! The decomposition and the lists are used as they are. They are checked for what an exchange
//! stands on: every element is in one part, a node has the same place in all parts that hold it,
//! and the list from one part to another names the same global nodes, in the same order, as the
//! list back. The matrices are passed over.

use conset_ir::{Result, limits};

use super::cursor::Cursor;
use crate::model::{Decomposition, Mesh, SharedLists};

const UNSET: u32 = u32::MAX;

struct Counts {
    nodes: usize,
    dimension: usize,
    elements: usize,
    corners: usize,
    parts: usize,
}

/// Nodes of all parts, part behind part, as global numbers from 0.
struct PartNodes {
    first: Vec<u32>,
    nodes: Vec<u32>,
    coordinates: Vec<[f64; 3]>,
}

impl PartNodes {
    fn of(&self, part: usize) -> &[u32] {
        crate::model::row(&self.first, &self.nodes, part)
    }
}

/// Reads a decomposition.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Decomposition> {
    let mut cursor = Cursor::new(file, bytes);
    let counts = header(&mut cursor)?;
    let part_nodes = read_nodes(&mut cursor, &counts)?;
    let (corners, parts) = read_elements(&mut cursor, &counts, &part_nodes)?;
    skip_matrices(&mut cursor, &counts, &part_nodes)?;
    let shared = read_lists(&mut cursor, &counts, &part_nodes)?;
    cursor.integer("the closing 0", 0)?;
    cursor.skip_space();
    if !cursor.at_end() {
        return Err(cursor.error_at(cursor.offset(), "the file goes on after its closing 0"));
    }
    let first = (0..=counts.elements).map(|e| (e * counts.corners) as u32).collect();
    let PartNodes { first: node_first, nodes, coordinates } = part_nodes;
    // Triangles and tetrahedra have one corner more than dimensions; other elements do not occur.
    Mesh::new(counts.dimension as u8, counts.nodes, coordinates, first, corners)
        .and_then(|mesh| mesh.with_parts(parts, counts.parts))
        .and_then(|mesh| Decomposition::new(mesh, node_first, nodes, shared))
        .map_err(|error| error.in_file(file))
}

fn header(cursor: &mut Cursor<'_>) -> Result<Counts> {
    let size = cursor.rest().len();
    // Each node, element and part has a line of its own, so a count beyond what the file can hold
    // is wrong, and arrays may be made for a count that passed.
    let limit = |limit: usize, row_bytes: usize| limit.min(size / row_bytes) as u64;
    let nodes = cursor.integer("the number of nodes", limit(limits::NODES, 6))? as usize;
    let dimension = cursor.integer("the dimension", 3)? as usize;
    if dimension < 2 {
        return Err(cursor.error(format!("dimension {dimension}; expected 2 or 3")));
    }
    let elements = cursor.integer("the number of elements", limit(limits::ELEMENTS, 4))? as usize;
    let corners = cursor.integer("the number of corners", limits::ELEMENT_NODES as u64)? as usize;
    if corners == 0 || elements.saturating_mul(corners) > limits::NODES {
        return Err(cursor.error(format!("{elements} elements of {corners} corners")));
    }
    let parts = cursor.integer("the number of parts", limit(limits::PARTS, 6))? as usize;
    if parts == 0 {
        return Err(cursor.error("0 parts; expected at least 1"));
    }
    cursor.integer("the number of processors", limits::PARTS as u64)?;
    Ok(Counts { nodes, dimension, elements, corners, parts })
}

fn read_nodes(cursor: &mut Cursor<'_>, counts: &Counts) -> Result<PartNodes> {
    let mut first = vec![0u32];
    let mut total = 0usize;
    for _ in 0..counts.parts {
        let held = cursor.integer("the number of nodes of a part", counts.nodes as u64)?;
        let mine = cursor.integer("the number of nodes that a part is first to hold", held)?;
        cursor.integer("the number of nodes that a part alone holds", mine)?;
        total += held as usize;
        if total > limits::NODES {
            return Err(cursor.error("more nodes in all parts than 31 bits can count"));
        }
        first.push(total as u32);
    }
    let mut nodes = Vec::with_capacity(cursor.capacity(total as u64, 6));
    let mut coordinates = vec![[f64::NAN; 3]; counts.nodes];
    let mut held_by = vec![UNSET; counts.nodes];
    for part in 0..counts.parts as u32 {
        for _ in first[part as usize]..first[part as usize + 1] {
            let number = cursor.integer("the number of a node", counts.nodes as u64)?;
            let place = cursor.last();
            if number == 0 {
                return Err(cursor.error("nodes count from 1"));
            }
            let node = number as usize - 1;
            let mut point = [0.0; 3];
            for x in &mut point[..counts.dimension] {
                *x = cursor.real("a coordinate")?;
            }
            let message = if held_by[node] == part {
                format!("node {number} is given twice in part {part}")
            } else if held_by[node] != UNSET && coordinates[node] != point {
                format!("node {number} has another place in part {}", held_by[node])
            } else {
                held_by[node] = part;
                coordinates[node] = point;
                nodes.push(node as u32);
                continue;
            };
            return Err(cursor.error_at(place, message));
        }
    }
    if let Some(node) = held_by.iter().position(|&part| part == UNSET) {
        return Err(cursor.error(format!("node {} is in no part", node + 1)));
    }
    Ok(PartNodes { first, nodes, coordinates })
}

/// The corners of all elements and the part of each.
fn read_elements(
    cursor: &mut Cursor<'_>,
    counts: &Counts,
    part_nodes: &PartNodes,
) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut lengths = Vec::with_capacity(counts.parts);
    let mut left = counts.elements as u64;
    for _ in 0..counts.parts {
        let length = cursor.integer("the number of elements of a part", left)?;
        left -= length;
        lengths.push(length);
    }
    if left > 0 {
        return Err(cursor.error(format!(
            "the parts have {} of the {} elements",
            counts.elements as u64 - left,
            counts.elements
        )));
    }
    let room = cursor.capacity(counts.elements as u64, 2 * counts.corners);
    if room < counts.elements {
        return Err(cursor.error(format!("{} elements in a file too short", counts.elements)));
    }
    let mut parts = vec![UNSET; counts.elements];
    let mut corners = vec![0u32; counts.elements * counts.corners];
    for (part, &length) in lengths.iter().enumerate() {
        let nodes = part_nodes.of(part);
        for _ in 0..length {
            let number = cursor.integer("the number of an element", counts.elements as u64)?;
            if number == 0 {
                return Err(cursor.error("elements count from 1"));
            }
            let element = number as usize - 1;
            if parts[element] != UNSET {
                return Err(cursor.error(format!(
                    "element {number} of part {part} is already in part {}",
                    parts[element]
                )));
            }
            parts[element] = part as u32;
            let start = element * counts.corners;
            for corner in &mut corners[start..start + counts.corners] {
                *corner = local_node(cursor, nodes)?;
            }
        }
    }
    Ok((corners, parts))
}

/// Reads a part's own number of a node; the global one.
fn local_node(cursor: &mut Cursor<'_>, nodes: &[u32]) -> Result<u32> {
    let max = nodes.len().checked_sub(1);
    let Some(max) = max else {
        return Err(cursor.error_at(cursor.offset(), "a node of a part that has none"));
    };
    let local = cursor.integer("a node of the part", max as u64)?;
    Ok(nodes[local as usize])
}

fn skip_matrices(cursor: &mut Cursor<'_>, counts: &Counts, part_nodes: &PartNodes) -> Result<()> {
    let mut entries = Vec::with_capacity(counts.parts);
    for _ in 0..counts.parts {
        entries.push(cursor.integer("the number of entries of a matrix", u64::MAX)?);
        cursor.integer("the size of a full matrix", u64::MAX)?;
    }
    for (part, &count) in entries.iter().enumerate() {
        let nodes = part_nodes.of(part);
        for _ in 0..count {
            local_node(cursor, nodes)?;
            local_node(cursor, nodes)?;
        }
    }
    Ok(())
}

fn read_lists(
    cursor: &mut Cursor<'_>,
    counts: &Counts,
    part_nodes: &PartNodes,
) -> Result<SharedLists> {
    let mut lengths = Vec::with_capacity(counts.parts);
    for _ in 0..counts.parts {
        lengths.push(cursor.integer("the length of a part's lists", limits::NODES as u64)?);
    }
    let mut lists = SharedLists { pairs: Vec::new(), first: vec![0], nodes: Vec::new() };
    // Where the first node of each pair stands.
    let mut places = Vec::new();
    for (part, &length) in lengths.iter().enumerate() {
        let nodes = part_nodes.of(part);
        let before = lists.nodes.len();
        for other in 0..counts.parts {
            let count = cursor.integer("the length of a list", nodes.len() as u64)?;
            if count == 0 {
                continue;
            }
            if part == other {
                return Err(cursor.error(format!("part {part} shares nodes with itself")));
            }
            places.push(cursor.last());
            for _ in 0..count {
                let node = local_node(cursor, nodes)?;
                lists.nodes.push(node);
            }
            if lists.nodes.len() > limits::NODES || lists.pairs.len() >= limits::CONNECTIONS {
                return Err(cursor.error("more shared nodes or more lists than can be counted"));
            }
            lists.pairs.push((part as u32, other as u32));
            lists.first.push(lists.nodes.len() as u32);
        }
        let sum = lists.nodes.len() - before;
        if sum as u64 != length {
            return Err(cursor.error(format!(
                "the lists of part {part} have {sum} nodes, but {length} are declared"
            )));
        }
    }
    check_both_ways(cursor, &lists, &places)?;
    Ok(lists)
}

/// The list to a part and the list back must be one.
fn check_both_ways(cursor: &Cursor<'_>, lists: &SharedLists, places: &[usize]) -> Result<()> {
    for (i, &(source, target)) in lists.pairs.iter().enumerate() {
        let back = lists.pairs.binary_search(&(target, source));
        let message = match back {
            Err(_) => format!("part {source} shares nodes with {target}, but not {target} with it"),
            Ok(back) if lists.of(i) != lists.of(back) => format!(
                "parts {source} and {target} do not list the same shared nodes in the same order"
            ),
            Ok(_) => continue,
        };
        return Err(cursor.error_at(places[i], message).help(
            "words are matched by their place in these lists, so a wrong list would add up the \
             values of different nodes",
        ));
    }
    Ok(())
}
