//! The stacks of cells, and the detection of stack overflows.
//!
//! A stack is reserved address space; the system commits pages when they are touched. Below each
//! stack is a guard of at least [`LEAST_GUARD`] inaccessible bytes. C compilers do not touch the
//! pages of a large frame in order, as Rust does, so a larger frame would skip a guard of one page
//! and reach the stack of another cell.
//!
//! All stacks of a worker are one reservation ([`Stacks`]). A fault in one of its guards ends the
//! process with a message that names the cell, and exit status [`OVERFLOW_STATUS`] (module `trap`).
//! It is not an error of the run: the code that overflowed may hold locks, those of the allocator
//! included, or may be in the middle of changing data that other cells read, and cannot be unwound.
//!
//! A frame that is larger than the guard and touched only beyond it still skips the guard.
//! [`StackBounds::check`] detects that at the next call of the cell from C, because the stack pointer is
//! outside the stack; it also rejects calls from C that would overflow within the library.
//!
//! Each stack with a guard takes two of the memory mappings that the system allows a process
//! (`vm.max_map_count`, usually 65,530). For many cells, guards are installed in the page tables if
//! the system supports that (Linux 6.13), which takes no mapping.
//!
//! On systems other than Unix, stacks are those of the coroutine library.

use crate::error::{CellError, RunError};
use conset_ir::CellId;

#[cfg(unix)]
mod reserve;
#[cfg(unix)]
mod trap;

#[cfg(unix)]
pub(crate) use reserve::{CellStack, Stacks};
#[cfg(unix)]
pub(crate) use trap::AlternateStack;

/// The exit status of a process in which a cell overflowed its stack.
pub const OVERFLOW_STATUS: i32 = 70;

/// The least bytes of a guard.
#[cfg(unix)]
const LEAST_GUARD: usize = 1 << 20;

/// Where a cell's stack lies: from `limit`, above the guard, up to `base`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackBounds {
    limit: usize,
    base: usize,
}

/// Bytes of a stack that a call of the library is left, unless the stack is small.
const LEFT_FOR_A_CALL: usize = 32 << 10;

impl StackBounds {
    /// Where nothing is known of a stack: on systems other than Unix, and on those of threads.
    #[cfg(any(test, not(unix)))]
    pub(crate) const UNKNOWN: Self = Self { limit: 0, base: 0 };

    /// Checks, at a call from C, that the caller has stayed within the stack and left enough of
    /// it. Where the caller is on other memory altogether, what it has overwritten nobody knows:
    /// that ends the process.
    pub(crate) fn check(&self, cell: CellId) -> Result<(), CellError> {
        let here = stack_pointer();
        let bytes = self.base - self.limit;
        if bytes == 0 {
            return Ok(());
        }
        if !(self.limit..=self.base).contains(&here) {
            #[cfg(unix)]
            trap::end_process(cell.0, bytes);
        }
        let used = self.base - here;
        if bytes - used < LEFT_FOR_A_CALL.min(bytes / 4) {
            return Err(CellError::Stack { cell, used, bytes });
        }
        Ok(())
    }
}

/// Where the stack ends that the caller is on.
#[inline(always)]
fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: copies a register.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let here = 0u8;
        pointer = (&raw const here).addr();
    }
    pointer
}

/// The coroutine library's own stacks.
#[cfg(not(unix))]
pub(crate) type CellStack = corosensei::stack::DefaultStack;

#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct Stacks {
    bytes: usize,
}

#[cfg(not(unix))]
impl Stacks {
    pub(crate) fn reserve(_: &[CellId], _: usize, bytes: usize) -> Result<Self, RunError> {
        Ok(Self { bytes })
    }

    pub(crate) fn get(&self, cell: CellId, _: usize) -> Result<(CellStack, StackBounds), RunError> {
        let stack = CellStack::new(self.bytes);
        let stack = stack.map_err(|error| no_stack(cell, self.bytes, error.to_string()))?;
        Ok((stack, StackBounds::UNKNOWN))
    }
}

/// Nothing: the coroutine library and the system handle overflows.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct AlternateStack;

#[cfg(not(unix))]
impl AlternateStack {
    pub(crate) fn install() -> Self {
        Self
    }
}

fn no_stack(cell: CellId, bytes: usize, message: String) -> RunError {
    RunError::Stack { cell, bytes, message }
}
