//! Ctrl-C during a search: the best plan that was found is kept.
//!
//! A search may take minutes, and most of its gain comes early. So the first Ctrl-C ends the search
//! and not the command, which checks, prints and writes the result as usual. Outside of a search, and
//! the second time, Ctrl-C ends the command at once. What ends a process or hangs up its terminal
//! (SIGTERM, SIGHUP) does the same.

use std::io::Write;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use conset::Interrupt;

/// The exit code of a command that a signal has ended: 128 plus the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// The number of searches that are under way.
static SEARCHES: AtomicUsize = AtomicUsize::new(0);

static QUIET: AtomicBool = AtomicBool::new(false);

/// The interrupt of all searches of this command.
static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// A search that is under way.
pub(crate) struct Search(());

impl Search {
    /// Begins a search. With `quiet`, nothing is printed when it is interrupted; for a search within
    /// another one, the outer one decides.
    pub(crate) fn begin(quiet: bool) -> Self {
        if SEARCHES.fetch_add(1, Ordering::Relaxed) == 0 {
            QUIET.store(quiet, Ordering::Relaxed);
        }
        INTERRUPT.get_or_init(|| {
            // Where no handler can be set, Ctrl-C ends the command.
            let _ = ctrlc::set_handler(on_signal);
            Interrupt::default()
        });
        Self(())
    }

    /// What ends the search.
    pub(crate) fn interrupt(&self) -> Interrupt {
        INTERRUPT.get().cloned().unwrap_or_default()
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        SEARCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a search of this command was interrupted.
pub(crate) fn is_requested() -> bool {
    INTERRUPT.get().is_some_and(Interrupt::is_requested)
}

/// Runs in a thread of its own.
fn on_signal() {
    let Some(interrupt) = INTERRUPT.get() else { process::exit(INTERRUPTED) };
    if SEARCHES.load(Ordering::Relaxed) == 0 || interrupt.is_requested() {
        process::exit(INTERRUPTED);
    }
    interrupt.request();
    if !QUIET.load(Ordering::Relaxed) {
        let told = "interrupted: keeping the best plan found so far (Ctrl-C again ends at once)";
        // If standard error cannot be written, nobody waits for the line.
        let _ = writeln!(anstream::stderr(), "{told}");
    }
}
