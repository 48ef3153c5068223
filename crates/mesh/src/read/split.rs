//! Meshes that Gmsh split into one file for each part (`Mesh.PartitionSplitMeshFiles`).
//!
//! The files are `NAME_1.msh`, `NAME_2.msh` and so on. Each has the elements of one part and the nodes
//! of these, with the tags that they have in the whole mesh. Files of version 4 state the number of
//! parts.

use std::borrow::Cow;

use conset_ir::convert::{index, to_u64};
use conset_ir::{At, InputError, Result};

use super::gmsh::{Split, read_piece};
use super::{ReadOptions, Reading, gzip};
use crate::model::Assembly;
use crate::model::assembly::merge;

/// One file of a mesh that was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SplitFile {
    /// The only part of the file, from 0.
    pub part: u32,
    /// Number of parts of the mesh, or a smaller number if it is not exact.
    pub part_count: usize,
    /// Whether the file states the number of parts. Files of version 2 do not, so that a file with
    /// part 0 may also be a whole mesh in one part.
    pub is_exact: bool,
}

/// Which file of a split mesh a file is; `None` if it has elements of several parts or of none.
///
/// # Errors
/// As [`read`](super::read()).
pub fn split_gmsh(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Option<SplitFile>> {
    let plain = decompressed(file, bytes, options)?;
    let (_, split) = read_piece(file, &plain)?;
    Ok(split.map(|Split { part, part_count, is_exact, .. }| SplitFile {
        part,
        part_count,
        is_exact,
    }))
}

/// Reads all files of a split mesh, in any order; each comes with its name for errors.
///
/// # Errors
/// As [`read`](super::read()); a file that is not one of a split mesh, a part that no file has or
/// that two files have, and files that contradict each other.
pub fn read_split_gmsh(files: &[(&str, &[u8])], options: &ReadOptions) -> Result<Reading> {
    let Some(&(first, _)) = files.first() else {
        return Err(InputError::new("<mesh>", At::Whole, "no files"));
    };
    let mut pieces: Vec<Assembly> = Vec::new();
    let mut file_of: Vec<Option<&str>> = vec![None; files.len()];
    for &(name, bytes) in files {
        let whole = |message: String| InputError::new(name, At::Whole, message);
        let plain = decompressed(name, bytes, options)?;
        let (piece, split) = read_piece(name, &plain)?;
        let split = split.ok_or_else(|| whole("not one file of a split mesh".to_owned()))?;
        let part = split.part + 1;
        let (count, given) = (split.part_count, files.len());
        if count > given || (split.is_exact && count != given) {
            return Err(whole(format!("partition {part} of {count}, but there are {given} files")));
        }
        match file_of.get_mut(index(split.part)) {
            Some(place @ None) => *place = Some(name),
            Some(Some(other)) => {
                return Err(whole(format!("partition {part}, which {other} has too")));
            }
            None => return Err(whole(format!("partition {part} of {}", files.len()))),
        }
        pieces.push(piece);
    }
    let names: Vec<&str> = files.iter().map(|&(name, _)| name).collect();
    let format = match pieces.first() {
        Some(piece) => format!("{}, {} files", piece.format(), to_u64(files.len())),
        None => String::new(),
    };
    merge(format, &names, pieces)?.into_reading(first, options)
}

fn decompressed<'a>(file: &str, bytes: &'a [u8], options: &ReadOptions) -> Result<Cow<'a, [u8]>> {
    if gzip::is_gzip(bytes) {
        return gzip::decompress(file, bytes, options.memory).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(bytes))
}
