//! Reserved address space for the stacks of the cells of a worker, each with a guard below it.
//!
//! The reservation begins with a page or more that lists the cells, for the message of an overflow.
//! The stacks share the reservation; the last of them releases it.

use std::io::Error;
use std::num::NonZeroUsize;
use std::ptr::null_mut;
use std::rc::Rc;

use conset_ir::CellId;
use corosensei::stack::{MIN_STACK_SIZE, Stack, StackPointer};

use super::trap::ListedRegion;
use super::{LEAST_GUARD, StackBounds, no_stack};
use crate::error::RunError;

/// Bytes that are added to a guard: with them it is no multiple of what a page of page tables covers,
/// so that the tops of stacks do not all compete for the same lines of a cache.
const STAGGER: usize = 68 << 10;

/// Bytes of a guard where there is address space.
const GUARD: usize = (16 << 20) + STAGGER;

/// In runs of more cells guards have the least bytes. A core that resumes one cell after the other
/// then looks nearly every stack up in the page tables, and with wide guards every stack has a line of
/// its own at two of their levels: a third of the time of a reduction of 10,000 cells.
const FEW: usize = 256;

/// In runs of more cells guards are to cost no mappings, which takes longer to set up.
const MANY: usize = 24_000;

/// Linux's number for guards in the page tables (6.13).
#[cfg(target_os = "linux")]
const MADV_GUARD_INSTALL: libc::c_int = 102;

#[cfg(target_os = "linux")]
const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
#[cfg(not(target_os = "linux"))]
const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON;

/// Reserved address space; given back when it is dropped.
#[derive(Debug)]
struct Region {
    start: NonZeroUsize,
    bytes: usize,
}

impl Region {
    /// Reserves address space that is inaccessible.
    fn new(bytes: usize) -> Result<Self, Error> {
        // SAFETY: asks for new memory, wherever there is room.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, FLAGS, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let start = NonZeroUsize::new(start.addr()).ok_or_else(Error::last_os_error)?;
        Ok(Self { start, bytes })
    }

    /// Lets a part of it be read and written.
    fn open(&self, at: usize, bytes: usize) -> Result<(), Error> {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let part = std::ptr::with_exposed_provenance_mut(self.start.get() + at);
        // SAFETY: the part lies in the region, in which nothing is that Rust knows of.
        let code = unsafe { libc::mprotect(part, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }

    #[cfg(target_os = "linux")]
    fn advise(&self, at: usize, bytes: usize, advice: libc::c_int) -> bool {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let part = std::ptr::with_exposed_provenance_mut(self.start.get() + at);
        // SAFETY: as in `open`; neither piece of advice that is given changes what lies there, as
        // nothing does yet.
        unsafe { libc::madvise(part, bytes, advice) == 0 }
    }

    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unused_self, reason = "as on Linux")]
    fn advise(&self, _: usize, _: usize, _: libc::c_int) -> bool {
        false
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let start = std::ptr::with_exposed_provenance_mut(self.start.get());
        // SAFETY: the region was mapped by `new`; whoever used it has ended, as stacks share it.
        unsafe { libc::munmap(start, self.bytes) };
    }
}

/// The stacks of some cells.
#[derive(Debug)]
pub(crate) struct Stacks {
    shared: Rc<SharedRegion>,
    /// Bytes that were asked for, before they were rounded.
    asked: usize,
    /// Guards are in the page tables.
    light: bool,
}

/// What the stacks of a reservation share. The list goes first: no fault is looked up in a region
/// that is being given back.
#[derive(Debug)]
struct SharedRegion {
    _listed: ListedRegion,
    region: Region,
    shape: StackGeometry,
}

/// How a region is divided: a list of cells, and for each cell a guard and a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackGeometry {
    pub(super) head: usize,
    pub(super) guard: usize,
    pub(super) stack: usize,
    pub(super) cells: usize,
}

impl StackGeometry {
    pub(super) fn stride(&self) -> usize {
        self.guard + self.stack
    }

