//! The runtime's duplicate of a communicator, made once and shared by all worlds.
//!
//! The duplicate keeps the messages of the runtime apart from those of the caller, whose
//! communicator is only read. MPI is initialised if it was not, and only then finalised at the end
//! of the process. MPI errors are returned as values ([`MpiError`]).
//!
//! Calls of MPI come from one thread at a time (`MPI_THREAD_SERIALIZED`); a lock around every call
//! ensures that. If MPI allows calls from its main thread only, other threads cannot run worlds,
//! and operations that may happen on any thread ([`Comm::abort`], a panic, dropping the last clone)
//! do without MPI there.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::Duration;

use conset_ir::convert::to_usize;

use super::backoff::{Backoff, Waited};
use super::ffi::{self, RawComm, to_c_int};
use crate::error::MpiError;
use crate::patience::{Patience, REPORT_AFTER, time_out_of_environment};

/// Held around every call into MPI.
static MPI: Mutex<()> = Mutex::new(());

pub(super) fn lock() -> MutexGuard<'static, ()> {
    // Nothing is kept behind the lock that a panic could leave half done.
    MPI.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls MPI under the lock, by a function of the shim that gives an error code; the text for an
/// error is fetched before anybody else can call.
#[inline]
pub(super) fn call(what: &'static str, call: impl FnOnce() -> c_int) -> Result<(), MpiError> {
    let _lock = lock();
    match call() {
        0 => Ok(()),
        code => Err(failed(what, code)),
    }
}

/// The error for a code. The caller holds the lock.
#[cold]
fn failed(what: &'static str, code: c_int) -> MpiError {
    let mut text: [c_char; 512] = [0; 512];
    // SAFETY: the shim writes at most the 512 bytes there are, a zero last.
    unsafe { ffi::conset_mpi_error_text(code, text.as_mut_ptr(), to_c_int(text.len())) };
    // SAFETY: the text ends with a zero.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    MpiError::Call { what, code, text }
}

/// Whether a message was longer than there was room for it.
pub(super) fn is_truncation(error: &MpiError) -> bool {
    let MpiError::Call { code, .. } = *error else { return false };
    let _lock = lock();
    // SAFETY: asks for the class of a code, and nothing else.
    unsafe { ffi::conset_mpi_is_truncation(code) != 0 }
}

/// Whether this thread may call MPI at all, which any thread may ask.
fn is_fit() -> bool {
    let mut fit = 0;
    // SAFETY: the shim writes one integer, and calls what MPI allows to any thread at any time.
    let code = unsafe { ffi::conset_mpi_fit(&raw mut fit) };
    code == 0 && fit != 0
}

/// Ends all ranks of the job. From a thread that may not call MPI, or while another thread does not
/// come back from there, this process alone ends; the launcher ends the others.
fn abort(comm: *mut RawComm, status: c_int) -> ! {
    const PAUSE: Duration = Duration::from_millis(1);
    const PAUSES: usize = 1000;
    if is_fit() {
        for _ in 0..PAUSES {
            let _lock = match MPI.try_lock() {
                Ok(lock) => lock,
                Err(TryLockError::Poisoned(lock)) => lock.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
            };
            // SAFETY: the caller says that the communicator lives; this thread may call MPI, and
            // has the lock.
            unsafe { ffi::conset_mpi_abort(comm, status) };
            break;
        }
    }
    std::process::abort()
}

/// The duplicate itself; freed with its last user.
struct Duplicate {
    /// Replaced after a run that failed.
    raw: AtomicPtr<RawComm>,
    /// A run is under way.
    busy: AtomicBool,
    /// Number of runs started, equal on all ranks.
    runs: AtomicU64,
}

impl Drop for Duplicate {
    fn drop(&mut self) {
        free(*self.raw.get_mut());
    }
}

/// Gives a duplicate back that nobody uses any more.
fn free(raw: *mut RawComm) {
    // On a thread that may not call MPI it is left as it is.
    if is_fit() {
        let _lock = lock();
        // SAFETY: the pointer came from `conset_comm_duplicate` and is not used afterwards.
        unsafe { ffi::conset_comm_free(raw) };
    }
}

/// The ranks that execute programs together. Cheap to clone: all clones are the same duplicate.
///
/// The last clone should go in the same order on all ranks, as `MPI_Comm_free` is collective in
/// name; libraries do not wait in it.
#[derive(Clone)]
pub struct Comm {
    duplicate: Arc<Duplicate>,
    rank: usize,
    size: usize,
    tags: i32,
    patience: Patience,
}

/// A duplicate that was just made.
struct NewDuplicate {
    raw: *mut RawComm,
    rank: usize,
    size: usize,
    tags: i32,
}

