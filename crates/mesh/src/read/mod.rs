//! Readers: convert the bytes of a file to a [`Source`].
//!
//! A reader gets a name and bytes and opens no file; the name is used only in errors. There is one
//! module per format. All readers are strict: a violation of the format's specification is an error
//! with its position, because a mesh that is read incorrectly makes the whole exchange incorrect.
//! Readers never trust a declared count: they allocate memory only for entries that the file has.
//!
//! | format | file | what is read |
//! |---|---|---|
//! | `gmsh` | `.msh` | Gmsh 1, 2.0 to 2.2, 4.0 and 4.1, ASCII and binary; the partition if there is one |
//! | `metis-graph` | `.graph` | METIS graph with any weights; must be undirected |
//! | `graph-connections` | | METIS graph syntax; each entry is a connection and its weight the number of words |
//! | `metis-mesh` | `.mesh` | METIS 5 mesh: the nodes of each element |
//! | `matrix-market` | `.mtx` | pattern of a sparse matrix |
//! | `spark98` | `.pack` | a partitioned mesh with its lists of shared nodes |
//! | `su2` | `.su2` | nodes and elements of all zones |
//! | `tetgen` | `.ele` | elements of Triangle and TetGen; their `.node` file is not needed |
//! | `vtu` | `.vtu` | unstructured grids of VTK: text, base64 or appended, with any of VTK's compressors, in one or several pieces |
//! | `vtk-legacy` | `.vtk` | unstructured grids in VTK's legacy form, ASCII and binary, versions 1 to 5 |
//! | `mfem` | `.mesh` | MFEM meshes 1.0, 1.2 and 1.3 |
//! | `exodus` | `.exo`, `.e`, `.g` | Exodus II in the classic NetCDF formats |
//! | `abaqus` | `.inp` | nodes and elements of Abaqus and CalculiX input |
//! | `ucd` | `.ucd`, `.inp` | AVS UCD, ASCII |
//!
//! An OpenFOAM mesh is a folder of files; [`read_openfoam`] takes these, and
//! [`read_openfoam_decomposed`] those of a decomposed case. [`read_split_gmsh`] takes the files of a
//! mesh that Gmsh split into one file for each part, [`read_pvtu`] those that a `.pvtu` file names.
//!
//! Any of them may be compressed with gzip. [`Format::detect`] finds the format by content first.
//!
//! Gmsh's formats, VTK's and the last four have elements of all dimensions in one list;
//! [`crate::model::assembly`] has the rule which of them are divided. [`foreign_format`] names formats
//! that are not read.

mod abaqus;
mod build;
mod cursor;
mod detect;
mod exodus;
mod foreign;
mod gmsh;
mod gzip;
mod matrix_market;
mod metis;
mod mfem;
mod netcdf;
mod numbering;
mod openfoam;
mod spark98;
mod split;
mod su2;
mod tetgen;
mod ucd;
mod vtk_legacy;
mod vtu;

use std::borrow::Cow;

use conset_ir::convert::{index, to_u64};
use conset_ir::{At, InputError, Result};

pub(crate) use cursor::{Cursor, MAX_INT};
pub use foreign::{ForeignFormat, foreign_format};
pub use openfoam::{PolyMesh, ProcessorMesh, read_openfoam, read_openfoam_decomposed};
pub use split::{SplitFile, read_split_gmsh, split_gmsh};
pub use vtu::{pvtu_pieces, read_pvtu};

use crate::model::{Assembled, Assembly, ElementOrigin, Inventory, Source};
use build::{check_room, push_element, rank_nodes};

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
    /// Gmsh MSH 1, 2 and 4.
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
    /// VTK unstructured grid, legacy form.
    VtkLegacy,
    /// MFEM mesh.
    Mfem,
    /// Exodus II, in the classic NetCDF formats.
    Exodus,
    /// Abaqus or CalculiX input.
    Abaqus,
    /// AVS UCD, ASCII.
    Ucd,
}

