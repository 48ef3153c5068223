//! Random plans of one and of two faults on compiled programs: with check words nothing is silent, and with recovery every
//! word arrives, or what is left does not fit the machine. Half of the plans are for five programs, the others for
//! programs of the soak tests. `CONSET_FAULT_PLANS=100000` runs more plans; `CONSET_FAULT_TABLE=FILE` writes the matrix
//! of faults and outcomes between the marks of a document (`docs/hardening.md`).

#[path = "../../fabric/tests/build/mod.rs"]
mod build;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use conset::recovery::{RecoveryOptions, run_synthetic};
use conset::{CompileError, CompileOptions, Compiled, Compiler};
use conset_fabric::{CHECK_WORDS, Detection, FaultExtent, FaultPlan, Outcome, run_with_faults};
use conset_ir::Program;
use conset_testing::{Case, CaseKind};

/// Plans in an ordinary test.
const PLANS: u64 = 400;

/// Plans for each program of the soak tests.
const PLANS_OF_SOAK_PROGRAM: u64 = 8;

/// Programs with more words take too long: faulty machines skip no periods.
const MAX_WORDS: u64 = 1 << 11;

const MARKS: [&str; 2] = ["<!-- fault matrix -->\n", "<!-- end of fault matrix -->\n"];

/// Programs of one and several phases, sets of one and several words, full and half duplex, shallow and deep queues.
fn programs() -> Vec<(&'static str, Compiled)> {
    let compile = |machine, set| {
        Compiler::new(&machine).max_plans(1).compile(&Program::from(set)).expect("it fits")
    };
    let all = |spec: &str, cells, words, channels: u32, depth: u32, duplex: &str| {
        let machine = build::machine(spec, |p| {
            p.set("duplex", duplex).unwrap();
            (p.channels_per_cell, p.channel_depth) = (channels, depth);
        });
        compile(machine, build::all_to_all(cells, words))
    };
    let ring = build::machine("ring:5", |p| p.streams = 3);
    let shift = build::set(&[(0, 2, 40), (1, 3, 7), (2, 4, 1), (3, 0, 25), (4, 1, 40), (2, 2, 5)]);
    vec![
        ("torus:3x2, all-to-all, 3 words, one phase", all("torus:3x2", 6, 3, 40, 2, "full")),
        ("torus:3x2, all-to-all, 9 words, phases", all("torus:3x2", 6, 9, 3, 4, "half")),
        ("mesh:3x3, all-to-all, 2 words, phases", all("mesh:3x3", 9, 2, 4, 1, "full")),
        ("hypercube:3, all-to-all, 5 words, phases", all("hypercube:3", 8, 5, 5, 8, "half")),
        ("ring:5, six connections", compile(ring, shift)),
    ]
}

/// The program of a seed, if it can be compiled and is not too large.
fn soak_program(seed: u64) -> Option<Compiled> {
    let Case { machine, program, options } = Case::of_seed(seed, CaseKind::Soak);
    let words: u64 = program.sets().iter().map(|set| set.words()).sum();
    if words == 0 || words > MAX_WORDS {
        return None;
    }
    match Compiler::new(&machine).options(options.max_plans(1)).compile(&program) {
        Ok(compiled) => Some(compiled),
        Err(CompileError::Infeasible(_)) => None,
        Err(other) => panic!("seed {seed}: {other}"),
    }
}

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Plain,
    Checked,
    Recovery,
}

/// The columns of the matrix.
const COLUMNS: [(Mode, &[Outcome]); 3] = [
    (Mode::Plain, &[Outcome::Delivered, Outcome::Detected, Outcome::TimedOut, Outcome::Silent]),
    (Mode::Checked, &[Outcome::Delivered, Outcome::Detected, Outcome::TimedOut, Outcome::Silent]),
    (Mode::Recovery, &[Outcome::Delivered, Outcome::Refused]),
];

/// A row of the matrix.
#[derive(Default)]
struct Row {
    plans: u64,
    acted: u64,
    outcomes: BTreeMap<(Mode, Outcome), u64>,
    /// Clocks to detection with check words.
    clocks: Vec<u64>,
}

impl Row {
    /// Runs a program with a plan in each mode.
    fn add(&mut self, name: &str, compiled: &Compiled, (seed, plan): (u64, &FaultPlan)) {
        let image = compiled.image();
        let run = |detection| run_with_faults(image.clone(), seed, plan, detection).unwrap();
        let (plain, checked) = (run(Detection::Plain), run(Detection::Checked));
        assert_ne!(checked.outcome, Outcome::Silent, "{name}:\n{plan}{checked:?}");
        let options = RecoveryOptions::default().compile(CompileOptions::new().max_plans(1));
        let recovery = run_synthetic(compiled, plan, seed, &options);
        let recovery = recovery.unwrap_or_else(|error| panic!("{name}:\n{plan}{error}"));
        let is_over = [Outcome::Delivered, Outcome::Refused].contains(&recovery.outcome);
        assert!(is_over, "{name}:\n{plan}{:?} {:?}", recovery.outcome, recovery.attempts);
        self.plans += 1;
        self.acted += u64::from(checked.acted.iter().any(Option::is_some));
        let outcomes = [plain.outcome, checked.outcome, recovery.outcome];
        for (mode, outcome) in
            [Mode::Plain, Mode::Checked, Mode::Recovery].into_iter().zip(outcomes)
        {
            *self.outcomes.entry((mode, outcome)).or_default() += 1;
        }
        self.clocks.extend(checked.clocks_to_detection());
    }