impl Comm {
    /// All ranks of the job. Initialises MPI if need be. Collective: every rank calls it.
    ///
    /// # Errors
    /// MPI cannot be used, or some rank does not call.
    pub fn world() -> Result<Self, MpiError> {
        start()?;
        let mut fortran = 0;
        call("find its world", || {
            // SAFETY: MPI is initialised; the shim writes one integer.
            unsafe { ffi::conset_mpi_world(&raw mut fortran) }
        })?;
        Self::duplicate(fortran)
    }

    /// The ranks of a communicator that the caller has, given as its Fortran integer
    /// (`MPI_Comm_c2f`). It is duplicated and otherwise left alone. Collective over its ranks.
    ///
    /// # Errors
    /// MPI cannot be used, there is no such communicator, or some rank does not call.
    pub fn from_fortran(comm: i32) -> Result<Self, MpiError> {
        start()?;
        Self::duplicate(comm)
    }

    /// This process alone (`MPI_COMM_SELF`): all cells on one rank, whatever the other ranks of
    /// the job do.
    ///
    /// # Errors
    /// MPI cannot be used.
    pub fn alone() -> Result<Self, MpiError> {
        start()?;
        let mut fortran = 0;
        call("find the process's own communicator", || {
            // SAFETY: MPI is initialised; the shim writes one integer.
            unsafe { ffi::conset_mpi_self(&raw mut fortran) }
        })?;
        Self::duplicate(fortran)
    }

    fn duplicate(fortran: i32) -> Result<Self, MpiError> {
        let time_out =
            time_out_of_environment().map_err(|value| MpiError::TimeOutSetting { value })?;
        let patience = Patience { report_after: REPORT_AFTER, time_out };
        let NewDuplicate { raw, rank, size, tags } = duplicate(fortran, patience, &|| Ok(()))?;
        let duplicate = Duplicate {
            raw: AtomicPtr::new(raw),
            busy: AtomicBool::new(false),
            runs: AtomicU64::new(0),
        };
        Ok(Self { duplicate: Arc::new(duplicate), rank, size, tags, patience })
    }

    /// Replaces the duplicate by another one, on which no message of a failed run is on its way.
    /// Collective; the caller has the communicator to itself ([`Comm::occupy`]). Until all ranks have
    /// come, it discards what was sent to it, so that none waits for that to be received.
    pub(super) fn renew(&self) -> Result<(), MpiError> {
        let fortran = {
            let _lock = lock();
            // SAFETY: the duplicate lives, and this thread has the lock.
            unsafe { ffi::conset_comm_fortran(self.raw()) }
        };
        let NewDuplicate { raw, .. } = duplicate(fortran, self.patience, &|| self.discard())?;
        free(self.duplicate.raw.swap(raw, Ordering::Relaxed));
        Ok(())
    }

    /// Receives what others have sent in a run that has failed, as far as it comes at once, and forgets
    /// it.
    pub(super) fn discard(&self) -> Result<(), MpiError> {
        call("discard a message", || {
            // SAFETY: the duplicate lives; what comes is received into memory of the shim.
            unsafe { ffi::conset_comm_discard(self.raw()) }
        })
    }

