//! Going on after faults of the hardware: drain, report, compile what is left for the machine as it is, continue.
//!
//! [`run`] executes a program on a machine with faults, in *attempts*. An attempt ends with the program, or with a fault that
//! is noticed. Then
//!
//! 1. everything arrives that still moves, and the channels are emptied ([`exchange_or_drain`](conset_fabric::Fabric::exchange_or_drain));
//! 2. parts that have stopped for ever are taken out of the machine, as is a cell for which a context switch waited;
//! 3. connections from and to dead cells are lost, and reported by name;
//! 4. what is left, the words of streams that were not delivered and the later sets, is compiled for the
//!    machine without the dead parts. It reuses the schedule before as far as it still fits ([`Compiler::reuse`](crate::Compiler::reuse)), and the
//!    checker verifies it;
//! 5. the same fabric continues with the new image, at the clock at which it was drained.
//!
//! [`run`] does this in phases, [`run_messages`] with a message for each connection, and [`run_steps`] by step plans, of which what
//! is left gets new plans. With messages, the network is emptied as soon as a router finds a word that no header came before;
//! what receivers notice lets the others arrive before.
//!
//! Every word is handed over once: with the stream or message that delivers it. If one arrived wrongly (words are missing,
//! repeated or changed), its words are sent again. If those of one connection arrive wrongly more often than
//! [`RecoveryOptions::repeats`], the link of its route with most such streams is taken out of the machine too.
//!
//! A program that does not fit the remaining machine is refused, with the connections that have no path
//! any more. Compiling takes no clocks here: the clocks are those of the fabric.

mod carrier;
mod driver;
mod repair;
mod rest;

use std::fmt;
use std::sync::Arc;

use conset_fabric::messages::MessageOptions;
use conset_fabric::{
    Detection, Fault, FaultPlan, FaultPlanError, FaultyPart, Outcome, synthetic_word,
};
use conset_ir::convert::to_u64;
use conset_ir::{CellId, ConnectionId, Machine, Program};

use crate::steps::CompiledSteps;
use crate::{CompileError, CompileOptions, Compiled};
use carrier::{Carrier, MessageCarrier, PhaseCarrier};
use driver::Driver;

/// Options of [`run`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryOptions {
    /// What cells notice.
    pub detection: Detection,
    /// How often words of a connection that arrived wrongly are sent again over the same links.
    pub repeats: u32,
    /// The greatest number of attempts.
    pub max_attempts: usize,
    /// The options of the compilations.
    pub compile: CompileOptions,
}

impl Default for RecoveryOptions {
    fn default() -> Self {
        let compile = CompileOptions::default();
        Self { detection: Detection::Checked, repeats: 2, max_attempts: 64, compile }
    }
}

impl RecoveryOptions {
    /// Sets [`RecoveryOptions::detection`].
    #[must_use]
    pub fn detection(self, detection: Detection) -> Self {
        Self { detection, ..self }
    }

    /// Sets [`RecoveryOptions::repeats`].
    #[must_use]
    pub fn repeats(self, repeats: u32) -> Self {
        Self { repeats, ..self }
    }

    /// Sets [`RecoveryOptions::compile`].
    #[must_use]
    pub fn compile(self, compile: CompileOptions) -> Self {
        Self { compile, ..self }
    }
}

/// The words of a program: what is sent, and where received words go. Sets are numbered in the order of the program.
pub trait ProgramWords {
    /// The value of a word that the source of a connection sends.
    fn sent(&self, set: usize, connection: ConnectionId, word: u32) -> u64;
    /// Takes a word that the target of a connection has received. It is called once for each word that is delivered.
    fn received(&mut self, set: usize, connection: ConnectionId, word: u32, value: u64);
}

/// A connection in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedConnection {
    /// The name of the set.
    pub set: String,
    /// The name of the connection, or its id.
    pub name: String,
    /// The cell that sends.
    pub source: CellId,
    /// The cell that receives.
    pub target: CellId,
    /// The words that were not delivered.
    pub words: u64,
}

impl fmt::Display for NamedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { set, name, source, target, .. } = self;
        write!(f, "{set}/{name} ({source} -> {target})")
    }
}

