//! Inputs: a pattern, a mesh, a graph, a matrix, a decomposition, or a connection set, turned
//! into a program on a machine's cells.
//!
//! The format is taken from the file's name or given; the project's own forms are also known by
//! their first bytes. What is not yet divided into parts is partitioned, the parts' halo becomes
//! a connection set, and the parts are placed on cells for the objective. A connection set and a
//! pattern already name cells and are taken as they are, unless [`place`] is asked to place them.

use std::sync::Arc;

use conset_ir::document::{Document, Form};
use conset_ir::{
    At, CellId, Connection, ConnectionSet, Image, InputError, Machine, Program, Schedule,
    ShapeError,
};
use conset_mesh::halo::{self, Halo};
use conset_mesh::partition::{self, Partition};
use conset_mesh::read::{self, Format};
use conset_mesh::{Source, patterns, triangles};
use conset_partition_route::placement::{self, Method};

use serde::Serialize;

use crate::compile::wrong_ends;
use crate::{CompileError, Observer, Progress};

/// What an input is, by its name, its first bytes or the user's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of the project's own forms: text, JSON, binary.
    Document,
    /// Something that must be divided into parts, or is.
    Mesh(Format),
}

/// What graphs and matrices stand for when they are partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Elements {
    /// Elements of a mesh, vertices of a graph, rows of a matrix.
    #[default]
    AsRead,
    /// The triangles of a nodal graph, recovered from its 3-cycles.
    Triangles,
}

/// How to read an input.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions<'a> {
    /// The format, where the name does not say.
    pub format: Option<&'a str>,
    /// How many parts; the machine's live cells if not given.
    pub parts: Option<usize>,
    /// A given partition: name and bytes of its file.
    pub partition: Option<(&'a str, &'a [u8])>,
    /// What is partitioned.
    pub elements: Elements,
    /// How parts come to cells.
    pub placement: Method,
    /// The seed of partitioner and placement.
    pub seed: u64,
    /// The most bytes that what is read may take in memory; any number if not given. Inputs that
    /// are compressed say beforehand what they need.
    pub memory: Option<u64>,
}

/// A program on a machine's cells, and how it came there.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The sets.
    pub program: Program,
    /// The machine the file asks for, if it does.
    pub machine: Option<Arc<Machine>>,
    /// Where the sets come from a mesh, graph, matrix or decomposition: the parts.
    pub halo: Option<PlacedHalo>,
    /// How the parts, or the cells that the sets named, came to the cells where they are; without
    /// it, the sets are as they were read.
    pub placement: Option<Placement>,
}

/// Who lives where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// How that was decided: given, curve, bisect or best.
    pub method: &'static str,
    /// The cell of each part, or of each cell with a live agent that the sets named, in their
    /// order.
    pub cells: Vec<CellId>,
}

/// A halo and the cells its parts were placed on.
#[derive(Clone, Debug)]
pub struct PlacedHalo {
    /// The parts and what they exchange; its connections name parts.
    pub halo: Halo,
    /// The cell of each part.
    pub place: Vec<CellId>,
}

/// What was read: a program still to be compiled, or one that has been.
#[derive(Clone, Debug)]
pub enum Input {
    /// To be compiled.
    Program(Box<Loaded>),
    /// Compiled: a schedule.
    Schedule(Schedule),
    /// Compiled: an image.
    Image(Image),
    /// A machine alone.
    Machine(Arc<Machine>),
}

/// The prefix of an input that is a pattern and not a file.
pub const PATTERN: &str = "pattern:";

/// The program of a pattern: `all-to-all`, `ring-shift:3`, ...
///
/// # Errors
/// An unknown pattern, or one that the machine has not the shape for.
pub fn pattern(spec: &str, machine: &Machine, words: u32) -> Result<Loaded, InputError> {
    let set = patterns::generate(spec, machine, words)?;
    Ok(Loaded { program: set.into(), machine: None, halo: None, placement: None })
}

