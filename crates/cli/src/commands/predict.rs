//! `conset predict`: every way to exchange a set, by several cost models, and on the fabric.

use std::io::{self, Write};

use conset::predict::{
    C3Summary, MethodRow, Model, ModelSummary, ModelValue, PredictOptions, PredictReport,
    SetPredictions, predict,
};
use conset_ir::convert::{to_u64, truncate};

use crate::args::{ModelArg, PredictArgs};
use crate::error::CliError;
use crate::load;
use crate::progress::ProgressDisplay;
use crate::rows::{self, Field, TableRows};
use crate::text::{self, Terminal};

pub(crate) fn run(args: &PredictArgs, terminal: &Terminal) -> Result<(), CliError> {
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let job = load::input(&args.input, &mut bar)?;
    let (machine, program) = load::program(&job, &args.input)?;
    let mut options = PredictOptions::default();
    options.models = match args.model {
        ModelArg::C3 => vec![Model::C3],
        ModelArg::Paper => vec![Model::Paper],
        ModelArg::Steps => vec![Model::Steps],
        ModelArg::All => Model::ALL.to_vec(),
    };
    options.methods.clone_from(&args.methods);
    options.measure = args.measure;
    options.seed = args.input.seed();
    options.unlimited = args.unlimited;
    options.c3.protocol = args.protocol;
    options.c3.setup = args.c3_setup;
    options.c3.packet_bytes = args.c3_packet;
    options.c3.latency = args.c3_latency;
    options.c3.bisection = args.c3_bisection.map(f64::from);
    let report = predict(&machine, &program, &options, &mut |p| bar.observe(p))?;
    drop(bar);
    rows::print(terminal, &report, || rows_of(&report), |out| write_report(out, &report, &options))
}

/// A row for each method and set, with the columns of all models.
fn rows_of(report: &PredictReport) -> TableRows {
    let columns = [
        "set",
        "method",
        "by",
        "steps",
        "messages",
        "c3_units",
        "c3_rank",
        "c3_error_percent",
        "paper_clocks",
        "paper_rank",
        "paper_error_percent",
        "steps_clocks",
        "steps_rank",
        "steps_error_percent",
        "measured_clocks",
        "measured_rank",
        "refused",
    ];
    let mut rows = TableRows::new(&columns, 3);
    for set in &report.sets {
        for method in &set.rows {
            let mut row: Vec<Field> = vec![
                set.set.as_str().into(),
                method.method.as_str().into(),
                method.by.into(),
                method.steps.into(),
                method.messages.into(),
            ];
            for model in Model::ALL {
                let value = method.value(model);
                row.extend([
                    value.map(|value| Field::Real(value.value, 1)).into(),
                    value.map(|value| value.rank).into(),
                    value.and_then(|value| Some(Field::Real(value.error_percent?, 1))).into(),
                ]);
            }
            row.extend([
                method.measured.map(|measured| measured.clocks).into(),
                method.measured.map(|measured| measured.rank).into(),
                method.refused.as_deref().into(),
            ]);
            rows.rows.push(row);
        }
    }
    rows
}

fn write_report(
    out: &mut dyn Write,
    report: &PredictReport,
    options: &PredictOptions,
) -> io::Result<()> {
    let machine = &report.machine;
    let cells = text::count(to_u64(machine.cells), "cell");
    let links = text::count(to_u64(machine.links), "link");
    writeln!(out, "machine  {} ({}): {cells}, {links}", machine.name, machine.topology)?;
    if options.models.contains(&Model::C3) {
        write_c3(out, report.c3.as_ref())?;
    }
    for set in &report.sets {
        let connections = text::count(to_u64(set.connections), "connection");
        writeln!(out, "set      {}: {connections}, {}", set.set, text::count(set.words, "word"))?;
        write_rows(out, set, options)?;
        for row in &set.rows {
            if let Some(reason) = &row.refused {
                let reason = reason.lines().next().unwrap_or("");
                writeln!(out, "refused  {}: {reason}", row.method)?;
            }
        }
        for summary in &set.summaries {
            write_summary(out, summary)?;
        }
    }
    Ok(())
}

