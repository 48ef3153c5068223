//! Merging the pieces of a mesh that is stored as one file for each part.
//!
//! Nodes and elements of the pieces are the same if they have the same number. The merged mesh is in
//! the order of these numbers, so it is the mesh that was divided.

use std::collections::BTreeMap;

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{At, InputError, Result, limits};

use super::{Assembly, Group, NO_PART};
use crate::model::ElementType;

/// How far apart the copies of a node may be, as a fraction of the largest coordinate: writers of
/// text round.
const TOLERANCE: f64 = 1e-6;

/// An element of a piece: its number, its piece and its place in the piece.
type Numbered = (u64, usize, usize);

/// Merges pieces; `names` are their names for errors.
///
/// # Errors
/// No pieces, two nodes or elements of one number that differ, or more nodes than the limits.
pub(crate) fn merge(format: String, names: &[&str], pieces: Vec<Assembly>) -> Result<Assembly> {
    let wrong = |piece: usize, message: String| {
        let name = names.get(piece).copied().unwrap_or("<mesh>");
        InputError::new(name, At::Whole, message)
    };
    let mut merged = Assembly::new(format);
    let ids = merge_nodes(&pieces, &mut merged).map_err(|(piece, text)| wrong(piece, text))?;
    let rank = |id: u64| ids.binary_search(&id).map_or(u32::MAX, to_u32);
    let mut elements: Vec<Numbered> = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let ids = ids_of(&piece.element_ids, piece.types.len());
        elements.extend(ids.enumerate().map(|(place, id)| (id, number, place)));
    }
    elements.sort_unstable();
    let (mut kept_ids, mut parts) = (Vec::new(), Vec::new());
    let mut last: Option<(u64, ElementType, Vec<u32>)> = None;
    for (id, number, place) in elements {
        let piece = &pieces[number];
        let own: Vec<u32> =
            piece.element(place).iter().map(|&node| rank(piece.node_id(node))).collect();
        let part = piece.parts.get(place).copied().unwrap_or(NO_PART);
        let own = (id, piece.types[place], own);
        match &last {
            Some(before) if is_copy(before, &own) => {
                // A copy on the border of two parts. It belongs to the first that claims it.
                if let Some(of) = parts.last_mut().filter(|of| **of == NO_PART) {
                    *of = part;
                }
                continue;
            }
            Some(before) if before.0 == id => {
                let message = format!("element {id} has other nodes in another piece");
                return Err(wrong(number, message));
            }
            _ => {}
        }
        if own.2.len() > limits::NODES - merged.nodes.len() {
            return Err(wrong(number, "more element nodes than 31 bits can count".to_owned()));
        }
        merged.push(own.1, &own.2);
        kept_ids.push(id);
        parts.push(part);
        last = Some(own);
    }
    merged.set_element_ids(kept_ids);
    let part_count = pieces.iter().map(|piece| piece.part_count).max().unwrap_or(0);
    if part_count > 0 {
        merged.set_parts(parts, part_count);
    }
    let has_node_order = pieces.iter().all(|piece| piece.has_node_order);
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for piece in pieces {
        for &(a, b) in &piece.same_nodes {
            merged.same_nodes.push((rank(piece.node_id(a)), rank(piece.node_id(b))));
        }
        for group in piece.groups {
            match known.get(&group.name) {
                Some(&at) => groups[at].element_count += group.element_count,
                None => {
                    known.insert(group.name.clone(), groups.len());
                    groups.push(group);
                }
            }
        }
        for unused in piece.unused {
            if !merged.unused.contains(&unused) {
                merged.unused.push(unused);
            }
        }
    }
    merged.has_node_order = has_node_order;
    merged.groups = groups;
    merged.same_nodes.sort_unstable();
    merged.same_nodes.dedup();
    Ok(merged)
}

/// Whether two elements have the same number, type and nodes; their nodes may be in another order.
fn is_copy(a: &(u64, ElementType, Vec<u32>), b: &(u64, ElementType, Vec<u32>)) -> bool {
    let sorted = |nodes: &[u32]| {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes
    };
    (a.0, a.1) == (b.0, b.1) && sorted(&a.2) == sorted(&b.2)
}

