//! Gmsh MSH files, versions 2.2 and 4.1, ASCII and binary (Gmsh manual, "File formats").
//!
//! A file is a sequence of sections `$Name ... $EndName`. `$Nodes` and `$Elements` are read, in 4.1
//! also `$PartitionedEntities`; all other sections are skipped. Only the elements of the highest
//! dimension in the file are kept: those of lower dimensions are boundaries of the geometry and do
//! not affect an exchange. Of an element's type only the dimension and the number of nodes are used,
//! and an element's nodes keep their order.
//!
//! Nodes are numbered by the rank of their tags, so tags may have gaps and be in any order. If Gmsh
//! partitioned the mesh, the part of each element is kept: in 2.2 the first of an element's partition
//! tags, in 4.1 the partition of its entity.
//!
//! Binary files of either byte order are supported, in 4.1 with either size of `size_t`. Not
//! supported: other versions, and parametric nodes of 2.2 (`$ParametricNodes`).

mod elements;
mod encoding;
mod nodes;

use conset_ir::{InputError, Result};

use self::elements::{
    EntityParts, KeptElements, NO_PART, elements_22, elements_41, partitioned_entities,
};
use self::encoding::{Encoding, Reader, Version};
use self::nodes::read_nodes;
use super::cursor::{Cursor, show};
use super::numbering::NodeNumbering;
use crate::model::Mesh;

/// Reads a mesh.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Mesh> {
    let (mut reader, version) = header(file, bytes)?;
    let mut nodes: Option<(NodeNumbering, Vec<[f64; 3]>)> = None;
    let mut elements: Option<KeptElements> = None;
    let mut partition = EntityParts::default();
    while let Some(name) = reader.section()? {
        match name {
            b"Nodes" if nodes.is_some() => return Err(reader.cursor.error("a second $Nodes")),
            b"Nodes" => nodes = Some(read_nodes(&mut reader, version)?),
            b"Elements" if elements.is_some() => {
                return Err(reader.cursor.error("a second $Elements"));
            }
            b"Elements" => {
                let Some((numbering, _)) = &nodes else {
                    return Err(reader.cursor.error("$Elements comes before $Nodes"));
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
            .error_at(end, "some elements have a partition and others do not")
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

/// Reads `$MeshFormat`: version, ASCII or binary, size of a number; then, in binary files, the number
/// 1, which shows the byte order.
fn header<'a>(file: &'a str, bytes: &'a [u8]) -> Result<(Reader<'a>, Version)> {
    let mut cursor = Cursor::new(file, bytes);
    let convert = |error: InputError| {
        error
            .help("open it in Gmsh and save it as MSH 4.1 (`gmsh FILE -save -format msh41 -o OUT`)")
    };
    if cursor.token("$MeshFormat")? != b"$MeshFormat" {
        return Err(cursor.error("not a Gmsh file: it does not start with $MeshFormat"));
    }
    let version = match cursor.token("the format's version")? {
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
    let mut encoding = Encoding::Text;
    if binary {
        cursor.set_binary();
        let one: [u8; 4] = cursor.take("the number 1 that shows the byte order")?;
        let big_endian = match one {
            [1, 0, 0, 0] => false,
            [0, 0, 0, 1] => true,
            _ => {
                return Err(cursor
                    .error("expected the 4-byte number 1, which shows the byte order")
                    .help("the file may have been damaged by a transfer in text mode"));
            }
        };
        encoding = Encoding::Binary { big_endian, wide: size == 8 };
    }
    let mut reader = Reader { cursor, encoding };
    reader.end_section("MeshFormat")?;
    Ok((reader, version))
}
