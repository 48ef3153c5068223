//! Arrays as bytes: native integers of 64 bits, one after the other.

use conset_ir::InputError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const WIDTH: usize = size_of::<i64>();

/// The bytes of an array. The callers' values are ids, counts and clocks, which the limits of the
/// formats keep below 2^63; ids of files can use all 64 bits.
pub(crate) fn write<'py>(
    py: Python<'py>,
    values: impl ExactSizeIterator<Item = u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * WIDTH, |bytes| {
        for (slot, value) in bytes.chunks_exact_mut(WIDTH).zip(values) {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })
}

/// The values of an array.
pub(crate) fn read(bytes: &[u8]) -> impl ExactSizeIterator<Item = i64> + '_ {
    let value = |slot: &[u8]| i64::from_ne_bytes(slot.try_into().unwrap_or_default());
    bytes.chunks_exact(WIDTH).map(value)
}

/// The values of an array of numbers that are not negative and fit 32 bits; `wrong` makes the error
/// about the number at a position.
pub(crate) fn read_u32(
    bytes: &[u8],
    wrong: impl Fn(usize, i64) -> InputError,
) -> Result<Vec<u32>, InputError> {
    let number = |(at, value)| u32::try_from(value).map_err(|_| wrong(at, value));
    read(bytes).enumerate().map(number).collect()
}