    fn new(cells: usize, stack: usize, guard: usize) -> Option<Self> {
        let page = page_size();
        let round = |bytes: usize| Some(bytes.checked_add(page - 1)? & !(page - 1));
        let head = round(cells.checked_mul(size_of::<u32>())?.max(1))?;
        let stack = round(stack.max(MIN_STACK_SIZE))?;
        Some(Self { head, guard: round(guard)?, stack, cells })
    }

    fn bytes(&self) -> Option<usize> {
        let stride = self.guard.checked_add(self.stack)?;
        stride.checked_mul(self.cells)?.checked_add(self.head)
    }
}

fn page_size() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(1 << 16)
}

impl Stacks {
    /// Reserves stacks of so many bytes for some of the cells that this process runs, of which
    /// there are `all`.
    pub(crate) fn reserve(cells: &[CellId], all: usize, bytes: usize) -> Result<Self, RunError> {
        let first = cells.first().copied().unwrap_or_default();
        let many = all > MANY;
        let widest = if all > FEW { LEAST_GUARD + STAGGER } else { GUARD };
        let mut why = "more than can be addressed".to_owned();
        for guard in [widest, LEAST_GUARD] {
            let Some(shape) = StackGeometry::new(cells.len(), bytes, guard) else { continue };
            let Some(all) = shape.bytes() else { continue };
            match Region::new(all) {
                Ok(region) => {
                    return Self::divide(region, shape, cells, (bytes, many))
                        .map_err(|error| no_stack(first, bytes, error.to_string()));
                }
                Err(error) => {
                    why = format!("{error}, reserving {all} bytes for {} stacks", cells.len());
                }
            }
        }
        Err(no_stack(first, bytes, why))
    }

    fn divide(
        region: Region,
        shape: StackGeometry,
        cells: &[CellId],
        (asked, many): (usize, bool),
    ) -> Result<Self, Error> {
        region.open(0, shape.head)?;
        let list = std::ptr::with_exposed_provenance_mut::<u32>(region.start.get());
        for (row, cell) in cells.iter().enumerate() {
            // SAFETY: the head was made writable above and has room for as many numbers.
            unsafe { list.add(row).write(cell.0) };
        }
        let stacks = region.bytes - shape.head;
        // A stack takes the pages it touches, and no huge ones.
        #[cfg(target_os = "linux")]
        region.advise(shape.head, stacks, libc::MADV_NOHUGEPAGE);
        let light = many && Self::install_guards(&region, &shape);
        if light {
            region.open(shape.head, stacks)?;
        }
        let listed = ListedRegion::new(region.start, &shape, asked);
        Ok(Self { shared: Rc::new(SharedRegion { _listed: listed, region, shape }), asked, light })
    }

    /// Whether guards could be installed in the page tables, before anybody may touch the region.
    #[cfg(target_os = "linux")]
    fn install_guards(region: &Region, shape: &StackGeometry) -> bool {
        let guard = |row: usize| shape.head + row * shape.stride();
        (0..shape.cells).all(|row| region.advise(guard(row), shape.guard, MADV_GUARD_INSTALL))
    }

    #[cfg(not(target_os = "linux"))]
    fn install_guards(_: &Region, _: &StackGeometry) -> bool {
        false
    }

    /// The stack of a cell, the `row`-th of those that were named. To be asked for once.
    pub(crate) fn get(
        &self,
        cell: CellId,
        row: usize,
    ) -> Result<(CellStack, StackBounds), RunError> {
        let shape = &self.shared.shape;
        assert!(row < shape.cells);
        let at = shape.head + row * shape.stride() + shape.guard;
        if !self.light {
            self.shared
                .region
                .open(at, shape.stack)
                .map_err(|error| no_stack(cell, self.asked, refused(&error)))?;
        }
        let limit = self.shared.region.start.get() + at;
        let base = limit + shape.stack;
        let stack = CellStack { base, bytes: shape.stride(), _shared: self.shared.clone() };
        Ok((stack, StackBounds { limit, base }))
    }
}

