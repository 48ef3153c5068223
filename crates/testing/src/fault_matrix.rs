//! The matrix of faults and outcomes: random plans of faults on compiled programs, exchanged in phases, by messages and
//! by step plans.
//!
//! Each plan has one fault, every fourth two. Half of them are for five small programs, the others for programs of
//! the soak tests. A plan is run without check words, with them, and with recovery. What must hold:
//!
//! * With check words no outcome is [`Outcome::Silent`].
//! * A run that times out names where.
//! * With recovery every word arrives, or what is left does not fit the machine.
//!
//! `cargo test` runs a few hundred plans; the program `faults` of `benches` runs 10^5 and writes the table of
//! `docs/hardening.md`. Every word, link and cell of small exchanges is spoiled and stopped by tests of `conset-fabric`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use conset::fabric::messages::{
    MessageOptions, MessageOrder, run_set_with_faults, run_steps_with_faults,
};
use conset::fabric::{
    CHECK_WORDS, Detection, FaultKind, FaultPlan, FaultRun, Outcome, run_with_faults,
};
use conset::ir::convert::{to_f64, to_u64, to_usize};
use conset::ir::{CellId, Connection, ConnectionSet, Machine, Parameters, Program};
use conset::recovery::{self, Recovery, RecoveryOptions, SyntheticWords, run_messages, run_steps};
use conset::steps::{CompiledSteps, StepCompiler};
use conset::{CompileError, CompileOptions, Compiled, Compiler};

use crate::{Case, CaseKind, check};

/// Plans for each program of the soak tests, in each way.
const PLANS_OF_SOAK_PROGRAM: u64 = 8;

/// Programs with more words take too long: faulty machines skip no periods.
const MAX_WORDS: u64 = 1 << 11;

/// How words are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Phases,
    Messages,
    Steps,
}

impl Way {
    const ALL: [Self; 3] = [Self::Phases, Self::Messages, Self::Steps];

    fn title(self) -> &'static str {
        match self {
            Self::Phases => "In phases",
            Self::Messages => "By messages, one for each connection, in one of the four orders",
            Self::Steps => "By step plans",
        }
    }
}

/// What is drawn for and run.
struct Subject {
    name: String,
    /// One of the five small programs, of which the clocks are reported.
    is_small: bool,
    compiled: Compiled,
    program: Program,
    /// Of each set; none if there are none for any of them.
    steps: Vec<CompiledSteps>,
}

impl Subject {
    fn new(
        name: String,
        is_small: bool,
        machine: &Arc<Machine>,
        program: Program,
        options: CompileOptions,
    ) -> Option<Self> {
        let compiled = match Compiler::new(machine).options(options.max_plans(1)).compile(&program)
        {
            Ok(compiled) => compiled,
            Err(CompileError::Infeasible(_)) => return None,
            Err(other) => panic!("{name}: {other}"),
        };
        let compiler = StepCompiler::new(machine).max_plans(1);
        let steps_of = |set| check::compiles_steps(&compiler, &one_set(set));
        let steps: Option<Vec<_>> = program.sets().iter().map(steps_of).collect();
        let steps = steps.unwrap_or_default();
        Some(Self { name, is_small, compiled, program, steps })
    }

    /// The program of a seed, if it can be compiled and is not too large.
    fn of_seed(seed: u64) -> Option<Self> {
        let Case { machine, program, options } = Case::of_seed(seed, CaseKind::Soak);
        let words: u64 = program.sets().iter().map(|set| set.words()).sum();
        if words == 0 || words > MAX_WORDS {
            return None;
        }
        Self::new(format!("soak program {seed}"), false, &machine, program, options)
    }

    fn machine(&self) -> &Arc<Machine> {
        self.compiled.image().machine()
    }

    fn message_options(seed: u64) -> MessageOptions {
        let order = MessageOrder::ALL[to_usize(seed / 4 % 4)];
        MessageOptions::default().seed(seed).with_order(order)
    }

    /// The set that is exchanged by messages or steps.
    fn set(&self, seed: u64) -> usize {
        to_usize(seed % to_u64(self.program.sets().len()))
    }

