//! Steps that readers share when they fill an [`Assembly`].

use conset_ir::{Result, limits};

use super::cursor::Cursor;
use super::numbering::NodeNumbering;
use crate::model::{Assembly, ElementType};

/// Adds an element, unless 31 bits cannot count the nodes of all elements.
pub(super) fn push_element(
    cursor: &Cursor<'_>,
    assembly: &mut Assembly,
    element_type: ElementType,
    nodes: &[u32],
) -> Result<()> {
    if nodes.len() > limits::NODES - assembly.element_node_count() {
        return Err(cursor.error("more element nodes than 31 bits can count"));
    }
    if nodes.len() > limits::ELEMENT_NODES {
        let (count, most) = (nodes.len(), limits::ELEMENT_NODES);
        return Err(cursor.error(format!("an element of {count} nodes, at most {most}")));
    }
    assembly.push(element_type, nodes);
    Ok(())
}

/// Numbers nodes by the rank of their ids and sets them. Each comes with its id, its point and
/// where it stands in the file.
pub(super) fn rank_nodes(
    cursor: &Cursor<'_>,
    mut nodes: Vec<(u64, [f64; 3], usize)>,
    assembly: &mut Assembly,
) -> Result<NodeNumbering> {
    // By place too, so that the second of two is the one in the error.
    nodes.sort_unstable_by_key(|&(id, _, offset)| (id, offset));
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (id, _, offset) = pair[1];
        return Err(cursor.error_at(offset, format!("node {id} is given twice")));
    }
    let ids: Vec<u64> = nodes.iter().map(|node| node.0).collect();
    let points = nodes.into_iter().map(|node| node.1).collect();
    let numbering = NodeNumbering::new(ids);
    assembly.set_nodes(numbering.len(), numbering.ids(), points);
    Ok(numbering)
}

/// Checks that a declared count of items of `size` bytes each can be in the rest of a binary file.
pub(super) fn check_room(cursor: &Cursor<'_>, count: usize, size: usize, what: &str) -> Result<()> {
    let room = cursor.rest().len();
    if count > room / size.max(1) {
        let message = format!("{count} {what} of {size} bytes, but only {room} bytes follow");
        return Err(cursor.error(message));
    }
    Ok(())
}