/// Why the system refuses another stack.
fn refused(error: &Error) -> String {
    if error.raw_os_error() == Some(libc::ENOMEM) {
        return format!(
            "{error}; each stack takes two of the mappings that the system allows a process \
             (vm.max_map_count): raise that, or deal the cells to several processes"
        );
    }
    error.to_string()
}

/// The stack of one cell.
#[derive(Debug)]
pub(crate) struct CellStack {
    base: usize,
    /// Of stack and guard.
    bytes: usize,
    _shared: Rc<SharedRegion>,
}

// SAFETY: below the stack lies its guard, which faults; the stack has at least `MIN_STACK_SIZE`
// bytes, base and limit are multiples of a page, and nothing else uses them: rows differ, and each
// is asked for once. The region lives as long as the stack.
unsafe impl Stack for CellStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.base).expect("a region does not end at address 0")
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.base - self.bytes).expect("nor does it begin there")
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use corosensei::stack::DefaultStack;
    use std::time::Instant;

    /// Touches the top of a stack, as a cell does.
    fn touch(stack: &impl Stack) {
        let top = std::ptr::with_exposed_provenance_mut::<u8>(stack.base().get() - 1);
        // SAFETY: the last byte of a stack that nobody else uses.
        unsafe { top.write_volatile(1) };
    }

    fn stacks(count: u32, all: usize) -> Vec<(CellStack, StackBounds)> {
        let cells: Vec<CellId> = (0..count).map(CellId).collect();
        let stacks = Stacks::reserve(&cells, all, 1 << 20).unwrap();
        let get = |(row, &cell): (usize, &CellId)| stacks.get(cell, row).unwrap();
        cells.iter().enumerate().map(get).collect()
    }

    #[test]
    fn stacks_lie_apart_and_can_be_used_up_to_their_guards() {
        for all in [3, FEW + 1, MANY + 1] {
            let stacks = stacks(3, all);
            for (row, (stack, bounds)) in stacks.iter().enumerate() {
                assert_eq!(stack.base().get() % page_size(), 0);
                assert_eq!(bounds.base, stack.base().get());
                assert_eq!(bounds.base - bounds.limit, 1 << 20);
                assert!(bounds.limit - stack.limit().get() >= LEAST_GUARD);
                let lowest = std::ptr::with_exposed_provenance_mut::<u8>(bounds.limit);
                // SAFETY: the first byte of a stack that nobody else uses.
                unsafe { lowest.write_volatile(1) };
                touch(stack);
                if let Some((_, next)) = stacks.get(row + 1) {
                    assert!(next.limit >= bounds.base + LEAST_GUARD);
                }
            }
        }
    }

    #[test]
    fn stacks_that_cannot_be_reserved_are_an_error() {
        for bytes in [usize::MAX, usize::MAX / 4, 1 << 46] {
            let error = Stacks::reserve(&[CellId(7), CellId(8)], 2, bytes).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("no stack of {bytes} bytes for c7: ")), "{text}");
        }
        assert!(Stacks::reserve(&[], 0, 1 << 20).is_ok());
    }

    /// What it takes to make, touch and give back stacks: printed, beside the library's own.
    #[test]
    #[allow(clippy::print_stdout, reason = "figures for whoever asks for them")]
    fn ten_thousand_stacks_take_as_long_as_the_library_s() {
        const COUNT: u32 = 10_000;
        for _ in 0..2 {
            let begin = Instant::now();
            let all: Vec<_> = (0..COUNT).map(|_| DefaultStack::new(256 << 10).unwrap()).collect();
            all.iter().for_each(touch);
            drop(all);
            let library = begin.elapsed();
            let [plain, light] = [1, MANY + 1].map(|all| {
                let begin = Instant::now();
                stacks(COUNT, all).iter().for_each(|(stack, _)| touch(stack));
                begin.elapsed()
            });
            println!(
                "{COUNT} stacks: library {library:?}, here {plain:?}, without mappings {light:?}"
            );
        }
    }
}