    /// Runs a plan with recovery; by messages and steps one of the sets, which the seed selects.
    fn recover(&self, way: Way, seed: u64, plan: &FaultPlan) -> Recovery {
        let options = RecoveryOptions::default().compile(CompileOptions::new().max_plans(1));
        let mut words = SyntheticWords::new(seed);
        let recovery = match way {
            Way::Phases => recovery::run(&self.compiled, plan, &mut words, &options),
            Way::Messages => {
                let messages = Self::message_options(seed);
                let program = one_set(&self.program.sets()[self.set(seed)]);
                run_messages(self.machine(), &program, messages, plan, &mut words, &options)
            }
            Way::Steps => run_steps(&self.steps[self.set(seed)], plan, &mut words, &options),
        };
        let recovery =
            recovery.unwrap_or_else(|error| panic!("{}, {way:?}:\n{plan}{error}", self.name));
        words.judge(recovery)
    }

    /// Runs a plan; by messages and steps one of the sets, which the seed selects.
    fn run(&self, way: Way, seed: u64, plan: &FaultPlan, detection: Detection) -> Option<FaultRun> {
        let options = Self::message_options(seed);
        let set = self.set(seed);
        let run = match way {
            Way::Phases => run_with_faults(self.compiled.image().clone(), seed, plan, detection),
            Way::Messages => {
                let set = &self.program.sets()[set];
                run_set_with_faults(self.machine(), set, &options, plan, detection)
            }
            Way::Steps => {
                let steps = &self.steps.get(set)?.schedule().sets()[0].steps;
                run_steps_with_faults(steps, &options, plan, detection)
            }
        };
        let run = run.unwrap_or_else(|error| panic!("{}:\n{plan}{error}", self.name));
        let has_no_route =
            run.fault.as_ref().is_some_and(|fault| matches!(fault.kind, FaultKind::Message { .. }));
        (!has_no_route).then_some(run)
    }
}

/// A program of one set.
fn one_set(set: &Arc<ConnectionSet>) -> Program {
    Program::new(vec![set.clone()]).expect("a set of a program")
}

/// Programs of one and several phases, sets of one and several words, full and half duplex, shallow and deep queues.
fn small_programs() -> Vec<Subject> {
    let machine = |spec: &str, change: &dyn Fn(&mut Parameters)| {
        let machine = Machine::from_spec(spec).expect("a machine");
        let mut parameters = machine.parameters().clone();
        change(&mut parameters);
        Arc::new(machine.with_parameters(parameters).expect("parameters in range"))
    };
    let set = |rows: Vec<(u32, u32, u32)>| {
        let connection =
            |(source, target, words)| Connection::new(CellId(source), CellId(target), words);
        ConnectionSet::new("s", rows.into_iter().map(connection).collect()).expect("a set")
    };
    let small = |name: &str, machine: &Arc<Machine>, set: ConnectionSet| {
        let program = Program::from(set);
        Subject::new(name.to_owned(), true, machine, program, CompileOptions::new())
            .expect("it fits")
    };
    let all = |name: &str,
               spec: &str,
               (cells, words): (u32, u32),
               channels: u32,
               depth: u32,
               duplex: &str| {
        let machine = machine(spec, &|p| {
            p.set("duplex", duplex).expect("a duplex");
            (p.channels_per_cell, p.channel_depth) = (channels, depth);
        });
        let pairs = (1..cells).flat_map(|k| (0..cells).map(move |c| (c, (c + k) % cells, words)));
        small(name, &machine, set(pairs.collect()))
    };
    let ring = machine("ring:5", &|p| p.streams = 3);
    let shift = vec![(0, 2, 40), (1, 3, 7), (2, 4, 1), (3, 0, 25), (4, 1, 40), (2, 2, 5)];
    vec![
        all("torus:3x2, all-to-all, 3 words", "torus:3x2", (6, 3), 40, 2, "full"),
        all("torus:3x2, all-to-all, 9 words", "torus:3x2", (6, 9), 3, 4, "half"),
        all("mesh:3x3, all-to-all, 2 words", "mesh:3x3", (9, 2), 4, 1, "full"),
        all("hypercube:3, all-to-all, 5 words", "hypercube:3", (8, 5), 5, 8, "half"),
        small("ring:5, six connections", &ring, set(shift)),
    ]
}

/// How a plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Plain,
    Checked,
    Recovery,
}

const OUTCOMES: [Outcome; 4] =
    [Outcome::Delivered, Outcome::Detected, Outcome::TimedOut, Outcome::Silent];

