//! Reading inputs: a pattern, mesh, graph, matrix, decomposition or connection set becomes a program
//! on the cells of a machine.
//!
//! The format follows from the file name or is given; the project's own formats are also recognised
//! by their first bytes. Meshes, graphs and matrices are partitioned, the halo of the parts becomes
//! a connection set, and the parts are placed on cells. Connection sets and patterns name cells
//! already and are used unchanged, unless [`place`] places them.

use std::sync::Arc;

use conset_ir::{
    At, CellId, Connection, ConnectionSet, Document, FileFormat, Image, InputError, Machine,
    PartMap, Program, Schedule, ShapeError, StepSchedule, counted,
};
use conset_mesh::halo::{self, Halo, HaloKind, HaloOptions, WordsPerNode};
use conset_mesh::model::Inventory;
use conset_mesh::partition::{self, Partition};
use conset_mesh::read::{self, Format, ReadOptions, Reading, foreign_format};
use conset_mesh::{Source, patterns, triangles};
use conset_partition_route::placement::{self, Method};
use serde::Serialize;

use crate::bounds::endpoint_error;
pub use crate::partition_search::PartitionReport;
use crate::partition_search::{Found, PartitionSearch};
use crate::report::PartsSummary;
use crate::steps::schedule_of_image;
use crate::{CompileError, Objective, Observer, Progress};

/// The kind of an input, by its name, its first bytes or a given format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// One of the project's own formats: text, JSON or binary.
    Document,
    /// A mesh, graph, matrix or decomposition.
    Mesh(Format),
}

/// What is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PartitionUnit {
    /// Elements of a mesh, vertices of a graph, rows of a matrix.
    #[default]
    AsRead,
    /// The triangles of a nodal graph, recovered from its 3-cycles.
    Triangles,
}

/// Options for reading an input.
///
/// ```
/// use conset::input::LoadOptions;
///
/// let options = LoadOptions::default().parts(16).seed(7);
/// assert_eq!((options.parts, options.seed), (Some(16), 7));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions<'a> {
    /// The format, if the name does not determine it.
    pub format: Option<&'a str>,
    /// The number of parts; the number of live cells of the machine if not given.
    pub parts: Option<usize>,
    /// A given partition: name and bytes of its file.
    pub partition: Option<(&'a str, &'a [u8])>,
    /// What is partitioned.
    pub elements: PartitionUnit,
    /// The method that places parts on cells.
    pub placement: Method,
    /// The seed of partitioner and placement.
    pub seed: u64,
    /// Greatest number of bytes that the input may take in memory; no limit if not given. Compressed
    /// inputs declare beforehand what they need.
    pub memory: Option<u64>,
    /// Whether nodes that the file joins across a periodic boundary stay separate.
    pub ignore_periodic: bool,
    /// Whether the decomposition that the file states is replaced by one of the partitioner.
    pub repartition: bool,
    /// What the parts exchange; the default of the input if not given.
    pub halo: Option<HaloKind>,
    /// Layers of neighbours that a part needs; 1 if not given.
    pub layers: Option<u32>,
    /// The words of each exchanged node, element or row; 1 if not given.
    pub words_per_node: Option<NodeWords<'a>>,
    /// Whether [`LoadedProgram::reading`] is kept.
    pub keep_reading: bool,
    /// By how many thousandths the weight of a part may exceed the average; 30 if not given.
    pub imbalance: Option<u32>,
    /// The greatest number of partitions that are looked at; 1 is the partitioner's own with the
    /// seed, unchanged. If not given, the size of the input determines the number.
    pub max_partitions: Option<u32>,
    /// What partitions are compared by.
    pub objective: Objective,
    /// When the search for a partition ends, if it is not determined by a number.
    pub stop: Option<StopWhen<'a>>,
}

/// A function that ends a search when it returns true.
#[derive(Clone, Copy)]
pub struct StopWhen<'a>(&'a (dyn Fn() -> bool + Sync));

impl StopWhen<'_> {
    /// Whether the search ends now.
    pub(crate) fn is_over(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for StopWhen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopWhen")
    }
}

/// The words of each exchanged node, element or row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeWords<'a> {
    /// The same number for each.
    Each(u32),
    /// One number for each: name and bytes of a file.
    File(&'a str, &'a [u8]),
}

impl<'a> LoadOptions<'a> {
    /// Sets the format.
    #[must_use]
    pub fn format(self, format: impl Into<Option<&'a str>>) -> Self {
        Self { format: format.into(), ..self }
    }