fn write_c3(out: &mut dyn Write, c3: Option<&C3Summary>) -> io::Result<()> {
    let Some(c3) = c3 else {
        return writeln!(out, "c3       the bisection is not known; --c3-bisection states it");
    };
    writeln!(
        out,
        "c3       {}: {}, mean distance {:.2}, bisection {}, packets of {} bytes, set-up {:.2} units",
        c3.protocol,
        text::count(c3.processors.into(), "processor"),
        c3.latency,
        c3.bisection,
        c3.packet_bytes,
        c3.setup,
    )
}

/// The table of methods: the fastest first, by measurement, else by the first model that ranks it.
fn write_rows(
    out: &mut dyn Write,
    set: &SetPredictions,
    options: &PredictOptions,
) -> io::Result<()> {
    let models = Model::ALL.into_iter().filter(|model| options.models.contains(model));
    let models: Vec<Model> = models.collect();
    let mut columns = vec!["method", "steps", "messages"];
    for model in &models {
        columns.push(if *model == Model::C3 { "c3 units" } else { model.name() });
    }
    if options.measure {
        columns.push("fabric");
        columns.extend(models.iter().map(|model| match model {
            Model::C3 => "c3 %",
            Model::Paper => "paper %",
            Model::Steps => "steps %",
        }));
    }
    let mut rows: Vec<&MethodRow> = set.rows.iter().collect();
    let place = |row: &MethodRow| {
        let value = |model| row.value(model).map(|value| value.rank);
        let rank = row.measured.map(|measured| measured.rank);
        (rank.is_none(), rank.or(value(Model::Steps)).or(value(Model::C3)).unwrap_or(u32::MAX))
    };
    rows.sort_by_key(|row| place(row));
    let mut table = text::table(&columns, 1);
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let count = |n: Option<usize>| or_dash(n.map(|n| text::number(to_u64(n))));
        let mut cells = vec![row.method.clone(), count(row.steps), count(row.messages)];
        cells.extend(models.iter().map(|&model| or_dash(row.value(model).map(ranked))));
        if options.measure {
            let clocks = row.measured.map(|m| format!("{} #{}", text::number(m.clocks), m.rank));
            cells.push(or_dash(clocks));
            cells.extend(models.iter().map(|&model| {
                let error = row.value(model).and_then(|value| value.error_percent);
                or_dash(error.map(|error| format!("{error:+.1}")))
            }));
        }
        table.add_row(cells);
    }
    text::write_table(out, &table)
}

/// A value with its rank.
pub(crate) fn ranked(value: &ModelValue) -> String {
    let rounded = value.value.round();
    let number = match (0.0..1e15).contains(&rounded) {
        true => text::number(truncate(rounded)),
        false => format!("{rounded:.3e}"),
    };
    format!("{number} #{}", value.rank)
}

/// Prints how far a model agrees with the fabric.
pub(crate) fn write_summary(out: &mut dyn Write, summary: &ModelSummary) -> io::Result<()> {
    write!(out, "model    {}: ", summary.model.name())?;
    if let Some(factor) = summary.clocks_per_unit {
        write!(out, "a unit is {factor:.1} clocks (fitted to these rows); ")?;
    }
    write!(
        out,
        "error {:.1} % median, {:+.1} % worst ({})",
        summary.median_error_percent, summary.worst_error_percent, summary.worst_method,
    )?;
    if let Some(alike) = summary.pairs_alike_percent {
        write!(
            out,
            "; {alike:.1} % of {} ranked as the fabric does",
            text::count(summary.pairs, "pair")
        )?;
    }
    let (over, methods) = (summary.choice_over_fastest, summary.methods);
    writeln!(out, "; its choice takes {over:.2} x the fastest of {methods}")
}
