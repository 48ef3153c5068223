//! `conset bound`: computing lower bounds without compiling.

use conset::report::BoundOf;
use conset_ir::Binding;
use conset_ir::convert::to_u64;
use serde::Serialize;

use crate::args::BoundArgs;
use crate::error::CliError;
use crate::load;
use crate::progress::ProgressDisplay;
use crate::rows::{self, TableRows};
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct BoundsOfSet {
    set: String,
    connections: usize,
    words: u64,
    bound_phases: u32,
    bound_phases_by: Binding,
    bound_clocks: u64,
    bound_clocks_by: Binding,
    /// What the bounds are bounds of.
    bound_of: BoundOf,
    bounds: Vec<OneBound>,
}

#[derive(Serialize)]
struct OneBound {
    of: &'static str,
    by: Binding,
    value: u64,
    witness: String,
}

#[derive(Serialize)]
struct BoundReport {
    sets: Vec<BoundsOfSet>,
}

pub(crate) fn run(args: &BoundArgs, terminal: &Terminal) -> Result<(), CliError> {
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let job = load::input(&args.input, &mut bar)?;
    let (machine, program) = load::program(&job, &args.input)?;
    let reports = conset::lower_bounds(&machine, &program)?;
    drop(bar);
    let report = BoundReport {
        sets: program
            .sets()
            .iter()
            .zip(&reports)
            .map(|(set, report)| {
                let summary = report.summary();
                let rows = |of, list: &[conset::partition_route::bounds::Bound]| {
                    list.iter()
                        .map(|bound| OneBound {
                            of,
                            by: bound.binding,
                            value: bound.value,
                            witness: bound.explanation.clone(),
                        })
                        .collect::<Vec<_>>()
                };
                let mut bounds = rows("phases", &report.phases);
                bounds.extend(rows("clocks", &report.clocks));
                BoundsOfSet {
                    set: set.name().to_owned(),
                    connections: set.len(),
                    words: set.words(),
                    bound_phases: summary.phases,
                    bound_phases_by: summary.phases_by,
                    bound_clocks: summary.clocks,
                    bound_clocks_by: summary.clocks_by,
                    bound_of: BoundOf::of(set),
                    bounds,
                }
            })
            .collect(),
    };
    rows::print(
        terminal,
        &report,
        || rows_of(&report),
        |out| {
            if report.sets.is_empty() {
                writeln!(out, "no sets")?;
            }
            for set in &report.sets {
                writeln!(
                    out,
                    "set      {}: {}, {}",
                    set.set,
                    text::count(to_u64(set.connections), "connection"),
                    text::count(set.words, "word")
                )?;
                writeln!(out, "phases   at least {} by {}", set.bound_phases, set.bound_phases_by)?;
                writeln!(
                    out,
                    "clocks   at least {} by {}",
                    text::number(set.bound_clocks),
                    set.bound_clocks_by
                )?;
                let mut table = text::table(&["", "bound", "value", "witness"], 2);
                for bound in &set.bounds {
                    table.add_row([
                        bound.of.to_owned(),
                        bound.by.to_string(),
                        text::number(bound.value),
                        bound.witness.clone(),
                    ]);
                }
                if let Some(column) = table.column_mut(3) {
                    column.set_cell_alignment(comfy_table::CellAlignment::Left);
                }
                text::write_table(out, &table)?;
            }
            Ok(())
        },
    )
}

/// A row for each bound.
fn rows_of(report: &BoundReport) -> TableRows {
    let mut rows = TableRows::new(&["set", "of", "by", "value", "witness"], 3);
    for set in &report.sets {
        for bound in &set.bounds {
            rows.rows.push(vec![
                set.set.as_str().into(),
                bound.of.into(),
                bound.by.to_string().into(),
                bound.value.into(),
                bound.witness.as_str().into(),
            ]);
        }
    }
    rows
}
