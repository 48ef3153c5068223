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
//! What it does: reads the machine and the inputs, compiles them through the checker as
//! [`conset::compile()`] does, writes the image and a module of typed names
//! ([`conset::codegen::module`]) into `OUT_DIR`, and tells cargo which files to watch. The same
//! inputs and options give the same bytes, and a file that is as it should be is not written
//! again, so cargo builds nothing anew.
//!
//! It is the one library that opens files, and it is for build scripts: the stages do not. Who
//! knows the sets only when the program starts compiles them there, with
//! [`conset::compile_sets`].

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conset::input::{self, Input, LoadOptions, PlacedHalo};
use conset::{CompileError, Compiled, Options};
use conset_ir::{At, ConnectionSet, Document, InputError, Machine, Program, binary, machine_file};

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file or folder could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// There is no `OUT_DIR`: this is no build script.
    #[error("OUT_DIR is not set; run this in a build script, or name a folder with `out_dir`")]
    NoFolder,
    /// A name for the module that no file and no module should have.
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

/// What to compile, for which machine, and where to put it.
#[derive(Clone, Debug)]
pub struct Build {
    machine: MachineChoice,
    inputs: Vec<Part>,
    options: Options,
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
enum Part {
    Input(PathBuf),
    Set(ConnectionSet),
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The source file, to be included.
    pub module: PathBuf,
    /// The image's file, beside it.
    pub image: PathBuf,
    /// The files that were read.
    pub read: Vec<PathBuf>,
    /// The compiled program.
    pub compiled: Compiled,
    /// Of each input that was divided into parts: the parts, and the cells they were placed on.
    pub halos: Vec<PlacedHalo>,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            machine: MachineChoice::Spec("iwarp".to_owned()),
            inputs: Vec::new(),
            options: Options::default(),
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
    /// Nothing yet, for the machine `iwarp`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The machine, as on the command line: a preset with its size (`iwarp:4x4`, `ring:16`), or
    /// the path of a machine file that ends in `.toml`.
    #[must_use]
    pub fn machine(mut self, spec: impl Into<String>) -> Self {
        self.machine = MachineChoice::Spec(spec.into());
        self
    }

    /// A machine made by the build script.
    #[must_use]
    pub fn on(mut self, machine: impl Into<Arc<Machine>>) -> Self {
        self.machine = MachineChoice::Given(machine.into());
        self
    }

    /// Adds an input, as on the command line: a mesh, graph, matrix, decomposition or connection
    /// sets in a file, or a pattern (`pattern:all-to-all`). Sets of several inputs need several
    /// names.
    #[must_use]
    pub fn input(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Part::Input(path.into()));
        self
    }

    /// Adds a connection set made by the build script.
    #[must_use]
    pub fn set(mut self, set: ConnectionSet) -> Self {
        self.inputs.push(Part::Set(set));
        self
    }

    /// Adds connection sets made by the build script.
    #[must_use]
    pub fn sets(mut self, sets: impl IntoIterator<Item = ConnectionSet>) -> Self {
        self.inputs.extend(sets.into_iter().map(Part::Set));
        self
    }

    /// How to compile.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Divides meshes into this many parts; as many as there are live cells otherwise.
    #[must_use]
    pub fn parts(mut self, parts: usize) -> Self {
        self.parts = Some(parts);
        self
    }

    /// Divides meshes as this file says.
    #[must_use]
    pub fn partition(mut self, path: impl Into<PathBuf>) -> Self {
        self.partition = Some(path.into());
        self
    }

    /// Words of each connection of a pattern; 1 otherwise.
    #[must_use]
    pub fn words(mut self, words: u32) -> Self {
        self.words = words;
        self
    }

    /// The name of what is written: `NAME.rs` and `NAME.csi`; `program` otherwise.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Writes into this folder; cargo's `OUT_DIR` otherwise.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Does not print to cargo which files to watch.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Compiles, checks and writes.
    ///
    /// # Errors
    /// See [`BuildError`]. Nothing is written where something cannot be read or compiled.
    pub fn compile(&self) -> Result<Built, BuildError> {
        let folder = self.folder(std::env::var_os("OUT_DIR"))?;
        let mut read = Vec::new();
        let result = self.compiled(&mut read);
        // Cargo is told in any case: a file that is mended must start the script again.
        if !self.quiet {
            watch(&read);
        }
        let (compiled, halos) = result?;
        let file = format!("{}.csi", self.name);
        let image = folder.join(&file);
        let module = folder.join(format!("{}.rs", self.name));
        write(&image, &binary::write(&Document::Image((**compiled.image()).clone())))?;
        write(&module, conset::codegen::module::module(compiled.image(), &file).as_bytes())?;
        Ok(Built { module, image, read, compiled, halos })
    }

    fn folder(&self, out_dir: Option<OsString>) -> Result<PathBuf, BuildError> {
        let letter = self.name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !letter || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(BuildError::Name { name: self.name.clone() });
        }
        let folder = self.out_dir.clone().or_else(|| out_dir.map(PathBuf::from));
        folder.ok_or(BuildError::NoFolder)
    }

    /// Notes every file it reads in `read`.
    fn compiled(&self, read: &mut Vec<PathBuf>) -> Result<(Compiled, Vec<PlacedHalo>), BuildError> {
        let machine = self.machine_of(read)?;
        let (mut sets, mut halos) = (Vec::new(), Vec::new());
        for part in &self.inputs {
            match part {
                Part::Set(set) => sets.push(Arc::new(set.clone())),
                Part::Input(path) => {
                    let loaded = self.load(path, &machine, read)?;
                    sets.extend_from_slice(loaded.program.sets());
                    halos.extend(loaded.halo);
                }
            }
        }
        let program = Program::new(sets)
            .map_err(|e| InputError::new("<build script>", At::Path(e.place), e.message))?;
        let compiled = conset::compile(&machine, &program, &self.options, &mut |_| ())?;
        Ok((compiled, halos))
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
    ) -> Result<input::Loaded, BuildError> {
        let name = path.display().to_string();
        if let Some(pattern) = name.strip_prefix(input::PATTERN) {
            return Ok(input::pattern(pattern, machine, self.words)?);
        }
        let bytes = open(path, read)?;
        let partition = match &self.partition {
            Some(file) => Some((file.display().to_string(), open(file, read)?)),
            None => None,
        };
        let options = LoadOptions {
            parts: self.parts,
            partition: partition.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
            seed: self.options.seed,
            ..LoadOptions::default()
        };
        match input::load(&name, &bytes, machine, &options, &mut |_| ())? {
            Input::Program(loaded) => Ok(*loaded),
            Input::Schedule(_) | Input::Image(_) | Input::Machine(_) => {
                let message = "this is compiled or a machine; expected something to compile";
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

/// Writes a file unless it is what it should be; a build that is killed leaves the old file or
/// the new one.
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

/// Tells cargo when to run the build script again (beside when the script itself changes). Where
/// nothing was read there is nothing to tell, and cargo watches the whole package.
#[allow(clippy::print_stdout, reason = "it is how a build script speaks to cargo")]
fn watch(read: &[PathBuf]) {
    for path in read {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
