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

use conset_ir::{InputError, Result, limits};

use super::cursor::{Cursor, show};
use super::numbering::Numbering;
use crate::model::Mesh;

/// Part of an element that is in no part.
const NO_PART: u32 = u32::MAX;

/// Dimension and number of nodes of an element type.
fn element_type(number: u64) -> Option<(u8, usize)> {
    Some(match number {
        15 => (0, 1),
        1 => (1, 2),
        8 => (1, 3),
        26 => (1, 4),
        27 => (1, 5),
        28 => (1, 6),
        2 => (2, 3),
        9 => (2, 6),
        20 => (2, 9),
        21 => (2, 10),
        22 => (2, 12),
        23 | 24 => (2, 15),
        25 => (2, 21),
        3 => (2, 4),
        16 => (2, 8),
        10 => (2, 9),
        36 => (2, 16),
        37 => (2, 25),
        38 => (2, 36),
        4 => (3, 4),
        11 => (3, 10),
        29 => (3, 20),
        30 => (3, 35),
        31 => (3, 56),
        5 => (3, 8),
        17 => (3, 20),
        12 => (3, 27),
        92 => (3, 64),
        93 => (3, 125),
        6 => (3, 6),
        18 => (3, 15),
        13 => (3, 18),
        90 => (3, 40),
        91 => (3, 75),
        7 => (3, 5),
        19 => (3, 13),
        14 => (3, 14),
        118 => (3, 30),
        119 => (3, 55),
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Version {
    V22,
    V41,
}

/// How numbers are written.
#[derive(Clone, Copy)]
enum Coding {
    Text,
    Binary { big_endian: bool, wide: bool },
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    coding: Coding,
}

impl<'a> Reader<'a> {
    /// An `int`: 4 bytes.
    #[inline]
    fn int(&mut self, what: &str) -> Result<i32> {
        match self.coding {
            Coding::Text => self.cursor.signed(what),
            Coding::Binary { big_endian, .. } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) })
            }
        }
    }

    /// An `int` that cannot be negative.
    #[inline]
    fn count(&mut self, what: &str) -> Result<u64> {
        match self.coding {
            Coding::Text => self.cursor.integer(what, i32::MAX as u64),
            Coding::Binary { .. } => {
                let value = self.int(what)?;
                u64::try_from(value)
                    .map_err(|_| self.cursor.error(format!("{value} is negative; expected {what}")))
            }
        }
    }

    /// A `size_t`.
    #[inline]
    fn size(&mut self, what: &str) -> Result<u64> {
        match self.coding {
            Coding::Text => self.cursor.integer(what, u64::MAX),
            Coding::Binary { big_endian, wide: true } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
            }
            Coding::Binary { big_endian, wide: false } => {
                let bytes = self.cursor.take(what)?;
                let value =
                    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
                Ok(u64::from(value))
            }
        }
    }

    /// A `double`, finite.
    #[inline]
    fn real(&mut self, what: &str) -> Result<f64> {
        let Coding::Binary { big_endian, .. } = self.coding else {
            return self.cursor.real(what);
        };
        let bytes = self.cursor.take(what)?;
        let value = if big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.cursor.error(format!("{value} is not finite; expected {what}")))
        }
    }

    /// Checks a declared count before anything believes it.
    fn checked(&self, count: u64, limit: usize, what: &str) -> Result<u64> {
        if count > limit as u64 {
            return Err(self.cursor.error(format!("{count} {what}, at most {limit}")));
        }
        Ok(count)
    }

    /// The name of the next section, or nothing at the end of the file.
    fn section(&mut self) -> Result<Option<&'a [u8]>> {
        self.cursor.skip_space();
        if self.cursor.at_end() {
            return Ok(None);
        }
        let name = self.cursor.word("a section")?;
        if name.len() < 2 || name[0] != b'$' || name.starts_with(b"$End") {
            return Err(self.cursor.error(format!(
                "`{}` where a section (`$Name`) was expected; the section before it may have more \
                 entries than its count says",
                show(name)
            )));
        }
        self.cursor.end_line("the name of a section stands alone")?;
        Ok(Some(&name[1..]))
    }

    /// The end of the section `name`.
    fn end_section(&mut self, name: &str) -> Result<()> {
        let word = self.cursor.word(&format!("$End{name}"))?;
        if word.strip_prefix(b"$End") != Some(name.as_bytes()) {
            return Err(self.cursor.error(format!(
                "`{}` where $End{name} was expected; the section has more entries than its count \
                 says",
                show(word)
            )));
        }
        Ok(())
    }

    /// Goes past the end of a section that is not read.
    fn skip_section(&mut self, name: &[u8]) -> Result<()> {
        let start = self.cursor.last();
        let end = [b"$End", name].concat();
        loop {
            let Some(at) = self.cursor.rest().iter().position(|&b| b == b'$') else {
                let name = show(name);
                return Err(self.cursor.error_at(start, format!("${name} has no $End{name}")));
            };
            self.cursor.seek(self.cursor.offset() + at);
            if self.cursor.peek_word() == end {
                self.cursor.seek(self.cursor.offset() + end.len());
                return Ok(());
            }
            self.cursor.seek(self.cursor.offset() + 1);
        }
    }
}

