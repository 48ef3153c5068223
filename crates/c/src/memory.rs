//! Pointers from C: arrays, texts, options.
//!
//! All that can be checked of a pointer is checked: that it is not null, is aligned, and that the
//! size fits the address space. The rest is the responsibility of the caller, by the rules at the
//! top of `conset.h`:
//!
//! * an array has as many elements as the call states, and nobody else writes to it during the call
//!   (or reads it, if the call writes);
//! * a text ends with a zero byte.

use std::ffi::{CStr, c_char, c_int, c_void};

use conset_runtime::{By, Op};

use crate::status::{CallFault, Status};

fn null(name: &str) -> CallFault {
    CallFault::new(Status::NullPointer, format!("{name} is null"))
}

/// Not null and aligned.
pub(crate) fn check_pointer<T>(pointer: *const T, name: &str) -> Result<(), CallFault> {
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        let align = align_of::<T>();
        return Err(CallFault::argument(format!("{name} is not aligned to {align} bytes")));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn write<T>(place: *mut T, name: &str, value: T) -> Result<(), CallFault> {
    check_pointer(place, name)?;
    // SAFETY: the place can be written, by the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

pub(crate) fn check_array<T>(pointer: *const T, count: usize, name: &str) -> Result<(), CallFault> {
    check_pointer(pointer, name)?;
    let bytes =
        count.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX.unsigned_abs());
    match bytes.and_then(|bytes| pointer.addr().checked_add(bytes)) {
        Some(_) => Ok(()),
        None => {
            Err(CallFault::argument(format!("{name}: {count} elements are more than memory has")))
        }
    }
}

/// Where an array begins and ends.
fn range<T>(array: &[T]) -> std::ops::Range<usize> {
    let begin = array.as_ptr().addr();
    begin..begin + size_of_val(array)
}

/// An array that is read and one that is written must not overlap. They are looked at as the
/// caller gave them, before there are references to both.
///
/// # Safety
/// The rules above hold for both arrays as long as `'a`.
pub(crate) unsafe fn read_and_written<'a, T>(
    (from, read, from_name): (*const T, usize, &str),
    (into, written, into_name): (*mut T, usize, &str),
) -> Result<(&'a [T], &'a mut [T]), CallFault> {
    // SAFETY: the caller's promise; the reference for reading is the only one here.
    let there = range(unsafe { array(into.cast_const(), written, into_name)? });
    // SAFETY: the caller's promise.
    let from = unsafe { array(from, read, from_name)? };
    let here = range(from);
    if here.start < there.end && there.start < here.end {
        return Err(CallFault::argument(format!("{from_name} and {into_name} overlap")));
    }
    // SAFETY: the caller's promise; the arrays do not overlap.
    Ok((from, unsafe { array_mut(into, written, into_name)? }))
}

/// An array; it may be null where it has no elements.
///
/// # Safety
/// The rules above hold for the array as long as `'a`.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<&'a [T], CallFault> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(pointer, count, name)?;
    // SAFETY: not null, aligned, of possible size; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Lists that stand one behind the other: `first` says where each begins, and ends with where the
/// last ends.
///
/// # Safety
/// `first` has `count + 1` elements, `items` as many as its last says.
pub(crate) unsafe fn lists_of<'a, T>(
    count: usize,
    (first, first_name): (*const usize, &str),
    (items, items_name): (*const T, &str),
) -> Result<Vec<&'a [T]>, CallFault> {
    let longer = count.checked_add(1).ok_or_else(|| CallFault::argument("too many lists"))?;
    // SAFETY: the caller's promise.
    let first = unsafe { array(first, longer, first_name)? };
    if first[0] != 0 {
        return Err(CallFault::argument(format!("{first_name}[0] is {}, expected 0", first[0])));
    }
    if let Some(row) = first.windows(2).position(|pair| pair[1] < pair[0]) {
        let (here, next) = (first[row], first[row + 1]);
        let message = format!("{first_name}[{}] is {next}, expected at least {here}", row + 1);
        return Err(CallFault::argument(message));
    }
    // SAFETY: the caller's promise.
    let items = unsafe { array(items, first[count], items_name)? };
    Ok(first.windows(2).map(|pair| &items[pair[0]..pair[1]]).collect())
}

