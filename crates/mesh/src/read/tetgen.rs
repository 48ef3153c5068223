//! Elements of Triangle and TetGen (`.ele`; Shewchuk's and Si's manuals).
//!
//! The first line is `elements nodes-per-element attributes`; each other line has the number of an
//! element, its nodes and its attributes. `#` starts a comment. All numbers count from 0 or from 1,
//! according to the first element's number. Attributes are ignored. The coordinates are in a separate
//! `.node` file, which communication does not need and which is not read; the mesh has no
//! coordinates.

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{Result, limits};

use super::cursor::Cursor;
use super::metis::renumber_if_sparse;
use crate::model::Mesh;

/// Reads a mesh, and whether its numbers count from 0 or from 1.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<(Mesh, u64)> {
    let mut cursor = Cursor::new(file, bytes);
    cursor.skip_blank_and_comment_lines(b'#');
    let count = cursor.integer("the number of elements", to_u64(limits::ELEMENTS))?;
    if count == 0 {
        return Err(cursor.error("the mesh has no elements"));
    }
    let per_element = cursor.integer("3 or 6 nodes (triangles), 4 or 10 (tetrahedra)", 10)?;
    let dimension = match per_element {
        3 | 6 => 2,
        4 | 10 => 3,
        _ => {
            return Err(cursor.error(format!(
                "elements of {per_element} nodes; triangles have 3 or 6, tetrahedra 4 or 10"
            )));
        }
    };
    let attributes =
        if cursor.at_line_end() { 0 } else { cursor.integer("attributes", 1 << 16)? };
    end_line(&mut cursor, "elements, nodes of each and attributes of each")?;
    let mut nodes: Vec<u32> = Vec::with_capacity(cursor.capacity(count, 8) * to_usize(per_element));
    let mut base = 0;
    for element in 0..count {
        cursor.skip_blank_and_comment_lines(b'#');
        let number = cursor.integer("the number of an element", u64::MAX)?;
        if element == 0 {
            base = number;
        }
        if base > 1 || number != base + element {
            let expected =
                if base > 1 { "0 or 1".to_owned() } else { (base + element).to_string() };
            return Err(cursor.error(format!("element {number}; expected {expected}")));
        }
        for _ in 0..per_element + attributes {
            if cursor.at_line_end() {
                let message = format!(
                    "the line ends early; expected a number, {per_element} nodes and {attributes} \
                     attributes"
                );
                return Err(cursor.error_at(cursor.offset(), message));
            }
            if to_u64(nodes.len()) == (element + 1) * per_element {
                cursor.real("an attribute")?;
                continue;
            }
            let node = cursor.integer("a node", to_u64(limits::NODES))?;
            let Some(node) = node.checked_sub(base) else {
                return Err(cursor.error("node 0, but elements count from 1"));
            };
            nodes.push(to_u32(node));
        }
        if nodes.len() > limits::NODES {
            return Err(cursor.error("more element nodes than fit 31 bits"));
        }
        end_line(&mut cursor, "an element's number, nodes and attributes")?;
    }
    cursor.skip_blank_and_comment_lines(b'#');
    if !cursor.at_end() {
        let message = format!("the file has more than the {count} elements declared");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    let first = (0..=count).map(|e| to_u32(e * per_element)).collect();
    let (node_count, ids) = renumber_if_sparse(&mut nodes);
    let mesh = Mesh::new(dimension, node_count, Vec::new(), first, nodes);
    let mesh = match ids.is_empty() {
        true => mesh,
        false => mesh
            .and_then(|mesh| mesh.with_node_ids(ids.into_iter().map(|id| id - 1 + base).collect())),
    };
    mesh.map(|mesh| (mesh, base)).map_err(|error| error.in_file(file))
}

/// Ends a line that may have a comment at its end.
fn end_line(cursor: &mut Cursor<'_>, expected: &str) -> Result<()> {
    if !cursor.at_line_end() && cursor.rest().first() == Some(&b'#') {
        cursor.next_line();
        return Ok(());
    }
    cursor.end_line(expected)
}
