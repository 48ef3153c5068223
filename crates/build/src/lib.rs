//! Compiles connection sets in a build script.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), conset_build::BuildError> {
//!     conset_build::Build::new().machine("iwarp:4x4").input("mesh.msh").compile()?;
//!     Ok(())
//! }
//! ```
//!
//! ```ignore
//! // src/main.rs
//! mod program {
//!     include!(concat!(env!("OUT_DIR"), "/program.rs"));
//! }
//! let world = conset_runtime::World::new(program::image());
//! ```
//!
//! [`Build::compile`] reads the machine and the inputs, compiles and verifies them with
//! [`conset::Compiler`], writes the image and a module of typed names
//! ([`conset::codegen::module`]) into `OUT_DIR`, and tells cargo which files to watch. The same
//! inputs and options give the same bytes, and an unchanged file is not written again, so cargo
//! rebuilds nothing.
//!
//! A program that knows its sets only at run time compiles them then, with
//! [`conset::Compiler::compile_sets`].

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conset::input::{self, Input, LoadOptions, PlacedHalo};
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{CompileError, CompileOptions, Compiled, Compiler};
use conset_ir::{
    At, ConnectionSet, Document, Image, InputError, Machine, Program, binary, machine_file,
};

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A file or folder could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// `OUT_DIR` is not set, so this is not a build script.
    #[error("OUT_DIR is not set; run this in a build script, or name a folder with `out_dir`")]
    NoFolder,
    /// The name is not a valid name of a module.
    #[error("`{name}` cannot name a module; expected a letter, then letters, digits or `_`")]
    Name {
        /// The name.
        name: String,
    },
    /// The inputs are wrong, or cannot be compiled for the machine.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl From<InputError> for BuildError {
    fn from(error: InputError) -> Self {
        BuildError::Compile(error.into())
    }
}

/// A compilation in a build script: machine, inputs, options and output.
///
/// ```
/// use conset_ir::{CellId, Connection, ConnectionSet};
///
/// let set = ConnectionSet::new("halo", vec![Connection::new(CellId(0), CellId(1), 20)])?;
/// let folder = std::env::temp_dir().join(format!("conset-build-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let built =
///     conset_build::Build::new().machine("ring:4").set(set).out_dir(&folder).quiet().compile()?;
/// assert!(built.module.ends_with("program.rs") && built.image.ends_with("program.csi"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Build {
    machine: MachineChoice,
    inputs: Vec<BuildInput>,
    options: CompileOptions,
    parts: Option<usize>,
    partition: Option<PathBuf>,
    words: u32,
    name: String,
    out_dir: Option<PathBuf>,
    quiet: bool,
}

#[derive(Clone, Debug)]
enum MachineChoice {
    Spec(String),
    Given(Arc<Machine>),
}

#[derive(Clone, Debug)]
enum BuildInput {
    File(PathBuf),
    Set(ConnectionSet),
}

/// The result of a build: a program of phases ([`Build::compile`]) or of steps
/// ([`Build::compile_steps`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built<C = Compiled> {
    /// The source file to include.
    pub module: PathBuf,
    /// The file of the image, in the same folder.
    pub image: PathBuf,
    /// The files that were read.
    pub read: Vec<PathBuf>,
    /// The compiled program.
    pub compiled: C,
    /// For each input that was divided into parts: the parts and their cells.
    pub halos: Vec<PlacedHalo>,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            machine: MachineChoice::Spec("iwarp".to_owned()),
            inputs: Vec::new(),
            options: CompileOptions::default(),
            parts: None,
            partition: None,
            words: 1,
            name: "program".to_owned(),
            out_dir: None,
            quiet: false,
        }
    }
}

impl Build {
    /// A build without inputs for the machine `iwarp`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the machine as on the command line: a preset with its size (`iwarp:4x4`, `ring:16`), or the
    /// path of a machine file that ends in `.toml`.
    pub fn machine(mut self, spec: impl Into<String>) -> Self {
        self.machine = MachineChoice::Spec(spec.into());
        self
    }

    /// Sets a machine made by the build script.
    pub fn on(mut self, machine: impl Into<Arc<Machine>>) -> Self {
        self.machine = MachineChoice::Given(machine.into());
        self
    }

    /// Adds an input as on the command line: a file with a mesh, graph, matrix, decomposition or
    /// connection sets, or a pattern (`pattern:all-to-all`). All sets need different names.
    pub fn input(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(BuildInput::File(path.into()));
        self
    }

    /// Adds a connection set made by the build script.
    pub fn set(mut self, set: ConnectionSet) -> Self {
        self.inputs.push(BuildInput::Set(set));
        self
    }

    /// Adds connection sets made by the build script.
    pub fn sets(mut self, sets: impl IntoIterator<Item = ConnectionSet>) -> Self {
        self.inputs.extend(sets.into_iter().map(BuildInput::Set));
        self
    }

