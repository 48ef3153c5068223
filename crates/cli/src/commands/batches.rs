//! `conset run --batches`: a set in batches, each compiled, verified and executed before the next.

use std::io::{self, Write};
use std::sync::Arc;

use conset::batches::Batches;
use conset::input::Input;
use conset::report::RunSummary;
use conset::{Progress, run};
use conset_ir::convert::to_u64;
use conset_ir::{At, ConnectionSet, InputError, Machine};

use crate::args::RunArgs;
use crate::commands::run::{report, run_failure};
use crate::error::CliError;
use crate::load::{self, PartitionGoal};
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

pub(crate) fn run(args: &RunArgs, count: u32, terminal: &Terminal) -> Result<(), CliError> {
    let mut bar = ProgressDisplay::new(terminal.quiet);
    let job = load::input_for(&args.input, &PartitionGoal::of(&args.compiler), false, &mut bar)?;
    let Input::Program(loaded) = &job.input else {
        let message = "the input is already compiled, and is executed in one piece";
        let error = InputError::new("--batches", At::Whole, message);
        return Err(error.help("leave out --batches").into());
    };
    let sets = loaded.program.sets().iter();
    let sets = sets.map(|set| of_set(args, count, &job.machine, set, &mut bar));
    let sets = sets.collect::<Result<Vec<RunSummary>, _>>()?;
    drop(bar);
    let report = report(sets.iter(), job.machine.parameters());
    terminal.print(&report, |out| sets.iter().try_for_each(|set| write_set(out, set)))?;
    match sets.iter().find(|set| !set.payload_ok) {
        None => Ok(()),
        Some(set) => Err(CliError::Bug(format!("set `{}`: words were not delivered", set.set))),
    }
}

/// Compiles and executes the batches of a set.
fn of_set(
    args: &RunArgs,
    count: u32,
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    bar: &mut ProgressDisplay,
) -> Result<RunSummary, CliError> {
    let seed = args.input.seed();
    bar.observe(Progress::Stage("dividing into batches"));
    let batches = Batches::new(machine, set, count, seed);
    let batches = batches.map_err(|e| CliError::of_compile(e, &[]))?;
    let mut total = batches.summary();
    for batch in 0..batches.count() {
        let program = batches.set(batch).into();
        let compiled = load::batch(machine, &program, (seed, &args.compiler), bar)?;
        let runs = run::run(&compiled, seed, false, &mut |p| bar.observe(p));
        let runs = runs.map_err(|error| run_failure(&error, true))?;
        runs.iter().for_each(|run| batches.add(&mut total, &run.summary));
    }
    Ok(total)
}

fn write_set(out: &mut dyn Write, set: &RunSummary) -> io::Result<()> {
    let batches = set.batches.unwrap_or(1);
    writeln!(
        out,
        "set      {}: {} in {} {}, {} (bound {}, by {})",
        set.set,
        text::count(to_u64(set.connections), "connection"),
        text::number(batches.into()),
        if batches == 1 { "batch" } else { "batches" },
        text::count(to_u64(set.phases), "phase"),
        text::number(set.bound_phases.into()),
        set.bound_phases_by,
    )?;
    writeln!(
        out,
        "fabric   {}: {} clocks ({:.3} over bound {}, by {}; predicted {})",
        set.set,
        text::number(set.measured_clocks),
        set.clocks_over_bound,
        text::number(set.bound_clocks),
        set.bound_clocks_by,
        text::number(set.predicted_clocks),
    )?;
    let words = text::count(set.words, "word");
    let hops = text::count(set.word_hops, "word-hop");
    match set.payload_ok {
        true => writeln!(
            out,
            "payload  {words} delivered, each once, in order, at the right cell; {hops}"
        ),
        false => writeln!(out, "payload  WRONG: not all of {words} were delivered"),
    }
}
