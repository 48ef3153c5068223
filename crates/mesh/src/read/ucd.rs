//! AVS UCD files, ASCII (AVS documentation, "Unstructured cell data").
//!
//! ```text
//! # comments
//! nodes cells node_data cell_data model_data
//! id x y z                    for each node
//! id material type nodes...   for each cell; type is pt, line, tri, quad, tet, pyr, prism or hex
//! ```
//!
//! Node ids may have gaps and any order; nodes are numbered by the rank of their ids. Materials
//! become groups. Data at nodes and cells are not used. The binary form is refused.

use std::collections::BTreeMap;

use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use super::{push_element, rank_nodes};
use crate::model::element_type::from_ucd;
use crate::model::{Assembly, ElementType};

/// Reads all elements of a file.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let mut cursor = Cursor::new(file, bytes);
    if bytes.first() == Some(&7) {
        return Err(cursor.error("a binary UCD file").help("save it as ASCII"));
    }
    let mut assembly = Assembly::new("AVS UCD");
    cursor.skip_blank_and_comment_lines(b'#');
    let node_count = cursor.count("the number of nodes", limits::NODES)?;
    let cell_count = cursor.count("the number of cells", limits::ELEMENTS)?;
    let mut data = [0; 3];
    for number in &mut data {
        if cursor.at_line_end() {
            let message = "the line ends early; expected 5 numbers: nodes, cells, and the data of \
                           nodes, cells and model";
            return Err(cursor.error_at(cursor.offset(), message));
        }
        *number = cursor.integer("a number of data", u64::MAX)?;
    }
    cursor.end_line("nodes, cells, and the data of nodes, cells and model")?;

    let room = cursor.capacity(conset_ir::convert::to_u64(node_count), 8);
    let mut nodes = Vec::with_capacity(room);
    for _ in 0..node_count {
        cursor.skip_blank_and_comment_lines(b'#');
        let id = cursor.integer("the id of a node", u64::MAX)?;
        let offset = cursor.last();
        let mut point = [0.0; 3];
        for x in &mut point {
            if cursor.at_line_end() {
                let message = "the row ends early; expected id and three coordinates";
                return Err(cursor.error_at(cursor.offset(), message));
            }
            *x = cursor.real("a coordinate")?;
        }
        cursor.end_line("id and three coordinates")?;
        nodes.push((id, point, offset));
    }
    let numbering = rank_nodes(&cursor, nodes, &mut assembly)?;

    let mut materials: BTreeMap<String, usize> = BTreeMap::new();
    let mut ids = Vec::new();
    let mut own = Vec::new();
    for _ in 0..cell_count {
        cursor.skip_blank_and_comment_lines(b'#');
        ids.push(cursor.integer("the id of a cell", u64::MAX)?);
        let material = cursor.token("the material of a cell")?;
        *materials.entry(show(material)).or_default() += 1;
        let name = cursor.token("the type of a cell")?;
        let Some(shape) = from_ucd(name) else {
            return Err(cursor.error(format!(
                "`{}` is not a cell type; expected pt, line, tri, quad, tet, pyr, prism or hex",
                show(name)
            )));
        };
        let start = cursor.last();
        own.clear();
        while !cursor.at_line_end() && own.len() <= limits::ELEMENT_NODES {
            let id = cursor.integer("a node of a cell", u64::MAX)?;
            let node = numbering.rank(id);
            own.push(node.ok_or_else(|| cursor.error(format!("node {id} is not in the file")))?);
        }
        // Middle nodes of edges may follow the corners.
        let quadratic = shape.corner_count() < own.len() && own.len() <= 27;
        let element_type = ElementType::new(shape, own.len())
            .filter(|of| of.is_linear() || quadratic)
            .ok_or_else(|| {
                let (count, name, corners) = (own.len(), show(name), shape.corner_count());
                cursor.error_at(start, format!("{count} nodes; a {name} has at least {corners}"))
            })?;
        push_element(&cursor, &mut assembly, element_type, &own)?;
        cursor.next_line();
    }
    assembly.set_element_ids(ids);
    for (material, count) in materials {
        assembly.add_group(format!("material {material}"), count);
    }
    for (count, of) in data.into_iter().zip(["node", "cell", "model"]) {
        if count > 0 {
            assembly
                .add_unused(format!("{count} components of {of} data"), "values are not needed");
        }
    }
    if data == [0; 3] {
        cursor.skip_blank_and_comment_lines(b'#');
        if !cursor.at_end() {
            let word = show(cursor.peek_token());
            let message = format!("`{word}`: the file has more rows than its first line says");
            return Err(cursor.error_at(cursor.offset(), message));
        }
    }
    Ok(assembly)
}
