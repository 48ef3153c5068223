//! Meshes of several files: a `.pvtu` file names the `.vtu` file of each part.
//!
//! ```text
//! VTKFile type="PUnstructuredGrid"
//!   PUnstructuredGrid
//!     Piece Source="mesh_0.vtu"
//!     Piece Source="mesh_1.vtu"
//! ```
//!
//! The files are the parts of a decomposition, in this order. Their points are joined as those of the
//! pieces of one file, see `pieces`. Cells that a file marks as copies of those of another file
//! (ghost cells) are left out. If a file has copies that it does not mark, the mesh is refused.

use std::collections::{HashMap, HashSet};

use conset_ir::convert::{index, to_u32};
use conset_ir::{At, InputError, Result, limits};

use super::{pieces, with_root};
use crate::model::Assembly;
use crate::read::detect::{contains, start_of};
use crate::read::{Format, ReadOptions, Reading, decompressed};

/// First bytes in which the type of a file is looked for.
const NEAR: usize = 4096;

/// The files that a `.pvtu` file names, as it names them: relative to its folder. `None` if the file
/// is of another type.
///
/// # Errors
/// Invalid XML, no files, or one that is named twice.
pub fn pvtu_pieces(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Option<Vec<String>>> {
    let is_parallel = contains(&start_of(bytes), b"PUnstructuredGrid", NEAR);
    if !is_parallel || Format::from_content(bytes) != Some(Format::Vtu) {
        return Ok(None);
    }
    let plain = decompressed(file, bytes, options.memory)?;
    with_root(file, &plain, |file, root, _| {
        if root.attribute("type") != Some("PUnstructuredGrid") {
            return Ok(None);
        }
        let grid = file.child(root, "PUnstructuredGrid")?;
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        for node in grid.children().filter(|node| node.has_tag_name("Piece")) {
            let name = node
                .attribute("Source")
                .ok_or_else(|| file.error(node, "a Piece without the name of its file (Source)"))?;
            if !known.insert(name) {
                return Err(file.error(node, format!("the file `{name}` is named twice")));
            }
            names.push(name.to_owned());
        }
        if names.is_empty() || names.len() > limits::PARTS {
            let message = format!("{} pieces; expected 1 to {}", names.len(), limits::PARTS);
            return Err(file.error(grid, message));
        }
        Ok(Some(names))
    })
}

/// Reads the files that a `.pvtu` file names, in its order; each comes with its name for errors. The
/// mesh has the parts that the files are.
///
/// # Errors
/// As [`read`](crate::read::read()), files that contradict each other, and cells that two files have
/// without saying which of them is a copy.
pub fn read_pvtu(file: &str, files: &[(&str, &[u8])], options: &ReadOptions) -> Result<Reading> {
    let mut all = Vec::new();
    for (part, &(name, bytes)) in files.iter().enumerate() {
        let plain = decompressed(name, bytes, options.memory)?;
        let own = with_root(name, &plain, |file, root, appended| {
            super::read_pieces(file, root, appended, options.memory)
        })?;
        all.extend(own.into_iter().map(|piece| piece.with_part(to_u32(part))));
    }
    let format = format!("VTU, {} files", files.len());
    let mut assembly = pieces::join(file, format, all)?;
    assembly.set_part_count(files.len());
    refuse_copies(file, &assembly)?;
    assembly.into_reading(file, options)
}

/// Refuses two elements of different parts with the same nodes.
fn refuse_copies(file: &str, assembly: &Assembly) -> Result<()> {
    const NONE: u32 = u32::MAX;
    const SEVERAL: u32 = u32::MAX - 1;
    let mut part_of = vec![NONE; assembly.node_count()];
    for (_, part, nodes) in assembly.elements_with_parts() {
        for &node in nodes {
            let of = &mut part_of[index(node)];
            *of = if *of == NONE || *of == part { part } else { SEVERAL };
        }
    }
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    for (element_type, part, nodes) in assembly.elements_with_parts() {
        // Only the greatest dimension: boundary elements may well be in both files.
        let is_on_border = nodes.iter().all(|&node| part_of[index(node)] == SEVERAL);
        if !is_on_border || element_type.dimension() < assembly.greatest_dimension() {
            continue;
        }
        let mut key = nodes.to_vec();
        key.sort_unstable();
        let first = *known.entry(key).or_insert(part);
        if first != part {
            let message = format!(
                "pieces {} and {} have an element of the same nodes, and none says that it is a copy",
                first + 1,
                part + 1
            );
            return Err(InputError::new(file, At::Whole, message)
                .help("write the pieces without ghost cells, or with the array vtkGhostType"));
        }
    }
    Ok(())
}
