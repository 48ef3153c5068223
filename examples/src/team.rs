//! Compiling sets and running programs on cells, with measurements.
//!
//! A solver lists the sets it needs; [`Team::gather`] compiles them for a machine and loads the
//! image. Every cell then runs the program of the solver, with a [`Meter`] that counts its
//! computation in clocks and its calls.
//!
//! Clocks are those of the emulated machine: a floating point operation takes `--clocks-per-flop`,
//! and a call takes what the fabric charges. On threads all clocks are 0. Wall time is measured
//! everywhere and includes waiting for other cells.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use conset::ir::{CellId, ConnectionSet, Machine, Program, SetSteps};
use conset::steps::StepCompiler;
use conset::{Algorithm, Compiled, Compiler};
use conset_runtime::{By, Cell, CellError, Image, RunReport, ThreadOptions, Transport, World};

use crate::{Failure, failure};

/// Where and how a solver runs.
#[derive(clap::Args, Clone, Debug)]
pub struct TeamArgs {
    /// What carries the words.
    #[arg(long, value_enum, default_value_t)]
    pub transport: TransportArg,
    /// Threads on which the cells run, with --transport threads [default: one per core].
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// The machine that is compiled for: iwarp:4x4, torus:4x4x4, mesh:8x8, ring:16, ...
    #[arg(long, value_name = "SPEC", default_value = "iwarp")]
    pub machine: String,
    /// Router and scheduler.
    #[arg(long, value_enum, default_value_t)]
    pub algorithm: AlgorithmArg,
    /// The seed of every random choice.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Clocks that a cell takes for one operation on floating point numbers.
    #[arg(long, value_name = "CLOCKS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=1000))]
    pub clocks_per_flop: u64,
    /// How sets are exchanged.
    #[arg(long, value_enum, default_value_t)]
    pub by: ByArg,
}

/// What carries the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    /// The emulated machine, clock by clock.
    #[default]
    Fabric,
    /// Threads of this process.
    Threads,
    /// The ranks of an MPI job, each with some of the cells; start it with mpirun.
    #[cfg(feature = "mpi")]
    Mpi,
}

/// How sets are exchanged ([`By`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// By the compiled phases.
    #[default]
    Phases,
    /// By the messages of a compiled step plan.
    Steps,
    /// By a message for each connection.
    Messages,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> Self {
        match by {
            // The image has the one or the other.
            ByArg::Phases | ByArg::Steps => By::Phases,
            ByArg::Messages => By::Messages,
        }
    }
}

/// Router and scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AlgorithmArg {
    /// The ConSet paper's own.
    Paper,
    /// Several ways to plan, the best of them kept.
    #[default]
    Best,
}

impl Default for TeamArgs {
    fn default() -> Self {
        Self {
            transport: TransportArg::default(),
            workers: None,
            machine: "iwarp".to_owned(),
            algorithm: AlgorithmArg::default(),
            seed: 1,
            clocks_per_flop: 2,
            by: ByArg::default(),
        }
    }
}

impl TeamArgs {
    /// The machine.
    ///
    /// # Errors
    /// No such machine.
    pub fn machine(&self) -> Result<Arc<Machine>, Failure> {
        Ok(Arc::new(Machine::from_spec(&self.machine)?))
    }

    /// The compiler for a machine, with these options.
    pub fn compiler(&self, machine: &Arc<Machine>) -> Compiler<'static> {
        let algorithm = match self.algorithm {
            AlgorithmArg::Paper => Algorithm::Paper,
            AlgorithmArg::Best => Algorithm::Auto,
        };
        Compiler::new(machine).algorithm(algorithm).seed(self.seed)
    }

    /// The transport.
    ///
    /// # Errors
    /// `--workers` without threads, or no MPI job.
    pub fn transport(&self) -> Result<Transport, Failure> {
        if self.workers.is_some() && self.transport != TransportArg::Threads {
            return Err(failure("--workers: only --transport threads has workers"));
        }
        Ok(match self.transport {
            TransportArg::Fabric => Transport::Fabric,
            TransportArg::Threads => {
                let workers = self.workers.map(ThreadOptions::workers);
                Transport::Threads(workers.unwrap_or_default())
            }
            #[cfg(feature = "mpi")]
            TransportArg::Mpi => Transport::Mpi(conset_runtime::mpi::Comm::world()?),
        })
    }
}

