//! Runs: a callback, executed by every cell, on a selected transport.
//!
//! On threads the callback is called from several threads at a time with the same `data`; the C
//! program must protect its shared data, as the header states.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

use conset::fabric::trace::routes::TracedRoutes;
use conset::fabric::{TraceSource, write_perfetto};
use conset::ir::Image;
use conset::ir::convert::index;
use conset_runtime::{RunReport, ThreadOptions, Transport, World};

use crate::cell::{ConsetCell, Turn, lend};
use crate::entry::enter;
use crate::handle::{self, Handle, Tagged, value};
use crate::image::{ConsetImage, write_file};
use crate::memory::{array_mut, options, text, write};
use crate::status::{CallFault, Status};

/// A communicator of MPI; of nothing where the library was built without.
#[derive(Debug)]
pub struct Communicator {
    #[cfg(feature = "mpi")]
    comm: conset_runtime::mpi::Comm,
}

/// `conset_communicator`.
pub type ConsetCommunicator = Handle<Communicator>;

impl Tagged for Communicator {
    const TAG: [u8; 8] = *b"cscommu1";
    const NAME: &'static str = "conset_communicator";
}

#[cfg(not(feature = "mpi"))]
pub(crate) const WITHOUT_MPI: &str = "this library was built without MPI; build it with the feature `mpi` \
                           (install.sh --mpi)";

/// Takes a communicator of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_communicator_new(
    fortran: c_int,
    time_out_ms: c_uint,
    communicator: *mut *mut ConsetCommunicator,
) -> c_int {
    enter("conset_communicator_new", || {
        let made = open(fortran, time_out_ms)?;
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { handle::give(communicator, made) }
    })
}

#[cfg(feature = "mpi")]
fn open(fortran: c_int, time_out_ms: c_uint) -> Result<Communicator, CallFault> {
    let comm = conset_runtime::mpi::Comm::from_fortran(fortran)?;
    let comm = match time_out_ms {
        0 => comm,
        time_out => comm.timeout(Duration::from_millis(time_out.into())),
    };
    Ok(Communicator { comm })
}

#[cfg(not(feature = "mpi"))]
fn open(_: c_int, _: c_uint) -> Result<Communicator, CallFault> {
    Err(CallFault::new(Status::Unsupported, WITHOUT_MPI))
}

/// The image that rank 0 makes, on all ranks.
#[cfg(feature = "mpi")]
pub(crate) fn broadcast(
    communicator: &Communicator,
    make: impl FnOnce() -> Result<Arc<Image>, CallFault>,
) -> Result<Arc<Image>, CallFault> {
    communicator.comm.broadcast_image(make)
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn broadcast(
    _: &Communicator,
    _: impl FnOnce() -> Result<Arc<Image>, CallFault>,
) -> Result<Arc<Image>, CallFault> {
    Err(CallFault::new(Status::Unsupported, WITHOUT_MPI))
}

/// Gives the communicator back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_communicator_free(communicator: *mut ConsetCommunicator) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_communicator_free", || unsafe { handle::free(communicator) });
}

/// `conset_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetOptions {
    /// Bytes of this structure.
    pub size: usize,
    /// `conset_transport`.
    pub transport: c_int,
    /// Threads; 0 for as many as there are cores.
    pub workers: c_uint,
    /// Milliseconds that a cell on threads may go without any call; 0 for ever.
    pub time_out_ms: c_uint,
    /// Bytes of a cell's stack; 0 for the usual.
    pub stack_bytes: usize,
    /// The communicator for MPI.
    pub communicator: *const ConsetCommunicator,
    /// A file for a trace of the run on the emulated machine; null for none.
    pub trace: *const c_char,
}

fn defaults() -> ConsetOptions {
    ConsetOptions {
        size: size_of::<ConsetOptions>(),
        transport: 0,
        workers: 0,
        time_out_ms: 0,
        stack_bytes: 0,
        communicator: std::ptr::null(),
        trace: std::ptr::null(),
    }
}

/// Sets the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_options_init(options: *mut ConsetOptions) -> c_int {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_options_init", || unsafe { write(options, "options", defaults()) })
}

/// `conset_report`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetReport {
    /// Clocks until all was done, on the emulated machine.
    pub clocks: u64,
    /// Context switches.
    pub switches: u64,
    /// Their clocks.
    pub switch_clocks: u64,
    /// Words delivered.
    pub words: u64,
    /// Words carried, counted once on every link.
    pub word_hops: u64,
}

impl From<RunReport> for ConsetReport {
    fn from(report: RunReport) -> Self {
        let RunReport { clocks, switches, switch_clocks, words, word_hops, .. } = report;
        Self { clocks, switches, switch_clocks, words, word_hops }
    }
}