/// What was done after a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Parts that were taken out of the machine: they are dead, or spoil words.
    pub removed: Vec<FaultyPart>,
    /// Connections whose words arrived wrongly and are sent again.
    pub repeated: Vec<NamedConnection>,
    /// Connections of dead cells, with the words that nobody gets any more.
    pub lost: Vec<NamedConnection>,
    /// Connections of what is left that keep phases, routes and channels.
    pub kept: usize,
    /// Connections that were moved to make room for others.
    pub moved: usize,
    /// Connections that were routed again: around a dead part, or because other words are left.
    pub rerouted: usize,
    /// Connections of sets that reuse nothing.
    pub recompiled: usize,
}

/// The execution up to a fault, or to the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The clock at its begin.
    pub begin: u64,
    /// The clock at its end, when the channels were empty.
    pub end: u64,
    /// The phases that were completed.
    pub phases: usize,
    /// The words that were delivered.
    pub words: u64,
    /// The words that were discarded from channels, check words included.
    pub discarded: u64,
    /// The fault that ended it.
    pub fault: Option<Fault>,
    /// What was done then.
    pub repair: Option<Repair>,
}

/// The execution of a program with recovery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recovery {
    /// Delivered if every word has arrived whose source and target are alive; refused if what is left does not fit
    /// the remaining machine; detected or timed out if the number of attempts did not suffice; silent if words are wrong.
    pub outcome: Outcome,
    /// The attempts, at least one.
    pub attempts: Vec<Attempt>,
    /// Why the rest was refused.
    pub refusal: Option<String>,
    /// The connections that were not delivered although their cells are alive: those without a path, if
    /// the rest was refused and there are any; otherwise all that are left.
    pub undelivered: Vec<NamedConnection>,
    /// The machine without the parts that were removed.
    pub machine: Arc<Machine>,
    /// The clock at which each fault of the plan acted first.
    pub acted: Vec<Option<u64>>,
    /// Words that arrived with another value than was sent; known for
    /// [`SyntheticWords`] only ([`SyntheticWords::judge`]), and 0 otherwise.
    pub wrong_words: u64,
    /// Words that arrived again after they had been delivered, and were dropped.
    pub repeated_words: u64,
}

impl Recovery {
    /// The clock at the end.
    pub fn clock(&self) -> u64 {
        self.attempts.last().map_or(0, |attempt| attempt.end)
    }

    /// The words that were delivered.
    pub fn words(&self) -> u64 {
        self.attempts.iter().map(|attempt| attempt.words).sum()
    }

    /// The connections of dead cells.
    pub fn lost(&self) -> impl Iterator<Item = &NamedConnection> {
        self.attempts.iter().filter_map(|attempt| attempt.repair.as_ref()).flat_map(|r| &r.lost)
    }
}

