//! How near to their bounds sets of all families come, which planner gets them there, and what
//! each planner is worth: writes `docs/planners.md`, and holds later results against a stored band.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin planners               # the sample of .ci/run, printed
//! $ cargo run --release -p conset-benches --bin planners -- --check    # fail outside the band
//! $ cargo run --release -p conset-benches --bin planners -- --bless    # store a new band, and write
//!                                                                      # the table of docs/planners.md
//! $ cargo run --release -p conset-benches --bin planners -- --wide     # every family on every machine up to 256 cells
//! $ cargo run --release -p conset-benches --bin planners -- transpose:torus:8x8:2048 ...  # sets of one's own
//! $ cargo run --release -p conset-benches --bin planners -- --ablation                    # every planner has its turn
//! ```
//!
//! Clocks are the fabric's, every word checked, on machines with the parameters of `iwarp`, with
//! timed starts unless `--self-timed` says otherwise. Work is counted, not timed, so the band is
//! the same on any machine; seconds are printed for orientation.
//!
//! A compile ends when a plan is good, so its trials do not tell what the planners that had no turn
//! are worth. `--ablation` makes all usual attempts, on machines that the sample does not have and
//! no constant was chosen on, and computes from the prices what the sets cost without each planner,
//! and in which order planners are best added to a portfolio.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use conset::{Compiler, SearchStats, run};
use conset_benches::families::{FAMILIES, family};
use conset_ir::{ConnectionSet, Machine, Program};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

const MACHINES: [&str; 8] = [
    "torus:4x4",
    "torus:8x8",
    "mesh:8x8",
    "torus:5x7",
    "hypercube:6",
    "ring:16",
    "torus:4x4x4",
    "fat-tree:64",
];
/// Machines of `--wide` beside those of the sample.
const LARGER: [&str; 3] = ["torus:12x12", "torus:16x16", "mesh:16x16"];
/// Machines for which planners are compared, other than those of the sample.
const HELD_OUT: [&str; 8] = [
    "torus:6x6",
    "mesh:6x9",
    "torus:10x10",
    "ring:24",
    "torus:3x4x5",
    "hypercube:5",
    "torus:7x9",
    "fat-tree:32",
];

/// Attempts at each set when planners are compared: about all usual ones.
const ATTEMPTS: u32 = 14;

const WORDS: [u32; 4] = [512, 64, 4096, 8];

/// Sets of the sample that `.ci/run` compiles.
const SAMPLE: usize = 60;

/// The stored results: beside this file, written by `--bless`.
const BAND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/planners.json");
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/planners.md");

struct Case {
    family: &'static str,
    spec: String,
    words: u32,
    machine: Arc<Machine>,
    set: Arc<ConnectionSet>,
}

struct Row {
    connections: usize,
    phases: usize,
    bound_phases: u32,
    clocks: u64,
    bound: u64,
    attempts: SearchStats,
    seconds: f64,
}

impl Row {
    fn over(&self) -> f64 {
        self.clocks as f64 / self.bound.max(1) as f64
    }
}

/// What `--check` compares.
#[derive(Serialize, Deserialize)]
struct Band {
    sets: usize,
    geometric_mean: f64,
    worst: f64,
    work: u64,
}

/// A case as it is typed: family, machine, words.
fn typed(text: &str, timed: bool) -> Option<Case> {
    let (family, rest) = text.split_once(':')?;
    let (spec, words) = rest.rsplit_once(':')?;
    let family = FAMILIES.into_iter().find(|&name| name == family)?;
    Machine::from_spec(spec).ok()?;
    Some(case(family, spec, words.parse().ok().filter(|&words| words > 0)?, timed))
}

fn case(family: &'static str, spec: &str, words: u32, timed: bool) -> Case {
    let machine = Machine::from_spec(spec).expect("a machine of the list");
    let timed_starts = u32::from(timed);
    let parameters = conset_ir::Parameters { timed_starts, ..machine.parameters().clone() };
    let machine = Arc::new(machine.with_parameters(parameters).expect("in range"));
    let set = self::family(family, &machine, words, 1).expect("a family of the list");
    Case { family, spec: spec.to_owned(), words, machine, set: Arc::new(set) }
}

