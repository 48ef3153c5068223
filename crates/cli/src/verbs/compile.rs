//! `conset compile`: an input to a verified phase schedule.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use conset::from::{FromOld, Kept};
use conset::fuse::Fusion;
use conset::input::{Input, Placement};
use conset::report::{SetSummary, Summary};
use conset::{Attempts, Compiled, Ended};
use conset_ir::document::Document;
use conset_ir::{At, InputError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::CompileArgs;
use crate::failure::Failure;
use crate::files::Target;
use crate::load;
use crate::progress::Bar;
use crate::text::{self, Terminal};

#[derive(Serialize)]
struct CompileReport {
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    output: Option<String>,
    /// Sets that were allowed to be joined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fusions: Vec<Fusion>,
    /// From the input read to the schedule checked.
    seconds: f64,
    /// Each stage that ran; one that ran several times is added up.
    stage_seconds: Map<String, Value>,
}

pub(crate) fn run(args: &CompileArgs, terminal: &Terminal) -> Result<(), Failure> {
    // The form is asked for before the work, so that a misspelt name does not cost a compile.
    let form = args.output.as_deref().map(Form::of).transpose()?;
    if let Some(path) = &args.output {
        Target::new(path).check(&load::input_files(&args.input))?;
    }
    let mut bar = Bar::new(terminal.quiet).with_time_limit(args.compiler.time_limit);
    let job = load::input(&args.input, &mut bar)?;
    if args.input.options.seed.is_some() && !matches!(job.input, Input::Program(_)) {
        let message = "the input is already compiled; --seed has no effect";
        return Err(InputError::new("--seed", At::Whole, message).help("leave out --seed").into());
    }
    let start = Instant::now();
    let compiled = load::compiled(&job, &args.input, &args.compiler, &mut bar)?;
    let seconds = start.elapsed().as_secs_f64();
    let stages = bar.stage_seconds();
    drop(bar);
    if let (Some(path), Some(form)) = (&args.output, form) {
        form.write(&Target::new(path), &compiled)?;
    }
    let loaded = match &job.input {
        Input::Program(loaded) => Some(loaded),
        _ => None,
    };
    let halo = loaded.and_then(|loaded| loaded.halo.as_ref());
    let report = CompileReport {
        summary: Summary::new(&compiled, halo),
        output: args.output.as_ref().map(|path| path.display().to_string()),
        placement: loaded.and_then(|loaded| loaded.placement.clone()),
        fusions: compiled.fusions().to_vec(),
        seconds,
        stage_seconds: stages.iter().map(|(name, s)| ((*name).to_owned(), (*s).into())).collect(),
    };
    if args.output.as_deref() == Some(Path::new("-")) {
        // Standard output is the schedule; a summary would spoil it.
        return Ok(());
    }
    terminal.print(&report, |out| {
        write_summary(out, &report.summary)?;
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
        write_refused(out, &report.summary)
    })
}

fn write_fusion(out: &mut dyn Write, fusion: &Fusion) -> io::Result<()> {
    let what = if fusion.fused { "joined" } else { "not joined, as that is not faster" };
    writeln!(
        out,
        "sets {}: {what}; {} and {} clocks apart, {} and {} as one",
        fusion.sets.join(", "),
        text::count(fusion.phases_apart as u64, "phase"),
        text::number(fusion.clocks_apart),
        text::count(fusion.phases_fused as u64, "phase"),
        text::number(fusion.clocks_fused),
    )
}

/// Says that plans were dropped, where some were.
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

/// The form of an output, by its name.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Json,
    Text,
    Binary,
    Image,
}

impl Form {
    /// The form that a file's name asks for.
    pub(crate) fn of(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Ok(Form::Json);
        }
        match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Ok(Form::Json),
            Some("cset") => Ok(Form::Text),
            Some("csb") => Ok(Form::Binary),
            Some("csi") => Ok(Form::Image),
            _ => Err(InputError::new(
                path.display().to_string(),
                At::Whole,
                "the extension does not select an output format",
            )
            .help("use .json, .cset (text), .csb (binary) or .csi (image)")),
        }
    }

    fn write(self, target: &Target, compiled: &Compiled) -> Result<(), InputError> {
        let document = match self {
            Form::Image => Document::Image((**compiled.image()).clone()),
            _ => Document::Schedule(compiled.schedule().clone()),
        };
        self.write_document(target, &document)
    }

    /// Writes a document in this form.
    pub(crate) fn write_document(
        self,
        target: &Target,
        document: &Document,
    ) -> Result<(), InputError> {
        target.write(|mut out| match self {
            Form::Json => conset_ir::json::write_to(document, &mut out),
            Form::Text => conset_ir::text::write_to(document, &mut out),
            Form::Binary | Form::Image => out.write_all(&conset_ir::binary::write(document)),
        })
    }
}

/// The numbers of a compile, for people.
pub(crate) fn write_summary(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    let machine = &summary.machine;
    writeln!(
        out,
        "machine  {} ({}): {}, {}, {} per cell",
        machine.name,
        machine.topology,
        text::count(machine.cells as u64, "cell"),
        text::count(machine.links as u64, "link"),
        text::count(machine.channels_per_cell.into(), "channel"),
    )?;
    if let Some(parts) = &summary.parts {
        writeln!(
            out,
            "parts    {}: {} to {} items, {} to {} words sent, at most {}",
            parts.parts,
            parts.items_per_part[0],
            parts.items_per_part[1],
            parts.words_per_part[0],
            parts.words_per_part[1],
            text::count(parts.max_degree as u64, "neighbour"),
        )?;
    }
    if summary.sets.is_empty() {
        return writeln!(out, "no sets");
    }
    for set in &summary.sets {
        write_set(out, set)?;
    }
    Ok(())
}

