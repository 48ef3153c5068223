//! Spark98 pack files: partitioned meshes (O'Hallaron, CMU-CS-97-178).
//!
//! A file contains only numbers, in this order: `nodes dimension`, `elements corners`, `parts`,
//! `processors`; for each part three counts (its nodes; those of which it is the first holder; those
//! that no other part holds); the nodes of each part with their global numbers and coordinates; the
//! number of elements of each part; the elements of each part with their global numbers and corners
//! (local numbers); for each part the size of its matrix; the matrices as pairs; the length of each
//! part's communication lists; for each pair of parts a count and that many local nodes; a final 0.
//! Global numbers count from 1, local numbers from 0.
//!
//! The decomposition and the lists are used unchanged. The reader checks what an exchange depends
//! on: every element is in one part, a node has the same coordinates in all parts that hold it, and
//! the list from one part to another has the same global nodes in the same order as the list in the
//! other direction. The matrices are skipped.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Result, limits};

use super::cursor::Cursor;
use crate::model::{Decomposition, Mesh, SharedLists};

const UNSET: u32 = u32::MAX;

/// The header of a file.
struct Counts {
    nodes: usize,
    dimension: u8,
    elements: usize,
    corners: usize,
    parts: usize,
}

/// The nodes of all parts, part by part, as global numbers from 0.
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
    cursor.integer("the final 0", 0)?;
    cursor.skip_space();
    if !cursor.at_end() {
        return Err(cursor.error_at(cursor.offset(), "the file continues after its final 0"));
    }
    let first = (0..=counts.elements).map(|e| to_u32(e * counts.corners)).collect();
    let PartNodes { first: node_first, nodes, coordinates } = part_nodes;
    // The elements are triangles or tetrahedra, so their dimension is that of the space.
    Mesh::new(counts.dimension, counts.nodes, coordinates, first, corners)
        .and_then(|mesh| mesh.with_parts(parts, counts.parts))
        .and_then(|mesh| Decomposition::new(mesh, node_first, nodes, shared))
        .map_err(|error| error.in_file(file))
}

fn header(cursor: &mut Cursor<'_>) -> Result<Counts> {
    let size = cursor.rest().len();
    // Each node, element and part has its own line, so a count that the file cannot hold is wrong,
    // and arrays of a count that passes are safe to allocate.
    let limit = |limit: usize, row_bytes: usize| limit.min(size / row_bytes);
    let nodes = cursor.count("the number of nodes", limit(limits::NODES, 6))?;
    let dimension = match cursor.integer("the dimension", 3)? {
        2 => 2,
        3 => 3,
        other => return Err(cursor.error(format!("dimension {other}; expected 2 or 3"))),
    };
    let elements = cursor.count("the number of elements", limit(limits::ELEMENTS, 4))?;
    let corners = cursor.count("the number of corners", limits::ELEMENT_NODES)?;
    if corners == 0 || elements.saturating_mul(corners) > limits::NODES {
        return Err(cursor.error(format!("{elements} elements of {corners} corners")));
    }
    let parts = cursor.count("the number of parts", limit(limits::PARTS, 6))?;
    if parts == 0 {
        return Err(cursor.error("0 parts; expected at least 1"));
    }
    cursor.count("the number of processors", limits::PARTS)?;
    Ok(Counts { nodes, dimension, elements, corners, parts })
}