/// `conset_program`.
pub type ConsetProgram = Option<unsafe extern "C" fn(*mut ConsetCell, *mut c_void) -> c_int>;

/// What callbacks are given beside their cell.
struct Data(*mut c_void);

// SAFETY: the pointer is never followed here; the callbacks that are given it may be called from
// other threads, which the header says.
unsafe impl Sync for Data {}

/// Runs a callback on every cell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_run(
    image: *const ConsetImage,
    options: *const ConsetOptions,
    program: ConsetProgram,
    data: *mut c_void,
    report: *mut ConsetReport,
) -> c_int {
    enter("conset_run", || {
        // SAFETY: the caller keeps the rules of `memory`.
        let (world, trace) = unsafe { world(image, options)? };
        let traced = world.image().clone();
        let program =
            program.ok_or_else(|| CallFault::new(Status::NullPointer, "program is null"))?;
        let data = &Data(data);
        let turn = Turn::of_none();
        let done = world.run(|cell| {
            let Data(data) = *data;
            // SAFETY: the caller gave the callback for such calls; the cell is lent for this one.
            let status = lend(cell, |lent| unsafe { program(lent, data) });
            if status != 0 {
                // The run keeps the error, unless it has ended already.
                let _ = cell.abort(format!("its program returned {status}"));
            }
        });
        drop(turn);
        let (_, found) = done?;
        if let (Some(path), Some(trace)) = (trace, &found.trace) {
            let routes = TracedRoutes::of_image(&traced);
            let mut text = Vec::new();
            write_perfetto(&mut text, &mut [TraceSource { trace, routes, label: "" }])
                .expect("memory takes all writes");
            write_file(path, &text)?;
        }
        if report.is_null() {
            return Ok(());
        }
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe { write(report, "report", found.into()) }
    })
}

/// The cells that a run executes in this process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_run_cells(
    image: *const ConsetImage,
    options: *const ConsetOptions,
    cells: *mut u32,
    room: usize,
    count: *mut usize,
) -> c_int {
    enter("conset_run_cells", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let found = world(image, options)?.0.own_cells();
            let cells = array_mut(cells, room.min(found.len()), "cells")?;
            cells.iter_mut().zip(&found).for_each(|(place, cell)| *place = cell.0);
            write(count, "count", found.len())
        }
    })
}

/// The image's world with a caller's options, and the file of its trace.
///
/// # Safety
/// The rules of `memory` hold for the pointers, and the options' pointers.
unsafe fn world<'a>(
    image: *const ConsetImage,
    options: *const ConsetOptions,
) -> Result<(World, Option<&'a str>), CallFault> {
    // SAFETY: the caller's promise.
    unsafe {
        // What was made of the image is shared by all such worlds.
        let world = value(image, "image")?.clone();
        let options = self::options(options, defaults())?;
        let stack = match options.stack_bytes {
            0 => World::STACK_SIZE,
            bytes => stack(bytes)?,
        };
        let trace = match options.trace.is_null() {
            true => None,
            false => Some(text(options.trace, "options.trace")?),
        };
        let world = world.on(transport(&options)?).stack_size(stack).trace(trace.is_some());
        Ok((world, trace))
    }
}

/// Stacks of which there can be one.
fn stack(bytes: usize) -> Result<usize, CallFault> {
    const LEAST: usize = 1 << 14;
    const MOST: usize = 1 << 40;
    if (LEAST..=MOST).contains(&bytes) {
        return Ok(bytes);
    }
    Err(CallFault::argument(format!("options.stack_bytes is {bytes}, expected {LEAST} to {MOST}")))
}

/// # Safety
/// The communicator is null or a handle.
unsafe fn transport(options: &ConsetOptions) -> Result<Transport, CallFault> {
    match options.transport {
        0 => Ok(Transport::Fabric),
        1 => {
            let workers = (options.workers > 0).then_some(index(options.workers));
            let time_out = u64::from(options.time_out_ms);
            let time_out = (time_out > 0).then(|| Duration::from_millis(time_out));
            let mut threads = ThreadOptions::default().time_out(time_out);
            threads.workers = workers;
            Ok(Transport::Threads(threads))
        }
        #[cfg(feature = "mpi")]
        2 => {
            // SAFETY: the caller's promise.
            let communicator = unsafe { value(options.communicator, "options.communicator")? };
            Ok(Transport::Mpi(communicator.comm.clone()))
        }
        #[cfg(not(feature = "mpi"))]
        2 => Err(CallFault::new(Status::Unsupported, WITHOUT_MPI)),
        other => {
            Err(CallFault::argument(format!("{other} is no transport (enum conset_transport)")))
        }
    }
}
