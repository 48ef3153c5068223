//! Pointers from C: handles, arrays, texts.
//!
//! What can be seen of a pointer is checked: that it is not null, is aligned, and that the size
//! fits the address space; and of a handle its tag, which tells kinds of handles apart (Fortran
//! has one type for all of them). What cannot be seen the caller promises, by the rules at the top
//! of `conset.h`:
//!
//! * an array has as many elements as the call says, and nobody else writes to it during the call
//!   (reads neither, where the call writes);
//! * a handle came from this library and was not freed, and nobody frees it during the call;
//! * a text ends with a zero byte.

use std::ffi::{CStr, c_char, c_int, c_void};

use conset_runtime::Op;

use crate::status::{Fault, Status};

/// What stands behind an opaque pointer.
#[repr(C)]
#[derive(Debug)]
pub struct Handle<T> {
    tag: u64,
    pub(crate) value: T,
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
    Handle { tag: tag_of::<T>(), value }
}

fn null(name: &str) -> Fault {
    Fault::new(Status::NullPointer, format!("{name} is null"))
}

/// Not null and aligned.
fn check_pointer<T>(pointer: *const T, name: &str) -> Result<(), Fault> {
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        let align = align_of::<T>();
        return Err(Fault::argument(format!("{name} is not aligned to {align} bytes")));
    }
    Ok(())
}

/// The value behind a handle.
///
/// # Safety
/// The rules above hold for the handle as long as `'a`.
pub(crate) unsafe fn value<'a, T: Tagged>(
    handle: *const Handle<T>,
    name: &str,
) -> Result<&'a T, Fault> {
    check_pointer(handle, name)?;
    // SAFETY: all handles begin with their tag, so it can be read whatever kind this is.
    let tag = unsafe { handle.cast::<u64>().read() };
    if tag != tag_of::<T>() {
        let message = format!("{name} is no {}, or was freed", T::NAME);
        return Err(Fault::new(Status::BadHandle, message));
    }
    // SAFETY: it is a handle of this kind, alive by the caller's promise.
    Ok(unsafe { &(*handle).value })
}

/// Hands a value out as a handle.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn give<T: Tagged>(place: *mut *mut Handle<T>, value: T) -> Result<(), Fault> {
    check_pointer(place, "the place for the handle")?;
    let pointer = Box::into_raw(Box::new(handle(value)));
    // SAFETY: the place can be written, by the caller's promise.
    unsafe { place.write(pointer) };
    Ok(())
}

/// Frees a handle; null is none.
///
/// # Safety
/// The rules above hold for the handle, and nobody uses it afterwards.
pub(crate) unsafe fn free<T: Tagged>(handle: *mut Handle<T>) -> Result<(), Fault> {
    if handle.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { value(handle, "the handle") }?;
    // SAFETY: such handles come from `Box::into_raw` in `give`; the tag is wiped out so that a
    // second free is likely to be found out as long as the memory is not used again.
    unsafe {
        (*handle).tag = 0;
        drop(Box::from_raw(handle));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn write<T>(place: *mut T, name: &str, value: T) -> Result<(), Fault> {
    check_pointer(place, name)?;
    // SAFETY: the place can be written, by the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

fn check_array<T>(pointer: *const T, count: usize, name: &str) -> Result<(), Fault> {
    check_pointer(pointer, name)?;
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Fault::argument(format!("{name}: {count} elements are more than memory has"))),
    }
}

/// An array; it may be null where it has no elements.
///
/// # Safety
/// The rules above hold for the array as long as `'a`.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(pointer, count, name)?;
    // SAFETY: not null, aligned, of possible size; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// An array that is written; it may be null where it has no elements.
///
/// # Safety
/// The rules above hold for the array as long as `'a`.
pub(crate) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T], Fault> {
    if count == 0 {
        return Ok(&mut []);
    }
    check_array(pointer, count, name)?;
    // SAFETY: as in `array`.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// A text.
///
/// # Safety
/// The rules above hold for the text as long as `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Fault> {
    check_pointer(pointer, name)?;
    // SAFETY: it ends with a zero byte, by the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|error| Fault::argument(format!("{name} is not UTF-8: {error}")))
}

/// Options: a structure that begins with its size, as the caller knows it. What the caller does not
/// know of keeps its default; null is all defaults.
///
/// # Safety
/// The structure has as many bytes as it says.
pub(crate) unsafe fn options<T: Copy>(pointer: *const T, defaults: T) -> Result<T, Fault> {
    if pointer.is_null() {
        return Ok(defaults);
    }
    check_pointer(pointer, "options")?;
    // SAFETY: such structures begin with their size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<usize>() || size > size_of::<T>() {
        return Err(Fault::argument(format!(
            "options.size is {size}, expected {} (use the function that sets the defaults)",
            size_of::<T>()
        )));
    }
    let mut all = defaults;
    // SAFETY: both have that many bytes; the fields are plain numbers and pointers, for which
    // all bits are values.
    unsafe {
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut all).cast::<u8>(), size);
    }
    Ok(all)
}