fn read_nodes(cursor: &mut Cursor<'_>, counts: &Counts) -> Result<PartNodes> {
    let mut first = vec![0u32];
    let mut total = 0usize;
    for _ in 0..counts.parts {
        let held = cursor.count("the number of nodes of a part", counts.nodes)?;
        let first_held =
            cursor.count("the number of nodes of which a part is the first holder", held)?;
        cursor.count("the number of nodes that only this part holds", first_held)?;
        total += held;
        if total > limits::NODES {
            return Err(cursor.error("more nodes in all parts than fit 31 bits"));
        }
        first.push(to_u32(total));
    }
    let mut nodes = Vec::with_capacity(cursor.capacity(to_u64(total), 6));
    let mut coordinates = vec![[f64::NAN; 3]; counts.nodes];
    let mut held_by = vec![UNSET; counts.nodes];
    for part in 0..to_u32(counts.parts) {
        for _ in first[index(part)]..first[index(part) + 1] {
            let number = cursor.number("the number of a node", counts.nodes)?;
            let position = cursor.last();
            if number == 0 {
                return Err(cursor.error("nodes count from 1"));
            }
            let node = index(number) - 1;
            let mut point = [0.0; 3];
            for x in &mut point[..usize::from(counts.dimension)] {
                *x = cursor.real("a coordinate")?;
            }
            let message = if held_by[node] == part {
                format!("node {number} is given twice in part {part}")
            } else if held_by[node] != UNSET && coordinates[node] != point {
                format!("node {number} has other coordinates in part {}", held_by[node])
            } else {
                held_by[node] = part;
                coordinates[node] = point;
                nodes.push(number - 1);
                continue;
            };
            return Err(cursor.error_at(position, message));
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
    let mut left = counts.elements;
    for _ in 0..counts.parts {
        let length = cursor.count("the number of elements of a part", left)?;
        left -= length;
        lengths.push(length);
    }
    if left > 0 {
        return Err(cursor.error(format!(
            "the parts have {} of the {} elements",
            counts.elements - left,
            counts.elements
        )));
    }
    let possible = cursor.capacity(to_u64(counts.elements), 2 * counts.corners);
    if possible < counts.elements {
        return Err(cursor.error(format!("the file is too short for {} elements", counts.elements)));
    }
    let mut parts = vec![UNSET; counts.elements];
    let mut corners = vec![0u32; counts.elements * counts.corners];
    for (part, &length) in (0..).zip(&lengths) {
        let nodes = part_nodes.of(index(part));
        for _ in 0..length {
            let number = cursor.count("the number of an element", counts.elements)?;
            if number == 0 {
                return Err(cursor.error("elements count from 1"));
            }
            let element = number - 1;
            if parts[element] != UNSET {
                return Err(cursor.error(format!(
                    "element {number} of part {part} is already in part {}",
                    parts[element]
                )));
            }
            parts[element] = part;
            let start = element * counts.corners;
            for corner in &mut corners[start..start + counts.corners] {
                *corner = local_node(cursor, nodes)?;
            }
        }
    }
    Ok((corners, parts))
}

/// Reads the local number of a node of a part; returns its global number.
fn local_node(cursor: &mut Cursor<'_>, nodes: &[u32]) -> Result<u32> {
    let max = nodes.len().checked_sub(1);
    let Some(max) = max else {
        return Err(cursor.error_at(cursor.offset(), "a node of a part that has no nodes"));
    };
    let local = cursor.count("a node of the part", max)?;
    Ok(nodes[local])
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
        lengths.push(cursor.count("the length of a part's lists", limits::NODES)?);
    }
    let mut lists = SharedLists { pairs: Vec::new(), first: vec![0], nodes: Vec::new() };
    // The position of the first node of each pair.
    let mut positions = Vec::new();
    for (part, &length) in (0..).zip(&lengths) {
        let nodes = part_nodes.of(index(part));
        let before = lists.nodes.len();
        for other in 0..to_u32(counts.parts) {
            let count = cursor.count("the length of a list", nodes.len())?;
            if count == 0 {
                continue;
            }
            if part == other {
                return Err(cursor.error(format!("part {part} shares nodes with itself")));
            }
            positions.push(cursor.last());
            for _ in 0..count {
                let node = local_node(cursor, nodes)?;
                lists.nodes.push(node);
            }
            if lists.nodes.len() > limits::NODES || lists.pairs.len() >= limits::CONNECTIONS {
                return Err(cursor.error("too many shared nodes or lists"));
            }
            lists.pairs.push((part, other));
            lists.first.push(to_u32(lists.nodes.len()));
        }
        let sum = lists.nodes.len() - before;
        if sum != length {
            return Err(cursor.error(format!(
                "the lists of part {part} have {sum} nodes, but {length} are declared"
            )));
        }
    }
    check_symmetry(cursor, &lists, &positions)?;
    Ok(lists)
}

/// Checks that the lists of a pair of parts are equal in both directions.
fn check_symmetry(cursor: &Cursor<'_>, lists: &SharedLists, positions: &[usize]) -> Result<()> {
    for (i, &(source, target)) in lists.pairs.iter().enumerate() {
        let back = lists.pairs.binary_search(&(target, source));
        let message = match back {
            Err(_) => {
                format!("part {source} has a list for part {target}, but not {target} for {source}")
            }
            Ok(back) if lists.of(i) != lists.of(back) => format!(
                "parts {source} and {target} do not list the same shared nodes in the same order"
            ),
            Ok(_) => continue,
        };
        return Err(cursor.error_at(positions[i], message).help(
            "words are matched by their position in these lists, so with a wrong list an exchange \
             would add values of different nodes",
        ));
    }
    Ok(())
}