    fn line(&mut self, name: &str) -> String {
        self.clocks.sort_unstable();
        let mut line = format!("| {name} | {} | {} %", self.plans, 100 * self.acted / self.plans);
        for (mode, outcomes) in COLUMNS {
            for outcome in outcomes {
                write!(line, " | {}", self.outcomes.get(&(mode, *outcome)).unwrap_or(&0)).unwrap();
            }
        }
        let median = self.clocks.get(self.clocks.len() / 2);
        let most = self.clocks.last();
        let [median, most] = [median, most].map(|n| n.map_or("-".to_owned(), u64::to_string));
        writeln!(line, " | {median} | {most} |").unwrap();
        line
    }
}

/// The clocks, words and switches of a run with check words.
fn extent(compiled: &Compiled) -> FaultExtent {
    let image = compiled.image().clone();
    let run = run_with_faults(image, 1, &FaultPlan::default(), Detection::Checked).unwrap();
    let phases = || run.reports.iter().flat_map(|report| &report.phases);
    let words = phases().filter_map(|phase| phase.busiest_link).map(|link| link.1);
    let switches = u64::try_from(phases().count()).unwrap();
    FaultExtent { clocks: run.clock, words: words.max().unwrap_or(1), switches }
}

/// Runs plans of a program.
fn add_plans(
    rows: &mut BTreeMap<String, Row>,
    (name, compiled): (&str, &Compiled),
    seeds: impl Iterator<Item = u64>,
) {
    let extent = extent(compiled);
    for seed in seeds {
        let faults = 1 + usize::from(seed % 4 == 3);
        let plan = FaultPlan::draw(compiled.image().machine(), &extent, seed, faults);
        assert_eq!(plan.to_string().parse::<FaultPlan>().unwrap(), plan);
        let kind = if faults == 1 { plan.faults[0].kind() } else { "two of these" };
        rows.entry(kind.to_owned()).or_default().add(name, compiled, (seed, &plan));
    }
}

#[test]
fn nothing_is_silent_with_check_words() {
    let plans = std::env::var("CONSET_FAULT_PLANS").map_or(PLANS, |n| n.parse().unwrap());
    let programs = programs();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut prices = String::new();
    let each = (plans / 2).div_ceil(u64::try_from(programs.len()).unwrap());
    for (number, (name, compiled)) in programs.iter().enumerate() {
        let image = compiled.image().clone();
        let empty = FaultPlan::default();
        let plain = run_with_faults(image, 1, &empty, Detection::Plain).unwrap();
        let (before, after) = (plain.clock, extent(compiled).clocks);
        let percent = 100.0 * (after as f64 / before as f64 - 1.0);
        writeln!(prices, "| {name} | {before} | {after} | {percent:+.1} % |").unwrap();
        let seeds = (0..each).map(|round| (number as u64) << 40 | round);
        add_plans(&mut rows, (name, compiled), seeds);
    }
    let (mut left, mut soak_programs, mut seed) = (plans - plans / 2, 0, 0u64);
    while left > 0 {
        seed += 1;
        let Some(compiled) = soak_program(seed) else { continue };
        let count = left.min(PLANS_OF_SOAK_PROGRAM);
        let seeds = (0..count).map(|round| seed << 8 | round);
        add_plans(&mut rows, (&format!("soak program {seed}"), &compiled), seeds);
        (left, soak_programs) = (left - count, soak_programs + 1);
    }
    let acted: u64 = rows.values().map(|row| row.acted).sum();
    let run: u64 = rows.values().map(|row| row.plans).sum();
    assert!(2 * acted > run, "{acted} of {run} plans acted");
    let Ok(path) = std::env::var("CONSET_FAULT_TABLE") else { return };
    let mut table = format!(
        "{run} plans, of which {acted} acted: one half on the five programs below, the other half on {soak_programs} \
         programs of the soak tests. Clocks are from the first action of a fault to its report, with check words.\n\n\
         | fault | plans | acted | plain: delivered | detected | timed out | silent | checked: delivered | detected \
         | timed out | silent | with recovery: delivered | refused | median clocks | max |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (kind, row) in &mut rows {
        table += &row.line(kind);
    }
    write!(
        table,
        "\nThe price of {CHECK_WORDS} check words on each stream:\n\n| program | clocks plain | clocks checked | more \
         |\n|---|---|---|---|\n{prices}"
    )
    .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).expect("the first mark");
    let (_, after) = rest.split_once(MARKS[1]).expect("the second mark");
    let new = format!("{before}{}\n{table}\n{}{after}", MARKS[0], MARKS[1]);
    std::fs::write(&path, new).unwrap();
}
