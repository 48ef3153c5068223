//! The section `$Elements` of versions 2 and 4.
//!
//! In version 2 each element (in binary files each block) has its type and its tags, including the
//! partitions. In version 4 there are blocks of elements of one type and one entity; the entity has
//! the partition and the physical groups.

use std::collections::BTreeMap;

use conset_ir::convert::to_u32;
use conset_ir::{Result, limits};

use super::encoding::{Encoding, Reader, Version, section_count_2, wrong_total};
use super::entities::Entities;
use crate::model::assembly::NO_PART;
use crate::model::element_type::from_gmsh;
use crate::model::{Assembly, ElementType};
use crate::read::numbering::NodeNumbering;
use crate::read::push_element;

/// What the elements of an assembly have beside their nodes.
#[derive(Default)]
pub(super) struct Elements {
    ids: Vec<u64>,
    parts: Vec<u32>,
    any_part: bool,
    /// Number of elements of each physical group, by dimension and tag.
    groups: BTreeMap<(u8, i32), usize>,
    /// The nodes of the element just read.
    own: Vec<u32>,
}

impl Elements {
    /// Reads the nodes of an element and adds it.
    pub(super) fn nodes(
        &mut self,
        reader: &mut Reader<'_>,
        numbering: &NodeNumbering,
        assembly: &mut Assembly,
        element_type: ElementType,
    ) -> Result<()> {
        self.own.clear();
        for _ in 0..element_type.node_count() {
            let tag = reader.node_tag("a node of an element")?;
            match numbering.rank(tag) {
                Some(node) => self.own.push(node),
                None => return Err(reader.cursor.error(format!("node {tag} is not in $Nodes"))),
            }
        }
        push_element(&reader.cursor, assembly, element_type, &self.own)
    }

    /// Notes what the element just added has beside its nodes.
    pub(super) fn end(&mut self, id: u64, part: Option<u32>, groups: &[i32], dimension: u8) {
        self.ids.push(id);
        self.any_part |= part.is_some();
        self.parts.push(part.unwrap_or(NO_PART));
        for &group in groups {
            // Negative tags say that the orientation is reversed; 0 is no group.
            let group = group.saturating_abs();
            if group != 0 {
                *self.groups.entry((dimension, group)).or_default() += 1;
            }
        }
    }

    /// The only part that elements have, if they are in one only. Elements in no part do not count,
    /// or make it `None` if `all` must be in it.
    pub(super) fn only_part(&self, all: bool) -> Option<u32> {
        if all && self.parts.contains(&NO_PART) {
            return None;
        }
        let mut parts = self.parts.iter().filter(|&&part| part != NO_PART);
        let first = *parts.next()?;
        parts.all(|&part| part == first).then_some(first)
    }

    /// Hands ids, parts and groups to the assembly.
    pub(super) fn finish(
        self,
        assembly: &mut Assembly,
        part_count: usize,
        names: &BTreeMap<(u8, i32), String>,
    ) {
        assembly.set_element_ids(self.ids);
        if self.any_part {
            assembly.set_parts(self.parts, part_count);
        }
        for (group, count) in self.groups {
            let tag = group.1;
            let name =
                names.get(&group).cloned().unwrap_or_else(|| format!("physical group {tag}"));
            assembly.add_group(name, count);
        }
    }
}

/// The element type just read.
pub(super) fn known_type(reader: &Reader<'_>, number: u64) -> Result<ElementType> {
    from_gmsh(number).ok_or_else(|| reader.cursor.error(format!("unknown element type {number}")))
}

/// Reads the section of version 2; `old` for 2.0 and 2.1, whose third tag is the partition.
pub(super) fn elements_2(
    reader: &mut Reader<'_>,
    old: bool,
    numbering: &NodeNumbering,
    assembly: &mut Assembly,
    part_count: &mut usize,
) -> Result<Elements> {
    let count = section_count_2(reader, limits::ELEMENTS, "the number of elements")?;
    let mut elements = Elements::default();
    let binary = matches!(reader.encoding, Encoding::Binary { .. });
    let mut done = 0;
    while done < count {
        // In text files each element has its type and number of tags, in binary files each block.
        let mut id = if binary { 0 } else { reader.count("the number of an element")? };
        let number = reader.count("the type of an element")?;
        let element_type = known_type(reader, number)?;
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
                id = reader.count("the number of an element")?;
            }
            let (part, group) = element_tags(reader, old, tags, part_count)?;
            elements.nodes(reader, numbering, assembly, element_type)?;
            elements.end(id, part, &[group], element_type.dimension());
        }
        done += rows;
    }
    Ok(elements)
}

/// Reads an element's tags: physical entity, geometrical entity, number of partitions, the partition
/// of the element, and, as negative numbers, those in which it is a ghost. Returns part and physical
/// entity.
fn element_tags(
    reader: &mut Reader<'_>,
    old: bool,
    tags: u64,
    part_count: &mut usize,
) -> Result<(Option<u32>, i32)> {
    let mut part = None;
    let mut group = 0;
    let mut partitions = 0;
    for tag in 0..tags {
        let value = reader.int("a tag of an element")?;
        match tag {
            0 => group = value,
            2 => partitions = value,
            _ => {}
        }
        let is_part = if old { tag == 2 && value != 0 } else { tag == 3 && partitions > 0 };
        let is_ghost = !old && tag > 3 && value < 0;
        if is_part || is_ghost {
            let number = usize::try_from(value.unsigned_abs()).ok();
            let number = number.filter(|_| is_ghost || value > 0);
            let number = number.filter(|number| (1..=limits::PARTS).contains(number));
            let number = number.ok_or_else(|| {
                let message = format!("partition {value}; expected 1 to {}", limits::PARTS);
                reader.cursor.error(message)
            })?;
            if is_part {
                part = Some(to_u32(number - 1));
            }
            *part_count = (*part_count).max(number);
        }
    }
    Ok((part, group))
}

/// Reads the section of version 4. In 4.0 the tag of an entity comes before its dimension.
pub(super) fn elements_4(
    reader: &mut Reader<'_>,
    version: Version,
    numbering: &NodeNumbering,
    assembly: &mut Assembly,
    entities: &Entities,
) -> Result<Elements> {
    let blocks = reader.size("the number of blocks of elements")?;
    let count = reader.size("the number of elements")?;
    reader.checked(count, limits::ELEMENTS, "elements")?;
    let declared_at = reader.cursor.last();
    if version == Version::V41 {
        reader.size("the smallest tag")?;
        reader.size("the largest tag")?;
    }
    let mut elements = Elements::default();
    let mut done = 0;
    for _ in 0..blocks {
        let mut entity = reader.int("the dimension of an entity")?;
        let second = reader.int("the tag of an entity")?;
        if version == Version::V41 {
            entity = second;
        }
        let number = reader.count("the type of an element")?;
        let element_type = known_type(reader, number)?;
        let rows = reader.size("the number of elements in the block")?;
        if rows > count - done {
            return Err(wrong_total(reader, declared_at, "elements", count));
        }
        done += rows;
        let known = entities.by_tag.get(&(element_type.dimension(), entity));
        let part = known.and_then(|entity| entity.part);
        let groups = known.map_or(&[][..], |entity| &entity.groups);
        for _ in 0..rows {
            let id = reader.node_tag("the tag of an element")?;
            elements.nodes(reader, numbering, assembly, element_type)?;
            elements.end(id, part, groups, element_type.dimension());
        }
    }
    if done != count {
        return Err(wrong_total(reader, declared_at, "elements", count));
    }
    Ok(elements)
}
