//! `conset info`: what a file contains, and what of it is not used.
//!
//! A mesh is described by its inventory, which is also the source of the line `mesh` of `compile` and
//! `run`. The project's own files are described by their sets.

use std::io::{self, Write};

use conset::input::{self, Input, InputKind};
use conset::report::PartsSummary;
use conset_files::Opened;
use conset_ir::convert::to_u64;
use conset_ir::{Document, InputError};
use conset_mesh::model::{Graph, Inventory, Matrix};
use conset_mesh::read::{ReadOptions, Reading, read_with};
use conset_mesh::{ConnectionList, Source};
use serde::Serialize;

use crate::args::InfoArgs;
use crate::commands::compile::write_parts;
use crate::error::CliError;
use crate::files;
use crate::memory;
use crate::text::{self, Terminal};

/// Greatest number of groups that the text lists; the JSON has all.
const LISTED_GROUPS: usize = 20;

#[derive(Serialize)]
struct InfoReport {
    file: String,
    kind: &'static str,
    file_format: String,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Mesh(MeshInfo),
    Graph(GraphInfo),
    Matrix(MatrixInfo),
    Connections(ConnectionsInfo),
    Document(DocumentInfo),
}

#[derive(Serialize)]
struct MeshInfo {
    nodes: usize,
    unused_nodes: usize,
    joined_nodes: usize,
    divided_elements: usize,
    attached_elements: usize,
    element_types: Vec<TypeInfo>,
    groups: Vec<GroupInfo>,
    parts: usize,
    elements_per_part: Option<[u64; 2]>,
    /// The decomposition of the file, and what its parts exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    decomposition: Option<PartsSummary>,
    unused: Vec<UnusedInfo>,
    bounding_box: Option<[[f64; 3]; 2]>,
}

#[derive(Serialize)]
struct TypeInfo {
    element_type: String,
    dimension: u8,
    divided: usize,
    attached: usize,
}

#[derive(Serialize)]
struct GroupInfo {
    name: String,
    elements: usize,
}

#[derive(Serialize)]
struct UnusedInfo {
    what: String,
    why: String,
}

#[derive(Serialize)]
struct GraphInfo {
    vertices: usize,
    edges: usize,
    weights_per_vertex: usize,
    edge_weights: bool,
    vertex_sizes: bool,
}

#[derive(Serialize)]
struct MatrixInfo {
    rows: usize,
    columns: usize,
    entries: usize,
}

#[derive(Serialize)]
struct ConnectionsInfo {
    parts: usize,
    connections: usize,
    words: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    decomposition: Option<PartsSummary>,
}

#[derive(Serialize)]
struct DocumentInfo {
    machine: Option<String>,
    /// The parts that a schedule was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    decomposition: Option<PartsSummary>,
    sets: Vec<SetInfo>,
}

#[derive(Serialize)]
struct SetInfo {
    set: String,
    connections: usize,
    words: u64,
    phases: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<usize>,
}

pub(crate) fn run(args: &InfoArgs, terminal: &Terminal) -> Result<(), CliError> {
    let options = ReadOptions::default()
        .with_memory(memory::limit().unwrap_or(u64::MAX))
        .with_join_periodic(!args.ignore_periodic);
    let read = &files::read;
    let (name, bytes) =
        match conset_files::open(&args.file, args.input_format.as_deref(), &options, read)? {
            Opened::File(name, bytes) => (name, bytes),
            Opened::Mesh(name, reading) => {
                let report = of_reading(name, &reading, "mesh")?;
                return terminal.print(&report, |out| write_report(out, &report));
            }
        };
    let report = match input::kind(&name, &bytes, args.input_format.as_deref())? {
        InputKind::Document => {
            let document =
                Document::parse_any(&name, &bytes).map_err(|e| CliError::in_source(e, &bytes))?;
            let form = match Document::sniff(&bytes) {
                Some(form) => format!("conset, {}", form_name(form)),
                None => "conset".to_owned(),
            };
            InfoReport {
                file: name,
                kind: document_kind(&document),
                file_format: form,
                content: Content::Document(document_info(&document)),
            }
        }
        InputKind::Mesh(format) => {
            let reading = read_with(format, &name, &bytes, &options)
                .map_err(|e| CliError::in_source(e, &bytes))?;
            of_reading(name, &reading, format.title())?
        }
    };
    terminal.print(&report, |out| write_report(out, &report))
}

