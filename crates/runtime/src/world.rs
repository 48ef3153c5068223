//! A world: a machine with an image, on which programs are run.

use std::sync::Arc;

use conset_fabric::FaultPlan;
use conset_ir::{CellId, Image};

use crate::cell::Cell;
use crate::error::{CellError, RunError};
use crate::executor::{Program, Results, RunSetup};
use crate::fabric_driver;
use crate::loaded_image::LoadedImage;
#[cfg(feature = "mpi")]
use crate::mpi;
use crate::report::RunReport;
use crate::threads::{self, ThreadOptions};

/// The transport of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The emulated machine, which moves every word and counts every clock.
    #[default]
    Fabric,
    /// Threads of this process, with several cells each; no clocks.
    Threads(ThreadOptions),
    /// The ranks of a communicator, with some of the cells each; no clocks.
    #[cfg(feature = "mpi")]
    Mpi(mpi::Comm),
}

/// A machine with an image, on which programs are run. Clones are cheap: they share the tables of
/// the image.
///
/// ```
/// use conset_runtime::ir::{Image, Machine};
/// use conset_runtime::{ThreadOptions, Transport, World};
///
/// // An image without sets, on which cells can only compute and send messages.
/// let world = World::new(Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?);
/// let world = world.on(Transport::Threads(ThreadOptions::workers(2)));
/// let (results, _report) = world.try_run(|cell| Ok(cell.id().index() + 1))?;
/// assert_eq!(results, [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    loaded: Arc<LoadedImage>,
    transport: Transport,
    stack_size: usize,
    trace: bool,
    same_places: bool,
    faults: Option<Arc<FaultPlan>>,
}

impl World {
    /// The default size of the stack of a cell, in bytes. Memory is committed on demand.
    pub const STACK_SIZE: usize = 1 << 20;

    /// A machine with an image loaded.
    pub fn new(image: impl Into<Arc<Image>>) -> Self {
        let loaded = Arc::new(LoadedImage::new(image.into()));
        Self {
            loaded,
            transport: Transport::Fabric,
            stack_size: Self::STACK_SIZE,
            trace: false,
            same_places: true,
            faults: None,
        }
    }

    /// Selects the transport; the default is the emulated machine.
    #[must_use]
    pub fn on(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Sets the size of the stack of each cell, in bytes. A program that overflows it ends the
    /// process, with a message that names the cell and exit status [`crate::OVERFLOW_STATUS`].
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Whether the report contains a trace of streams and switches, on the emulated machine.
    #[must_use]
    pub fn trace(mut self, trace: bool) -> Self {
        self.trace = trace;
        self
    }

    /// Whether all cells make each collective call at the same source location; true by default. A
    /// cell at another location has skipped a call or repeated one, and the run ends before any word
    /// of it is read ([`crate::RunError::Mismatch`]). Set it to false for programs whose cells make
    /// the same call at different locations (one branch for `c0`, another for the others); the
    /// number of the call and its set are still compared.
    #[must_use]
    pub fn same_places(mut self, same_places: bool) -> Self {
        self.same_places = same_places;
        self
    }

    /// Gives the emulated machine the faults of a plan. They act on everything that cells exchange: phases, step plans,
    /// sets by messages, messages between two cells, and rounds of epochs. Clocks and the words of links are counted over
    /// the whole run, and what is dead stays dead.
    ///
    /// A run that needs a dead part ends with the fault that names it ([`crate::RunError::Fault`]), as does one in which
    /// words are lost, repeated, or in the places of others. A changed value is received: cells have no check words
    /// here. What the program or the library does with it may be an error of another kind.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// let image = Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?;
    /// let world = World::new(image).faults("link c0 -> c1 dead at 100".parse()?);
    /// let run = world.try_run(|cell| match cell.id() {
    ///     CellId(0) => cell.msg_send(CellId(1), &[7u64; 100]),
    ///     CellId(1) => cell.msg_receive(CellId(0), &mut [0u64; 100]),
    ///     _ => Ok(()),
    /// });
    /// let error = run.unwrap_err().to_string();
    /// assert!(error.contains("message from c0 to c1") && error.contains("is dead"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = Some(Arc::new(plan));
        self
    }

    /// The transport.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.loaded.image
    }

    /// The cells that this process executes: all live cells with an agent, or over MPI those of this
    /// rank.
    pub fn own_cells(&self) -> Vec<CellId> {
        match &self.transport {
            #[cfg(feature = "mpi")]
            Transport::Mpi(comm) => mpi::cells(&self.loaded.live, comm),
            _ => self.loaded.live.to_vec(),
        }
    }

    /// Runs a program on every live cell with an agent, from clock 0 until all have ended. The
    /// results are in the order of cell ids. Over MPI this is collective over the ranks, and the
    /// results are those of [`World::own_cells`].
    ///
    /// # Errors
    /// The first failure: a call of a cell, a panic, calls of cells that do not match, a fault of the
    /// fabric, words that were not received. Programs still running then get
    /// [`crate::CellError::Aborted`] from their next call, and are unwound at the one after.
    pub fn run<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>) -> R + Sync,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        self.run_each(&program)
    }

    /// [`World::run`], compiled once for each type of result and not for each program.
    fn run_each<R: Send>(
        &self,
        program: &(dyn Fn(&mut Cell<'_>) -> R + Sync),
    ) -> Result<(Vec<R>, RunReport), RunError> {
        let results = Results::new(self.own_cells());
        let outcome = self.execute(&|cell| {
            let result = program(cell);
            results.keep(cell.id(), result);
        });
        results.of_run(outcome)
    }

    /// Runs a program that keeps its results.
    fn execute(&self, program: &Program<'_>) -> Result<RunReport, RunError> {
        let program = |cell: &mut Cell<'_>| {
            cell.same_places = self.same_places;
            program(cell);
            // An error is kept by the run.
            let _ = cell.check_completed();
        };
        let Self { loaded, stack_size, trace, .. } = self;
        let faults = self.faults.as_deref();
        if faults.is_some() && self.transport != Transport::Fabric {
            return Err(RunError::FaultsElsewhere);
        }
        let setup = RunSetup { loaded, stack_size: *stack_size, trace: *trace, faults };
        match &self.transport {
            Transport::Fabric => fabric_driver::run(setup, &program),
            Transport::Threads(options) => threads::run(setup, *options, &program),
            #[cfg(feature = "mpi")]
            Transport::Mpi(comm) => mpi::run(setup, comm, &program),
        }
    }

    /// [`World::run`] for programs that return the errors of their calls with `?`.
    ///
    /// # Errors
    /// As [`World::run`], and the first error in the order of cell ids that a program returned.
    pub fn try_run<R: Send>(
        &self,
        program: impl Fn(&mut Cell<'_>) -> Result<R, CellError> + Sync,
    ) -> Result<(Vec<R>, RunReport), RunError> {
        self.try_run_each(&program)
    }

    fn try_run_each<R: Send>(
        &self,
        program: &(dyn Fn(&mut Cell<'_>) -> Result<R, CellError> + Sync),
    ) -> Result<(Vec<R>, RunReport), RunError> {
        let (results, report) = self.run_each(program)?;
        let mut values = Vec::with_capacity(results.len());
        for (cell, result) in self.own_cells().into_iter().zip(results) {
            values.push(result.map_err(|error| RunError::Cell { cell, error })?);
        }
        Ok((values, report))
    }
}