    /// Sets the number of parts.
    #[must_use]
    pub fn parts(self, parts: impl Into<Option<usize>>) -> Self {
        Self { parts: parts.into(), ..self }
    }

    /// Sets a partition: the name and the bytes of its file.
    #[must_use]
    pub fn partition(self, file: impl Into<Option<(&'a str, &'a [u8])>>) -> Self {
        Self { partition: file.into(), ..self }
    }

    /// Sets what is partitioned.
    #[must_use]
    pub fn elements(self, elements: PartitionUnit) -> Self {
        Self { elements, ..self }
    }

    /// Sets the method that places parts on cells.
    #[must_use]
    pub fn placement(self, placement: Method) -> Self {
        Self { placement, ..self }
    }

    /// Sets the seed of partitioner and placement.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the greatest number of bytes that the input may take in memory.
    #[must_use]
    pub fn memory(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { memory: bytes.into(), ..self }
    }

    /// Sets whether the nodes of periodic boundaries stay separate.
    #[must_use]
    pub fn ignore_periodic(self, ignore: bool) -> Self {
        Self { ignore_periodic: ignore, ..self }
    }

    /// Sets whether a stated decomposition is replaced.
    #[must_use]
    pub fn repartition(self, repartition: bool) -> Self {
        Self { repartition, ..self }
    }

    /// Sets what the parts exchange.
    #[must_use]
    pub fn halo(self, kind: impl Into<Option<HaloKind>>) -> Self {
        Self { halo: kind.into(), ..self }
    }

    /// Sets the layers of neighbours that a part needs.
    #[must_use]
    pub fn layers(self, layers: impl Into<Option<u32>>) -> Self {
        Self { layers: layers.into(), ..self }
    }

    /// Sets the words of each exchanged node, element or row.
    #[must_use]
    pub fn words_per_node(self, words: impl Into<Option<NodeWords<'a>>>) -> Self {
        Self { words_per_node: words.into(), ..self }
    }

    /// Sets whether [`LoadedProgram::reading`] is kept, as for writing its partition.
    #[must_use]
    pub fn keep_reading(self, keep: bool) -> Self {
        Self { keep_reading: keep, ..self }
    }

    /// Sets by how many thousandths the weight of a part may exceed the average.
    #[must_use]
    pub fn imbalance(self, thousandths: impl Into<Option<u32>>) -> Self {
        Self { imbalance: thousandths.into(), ..self }
    }

    /// Sets the greatest number of partitions that are looked at; 1 is the partitioner's own with
    /// the seed, unchanged.
    #[must_use]
    pub fn max_partitions(self, partitions: impl Into<Option<u32>>) -> Self {
        Self { max_partitions: partitions.into(), ..self }
    }

    /// Sets what partitions are compared by.
    #[must_use]
    pub fn objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// Looks at partitions until the function returns true or no better ones are found. The result
    /// depends on the moment.
    #[must_use]
    pub fn stop_when(self, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { stop: Some(StopWhen(stop)), ..self }
    }

    /// The options of the readers of meshes.
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions::default()
            .with_memory(self.memory.unwrap_or(u64::MAX))
            .with_join_periodic(!self.ignore_periodic)
    }
}

/// A program on the cells of a machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedProgram {
    /// The sets.
    pub program: Program,
    /// The machine that the file names, if it does.
    pub machine: Option<Arc<Machine>>,
    /// The parts, if the sets come from a mesh, graph, matrix or decomposition.
    pub halo: Option<PlacedHalo>,
    /// The placement of the parts, or of the cells that the sets name; `None` if the sets are
    /// unchanged.
    pub placement: Option<PlacementReport>,
    /// What the file contains and what of it is not used, if it is a mesh.
    pub inventory: Option<Inventory>,
    /// The cell of each part and the file's numbers of the nodes that are exchanged, if the sets come
    /// from a mesh, graph, matrix or decomposition.
    pub part_map: Option<PartMap>,
    /// What was read and partitioned, if [`LoadOptions::keep_reading`] is set.
    pub reading: Option<Box<Reading>>,
}

impl From<Program> for LoadedProgram {
    fn from(program: Program) -> Self {
        Self {
            program,
            machine: None,
            halo: None,
            placement: None,
            inventory: None,
            part_map: None,
            reading: None,
        }
    }
}

/// A placement of parts on cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlacementReport {
    /// The method: given, curve, bisect or best.
    pub method: &'static str,
    /// The cell of each part, or of each cell with a live agent that the sets name, in order.
    pub cells: Vec<CellId>,
}

