//! How much memory a run may take, and how it ends where it needs more.
//!
//! `--memory`, or three quarters of what is available, becomes the process's own limit on data
//! (`RLIMIT_DATA`): the kernel counts every heap, ours and METIS's, and refuses what would be more
//! before it is taken. Systems other than Linux know no such limit; there only what the readers
//! check themselves and a refusal of the system's end a run.
//!
//! A refused allocation would abort the process, with a core dump and without a word about the
//! input. So the allocator here is the system's, with one difference: where it has nothing to give,
//! it says which input needed too much and what to do, and ends the process with exit code 1.
//! Outputs are written whole or not at all (`files`), so nothing is left in pieces. What stable Rust
//! offers for this (`set_alloc_error_hook`) is not stable, hence the only `unsafe` of this crate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Cursor, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The least limit: below it not even the command line fits.
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

/// A number of bytes as it is typed: `4GiB`, `500MB`, `2000000`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let bytes = digits.parse().ok().zip(factor).and_then(|(n, f): (u64, u64)| n.checked_mul(f));
    bytes
        .filter(|&bytes| bytes >= LEAST)
        .ok_or_else(|| "expected a size of at least 1MiB, such as 4GiB or 500MB".into())
}

/// A number of bytes as it is shown.
pub(crate) struct Bytes(pub(crate) u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 >> shift > 0 {
                return write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

struct Limit {
    /// None where nobody knows what is available.
    bytes: Option<u64>,
    /// The input that needs the memory, as the user named it.
    input: String,
}

static LIMIT: OnceLock<Limit> = OnceLock::new();

/// From here on, no more memory than `wanted` bytes for `input`. Done once, before any work.
pub(crate) fn set(wanted: Option<u64>, input: String) {
    let bytes = [wanted.or_else(available), given_to_the_process()].into_iter().flatten().min();
    if let (Ok(()), Some(bytes)) = (LIMIT.set(Limit { bytes, input }), bytes) {
        enforce(bytes);
    }
}

/// What the shell (`ulimit`) or whoever else began this process lets it have.
#[cfg(target_os = "linux")]
fn given_to_the_process() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let limits = [Resource::Data, Resource::As].map(|resource| getrlimit(resource).current);
    limits.into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn given_to_the_process() -> Option<u64> {
    None
}

/// The bytes that may be taken, if there is a limit.
pub(crate) fn limit() -> Option<u64> {
    LIMIT.get().and_then(|limit| limit.bytes)
}

#[cfg(target_os = "linux")]
fn enforce(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // All threads begin here, so that their stacks are part of what the program takes without any
    // input, which does not count, and none of them fails to begin later.
    rayon::current_num_threads();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = bytes.saturating_add(kilobytes(&status, "VmData:").unwrap_or(0));
    let Rlimit { current, maximum } = getrlimit(Resource::Data);
    let least = [current, maximum].into_iter().flatten().fold(bytes, u64::min);
    // Where a sandbox forbids this, the run has the limits it has.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(least), maximum });
}

#[cfg(not(target_os = "linux"))]
fn enforce(_bytes: u64) {}

/// Three quarters of what the machine, or the control group that we are in, still has.
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

/// The bytes that a line of `/proc` states, which begins with `name`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The system's allocator, which ends the process where it has nothing to give.
struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: every call goes to the system's allocator as it came, and what that gives is handed on;
// null is never returned, which callers may always hope for.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout` is the one asked for here.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `old` came from `alloc` above, so from `System`, with this layout.
        given(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: `old` came from `alloc` above, so from `System`, with this layout.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end(bytes as u64);
    }
    memory
}

/// Says what was too much and ends the process. Nothing here may allocate.
#[cold]
fn end(bytes: u64) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if ENDING.swap(true, Ordering::Relaxed) {
        // Another thread is at it; if it was this one, ending it needs memory and cannot succeed.
        std::thread::sleep(Duration::from_secs(2));
        std::process::abort();
    }
    let mut line = [0; 1024];
    let mut text = Cursor::new(&mut line[..]);
    let shown = told(&mut text, bytes, LIMIT.get());
    let end = text.position() as usize;
    // A name that is too long for the line is cut; a closed standard error is nobody's to be told.
    let line = &mut line[..end];
    if let (Err(_), Some(last)) = (shown, line.last_mut()) {
        *last = b'\n';
    }
    let _ = io::stderr().write_all(line);
    std::process::exit(1);
}

fn told(out: &mut dyn Write, bytes: u64, limit: Option<&Limit>) -> io::Result<()> {
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
    fn the_last_words_are_one_line_whatever_the_input_is_called() {
        let limit = Limit { bytes: Some(1 << 30), input: "mesh.vtu".into() };
        let mut text = Vec::new();
        told(&mut text, 1 << 20, Some(&limit)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("mesh.vtu") && text.contains("1.0 GiB"), "{text}");
        assert!(text.contains("--memory") && text.lines().count() == 1, "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_available_is_known() {
        assert!(available().is_some_and(|bytes| bytes >= LEAST));
    }
}
