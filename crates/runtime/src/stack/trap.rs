//! The signal handler for faults in the guards of stacks, the table that it reads, and its stack.
//!
//! The handler can interrupt any code, so it calls only async-signal-safe functions: it reads
//! numbers, writes a message that it builds in its own memory, and ends the process. Faults
//! elsewhere are passed to the previous handler, usually that of Rust.
//!
//! A table of atomic numbers holds the regions to search. If a region is being released while
//! another thread faults, the fault may be attributed to it; the process ends in either case.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use conset_ir::convert::index;

use super::OVERFLOW_STATUS;
use super::reserve::StackGeometry;

/// A region in the table; its `end` is 0 where the place is free, 1 where it is taken.
#[derive(Debug)]
struct RegionEntry {
    end: AtomicUsize,
    start: AtomicUsize,
    head: AtomicUsize,
    guard: AtomicUsize,
    stride: AtomicUsize,
    asked: AtomicUsize,
}

/// Regions that can be looked up; a fault in a guard of others ends the process without a message.
const MAX_REGIONS: usize = 512;

static TABLE: [RegionEntry; MAX_REGIONS] = [const {
    RegionEntry {
        end: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        head: AtomicUsize::new(0),
        guard: AtomicUsize::new(0),
        stride: AtomicUsize::new(0),
        asked: AtomicUsize::new(0),
    }
}; MAX_REGIONS];

/// A region is in the table, until this is dropped.
#[derive(Debug)]
pub(super) struct ListedRegion(Option<&'static RegionEntry>);

impl ListedRegion {
    /// Puts a region into the table, the head of which lists its cells.
    pub(super) fn new(start: NonZeroUsize, shape: &StackGeometry, asked: usize) -> Self {
        install_handler();
        let take = |entry: &&RegionEntry| {
            entry.end.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let entry = TABLE.iter().find(take);
        if let Some(entry) = entry {
            entry.start.store(start.get(), Ordering::Relaxed);
            entry.head.store(shape.head, Ordering::Relaxed);
            entry.guard.store(shape.guard, Ordering::Relaxed);
            entry.stride.store(shape.stride(), Ordering::Relaxed);
            entry.asked.store(asked, Ordering::Relaxed);
            let end = start.get() + shape.head + shape.cells * shape.stride();
            entry.end.store(end, Ordering::Release);
        }
        Self(entry)
    }
}

impl Drop for ListedRegion {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.end.store(0, Ordering::Release);
        }
    }
}

/// The cell in whose guard an address lies, and the bytes of its stack.
fn owner_of(address: usize) -> Option<(u32, usize)> {
    TABLE.iter().find_map(|entry| {
        let end = entry.end.load(Ordering::Acquire);
        let start = entry.start.load(Ordering::Relaxed);
        let first = start + entry.head.load(Ordering::Relaxed);
        if !(first..end).contains(&address) {
            return None;
        }
        let row = (address - first) / entry.stride.load(Ordering::Relaxed).max(1);
        let offset = address - first - row * entry.stride.load(Ordering::Relaxed);
        if offset >= entry.guard.load(Ordering::Relaxed) {
            return None;
        }
        let list = std::ptr::with_exposed_provenance::<u32>(start);
        // SAFETY: the region begins with the numbers of its cells, which are not written any more;
        // it is there, as a thread is on one of its stacks.
        let cell = unsafe { list.add(row).read_volatile() };
        Some((cell, entry.asked.load(Ordering::Relaxed)))
    })
}

/// What handled faults before.
struct Previous(UnsafeCell<[MaybeUninit<libc::sigaction>; 2]>);

// SAFETY: written once, before the handler that reads it is installed.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new([const { MaybeUninit::uninit() }; 2]));

const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (row, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: the structures are zeroed, which is a valid value of each, and filled in; the
            // previous action is kept before the handler can be called, which alone reads it.
            unsafe {
                let previous = (*PREVIOUS.0.get())[row].as_mut_ptr();
                previous.write(std::mem::zeroed());
                if libc::sigaction(signal, null(), previous) != 0 {
                    continue;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler_address();
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&raw mut action.sa_mask);
                libc::sigaction(signal, &raw const action, null_mut());
            }
        }
    });
}