/// The families in turn, each on machines and with words that differ from its last ones.
fn sample(machines: &[&str], timed: bool) -> Vec<Case> {
    (0..SAMPLE)
        .map(|row| {
            let (turn, family) = (row / FAMILIES.len(), row % FAMILIES.len());
            let spec = machines[(family + 3 * turn) % machines.len()];
            case(FAMILIES[family], spec, WORDS[(family + turn) % WORDS.len()], timed)
        })
        .collect()
}

/// Every family on every machine, each with one of the numbers of words.
fn wide(timed: bool) -> Vec<Case> {
    let machines: Vec<&str> = MACHINES.into_iter().chain(LARGER).collect();
    let mut cases = Vec::new();
    for (turn, spec) in machines.into_iter().enumerate() {
        for (row, name) in FAMILIES.into_iter().enumerate() {
            cases.push(case(name, spec, WORDS[(row + 3 * turn + turn / 4) % WORDS.len()], timed));
        }
    }
    cases
}

fn measured(case: &Case, attempts: Option<u32>) -> Row {
    let program = Program::new(vec![case.set.clone()]).expect("one set");
    let start = Instant::now();
    let clock = || start.elapsed();
    let compiled =
        Compiler::new(&case.machine).seed(1).max_plans(attempts).clock(clock).compile(&program);
    let compiled = compiled.unwrap_or_else(|e| panic!("{} on {}: {e}", case.family, case.spec));
    let seconds = start.elapsed().as_secs_f64();
    let run = run::run(&compiled, 1, false, &mut |_| ()).expect("it was checked").remove(0);
    assert!(run.summary.payload_ok, "{} on {}", case.family, case.spec);
    Row {
        connections: case.set.len(),
        phases: run.summary.phases,
        bound_phases: run.summary.bound_phases,
        clocks: run.summary.measured_clocks,
        bound: run.summary.bound_clocks,
        attempts: compiled.sets()[0].search.clone().expect("plans were made"),
        seconds,
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0), |(sum, count), ratio| (sum + ratio.ln(), count + 1));
    f64::exp(sum / f64::from(count.max(1)))
}

fn line(case: &Case, row: &Row) -> String {
    format!(
        "| {} | {} | {} | {} | {} / {} | {} | {:.3} | {} | {} | {:.1} |\n",
        case.family,
        case.spec,
        case.words,
        row.connections,
        row.phases,
        row.bound_phases,
        row.clocks,
        row.over(),
        row.attempts.winner().map_or("paper", |winner| winner.planner),
        row.attempts.plans,
        row.seconds
    )
}

const HEAD: &str = "| family | machine | words | connections | phases / bound | clocks | over bound | planner | plans | s |\n|---|---|---|---|---|---|---|---|---|---|\n";

/// How often each planner won, and what the sets would cost without it.
fn worth(rows: &[Row]) -> String {
    let mut planners: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows {
        let mut seen: Vec<&str> = row.attempts.trials.iter().map(|trial| trial.planner).collect();
        seen.sort_unstable();
        seen.dedup();
        for planner in seen {
            planners.entry(planner).or_default().0 += 1;
        }
        if let Some(winner) = row.attempts.winner() {
            planners.entry(winner.planner).or_default().1 += 1;
        }
    }
    let mut out = String::from(
        "| planner | sets it planned | sets it won | over bound without it, all sets | alone, sets it planned | the others there |\n|---|---|---|---|---|---|\n",
    );
    let least = |row: &Row, takes: &dyn Fn(&str) -> bool| {
        let trials = row.attempts.trials.iter().filter(|trial| takes(trial.planner));
        trials.map(|trial| trial.clocks).min()
    };
    for (planner, (planned, won)) in planners {
        let over = |clocks: u64, row: &Row| clocks as f64 / row.bound.max(1) as f64;
        let without = rows
            .iter()
            .filter_map(|row| least(row, &|name| name != planner).map(|clocks| over(clocks, row)));
        let there = || rows.iter().filter(|row| least(row, &|name| name == planner).is_some());
        let alone =
            there().filter_map(|row| least(row, &|name| name == planner).map(|c| over(c, row)));
        let others =
            there().filter_map(|row| least(row, &|name| name != planner).map(|c| over(c, row)));
        writeln!(
            out,
            "| {planner} | {planned} | {won} | {:.4} | {:.4} | {:.4} |",
            geometric_mean(without),
            geometric_mean(alone),
            geometric_mean(others),
        )
        .expect("a string");
    }
    out
}

