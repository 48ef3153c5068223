//! `--write-partition`: the part and the cell of each item of the input, in the input's own numbers.
//!
//! `conset_mesh::write_partition` describes the two formats.

use std::path::Path;

use conset::input::{Input, PartitionUnit};
use conset_ir::{At, CellId, InputError, Machine, ShapeError};
use conset_mesh::write_partition::{PlacedPartition, VtuPartition, write_cells};

use crate::args::{CompilerArgs, InputArgs};
use crate::files::OutputTarget;
use crate::load::{self, LoadedInput};

/// Where a partition is written, and in which format.
pub(crate) struct PartitionFile<'a> {
    path: &'a Path,
    is_vtu: bool,
    input: &'a InputArgs,
}

impl<'a> PartitionFile<'a> {
    /// The file that the command line names. Other outputs must not be the same file.
    ///
    /// # Errors
    /// A name without one of the known extensions, an input or another output of the command, a
    /// folder that does not exist.
    pub(crate) fn new(
        path: Option<&'a Path>,
        input: &'a InputArgs,
        compiler: &CompilerArgs,
        outputs: &[Option<&Path>],
    ) -> Result<Option<Self>, InputError> {
        let Some(path) = path else { return Ok(None) };
        let wrong = |message: &str| {
            InputError::new("--write-partition", At::Path(path.display().to_string()), message)
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_vtu = match extension {
            Some("vtu") => true,
            Some("txt" | "part") => false,
            _ => {
                let message = "the extension does not select a format for the partition";
                return Err(wrong(message).help("use .txt or .part (text) or .vtu (ParaView)"));
            }
        };
        let mut inputs = load::input_files(input);
        inputs.extend(compiler.reuse.as_deref());
        OutputTarget::new(path).check(&inputs)?;
        let same = |other: &Path| {
            other == path
                || matches!((path.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b)
        };
        if outputs.iter().flatten().any(|other| same(other)) {
            return Err(wrong("another output of this command has the same name")
                .help("write the partition to a file of its own"));
        }
        Ok(Some(Self { path, is_vtu, input }))
    }

    /// What the file is to contain. Fails before the work of compiling, not after it.
    ///
    /// # Errors
    /// An input without parts and cells, or one that the format cannot represent.
    pub(crate) fn contents<'b>(&self, loaded: &'b LoadedInput) -> Result<Contents<'b>, InputError> {
        let wrong = |message: &str| {
            InputError::new("--write-partition", At::Path(self.input.name()), message)
        };
        let Input::Program(program) = &loaded.input else {
            return Err(wrong("a compiled input has no parts to write")
                .help("give --write-partition when the mesh or pattern is compiled"));
        };
        let (Some(halo), Some(reading)) = (&program.halo, &program.reading) else {
            if self.is_vtu {
                return Err(wrong("only meshes can be written as .vtu").help("use .txt or .part"));
            }
            let cells = program.placement.as_ref().map(|placement| &placement.cells[..]);
            return Ok(Contents::Cells(places(cells, &loaded.machine)));
        };
        let shape = |error: ShapeError| wrong(&error.message).help("use .txt or .part");
        let unit = PartitionUnit::from(self.input.options.elements);
        let partition = PlacedPartition::new(reading, &halo.halo.parts, &halo.place)
            .map_err(shape)?
            .triangles(unit == PartitionUnit::Triangles);
        Ok(match self.is_vtu {
            true => Contents::Vtu(partition.vtu().map_err(shape)?),
            false => Contents::Text(partition),
        })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// A failure to write.
    pub(crate) fn write(&self, contents: &Contents<'_>) -> Result<(), InputError> {
        let name = self.input.name();
        OutputTarget::new(self.path).write(|mut out| match contents {
            Contents::Vtu(vtu) => vtu.write(&mut out),
            Contents::Text(partition) => partition.write_text(&name, &mut out),
            Contents::Cells(cells) => write_cells(&name, cells.iter().copied(), &mut out),
        })
    }
}

/// Contents of the file.
pub(crate) enum Contents<'a> {
    /// The mesh.
    Vtu(VtuPartition<'a>),
    /// One line for each item.
    Text(PlacedPartition<'a>),
    /// One line for each cell that a program without a mesh names.
    Cells(Vec<(CellId, CellId)>),
}

/// Each cell that a program without a mesh can name, and the cell that replaces it.
fn places(placed: Option<&[CellId]>, machine: &Machine) -> Vec<(CellId, CellId)> {
    let named = machine.endpoints();
    match placed {
        Some(cells) => named.zip(cells.iter().copied()).collect(),
        None => named.map(|cell| (cell, cell)).collect(),
    }
}