/// The cells of a machine with the sets that they exchange.
#[derive(Debug)]
pub struct Team {
    world: World,
    clocks_per_flop: u64,
    sets: Vec<String>,
    speaks: bool,
}

/// Compiled sets, and what is said of them.
struct CompiledSets {
    sets: Vec<String>,
    image: Arc<Image>,
}

/// Compiles a program to step plans.
fn steps(
    args: &TeamArgs,
    machine: &Arc<Machine>,
    program: &Program,
) -> Result<CompiledSets, Failure> {
    let compiled = StepCompiler::new(machine).seed(args.seed).compile(program, &mut |_| ())?;
    let describe = |set: &SetSteps| {
        let (steps, clocks) = (&set.steps, set.predicted_clocks.unwrap_or(0));
        let (connections, messages) = (steps.set(), steps.messages());
        format!(
            "{}: {} connections, {} words, {} steps, {} messages, {clocks} clocks predicted",
            connections.name(),
            connections.len(),
            connections.words(),
            messages.steps(),
            messages.len(),
        )
    };
    let sets = compiled.schedule().sets().iter().map(describe).collect();
    Ok(CompiledSets { sets, image: compiled.image().clone() })
}

/// What was compiled to phases.
fn phases(compiled: &Compiled) -> CompiledSets {
    let describe = |set: &conset::ir::SetSchedule| {
        let routing = set.timetable.routing();
        format!(
            "{}: {} connections, {} words, {} phases, {} clocks predicted",
            routing.set().name(),
            routing.set().len(),
            routing.set().words(),
            routing.phases().len(),
            set.predicted_clocks
        )
    };
    let sets = compiled.schedule().sets().iter().map(describe).collect();
    CompiledSets { sets, image: compiled.image().clone() }
}

/// Compiles once: over MPI on rank 0 alone, which sends the image to the others.
fn once(
    transport: &Transport,
    compile: impl FnOnce() -> Result<Arc<Image>, Failure>,
) -> Result<Arc<Image>, Failure> {
    match transport {
        #[cfg(feature = "mpi")]
        Transport::Mpi(comm) => comm.broadcast_image(compile),
        _ => compile(),
    }
}

impl Team {
    /// Compiles sets for a machine.
    ///
    /// # Errors
    /// Sets that the machine cannot do.
    pub fn gather(
        args: &TeamArgs,
        machine: &Arc<Machine>,
        sets: Vec<ConnectionSet>,
    ) -> Result<Self, Failure> {
        let transport = args.transport()?;
        let mut described = Vec::new();
        let image = once(&transport, || {
            let compiled = match args.by {
                ByArg::Steps => {
                    let sets = sets.into_iter().map(Arc::new).collect();
                    steps(args, machine, &Program::new(sets)?)?
                }
                _ => phases(&args.compiler(machine).compile_sets(sets)?),
            };
            described = compiled.sets;
            Ok(compiled.image)
        })?;
        Ok(Self::on_image(args, transport, CompiledSets { sets: described, image }))
    }

    /// The cells of a program that was compiled to phases; with `--by steps` it is compiled again, to
    /// steps.
    ///
    /// # Errors
    /// A transport that is not there.
    pub fn of(args: &TeamArgs, compiled: &Compiled) -> Result<Self, Failure> {
        let schedule = compiled.schedule();
        let sets = match args.by {
            ByArg::Steps => steps(args, schedule.machine(), &schedule.program())?,
            _ => phases(compiled),
        };
        Ok(Self::on_image(args, args.transport()?, sets))
    }

    /// The cells of a machine without sets, for programs that only use epochs and messages.
    ///
    /// # Errors
    /// A transport that is not there.
    pub fn without_sets(args: &TeamArgs, machine: &Arc<Machine>) -> Result<Self, Failure> {
        let image = Arc::new(Image::new(machine.clone(), Vec::new())?);
        Ok(Self::on_image(args, args.transport()?, CompiledSets { sets: Vec::new(), image }))
    }