/// The report on what a reader returned; `format` is the name of its format if it stated none.
fn of_reading(file: String, reading: &Reading, format: &str) -> Result<InfoReport, InputError> {
    let parts = input::stated_parts(&file, reading)?;
    let (kind, content) = described(reading, parts, format);
    let stated = reading.inventory.as_ref().map(|inventory| inventory.format.as_str());
    let file_format = stated.unwrap_or(format).to_owned();
    Ok(InfoReport { file, kind, file_format, content })
}

fn form_name(form: conset_ir::FileFormat) -> &'static str {
    match form {
        conset_ir::FileFormat::Text => "text",
        conset_ir::FileFormat::Json => "JSON",
        conset_ir::FileFormat::Binary => "binary",
        conset_ir::FileFormat::MachineFile => "machine file",
        _ => "unknown form",
    }
}

fn document_kind(document: &Document) -> &'static str {
    match document {
        Document::Program { .. } => "connection set",
        other => other.kind(),
    }
}

/// The kind and the contents of what a reader returned.
fn described(
    reading: &Reading,
    parts: Option<PartsSummary>,
    format: &str,
) -> (&'static str, Content) {
    let inventory = |mesh| {
        let made = || Inventory::of_mesh(format, mesh);
        reading.inventory.clone().unwrap_or_else(made)
    };
    match &reading.source {
        Source::Mesh(mesh) => {
            let info = mesh_info(&inventory(mesh), mesh.element_count(), parts);
            ("mesh", Content::Mesh(info))
        }
        Source::Decomposition(decomposition) => {
            let mesh = decomposition.mesh();
            let info = mesh_info(&inventory(mesh), mesh.element_count(), parts);
            ("decomposition", Content::Mesh(info))
        }
        Source::Graph(graph) => ("graph", Content::Graph(graph_info(graph))),
        Source::Matrix(matrix) => ("matrix", Content::Matrix(matrix_info(matrix))),
        Source::Connections(list) => {
            ("connections", Content::Connections(connections_info(list, parts)))
        }
    }
}

fn mesh_info(inventory: &Inventory, divided: usize, parts: Option<PartsSummary>) -> MeshInfo {
    MeshInfo {
        nodes: inventory.node_count,
        unused_nodes: inventory.unused_nodes,
        joined_nodes: inventory.joined_nodes,
        divided_elements: divided,
        attached_elements: inventory.attached(),
        element_types: inventory
            .elements
            .iter()
            .map(|entry| TypeInfo {
                element_type: entry.element_type.to_string(),
                dimension: entry.element_type.dimension(),
                divided: entry.count - entry.attached,
                attached: entry.attached,
            })
            .collect(),
        groups: inventory
            .groups
            .iter()
            .map(|group| GroupInfo { name: group.name.clone(), elements: group.element_count })
            .collect(),
        parts: inventory.part_count,
        elements_per_part: parts.as_ref().and_then(|parts| parts.items_per_part),
        decomposition: parts,
        unused: inventory
            .unused
            .iter()
            .map(|entry| UnusedInfo { what: entry.what.clone(), why: entry.why.clone() })
            .collect(),
        bounding_box: inventory.bounding_box,
    }
}

fn graph_info(graph: &Graph) -> GraphInfo {
    let entries = graph.neighbours().len();
    GraphInfo {
        vertices: graph.vertex_count(),
        edges: if graph.is_directed() { entries } else { entries / 2 },
        weights_per_vertex: match graph.vertex_weights() {
            Some(_) => graph.weights_per_vertex(),
            None => 0,
        },
        edge_weights: graph.edge_weights().is_some(),
        vertex_sizes: graph.vertex_sizes().is_some(),
    }
}