/// Nodes as they come.
#[derive(Default)]
struct Nodes {
    tags: Vec<u64>,
    points: Vec<[f64; 3]>,
    /// Note where this tag stands.
    watch: Option<u64>,
    watched: Vec<usize>,
}

impl Nodes {
    #[inline]
    fn note_tag(&mut self, tag: u64, offset: usize) {
        if self.watch == Some(tag) {
            self.watched.push(offset);
        }
        self.tags.push(tag);
    }
}

/// Elements of the highest dimension met so far.
#[derive(Default)]
struct Elements {
    dimension: u8,
    first: Vec<u32>,
    nodes: Vec<u32>,
    parts: Vec<u32>,
    any_part: bool,
}

impl Elements {
    /// Makes room for an element of `dimension`; whether it is to be kept.
    fn wants(&mut self, dimension: u8) -> bool {
        if dimension > self.dimension {
            *self = Self { dimension, ..Self::default() };
        }
        dimension == self.dimension
    }

    fn push_part(&mut self, part: u32) {
        self.any_part |= part != NO_PART;
        self.parts.push(part);
        self.first.push(self.nodes.len() as u32);
    }
}

/// Partition of each entity that has one: `(dimension, tag, part)`, sorted.
#[derive(Default)]
struct Partition {
    count: usize,
    entities: Vec<(u8, i32, u32)>,
}

impl Partition {
    fn part(&self, dimension: u8, tag: i32) -> u32 {
        match self.entities.binary_search_by_key(&(dimension, tag), |&(d, t, _)| (d, t)) {
            Ok(row) => self.entities[row].2,
            Err(_) => NO_PART,
        }
    }
}

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

fn read_nodes(reader: &mut Reader<'_>, version: Version) -> Result<(Numbering, Vec<[f64; 3]>)> {
    let start = reader.cursor.offset();
    let mut nodes = Nodes::default();
    parse_nodes(reader, version, &mut nodes)?;
    reader.end_section("Nodes")?;
    let Nodes { mut tags, mut points, .. } = nodes;
    if !tags.is_sorted() {
        let mut order: Vec<u32> = (0..tags.len() as u32).collect();
        order.sort_unstable_by_key(|&row| tags[row as usize]);
        tags = order.iter().map(|&row| tags[row as usize]).collect();
        points = order.iter().map(|&row| points[row as usize]).collect();
    }
    if let Some(pair) = tags.windows(2).find(|pair| pair[0] == pair[1]) {
        // Rare, so the place is found by reading once more rather than kept for every node.
        let mut nodes = Nodes { watch: Some(pair[0]), ..Nodes::default() };
        reader.cursor.seek(start);
        parse_nodes(reader, version, &mut nodes)?;
        let again = nodes.watched.get(1).copied().unwrap_or(start);
        return Err(reader.cursor.error_at(again, format!("node {} is given twice", pair[0])));
    }
    Ok((Numbering::new(tags), points))
}

fn parse_nodes(reader: &mut Reader<'_>, version: Version, nodes: &mut Nodes) -> Result<()> {
    match version {
        Version::V22 => nodes_22(reader, nodes),
        Version::V41 => nodes_41(reader, nodes),
    }
}

fn nodes_22(reader: &mut Reader<'_>, nodes: &mut Nodes) -> Result<()> {
    let count = section_count_22(reader, limits::NODES, "the number of nodes")?;
    let room = reader.cursor.capacity(count, 8);
    nodes.tags.reserve(room);
    nodes.points.reserve(room);
    for _ in 0..count {
        let tag = reader.count("the number of a node")?;
        nodes.note_tag(tag, reader.cursor.last());
        let point = read_point(reader)?;
        nodes.points.push(point);
    }
    Ok(())
}

/// The count that begins a section of 2.2, written as text in binary files too.
fn section_count_22(reader: &mut Reader<'_>, limit: usize, what: &str) -> Result<u64> {
    let count = reader.cursor.integer(what, limit as u64)?;
    reader.cursor.end_line(what)?;
    Ok(count)
}

