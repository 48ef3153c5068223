//! The memory limit of the command, and the error when it is reached.
//!
//! `--memory`, or three quarters of the available memory, becomes the limit of the process on data
//! (`RLIMIT_DATA`): the kernel counts every heap, including that of METIS, and refuses allocations
//! beyond the limit. Other systems than Linux have no such limit; there a command ends only if a
//! reader finds its input too large or the system refuses an allocation.
//!
//! A refused allocation would abort the process with a core dump and without an explanation. The
//! allocator in this module is the system's, except that a refused allocation prints which input
//! needs too much memory and what to do, and ends the process with exit code 1. Outputs are written
//! completely or not at all (`files`). The standard hook for this (`set_alloc_error_hook`) is not
//! stable, hence the `unsafe` code.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Cursor, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use conset_ir::convert::{to_f64, to_u64};

/// The least limit, which the command itself needs.
const LEAST: u64 = 1 << 20;

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Parses a number of bytes for the memory limit: `4GiB`, `500MB`, `2000000`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    bytes(text)
        .ok()
        .filter(|&bytes| bytes >= LEAST)
        .ok_or_else(|| "expected a size of at least 1MiB, such as 4GiB or 500MB".into())
}

/// Parses any number of bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let bytes = digits.parse().ok().zip(factor).and_then(|(n, f): (u64, u64)| n.checked_mul(f));
    bytes.ok_or_else(|| "expected a size, such as 5MB or 2000000".into())
}

/// A number of bytes for output.
pub(crate) struct Bytes(pub(crate) u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >> shift > 0 {
                return write!(f, "{:.1} {unit}", to_f64(self.0) / to_f64(1u64 << shift));
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

struct Limit {
    /// `None` if the available memory is not known.
    bytes: Option<u64>,
    /// The input as the user named it.
    input: String,
}

static LIMIT: OnceLock<Limit> = OnceLock::new();

/// Limits the memory to `wanted` bytes, for `input`. Called once, before any work.
pub(crate) fn set(wanted: Option<u64>, input: String) {
    let bytes = [wanted.or_else(available), inherited_limit()].into_iter().flatten().min();
    if let (Ok(()), Some(bytes)) = (LIMIT.set(Limit { bytes, input }), bytes) {
        enforce(bytes);
    }
}

/// The limit that the process inherits, for example from `ulimit`.
#[cfg(target_os = "linux")]
fn inherited_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let limits = [Resource::Data, Resource::As].map(|resource| getrlimit(resource).current);
    limits.into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn inherited_limit() -> Option<u64> {
    None
}

/// The limit in bytes, if there is one.
pub(crate) fn limit() -> Option<u64> {
    LIMIT.get().and_then(|limit| limit.bytes)
}

#[cfg(target_os = "linux")]
fn enforce(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Start all threads now, so that their stacks belong to the memory of the program itself, which
    // does not count, and no thread fails to start later.
    rayon::current_num_threads();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = bytes.saturating_add(kilobytes(&status, "VmData:").unwrap_or(0));
    let Rlimit { current, maximum } = getrlimit(Resource::Data);
    let least = [current, maximum].into_iter().flatten().fold(bytes, u64::min);
    // A sandbox may forbid this; then the inherited limits apply.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(least), maximum });
}

#[cfg(not(target_os = "linux"))]
fn enforce(_bytes: u64) {}

/// Three quarters of the free memory of the computer, or of the control group of the process.
fn available() -> Option<u64> {
    let number =
        |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
    let group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or(0)));
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kilobytes(&text, "MemAvailable:"));
    let least = [group, machine].into_iter().flatten().min()?;
    Some((least / 4 * 3).max(LEAST))
}

/// The bytes in a line of `/proc` that begins with `name`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The system's allocator, which ends the process if an allocation fails.
struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: every call is passed on to the system's allocator unchanged, and its result is returned;
// null is never returned, which the contract permits.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout` is the one asked for here.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `old` came from `alloc` above, so from `System`, with this layout.
        or_end(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: `old` came from `alloc` above, so from `System`, with this layout.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn or_end(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(to_u64(bytes));
    }
    memory
}

/// Prints the error and ends the process. This function must not allocate.
#[cold]
fn end(bytes: u64) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if ENDING.swap(true, Ordering::Relaxed) {
        // Another thread is ending the process. If it is this one, it cannot end without memory.
        std::thread::sleep(Duration::from_secs(2));
        std::process::abort();
    }
    let mut line = [0; 1024];
    let mut text = Cursor::new(&mut line[..]);
    let shown = write_error(&mut text, bytes, LIMIT.get());
    let end = usize::try_from(text.position()).unwrap_or(0);
    // A line that is too long is truncated; a closed standard error is ignored.
    let line = &mut line[..end];
    if let (Err(_), Some(last)) = (shown, line.last_mut()) {
        *last = b'\n';
    }
    let _ = io::stderr().write_all(line);
    std::process::exit(1);
}

fn write_error(out: &mut dyn Write, bytes: u64, limit: Option<&Limit>) -> io::Result<()> {
    let input = limit.map_or("conset", |limit| &limit.input);
    write!(out, "error: out of memory: another {} needed", Bytes(bytes))?;
    if let Some(bytes) = limit.and_then(|limit| limit.bytes) {
        write!(out, " where {} in all are allowed", Bytes(bytes))?;
    }
    writeln!(out, " (--memory SIZE), for {input}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_their_units_and_nonsense_is_refused() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("500MB", 500_000_000),
            ("2000000", 2_000_000),
            ("1 tib", 1 << 40),
            ("1024kib", 1 << 20),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "GiB", "-1GB", "4XB", "0", "1kB", "99999999999999TB", "1e9", "4 GiB x", "½GB"]
        {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(1 << 20).to_string(), "1.0 MiB");
        assert_eq!(Bytes(12).to_string(), "12 bytes");
    }

    #[test]
    fn the_error_is_one_line() {
        let limit = Limit { bytes: Some(1 << 30), input: "mesh.vtu".into() };
        let mut text = Vec::new();
        write_error(&mut text, 1 << 20, Some(&limit)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("mesh.vtu") && text.contains("1.0 GiB"), "{text}");
        assert!(text.contains("--memory") && text.lines().count() == 1, "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_available_memory_is_known() {
        assert!(available().is_some_and(|bytes| bytes >= LEAST));
    }
}