    fn on_image(args: &TeamArgs, transport: Transport, compiled: CompiledSets) -> Self {
        let speaks = is_first(&transport);
        let world = World::new(compiled.image).on(transport);
        Self { sets: compiled.sets, speaks, world, clocks_per_flop: args.clocks_per_flop }
    }

    /// The image that all cells have loaded.
    pub fn image(&self) -> &Arc<Image> {
        self.world.image()
    }

    /// The cells that run in this process: all, but over MPI.
    pub fn own_cells(&self) -> Vec<CellId> {
        self.world.own_cells()
    }

    /// Runs a program on every cell; the results are those of [`Team::own_cells`].
    ///
    /// # Errors
    /// What went wrong in the run.
    pub fn run<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>, &mut Meter) -> Result<R, CellError> + Sync,
    ) -> Result<(Vec<R>, Account), Failure> {
        let begin = Instant::now();
        let (results, report) = self.world.try_run(|cell| {
            let mut meter =
                Meter { clocks_per_flop: self.clocks_per_flop, spent: Spent::default() };
            let result = program(cell, &mut meter)?;
            Ok((result, meter.spent))
        })?;
        let (results, spent) = results.into_iter().unzip();
        let (sets, wall) = (self.sets.clone(), begin.elapsed());
        Ok((results, Account { sets, spent, report, wall, alone: None, speaks: self.speaks }))
    }

    /// Times an exchange by itself, with no computation between one and the next: `exchange` is
    /// called with what `prepare` made for the cell. Of many calls the median is taken, of all
    /// cells the slowest.
    ///
    /// # Errors
    /// What went wrong in the run.
    pub fn time<B>(
        &self,
        prepare: impl Fn(CellId) -> B + Sync,
        exchange: impl Fn(&mut Cell<'_>, &mut B) -> Result<(), CellError> + Sync,
    ) -> Result<Calls, Failure> {
        let (timed, _) = self.world.try_run(|cell| {
            let mut buffers = prepare(cell.id());
            // What is made when first needed is not timed.
            exchange(cell, &mut buffers)?;
            let mut calls = [Calls::default(); TIMED];
            for call in &mut calls {
                call.count(cell, |cell| exchange(cell, &mut buffers))?;
            }
            calls.sort_unstable_by_key(|call| (call.clocks, call.wall));
            Ok(calls[TIMED / 2])
        })?;
        Ok(timed.into_iter().max_by_key(|call| (call.clocks, call.wall)).unwrap_or_default())
    }
}

/// Whether this process is the one of the job that tells the user.
fn is_first(transport: &Transport) -> bool {
    match transport {
        #[cfg(feature = "mpi")]
        Transport::Mpi(comm) => comm.rank() == 0,
        _ => true,
    }
}

/// What each cell has been dealt, by cell id: cells without a part have the default.
///
/// # Errors
/// Not one place for each part.
pub fn by_cell<T: Default>(
    cells: usize,
    place: &[CellId],
    parts: Vec<T>,
) -> Result<Vec<T>, Failure> {
    if place.len() != parts.len() {
        return Err(failure(format!("{} places for {} parts", place.len(), parts.len())));
    }
    let mut dealt: Vec<T> = Vec::new();
    dealt.resize_with(cells, T::default);
    for (cell, part) in place.iter().zip(parts) {
        dealt[cell.index()] = part;
    }
    Ok(dealt)
}

/// Exchanges of which the median is taken.
const TIMED: usize = 51;

/// Counts what one cell does.
#[derive(Debug)]
pub struct Meter {
    clocks_per_flop: u64,
    spent: Spent,
}

/// What one cell did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Clocks of its own work.
    pub compute: u64,
    /// Exchanges of vectors.
    pub exchanges: Calls,
    /// Reductions and broadcasts.
    pub collectives: Calls,
}

/// Calls to the machine, with what they took including the wait for other cells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Clocks in all.
    pub clocks: u64,
    /// Wall time in all.
    pub wall: Duration,
}