impl Format {
    /// All formats, in the order of help texts.
    pub const ALL: [Format; 14] = [
        Format::Gmsh,
        Format::MetisGraph,
        Format::GraphConnections,
        Format::MetisMesh,
        Format::MatrixMarket,
        Format::Spark98,
        Format::Su2,
        Format::Tetgen,
        Format::Vtu,
        Format::VtkLegacy,
        Format::Mfem,
        Format::Exodus,
        Format::Abaqus,
        Format::Ucd,
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
            Format::VtkLegacy => "vtk-legacy",
            Format::Mfem => "mfem",
            Format::Exodus => "exodus",
            Format::Abaqus => "abaqus",
            Format::Ucd => "ucd",
        }
    }

    /// The name of the format in prose, such as `METIS graph`.
    pub fn title(self) -> &'static str {
        match self {
            Format::Gmsh => "Gmsh",
            Format::MetisGraph => "METIS graph",
            Format::GraphConnections => "connections in METIS graph syntax",
            Format::MetisMesh => "METIS mesh",
            Format::MatrixMarket => "Matrix Market",
            Format::Spark98 => "Spark98 pack file",
            Format::Su2 => "SU2",
            Format::Tetgen => "Triangle or TetGen elements",
            Format::Vtu => "VTU",
            Format::VtkLegacy => "legacy VTK",
            Format::Mfem => "MFEM mesh",
            Format::Exodus => "Exodus II",
            Format::Abaqus => "Abaqus input",
            Format::Ucd => "AVS UCD",
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
            Format::VtkLegacy => Some("vtk"),
            // `.mesh` is METIS's; the content tells.
            Format::Mfem => None,
            Format::Exodus => Some("exo"),
            Format::Abaqus => Some("inp"),
            Format::Ucd => Some("ucd"),
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file by its extension, ignoring case.
    pub fn from_file_name(file: &str) -> Option<Self> {
        let file = file.strip_suffix(".gz").unwrap_or(file);
        let (_, extension) = file.rsplit_once('.')?;
        Self::ALL
            .into_iter()
            .find(|format| format.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension)))
            .or_else(|| detect::other_extension(extension))
    }

    /// The format of a file by its content; `None` if the content does not tell, as with the
    /// formats that begin with numbers.
    pub fn from_content(bytes: &[u8]) -> Option<Self> {
        detect::from_content(bytes)
    }

    /// The format of a file by its content, or if that does not tell by its name.
    ///
    /// ```
    /// use conset_mesh::Format;
    ///
    /// assert_eq!(Format::detect("star.mesh", b"MFEM mesh v1.0\n"), Some(Format::Mfem));
    /// assert_eq!(Format::detect("metis.mesh", b"7434 1\n1 2 3\n"), Some(Format::MetisMesh));
    /// ```
    pub fn detect(file: &str, bytes: &[u8]) -> Option<Self> {
        Self::from_content(bytes).or_else(|| Self::from_file_name(file))
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
    let options = ReadOptions { memory, ..ReadOptions::default() };
    read_with(format, file, bytes, &options).map(|reading| reading.source)
}

/// How a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Bytes that compressed formats can take for what they decompress to.
    pub memory: u64,
    /// Whether the nodes of a pair on a periodic boundary are one node, as the file says.
    pub join_periodic: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { memory: u64::MAX, join_periodic: true }
    }
}

impl ReadOptions {
    /// Sets [`ReadOptions::memory`].
    pub fn with_memory(mut self, memory: u64) -> Self {
        self.memory = memory;
        self
    }

    /// Sets [`ReadOptions::join_periodic`].
    pub fn with_join_periodic(mut self, join: bool) -> Self {
        self.join_periodic = join;
        self
    }
}

/// [`read`] that also returns what the file contains and what of it is not used.
///
/// ```
/// use conset_mesh::Format;
/// use conset_mesh::read::{ReadOptions, read_with};
///
/// let file = "MFEM mesh v1.0\ndimension 2\nelements 1\n1 2 0 1 2\nboundary 1\n1 1 0 1\n\
///     vertices 3 2\n0 0\n1 0\n0 1\n";
/// let reading = read_with(Format::Mfem, "a.mesh", file.as_bytes(), &ReadOptions::default())?;
/// let inventory = reading.inventory.unwrap();
/// assert_eq!((inventory.node_count, inventory.attached()), (3, 1));
/// # Ok::<(), conset_ir::InputError>(())
/// ```
///
/// # Errors
/// As [`read_within`].
pub fn read_with(
    format: Format,
    file: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<Reading> {
    if !gzip::is_gzip(bytes) {
        return read_plain(format, file, bytes, options);
    }
    let plain = gzip::decompress(file, bytes, options.memory)?;
    let memory = options.memory.saturating_sub(to_u64(plain.len()));
    read_plain(format, file, &plain, &options.clone().with_memory(memory))
}

/// The bytes of a file, decompressed if they are compressed with gzip.
fn decompressed<'a>(file: &str, bytes: &'a [u8], memory: u64) -> Result<Cow<'a, [u8]>> {
    if gzip::is_gzip(bytes) {
        return gzip::decompress(file, bytes, memory).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(bytes))
}

