//! `$Elements` of both versions, and in 4.1 `$PartitionedEntities`.
//!
//! 2.2 writes with each element (in binary with each block) its type and its tags, among them the
//! partitions; 4.1 writes blocks of elements of one type and one entity, and the entities'
//! partitions apart.

use conset_ir::{Result, limits};

use super::coding::{Coding, Reader, Version, section_count_22, wrong_total};
use crate::read::numbering::Numbering;

/// Part of an element that is in no part.
pub(super) const NO_PART: u32 = u32::MAX;

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

/// Elements of the highest dimension met so far.
#[derive(Default)]
pub(super) struct Elements {
    pub(super) dimension: u8,
    pub(super) first: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    pub(super) parts: Vec<u32>,
    pub(super) any_part: bool,
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
pub(super) struct Partition {
    pub(super) count: usize,
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

/// The partition of each entity. Only entities in exactly one partition matter: the interfaces
/// between partitions, which are in several, are of a lower dimension than the mesh.
pub(super) fn partitioned_entities(reader: &mut Reader<'_>) -> Result<Partition> {
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

pub(super) fn elements_22(
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

pub(super) fn elements_41(
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
