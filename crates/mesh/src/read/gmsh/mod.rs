//! Gmsh MSH files, versions 2.2 and 4.1, ASCII and binary (Gmsh manual, "File formats").
//!
//! A file is a row of sections `$Name ... $EndName`. `$Nodes` and `$Elements` are read, in 4.1
//! also `$PartitionedEntities`; every other section is skipped unread. Of the elements only those
//! of the highest dimension in the file are kept: the lower ones are boundaries that the geometry
//! drew, and take no part in an exchange. The kind of element matters by dimension and node count
//! only, and nodes stay in the file's order.
//!
//! Nodes are numbered by the rank of their tags, so tags may have gaps and come in any order. If
//! Gmsh partitioned the mesh, the part of each element is kept: in 2.2 the first of an element's
//! partition tags, in 4.1 the partition of its entity.
//!
//! Binary files of either byte order are read, and in 4.1 of either size of `size_t`. Not read:
//! versions other than these two, parametric nodes of 2.2 (`$ParametricNodes`).

mod coding;
mod elements;
mod nodes;

use conset_ir::{InputError, Result};

use self::coding::{Coding, Reader, Version};
use self::elements::{
    Elements, NO_PART, Partition, elements_22, elements_41, partitioned_entities,
};
use self::nodes::read_nodes;
use super::cursor::{Cursor, show};
use super::numbering::Numbering;
use crate::model::Mesh;

/// Reads a mesh.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Mesh> {
    let (mut reader, version) = header(file, bytes)?;
    let mut nodes: Option<(Numbering, Vec<[f64; 3]>)> = None;
    let mut elements: Option<Elements> = None;
    let mut partition = Partition::default();
    while let Some(name) = reader.section()? {
        match name {
            b"Nodes" if nodes.is_some() => return Err(reader.cursor.error("a second $Nodes")),
            b"Nodes" => nodes = Some(read_nodes(&mut reader, version)?),
            b"Elements" if elements.is_some() => {
                return Err(reader.cursor.error("a second $Elements"));
            }
            b"Elements" => {
                let Some((numbering, _)) = &nodes else {
                    return Err(reader.cursor.error("$Elements stands before $Nodes"));
                };
                elements = Some(match version {
                    Version::V22 => elements_22(&mut reader, numbering, &mut partition)?,
                    Version::V41 => elements_41(&mut reader, numbering, &partition)?,
                });
                reader.end_section("Elements")?;
            }
            b"PartitionedEntities" if version == Version::V41 => {
                partition = partitioned_entities(&mut reader)?;
                reader.end_section("PartitionedEntities")?;
            }
            _ => reader.skip_section(name)?,
        }
    }
    let end = reader.cursor.offset();
    let Some((numbering, points)) = nodes else {
        return Err(reader.cursor.error_at(end, "the file ends without $Nodes"));
    };
    let Some(mut elements) = elements.filter(|e| !e.parts.is_empty()) else {
        return Err(reader
            .cursor
            .error_at(end, "the file has no elements")
            .help("mesh the model before saving it, and save all elements"));
    };
    if elements.any_part && elements.parts.contains(&NO_PART) {
        return Err(reader
            .cursor
            .error_at(end, "some elements are in a part and some are not")
            .help("partition the whole mesh, or save it without partitions"));
    }
    elements.first.insert(0, 0);
    let shape = |error: conset_ir::ShapeError| error.in_file(file);
    let mut mesh =
        Mesh::new(elements.dimension, numbering.len(), points, elements.first, elements.nodes)
            .map_err(shape)?;
    let ids = numbering.into_ids();
    if !ids.is_empty() {
        mesh = mesh.with_node_ids(ids).map_err(shape)?;
    }
    if elements.any_part {
        mesh = mesh.with_parts(elements.parts, partition.count).map_err(shape)?;
    }
    Ok(mesh)
}

/// `$MeshFormat`: version, ASCII or binary, size of a number; in binary files then the number 1,
/// which tells the byte order.
fn header<'a>(file: &'a str, bytes: &'a [u8]) -> Result<(Reader<'a>, Version)> {
    let mut cursor = Cursor::new(file, bytes);
    let convert = |error: InputError| {
        error
            .help("open it in Gmsh and save it as MSH 4.1 (`gmsh FILE -save -format msh41 -o OUT`)")
    };
    if cursor.word("$MeshFormat")? != b"$MeshFormat" {
        return Err(cursor.error("not a Gmsh file: it does not begin with $MeshFormat"));
    }
    let version = match cursor.word("the format's version")? {
        b"2.2" => Version::V22,
        b"4.1" => Version::V41,
        other => {
            let other = show(other);
            return Err(convert(cursor.error(format!("version `{other}`; expected 2.2 or 4.1"))));
        }
    };
    let binary = cursor.integer("0 for ASCII or 1 for binary", 1)? == 1;
    let size = cursor.integer("the size of a number in bytes", 8)?;
    if size != 8 && !(size == 4 && version == Version::V41) {
        return Err(convert(cursor.error(format!("numbers of {size} bytes; expected 8"))));
    }
    cursor.end_line("version, file type and size of a number")?;
    let mut coding = Coding::Text;
    if binary {
        cursor.set_binary();
        let one: [u8; 4] = cursor.take("the number 1 that tells the byte order")?;
        let big_endian = match one {
            [1, 0, 0, 0] => false,
            [0, 0, 0, 1] => true,
            _ => {
                return Err(cursor
                    .error("expected the 4-byte number 1, which tells the byte order")
                    .help("the file may have been changed by a transfer in text mode"));
            }
        };
        coding = Coding::Binary { big_endian, wide: size == 8 };
    }
    let mut reader = Reader { cursor, coding };
    reader.end_section("MeshFormat")?;
    Ok((reader, version))
}
