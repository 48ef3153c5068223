//! The entry to the library: every function runs inside [`enter`].
//!
//! Nothing unwinds into the caller, which may be C. The description of an error is kept for the
//! calling thread until the next call of that thread that fails. (All cells of a worker share its
//! thread; between a call that fails and the next call of the same callback no other cell runs.)

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{CallFault, Status};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of a function; its fault becomes a status and a text.
pub(crate) fn enter(function: &str, body: impl FnOnce() -> Result<(), CallFault>) -> c_int {
    match caught(body) {
        Ok(()) => Status::Ok.code(),
        Err(fault) => {
            keep(function, &fault);
            fault.status.code()
        }
    }
}

/// The same for functions that return a value, and `otherwise` where there is none.
pub(crate) fn enter_for<T>(
    function: &str,
    otherwise: T,
    body: impl FnOnce() -> Result<T, CallFault>,
) -> T {
    caught(body).unwrap_or_else(|fault| {
        keep(function, &fault);
        otherwise
    })
}

/// Makes faults of panics.
fn caught<T>(body: impl FnOnce() -> Result<T, CallFault>) -> Result<T, CallFault> {
    // What a panic leaves half done belongs to the caller's handles; they are used again at most to
    // be freed, and their contents stay memory safe.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(unwound(&*payload)))
}

/// A panic has a text. What has none is how the runtime ends a program that calls on although its
/// run has ended.
fn unwound(payload: &(dyn Any + Send)) -> CallFault {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    match text.or_else(|| payload.downcast_ref::<&str>().copied()) {
        Some(text) => {
            CallFault::new(Status::Bug, format!("a bug of conset, please report it: {text}"))
        }
        None => CallFault::new(Status::Aborted, "the run has ended"),
    }
}

fn keep(function: &str, fault: &CallFault) {
    let text = format!("{function}: {}", fault.message).replace('\0', "\u{fffd}");
    let text = CString::new(text).unwrap_or_default();
    // Where the thread is ending nobody can ask any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// The text of the thread's last fault; empty if there was none.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        // SAFETY: the text lives until the next fault of this thread.
        unsafe { std::ffi::CStr::from_ptr(last()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn faults_and_panics_become_statuses_with_a_text() {
        assert_eq!(text(), "");
        let status = enter("f", || Err(CallFault::argument("a\0b")));
        assert_eq!((status, text().as_str()), (Status::BadArgument.code(), "f: a\u{fffd}b"));
        assert_eq!(enter("g", || Ok(())), 0);
        assert_eq!(text(), "f: a\u{fffd}b");
        let silent = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let status = enter("g", || panic!("no {}", "luck"));
        std::panic::set_hook(silent);
        assert_eq!(status, Status::Bug.code());
        assert!(text().ends_with("please report it: no luck"));
        let status = enter("h", || std::panic::resume_unwind(Box::new(())));
        assert_eq!((status, text().as_str()), (Status::Aborted.code(), "h: the run has ended"));
        std::thread::spawn(|| assert_eq!(text(), "")).join().unwrap();
    }
}
