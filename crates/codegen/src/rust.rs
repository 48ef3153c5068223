//! Images as Rust crates.
//!
//! The crate depends on `conset-runtime` only. It has
//!
//! * `machine()` and `image()`, which build the machine and the image with the checking
//!   constructors;
//! * a module per set, with a constant for each connection (`halo::connections::C3_TO_C4`) and each
//!   phase (`halo::phases::P0`), so that a program that uses an unknown name does not compile.
//!   [`crate::names`] defines the names.
//!
//! Tables are static arrays with rows of five numbers instead of expressions that build entries,
//! because compilers take long for expressions. The table of a phase has only the participating
//! cells. No source is generated beyond [`ROWS`] rows in all; such an image must be loaded from its
//! file.
//!
//! The source is formatted; its tables are marked so that rustfmt does not change them.

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellContext, ChannelEntry, Direction, Duplex, Feed, Image, Machine, Operation, Parameters,
    PhaseImage, Protocol, SetImage, Sink, Steps, Topology,
};

use crate::names;
use crate::source::{EmitError, SourceFile, plan_length, put};

/// The greatest number of table rows in source code, which compiles in about a minute.
pub const ROWS: usize = 1 << 21;

/// The version of `conset-runtime` that emitted crates are written for.
pub const RUNTIME_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source of `conset-runtime` in the manifest of the emitted crate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Runtime {
    /// A version requirement for the published crate.
    Version(String),
    /// The path of the crate's folder.
    Path(String),
    /// A revision of a git repository.
    Git {
        /// The URL of the repository.
        url: String,
        /// The revision.
        rev: String,
    },
}

/// Options of [`emit_with`]: the name of the crate, and the source of `conset-runtime`.
///
/// ```
/// use conset_codegen::{CrateOptions, Runtime};
///
/// let options = CrateOptions::new("halo-image").runtime(Runtime::Path("../runtime".into()));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateOptions {
    crate_name: String,
    runtime: Runtime,
}

impl CrateOptions {
    /// Options for a crate of this name, which uses the published runtime of this version.
    pub fn new(crate_name: impl Into<String>) -> Self {
        let runtime = Runtime::Version(RUNTIME_VERSION.to_owned());
        Self { crate_name: crate_name.into(), runtime }
    }

    /// Sets the source of `conset-runtime`.
    #[must_use]
    pub fn runtime(self, runtime: Runtime) -> Self {
        Self { runtime, ..self }
    }
}

impl Default for CrateOptions {
    /// A crate named `conset-image`.
    fn default() -> Self {
        Self::new("conset-image")
    }
}

/// The crate of an image with default options, as files to write.
///
/// # Errors
/// [`EmitError::TooManyRows`].
pub fn emit(image: &Image) -> Result<Vec<SourceFile>, EmitError> {
    emit_with(image, &CrateOptions::default())
}

/// The crate of an image, as files to write: `Cargo.toml`, `src/lib.rs`, `src/tables.rs` and a
/// module per set.
///
/// # Errors
/// [`EmitError::TooManyRows`], and [`EmitError::CrateName`] if Cargo does not accept the name.
pub fn emit_with(image: &Image, options: &CrateOptions) -> Result<Vec<SourceFile>, EmitError> {
    let rows = rows(image);
    if rows > ROWS {
        return Err(EmitError::TooManyRows { rows, limit: ROWS });
    }
    let manifest = manifest(options)?;
    let modules = names::modules(image.sets().iter().map(|set| set.set.name()));
    let mut files = vec![
        ("Cargo.toml".to_owned(), manifest),
        ("src/lib.rs".to_owned(), library(image, &modules)),
        ("src/tables.rs".to_owned(), tables(image)),
    ];
    for (set, module) in image.sets().iter().zip(&modules) {
        files.push((format!("src/{module}.rs"), set_module(set)));
    }
    Ok(files)
}

/// The module that makes an image of tables, for the kind of plans that the image has.
fn tables(image: &Image) -> String {
    let plans = match image.is_steps() {
        true => include_str!("../templates/steps.rs"),
        false => include_str!("../templates/phases.rs"),
    };
    [include_str!("../templates/tables.rs"), plans].concat()
}

