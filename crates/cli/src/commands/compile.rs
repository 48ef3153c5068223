//! `conset compile`: compiling an input to a verified phase schedule.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use conset::choice::Alternative;
use conset::fuse::Fusion;
use conset::incremental::{ReuseOutcome, ReuseReport};
use conset::input::{Input, PartitionReport, PlacementReport};
use conset::report::{BoundOf, PartsSummary, SetSummary, Summary};
use conset::{Compiled, SearchStats, StopReason};
use conset_ir::convert::{to_f64, to_u64};
use conset_ir::document::Document;
use conset_ir::{At, InputError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::CompileArgs;
use crate::commands::info::{mesh_note, write_note};
use crate::commands::steps::{self, StepsOutput, write_choice};
use crate::error::CliError;
use crate::files::OutputTarget;
use crate::load::{self, Either, PartitionGoal};
use crate::partition_file::PartitionFile;
use crate::progress::ProgressDisplay;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct CompileReport {
    by: &'static str,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<PlacementReport>,
    /// What of a mesh was attached, joined or not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    mesh: Option<String>,
    output: Option<String>,
    /// What it was compared with (`--by best`).
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Alternative>,
    /// Groups of sets that could be merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fusions: Vec<Fusion>,
    /// Time from reading the input to the verified schedule: partition and placement included.
    seconds: f64,
    /// Total time of each stage.
    stage_seconds: Map<String, Value>,
}

pub(crate) fn run(args: &CompileArgs, terminal: &Terminal) -> Result<(), CliError> {
    // Check the output before the work.
    let format = args.output.as_deref().map(OutputFormat::of).transpose()?;
    if let Some(path) = &args.output {
        OutputTarget::new(path).check(&load::input_files(&args.input))?;
    }
    let partition_file = PartitionFile::new(
        args.write_partition.as_deref(),
        &args.input,
        &args.compiler,
        &[args.output.as_deref()],
    )?;
    let mut bar = ProgressDisplay::new(terminal.quiet).with_time_limit(args.compiler.time_limit);
    let goal = PartitionGoal::of(&args.compiler);
    let start = Instant::now();
    let job = load::input_for(&args.input, &goal, partition_file.is_some(), &mut bar)?;
    let partition = partition_file
        .map(|file| file.contents(&job).map(|contents| (contents, file)))
        .transpose()?;
    load::refuse_seed(&job, &args.input.options)?;
    let choice = load::compiled_by(&job, &args.input, &args.compiler, &mut bar)?;
    let seconds = start.elapsed().as_secs_f64();
    let stages = bar.stage_seconds();
    drop(bar);
    let compared = choice.other;
    let compiled = match choice.chosen {
        Either::Phases(compiled) => *compiled,
        Either::Steps(compiled) => {
            if let Some((contents, file)) = &partition {
                file.write(contents)?;
            }
            let done = StepsOutput {
                compiled: &compiled,
                compared,
                output: args.output.as_deref(),
                seconds,
                explain_search: args.compiler.explain_search,
            };
            return steps::write_compiled(&done, format, terminal);
        }
    };
    if let (Some(path), Some(format)) = (&args.output, format) {
        format.write(&OutputTarget::new(path), &compiled)?;
    }
    if let Some((contents, file)) = &partition {
        file.write(contents)?;
    }
    let loaded = match &job.input {
        Input::Program(loaded) => Some(loaded),
        _ => None,
    };
    let halo = loaded.and_then(|loaded| loaded.halo.as_ref());
    let report = CompileReport {
        by: "phases",
        summary: Summary::new(&compiled, halo),
        output: args.output.as_ref().map(|path| path.display().to_string()),
        placement: loaded.and_then(|loaded| loaded.placement.clone()),
        mesh: mesh_note(&job.input),
        compared,
        fusions: compiled.fusions().to_vec(),
        seconds,
        stage_seconds: stages
            .iter()
            .map(|(name, s)| (name.replace(' ', "_"), (*s).into()))
            .collect(),
    };
    terminal.print(&report, |out| {
        write_note(out, report.mesh.as_deref())?;
        write_summary(out, &report.summary)?;
        write_choice(out, "phases", compiled.predicted_clocks(), report.compared.as_ref())?;
        if args.compiler.explain_search {
            write_trials(out, &report.summary)?;
        }
        for fusion in &report.fusions {
            write_fusion(out, fusion)?;
        }
        writeln!(out, "compiled and verified in {:.1} ms", report.seconds * 1e3)?;
        write_stages(out, &stages)?;
        if let Some(output) = &report.output {
            writeln!(out, "wrote {output}")?;
        }
        if let Some(path) = &args.write_partition {
            writeln!(out, "wrote {}", path.display())?;
        }
        write_refused(out, &report.summary)
    })
}

fn write_fusion(out: &mut dyn Write, fusion: &Fusion) -> io::Result<()> {
    let what = if fusion.fused { "merged" } else { "not merged, because that is not faster" };
    writeln!(
        out,
        "sets {}: {what}; {} and {} clocks separately, {} and {} merged",
        fusion.sets.join(", "),
        text::count(to_u64(fusion.phases_apart), "phase"),
        text::number(fusion.clocks_apart),
        text::count(to_u64(fusion.phases_fused), "phase"),
        text::number(fusion.clocks_fused),
    )
}

/// Reports dropped plans, if there are any.
pub(crate) fn write_refused(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    match summary.refused_note() {
        Some(note) => writeln!(out, "note     {note}"),
        None => Ok(()),
    }
}

fn write_stages(out: &mut dyn Write, stages: &[(&'static str, f64)]) -> io::Result<()> {
    let times: Vec<String> =
        stages.iter().map(|(name, seconds)| format!("{name} {:.1} ms", seconds * 1e3)).collect();
    writeln!(out, "stages   {}", times.join(", "))
}

/// The format of an output, by its extension.
#[derive(Clone, Copy)]
pub(crate) enum OutputFormat {
    Json,
    Text,
    Binary,
    Image,
}

impl OutputFormat {
    /// The format that a file name selects.
    pub(crate) fn of(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Ok(OutputFormat::Json);
        }
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Ok(OutputFormat::Json),
            Some("cset") => Ok(OutputFormat::Text),
            Some("csb") => Ok(OutputFormat::Binary),
            Some("csi") => Ok(OutputFormat::Image),
            _ => Err(InputError::new(
                path.display().to_string(),
                At::Whole,
                "the extension does not select an output format",
            )
            .help("use .json, .cset (text), .csb (binary) or .csi (image)")),
        }
    }

    fn write(self, target: &OutputTarget, compiled: &Compiled) -> Result<(), InputError> {
        let document = match self {
            OutputFormat::Image => Document::Image((**compiled.image()).clone()),
            _ => Document::Schedule(compiled.schedule().clone()),
        };
        self.write_document(target, &document)
    }

    /// Writes a document in this format.
    pub(crate) fn write_document(
        self,
        target: &OutputTarget,
        document: &Document,
    ) -> Result<(), InputError> {
        target.write(|mut out| match self {
            OutputFormat::Json => conset_ir::json::write_to(document, &mut out),
            OutputFormat::Text => conset_ir::text::write_to(document, &mut out),
            OutputFormat::Binary | OutputFormat::Image => {
                out.write_all(&conset_ir::binary::write(document))
            }
        })
    }
}

/// Prints the summary of a compilation.
pub(crate) fn write_summary(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    let machine = &summary.machine;
    writeln!(
        out,
        "machine  {} ({}): {}, {}, {} per cell",
        machine.name,
        machine.topology,
        text::count(to_u64(machine.cells), "cell"),
        text::count(to_u64(machine.links), "link"),
        text::count(machine.channels_per_cell.into(), "channel"),
    )?;
    if let Some(parts) = &summary.parts {
        write_parts(out, parts)?;
    }
    if summary.sets.is_empty() {
        return writeln!(out, "no sets");
    }
    for set in &summary.sets {
        write_set(out, set)?;
    }
    Ok(())
}

/// The parts, what they exchange, and the balance of the partition.
pub(crate) fn write_parts(out: &mut dyn Write, parts: &PartsSummary) -> io::Result<()> {
    write!(out, "parts    {}: ", parts.parts)?;
    if let Some([least, most]) = parts.items_per_part {
        write!(out, "{least} to {most} items, ")?;
    }
    let [least, most] = parts.words_per_part;
    let neighbours = text::count(to_u64(parts.max_degree), "neighbour");
    writeln!(
        out,
        "{least} to {most} words sent ({} together), at most {neighbours}",
        text::number(parts.words)
    )?;
    match &parts.partition {
        Some(partition) => write_partition(out, partition),
        None => Ok(()),
    }
}

/// The balance of a partition, and how it was found.
fn write_partition(out: &mut dyn Write, partition: &PartitionReport) -> io::Result<()> {
    let (imbalance, cut) = (partition.imbalance_percent, text::number(partition.cut));
    write!(out, "balance  imbalance {imbalance} %, cut {cut}")?;
    let Some(seed) = partition.seed else { return writeln!(out, "; given partition") };
    let looked_at = text::count(to_u64(partition.looked_at), "partition");
    write!(out, "; {looked_at} looked at: {}, seed {seed}", partition.method)?;
    match partition.moved {
        0 => writeln!(out),
        moved => writeln!(out, ", {} moved", text::count(to_u64(moved), "item")),
    }
}

fn write_set(out: &mut dyn Write, set: &SetSummary) -> io::Result<()> {
    let of = match set.bound_of {
        BoundOf::Partition => " for this partition",
        _ => "",
    };
    writeln!(
        out,
        "set      {}: {}, {}",
        set.set,
        text::count(to_u64(set.connections), "connection"),
        text::count(set.words, "word"),
    )?;
    writeln!(
        out,
        "phases   {}, bound {} by {}{}",
        text::number(to_u64(set.phases)),
        text::number(set.bound_phases.into()),
        set.bound_phases_by,
        match set.fewest_phases {
            true => format!(" (optimal{of}: phases at the bound)"),
            false => format!(", {:.2} over bound", set.phases_over_bound),
        },
    )?;
    writeln!(
        out,
        "clocks   {} predicted, bound {} by {}, {:.2} over bound{}",
        text::number(set.predicted_clocks),
        text::number(set.bound_clocks),
        set.bound_clocks_by,
        set.clocks_over_bound,
        match (set.fewest_clocks, set.clocks_proved) {
            (true, true) => format!(" (optimal{of}: clocks at the bound)"),
            (true, false) => " (predicted at the bound)".to_owned(),
            (false, _) => String::new(),
        },
    )?;
    if let Some(search) = &set.search {
        write_plans(out, search)?;
        write_winner(out, search)?;
    }
    match &set.reuse {
        Some(ReuseOutcome::Reused(report)) => write_reuse(out, report, set.clocks_over_bound)?,
        Some(ReuseOutcome::Recompiled(reason)) => {
            writeln!(out, "reuse    nothing reused: {}", reason.text())?;
        }
        None => (),
    }
    writeln!(
        out,
        "checked  {}, at most {} on a cell, {} on a link",
        text::count(set.hops, "hop"),
        text::count(set.max_channels.into(), "channel"),
        text::count(set.max_sharing.into(), "route"),
    )
}

fn write_plans(out: &mut dyn Write, search: &SearchStats) -> io::Result<()> {
    let plans = text::count(u64::from(search.plans), "plan");
    match search.stop_reason {
        StopReason::MaxPlans => writeln!(out, "tried    {plans} (--max-plans)"),
        StopReason::WorkLimit => {
            writeln!(
                out,
                "tried    {plans}; the search stopped at its work limit (--unlimited lifts it)"
            )
        }
        StopReason::TimeLimit => writeln!(
            out,
            "tried    {plans} within the time limit; --max-plans {} gives the same result again",
            search.plans
        ),
        StopReason::Interrupted => {
            writeln!(out, "tried    {plans} until the search was interrupted")
        }
        _ => writeln!(out, "tried    {plans}"),
    }
}

/// Which planner's plan is the result, and by how much.
fn write_winner(out: &mut dyn Write, search: &SearchStats) -> io::Result<()> {
    let Some(winner) = search.winner() else { return Ok(()) };
    write!(out, "planner  {}", winner.planner)?;
    if let Some(other) = search.runner_up() {
        let less = 100.0 * (1.0 - to_f64(winner.clocks) / to_f64(other.clocks.max(1)));
        let (word, less) = if less < 0.0 { ("more", -less) } else { ("fewer", less) };
        write!(out, ", {less:.1} % {word} clocks than {}", other.planner)?;
    }
    writeln!(out)
}

/// Prints every plan that was tried.
fn write_trials(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    for set in &summary.sets {
        let Some(search) = &set.search else { continue };
        writeln!(out, "search   {}:", set.set)?;
        writeln!(out, "  {:22} {:>7} {:>14} {:>9}", "planner", "phases", "clocks", "seconds")?;
        for trial in &search.trials {
            let clocks = text::number(trial.clocks);
            let seconds = trial.seconds.map_or(String::new(), |s| format!("{s:.3}"));
            let best = if trial.best { "  best so far" } else { "" };
            let (planner, phases) = (trial.planner, trial.phases);
            writeln!(out, "  {planner:22} {phases:>7} {clocks:>14} {seconds:>9}{best}")?;
        }
    }
    Ok(())
}

/// Greatest number of dead parts that are named.
const NAMED: usize = 4;

fn write_reuse(out: &mut dyn Write, report: &ReuseReport, ratio: f64) -> io::Result<()> {
    writeln!(
        out,
        "reuse    {} kept, {} moved, {} inserted, {} removed; {} changed (the earlier schedule has {})",
        text::count(to_u64(report.kept), "connection"),
        report.moved,
        report.inserted,
        report.removed,
        text::count(to_u64(report.phases_touched), "phase"),
        report.phases_before,
    )?;
    if !report.machine_lost.is_empty() {
        let (same, lost) =
            (report.kept + report.moved + report.rerouted, report.machine_lost.len());
        let more = if lost > NAMED { format!(" and {} more", lost - NAMED) } else { String::new() };
        writeln!(
            out,
            "machine  {} of {same} kept; the machine lost {}{more}; {} rerouted",
            report.kept,
            report.machine_lost[..lost.min(NAMED)].join(", "),
            text::count(to_u64(report.rerouted), "connection"),
        )?;
    }
    if let Some(entries) = &report.entries {
        writeln!(
            out,
            "tables   {} unchanged, {} changed, {} removed, {} added: {:.1} % unchanged",
            text::count(entries.unchanged, "entry"),
            entries.changed,
            entries.removed,
            entries.added,
            100.0 * entries.stability,
        )?;
    }
    if report.drifted {
        writeln!(
            out,
            "advice   {:.2} over bound before, {ratio:.2} now: compile again without --reuse",
            report.bound_ratio_before
        )?;
    }
    Ok(())
}
