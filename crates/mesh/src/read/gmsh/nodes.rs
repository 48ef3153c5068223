//! `$Nodes` of both versions.
//!
//! 2.2 lists node by node; 4.1 lists blocks of nodes, in each first all tags, then all places.

use conset_ir::{Result, limits};

use super::coding::{Reader, Version, section_count_22, wrong_total};
use crate::read::numbering::Numbering;

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

/// Reads the section: the tags' ranks and the nodes' places in that order.
pub(super) fn read_nodes(
    reader: &mut Reader<'_>,
    version: Version,
) -> Result<(Numbering, Vec<[f64; 3]>)> {
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
