//! Version 1 of the format, always text: sections `$NOD` and `$ELM`.

use conset_ir::convert::{to_u64, to_usize};
use conset_ir::{Result, limits};

use super::elements::{Elements, known_type};
use super::encoding::{Encoding, Reader};
use crate::model::Assembly;
use crate::read::cursor::{Cursor, show};
use crate::read::rank_nodes;

/// Reads a file that starts with `$NOD`.
pub(super) fn read(cursor: Cursor<'_>) -> Result<Assembly> {
    let mut reader = Reader { cursor, encoding: Encoding::Text, wide_tags: false };
    let mut assembly = Assembly::new("Gmsh 1, ASCII");
    section(&mut reader, b"$NOD")?;
    let count = reader.cursor.integer("the number of nodes", to_u64(limits::NODES))?;
    let mut nodes = Vec::with_capacity(reader.cursor.capacity(count, 8));
    for _ in 0..count {
        let id = reader.count("the number of a node")?;
        let offset = reader.cursor.last();
        let mut point = [0.0; 3];
        for x in &mut point {
            *x = reader.real("a coordinate")?;
        }
        nodes.push((id, point, offset));
    }
    section(&mut reader, b"$ENDNOD")?;
    let numbering = rank_nodes(&reader.cursor, nodes, &mut assembly)?;
    section(&mut reader, b"$ELM")?;
    let count = reader.cursor.integer("the number of elements", to_u64(limits::ELEMENTS))?;
    let mut elements = Elements::default();
    for _ in 0..count {
        let id = reader.count("the number of an element")?;
        let number = reader.count("the type of an element")?;
        let element_type = known_type(&reader, number)?;
        let group = reader.int("the physical region of an element")?;
        reader.int("the elementary region of an element")?;
        let nodes = reader.count("the number of nodes of an element")?;
        if to_usize(nodes) != element_type.node_count() {
            let message = format!("{nodes} nodes for type {number} ({element_type})");
            return Err(reader.cursor.error(message));
        }
        elements.nodes(&mut reader, &numbering, &mut assembly, element_type)?;
        elements.end(id, None, &[group], element_type.dimension());
    }
    section(&mut reader, b"$ENDELM")?;
    reader.cursor.skip_space();
    if !reader.cursor.at_end() {
        let token = show(reader.cursor.peek_token());
        let message = format!("expected the end of the file, found `{token}`");
        return Err(reader.cursor.error_at(reader.cursor.offset(), message));
    }
    elements.finish(&mut assembly, 0, &Default::default());
    Ok(assembly)
}

fn section(reader: &mut Reader<'_>, name: &[u8]) -> Result<()> {
    let token = reader.cursor.token(&show(name))?;
    if token != name {
        let message = format!("expected {}, found `{}`", show(name), show(token));
        return Err(reader.cursor.error(message));
    }
    Ok(())
}