/// The number of rows of all tables; five nodes count as a row.
fn rows(image: &Image) -> usize {
    let in_phase = |phase: &PhaseImage| -> usize {
        phase.cells().map(|(_, context)| context.entries.len() + context.operations.len()).sum()
    };
    let in_set = |set: &SetImage| {
        let lists = set.set.nodes().is_some();
        let nodes = set.set.connections().iter().map(|c| index(c.words)).sum::<usize>();
        let nodes = if lists { nodes / 5 } else { 0 };
        let phases: usize = set.phases.iter().map(in_phase).sum();
        let plan = set.steps.as_ref().map_or(0, |steps| {
            steps.messages().steps() + steps.messages().len() + steps.messages().piece_count()
        });
        plan + phases + set.phases.len() + set.set.len() + set.set.order().len() + nodes
    };
    let links = match image.machine().topology() {
        Topology::Graph { links, .. } => links.len(),
        _ => 0,
    };
    let dead = image.machine().dead_cells().len() + image.machine().dead_links().len();
    image.sets().iter().map(in_set).sum::<usize>() + links + dead
}

fn manifest(options: &CrateOptions) -> Result<String, EmitError> {
    let name = &options.crate_name;
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !letter || name.len() > 64 || !name.bytes().all(legal) {
        return Err(EmitError::CrateName { name: name.clone() });
    }
    let version = toml_string(RUNTIME_VERSION);
    let (comment, runtime) = match &options.runtime {
        Runtime::Version(version) => (
            "# While this version is not published, use a checkout of conset instead:\n\
             # conset-runtime = { path = \"conset/crates/runtime\" }\n"
                .to_owned(),
            toml_string(version),
        ),
        Runtime::Path(path) => (
            format!("# A checkout. The published version: conset-runtime = {version}\n"),
            format!("{{ path = {} }}", toml_string(path)),
        ),
        Runtime::Git { url, rev } => (
            format!("# A git revision. The published version: conset-runtime = {version}\n"),
            format!("{{ git = {}, rev = {} }}", toml_string(url), toml_string(rev)),
        ),
    };
    Ok(format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{comment}conset-runtime = {runtime}\n"
    ))
}

fn toml_string(text: &str) -> String {
    let mut string = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => string.extend(['\\', c]),
            c if c.is_control() => put(&mut string, format_args!("\\U{:08X}", u32::from(c))),
            c => string.push(c),
        }
    }
    string.push('"');
    string
}

fn library(image: &Image, modules: &[String]) -> String {
    let machine = image.machine();
    let mut out = String::from(
        "//! The image of a compiled program: communication contexts and operation lists.\n\
         //!\n\
         //! Written by conset-codegen; compile the program again rather than change it.\n\
         \n",
    );
    // Sorted as rustfmt sorts them.
    let mut sorted: Vec<(&str, &str)> =
        modules.iter().map(|module| (module.as_str(), "pub ")).collect();
    sorted.push(("tables", ""));
    sorted.sort_unstable();
    for (module, public) in sorted {
        put(&mut out, format_args!("{public}mod {module};\n"));
    }
    let dead = !machine.dead_cells().is_empty() || !machine.dead_links().is_empty();
    let cell_id = if dead { "CellId, " } else { "" };
    put(
        &mut out,
        format_args!(
            "\nuse std::sync::Arc;\n\nuse conset_runtime::Image;\n\
             use conset_runtime::ir::{{{cell_id}Duplex, Machine, Parameters, Topology}};\n"
        ),
    );
    machine_tables(&mut out, machine);
    machine_function(&mut out, machine);
    let sets = modules.iter().map(|module| format!("&{module}::SET"));
    array(&mut out, "SETS", "&tables::Set", "The sets in the order of execution.", sets);
    out.push_str(
        "\n/// The image, to load into a runtime.\npub fn image() -> Image {\n    \
         tables::image(Arc::new(machine()), &SETS).expect(\"written from an image\")\n}\n",
    );
    out
}

