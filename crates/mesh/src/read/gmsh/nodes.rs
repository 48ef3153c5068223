//! The sections `$Nodes` of versions 2 and 4, and `$ParametricNodes` of version 2.
//!
//! Version 2 lists node by node. 4.0 lists blocks of nodes, 4.1 too, but there a block has all tags
//! first and then all coordinates.

use conset_ir::convert::{index, to_u32, to_u64};
use conset_ir::{Result, limits};

use super::encoding::{Reader, Version, section_count_2, wrong_total};
use crate::read::numbering::NodeNumbering;

/// The nodes in the order of the file.
#[derive(Default)]
struct NodeList {
    tags: Vec<u64>,
    points: Vec<[f64; 3]>,
    /// The tag whose positions are recorded, and these positions.
    searched: Option<u64>,
    positions: Vec<usize>,
}

impl NodeList {
    #[inline]
    fn push_tag(&mut self, tag: u64, offset: usize) {
        if self.searched == Some(tag) {
            self.positions.push(offset);
        }
        self.tags.push(tag);
    }
}

/// Reads the section: the numbering of the tags, and the coordinates in that order.
pub(super) fn read_nodes(
    reader: &mut Reader<'_>,
    version: Version,
    parametric: bool,
) -> Result<(NodeNumbering, Vec<[f64; 3]>)> {
    let start = reader.cursor.offset();
    let mut nodes = NodeList::default();
    parse_nodes(reader, version, parametric, &mut nodes)?;
    reader.end_section(if parametric { "ParametricNodes" } else { "Nodes" })?;
    let NodeList { mut tags, mut points, .. } = nodes;
    if !tags.is_sorted() {
        let mut order: Vec<u32> = (0..to_u32(tags.len())).collect();
        order.sort_unstable_by_key(|&row| tags[index(row)]);
        tags = order.iter().map(|&row| tags[index(row)]).collect();
        points = order.iter().map(|&row| points[index(row)]).collect();
    }
    if let Some(pair) = tags.windows(2).find(|pair| pair[0] == pair[1]) {
        // This is rare, so the file is read again to find the position instead of storing all of them.
        let mut nodes = NodeList { searched: Some(pair[0]), ..NodeList::default() };
        reader.cursor.seek(start);
        parse_nodes(reader, version, parametric, &mut nodes)?;
        let again = nodes.positions.get(1).copied().unwrap_or(start);
        return Err(reader.cursor.error_at(again, format!("node {} is given twice", pair[0])));
    }
    Ok((NodeNumbering::new(tags), points))
}

fn parse_nodes(
    reader: &mut Reader<'_>,
    version: Version,
    parametric: bool,
    nodes: &mut NodeList,
) -> Result<()> {
    match version {
        Version::V2 => nodes_2(reader, parametric, nodes),
        Version::V40 | Version::V41 => nodes_4(reader, version, nodes),
    }
}

fn nodes_2(reader: &mut Reader<'_>, parametric: bool, nodes: &mut NodeList) -> Result<()> {
    let count = section_count_2(reader, limits::NODES, "the number of nodes")?;
    let capacity = reader.cursor.capacity(count, 8);
    nodes.tags.reserve(capacity);
    nodes.points.reserve(capacity);
    for _ in 0..count {
        let tag = reader.count("the number of a node")?;
        nodes.push_tag(tag, reader.cursor.last());
        let point = read_point(reader)?;
        nodes.points.push(point);
        if parametric {
            let dimension = reader.int("the dimension of an entity")?;
            reader.int("the tag of an entity")?;
            // Curves have one parameter and surfaces two.
            for _ in 0..if matches!(dimension, 1 | 2) { dimension } else { 0 } {
                reader.real("a parametric coordinate")?;
            }
        }
    }
    Ok(())
}

fn read_point(reader: &mut Reader<'_>) -> Result<[f64; 3]> {
    Ok([
        reader.real("a node's x coordinate")?,
        reader.real("a node's y coordinate")?,
        reader.real("a node's z coordinate")?,
    ])
}

fn nodes_4(reader: &mut Reader<'_>, version: Version, nodes: &mut NodeList) -> Result<()> {
    let blocks = reader.size("the number of blocks of nodes")?;
    let count = reader.size("the number of nodes")?;
    reader.checked(count, limits::NODES, "nodes")?;
    let declared_at = reader.cursor.last();
    let tags_first = version == Version::V41;
    if tags_first {
        reader.size("the smallest tag")?;
        reader.size("the largest tag")?;
    }
    let capacity = reader.cursor.capacity(count, 8);
    nodes.tags.reserve(capacity);
    nodes.points.reserve(capacity);
    for _ in 0..blocks {
        let mut dimension = reader.int("the dimension of an entity")?;
        let second = reader.int("the tag of an entity")?;
        if !tags_first {
            // 4.0 has the tag first.
            dimension = second;
        }
        let parametric = reader.int("1 for parametric nodes, else 0")?;
        if !(0..=3).contains(&dimension) || !(0..=1).contains(&parametric) {
            return Err(reader.cursor.error(format!(
                "dimension {dimension} and parametric flag {parametric}; expected 0 to 3 and 0 or 1"
            )));
        }
        let rows = reader.size("the number of nodes in the block")?;
        if rows > count - to_u64(nodes.tags.len()) {
            return Err(wrong_total(reader, declared_at, "nodes", count));
        }
        if tags_first {
            for _ in 0..rows {
                let tag = reader.node_tag("the tag of a node")?;
                nodes.push_tag(tag, reader.cursor.last());
            }
        }
        // 4.0 has parameters on curves and surfaces only.
        let parameters = if tags_first || dimension < 3 { parametric * dimension } else { 0 };
        for _ in 0..rows {
            if !tags_first {
                let tag = reader.node_tag("the tag of a node")?;
                nodes.push_tag(tag, reader.cursor.last());
            }
            let point = read_point(reader)?;
            nodes.points.push(point);
            for _ in 0..parameters {
                reader.real("a parametric coordinate")?;
            }
        }
    }
    if to_u64(nodes.tags.len()) != count {
        return Err(wrong_total(reader, declared_at, "nodes", count));
    }
    Ok(())
}