fn read_point(reader: &mut Reader<'_>) -> Result<[f64; 3]> {
    Ok([
        reader.real("a node's x coordinate")?,
        reader.real("a node's y coordinate")?,
        reader.real("a node's z coordinate")?,
    ])
}

fn nodes_41(reader: &mut Reader<'_>, nodes: &mut Nodes) -> Result<()> {
    let blocks = reader.size("the number of blocks of nodes")?;
    let count = reader.size("the number of nodes")?;
    reader.checked(count, limits::NODES, "nodes")?;
    let declared_at = reader.cursor.last();
    reader.size("the smallest tag")?;
    reader.size("the largest tag")?;
    let room = reader.cursor.capacity(count, 8);
    nodes.tags.reserve(room);
    nodes.points.reserve(room);
    for _ in 0..blocks {
        let dimension = reader.int("the dimension of an entity")?;
        reader.int("the tag of an entity")?;
        let parametric = reader.int("1 for parametric nodes, else 0")?;
        if !(0..=3).contains(&dimension) || !(0..=1).contains(&parametric) {
            return Err(reader.cursor.error(format!(
                "dimension {dimension} and parametric flag {parametric}; expected 0 to 3 and 0 or 1"
            )));
        }
        let rows = reader.size("the number of nodes in the block")?;
        if rows > count - nodes.tags.len() as u64 {
            return Err(wrong_total(reader, declared_at, "nodes", count));
        }
        for _ in 0..rows {
            let tag = reader.size("the tag of a node")?;
            nodes.note_tag(tag, reader.cursor.last());
        }
        for _ in 0..rows {
            let point = read_point(reader)?;
            nodes.points.push(point);
            for _ in 0..parametric * dimension {
                reader.real("a parametric coordinate")?;
            }
        }
    }
    if nodes.tags.len() as u64 != count {
        return Err(wrong_total(reader, declared_at, "nodes", count));
    }
    Ok(())
}

fn wrong_total(reader: &Reader<'_>, declared_at: usize, what: &str, count: u64) -> InputError {
    reader.cursor.error_at(
        declared_at,
        format!("{count} {what} are declared, but the blocks do not have as many"),
    )
}

/// The partition of each entity. Only entities in exactly one partition matter: the interfaces
/// between partitions, which are in several, are of a lower dimension than the mesh.
fn partitioned_entities(reader: &mut Reader<'_>) -> Result<Partition> {
    let count = reader.size("the number of partitions")?;
    let count = reader.checked(count, limits::PARTS, "partitions")?;
    let ghosts = reader.size("the number of ghost entities")?;
    for _ in 0..ghosts {
        reader.int("the tag of a ghost entity")?;
        reader.int("the partition of a ghost entity")?;
    }
    let mut entities = Vec::new();
    let counts = [
        reader.size("the number of points")?,
        reader.size("the number of curves")?,
        reader.size("the number of surfaces")?,
        reader.size("the number of volumes")?,
    ];
    for (dimension, entity_count) in (0u8..).zip(counts) {
        for _ in 0..entity_count {
            let tag = reader.int("the tag of an entity")?;
            reader.int("the dimension of the parent entity")?;
            reader.int("the tag of the parent entity")?;
            let partitions = reader.size("the number of partitions of an entity")?;
            let mut part = NO_PART;
            for _ in 0..partitions {
                let number = reader.int("a partition")?;
                if number < 1 || number as u64 > count {
                    return Err(reader
                        .cursor
                        .error(format!("partition {number}; expected 1 to {count}")));
                }
                part = number as u32 - 1;
            }
            if partitions == 1 {
                entities.push((dimension, tag, part));
            }
            for _ in 0..if dimension == 0 { 3 } else { 6 } {
                reader.real("a coordinate of an entity")?;
            }
            skip_tags(reader, "a physical tag")?;
            if dimension > 0 {
                skip_tags(reader, "a bounding entity")?;
            }
        }
    }
    entities.sort_unstable();
    if let Some(pair) =
        entities.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1)
    {
        let (dimension, tag, _) = pair[0];
        return Err(reader
            .cursor
            .error(format!("the entity of dimension {dimension} with tag {tag} is given twice")));
    }
    Ok(Partition { count: count as usize, entities })
}

fn skip_tags(reader: &mut Reader<'_>, what: &str) -> Result<()> {
    let count = reader.size(what)?;
    for _ in 0..count {
        reader.int(what)?;
    }
    Ok(())
}

/// Dimension and nodes of the element type just read.
fn known_type(reader: &Reader<'_>, number: u64) -> Result<(u8, usize)> {
    element_type(number).ok_or_else(|| {
        reader.cursor.error(format!("element type {number} is not one that Gmsh meshes have"))
    })
}