    /// Sets the options of the compiler.
    pub fn options(mut self, options: CompileOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the number of parts of meshes; the default is the number of live cells.
    pub fn parts(mut self, parts: usize) -> Self {
        self.parts = Some(parts);
        self
    }

    /// Sets a file with the partition of meshes.
    pub fn partition(mut self, path: impl Into<PathBuf>) -> Self {
        self.partition = Some(path.into());
        self
    }

    /// Sets the words of each connection of a pattern; the default is 1.
    pub fn words(mut self, words: u32) -> Self {
        self.words = words;
        self
    }

    /// Sets the name of the output files, `NAME.rs` and `NAME.csi`; the default is `program`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the output folder; the default is `OUT_DIR`.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Prints no instructions to cargo.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Compiles and verifies the inputs, and writes the module and the image.
    ///
    /// # Errors
    /// See [`BuildError`]. If an input cannot be read or compiled, nothing is written.
    pub fn compile(&self) -> Result<Built, BuildError> {
        let compiler = |machine: &Arc<Machine>, program: &Program| {
            Compiler::new(machine).options(self.options.clone()).compile(program)
        };
        self.built(compiler, Compiled::image)
    }

    /// Compiles and verifies the inputs to step plans, for machines without tables, and writes the
    /// module and the image. Of the options it uses the seed and the greatest number of plans.
    ///
    /// # Errors
    /// As [`Build::compile`].
    pub fn compile_steps(&self) -> Result<Built<CompiledSteps>, BuildError> {
        let compiler = |machine: &Arc<Machine>, program: &Program| {
            let compiler = StepCompiler::new(machine).seed(self.options.seed);
            compiler.max_plans(self.options.max_plans).compile(program, &mut |_| ())
        };
        self.built(compiler, CompiledSteps::image)
    }

    fn folder(&self, out_dir: Option<OsString>) -> Result<PathBuf, BuildError> {
        let letter = self.name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !letter || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(BuildError::Name { name: self.name.clone() });
        }
        let folder = self.out_dir.clone().or_else(|| out_dir.map(PathBuf::from));
        folder.ok_or(BuildError::NoFolder)
    }

    /// Compiles the inputs, and writes the image of the result and its module.
    fn built<C>(
        &self,
        compile: impl FnOnce(&Arc<Machine>, &Program) -> Result<C, CompileError>,
        image_of: impl FnOnce(&C) -> &Arc<Image>,
    ) -> Result<Built<C>, BuildError> {
        // A wrong name is found before anything is compiled.
        let folder = self.folder(std::env::var_os("OUT_DIR"))?;
        let mut read = Vec::new();
        let loaded = self.program(&mut read);
        // Also after an error: when the file is corrected, cargo must run the script again.
        if !self.quiet {
            rerun_if_changed(&read);
        }
        let (machine, program, halos) = loaded?;
        let compiled = compile(&machine, &program)?;
        let file = format!("{}.csi", self.name);
        let (image, module) = (folder.join(&file), folder.join(format!("{}.rs", self.name)));
        let contents = image_of(&compiled);
        write(&image, &binary::write(&Document::Image((**contents).clone())))?;
        write(&module, conset::codegen::module::module(contents, &file).as_bytes())?;
        Ok(Built { module, image, read, compiled, halos })
    }

    /// Reads the inputs, and records every file that it reads in `read`.
    fn program(
        &self,
        read: &mut Vec<PathBuf>,
    ) -> Result<(Arc<Machine>, Program, Vec<PlacedHalo>), BuildError> {
        let machine = self.machine_of(read)?;
        let (mut sets, mut halos) = (Vec::new(), Vec::new());
        for input in &self.inputs {
            match input {
                BuildInput::Set(set) => sets.push(Arc::new(set.clone())),
                BuildInput::File(path) => {
                    let loaded = self.load(path, &machine, read)?;
                    sets.extend_from_slice(loaded.program.sets());
                    halos.extend(loaded.halo);
                }
            }
        }
        let program = Program::new(sets)
            .map_err(|e| InputError::new("<build script>", At::Path(e.place), e.message))?;
        Ok((machine, program, halos))
    }

    fn machine_of(&self, read: &mut Vec<PathBuf>) -> Result<Arc<Machine>, BuildError> {
        let spec = match &self.machine {
            MachineChoice::Given(machine) => return Ok(machine.clone()),
            MachineChoice::Spec(spec) => spec,
        };
        if !spec.ends_with(".toml") {
            return Ok(Arc::new(
                Machine::from_spec(spec)
                    .map_err(|e| e.with_alternative("give a machine file ending in .toml"))?,
            ));
        }
        let bytes = open(Path::new(spec), read)?;
        let text = conset_ir::position::utf8(spec, &bytes)?;
        Ok(Arc::new(machine_file::parse(spec, text)?))
    }

    fn load(
        &self,
        path: &Path,
        machine: &Machine,
        read: &mut Vec<PathBuf>,
    ) -> Result<input::LoadedProgram, BuildError> {
        let name = path.display().to_string();
        if let Some(pattern) = name.strip_prefix(input::PATTERN) {
            return Ok(input::pattern(pattern, machine, self.words)?);
        }
        let bytes = open(path, read)?;
        let partition = match &self.partition {
            Some(file) => Some((file.display().to_string(), open(file, read)?)),
            None => None,
        };
        let partition = partition.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let options =
            LoadOptions::default().parts(self.parts).partition(partition).seed(self.options.seed);
        match input::load(&name, &bytes, machine, &options, &mut |_| ())? {
            Input::Program(loaded) => Ok(*loaded),
            _ => {
                let message = "a schedule, an image or a machine; expected an input to compile";
                Err(InputError::new(name, At::Whole, message).into())
            }
        }
    }
}

fn open(path: &Path, read: &mut Vec<PathBuf>) -> Result<Vec<u8>, BuildError> {
    if !read.iter().any(|known| known == path) {
        read.push(path.to_owned());
    }
    std::fs::read(path).map_err(|error| BuildError::File { path: path.to_owned(), error })
}

/// Writes a file unless its contents are unchanged. If the build is killed, the file is either the old
/// one or the new one.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let failed = |error| BuildError::File { path: path.to_owned(), error };
    let mut file = std::fs::File::create(&beside).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}

/// Tells cargo which files to watch. If no file was read, cargo watches the whole package.
#[allow(clippy::print_stdout, reason = "build scripts print instructions for cargo")]
fn rerun_if_changed(read: &[PathBuf]) {
    for path in read {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