/// Why a program could not be executed with recovery.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The plan names a part that the machine does not have.
    #[error(transparent)]
    Plan(#[from] FaultPlanError),
    /// What is left could not be compiled, although it fits the machine.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// Executes all sets of a program in order, on a machine with faults, and continues after each fault that is noticed.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::fabric::Outcome;
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::recovery::{RecoveryOptions, run_synthetic};
/// use conset::Compiler;
///
/// let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
/// let machine = Arc::new(Machine::from_spec("torus:4x4")?);
/// let set = ConnectionSet::new("ring", ring.collect())?;
/// let compiled = Compiler::new(&machine).compile(&set.into())?;
/// let plan = "link c0 -> c1 dead at 600".parse()?;
/// let recovery = run_synthetic(&compiled, &plan, 1, &RecoveryOptions::default())?;
/// assert_eq!((recovery.outcome, recovery.words()), (Outcome::Delivered, 1600));
/// assert_eq!(recovery.attempts.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`RecoveryError`].
pub fn run(
    compiled: &Compiled,
    plan: &FaultPlan,
    words: &mut dyn ProgramWords,
    options: &RecoveryOptions,
) -> Result<Recovery, RecoveryError> {
    let mut carrier = PhaseCarrier::new(compiled, plan, options)?;
    execute(&mut carrier, compiled.image().machine(), words, options)
}

/// [`run`] by messages, one for each connection, in the order that `messages` states (its seed is for random orders). Messages
/// find their routes by themselves, so nothing is compiled; each is delivered or sent again as a whole.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::fabric::Outcome;
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::recovery::{RecoveryOptions, SyntheticWords, run_messages};
///
/// let ring = (0..16).map(|cell| Connection::new(CellId(cell), CellId((cell + 1) % 16), 100));
/// let machine = Arc::new(Machine::from_spec("torus:4x4")?);
/// let program = ConnectionSet::new("ring", ring.collect())?.into();
/// let (plan, options) = ("cell c3 dead at 300".parse()?, RecoveryOptions::default());
/// let (mut words, orders) = (SyntheticWords::new(1), Default::default());
/// let recovery = run_messages(&machine, &program, orders, &plan, &mut words, &options)?;
/// assert_eq!((recovery.outcome, recovery.lost().count()), (Outcome::Delivered, 2));
/// assert_eq!((recovery.words(), words.wrong()), (1400, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`RecoveryError`].
pub fn run_messages(
    machine: &Arc<Machine>,
    program: &Program,
    messages: MessageOptions,
    plan: &FaultPlan,
    words: &mut dyn ProgramWords,
    options: &RecoveryOptions,
) -> Result<Recovery, RecoveryError> {
    let mut carrier = MessageCarrier::of_sets(machine, program, messages, plan, options)?;
    execute(&mut carrier, machine, words, options)
}

/// [`run`] by step plans: words that have not reached the targets of their connections are compiled to other plans, and sent
/// again by their sources.
///
/// # Errors
/// See [`RecoveryError`].
pub fn run_steps(
    compiled: &CompiledSteps,
    plan: &FaultPlan,
    words: &mut dyn ProgramWords,
    options: &RecoveryOptions,
) -> Result<Recovery, RecoveryError> {
    let mut carrier = MessageCarrier::of_steps(compiled, plan, options)?;
    execute(&mut carrier, compiled.schedule().machine(), words, options)
}

/// Executes what is loaded, and continues after each fault.
fn execute(
    carrier: &mut dyn Carrier,
    machine: &Arc<Machine>,
    words: &mut dyn ProgramWords,
    options: &RecoveryOptions,
) -> Result<Recovery, RecoveryError> {
    let mut driver = Driver::new(carrier, machine, options);
    let (mut attempts, mut repeated_words, mut refused) = (Vec::new(), 0, None);
    let outcome = loop {
        let (mut attempt, interruption) = driver.attempt(words);
        let Some(interruption) = interruption else {
            attempts.push(attempt);
            break Outcome::Delivered;
        };
        repeated_words += interruption.repeated;
        if attempts.len() + 1 >= options.max_attempts {
            attempts.push(attempt);
            break Outcome::of_fault(&interruption.fault.kind);
        }
        match driver.repair(&interruption)? {
            Ok(repair) => attempt.repair = Some(repair),
            Err(refusal) => refused = Some(refusal),
        }
        attempts.push(attempt);
        if refused.is_some() {
            break Outcome::Refused;
        }
        if driver.is_complete() {
            break Outcome::Delivered;
        }
    };
    let undelivered = match &refused {
        Some(refusal) if !refusal.without_path.is_empty() => refusal.without_path.clone(),
        _ => driver.connections_left(),
    };
    Ok(Recovery {
        outcome,
        attempts,
        refusal: refused.map(|refusal| refusal.message),
        undelivered,
        acted: driver.faults_acted(),
        machine: driver.machine().clone(),
        repeated_words,
        wrong_words: 0,
    })
}

/// [`run`] with words that depend on `seed`. The outcome is silent if any of them arrives with another value.
///
/// # Errors
/// See [`RecoveryError`].
pub fn run_synthetic(
    compiled: &Compiled,
    plan: &FaultPlan,
    seed: u64,
    options: &RecoveryOptions,
) -> Result<Recovery, RecoveryError> {
    let mut words = SyntheticWords::new(seed);
    let recovery = run(compiled, plan, &mut words, options)?;
    Ok(words.judge(recovery))
}

/// Words that are all different, and the number of those that arrived with other values.
#[derive(Clone, Debug)]
pub struct SyntheticWords {
    seed: u64,
    wrong: u64,
}

impl SyntheticWords {
    /// Words that depend on a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, wrong: 0 }
    }

    /// Words that arrived with another value than was sent.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// A run with these words, which is silent if any of them arrived with another value.
    #[must_use]
    pub fn judge(&self, recovery: Recovery) -> Recovery {
        let outcome = if self.wrong > 0 { Outcome::Silent } else { recovery.outcome };
        Recovery { outcome, wrong_words: self.wrong, ..recovery }
    }
}

impl ProgramWords for SyntheticWords {
    fn sent(&self, set: usize, connection: ConnectionId, word: u32) -> u64 {
        synthetic_word(self.seed ^ to_u64(set) << 48, connection, word)
    }

    fn received(&mut self, set: usize, connection: ConnectionId, word: u32, value: u64) {
        self.wrong += u64::from(value != self.sent(set, connection, word));
    }
}