fn matrix_info(matrix: &Matrix) -> MatrixInfo {
    MatrixInfo {
        rows: matrix.row_count(),
        columns: matrix.column_count(),
        entries: matrix.columns().len(),
    }
}

fn connections_info(list: &ConnectionList, parts: Option<PartsSummary>) -> ConnectionsInfo {
    ConnectionsInfo {
        parts: list.part_count(),
        connections: list.entries().len(),
        words: list.entries().iter().map(|&(_, _, words)| u64::from(words)).sum(),
        decomposition: parts,
    }
}

fn document_info(document: &Document) -> DocumentInfo {
    let row = |set: &conset_ir::ConnectionSet, phases| SetInfo {
        set: set.name().to_owned(),
        connections: set.len(),
        words: set.words(),
        phases,
        steps: None,
    };
    let of_routing =
        |routing: &conset_ir::Routing| row(routing.set(), Some(routing.phases().len()));
    let sets = match document {
        Document::Machine(_) => Vec::new(),
        Document::Program { program, .. } => {
            program.sets().iter().map(|set| row(set, None)).collect()
        }
        Document::Routing(routing) => vec![of_routing(routing)],
        Document::Timetable(timetable) => vec![of_routing(timetable.routing())],
        Document::Schedule(schedule) => {
            schedule.sets().iter().map(|set| of_routing(set.timetable.routing())).collect()
        }
        Document::Steps(schedule) => {
            let row = |set: &conset_ir::SetSteps| SetInfo {
                steps: Some(set.steps.messages().steps()),
                ..row(set.steps.set(), None)
            };
            schedule.sets().iter().map(row).collect()
        }
        Document::Image(image) => {
            let row = |set: &conset_ir::SetImage| match &set.steps {
                Some(steps) => {
                    SetInfo { steps: Some(steps.messages().steps()), ..row(&set.set, None) }
                }
                None => row(&set.set, Some(set.phases.len())),
            };
            image.sets().iter().map(row).collect()
        }
    };
    let machine = document.machine();
    let machine = machine.map(|machine| {
        let (name, topology) = (machine.name(), machine.topology());
        format!("{name} ({topology})")
    });
    let decomposition = match document {
        Document::Schedule(schedule) => PartsSummary::of_schedule(schedule),
        _ => None,
    };
    DocumentInfo { machine, decomposition, sets }
}

fn number(count: usize) -> String {
    text::number(to_u64(count))
}

fn write_report(out: &mut dyn Write, report: &InfoReport) -> io::Result<()> {
    writeln!(out, "{}: {}, {}", report.file, report.kind, report.file_format)?;
    match &report.content {
        Content::Mesh(mesh) => write_mesh(out, mesh),
        Content::Graph(graph) => write_graph(out, graph),
        Content::Matrix(matrix) => {
            let (rows, columns) = (number(matrix.rows), number(matrix.columns));
            writeln!(out, "rows     {rows}, {columns} columns, {} entries", number(matrix.entries))
        }
        Content::Connections(list) => {
            match &list.decomposition {
                Some(parts) => write_parts(out, parts)?,
                None => writeln!(out, "parts    {}", number(list.parts))?,
            }
            let words = text::count(list.words, "word");
            writeln!(out, "set      {} connections, {words}", number(list.connections))
        }
        Content::Document(document) => write_document(out, document),
    }
}