/// The operation of a number.
pub(crate) fn op(number: c_int) -> Result<Op, Fault> {
    match number {
        0 => Ok(Op::Copy),
        1 => Ok(Op::Add),
        2 => Ok(Op::Min),
        3 => Ok(Op::Max),
        _ => Err(Fault::argument(format!("{number} is no operation (enum conset_op)"))),
    }
}

/// The types of numbers that travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Double,
    Float,
    Int64,
    Int32,
}

impl Type {
    pub(crate) fn of(number: c_int) -> Result<Self, Fault> {
        match number {
            0 => Ok(Type::Double),
            1 => Ok(Type::Float),
            2 => Ok(Type::Int64),
            3 => Ok(Type::Int32),
            _ => Err(Fault::argument(format!("{number} is no type (enum conset_type)"))),
        }
    }
}

/// Evaluates an expression with `$W` being the type of a number; a function cannot, as types are
/// no arguments.
macro_rules! typed {
    ($number:expr, $W:ident => $body:expr) => {
        match $crate::memory::Type::of($number)? {
            $crate::memory::Type::Double => {
                type $W = f64;
                $body
            }
            $crate::memory::Type::Float => {
                type $W = f32;
                $body
            }
            $crate::memory::Type::Int64 => {
                type $W = i64;
                $body
            }
            $crate::memory::Type::Int32 => {
                type $W = i32;
                $body
            }
        }
    };
}
pub(crate) use typed;

/// Vectors that are written must not overlap.
///
/// # Safety
/// The rules above hold for all vectors as long as `'a`.
pub(crate) unsafe fn vectors<'a, W>(
    pointers: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> Result<Vec<&'a mut [W]>, Fault> {
    // SAFETY: the caller's promise.
    let (pointers, words) =
        unsafe { (array(pointers, count, "vectors")?, array(words, count, "words")?) };
    let mut ranges = Vec::with_capacity(count);
    for (row, (&pointer, &words)) in pointers.iter().zip(words).enumerate() {
        if words > 0 {
            check_array(pointer.cast::<W>(), words, &format!("vectors[{row}]"))?;
            ranges.push((pointer.addr(), pointer.addr() + words * size_of::<W>()));
        }
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Err(Fault::argument("two vectors overlap"));
    }
    let mut all = Vec::with_capacity(count);
    for (row, (&pointer, &words)) in pointers.iter().zip(words).enumerate() {
        // SAFETY: the caller's promise; they do not overlap.
        all.push(unsafe { array_mut(pointer.cast::<W>(), words, &format!("vectors[{row}]"))? });
    }
    Ok(all)
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

    #[test]
    fn handles_know_their_kind() {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointers are null or of this test.
        unsafe {
            assert_eq!(give(std::ptr::null_mut(), 1u8).unwrap_err().status, Status::NullPointer);
            give(&raw mut handle, 7u8).unwrap();
            assert_eq!(*value(handle, "x").unwrap(), 7);
            let other = handle.cast::<Handle<u16>>();
            assert_eq!(value(other, "x").unwrap_err().message, "x is no u16, or was freed");
            assert_eq!(free(other).unwrap_err().status, Status::BadHandle);
            free(handle).unwrap();
            free::<u8>(std::ptr::null_mut()).unwrap();
        }
    }

    #[test]
    fn arrays_are_checked() {
        let words = [1u32, 2];
        // SAFETY: the pointers are null, refused, or of this test.
        unsafe {
            assert!(array::<u32>(std::ptr::null(), 0, "x").unwrap().is_empty());
            assert_eq!(
                array::<u32>(std::ptr::null(), 1, "x").unwrap_err().status,
                Status::NullPointer
            );
            let odd = words.as_ptr().byte_add(1);
            assert!(array(odd, 1, "x").unwrap_err().message.contains("aligned to 4"));
            assert!(array(words.as_ptr(), usize::MAX / 2, "x").is_err());
            assert_eq!(array(words.as_ptr(), 2, "x").unwrap(), words);
        }
    }

    #[test]
    fn options_of_older_callers_are_filled_up() {
        let defaults = [24usize, 5, 6];
        let (older, newer, none) = ([16usize, 9, 99], [32usize, 0, 0], [0usize, 0, 0]);
        // SAFETY: the arrays are as long as they say, or refused.
        unsafe {
            assert_eq!(options(std::ptr::null(), defaults).unwrap(), defaults);
            assert_eq!(options(&raw const older, defaults).unwrap(), [16, 9, 6]);
            assert!(options(&raw const newer, defaults).is_err());
            assert!(options(&raw const none, defaults).is_err());
        }
    }
}
