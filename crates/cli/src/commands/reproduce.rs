//! `conset reproduce`: the tables and figures of the ConSet paper, and of others, our numbers beside
//! the papers'.

mod papers;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use conset::reproduce::figures::{self, Figure};
use conset::reproduce::meshes::{self, MeshOrigin, ORIGINS};
use conset::reproduce::{Compared, paper, patterns};
use conset_ir::{At, InputError, Machine, Parameters};
use serde::Serialize;

use crate::args::{Paper, ReproduceArgs, Reproduced};
use crate::error::CliError;
use crate::files;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct ReproduceReport {
    machines: Vec<MachineNumbers>,
    tables: Vec<patterns::PatternTable>,
    meshes: Vec<meshes::MeshRow>,
    left_out: Vec<LeftOut>,
    figures: Vec<String>,
}

/// The environment variable with the folder of real meshes.
const MESHES_VARIABLE: &str = "CONSET_MESHES";

fn folder_of_environment() -> Option<PathBuf> {
    std::env::var_os(MESHES_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// The parameters of a machine.
#[derive(Serialize)]
struct MachineNumbers {
    name: String,
    duplex: conset_ir::Duplex,
    parameters: std::collections::BTreeMap<&'static str, u32>,
}

#[derive(Serialize)]
struct LeftOut {
    mesh: &'static str,
    reason: String,
}

pub(crate) fn run(args: &ReproduceArgs, terminal: &Terminal) -> Result<(), CliError> {
    match (args.table, args.number) {
        (Some(Reproduced::Paper(paper)), number) => {
            check_paper(paper, number, args)?;
            papers::run(paper, args, terminal)
        }
        (_, Some(_)) => {
            let message = "a second number is for c3, cm5, acl or active: conset reproduce c3 3";
            Err(usage(message).into())
        }
        _ if args.measure => {
            Err(usage("--measure is for c3: conset reproduce c3 --measure").into())
        }
        _ if args.quick => Err(usage(QUICK).into()),
        (Some(Reproduced::Table(table)), None) => run_tables(Some(table), args, terminal),
        (None, None) => run_tables(None, args, terminal),
    }
}

/// What is said of an option that another paper has.
const QUICK: &str = "--quick is for active: conset reproduce active --quick";

fn usage(message: &str) -> InputError {
    InputError::new("reproduce", At::Whole, message)
}

/// Checks that a paper has the number, and not the option that only the ConSet paper's tables have.
fn check_paper(paper: Paper, number: Option<u8>, args: &ReproduceArgs) -> Result<(), InputError> {
    if args.meshes.is_some() {
        return Err(usage("--meshes is for the tables of the ConSet paper"));
    }
    if args.figures.is_some() && number.is_some() {
        return Err(usage("--figures draws the curves of a whole paper; remove the number"));
    }
    if args.measure && paper != Paper::C3 {
        return Err(usage("--measure is for c3: conset reproduce c3 --measure"));
    }
    if args.quick && paper != Paper::Active {
        return Err(usage(QUICK));
    }
    match (paper, number) {
        (Paper::C3, Some(4..)) => Err(usage("c3 has the figures 1 to 3")),
        (Paper::Acl, Some(3..)) => Err(usage("acl has the tables 1 and 2")),
        (Paper::Cm5, Some(9..)) => Err(usage("cm5 has the tables 1 to 8")),
        (Paper::Active, Some(number)) if !matches!(number, 31 | 32 | 35 | 36) => {
            Err(usage("active has the figures 31, 32, 35 and 36"))
        }
        _ => Ok(()),
    }
}

/// The tables of the ConSet paper.
fn run_tables(
    table: Option<u8>,
    args: &ReproduceArgs,
    terminal: &Terminal,
) -> Result<(), CliError> {
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let wanted = |number: u8| table.is_none_or(|only| only == number);
    if let Some(folder) = &args.meshes {
        files::whole_path(folder)?;
    }
    let mut report = ReproduceReport {
        machines: machines()?,
        tables: Vec::new(),
        meshes: Vec::new(),
        left_out: Vec::new(),
        figures: Vec::new(),
    };
    for pattern in paper::PATTERNS.iter().filter(|p| wanted(p.table)) {
        report.tables.push(patterns::table(pattern, &mut |p| bar.observe(p))?);
    }
    if (4..=6).any(wanted) {
        let folder = args.meshes.clone().or_else(folder_of_environment);
        for origin in &ORIGINS {
            match mesh(origin, folder.as_deref(), &mut bar)? {
                Ok(row) => report.meshes.push(row),
                Err(reason) => report.left_out.push(LeftOut { mesh: origin.name, reason }),
            }
        }
    }
    drop(bar);
    if let Some(folder) = &args.figures {
        report.figures = write_figures(folder, &report)?;
    }
    terminal.print(&report, |out| write_report(out, &report, &wanted))?;
    let wrong = report.tables.iter().any(|t| t.rows.iter().any(|row| !row.payload_ok))
        || report.meshes.iter().any(|row| !row.payload_ok);
    if wrong {
        Err(CliError::Bug("some words were not delivered correctly".into()))
    } else {
        Ok(())
    }
}

fn machines() -> Result<Vec<MachineNumbers>, InputError> {
    ["iwarp-stream", "iwarp-fem"]
        .into_iter()
        .map(|name| {
            let machine = Machine::from_spec(name)?;
            let p: &Parameters = machine.parameters();
            let parameters = p.stated_numbers().map(|row| (row.0, row.1)).collect();
            Ok(MachineNumbers { name: name.to_owned(), duplex: p.duplex, parameters })
        })
        .collect()
}

/// A row of Tables 4 to 6, or the reason why it is left out.
fn mesh(
    origin: &MeshOrigin,
    folder: Option<&Path>,
    bar: &mut ProgressDisplay,
) -> Result<Result<meshes::MeshRow, String>, CliError> {
    let Some(file) = origin.file else {
        return Ok(Ok(meshes::row(origin, None, &mut |p| bar.observe(p))?));
    };
    let Some(folder) = folder else {
        let reason = format!("needs {file}; give its folder with --meshes or {MESHES_VARIABLE}");
        return Ok(Err(reason));
    };
    let path = folder.join(file);
    if !path.exists() {
        return Ok(Err(format!("{} does not exist; check --meshes", path.display())));
    }
    let (name, bytes) = files::read(&path)?;
    let row = meshes::row(origin, Some((&name, &bytes)), &mut |p| bar.observe(p));
    Ok(Ok(row.map_err(|e| CliError::of_compile(e, &bytes))?))
}

fn write_figures(folder: &Path, report: &ReproduceReport) -> Result<Vec<String>, InputError> {
    let mut all: Vec<Figure> = report.tables.iter().map(figures::pattern).collect();
    if !report.meshes.is_empty() {
        all.extend(figures::of_meshes(&report.meshes));
    }
    write_all(folder, &all)
}

/// Writes figures into a folder, and returns the names of the files.
fn write_all(folder: &Path, figures: &[Figure]) -> Result<Vec<String>, InputError> {
    let files = figures.iter().map(|figure| (figure.file.clone(), figure.svg.clone().into_bytes()));
    files::write_folder(folder, &files.collect::<Vec<_>>())
}

fn write_report(
    out: &mut dyn Write,
    report: &ReproduceReport,
    wanted: &dyn Fn(u8) -> bool,
) -> io::Result<()> {
    writeln!(out, "Clocks: ours / the paper's (error in percent).")?;
    for table in &report.tables {
        write_pattern(out, table)?;
    }
    if !report.meshes.is_empty() {
        let tables: [(u8, WriteMeshes); 3] =
            [(4, write_structure), (5, write_times), (6, write_model)];
        for (table, write) in tables {
            if wanted(table) {
                write(out, &report.meshes)?;
            }
        }
    }
    if wanted(4) && !report.meshes.is_empty() {
        write_histogram(out, &report.meshes)?;
    }
    for row in &report.left_out {
        writeln!(out, "\nleft out: {}: {}", row.mesh, row.reason)?;
    }
    for file in &report.figures {
        writeln!(out, "wrote {file}")?;
    }
    Ok(())
}

type WriteMeshes = fn(&mut dyn Write, &[meshes::MeshRow]) -> io::Result<()>;

fn write_pattern(out: &mut dyn Write, table: &patterns::PatternTable) -> io::Result<()> {
    writeln!(
        out,
        "\nTable {}: {}, {} (the paper's compiler: {})",
        table.table,
        table.title,
        text::count(table.phases.ours, "phase"),
        table.phases.paper.unwrap_or(0),
    )?;
    let mut columns = vec!["words", "ConSet predicted", "ConSet measured"];
    let stated = table.rows.iter().any(|row| row.stated_phases_measured.is_some());
    if stated {
        columns.push("in the stated phases");
    }
    columns.extend(["messages predicted", "messages measured", "MB/s ConSet", "MB/s messages"]);
    let mut lines = text::table(&columns, 0);
    for row in &table.rows {
        let mut cells = vec![
            text::number(u64::from(row.words)),
            compared(&row.conset_predicted),
            compared(&row.conset_measured),
        ];
        if let Some(stated) = &row.stated_phases_measured {
            cells.push(compared(stated));
        }
        let speed = |ours: f64, paper: f64| format!("{ours:.0} / {paper:.0}");
        let (b, p) = (&row.bandwidth, &row.paper_bandwidth);
        cells.extend([
            compared(&row.message_predicted),
            compared(&row.message_measured),
            speed(b.conset_measured, p.conset_measured),
            speed(b.message_measured, p.message_measured),
        ]);
        lines.add_row(cells);
    }
    text::write_table(out, &lines)
}

fn write_structure(out: &mut dyn Write, rows: &[meshes::MeshRow]) -> io::Result<()> {
    writeln!(out, "\nTable 4: structure of the meshes")?;
    let columns =
        ["mesh", "elements", "nodes", "elements per cell", "words per cell", "degree", "phases"];
    let mut lines = text::table(&columns, 1);
    for row in rows {
        let s = &row.structure;
        lines.add_row([
            row.mesh.to_owned(),
            beside(&s.elements),
            beside(&s.nodes),
            range(&s.elements_per_cell),
            range(&s.words_per_cell),
            beside(&s.degree),
            beside(&s.phases),
        ]);
    }
    text::write_table(out, &lines)
}

fn write_times(out: &mut dyn Write, rows: &[meshes::MeshRow]) -> io::Result<()> {
    writeln!(out, "\nTable 5: computation (an estimate) and communication (measured)")?;
    let columns =
        ["mesh", "flops", "computation, clocks", "communication, clocks", "bandwidth, MB/s"];
    let mut lines = text::table(&columns, 1);
    for row in rows {
        let c = &row.computation;
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let flops =
            format!("{} / {}", text::number(c.flops), or_dash(c.paper_flops.map(text::number)));
        let paper = row.paper_bandwidth.map(|b| format!("{:.1}", b.conset_measured));
        lines.add_row([
            row.mesh.to_owned(),
            flops,
            or_dash(c.estimated_clocks.as_ref().map(compared)),
            compared(&row.conset_measured),
            format!("{:.1} / {}", row.bandwidth.conset_measured, or_dash(paper)),
        ]);
    }
    text::write_table(out, &lines)
}

fn write_model(out: &mut dyn Write, rows: &[meshes::MeshRow]) -> io::Result<()> {
    writeln!(out, "\nTable 6: communication of the meshes, 10 clocks a word")?;
    let columns =
        ["mesh", "ConSet predicted", "ConSet measured", "messages predicted", "messages measured"];
    let mut lines = text::table(&columns, 1);
    for row in rows {
        lines.add_row([
            row.mesh.to_owned(),
            compared(&row.conset_predicted),
            compared(&row.conset_measured),
            compared(&row.message_predicted),
            compared(&row.message_measured),
        ]);
    }
    text::write_table(out, &lines)
}

fn write_histogram(out: &mut dyn Write, rows: &[meshes::MeshRow]) -> io::Result<()> {
    writeln!(out, "\nFigure 5: connections by words")?;
    let mut columns = vec!["words"];
    columns.extend(rows.iter().map(|row| row.mesh));
    let mut lines = text::table(&columns, 0);
    let longest = rows.iter().map(|row| &row.histogram).max_by_key(|bars| bars.len());
    for (at, bar) in longest.into_iter().flatten().enumerate() {
        let mut cells = vec![format!("{}-{}", bar.from, bar.to)];
        cells.extend(
            rows.iter()
                .map(|row| text::number(row.histogram.get(at).map_or(0, |bar| bar.connections))),
        );
        lines.add_row(cells);
    }
    text::write_table(out, &lines)
}

fn compared(c: &Compared) -> String {
    match (c.paper, c.error_percent) {
        (Some(paper), Some(error)) => {
            format!("{} / {} ({error:+.1})", text::number(c.ours), text::number(paper))
        }
        _ => text::number(c.ours),
    }
}

fn beside(c: &Compared) -> String {
    match c.paper {
        Some(paper) => format!("{} / {}", text::number(c.ours), text::number(paper)),
        None => text::number(c.ours),
    }
}

fn range(r: &meshes::Range) -> String {
    let ours = format!("{}-{}", r.ours[0], r.ours[1]);
    match r.paper {
        Some(paper) => format!("{ours} / {}-{}", paper[0], paper[1]),
        None => ours,
    }
}
