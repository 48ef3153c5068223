//! Files of several pieces, which repeat the points on their common borders.
//!
//! Points of different pieces are the same node if they have the same global id (the array that
//! `PointData` names as `GlobalIds`, in every piece), otherwise if they have the same coordinates, bit
//! for bit. A piece may have several points at one place, as on the two sides of a crack; if another
//! piece has one there too, it is not known which one it is, and the file is refused. Each piece is a
//! group.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use conset_ir::convert::to_u64;
use conset_ir::{At, InputError, Result, limits};
use roxmltree::Node;

use super::arrays::ArrayReader;
use super::{VtuFile, add_unused_data, coordinates, elements};
use crate::model::Assembly;
use crate::model::assembly::merge;

/// A piece of a file.
pub(super) struct Piece {
    assembly: Assembly,
    points: Vec<[f64; 3]>,
    /// The global id of each point, if the piece has them.
    ids: Option<Vec<u64>>,
}

/// Reads a piece, which may be empty.
pub(super) fn read<'d>(
    file: &VtuFile<'_>,
    arrays: &ArrayReader<'_, '_>,
    piece: Node<'d, 'd>,
    format: &str,
) -> Result<Piece> {
    let points = file.count(piece, "NumberOfPoints", limits::NODES)?;
    let cells = file.count(piece, "NumberOfCells", limits::ELEMENTS)?;
    let mut assembly = Assembly::new(format);
    if cells == 0 {
        return Ok(Piece { assembly, points: Vec::new(), ids: Some(Vec::new()) });
    }
    let points_of = coordinates(file, arrays, piece, points)?;
    assembly.set_nodes(points, Vec::new(), points_of.clone());
    elements(file, arrays, piece, cells, &mut assembly)?;
    add_unused_data(piece, &mut assembly);
    let data = piece.children().find(|node| node.has_tag_name("PointData"));
    let ids = data.and_then(|data| {
        let name = data.attribute("GlobalIds")?;
        data.children().find(|node| node.attribute("Name") == Some(name))
    });
    let ids = ids.map(|array| arrays.integers(array, points)).transpose()?;
    Ok(Piece { assembly, points: points_of, ids })
}

/// Joins the pieces of a file.
pub(super) fn join(name: &str, format: String, mut pieces: Vec<Piece>) -> Result<Assembly> {
    let wrong = |message: String| InputError::new(name, At::Whole, message);
    let by_place = pieces.iter().any(|piece| piece.ids.is_none());
    if by_place {
        number_by_place(name, &mut pieces)?;
    }
    let mut before = 0u64;
    let mut joined = Vec::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        let mut assembly = piece.assembly;
        let cells = to_u64(assembly.element_count());
        if cells > 0 {
            assembly.add_group(format!("piece {}", number + 1), assembly.element_count());
        }
        let ids = piece.ids.unwrap_or_default();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("piece {} has the global id {} twice", number + 1, pair[0])));
        }
        assembly.set_node_ids(ids);
        assembly.set_element_ids((before + 1..=before + cells).collect());
        before += cells;
        joined.push(assembly);
    }
    let mut merged = merge(format, &vec![name; joined.len()], joined)?;
    if by_place {
        // These numbers are not the file's.
        merged.set_node_ids(Vec::new());
    } else if !merged.has_node_ids() {
        // Ids that count from 1, in a format that counts from 0.
        merged.set_node_ids((1..=to_u64(merged.node_count())).collect());
    }
    merged.count_from_0();
    Ok(merged)
}

/// Numbers the points of all pieces, those at one place alike.
fn number_by_place(name: &str, pieces: &mut [Piece]) -> Result<()> {
    struct Place {
        number: u64,
        /// The last piece with a point there.
        piece: usize,
        /// Whether several pieces have a point there.
        shared: bool,
        /// Whether a piece has several.
        several: bool,
    }
    let mut places: HashMap<[u64; 3], Place> = HashMap::new();
    let mut next = 0;
    for (piece, own) in pieces.iter_mut().enumerate() {
        let mut ids = Vec::with_capacity(own.points.len());
        for point in &own.points {
            next += 1;
            // The sum is 0 for both zeros.
            let place = match places.entry(point.map(|x| (x + 0.0).to_bits())) {
                Entry::Vacant(entry) => {
                    entry.insert(Place { number: next, piece, shared: false, several: false });
                    ids.push(next);
                    continue;
                }
                Entry::Occupied(entry) => entry.into_mut(),
            };
            if place.piece == piece {
                place.several = true;
                ids.push(next);
            } else {
                place.shared = true;
                place.piece = piece;
                ids.push(place.number);
            }
            if place.shared && place.several {
                return Err(ambiguous(name, *point));
            }
        }
        own.ids = Some(ids);
    }
    Ok(())
}

fn ambiguous(name: &str, [x, y, z]: [f64; 3]) -> InputError {
    let message =
        format!("a piece has several points at ({x}, {y}, {z}), and so has another piece");
    InputError::new(name, At::Whole, message)
        .help("write global point ids, which say which of them are the same node")
}