/// An array that is written; it may be null where it has no elements.
///
/// # Safety
/// The rules above hold for the array as long as `'a`.
pub(crate) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    name: &str,
) -> Result<&'a mut [T], CallFault> {
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
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, CallFault> {
    check_pointer(pointer, name)?;
    // SAFETY: it ends with a zero byte, by the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|error| CallFault::argument(format!("{name} is not UTF-8: {error}")))
}

/// Options: a structure that begins with its size, as the caller knows it. What the caller does not
/// know of keeps its default; null is all defaults.
///
/// # Safety
/// The structure has as many bytes as it says.
pub(crate) unsafe fn options<T: Copy>(pointer: *const T, defaults: T) -> Result<T, CallFault> {
    if pointer.is_null() {
        return Ok(defaults);
    }
    check_pointer(pointer, "options")?;
    // SAFETY: such structures begin with their size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < size_of::<usize>() || size > size_of::<T>() {
        return Err(CallFault::argument(format!(
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

/// The numbers of `conset_by`.
pub(crate) const BY_PHASES: c_int = 0;
pub(crate) const BY_MESSAGES: c_int = 1;

/// The transfer method of a number of `conset_by`.
pub(crate) fn by_of(number: c_int) -> Result<By, CallFault> {
    match number {
        BY_PHASES => Ok(By::Phases),
        BY_MESSAGES => Ok(By::Messages),
        other => Err(CallFault::argument(format!("{other} is no method (enum conset_by)"))),
    }
}

/// The operation of a number.
pub(crate) fn op(number: c_int) -> Result<Op, CallFault> {
    match number {
        0 => Ok(Op::Copy),
        1 => Ok(Op::Add),
        2 => Ok(Op::Min),
        3 => Ok(Op::Max),
        _ => Err(CallFault::argument(format!("{number} is no operation (enum conset_op)"))),
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
    pub(crate) fn of(number: c_int) -> Result<Self, CallFault> {
        match number {
            0 => Ok(Type::Double),
            1 => Ok(Type::Float),
            2 => Ok(Type::Int64),
            3 => Ok(Type::Int32),
            _ => Err(CallFault::argument(format!("{number} is no type (enum conset_type)"))),
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

/// Where several vectors are, and how many words each has.
///
/// # Safety
/// The rules above hold for both arrays as long as `'a`.
unsafe fn rows<'a, P, W>(
    pointers: *const P,
    words: *const usize,
    count: usize,
    address: impl Fn(&P) -> *const c_void,
) -> Result<(&'a [P], &'a [usize]), CallFault> {
    // SAFETY: the caller's promise.
    let (pointers, words): (&[P], &[usize]) =
        unsafe { (array(pointers, count, "vectors")?, array(words, count, "words")?) };
    for (row, (pointer, &words)) in pointers.iter().zip(words).enumerate() {
        if words > 0 {
            check_array(address(pointer).cast::<W>(), words, &format!("vectors[{row}]"))?;
        }
    }
    Ok((pointers, words))
}

/// Several vectors, to be read.
///
/// # Safety
/// The rules above hold for all vectors as long as `'a`.
pub(crate) unsafe fn vectors<'a, W>(
    pointers: *const *const c_void,
    words: *const usize,
    count: usize,
) -> Result<Vec<&'a [W]>, CallFault> {
    // SAFETY: the caller's promise.
    let (pointers, words) = unsafe { rows::<_, W>(pointers, words, count, |&p| p)? };
    let vectors = pointers.iter().zip(words);
    // SAFETY: the caller's promise.
    vectors.map(|(&p, &words)| unsafe { array(p.cast::<W>(), words, "vectors") }).collect()
}

/// Several vectors, to be written: they must not overlap.
///
/// # Safety
/// The rules above hold for all vectors as long as `'a`.
pub(crate) unsafe fn vectors_mut<'a, W>(
    pointers: *const *mut c_void,
    words: *const usize,
    count: usize,
) -> Result<Vec<&'a mut [W]>, CallFault> {
    // SAFETY: the caller's promise.
    let (pointers, words) = unsafe { rows::<_, W>(pointers, words, count, |p| p.cast_const())? };
    let vectors = pointers.iter().zip(words).filter(|(_, words)| **words > 0);
    let mut ranges: Vec<_> =
        vectors.map(|(p, &words)| (p.addr(), p.addr() + words * size_of::<W>())).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Err(CallFault::argument("two vectors overlap"));
    }
    let vectors = pointers.iter().zip(words);
    // SAFETY: the caller's promise; they do not overlap.
    vectors.map(|(&p, &words)| unsafe { array_mut(p.cast::<W>(), words, "vectors") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