impl Meter {
    /// Accounts for so many operations on floating point numbers.
    ///
    /// # Errors
    /// Only the end of the run.
    pub fn compute(&mut self, cell: &mut Cell<'_>, flops: usize) -> Result<(), CellError> {
        let clocks = (flops as u64).saturating_mul(self.clocks_per_flop);
        self.spent.compute = self.spent.compute.saturating_add(clocks);
        cell.compute(clocks)
    }

    /// Counts a call as an exchange.
    ///
    /// # Errors
    /// The call's.
    pub fn exchange<'w, R>(
        &mut self,
        cell: &mut Cell<'w>,
        call: impl FnOnce(&mut Cell<'w>) -> Result<R, CellError>,
    ) -> Result<R, CellError> {
        self.spent.exchanges.count(cell, call)
    }

    /// Counts a call as a collective one.
    ///
    /// # Errors
    /// The call's.
    pub fn collective<'w, R>(
        &mut self,
        cell: &mut Cell<'w>,
        call: impl FnOnce(&mut Cell<'w>) -> Result<R, CellError>,
    ) -> Result<R, CellError> {
        self.spent.collectives.count(cell, call)
    }
}

impl Calls {
    fn count<'w, R>(
        &mut self,
        cell: &mut Cell<'w>,
        call: impl FnOnce(&mut Cell<'w>) -> Result<R, CellError>,
    ) -> Result<R, CellError> {
        let (clock, begin) = (cell.clock(), Instant::now());
        let result = call(cell)?;
        self.count += 1;
        self.clocks += cell.clock() - clock;
        self.wall += begin.elapsed();
        Ok(result)
    }

    fn mean(&self) -> String {
        let count = self.count.max(1);
        let microseconds = self.wall.as_secs_f64() * 1e6 / count as f64;
        match self.clocks / count {
            0 => format!("{microseconds:.1} us"),
            clocks => format!("{microseconds:.1} us (of emulation), {clocks} clocks"),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.clocks += other.clocks;
        self.wall += other.wall;
    }
}

/// What a run took.
#[derive(Clone, Debug)]
pub struct Account {
    /// A line for each compiled set.
    pub sets: Vec<String>,
    /// What each cell of this process spent.
    pub spent: Vec<Spent>,
    /// The machine's own account.
    pub report: RunReport,
    /// Wall time of the run, start and end of the cells included.
    pub wall: Duration,
    /// Exchanges by themselves ([`Team::time`]), where they were timed.
    pub alone: Option<Calls>,
    /// Whether this process is the one of the job that tells the user.
    pub speaks: bool,
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for set in &self.sets {
            writeln!(f, "set {set}")?;
        }
        let (mut exchanges, mut collectives) = (Calls::default(), Calls::default());
        for spent in &self.spent {
            exchanges.merge(&spent.exchanges);
            collectives.merge(&spent.collectives);
        }
        let cells = self.spent.len().max(1) as u64;
        if let Some(alone) = &self.alone {
            writeln!(f, "an exchange by itself: {}", alone.mean())?;
        }
        for (name, calls) in [("exchanges", &exchanges), ("collectives", &collectives)] {
            let (times, mean) = (calls.count / cells, calls.mean());
            if times > 0 {
                let all = calls.wall.as_secs_f64() * 1e3 / cells as f64;
                writeln!(
                    f,
                    "{name}: {times} by each of {cells} cells, {mean} with waiting, together {all:.1} ms"
                )?;
            }
        }
        if self.report.clocks > 0 {
            let compute = self.spent.iter().map(|spent| spent.compute);
            let (sum, most) = (compute.clone().sum::<u64>(), compute.max().unwrap_or(0));
            let clocks = self.report.clocks;
            writeln!(
                f,
                "clocks: {clocks}; computation {} (mean) to {most} (most); communication and waiting {} \
                 (mean), {:.1} %",
                sum / cells,
                clocks - sum / cells,
                100.0 * (clocks - sum / cells) as f64 / clocks as f64,
            )?;
        }
        write!(f, "wall time: {:.3} s", self.wall.as_secs_f64())
    }
}