    /// Sets how long a rank waits for others before it aborts the job; it must be longer than any
    /// rank computes between two calls of the runtime. Without a time-out a rank waits as long as it
    /// takes, and reports long waits on standard error. The default is the number of seconds in the
    /// environment variable `CONSET_TIMEOUT`, or none.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.patience.time_out = timeout.into();
        self
    }

    /// Sets the length of a wait that is reported on standard error, with the awaited cells and
    /// ranks; the next report is after twice as long, and so on. The default is 10 seconds.
    #[must_use]
    pub fn report_after(mut self, time: Duration) -> Self {
        self.patience.report_after = time;
        self
    }

    /// This process's number, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Keeps other runs away until the result is dropped.
    pub(super) fn occupy(&self) -> Result<Occupied, MpiError> {
        if self.duplicate.busy.swap(true, Ordering::Acquire) {
            return Err(MpiError::Busy);
        }
        self.duplicate.runs.fetch_add(1, Ordering::Relaxed);
        Ok(Occupied(self.duplicate.clone()))
    }

    /// Number of runs started on the communicator, the current one included.
    pub(super) fn runs(&self) -> u64 {
        self.duplicate.runs.load(Ordering::Relaxed)
    }

    /// The largest tag.
    pub(super) fn tags(&self) -> i32 {
        self.tags
    }

    pub(super) fn raw(&self) -> *mut RawComm {
        self.duplicate.raw.load(Ordering::Relaxed)
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience
    }

    pub(super) fn backoff(&self) -> Backoff {
        self.backoff_of(1)
    }

    /// A wait that may take so many times as long as others.
    pub(super) fn backoff_of(&self, factor: u32) -> Backoff {
        Backoff::new(self.patience.times(factor))
    }

    /// Reports a long wait on standard error, which goes on.
    #[cold]
    pub(super) fn report_wait(&self, wait: &MpiError) {
        write_line(&format!("conset: {wait}; it goes on waiting\n"));
    }

    /// Ends all ranks of the job, with this exit status.
    pub fn abort(&self, status: i32) -> ! {
        abort(self.raw(), status)
    }

    /// Prints a reason on standard error and ends all ranks of the job: for a rank that cannot
    /// continue while others wait for it.
    pub fn abort_because(&self, why: &dyn std::fmt::Display) -> ! {
        self.print_reason(why);
        self.abort(1)
    }

    /// The former name of [`Comm::abort_because`].
    #[doc(hidden)]
    pub fn give_up(&self, why: &dyn std::fmt::Display) -> ! {
        self.abort_because(why)
    }

    /// [`Comm::abort_because`] after a time-out: first gives other ranks a moment to report what
    /// they wait for, as this rank may wait for one that waits itself.
    pub(super) fn abort_after_time_out(&self, why: &dyn std::fmt::Display) -> ! {
        self.print_reason(why);
        std::thread::sleep(Duration::from_millis(500));
        self.abort(1)
    }

    /// One write for the whole line: the launcher mixes what it reads from all ranks, and puts its
    /// own report of the abort between two writes.
    fn print_reason(&self, error: &dyn std::fmt::Display) {
        write_line(&format!("conset: rank {} ends the job: {error}\n", self.rank));
    }

    /// From now on a panic on any thread of this process ends the job, after the panic has been
    /// reported as before, even one that the program would catch. For programs of which a rank could
    /// panic between two runs, while the others wait for it. A panic of a cell's program within a run
    /// is an error of the run on all ranks, without this.
    pub fn abort_on_panic(&self) {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let comm = self.clone();
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                report(panic);
                // The hook's clone keeps the duplicate alive.
                abort(comm.raw(), 101);
            }));
        });
    }
}

/// A run has the communicator.
pub(super) struct Occupied(Arc<Duplicate>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl PartialEq for Comm {
    /// The same duplicate with the same time-out.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.duplicate, &other.duplicate) && self.patience == other.patience
    }
}

impl Eq for Comm {}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comm")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .field("timeout", &self.patience.time_out)
            .finish_non_exhaustive()
    }
}

/// Begins to duplicate a communicator, and waits until all ranks have come to that.
fn duplicate(
    fortran: i32,
    patience: Patience,
    meanwhile: &dyn Fn() -> Result<(), MpiError>,
) -> Result<NewDuplicate, MpiError> {
    let mut raw = std::ptr::null_mut();
    call("duplicate a communicator", || {
        // SAFETY: MPI is initialised; the shim writes one pointer.
        unsafe { ffi::conset_comm_duplicate(fortran, &raw mut raw) }
    })?;
    let (mut ready, mut rank, mut size, mut tags) = (0, 0, 0, 0);
    let mut backoff = Backoff::new(patience);
    loop {
        call("duplicate a communicator", || {
            // SAFETY: `raw` was just made; the shim writes four integers.
            unsafe {
                ffi::conset_comm_ready(
                    raw,
                    &raw mut ready,
                    &raw mut rank,
                    &raw mut size,
                    &raw mut tags,
                )
            }
        })?;
        if ready != 0 {
            return Ok(NewDuplicate { raw, rank: to_usize(rank), size: to_usize(size), tags });
        }
        meanwhile()?;
        let missing = |milliseconds| MpiError::Missing {
            rank: to_usize(rank),
            milliseconds,
            place: "the duplication of a communicator".to_owned(),
            awaited: vec![],
        };
        match backoff.wait() {
            Waited::Briefly | Waited::Long => {}
            Waited::Report(time) => {
                write_line(&format!("conset: {}; it goes on waiting\n", missing(time)));
            }
            // The duplicate is left as it is: MPI still works on it.
            Waited::TimedOut(time) => return Err(missing(time)),
        }
    }
}

/// One write for the whole line: the launcher mixes what it reads from all ranks.
fn write_line(line: &str) {
    // There is no way to report that standard error is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn start() -> Result<(), MpiError> {
    let mut fit = 0;
    call("initialise", || {
        // SAFETY: the shim writes one integer.
        unsafe { ffi::conset_mpi_start(&raw mut fit) }
    })?;
    if fit == 0 { Err(MpiError::Thread) } else { Ok(()) }
}

/// Whether this thread may call MPI.
pub(super) fn check_thread() -> Result<(), MpiError> {
    start()
}