/// Sets the nodes of all pieces; returns their ids, ascending. Errors have the number of a piece.
fn merge_nodes(
    pieces: &[Assembly],
    merged: &mut Assembly,
) -> std::result::Result<Vec<u64>, (usize, String)> {
    let mut nodes: Vec<Numbered> = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        if piece.coordinates.len() != piece.node_count {
            return Err((number, "the nodes have no coordinates".to_owned()));
        }
        let outside = |node: &&u32| index(**node) >= piece.node_count;
        let joined = piece.same_nodes.iter().flat_map(|(a, b)| [a, b]);
        if let Some(node) = piece.nodes.iter().chain(joined).find(outside) {
            return Err((number, format!("node {node} of {}", piece.node_count)));
        }
        let ids = ids_of(&piece.node_ids, piece.node_count);
        nodes.extend(ids.enumerate().map(|(place, id)| (id, number, place)));
    }
    nodes.sort_unstable();
    let all = pieces.iter().flat_map(|piece| &piece.coordinates).flatten();
    let tolerance = TOLERANCE * all.fold(0.0, |most: f64, x| most.max(x.abs()));
    let (mut ids, mut points): (Vec<u64>, Vec<[f64; 3]>) = (Vec::new(), Vec::new());
    for (id, number, place) in nodes {
        let point = pieces[number].coordinates[place];
        match points.last() {
            Some(before) if ids.last() == Some(&id) => {
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance;
                if !before.iter().zip(&point).all(near) {
                    return Err((number, format!("node {id} is elsewhere in another piece")));
                }
            }
            _ => {
                ids.push(id);
                points.push(point);
            }
        }
    }
    if ids.len() > limits::NODES {
        return Err((
            0,
            format!("{} nodes in all pieces; the limit is {}", ids.len(), limits::NODES),
        ));
    }
    let in_order = ids.iter().zip(1u64..).all(|(&id, position)| id == position);
    merged.set_nodes(ids.len(), if in_order { Vec::new() } else { ids.clone() }, points);
    Ok(ids)
}

/// The stated ids, or 1, 2, 3 and so on.
fn ids_of(stated: &[u64], count: usize) -> impl Iterator<Item = u64> + '_ {
    (0..count).map(move |place| stated.get(place).copied().unwrap_or(to_u64(place) + 1))
}

impl Assembly {
    fn node_id(&self, node: u32) -> u64 {
        self.node_ids.get(index(node)).copied().unwrap_or(u64::from(node) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Shape;

    fn piece(ids: &[u64], nodes: [u32; 3], element: u64, part: u32) -> Assembly {
        let mut made = Assembly::new("test");
        let points = ids.iter().map(|&id| [f64::from(to_u32(id)), 0.0, 1.0]).collect();
        made.set_nodes(ids.len(), ids.to_vec(), points);
        made.push(ElementType::new(Shape::Triangle, 3).unwrap(), &nodes);
        made.push(ElementType::new(Shape::Line, 2).unwrap(), &[0, 1]);
        made.set_element_ids(vec![element, 99]);
        made.set_parts(vec![part, NO_PART], 2);
        made.add_group("all", 2);
        made
    }

    fn merged(pieces: Vec<Assembly>) -> Result<Assembly> {
        merge("test".to_owned(), &["one", "two"], pieces)
    }

    #[test]
    fn pieces_become_the_mesh_that_was_divided() {
        let two = vec![piece(&[7, 9, 11], [0, 1, 2], 5, 1), piece(&[7, 9, 8], [2, 1, 0], 3, 0)];
        let made = merged(two).unwrap().into_mesh("f").unwrap();
        assert_eq!(made.mesh.node_ids(), [7, 8, 9, 11]);
        assert_eq!((made.mesh.element(0), made.mesh.element(1)), (&[1, 2, 0][..], &[0, 2, 3][..]));
        assert_eq!((made.mesh.parts(), made.origin.ids.as_slice()), (&[0, 1][..], &[3, 5, 99][..]));
        // The line is in both pieces and counts once.
        assert_eq!((made.inventory.attached(), made.inventory.groups[0].element_count), (1, 4));
    }

    #[test]
    fn pieces_that_contradict_each_other_are_refused() {
        let one = || piece(&[7, 9, 11], [0, 1, 2], 5, 0);
        let error = |other| merged(vec![one(), other]).unwrap_err().to_string();
        assert!(
            error(piece(&[7, 9, 8], [2, 1, 0], 5, 1)).contains("two: element 5 has other nodes")
        );
        let mut moved = piece(&[7, 9, 8], [2, 1, 0], 3, 1);
        moved.coordinates[0][1] = 0.5;
        assert!(error(moved).contains("node 7 is elsewhere"));
        assert!(error(piece(&[7, 9, 8], [3, 1, 0], 3, 1)).contains("node 3 of 3"));
        let mut none = one();
        none.coordinates.clear();
        assert!(error(none).contains("no coordinates"));
    }
}
