//! Long work beside the interpreter: interruption, progress, and panics.
//!
//! A [`run`] gives the work to threads of its own and waits for it without holding the interpreter
//! lock. Meanwhile the calling thread passes progress on to Python and lets Python handle signals.
//! If one of them raises an exception, the call ends with it at once; the work ends at its next
//! progress report, because nobody receives it. No other thread ever runs Python code.
//!
//! The threads belong to the call, so a process that was forked can compile too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use conset::{Observer, Progress};
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::failure::Failure;

/// How often signals are handled while nothing else happens.
const SIGNALS: Duration = Duration::from_millis(50);

/// Stack of each thread, as that of a program's main thread: readers may nest deeply.
const STACK_BYTES: usize = 8 << 20;

/// What unwinds through work that nobody waits for any more.
struct Abandoned;

enum Message<T> {
    Progress(Progress),
    End(Result<T, Failure>),
}

/// Runs `work`; `progress` is a Python function that is called with each report.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Observer<'_>) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (send, mut receive) = mpsc::channel();
    let threads = ThreadPoolBuilder::new().stack_size(STACK_BYTES).build();
    let threads = threads.map_err(|e| Failure::bug("starting threads", &e))?;
    threads.spawn(move || {
        let mut observer = |report| {
            if send.send(Message::Progress(report)).is_err() {
                resume_unwind(Box::new(Abandoned));
            }
        };
        // What a panic leaves half done belongs to the work and is dropped with it.
        let end = catch_unwind(AssertUnwindSafe(|| work(&mut observer)));
        let end = end.unwrap_or_else(|panic| Err(Failure::bug("a stage", text_of(&*panic))));
        // Nobody receives the end of abandoned work.
        let _ = send.send(Message::End(end));
    });
    loop {
        // A receiver may move between threads, but not be shared by them.
        let next = &mut receive;
        match py.detach(move || next.recv_timeout(SIGNALS)) {
            Ok(Message::Progress(report)) => {
                if let Some(progress) = progress {
                    call(progress, report)?;
                }
            }
            Ok(Message::End(end)) => return Ok(end?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::bug("a thread", "it ended without a result").into());
            }
        }
        py.check_signals()?;
    }
}

/// Calls `progress(kind, stage, a, b)`.
fn call(progress: &Bound<'_, PyAny>, report: Progress) -> PyResult<()> {
    let arguments = match report {
        Progress::Stage(name) => ("stage", name, 0, 0),
        Progress::Done { done, total } => ("done", "", done, total),
        Progress::Found { clocks, bound } => ("found", "", clocks, bound),
        // A report that this package does not know yet.
        _ => return Ok(()),
    };
    progress.call1(arguments).map(drop)
}

/// The message of a panic.
fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