fn read_plain(format: Format, file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Reading> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::new(file, At::Whole, "the file is empty"));
    }
    let mut first_number = 1;
    let source = match format {
        Format::Gmsh => return gmsh::read(file, bytes)?.into_reading(file, options),
        Format::MetisGraph => metis::read_graph(file, bytes).map(Source::Graph),
        Format::GraphConnections => metis::read_connections(file, bytes).map(Source::Connections),
        Format::MetisMesh => metis::read_mesh(file, bytes).map(Source::Mesh),
        Format::MatrixMarket => matrix_market::read(file, bytes).map(Source::Matrix),
        Format::Spark98 => spark98::read(file, bytes).map(Source::Decomposition),
        Format::Su2 => return su2::read(file, bytes)?.into_reading(file, options),
        Format::Tetgen => tetgen::read(file, bytes).map(|(mesh, first)| {
            first_number = first;
            Source::Mesh(mesh)
        }),
        Format::Vtu => return vtu::read(file, bytes, options.memory)?.into_reading(file, options),
        Format::VtkLegacy => return vtk_legacy::read(file, bytes)?.into_reading(file, options),
        Format::Mfem => return mfem::read(file, bytes)?.into_reading(file, options),
        Format::Exodus => return exodus::read(file, bytes)?.into_reading(file, options),
        Format::Abaqus => return abaqus::read(file, bytes)?.into_reading(file, options),
        Format::Ucd => return ucd::read(file, bytes)?.into_reading(file, options),
    };
    source.map(|source| {
        let inventory = match &source {
            Source::Mesh(mesh) => Some(mesh),
            Source::Decomposition(decomposition) => Some(decomposition.mesh()),
            Source::Graph(_) | Source::Matrix(_) | Source::Connections(_) => None,
        }
        .map(|mesh| Inventory::of_mesh(format.title(), mesh));
        Reading { source, inventory, origin: None, first_number }
    })
}

/// What was read from a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// The mesh, graph, matrix, decomposition or list of connections.
    pub source: Source,
    /// What the file contains, if it is a mesh.
    pub inventory: Option<Inventory>,
    /// Which elements of the file those of the mesh are, for formats with elements of several
    /// dimensions.
    pub origin: Option<ElementOrigin>,
    /// What the file calls the first node, element, vertex or row if it numbers them by their order:
    /// 0 or 1.
    pub first_number: u64,
}

impl From<Source> for Reading {
    /// A source whose nodes and elements count from 1.
    fn from(source: Source) -> Self {
        Self { source, inventory: None, origin: None, first_number: 1 }
    }
}

impl Reading {
    /// The file's own number of a node, vertex or row.
    pub fn node_number(&self, node: u32) -> u64 {
        let ids = match &self.source {
            Source::Mesh(mesh) => mesh.node_ids(),
            Source::Decomposition(decomposition) => decomposition.mesh().node_ids(),
            Source::Graph(_) | Source::Matrix(_) | Source::Connections(_) => &[],
        };
        ids.get(index(node)).copied().unwrap_or(u64::from(node) + self.first_number)
    }

    /// The file's own number of an element of the mesh.
    pub fn element_number(&self, element: u32) -> u64 {
        match &self.origin {
            Some(origin) => match origin.divided.get(index(element)) {
                Some(&position) => origin.number(position),
                None => u64::from(element) + self.first_number,
            },
            None => u64::from(element) + self.first_number,
        }
    }
}

/// A mesh that a program assembled.
impl From<Assembled> for Reading {
    fn from(made: Assembled) -> Self {
        Self {
            source: Source::Mesh(made.mesh),
            inventory: Some(made.inventory),
            first_number: made.origin.first_number,
            origin: Some(made.origin),
        }
    }
}

impl Assembly {
    fn into_reading(mut self, file: &str, options: &ReadOptions) -> Result<Reading> {
        if !options.join_periodic {
            self.discard_joined();
        }
        Ok(self.into_mesh(file)?.into())
    }
}