fn machine_tables(out: &mut String, machine: &Machine) {
    if let Topology::Graph { links, .. } = machine.topology() {
        table(out, "LINKS", "From, to.", links.iter().map(|&(from, to)| [from, to]));
    }
    if !machine.dead_cells().is_empty() {
        let cells = machine.dead_cells().iter().map(|cell| [cell.0]);
        table(out, "DEAD_CELLS", "Cells that are dead.", cells);
    }
    if !machine.dead_links().is_empty() {
        let links = machine.dead_links().iter().map(|(from, to)| [from.0, to.0]);
        table(out, "DEAD_LINKS", "From, to.", links);
    }
}

fn machine_function(out: &mut String, machine: &Machine) {
    let topology = match machine.topology() {
        Topology::Torus { dims } => format!("Torus {{ dims: vec!{dims:?} }}"),
        Topology::Mesh { dims } => format!("Mesh {{ dims: vec!{dims:?} }}"),
        Topology::Ring { cells } => format!("Ring {{ cells: {cells} }}"),
        Topology::Hypercube { dimension } => format!("Hypercube {{ dimension: {dimension} }}"),
        Topology::FatTree { leaves, parents } => {
            format!("FatTree {{ leaves: {leaves}, parents: vec!{parents:?} }}")
        }
        Topology::Cluster { nodes, cells_per_node } => {
            format!("Cluster {{ nodes: {nodes}, cells_per_node: {cells_per_node} }}")
        }
        Topology::Graph { cells, switches, .. } => format!(
            "Graph {{\n        cells: {cells},\n        switches: {switches},\n        \
             links: LINKS.iter().map(|&[from, to]| (from, to)).collect(),\n    }}"
        ),
    };
    let dead_cells = match machine.dead_cells() {
        [] => "Vec::new()",
        _ => "DEAD_CELLS.iter().map(|&[cell]| CellId(cell)).collect()",
    };
    let dead_links = match machine.dead_links() {
        [] => "Vec::new()",
        _ => "DEAD_LINKS.iter().map(|&[from, to]| (CellId(from), CellId(to))).collect()",
    };
    put(
        out,
        format_args!(
            "\n/// The machine that the program was compiled for.\n\
             pub fn machine() -> Machine {{\n    let topology = Topology::{topology};\n"
        ),
    );
    parameters(out, machine.parameters());
    put(
        out,
        format_args!(
            "    let dead_cells = {dead_cells};\n    let dead_links = {dead_links};\n    \
             Machine::new({:?}, topology, parameters, dead_cells, dead_links)\n        \
             .expect(\"written from a machine\")\n}}\n",
            machine.name()
        ),
    );
}

fn parameters(out: &mut String, parameters: &Parameters) {
    out.push_str("    let parameters = Parameters {\n");
    for (name, value, _, _) in parameters.stated_numbers() {
        put(out, format_args!("        {name}: {value},\n"));
    }
    let duplex = match parameters.duplex {
        Duplex::Full => "Full",
        Duplex::Half => "Half",
    };
    put(out, format_args!("        duplex: Duplex::{duplex},\n"));
    if parameters.protocol != Protocol::default() {
        let protocol = parameters.protocol;
        put(out, format_args!("        protocol: conset_runtime::ir::Protocol::{protocol:?},\n"));
    }
    out.push_str("        ..Parameters::iwarp()\n    };\n");
}

fn set_module(image: &SetImage) -> String {
    let set = &image.set;
    let mut out = String::new();
    let plan = plan_length(image);
    put(
        &mut out,
        format_args!(
            "//! Connection set `{}`: {} connections in {plan}.\n\n",
            set.name(),
            set.len(),
        ),
    );
    let gate = image.phases.iter().any(|phase| phase.cells().any(|(_, c)| !c.entries.is_empty()));
    let imports = match (&image.steps, gate) {
        (Some(_), _) => "{Plan, Set}",
        (None, true) => "{GATE, Phase, Set}",
        (None, false) => "{Phase, Set}",
    };
    put(&mut out, format_args!("use crate::tables::{imports};\n"));
    connection_names(&mut out, image);
    if image.steps.is_none() {
        phase_names(&mut out, image);
    }
    set_tables(&mut out, image);
    out
}