fn write_set(out: &mut dyn Write, set: &SetSummary) -> io::Result<()> {
    writeln!(
        out,
        "set      {}: {}, {}",
        set.set,
        text::count(set.connections as u64, "connection"),
        text::count(set.words, "word"),
    )?;
    writeln!(
        out,
        "phases   {}, bound {} by {}{}",
        text::number(set.phases as u64),
        text::number(set.bound_phases.into()),
        set.bound_phases_by,
        match set.fewest_phases {
            true => " (optimal: phases at the bound)".to_owned(),
            false => format!(", {:.2} over bound", set.phases_bound_ratio),
        },
    )?;
    writeln!(
        out,
        "clocks   {} predicted, bound {} by {}, {:.2} over bound{}",
        text::number(set.predicted_clocks),
        text::number(set.bound_clocks),
        set.bound_clocks_by,
        set.bound_ratio,
        if set.fewest_clocks { " (optimal: clocks at the bound)" } else { "" },
    )?;
    if let Some(attempts) = &set.attempts {
        write_attempts(out, attempts)?;
        write_winner(out, attempts)?;
    }
    match &set.from {
        Some(FromOld::Kept(kept)) => write_kept(out, kept, set.bound_ratio)?,
        Some(FromOld::Fresh(why)) => writeln!(out, "reuse    nothing reused: {}", why.text())?,
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

fn write_attempts(out: &mut dyn Write, attempts: &Attempts) -> io::Result<()> {
    let plans = text::count(u64::from(attempts.made), "plan");
    match attempts.ended {
        Ended::Enough => writeln!(out, "tried    {plans}"),
        Ended::Bound if attempts.made == 1 => writeln!(out, "tried    {plans}, at the bound"),
        Ended::Bound => writeln!(out, "tried    {plans}, the last one at the bound"),
        Ended::Attempts => writeln!(out, "tried    {plans} (--max-plans)"),
        Ended::Work => {
            writeln!(
                out,
                "tried    {plans}; the search stopped at its work limit (--unlimited lifts it)"
            )
        }
        Ended::Time => writeln!(
            out,
            "tried    {plans} within the time limit; --max-plans {} gives the same result again",
            attempts.made
        ),
    }
}

/// Which planner's plan is the result, and by how much.
fn write_winner(out: &mut dyn Write, attempts: &Attempts) -> io::Result<()> {
    let Some(winner) = attempts.winner() else { return Ok(()) };
    write!(out, "planner  {}", winner.planner)?;
    if let Some(other) = attempts.runner_up() {
        let less = 100.0 * (1.0 - winner.clocks as f64 / other.clocks.max(1) as f64);
        let (word, less) = if less < 0.0 { ("more", -less) } else { ("fewer", less) };
        write!(out, ", {less:.1} % {word} clocks than {}", other.planner)?;
    }
    writeln!(out)
}

/// Every plan that was tried, for people.
fn write_trials(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    for set in &summary.sets {
        let Some(attempts) = &set.attempts else { continue };
        writeln!(out, "search   {}:", set.set)?;
        writeln!(out, "  {:22} {:>7} {:>14} {:>9}", "planner", "phases", "clocks", "seconds")?;
        for trial in &attempts.trials {
            let clocks = text::number(trial.clocks);
            let seconds = trial.seconds.map_or(String::new(), |s| format!("{s:.3}"));
            let best = if trial.best { "  best so far" } else { "" };
            let (planner, phases) = (trial.planner, trial.phases);
            writeln!(out, "  {planner:22} {phases:>7} {clocks:>14} {seconds:>9}{best}")?;
        }
    }
    Ok(())
}

/// Dead parts that are named.
const NAMED: usize = 4;

fn write_kept(out: &mut dyn Write, kept: &Kept, ratio: f64) -> io::Result<()> {
    writeln!(
        out,
        "reuse    {} kept, {} moved, {} inserted, {} removed; {} touched of {} before",
        text::count(kept.kept as u64, "connection"),
        kept.moved,
        kept.inserted,
        kept.removed,
        text::count(kept.phases_touched as u64, "phase"),
        kept.phases_before,
    )?;
    if !kept.machine_lost.is_empty() {
        let (same, lost) = (kept.kept + kept.moved + kept.rerouted, kept.machine_lost.len());
        let more = if lost > NAMED { format!(" and {} more", lost - NAMED) } else { String::new() };
        writeln!(
            out,
            "machine  {} of {same} kept; the machine lost {}{more}; {} rerouted",
            kept.kept,
            kept.machine_lost[..lost.min(NAMED)].join(", "),
            text::count(kept.rerouted as u64, "connection"),
        )?;
    }
    if let Some(entries) = &kept.entries {
        writeln!(
            out,
            "tables   {} unchanged, {} changed, {} removed, {} added: {:.1} % stand",
            text::count(entries.unchanged, "entry"),
            entries.changed,
            entries.removed,
            entries.added,
            100.0 * entries.stability,
        )?;
    }
    if kept.drifted {
        writeln!(
            out,
            "advice   {:.2} over bound before, {ratio:.2} now: compile again without --reuse",
            kept.gap_before
        )?;
    }
    Ok(())
}
