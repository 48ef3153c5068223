//! Gmsh MSH files, versions 1, 2.0 to 2.2, 4.0 and 4.1, ASCII and binary (Gmsh manual, "File formats").
//!
//! A file is a sequence of sections `$Name ... $EndName`. Nodes, elements, entities, physical names
//! and periodic nodes are read, the other sections are named in the inventory and skipped. Of an
//! element's type only the shape and the number of nodes are used, and an element's nodes keep their
//! order.
//!
//! Nodes are numbered by the rank of their tags, so tags may have gaps and be in any order. If Gmsh
//! partitioned the mesh, the part of each element is kept: in 2.2 the first of an element's partition
//! tags, before it the third tag, in version 4 the partition of its entity. Of a mesh that was split
//! into one file for each partition, [`read`] refuses a single file and [`read_piece`] reads it.
//!
//! Binary files of either byte order are supported, in 4.1 with either size of `size_t`.

mod elements;
mod encoding;
mod entities;
mod nodes;
mod periodic;
mod version1;

use std::collections::BTreeMap;

use conset_ir::{InputError, Result};

use self::elements::{Elements, elements_2, elements_4};
use self::encoding::{Encoding, Reader, Version};
use self::entities::{Entities, read_entities, read_names};
use self::nodes::read_nodes;
use self::periodic::read_periodic;
use super::cursor::{Cursor, show};
use super::numbering::NodeNumbering;
use crate::model::Assembly;

/// One file of a mesh that was split into one file for each part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// The only part of the file, from 0.
    pub(super) part: u32,
    /// Number of parts of the mesh, or a smaller number if the file does not state it.
    pub(super) part_count: usize,
    /// Whether the file states the number of parts. Those of version 2 do not.
    pub(super) is_exact: bool,
    /// Where the file ends.
    end: usize,
}

/// Reads all elements of a file that has the whole mesh.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Assembly> {
    let (assembly, split) = read_piece(file, bytes)?;
    let Some(Split { part, part_count, is_exact, end }) = split else { return Ok(assembly) };
    if part_count < 2 {
        return Ok(assembly);
    }
    let part = part + 1;
    let of = if is_exact { format!(" of {part_count}") } else { String::new() };
    let message = format!("one file of a split mesh: it has partition {part}{of} only");
    Err(Cursor::new(file, bytes).error_at(end, message).help(
        "put all files NAME_1.msh, NAME_2.msh, ... in one folder and give one of them, or save the \
         partitioned mesh in one file (Gmsh: Mesh.PartitionSplitMeshFiles = 0)",
    ))
}