/// Reads an element's nodes and keeps them, or passes over them.
fn element_nodes(
    reader: &mut Reader<'_>,
    version: Version,
    numbering: &Numbering,
    count: usize,
    keep: Option<&mut Vec<u32>>,
) -> Result<()> {
    let next = |reader: &mut Reader<'_>| match version {
        Version::V22 => reader.count("a node of an element"),
        Version::V41 => reader.size("a node of an element"),
    };
    let Some(kept) = keep else {
        for _ in 0..count {
            next(reader)?;
        }
        return Ok(());
    };
    if kept.len() + count > limits::NODES {
        return Err(reader.cursor.error("more element nodes than 31 bits can count"));
    }
    for _ in 0..count {
        let tag = next(reader)?;
        match numbering.rank(tag) {
            Some(node) => kept.push(node),
            None => return Err(reader.cursor.error(format!("node {tag} is not in $Nodes"))),
        }
    }
    Ok(())
}

fn elements_22(
    reader: &mut Reader<'_>,
    numbering: &Numbering,
    partition: &mut Partition,
) -> Result<Elements> {
    let count = section_count_22(reader, limits::ELEMENTS, "the number of elements")?;
    let mut elements = Elements::default();
    let binary = matches!(reader.coding, Coding::Binary { .. });
    let mut done = 0;
    while done < count {
        // In text each element says its own type and number of tags, in binary each block does.
        if !binary {
            reader.count("the number of an element")?;
        }
        let number = reader.count("the type of an element")?;
        let (dimension, nodes) = known_type(reader, number)?;
        let rows = if binary { reader.count("the number of elements in a block")? } else { 1 };
        if rows == 0 || rows > count - done {
            return Err(reader.cursor.error(format!(
                "a block of {rows} elements; expected 1 to {} to make the {count} declared",
                count - done
            )));
        }
        let tags = reader.count("the number of tags")?;
        for _ in 0..rows {
            if binary {
                reader.count("the number of an element")?;
            }
            let part = element_tags_22(reader, tags, partition)?;
            let keep = elements.wants(dimension);
            let kept = keep.then_some(&mut elements.nodes);
            element_nodes(reader, Version::V22, numbering, nodes, kept)?;
            if keep {
                elements.push_part(part);
            }
        }
        done += rows;
    }
    Ok(elements)
}

/// An element's tags: physical entity, geometrical entity, number of partitions, the partition
/// that has it, and, negative, those that have it as a ghost.
fn element_tags_22(reader: &mut Reader<'_>, tags: u64, partition: &mut Partition) -> Result<u32> {
    let mut part = NO_PART;
    let mut partitions = 0;
    for tag in 0..tags {
        let value = reader.int("a tag of an element")?;
        if tag == 2 {
            partitions = value;
        }
        if tag == 3 && partitions > 0 {
            if value < 1 || value as usize > limits::PARTS {
                return Err(reader
                    .cursor
                    .error(format!("partition {value}; expected 1 to {}", limits::PARTS)));
            }
            part = value as u32 - 1;
            partition.count = partition.count.max(value as usize);
        }
    }
    Ok(part)
}

fn elements_41(
    reader: &mut Reader<'_>,
    numbering: &Numbering,
    partition: &Partition,
) -> Result<Elements> {
    let blocks = reader.size("the number of blocks of elements")?;
    let count = reader.size("the number of elements")?;
    reader.checked(count, limits::ELEMENTS, "elements")?;
    let declared_at = reader.cursor.last();
    reader.size("the smallest tag")?;
    reader.size("the largest tag")?;
    let mut elements = Elements::default();
    let mut done = 0;
    for _ in 0..blocks {
        reader.int("the dimension of an entity")?;
        let entity = reader.int("the tag of an entity")?;
        let number = reader.count("the type of an element")?;
        let (dimension, nodes) = known_type(reader, number)?;
        let rows = reader.size("the number of elements in the block")?;
        if rows > count - done {
            return Err(wrong_total(reader, declared_at, "elements", count));
        }
        done += rows;
        let part = partition.part(dimension, entity);
        for _ in 0..rows {
            reader.size("the tag of an element")?;
            let keep = elements.wants(dimension);
            let kept = keep.then_some(&mut elements.nodes);
            element_nodes(reader, Version::V41, numbering, nodes, kept)?;
            if keep {
                elements.push_part(part);
            }
        }
    }
    if done != count {
        return Err(wrong_total(reader, declared_at, "elements", count));
    }
    Ok(elements)
}
