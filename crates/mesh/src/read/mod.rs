//! Readers: convert the bytes of a file to a [`Source`].
//!
//! A reader gets a name and bytes and opens no file; the name is used only in errors. There is one
//! module per format. All readers are strict: a violation of the format's specification is an error
//! with its position, because a mesh that is read incorrectly makes the whole exchange incorrect.
//! Readers never trust a declared count: they allocate memory only for entries that the file has.
//!
//! | format | file | what is read |
//! |---|---|---|
//! | `gmsh` | `.msh` | Gmsh 2.2 and 4.1, ASCII and binary; elements of the highest dimension; the partition if there is one |
//! | `metis-graph` | `.graph` | METIS graph with any weights; must be undirected |
//! | `graph-connections` | | METIS graph syntax; each entry is a connection and its weight the number of words |
//! | `metis-mesh` | `.mesh` | METIS 5 mesh: the nodes of each element |
//! | `matrix-market` | `.mtx` | pattern of a sparse matrix |
//! | `spark98` | `.pack` | a partitioned mesh with its lists of shared nodes |
//! | `su2` | `.su2` | nodes and elements of one zone |
//! | `tetgen` | `.ele` | elements of Triangle and TetGen; their `.node` file is not needed |
//! | `vtu` | `.vtu` | unstructured grids of VTK: text, base64 or appended, uncompressed or zlib |
//!
//! Not supported: Medit and Abaqus files (Gmsh and meshio convert them).

mod cursor;
mod gmsh;
mod matrix_market;
mod metis;
mod numbering;
mod spark98;
mod su2;
mod tetgen;
mod top_elements;
mod vtu;

use conset_ir::{At, InputError, Result};

pub(crate) use cursor::{Cursor, MAX_INT};

use crate::model::Source;

/// A file format.
///
/// ```
/// use conset_mesh::Format;
///
/// assert_eq!(Format::from_file_name("wing.msh"), Some(Format::Gmsh));
/// assert_eq!(Format::from_name("metis-graph"), Some(Format::MetisGraph));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Gmsh MSH 2.2 and 4.1.
    Gmsh,
    /// METIS graph, undirected.
    MetisGraph,
    /// METIS graph syntax; each entry is a connection.
    GraphConnections,
    /// METIS mesh.
    MetisMesh,
    /// Matrix Market coordinate matrix.
    MatrixMarket,
    /// Spark98 pack file.
    Spark98,
    /// SU2 mesh.
    Su2,
    /// Triangle or TetGen elements.
    Tetgen,
    /// VTK unstructured grid, XML.
    Vtu,
}

impl Format {
    /// All formats, in the order of help texts.
    pub const ALL: [Format; 9] = [
        Format::Gmsh,
        Format::MetisGraph,
        Format::GraphConnections,
        Format::MetisMesh,
        Format::MatrixMarket,
        Format::Spark98,
        Format::Su2,
        Format::Tetgen,
        Format::Vtu,
    ];

    /// The name of the format, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Gmsh => "gmsh",
            Format::MetisGraph => "metis-graph",
            Format::GraphConnections => "graph-connections",
            Format::MetisMesh => "metis-mesh",
            Format::MatrixMarket => "matrix-market",
            Format::Spark98 => "spark98",
            Format::Su2 => "su2",
            Format::Tetgen => "tetgen",
            Format::Vtu => "vtu",
        }
    }

    /// The file name extension of the format, without dot; `None` if it has none and must be given by
    /// name.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Format::Gmsh => Some("msh"),
            Format::MetisGraph => Some("graph"),
            Format::GraphConnections => None,
            Format::MetisMesh => Some("mesh"),
            Format::MatrixMarket => Some("mtx"),
            Format::Spark98 => Some("pack"),
            Format::Su2 => Some("su2"),
            Format::Tetgen => Some("ele"),
            Format::Vtu => Some("vtu"),
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file by its extension, ignoring case.
    pub fn from_file_name(file: &str) -> Option<Self> {
        let (_, extension) = file.rsplit_once('.')?;
        Self::ALL
            .into_iter()
            .find(|format| format.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension)))
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads the bytes of a file; `file` is its name for errors.
///
/// # Errors
/// The first violation of the format, with its position.
pub fn read(format: Format, file: &str, bytes: &[u8]) -> Result<Source> {
    read_within(format, file, bytes, u64::MAX)
}

/// [`read`] with a limit of `memory` bytes for the arrays of compressed formats. For all other formats
/// the memory is proportional to the size of the file.
///
/// # Errors
/// As [`read`], and a file that needs more memory.
pub fn read_within(format: Format, file: &str, bytes: &[u8], memory: u64) -> Result<Source> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::new(file, At::Whole, "the file is empty"));
    }
    match format {
        Format::Gmsh => gmsh::read(file, bytes).map(Source::Mesh),
        Format::MetisGraph => metis::read_graph(file, bytes).map(Source::Graph),
        Format::GraphConnections => metis::read_connections(file, bytes).map(Source::Connections),
        Format::MetisMesh => metis::read_mesh(file, bytes).map(Source::Mesh),
        Format::MatrixMarket => matrix_market::read(file, bytes).map(Source::Matrix),
        Format::Spark98 => spark98::read(file, bytes).map(Source::Decomposition),
        Format::Su2 => su2::read(file, bytes).map(Source::Mesh),
        Format::Tetgen => tetgen::read(file, bytes).map(Source::Mesh),
        Format::Vtu => vtu::read(file, bytes, memory).map(Source::Mesh),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_extension_and_by_name() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            if let Some(extension) = format.extension() {
                assert_eq!(Format::from_file_name(&format!("a.b/c.{extension}")), Some(format));
            }
        }
        assert_eq!(Format::from_file_name("X.MSH"), Some(Format::Gmsh));
        for unknown in ["graph", "a.txt", "", "a."] {
            assert_eq!(Format::from_file_name(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn empty_files_are_rejected() {
        for format in Format::ALL {
            assert!(read(format, "f", b" \n\n").unwrap_err().message.contains("empty"));
        }
    }
}