pub(crate) fn connection_names(out: &mut String, image: &SetImage) {
    out.push_str("\n/// The connections by name.\npub mod connections {");
    if !image.set.is_empty() {
        out.push_str("\n    use conset_runtime::ir::ConnectionId;\n\n");
    }
    for ((id, connection), name) in image.set.iter().zip(names::connections(&image.set)) {
        put(
            out,
            format_args!(
                "    /// {} to {}, {} words.\n    \
                 pub const {name}: ConnectionId = ConnectionId({});\n",
                connection.source, connection.target, connection.words, id.0
            ),
        );
    }
    out.push_str("}\n");
}

pub(crate) fn phase_names(out: &mut String, image: &SetImage) {
    out.push_str("\n/// The phases by name, in the order of execution.\npub mod phases {");
    if !image.phases.is_empty() {
        out.push_str("\n    use conset_runtime::ir::PhaseId;\n\n");
    }
    for row in 0..image.phases.len() {
        put(
            out,
            format_args!("    /// Phase {row}.\n    pub const P{row}: PhaseId = PhaseId({row});\n"),
        );
    }
    out.push_str("}\n");
}

fn set_tables(out: &mut String, image: &SetImage) {
    let set = &image.set;
    put(
        out,
        format_args!(
            "\npub(crate) static SET: Set = Set {{\n    name: {:?},\n    \
             connections: &CONNECTIONS,\n    names: &NAMES,\n    order: &ORDER,\n    \
             nodes: {},\n    plan: &{},\n}};\n",
            set.name(),
            if set.nodes().is_some() { "Some(&NODES)" } else { "None" },
            if image.steps.is_some() { "STEPS" } else { "PHASES" },
        ),
    );
    let connections = set.connections().iter().map(|c| {
        let (bandwidth, latency) = (c.min_bandwidth.unwrap_or(0), c.max_latency.unwrap_or(0));
        [c.source.0, c.target.0, c.words, bandwidth, latency]
    });
    let columns = "Source, target, words, least bandwidth and greatest latency (0: none).";
    table(out, "CONNECTIONS", columns, connections);
    let given: Vec<(u32, &str)> =
        set.iter().filter_map(|(id, c)| c.name.as_deref().map(|name| (id.0, name))).collect();
    put(
        out,
        format_args!(
            "\n/// Connections that have a name of their own.\n#[rustfmt::skip]\n\
             static NAMES: [(u32, &str); {}] = [\n",
            given.len()
        ),
    );
    for (id, name) in given {
        put(out, format_args!("    ({id}, {name:?}),\n"));
    }
    out.push_str("];\n");
    table(out, "ORDER", "Before, after.", set.order().iter().map(|(a, b)| [a.0, b.0]));
    if let Some(nodes) = set.nodes() {
        let all = set.iter().flat_map(|(id, _)| nodes.of(id)).copied();
        let columns = "The nodes behind each connection in turn.";
        array(out, "NODES", "u32", columns, all.map(|node| node.to_string()));
    }
    if let Some(steps) = &image.steps {
        return step_tables(out, steps);
    }
    let count = image.phases.len();
    put(out, format_args!("\n#[rustfmt::skip]\nstatic PHASES: [Phase; {count}] = [\n"));
    for row in 0..image.phases.len() {
        put(
            out,
            format_args!(
                "    Phase {{ cells: &P{row}_CELLS, entries: &P{row}_ENTRIES, \
                 operations: &P{row}_OPERATIONS, starts: &P{row}_STARTS }},\n"
            ),
        );
    }
    out.push_str("];\n");
    for (row, phase) in image.phases.iter().enumerate() {
        phase_tables(out, row, phase);
    }
}