/// The columns of the table.
fn columns() -> impl Iterator<Item = (Mode, Outcome)> {
    let counted = [Mode::Plain, Mode::Checked].into_iter();
    let counted = counted.flat_map(|mode| OUTCOMES.map(|outcome| (mode, outcome)));
    let recovery = [Outcome::Delivered, Outcome::Refused].map(|outcome| (Mode::Recovery, outcome));
    counted.chain(recovery)
}

/// A row of the matrix.
#[derive(Clone, Debug, Default)]
struct Row {
    plans: u64,
    acted: u64,
    outcomes: BTreeMap<(Mode, Outcome), u64>,
    /// Clocks to detection with check words, of the small programs.
    clocks: Vec<u64>,
}

impl Row {
    /// Runs a plan in each mode.
    fn add(&mut self, subject: &Subject, way: Way, seed: u64, plan: &FaultPlan) {
        let run =
            |detection| subject.run(way, seed, plan, detection).expect("it ran without faults");
        let (plain, checked) = (run(Detection::Plain), run(Detection::Checked));
        let what = || format!("{}, {way:?}, seed {seed}:\n{plan}", subject.name);
        assert_ne!(checked.outcome, Outcome::Silent, "{}{checked:?}", what());
        for run in [&plain, &checked] {
            let is_named = match run.fault.as_ref().map(|fault| &fault.kind) {
                Some(FaultKind::Deadlock { waits, .. }) => !waits.is_empty(),
                _ => true,
            };
            assert!(is_named, "{}{run:?}", what());
        }
        let recovery = subject.recover(way, seed, plan);
        let is_over = [Outcome::Delivered, Outcome::Refused].contains(&recovery.outcome);
        assert!(is_over, "{}{:?} {:?}", what(), recovery.outcome, recovery.attempts);
        let outcomes = [
            (Mode::Plain, plain.outcome),
            (Mode::Checked, checked.outcome),
            (Mode::Recovery, recovery.outcome),
        ];
        self.plans += 1;
        self.acted += u64::from(checked.acted.iter().any(Option::is_some));
        for outcome in outcomes {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
        self.clocks.extend(checked.clocks_to_detection().filter(|_| subject.is_small));
    }

    fn line(&self, kind: &str) -> String {
        let mut clocks = self.clocks.clone();
        clocks.sort_unstable();
        let mut line =
            format!("| {kind} | {} | {} %", self.plans, 100 * self.acted / self.plans.max(1));
        for column in columns() {
            write!(line, " | {}", self.outcomes.get(&column).unwrap_or(&0)).expect("memory");
        }
        let [median, most] = [clocks.get(clocks.len() / 2), clocks.last()]
            .map(|clocks| clocks.map_or("-".to_owned(), u64::to_string));
        line + &format!(" | {median} | {most} |\n")
    }
}

/// What became of the plans that were run.
#[derive(Clone, Debug, Default)]
pub struct FaultMatrix {
    rows: BTreeMap<(Way, String), Row>,
    soak_programs: BTreeMap<Way, u64>,
    /// Lines of the table of prices.
    prices: String,
}

impl FaultMatrix {
    /// Runs so many plans in phases, half as many by messages and half as many by step plans. Calls `progress` with the
    /// number of plans run, now and then.
    ///
    /// # Panics
    /// If something does not hold that must ([`self`]); the message has the program and the plan.
    pub fn run(plans: u64, mut progress: impl FnMut(u64)) -> Self {
        let mut this = Self::default();
        let plans_of = |way| if way == Way::Phases { plans } else { plans / 2 };
        let programs = small_programs();
        for way in Way::ALL {
            let each = (plans_of(way) / 2).div_ceil(to_u64(programs.len()));
            for (number, subject) in (0u64..).zip(&programs) {
                this.add_price(subject, way);
                this.add(subject, way, (0..each).map(|round| number << 40 | round));
                progress(this.plans());
            }
        }
        let mut left: BTreeMap<Way, u64> =
            Way::ALL.map(|way| (way, plans_of(way) - plans_of(way) / 2)).into();
        for seed in 1.. {
            if left.values().all(|left| *left == 0) {
                break;
            }
            let Some(subject) = Subject::of_seed(seed) else { continue };
            for (&way, left) in &mut left {
                let count = PLANS_OF_SOAK_PROGRAM.min(*left);
                let seeds = (0..count).map(|round| seed << 8 | round);
                if count > 0 && this.add(&subject, way, seeds) {
                    *left -= count;
                    *this.soak_programs.entry(way).or_default() += 1;
                }
            }
            progress(this.plans());
        }
        this
    }