/// Reads all elements of a file, and which file of a split mesh it is.
pub(super) fn read_piece(file: &str, bytes: &[u8]) -> Result<(Assembly, Option<Split>)> {
    let mut cursor = Cursor::new(file, bytes);
    cursor.skip_space();
    if cursor.peek_token() == b"$NOD" {
        return Ok((version1::read(cursor)?, None));
    }
    let Header { mut reader, version, old, name } = header(cursor)?;
    let mut assembly = Assembly::new(name);
    let mut numbering: Option<NodeNumbering> = None;
    let mut elements: Option<Elements> = None;
    let mut entities = Entities::default();
    let mut names = BTreeMap::new();
    while let Some(name) = reader.section()? {
        match name {
            b"Nodes" | b"ParametricNodes" if numbering.is_some() => {
                return Err(reader.cursor.error("a second $Nodes"));
            }
            b"Nodes" | b"ParametricNodes" => {
                let parametric = name != b"Nodes";
                let (ranks, points) = read_nodes(&mut reader, version, parametric)?;
                assembly.set_nodes(ranks.len(), ranks.ids(), points);
                numbering = Some(ranks);
            }
            b"Elements" if elements.is_some() => {
                return Err(reader.cursor.error("a second $Elements"));
            }
            b"Elements" => {
                let Some(ranks) = &numbering else {
                    return Err(reader.cursor.error("$Elements comes before $Nodes"));
                };
                let parts = &mut entities.part_count;
                elements = Some(match version {
                    Version::V2 => elements_2(&mut reader, old, ranks, &mut assembly, parts)?,
                    Version::V40 | Version::V41 => {
                        elements_4(&mut reader, version, ranks, &mut assembly, &entities)?
                    }
                });
                reader.end_section("Elements")?;
            }
            b"Periodic" => {
                let Some(ranks) = &numbering else {
                    return Err(reader.cursor.error("$Periodic comes before $Nodes"));
                };
                read_periodic(&mut reader, version, ranks, &mut assembly)?;
                reader.end_section("Periodic")?;
            }
            b"Entities" | b"PartitionedEntities" if version != Version::V2 => {
                let partitioned = name != b"Entities";
                read_entities(&mut reader, version, partitioned, &mut entities)?;
                reader.end_section(if partitioned { "PartitionedEntities" } else { "Entities" })?;
            }
            b"PhysicalNames" => {
                names = read_names(&mut reader)?;
                reader.end_section("PhysicalNames")?;
            }
            _ => {
                reader.skip_section(name)?;
                let why = match name {
                    b"Comments" => continue,
                    b"GhostElements" => "the exchange has its own lists of shared nodes",
                    b"NodeData" | b"ElementData" | b"ElementNodeData" => "values are not needed",
                    _ => "no nodes and no elements",
                };
                assembly.add_unused(format!("${}", show(name)), why);
            }
        }
    }
    let end = reader.cursor.offset();
    if numbering.is_none() {
        return Err(reader.cursor.error_at(end, "the file ends without $Nodes"));
    }
    let Some(elements) = elements.filter(|_| assembly.element_count() > 0) else {
        return Err(reader
            .cursor
            .error_at(end, "the file has no elements")
            .help("mesh the model before saving it, and save all elements"));
    };
    let is_exact = version != Version::V2;
    let part_count = entities.part_count;
    let part = elements.only_part(!is_exact).filter(|_| part_count > 1 || !is_exact);
    let split = part.map(|part| Split { part, part_count, is_exact, end });
    elements.finish(&mut assembly, entities.part_count, &names);
    Ok((assembly, split))
}

/// What `$MeshFormat` says.
struct Header<'a> {
    reader: Reader<'a>,
    version: Version,
    /// 2.0 or 2.1.
    old: bool,
    /// Format and version, for people.
    name: String,
}

/// Reads `$MeshFormat`: version, ASCII or binary, size of a number; then, in binary files, the number
/// 1, which shows the byte order. Other sections may come before it.
fn header(cursor: Cursor<'_>) -> Result<Header<'_>> {
    let convert = |error: InputError| {
        error
            .help("open it in Gmsh and save it as MSH 4.1 (`gmsh FILE -save -format msh41 -o OUT`)")
    };
    let mut reader = Reader { cursor, encoding: Encoding::Text, wide_tags: false };
    loop {
        let token = reader.cursor.token("$MeshFormat")?;
        if token == b"$MeshFormat" {
            break;
        }
        let name = token.strip_prefix(b"$").filter(|_| token == b"$Comments");
        let Some(name) = name else {
            let message = "not a Gmsh file: it does not start with $MeshFormat";
            return Err(reader.cursor.error(message));
        };
        reader.skip_section(name)?;
    }
    let cursor = &mut reader.cursor;
    let token = cursor.token("the format's version")?;
    let (version, old) = match token {
        b"2" | b"2.0" | b"2.1" => (Version::V2, true),
        b"2.2" => (Version::V2, false),
        b"4" | b"4.0" => (Version::V40, false),
        b"4.1" => (Version::V41, false),
        other => {
            let other = show(other);
            let message = format!("version `{other}`; expected 1, 2 to 2.2, 4.0 or 4.1");
            return Err(convert(cursor.error(message)));
        }
    };
    let binary = cursor.integer("0 for ASCII or 1 for binary", 1)? == 1;
    let name = format!("Gmsh {}, {}", show(token), if binary { "binary" } else { "ASCII" });
    let size = cursor.integer("the size of a number in bytes", 8)?;
    if size != 8 && !(size == 4 && version == Version::V41) {
        return Err(convert(cursor.error(format!("numbers of {size} bytes; expected 8"))));
    }
    cursor.end_line("version, file type and size of a number")?;
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
        reader.encoding = Encoding::Binary { big_endian, wide: size == 8 };
    }
    reader.wide_tags = version == Version::V41;
    reader.end_section("MeshFormat")?;
    Ok(Header { reader, version, old, name })
}