/// The handler as `sigaction` takes it.
#[allow(clippy::as_conversions, reason = "a function becomes an address by casts only")]
fn handler_address() -> libc::sighandler_t {
    handle as *const () as libc::sighandler_t
}

/// Handles a fault: of a guard, or as it was handled before.
unsafe extern "C" fn handle(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system hands the handler of a fault its address.
    let address = unsafe { (*info).si_addr() }.addr();
    if let Some((cell, bytes)) = owner_of(address) {
        end_process(cell, bytes);
    }
    let row = usize::from(signal == libc::SIGBUS);
    // SAFETY: it was written before this handler was installed.
    let previous = unsafe { (*PREVIOUS.0.get())[row].assume_init_ref() };
    match previous.sa_sigaction {
        libc::SIG_IGN | libc::SIG_DFL => {
            // SAFETY: puts back what was there; the fault happens again when this returns.
            unsafe { libc::sigaction(signal, previous, null_mut()) };
        }
        function if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler =
                unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: a handler that was installed with this flag has this type, and gets what it
            // would have got.
            unsafe {
                let function = std::mem::transmute::<usize, Handler>(function);
                function(signal, info, context);
            }
        }
        function => {
            // SAFETY: a handler that was installed without the flag has this type.
            unsafe {
                let function =
                    std::mem::transmute::<usize, unsafe extern "C" fn(libc::c_int)>(function);
                function(signal);
            }
        }
    }
}

/// Says which cell overflowed its stack, and ends the process. May be called in a handler.
pub(super) fn end_process(cell: u32, bytes: usize) -> ! {
    let mut text = Text { bytes: [0; 200], len: 0 };
    text.push(b"conset: cell c");
    text.push_number(index(cell));
    text.push(b" overflowed its stack of ");
    text.push_number(bytes);
    text.push(b" bytes; enlarge stack_bytes (in Rust, World::stack_size)\n");
    // SAFETY: the text has as many bytes; both functions may be called in a handler.
    unsafe {
        libc::write(2, text.bytes.as_ptr().cast(), text.len);
        libc::_exit(OVERFLOW_STATUS)
    }
}

/// A text on the stack.
struct Text {
    bytes: [u8; 200],
    len: usize,
}

impl Text {
    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(entry) = self.bytes.get_mut(self.len) {
                *entry = byte;
                self.len += 1;
            }
        }
    }

    fn push_number(&mut self, number: usize) {
        let mut digits = [0; 20];
        let (mut rest, mut at) = (number, digits.len());
        loop {
            at -= 1;
            digits[at] = b"0123456789"[rest % 10];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }
}

/// The stack on which this thread handles faults, as the one that overflowed has no room for that.
/// Where the thread had none, it has one until this is dropped.
#[derive(Debug)]
pub(crate) struct AlternateStack(Option<Vec<u8>>);

impl AlternateStack {
    pub(crate) fn install() -> Self {
        const BYTES: usize = 64 << 10;
        // SAFETY: asks for what is installed; the structure may be zero.
        let installed = unsafe {
            let mut old: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(null(), &raw mut old) == 0 && old.ss_flags & libc::SS_DISABLE == 0
        };
        if installed {
            return Self(None);
        }
        let mut memory = vec![0; BYTES.max(libc::SIGSTKSZ)];
        // SAFETY: the memory is kept, where it is, until the stack is taken away again.
        let done = unsafe {
            let mut new: libc::stack_t = std::mem::zeroed();
            (new.ss_sp, new.ss_size) = (memory.as_mut_ptr().cast(), memory.len());
            libc::sigaltstack(&raw const new, null_mut()) == 0
        };
        Self(done.then_some(memory))
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        if self.0.is_some() {
            // SAFETY: takes away what `install` installed on this thread, to which the value belongs:
            // it is neither on that stack nor anywhere else but in `run_worker` and its like.
            unsafe {
                let mut none: libc::stack_t = std::mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&raw const none, null_mut());
            }
        }
    }
}