    /// Runs a plan of a subject for each seed; `false` if it cannot be exchanged this way.
    fn add(&mut self, subject: &Subject, way: Way, seeds: impl Iterator<Item = u64>) -> bool {
        let empty = FaultPlan::default();
        for seed in seeds {
            // The set, and so how far a run goes, depends on the seed.
            let Some(whole) = subject.run(way, seed, &empty, Detection::Checked) else {
                return false;
            };
            assert_eq!(whole.outcome, Outcome::Delivered, "{}, {way:?}: {whole:?}", subject.name);
            let faults = 1 + usize::from(seed % 4 == 3);
            let plan = FaultPlan::draw(subject.machine(), &whole.extent, seed, faults);
            assert_eq!(plan.to_string().parse::<FaultPlan>().as_ref(), Ok(&plan));
            let kind = if faults == 1 { plan.faults[0].kind() } else { "two of these" };
            self.rows.entry((way, kind.to_owned())).or_default().add(subject, way, seed, &plan);
        }
        true
    }

    fn add_price(&mut self, subject: &Subject, way: Way) {
        let clocks = |detection| {
            let run = subject.run(way, 0, &FaultPlan::default(), detection);
            run.map_or(0, |run| run.clock)
        };
        let (before, after) = (clocks(Detection::Plain), clocks(Detection::Checked));
        let percent = 100.0 * (to_f64(after) / to_f64(before) - 1.0);
        let what = match way {
            Way::Phases => "phases",
            Way::Messages => "messages",
            Way::Steps => "steps",
        };
        writeln!(
            self.prices,
            "| {} | {what} | {before} | {after} | {percent:+.1} % |",
            subject.name
        )
        .expect("memory");
    }

    /// Plans that were run.
    pub fn plans(&self) -> u64 {
        self.rows.values().map(|row| row.plans).sum()
    }

    /// Plans of which a fault acted.
    pub fn acted(&self) -> u64 {
        self.rows.values().map(|row| row.acted).sum()
    }

    /// Runs that ended with this outcome: in all ways, with check words or without.
    pub fn runs(&self, outcome: Outcome, checked: bool) -> u64 {
        let mode = if checked { Mode::Checked } else { Mode::Plain };
        self.rows.values().filter_map(|row| row.outcomes.get(&(mode, outcome))).sum()
    }

    /// Plans with which every word between live cells was delivered with recovery, in all ways.
    pub fn recovered(&self) -> u64 {
        let key = (Mode::Recovery, Outcome::Delivered);
        self.rows.values().filter_map(|row| row.outcomes.get(&key)).sum()
    }

    /// The matrix and the prices of check words, in Markdown.
    pub fn table(&self) -> String {
        let mut table = format!(
            "{} plans, of which {} acted; one half on the five programs below, the other half on programs of the soak \
             tests. Clocks are from the first action of a fault to its report, with check words, on the five programs.\n",
            self.plans(),
            self.acted(),
        );
        for way in Way::ALL {
            let rows = || self.rows.iter().filter(|((of, _), _)| *of == way);
            let plans: u64 = rows().map(|(_, row)| row.plans).sum();
            let soak_programs = self.soak_programs.get(&way).unwrap_or(&0);
            let count = 3 + columns().count() + 2;
            write!(
                table,
                "\n**{}**: {plans} plans, {soak_programs} programs of the soak tests.\n\n\
                 | fault | plans | acted | plain: delivered | detected | timed out | silent | checked: delivered \
                 | detected | timed out | silent | with recovery: delivered | refused | median clocks | max |\n{}\n",
                way.title(),
                "|---".repeat(count) + "|",
            )
            .expect("memory");
            rows().for_each(|((_, kind), row)| table += &row.line(kind));
        }
        table
            + &format!(
                "\nThe price of {CHECK_WORDS} check words on each stream or message:\n\n| program | exchanged by \
                 | clocks plain | clocks checked | more |\n|---|---|---|---|---|\n{}",
                self.prices
            )
    }
}
