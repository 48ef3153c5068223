//! Readers: the bytes of a file become a [`Source`].
//!
//! A reader takes a name and bytes and opens nothing itself; the name is used in errors only. One
//! file per format. All of them are strict: what a format's own description forbids is an error
//! that names its place, since a mesh read wrongly gives an exchange that is wrong everywhere.
//! Nothing is reserved for a count that a file only claims to have.
//!
//! | format | file | what is read |
//! |---|---|---|
//! | `gmsh` | `.msh` | Gmsh 2.2 and 4.1, ASCII and binary; elements of the highest dimension; the partition if there is one |
//! | `metis-graph` | `.graph` | METIS graph with any weights; must be undirected |
//! | `graph-connections` | | the same syntax read as who sends how many words to whom |
//! | `metis-mesh` | `.mesh` | METIS 5 mesh: the nodes of each element |
//! | `matrix-market` | `.mtx` | pattern of a sparse matrix |
//! | `spark98` | `.pack` | a mesh cut into parts, with its lists of shared nodes |
//! | `su2` | `.su2` | nodes and elements of one zone |
//! | `tetgen` | `.ele` | elements of Triangle and TetGen; their `.node` file is not needed |
//! | `vtu` | `.vtu` | unstructured grids of VTK: text, base64 or appended, plain or zlib |
//!
//! Not read: Medit and Abaqus files (Gmsh and meshio convert them).

mod cursor;
mod gmsh;
mod matrix_market;
mod metis;
mod numbering;
mod spark98;
mod su2;
mod tetgen;
mod vtu;

use conset_ir::{At, InputError, Result};

pub(crate) use cursor::Cursor;

use crate::model::Source;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Gmsh MSH 2.2 and 4.1.
    Gmsh,
    /// METIS graph, undirected.
    MetisGraph,
    /// METIS graph syntax, each entry a connection.
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
    /// Every format, in the order in which help texts list them.
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

    /// The name that `--format` takes.
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

    /// The ending of file names in this format, without dot; none where it must be named.
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

    /// The format called `name` by `--format`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format that a file's name shows by its ending, in any case.
    pub fn from_file_name(file: &str) -> Option<Self> {
        let (_, ending) = file.rsplit_once('.')?;
        Self::ALL
            .into_iter()
            .find(|format| format.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending)))
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a file's bytes.
///
/// # Errors
/// The first thing in the file that is not as the format says, with its place.
pub fn read(format: Format, file: &str, bytes: &[u8]) -> Result<Source> {
    read_within(format, file, bytes, u64::MAX)
}

/// Reads a file's bytes where it says of itself that it needs no more than `memory` bytes. This is
/// asked of formats that can hold more than their size shows, as they are compressed; what the
/// others need is in proportion to their bytes.
///
/// # Errors
/// As [`read`], and a file that needs more.
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
    fn formats_are_known_by_ending_and_by_name() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            if let Some(ending) = format.extension() {
                assert_eq!(Format::from_file_name(&format!("a.b/c.{ending}")), Some(format));
            }
        }
        assert_eq!(Format::from_file_name("X.MSH"), Some(Format::Gmsh));
        for unknown in ["graph", "a.txt", "", "a."] {
            assert_eq!(Format::from_file_name(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn empty_files_are_refused() {
        for format in Format::ALL {
            assert!(read(format, "f", b" \n\n").unwrap_err().message.contains("empty"));
        }
    }
}