/// A halo and the cells its parts were placed on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlacedHalo {
    /// The parts and what they exchange; its connections name parts.
    pub halo: Halo,
    /// The cell of each part.
    pub place: Vec<CellId>,
    /// How the partition was found; `None` if the input is a list of connections.
    pub partition: Option<PartitionReport>,
}

impl PlacedHalo {
    /// Whether the partition is the best of several that were looked at.
    pub fn is_searched(&self) -> bool {
        self.partition.as_ref().is_some_and(|report| report.looked_at > 1)
    }
}

/// The contents of an input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A program to compile.
    Program(Box<LoadedProgram>),
    /// A schedule.
    Schedule(Schedule),
    /// A program that is compiled to messages in steps.
    Steps(StepSchedule),
    /// An image.
    Image(Image),
    /// A machine.
    Machine(Arc<Machine>),
}

/// The prefix of an input that is a pattern and not a file.
pub const PATTERN: &str = "pattern:";

/// The program of a pattern: `all-to-all`, `ring-shift:3`, ...
///
/// ```
/// use conset::ir::Machine;
///
/// let machine = Machine::from_spec("torus:4x4")?;
/// let loaded = conset::input::pattern("all-to-all", &machine, 32)?;
/// assert_eq!(loaded.program.sets()[0].len(), 16 * 15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An unknown pattern, or one that does not fit the shape of the machine.
pub fn pattern(spec: &str, machine: &Machine, words: u32) -> Result<LoadedProgram, InputError> {
    let set = patterns::generate(spec, machine, words)?;
    Ok(Program::from(set).into())
}

/// Determines the kind of a file from its name, its first bytes and a given format.
///
/// # Errors
/// An unknown format (the message lists the known ones), or a file that cannot be recognised.
pub fn kind(name: &str, bytes: &[u8], format: Option<&str>) -> Result<InputKind, InputError> {
    if let Some(format) = format {
        if OWN_FORMATS.contains(&format) {
            return Ok(InputKind::Document);
        }
        return Format::from_name(format).map(InputKind::Mesh).ok_or_else(|| {
            InputError::new("<format>", At::Path(format.into()), "not a format that conset reads")
                .help(format!("formats: {}", known_formats()))
        });
    }
    let extension = name.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    if OWN_FORMATS.contains(&extension.as_str()) {
        return Ok(InputKind::Document);
    }
    if let Some(foreign) = foreign_format(bytes) {
        let message = format!("{}; conset does not read it", foreign.title);
        return Err(InputError::new(name, At::Whole, message).help(foreign.help));
    }
    if let Some(format) = Format::detect(name, bytes) {
        return Ok(InputKind::Mesh(format));
    }
    // Our own formats identify themselves; a machine file could be any text with an equals sign.
    match Document::sniff(bytes) {
        Some(FileFormat::Text | FileFormat::Json | FileFormat::Binary) => Ok(InputKind::Document),
        _ if bytes.is_empty() => Err(InputError::new(name, At::Whole, "the file is empty")),
        _ if extension == "node" => {
            Err(InputError::new(name, At::Whole, "a .node file has nodes and no elements")
                .help("give the .ele file that belongs to it"))
        }
        _ => Err(InputError::new(
            name,
            At::Whole,
            "the format cannot be inferred from the file name",
        )
        .help(format!("give <format>; formats: {}", known_formats()))),
    }
}

const OWN_FORMATS: [&str; 5] = ["cset", "json", "csb", "csi", "toml"];

fn known_formats() -> String {
    let mut names: Vec<&str> = OWN_FORMATS.to_vec();
    names.extend(Format::ALL.iter().map(|f| f.name()));
    names.join(", ")
}

