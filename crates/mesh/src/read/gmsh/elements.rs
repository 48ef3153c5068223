//! The sections `$Elements` of both versions and `$PartitionedEntities` of 4.1.
//!
//! In 2.2 each element (in binary files each block) has its type and its tags, including the
//! partitions. In 4.1 there are blocks of elements of one type and one entity, and a separate section
//! with the partitions of the entities.

use conset_ir::convert::{to_u32, to_usize};
use conset_ir::{Result, limits};

use super::encoding::{Encoding, Reader, Version, section_count_22, wrong_total};
use crate::read::numbering::NodeNumbering;

/// The part of an element without a partition.
pub(super) const NO_PART: u32 = u32::MAX;

/// The dimension and the number of nodes of an element type.
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

/// The elements of the highest dimension so far.
#[derive(Default)]
pub(super) struct KeptElements {
    pub(super) dimension: u8,
    pub(super) first: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    pub(super) parts: Vec<u32>,
    pub(super) any_part: bool,
}

impl KeptElements {
    /// Whether to keep an element of `dimension`. Discards the elements of lower dimensions.
    fn accepts(&mut self, dimension: u8) -> bool {
        if dimension > self.dimension {
            *self = Self { dimension, ..Self::default() };
        }
        dimension == self.dimension
    }

    fn push_part(&mut self, part: u32) {
        self.any_part |= part != NO_PART;
        self.parts.push(part);
        self.first.push(to_u32(self.nodes.len()));
    }
}

/// The partition of each entity that has exactly one: `(dimension, tag, part)`, sorted.
#[derive(Default)]
pub(super) struct EntityParts {
    pub(super) count: usize,
    entities: Vec<(u8, i32, u32)>,
}

impl EntityParts {
    fn part(&self, dimension: u8, tag: i32) -> u32 {
        match self.entities.binary_search_by_key(&(dimension, tag), |&(d, t, _)| (d, t)) {
            Ok(row) => self.entities[row].2,
            Err(_) => NO_PART,
        }
    }
}

/// Reads the partition of each entity. Only entities in exactly one partition matter: the interfaces
/// between partitions, which are in several, have a lower dimension than the mesh.
pub(super) fn partitioned_entities(reader: &mut Reader<'_>) -> Result<EntityParts> {
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
                part = u32::try_from(number)
                    .ok()
                    .filter(|&number| (1..=count).contains(&u64::from(number)))
                    .ok_or_else(|| {
                        let message = format!("partition {number}; expected 1 to {count}");
                        reader.cursor.error(message)
                    })?
                    - 1;
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
    Ok(EntityParts { count: to_usize(count), entities })
}

fn skip_tags(reader: &mut Reader<'_>, what: &str) -> Result<()> {
    let count = reader.size(what)?;
    for _ in 0..count {
        reader.int(what)?;
    }
    Ok(())
}

/// The dimension and the number of nodes of the element type just read.
fn known_type(reader: &Reader<'_>, number: u64) -> Result<(u8, usize)> {
    element_type(number)
        .ok_or_else(|| reader.cursor.error(format!("unknown element type {number}")))
}

/// Reads an element's nodes; appends their numbers to `keep` or skips them.
fn element_nodes(
    reader: &mut Reader<'_>,
    version: Version,
    numbering: &NodeNumbering,
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
        return Err(reader.cursor.error("more element nodes than fit 31 bits"));
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
    numbering: &NodeNumbering,
    partition: &mut EntityParts,
) -> Result<KeptElements> {
    let count = section_count_22(reader, limits::ELEMENTS, "the number of elements")?;
    let mut elements = KeptElements::default();
    let binary = matches!(reader.encoding, Encoding::Binary { .. });
    let mut done = 0;
    while done < count {
        // In text files each element has its type and number of tags, in binary files each block.
        if !binary {
            reader.count("the number of an element")?;
        }
        let number = reader.count("the type of an element")?;
        let (dimension, nodes) = known_type(reader, number)?;
        let rows = if binary { reader.count("the number of elements in a block")? } else { 1 };
        if rows == 0 || rows > count - done {
            return Err(reader.cursor.error(format!(
                "a block of {rows} elements; expected 1 to {} of the {count} declared",
                count - done
            )));
        }
        let tags = reader.count("the number of tags")?;
        for _ in 0..rows {
            if binary {
                reader.count("the number of an element")?;
            }
            let part = element_tags_22(reader, tags, partition)?;
            let keep = elements.accepts(dimension);
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

/// Reads an element's tags: physical entity, geometrical entity, number of partitions, the partition
/// of the element, and, as negative numbers, those in which it is a ghost. Returns the part.
fn element_tags_22(reader: &mut Reader<'_>, tags: u64, partition: &mut EntityParts) -> Result<u32> {
    let mut part = NO_PART;
    let mut partitions = 0;
    for tag in 0..tags {
        let value = reader.int("a tag of an element")?;
        if tag == 2 {
            partitions = value;
        }
        if tag == 3 && partitions > 0 {
            let number = usize::try_from(value).ok();
            let number = number.filter(|number| (1..=limits::PARTS).contains(number));
            let number = number.ok_or_else(|| {
                let message = format!("partition {value}; expected 1 to {}", limits::PARTS);
                reader.cursor.error(message)
            })?;
            part = to_u32(number - 1);
            partition.count = partition.count.max(number);
        }
    }
    Ok(part)
}

pub(super) fn elements_41(
    reader: &mut Reader<'_>,
    numbering: &NodeNumbering,
    partition: &EntityParts,
) -> Result<KeptElements> {
    let blocks = reader.size("the number of blocks of elements")?;
    let count = reader.size("the number of elements")?;
    reader.checked(count, limits::ELEMENTS, "elements")?;
    let declared_at = reader.cursor.last();
    reader.size("the smallest tag")?;
    reader.size("the largest tag")?;
    let mut elements = KeptElements::default();
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
            let keep = elements.accepts(dimension);
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