fn write_mesh(out: &mut dyn Write, mesh: &MeshInfo) -> io::Result<()> {
    write!(out, "nodes    {}", number(mesh.nodes))?;
    if mesh.joined_nodes > 0 {
        write!(out, ", {} joined with another one (periodic)", number(mesh.joined_nodes))?;
    }
    if mesh.unused_nodes > 0 {
        write!(out, ", {} in no element", number(mesh.unused_nodes))?;
    }
    let (divided, attached) = (number(mesh.divided_elements), number(mesh.attached_elements));
    writeln!(out, "\nelements {divided} divided, {attached} attached to a divided one")?;
    if !mesh.element_types.is_empty() {
        let header = ["element type", "dimension", "divided", "attached"];
        let mut table = text::table(&header, 1);
        for row in &mesh.element_types {
            let (divided, attached) = (number(row.divided), number(row.attached));
            table.add_row([row.element_type.clone(), row.dimension.to_string(), divided, attached]);
        }
        text::write_table(out, &table)?;
    }
    if !mesh.groups.is_empty() {
        let mut table = text::table(&["group", "elements"], 1);
        for group in mesh.groups.iter().take(LISTED_GROUPS) {
            table.add_row([group.name.clone(), number(group.elements)]);
        }
        text::write_table(out, &table)?;
        let more = mesh.groups.len().saturating_sub(LISTED_GROUPS);
        if more > 0 {
            writeln!(out, "and {} (--json lists all)", text::count(to_u64(more), "more group"))?;
        }
    }
    match &mesh.decomposition {
        Some(parts) => write_parts(out, parts)?,
        None => writeln!(out, "parts    none stated")?,
    }
    if let Some([low, high]) = mesh.bounding_box {
        let point = |[x, y, z]: [f64; 3]| format!("({x}, {y}, {z})");
        writeln!(out, "box      {} to {}", point(low), point(high))?;
    }
    for entry in &mesh.unused {
        writeln!(out, "unused   {}: {}", entry.what, entry.why)?;
    }
    Ok(())
}

fn write_graph(out: &mut dyn Write, graph: &GraphInfo) -> io::Result<()> {
    let (vertices, edges) = (number(graph.vertices), number(graph.edges));
    writeln!(out, "vertices {vertices}, {edges} edges")?;
    let weights = match graph.weights_per_vertex {
        0 => "none".to_owned(),
        count => format!("{count} per vertex, balanced by the partition"),
    };
    writeln!(
        out,
        "weights  {weights}{}{}",
        match graph.edge_weights {
            true => "; of edges, minimised by the partition",
            false => "",
        },
        match graph.vertex_sizes {
            true => "; words of each vertex",
            false => "",
        }
    )
}

fn write_document(out: &mut dyn Write, document: &DocumentInfo) -> io::Result<()> {
    if let Some(machine) = &document.machine {
        writeln!(out, "machine  {machine}")?;
    }
    if let Some(parts) = &document.decomposition {
        write_parts(out, parts)?;
    }
    for set in &document.sets {
        write!(
            out,
            "set      {}: {}, {}",
            set.set,
            text::count(to_u64(set.connections), "connection"),
            text::count(set.words, "word"),
        )?;
        if let Some(phases) = set.phases {
            write!(out, ", {}", text::count(to_u64(phases), "phase"))?;
        }
        if let Some(steps) = set.steps {
            write!(out, ", {}", text::count(to_u64(steps), "step"))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// What of a mesh was attached, joined or not used, in one line; `None` if there is nothing to say.
fn short_note(inventory: &Inventory) -> Option<String> {
    let counts = [
        (inventory.attached(), "attached element", ""),
        (inventory.joined_nodes, "joined node", ""),
        (inventory.unused_nodes, "node", " in no element"),
    ];
    let mut notes: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|&(count, what, more)| format!("{}{more}", text::count(to_u64(count), what)))
        .collect();
    match inventory.unused.as_slice() {
        [] => {}
        [only] => notes.push(format!("not used: {}", only.what)),
        [first, rest @ ..] => {
            notes.push(format!("not used: {} and {} more", first.what, rest.len()));
        }
    }
    (!notes.is_empty()).then(|| notes.join(", "))
}

/// [`short_note`] of an input that was read from a mesh.
pub(crate) fn mesh_note(input: &Input) -> Option<String> {
    match input {
        Input::Program(loaded) => loaded.inventory.as_ref().and_then(short_note),
        _ => None,
    }
}

/// Writes the line that [`mesh_note`] returns.
pub(crate) fn write_note(out: &mut dyn Write, note: Option<&str>) -> io::Result<()> {
    match note {
        Some(note) => writeln!(out, "mesh     {note} (see conset info)"),
        None => Ok(()),
    }
}