fn step_tables(out: &mut String, steps: &Steps) {
    out.push_str(
        "\npub(crate) static STEPS: Plan =\n    \
         Plan { steps: &STEP_ENDS, messages: &MESSAGES, pieces: &PIECES };\n",
    );
    let messages = steps.messages();
    let ends = steps.iter().map(|(id, _)| messages.of_step(id).end.to_string());
    array(out, "STEP_ENDS", "u32", "Messages up to the end of each step.", ends);
    let rows = messages.iter().map(|m| [m.source.0, m.target.0, to_u32(m.pieces.len())]);
    table(out, "MESSAGES", "Source, target, number of pieces.", rows);
    let pieces = messages.iter().flat_map(|message| message.pieces);
    let rows = pieces.map(|piece| [piece.connection.0, piece.first_word, piece.words]);
    table(out, "PIECES", "Connection, first word, words.", rows);
}

fn phase_tables(out: &mut String, row: usize, phase: &PhaseImage) {
    let takes_part = |c: &CellContext<'_>| !(c.entries.is_empty() && c.operations.is_empty());
    let cells = || phase.cells().filter(move |(_, context)| takes_part(context));
    let operations = || cells().flat_map(|(_, context)| context.operations);
    table(
        out,
        &format!("P{row}_CELLS"),
        "Cell, number of entries, number of operations.",
        cells().map(|(cell, c)| [cell.0, to_u32(c.entries.len()), to_u32(c.operations.len())]),
    );
    table(
        out,
        &format!("P{row}_ENTRIES"),
        "Channel, feeding link, connection fed; link sunk into, next channel or connection.",
        cells().flat_map(|(_, context)| context.entries).map(entry_row),
    );
    table(
        out,
        &format!("P{row}_OPERATIONS"),
        "0 to send or 1 to receive, connection, channel, words, first word.",
        operations().map(operation_row),
    );
    let starts = operations().map(|operation| operation.start.to_string());
    let columns = "Planned start of each operation, in clocks.";
    array(out, &format!("P{row}_STARTS"), "u64", columns, starts);
}

/// A number of a table, or the constant for a gate.
#[derive(Clone, Copy)]
enum TableCell {
    Plain(u32),
    Gate,
}

impl std::fmt::Display for TableCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TableCell::Plain(number) => number.fmt(f),
            TableCell::Gate => f.write_str("GATE"),
        }
    }
}

fn entry_row(entry: &ChannelEntry) -> [TableCell; 5] {
    let plain = TableCell::Plain;
    let (from, fed) = match entry.feed {
        Feed::Gate(connection) => (TableCell::Gate, plain(connection.0)),
        Feed::Link(link) => (plain(link.0), plain(0)),
    };
    let (to, into) = match entry.sink {
        Sink::Gate(connection) => (TableCell::Gate, plain(connection.0)),
        Sink::Forward { link, channel } => (plain(link.0), plain(channel.0)),
    };
    [plain(entry.channel.0), from, fed, to, into]
}

fn operation_row(operation: &Operation) -> [u32; 5] {
    let direction = u32::from(operation.direction == Direction::Receive);
    let Operation { connection, channel, words, first_word, .. } = operation;
    [direction, connection.0, channel.0, *words, *first_word]
}

/// A static array of rows of numbers.
fn table<const N: usize, T: std::fmt::Display>(
    out: &mut String,
    name: &str,
    columns: &str,
    rows: impl Iterator<Item = [T; N]>,
) {
    let texts = rows.map(|row| {
        let cells: Vec<String> = row.iter().map(T::to_string).collect();
        format!("[{}]", cells.join(", "))
    });
    array(out, name, &format!("[u32; {N}]"), columns, texts);
}

/// A static array of elements, with lines of up to 100 columns.
fn array(
    out: &mut String,
    name: &str,
    kind: &str,
    columns: &str,
    elements: impl Iterator<Item = String>,
) {
    let mut lines = String::new();
    let (mut count, mut column) = (0usize, 0);
    for element in elements {
        if column > 0 && column + element.len() + 2 > 100 {
            lines.push('\n');
            column = 0;
        }
        let space = if column == 0 { "    " } else { " " };
        put(&mut lines, format_args!("{space}{element},"));
        column += space.len() + element.len() + 1;
        count += 1;
    }
    if count > 0 {
        lines.push('\n');
    }
    put(
        out,
        format_args!(
            "\n/// {columns}\n#[rustfmt::skip]\nstatic {name}: [{kind}; {count}] = [\n{lines}];\n"
        ),
    );
}