/// Says what a file is from its name, its first bytes and the user's word.
///
/// # Errors
/// A format that is not known (the message lists them), or a name that says nothing.
pub fn kind(name: &str, bytes: &[u8], format: Option<&str>) -> Result<Kind, InputError> {
    if let Some(format) = format {
        if OWN_FORMATS.contains(&format) {
            return Ok(Kind::Document);
        }
        return Format::from_name(format).map(Kind::Mesh).ok_or_else(|| {
            InputError::new("<format>", At::Path(format.into()), "not a format that conset reads")
                .help(format!("formats: {}", known_formats()))
        });
    }
    let extension = name.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    if OWN_FORMATS.contains(&extension.as_str()) {
        return Ok(Kind::Document);
    }
    if let Some(format) = Format::detect(name, bytes) {
        return Ok(Kind::Mesh(format));
    }
    // Our own forms say what they are; a machine file could be any text with an equals sign.
    match Document::sniff(bytes) {
        Some(Form::Text | Form::Json | Form::Binary) => Ok(Kind::Document),
        _ if bytes.is_empty() => Err(InputError::new(name, At::Whole, "the file is empty")),
        _ if extension == "node" => {
            Err(InputError::new(name, At::Whole, "a .node file has nodes and no elements")
                .help("give the .ele file that belongs to it"))
        }
        Some(Form::MachineFile) | None => {
            Err(InputError::new(name, At::Whole, "the file's name does not say what it is")
                .help(format!("give --format; formats: {}", known_formats())))
        }
    }
}

const OWN_FORMATS: [&str; 5] = ["cset", "json", "csb", "csi", "toml"];

fn known_formats() -> String {
    let mut names: Vec<&str> = OWN_FORMATS.to_vec();
    names.extend(Format::ALL.iter().map(|f| f.name()));
    names.join(", ")
}