/// Reads an input from the bytes of a file.
///
/// # Errors
/// Errors in the file, with their position; parts that do not fit the machine.
pub fn load(
    name: &str,
    bytes: &[u8],
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<Input, CompileError> {
    observer(Progress::Stage("reading"));
    match kind(name, bytes, options.format)? {
        InputKind::Document => Ok(match parse_document(name, bytes, options)? {
            Document::Program { machine, program } => Input::Program(Box::new(LoadedProgram {
                program,
                machine,
                halo: None,
                placement: None,
                inventory: None,
                part_map: None,
                reading: None,
            })),
            Document::Schedule(schedule) => Input::Schedule(schedule),
            Document::Steps(schedule) => Input::Steps(schedule),
            Document::Image(image) if image.is_steps() => Input::Steps(
                schedule_of_image(&image)
                    .map_err(|e| InputError::new(name, At::Path(e.place), e.message))?,
            ),
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
        InputKind::Mesh(format) => {
            let reading = read::read_with(format, name, bytes, &options.read_options())?;
            from_reading(name, reading, machine, options, observer)
        }
    }
}

/// Partitions and places a mesh, graph or matrix that a reader of [`mod@conset_mesh::read`] returned, as
/// from inputs that are several files.
///
/// # Errors
/// Parts that do not fit the machine or the input.
pub fn from_reading(
    name: &str,
    reading: Reading,
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<Input, CompileError> {
    Ok(Input::Program(Box::new(from_source(name, reading, machine, options, observer)?)))
}

/// Parses one of the project's own formats. Options about parts are refused, because connection sets
/// name cells already.
fn parse_document(
    name: &str,
    bytes: &[u8],
    options: &LoadOptions<'_>,
) -> Result<Document, InputError> {
    let given = [
        ("<parts>", options.parts.is_some()),
        ("<partition>", options.partition.is_some()),
        ("<elements>", options.elements != PartitionUnit::AsRead),
        ("<ignore-periodic>", options.ignore_periodic),
        ("<repartition>", options.repartition),
        ("<imbalance>", options.imbalance.is_some()),
        ("<halo>", options.halo.is_some()),
        ("<layers>", options.layers.is_some()),
        ("<words-per-node>", options.words_per_node.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(InputError::new(
            *option,
            At::Whole,
            format!("`{name}` names cells already and is not divided into parts"),
        )
        .help(format!("leave out {option}")));
    }
    Document::parse_any(name, bytes)
}

/// Partitions a mesh, graph or matrix, computes the halo, and places the parts on cells.
pub(crate) fn from_source(
    name: &str,
    mut reading: Reading,
    machine: &Machine,
    options: &LoadOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<LoadedProgram, CompileError> {
    match (options.elements, &reading.source) {
        (PartitionUnit::AsRead, _) => (),
        (PartitionUnit::Triangles, Source::Graph(graph)) => {
            let triangles = triangles::from_graph(graph).map_err(|e| e.in_file(name))?;
            reading.source = Source::Mesh(triangles);
        }
        (PartitionUnit::Triangles, _) => {
            return Err(InputError::new(
                name,
                At::Whole,
                "<elements> triangles recovers triangles from a nodal graph; this is not a graph",
            )
            .into());
        }
    }
    let source = &reading.source;
    observer(Progress::Stage("partitioning"));
    let exchange = |partition: &Partition| halo_of(name, &reading, partition, options);
    let search = PartitionSearch { name, source, machine, options, exchange: &exchange };
    let Found { halo, place, set, report } = match given_partition(name, source, options)? {
        Some(partition) => {
            observer(Progress::Stage("computing the halo"));
            search.given(&partition, observer)?
        }
        None => {
            // A mesh with fewer elements than the machine has cells leaves cells without work. More
            // parts than items are an error only if requested.
            let items = partition::item_count(source).max(1);
            let parts = options.parts.unwrap_or_else(|| machine.endpoints().count().min(items));
            search.best(parts, observer)?
        }
    };
    let placement = PlacementReport { method: options.placement.name(), cells: place.clone() };
    let nodes = set.nodes().map_or_else(Vec::new, |lists| {
        set.iter().flat_map(|(id, _)| lists.of(id)).copied().collect()
    });
    let part_map =
        PartMap::of_nodes(place.clone(), reading.first_number, nodes, |node| match options.halo {
            Some(kind) if kind.is_of_elements() => reading.element_number(node),
            _ => reading.node_number(node),
        })
        .map_err(|e| placement_bug(&e))?;
    Ok(LoadedProgram {
        program: set.into(),
        machine: None,
        halo: Some(PlacedHalo { halo, place, partition: report }),
        placement: Some(placement),
        inventory: reading.inventory.take(),
        part_map: Some(part_map),
        reading: options.keep_reading.then(|| Box::new(reading)),
    })
}

/// The parts that a file divides its contents into, and what they exchange; `None` if it states none.
///
/// # Errors
/// A matrix that is not square; an exchange of more connections or words than the limits.
pub fn stated_parts(name: &str, reading: &Reading) -> Result<Option<PartsSummary>, InputError> {
    let source = &reading.source;
    let Some(partition) = partition::stated(source) else { return Ok(None) };
    let halo = halo_of(name, reading, &partition, &LoadOptions::default())?;
    Ok(Some(PartsSummary::new(&halo.summary, PartitionReport::given(source, &partition))))
}

/// The halo of a partition, as the options say.
fn halo_of(
    name: &str,
    reading: &Reading,
    partition: &Partition,
    options: &LoadOptions<'_>,
) -> Result<Halo, InputError> {
    let source = &reading.source;
    let kind = options.halo.or(HaloKind::default_of(source));
    let file_words;
    let words = match options.words_per_node {
        None => None,
        Some(NodeWords::Each(words)) => Some(WordsPerNode::Each(words)),
        Some(NodeWords::File(file, bytes)) => match kind {
            Some(kind) => {
                let count = halo::exchanged_count(source, kind);
                file_words = halo::read_words(file, bytes, count)?;
                Some(WordsPerNode::Of(&file_words))
            }
            // A list of connections has nothing that the file could be of; it is refused below.
            None => Some(WordsPerNode::Each(1)),
        },
    };
    let types = reading.origin.as_ref().map_or(&[][..], |origin| &origin.types);
    let halo_options = HaloOptions::default()
        .kind(options.halo)
        .layers(options.layers.unwrap_or(1))
        .words(words)
        .types(types);
    halo::halo_with(source, partition, "halo", &halo_options).map_err(|error| {
        if error.place.starts_with('<') {
            return InputError::new(error.place, At::Whole, error.message);
        }
        error.in_file(name)
    })
}

pub(crate) fn placement_bug(error: &ShapeError) -> CompileError {
    CompileError::Bug { stage: "placement", message: error.to_string() }
}

/// Places a program whose sets name cells, as if these were parts: the `i`-th cell with a live agent
/// becomes `placement.cells[i]`. All sets get the same placement.
///
/// # Errors
/// A set with a connection end that is not a live cell with an agent.
pub fn place(
    loaded: &mut LoadedProgram,
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
        set.check_machine(machine).map_err(|e| endpoint_error(machine, set, e))?;
        let parts = ConnectionSet::clone(set).placed(&part_of).map_err(|e| placement_bug(&e))?;
        // Requirements are kept, because not every placement can satisfy them.
        let ends = parts.connections().iter();
        connections.extend(ends.map(|c| Connection { name: None, ..c.clone() }));
    }
    let all = ConnectionSet::new("all-sets", connections).map_err(|e| placement_bug(&e))?;
    let cells = placement::place(machine, &all, homes.len(), method, seed)?;
    let mut moved: Vec<CellId> = machine.cells().collect();
    for (&home, &cell) in homes.iter().zip(&cells) {
        moved[home.index()] = cell;
    }
    let sets = loaded.program.sets().iter().map(|set| {
        let placed = ConnectionSet::clone(set).placed(&moved).map_err(|e| placement_bug(&e))?;
        Ok(Arc::new(placed))
    });
    let sets = sets.collect::<Result<Vec<_>, CompileError>>()?;
    loaded.program = Program::new(sets).map_err(|e| placement_bug(&e))?;
    loaded.placement = Some(PlacementReport { method: method.name(), cells });
    Ok(())
}

/// The partition in the given file, else the one in the input, unless it is to be replaced.
fn given_partition(
    name: &str,
    source: &Source,
    options: &LoadOptions<'_>,
) -> Result<Option<Partition>, InputError> {
    if let Some((file, bytes)) = options.partition {
        let items = partition::item_count(source);
        return partition::read_file(file, bytes, items, options.parts).map(Some);
    }
    let stated = match options.repartition {
        true => None,
        false => partition::stated(source),
    };
    let Some(stated) = stated else { return Ok(None) };
    if let Some(parts) = options.parts.filter(|&parts| parts != stated.part_count()) {
        let existing = counted(stated.part_count(), "part");
        let message = format!("the file is decomposed into {existing} already");
        let at = At::Path(parts.to_string());
        return Err(InputError::new("<parts>", at, message).help(match source {
            Source::Connections(_) => {
                "leave out <parts>; a list of connections cannot be partitioned again"
            }
            _ => "leave out <parts>, or add <repartition> to replace this decomposition",
        }));
    }
    let searched =
        [("<imbalance>", options.imbalance.is_some())].into_iter().find(|(_, given)| *given);
    if let Some((option, _)) = searched {
        let existing = counted(stated.part_count(), "part");
        let message = format!("`{name}` is decomposed into {existing} already");
        return Err(InputError::new(option, At::Whole, message).help(match source {
            Source::Connections(_) => format!("leave out {option}"),
            _ => format!("leave out {option}, or add <repartition> to replace this decomposition"),
        }));
    }
    Ok(Some(stated))
}