/// In which order planners are best added: each time the one that helps most, with what the sets
/// that have a plan by then cost, and how many have none.
fn order_of_worth(rows: &[Row]) -> String {
    let mut left: Vec<&str> =
        rows.iter().flat_map(|row| row.attempts.trials.iter().map(|trial| trial.planner)).collect();
    left.sort_unstable();
    left.dedup();
    let mut chosen: Vec<&str> = Vec::new();
    let mut out =
        "| planner added | over bound with those so far | sets without a plan |\n|---|---|---|\n"
            .to_owned();
    let seconds = |name: &str| -> f64 {
        let trials = rows.iter().flat_map(|row| &row.attempts.trials);
        trials.filter(|trial| trial.planner == name).filter_map(|trial| trial.seconds).sum()
    };
    while !left.is_empty() {
        let with = |name: &str| {
            let clocks = |row: &Row| {
                let trials = row.attempts.trials.iter();
                let ours = trials.filter(|t| t.planner == name || chosen.contains(&t.planner));
                ours.map(|trial| trial.clocks).min()
            };
            let planned = rows.iter().filter_map(|row| Some((clocks(row)?, row.bound.max(1))));
            let ratios: Vec<f64> = planned.map(|(c, bound)| c as f64 / bound as f64).collect();
            (rows.len() - ratios.len(), geometric_mean(ratios.into_iter()))
        };
        let (place, (none, mean)) = left
            .iter()
            .map(|name| with(name))
            .enumerate()
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .expect("some are left");
        let name = left.swap_remove(place);
        writeln!(out, "| {name} ({:.0} s) | {mean:.4} | {none} |", seconds(name))
            .expect("a string");
        chosen.push(name);
    }
    out
}

/// For each set the best plan of each planner over the bound, and the seconds of all its plans.
fn all_trials(cases: &[Case], rows: &[Row]) -> String {
    let mut out = String::new();
    for (case, row) in cases.iter().zip(rows) {
        write!(out, "{} {} {}", case.family, case.spec, case.words).expect("a string");
        let mut planners: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
        for trial in &row.attempts.trials {
            let (clocks, seconds) = planners.entry(trial.planner).or_insert((u64::MAX, 0.0));
            *clocks = (*clocks).min(trial.clocks);
            *seconds += trial.seconds.unwrap_or(0.0);
        }
        for (planner, (clocks, seconds)) in planners {
            let over = clocks as f64 / row.bound as f64;
            write!(out, ", {planner} {over:.3} {seconds:.1}").expect("a string");
        }
        out.push('\n');
    }
    out
}

fn summary(rows: &[Row]) -> (Band, String) {
    let mut ratios: Vec<f64> = rows.iter().map(Row::over).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    let band = Band {
        sets: rows.len(),
        geometric_mean: geometric_mean(ratios.iter().copied()),
        worst: at(1.0),
        work: rows.iter().map(|row| row.attempts.work).sum(),
    };
    let text = format!(
        "{} sets: over bound {:.4} (geometric mean), {:.3} (median), {:.3} (9 in 10), {:.3} (worst); work {} million cells; slowest {:.1} s\n",
        band.sets,
        band.geometric_mean,
        at(0.5),
        at(0.9),
        band.worst,
        band.work >> 20,
        rows.iter().map(|row| row.seconds).fold(0.0, f64::max),
    );
    (band, text)
}

