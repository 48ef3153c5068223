//! The sections `$Entities` and `$PartitionedEntities` of versions 4.0 and 4.1: the groups and the
//! partitions of the geometrical entities that elements belong to.

use std::collections::BTreeMap;

use conset_ir::convert::to_usize;
use conset_ir::{Result, limits};

use super::encoding::{Reader, Version};
use crate::read::cursor::show;

/// What is known of the entity with a dimension and tag.
#[derive(Default)]
pub(super) struct Entity {
    /// The partition, from 0, if the entity is in exactly one.
    pub(super) part: Option<u32>,
    /// Tags of physical groups.
    pub(super) groups: Vec<i32>,
}

/// All entities, and the number of partitions.
#[derive(Default)]
pub(super) struct Entities {
    pub(super) part_count: usize,
    pub(super) by_tag: BTreeMap<(u8, i32), Entity>,
}

/// Reads one of the two sections. Only entities in exactly one partition have a part: the interfaces
/// between partitions, which are in several, have a lower dimension than the mesh.
pub(super) fn read_entities(
    reader: &mut Reader<'_>,
    version: Version,
    partitioned: bool,
    entities: &mut Entities,
) -> Result<()> {
    let mut part_count = 0;
    if partitioned {
        // The entities without partitions are the parents of these.
        entities.by_tag.clear();
        part_count = reader.size("the number of partitions")?;
        part_count = reader.checked(part_count, limits::PARTS, "partitions")?;
        entities.part_count = to_usize(part_count);
        let ghosts = reader.size("the number of ghost entities")?;
        for _ in 0..ghosts {
            reader.int("the tag of a ghost entity")?;
            reader.int("the partition of a ghost entity")?;
        }
    }
    let counts = [
        reader.size("the number of points")?,
        reader.size("the number of curves")?,
        reader.size("the number of surfaces")?,
        reader.size("the number of volumes")?,
    ];
    for (dimension, count) in (0u8..).zip(counts) {
        for _ in 0..count {
            let tag = reader.int("the tag of an entity")?;
            let tag_offset = reader.cursor.last();
            let mut entity = Entity::default();
            if partitioned {
                reader.int("the dimension of the parent entity")?;
                reader.int("the tag of the parent entity")?;
                let partitions = reader.size("the number of partitions of an entity")?;
                for _ in 0..partitions {
                    let number = reader.int("a partition")?;
                    let part = u32::try_from(number)
                        .ok()
                        .filter(|&number| (1..=part_count).contains(&u64::from(number)))
                        .ok_or_else(|| {
                            let message = format!("partition {number}; expected 1 to {part_count}");
                            reader.cursor.error(message)
                        })?
                        - 1;
                    entity.part = (partitions == 1).then_some(part);
                }
            }
            let point = dimension == 0 && version == Version::V41;
            for _ in 0..if point { 3 } else { 6 } {
                reader.real("a coordinate of an entity")?;
            }
            let groups = reader.size("the number of physical tags of an entity")?;
            for _ in 0..groups {
                entity.groups.push(reader.int("a physical tag")?);
            }
            if dimension > 0 {
                let bounding = reader.size("the number of bounding entities")?;
                for _ in 0..bounding {
                    reader.int("a bounding entity")?;
                }
            }
            if entities.by_tag.insert((dimension, tag), entity).is_some() {
                return Err(reader.cursor.error_at(
                    tag_offset,
                    format!("the entity of dimension {dimension} with tag {tag} is given twice"),
                ));
            }
        }
    }
    Ok(())
}

/// Reads `$PhysicalNames`, which is text in binary files too: the name of each group. Rows are
/// `dimension tag "name"`. In early files the dimension is missing or -1; then the name is that of the
/// groups of all dimensions.
pub(super) fn read_names(reader: &mut Reader<'_>) -> Result<BTreeMap<(u8, i32), String>> {
    let cursor = &mut reader.cursor;
    let count = cursor.integer("the number of names", u64::MAX)?;
    let mut names = BTreeMap::new();
    for _ in 0..count {
        cursor.skip_space();
        let start = cursor.offset();
        let rest = cursor.rest();
        let line = rest.split(|&b| b == b'\n').next().unwrap_or(rest);
        let quote = line.iter().position(|&b| b == b'"').unwrap_or(line.len());
        let mut words =
            line[..quote].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<i32>().ok();
        let (dimension, tag) = match (words.next().map(number), words.next().map(number)) {
            (Some(Some(tag)), None) => (-1, tag),
            (Some(Some(dimension @ -1..=3)), Some(Some(tag))) => (dimension, tag),
            _ => {
                let message =
                    format!("`{}`; expected dimension (0 to 3), tag and name", show(line));
                return Err(cursor.error_at(start, message));
            }
        };
        let name = match line[quote..].is_empty() {
            true => String::from_utf8_lossy(words.next().unwrap_or_default()),
            false => String::from_utf8_lossy(line[quote..].trim_ascii()),
        };
        let name = name.trim_matches('"').to_owned();
        cursor.next_line();
        match u8::try_from(dimension) {
            Ok(dimension) => names.extend([((dimension, tag), name)]),
            Err(_) => names.extend((0..=3).map(|dimension| ((dimension, tag), name.clone()))),
        }
    }
    Ok(names)
}
