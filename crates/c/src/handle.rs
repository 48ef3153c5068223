//! Handles: the values behind the opaque pointers of C programs.
//!
//! A handle is a box with a tag before its value. The tag distinguishes kinds of handles (Fortran
//! has one type for all of them), and freed handles from live ones. A freed handle loses its value
//! at once, but its box stays until [`GRAVES`] others were freed after it, so that a double free or
//! a use after free is detected and no foreign memory is read.
//!
//! Not detected: pointers that never were handles, handles freed very long ago, and a handle that
//! one thread frees while another uses it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::memory::check_pointer;
use crate::status::{CallFault, Status};

/// Handles that are remembered after they were freed.
const GRAVES: usize = 1 << 12;

/// The tag of a handle that was freed.
const FREED: u64 = u64::from_ne_bytes(*b"cs freed");

/// What stands behind an opaque pointer.
#[repr(C)]
#[derive(Debug)]
pub struct Handle<T> {
    tag: u64,
    value: Option<T>,
}

/// What can stand there.
pub(crate) trait Tagged {
    /// Eight letters that tell it apart.
    const TAG: [u8; 8];
    /// What the header calls it.
    const NAME: &'static str;
}

fn tag_of<T: Tagged>() -> u64 {
    u64::from_ne_bytes(T::TAG)
}

pub(crate) fn handle<T: Tagged>(value: T) -> Handle<T> {
    Handle { tag: tag_of::<T>(), value: Some(value) }
}

/// The value behind a handle.
///
/// # Safety
/// The handle came from this library, and nobody frees it as long as `'a`.
pub(crate) unsafe fn value<'a, T: Tagged>(
    handle: *const Handle<T>,
    name: &str,
) -> Result<&'a T, CallFault> {
    check_pointer(handle, name)?;
    // SAFETY: all handles begin with their tag, so it can be read whatever kind this is.
    let tag = unsafe { handle.cast::<u64>().read() };
    if tag != tag_of::<T>() {
        let message = match tag {
            FREED => format!("{name} was freed"),
            _ => format!("{name} is no {}", T::NAME),
        };
        return Err(CallFault::new(Status::BadHandle, message));
    }
    // SAFETY: it is a handle of this kind, alive by the caller's promise.
    let value = unsafe { (*handle).value.as_ref() };
    value.ok_or_else(|| CallFault::new(Status::BadHandle, format!("{name} was freed")))
}

/// Hands a value out as a handle.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn give<T: Tagged>(
    place: *mut *mut Handle<T>,
    value: T,
) -> Result<(), CallFault> {
    check_pointer(place, "the place for the handle")?;
    let pointer = Box::into_raw(Box::new(handle(value)));
    // SAFETY: the place can be written, by the caller's promise.
    unsafe { place.write(pointer) };
    Ok(())
}

/// Frees a handle; null is none.
///
/// # Safety
/// The handle came from this library, and nobody uses it meanwhile.
pub(crate) unsafe fn free<T: Tagged>(handle: *mut Handle<T>) -> Result<(), CallFault> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise; the reference to the value is given up at once.
    unsafe { self::value(handle, "the handle") }?;
    // SAFETY: it is alive and of this kind, as was just seen, and nobody else uses it.
    let value = unsafe {
        (*handle).tag = FREED;
        (*handle).value.take()
    };
    bury(Grave { pointer: handle.cast(), open: open::<T> });
    // Last, as it may be long and is the value's own code.
    drop(value);
    Ok(())
}

/// A handle without a value, and how its memory is given back.
struct Grave {
    pointer: *mut (),
    open: unsafe fn(*mut ()),
}

// SAFETY: the box has no value any more, and nobody but `bury` gives it back.
unsafe impl Send for Grave {}

/// # Safety
/// The pointer is of `give::<T>`, and nobody uses it.
unsafe fn open<T>(pointer: *mut ()) {
    // SAFETY: it comes from `Box::into_raw` in `give`, for this type.
    drop(unsafe { Box::from_raw(pointer.cast::<Handle<T>>()) });
}

/// Remembers a handle that was freed, and forgets the one that was freed longest ago.
fn bury(grave: Grave) {
    static FREED_ONES: Mutex<VecDeque<Grave>> = Mutex::new(VecDeque::new());
    let mut graves = FREED_ONES.lock().unwrap_or_else(PoisonError::into_inner);
    graves.push_back(grave);
    if graves.len() > GRAVES
        && let Some(oldest) = graves.pop_front()
    {
        // SAFETY: it was buried with the function of its type, and is taken out once.
        unsafe { (oldest.open)(oldest.pointer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tagged for u8 {
        const TAG: [u8; 8] = *b"u8......";
        const NAME: &'static str = "u8";
    }

    impl Tagged for u16 {
        const TAG: [u8; 8] = *b"u16.....";
        const NAME: &'static str = "u16";
    }

    fn made(value: u8) -> *mut Handle<u8> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the place is of this function.
        unsafe { give(&raw mut handle, value).unwrap() };
        handle
    }

    #[test]
    fn handles_know_their_kind() {
        let handle = made(7);
        // SAFETY: the pointers are null or of this test.
        unsafe {
            assert_eq!(give(std::ptr::null_mut(), 1u8).unwrap_err().status, Status::NullPointer);
            assert_eq!(*value(handle, "x").unwrap(), 7);
            let other = handle.cast::<Handle<u16>>();
            assert_eq!(value(other, "x").unwrap_err().message, "x is no u16");
            assert_eq!(free(other).unwrap_err().status, Status::BadHandle);
            free(handle).unwrap();
            free::<u8>(std::ptr::null_mut()).unwrap();
        }
    }

    #[test]
    fn what_was_freed_is_found_out() {
        let handle = made(7);
        // SAFETY: the handles are of this test; `GRAVES` are remembered.
        unsafe {
            free(handle).unwrap();
            for _ in 0..GRAVES / 8 {
                free(made(1)).unwrap();
            }
            assert_eq!(value(handle, "x").unwrap_err().message, "x was freed");
            assert_eq!(free(handle).unwrap_err().status, Status::BadHandle);
        }
        for _ in 0..2 * GRAVES {
            // SAFETY: the handle was just made.
            unsafe { free(made(1)).unwrap() };
        }
    }
}