/// Measures sets beside their lower bounds and prints which planner found the best plan.
#[derive(clap::Parser)]
struct Arguments {
    /// Fail if the results of the stored sample are worse than the stored band.
    #[arg(long, conflicts_with_all = ["bless", "ablation", "sets"])]
    check: bool,
    /// Store a new band and write the tables of docs/planners.md.
    #[arg(long, conflicts_with_all = ["ablation", "sets"])]
    bless: bool,
    /// Measure every family on every machine of up to 256 cells, each with one number of words: about half an
    /// hour of processor time.
    #[arg(long, conflicts_with_all = ["check", "bless", "ablation", "sets"])]
    wide: bool,
    /// Run all planners on held-out machines and print the contribution of each.
    #[arg(long, conflicts_with = "sets")]
    ablation: bool,
    /// Use machines without timed starts.
    #[arg(long, conflicts_with_all = ["check", "bless"])]
    self_timed: bool,
    /// Sets to measure instead of the stored sample, as FAMILY:MACHINE:WORDS.
    sets: Vec<String>,
}

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = <Arguments as clap::Parser>::parse();
    let known = || format!("expected FAMILY:MACHINE:WORDS, FAMILY one of {}", FAMILIES.join(", "));
    let timed = !arguments.self_timed;
    let typed: Option<Vec<Case>> = arguments.sets.iter().map(|text| typed(text, timed)).collect();
    let cases = match typed.ok_or_else(known)? {
        cases if cases.is_empty() && arguments.wide => wide(timed),
        cases if cases.is_empty() && arguments.ablation => sample(&HELD_OUT, timed),
        cases if cases.is_empty() => sample(&MACHINES, timed),
        cases => cases,
    };
    let attempts = arguments.ablation.then_some(ATTEMPTS);
    let rows: Vec<Row> = cases.par_iter().map(|case| measured(case, attempts)).collect();
    // A family may have no connection on a machine; there is nothing to compare then.
    let (cases, rows): (Vec<Case>, Vec<Row>) =
        cases.into_iter().zip(rows).filter(|(_, row)| row.bound > 0).unzip();
    let mut lines = HEAD.to_owned();
    cases.iter().zip(&rows).for_each(|(case, row)| lines.push_str(&line(case, row)));
    let (band, text) = summary(&rows);
    let worth = worth(&rows);
    println!("{lines}\n{worth}\n{text}");
    if arguments.bless {
        std::fs::write(BAND, serde_json::to_string_pretty(&band)? + "\n")?;
        let page = std::fs::read_to_string(TABLE)?;
        let (above, _) =
            page.split_once(MARK).ok_or("docs/planners.md has lost its marker line")?;
        std::fs::write(TABLE, format!("{above}{MARK}\n{text}\n{worth}\n{lines}"))?;
    }
    if arguments.check {
        let stored: Band = serde_json::from_str(&std::fs::read_to_string(BAND)?)?;
        let fits = band.sets == stored.sets
            && band.geometric_mean <= stored.geometric_mean * 1.005
            && band.worst <= stored.worst * 1.02
            && band.work <= stored.work + stored.work / 4;
        if !fits {
            let stored = serde_json::to_string(&stored)?;
            return Err(format!("worse than the stored band: {stored}").into());
        }
        println!("within the stored band");
    }
    if arguments.ablation {
        println!("{}", order_of_worth(&rows));
    }
    if arguments.ablation || !arguments.sets.is_empty() {
        println!("{}", all_trials(&cases, &rows));
    }
    Ok(())
}

/// Below this line of `docs/planners.md` everything is written by `--bless`.
const MARK: &str =
    "<!-- written by `cargo run --release -p conset-benches --bin planners -- --bless` -->\n";