/// Reads a file's bytes.
///
/// # Errors
/// Anything wrong with them, naming file and position; parts that do not fit the machine.
pub fn load(
    name: &str,
    bytes: &[u8],
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<Input, CompileError> {
    observer(Progress::Stage("reading"));
    match kind(name, bytes, options.format)? {
        Kind::Document => Ok(match parse_document(name, bytes, options)? {
            Document::Program { machine, program } => {
                Input::Program(Box::new(Loaded { program, machine, halo: None, placement: None }))
            }
            Document::Schedule(schedule) => Input::Schedule(schedule),
            Document::Image(image) => Input::Image(image),
            Document::Machine(machine) => Input::Machine(machine),
            Document::Routing(_) | Document::Timetable(_) => {
                return Err(InputError::new(
                    name,
                    At::Whole,
                    "a routing or timetable alone; expected a connection set, schedule or image",
                )
                .into());
            }
        }),
        Kind::Mesh(format) => {
            let source =
                read::read_within(format, name, bytes, options.memory.unwrap_or(u64::MAX))?;
            Ok(Input::Program(Box::new(from_source(name, source, machine, options, observer)?)))
        }
    }
}

/// A connection set names its cells already; words about parts must not be passed over.
fn parse_document(
    name: &str,
    bytes: &[u8],
    options: &LoadOptions<'_>,
) -> Result<Document, InputError> {
    let given = [
        ("--parts", options.parts.is_some()),
        ("--partition", options.partition.is_some()),
        ("--elements", options.elements != Elements::AsRead),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(InputError::new(
            *option,
            At::Whole,
            format!("`{name}` names its cells already and is not divided into parts"),
        )
        .help(format!("leave out {option}")));
    }
    Document::parse_any(name, bytes)
}

/// Divides what was read into parts, takes their halo, places the parts on cells.
pub(crate) fn from_source(
    name: &str,
    source: Source,
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<Loaded, CompileError> {
    let source = match (options.elements, source) {
        (Elements::AsRead, source) => source,
        (Elements::Triangles, Source::Graph(graph)) => {
            Source::Mesh(triangles::from_graph(&graph).map_err(|e| e.in_file(name))?)
        }
        (Elements::Triangles, _) => {
            return Err(InputError::new(
                name,
                At::Whole,
                "--elements triangles recovers triangles from a nodal graph; this is no graph",
            )
            .into());
        }
    };
    observer(Progress::Stage("partitioning"));
    let partition = partition_of(name, &source, machine, options)?;
    observer(Progress::Stage("finding the halo"));
    let halo = halo::halo(&source, &partition, "halo").map_err(|e| e.in_file(name))?;
    observer(Progress::Stage("placing parts"));
    let parts = halo.summary.parts;
    let place = placement::place(machine, &halo.set, parts, options.placement, options.seed)?;
    let set = halo.set.clone().placed(&place).map_err(|e| misplaced(&e))?;
    let placement = Placement { method: options.placement.name(), cells: place.clone() };
    let halo = Some(PlacedHalo { halo, place });
    Ok(Loaded { program: set.into(), machine: None, halo, placement: Some(placement) })
}

fn misplaced(error: &ShapeError) -> CompileError {
    CompileError::Bug { stage: "placement", message: error.to_string() }
}

/// Places a program whose sets name cells already as if those were parts: what they say of the
/// `i`-th cell with a live agent then holds for `placement.cells[i]`. All sets get the same
/// placement, the best for all of them together.
///
/// # Errors
/// Sets whose ends are not live cells of the machine with an agent.
pub fn place(
    loaded: &mut Loaded,
    machine: &Machine,
    method: Method,
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<(), CompileError> {
    observer(Progress::Stage("placing parts"));
    let homes: Vec<CellId> = machine.endpoints().collect();
    let mut part_of: Vec<CellId> = machine.cells().collect();
    for (part, home) in homes.iter().enumerate() {
        part_of[home.index()] = CellId::from_index(part);
    }
    let mut connections = Vec::new();
    for set in loaded.program.sets() {
        set.check_machine(machine).map_err(|e| wrong_ends(machine, set, e))?;
        let parts = ConnectionSet::clone(set).placed(&part_of).map_err(|e| misplaced(&e))?;
        // With what they ask for, which not every placement can give.
        let ends = parts.connections().iter();
        connections.extend(ends.map(|c| Connection { name: None, ..c.clone() }));
    }
    let all = ConnectionSet::new("all-sets", connections).map_err(|e| misplaced(&e))?;
    let cells = placement::place(machine, &all, homes.len(), method, seed)?;
    let mut moved: Vec<CellId> = machine.cells().collect();
    for (&home, &cell) in homes.iter().zip(&cells) {
        moved[home.index()] = cell;
    }
    let sets = loaded.program.sets().iter().map(|set| {
        let placed = ConnectionSet::clone(set).placed(&moved).map_err(|e| misplaced(&e))?;
        Ok(Arc::new(placed))
    });
    let sets = sets.collect::<Result<Vec<_>, CompileError>>()?;
    loaded.program = Program::new(sets).map_err(|e| misplaced(&e))?;
    loaded.placement = Some(Placement { method: method.name(), cells });
    Ok(())
}

/// The partition file's, else the one in the input (unless another number of parts is asked
/// for), else one by METIS.
fn partition_of(
    name: &str,
    source: &Source,
    machine: &Machine,
    options: &LoadOptions<'_>,
) -> Result<Partition, InputError> {
    if let Some((file, bytes)) = options.partition {
        return partition::read_file(file, bytes, partition::item_count(source), options.parts);
    }
    if let Some(stated) = partition::stated(source)
        && options.parts.is_none_or(|parts| parts == stated.part_count())
    {
        return Ok(stated);
    }
    // A mesh of fewer elements than the machine has cells leaves cells without work; only an
    // explicit wish for more parts than there are items is an error.
    let items = partition::item_count(source).max(1);
    let parts = options.parts.unwrap_or_else(|| machine.endpoints().count().min(items));
    let partitioning = partition::PartitionOptions::new(parts).with_seed(options.seed);
    partition::partition(source, &partitioning, name)
}
