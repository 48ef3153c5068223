//! Images: compiled programs, from memory or files, and queries of their contents.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use conset::ir::convert::{index, to_u32};
use conset::ir::{CellId, ConnectionId, Direction, Document, Image, InputError, SetImage, binary};
use conset_runtime::World;

use crate::entry::{enter, enter_for};
use crate::handle::{self, Handle, Tagged, value};
use crate::memory::{array, array_mut, text, write};
use crate::status::{CallFault, Status};

/// `conset_image`: a world with the image loaded, so that runs do not load it again.
pub type ConsetImage = Handle<World>;

impl Tagged for World {
    const TAG: [u8; 8] = *b"csimage1";
    const NAME: &'static str = "conset_image";
}

/// A world with an image. The places of calls are known where programs say them
/// (`conset_set_place`), which is not for this library's own lines to say.
pub(crate) fn world(image: Arc<Image>) -> World {
    World::new(image).same_places(false)
}

/// Makes an image of a file's bytes, and checks it.
fn parse(name: &str, bytes: &[u8]) -> Result<World, CallFault> {
    Ok(world(checked(name, bytes)?))
}

fn checked(name: &str, bytes: &[u8]) -> Result<Arc<Image>, CallFault> {
    match Document::parse_any(name, bytes)? {
        Document::Image(image) => Ok(Arc::new(conset::verify::image(image)?.into_inner())),
        Document::Schedule(schedule) => {
            Ok(conset::Compiled::import(schedule, &mut |_| ())?.image().clone())
        }
        Document::Steps(schedule) => {
            Ok(conset::steps::CompiledSteps::import(schedule)?.image().clone())
        }
        other => {
            let what = format!("a {}, expected an image or a schedule", other.kind());
            let error = InputError::new(name, conset::ir::At::Whole, what);
            Err(error.help("compile it first (conset_compile, or the program conset)").into())
        }
    }
}

/// An image from memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_parse(
    bytes: *const c_void,
    size: usize,
    image: *mut *mut ConsetImage,
) -> c_int {
    enter("conset_image_parse", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let bytes = array(bytes.cast::<u8>(), size, "bytes")?;
            handle::give(image, parse("<memory>", bytes)?)
        }
    })
}

/// An image from a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_read(
    path: *const c_char,
    image: *mut *mut ConsetImage,
) -> c_int {
    enter("conset_image_read", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let path = text(path, "path")?;
            let bytes = std::fs::read(path)
                .map_err(|error| CallFault::new(Status::File, format!("{path}: {error}")))?;
            handle::give(image, parse(path, &bytes)?)
        }
    })
}

/// Writes an image to a file, in the binary form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_write(
    image: *const ConsetImage,
    path: *const c_char,
) -> c_int {
    enter("conset_image_write", || {
        // SAFETY: the caller keeps the rules of `memory`.
        let (image, path) = unsafe { (value(image, "image")?.image(), text(path, "path")?) };
        write_file(path, &bytes_of(image))
    })
}

/// Writes beside the file and renames, so that nobody finds half a file.
pub(crate) fn write_file(path: &str, bytes: &[u8]) -> Result<(), CallFault> {
    let beside = format!("{path}.{}.tmp", std::process::id());
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() && Path::new(&beside).exists() {
        // The first error is the one to be told.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(|error| CallFault::new(Status::File, format!("{path}: {error}")))
}

fn bytes_of(image: &Image) -> Vec<u8> {
    binary::write(&Document::Image(image.clone()))
}

/// The binary form of an image, for `conset_image_parse` elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_bytes(
    image: *const ConsetImage,
    bytes: *mut c_void,
    room: usize,
    size: *mut usize,
) -> c_int {
    enter("conset_image_bytes", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let found = bytes_of(value(image, "image")?.image());
            let count = room.min(found.len());
            array_mut(bytes.cast::<u8>(), count, "bytes")?.copy_from_slice(&found[..count]);
            write(size, "size", found.len())
        }
    })
}

/// A number that equal images have in common: FNV-1a of the binary form, 64 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_digest(image: *const ConsetImage, digest: *mut u64) -> c_int {
    enter("conset_image_digest", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let bytes = bytes_of(value(image, "image")?.image());
            let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            write(digest, "digest", hash)
        }
    })
}

/// Number of cells of the image's machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_cells(image: *const ConsetImage) -> usize {
    enter_for("conset_image_cells", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(image, "image")? }.image().machine().agent_count())
    })
}

/// Number of sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_sets(image: *const ConsetImage) -> usize {
    enter_for("conset_image_sets", 0, || {
        // SAFETY: the caller keeps the rules of `memory`.
        Ok(unsafe { value(image, "image")? }.image().sets().len())
    })
}

/// The number of the set of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_set(
    image: *const ConsetImage,
    name: *const c_char,
    set: *mut u32,
) -> c_int {
    enter("conset_image_set", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let (image, name) = (value(image, "image")?.image(), text(name, "name")?);
            let row = image.sets().iter().position(|set| set.set.name() == name);
            let row = row.ok_or_else(|| {
                let names: Vec<&str> = image.sets().iter().map(|set| set.set.name()).collect();
                CallFault::argument(format!("no set `{name}` among: {}", names.join(", ")))
            })?;
            write(set, "set", to_u32(row))
        }
    })
}

pub(crate) fn set_of(image: &Image, set: u32) -> Result<&SetImage, CallFault> {
    let sets = image.sets();
    sets.get(index(set))
        .ok_or_else(|| CallFault::argument(format!("set {set} of an image of {} sets", sets.len())))
}

/// Number of phases of a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_phases(
    image: *const ConsetImage,
    set: u32,
    phases: *mut u32,
) -> c_int {
    enter("conset_image_phases", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let count = set_of(value(image, "image")?.image(), set)?.phases.len();
            write(phases, "phases", to_u32(count))
        }
    })
}

/// Number of steps of a set; 0 of a set with phases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_steps(
    image: *const ConsetImage,
    set: u32,
    steps: *mut u32,
) -> c_int {
    enter("conset_image_steps", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let plan = &set_of(value(image, "image")?.image(), set)?.steps;
            let count = plan.as_ref().map_or(0, |plan| plan.messages().steps());
            write(steps, "steps", to_u32(count))
        }
    })
}

/// Number of connections of a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_connections(
    image: *const ConsetImage,
    set: u32,
    connections: *mut u32,
) -> c_int {
    enter("conset_image_connections", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let count = set_of(value(image, "image")?.image(), set)?.set.len();
            write(connections, "connections", to_u32(count))
        }
    })
}

/// `conset_connection`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetConnection {
    /// The cell that sends.
    pub source: u32,
    /// The cell that receives.
    pub target: u32,
    /// Words.
    pub words: u32,
}

/// What a connection is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_connection(
    image: *const ConsetImage,
    set: u32,
    connection: u32,
    found: *mut ConsetConnection,
) -> c_int {
    enter("conset_image_connection", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let set = &set_of(value(image, "image")?.image(), set)?.set;
            if index(connection) >= set.len() {
                let (name, count) = (set.name(), set.len());
                let message = format!("connection {connection} of `{name}`, which has {count}");
                return Err(CallFault::argument(message));
            }
            let c = set.get(ConnectionId(connection));
            let (source, target, words) = (c.source.0, c.target.0, c.words);
            write(found, "found", ConsetConnection { source, target, words })
        }
    })
}

/// `conset_operation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsetOperation {
    /// The connection.
    pub connection: u32,
    /// 1 to send, 0 to receive.
    pub sends: c_int,
    /// The first of its words.
    pub first_word: u32,
    /// How many words.
    pub words: u32,
}

/// What a cell has to send and to receive in a phase, in this order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_operations(
    image: *const ConsetImage,
    set: u32,
    phase: u32,
    cell: u32,
    operations: *mut ConsetOperation,
    room: usize,
    count: *mut usize,
) -> c_int {
    enter("conset_image_operations", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let set = set_of(value(image, "image")?.image(), set)?;
            let Some(tables) = set.phases.get(index(phase)) else {
                let (name, phases) = (set.set.name(), set.phases.len());
                let message = format!("phase {phase} of `{name}`, which has {phases}");
                return Err(CallFault::argument(message));
            };
            if index(cell) >= tables.cell_count() {
                let cells = tables.cell_count();
                return Err(CallFault::argument(format!("cell {cell} of a machine of {cells}")));
            }
            let found = tables.cell(CellId(cell)).operations;
            let operations = array_mut(operations, room.min(found.len()), "operations")?;
            for (place, operation) in operations.iter_mut().zip(found) {
                *place = ConsetOperation {
                    connection: operation.connection.0,
                    sends: c_int::from(operation.direction == Direction::Send),
                    first_word: operation.first_word,
                    words: operation.words,
                };
            }
            write(count, "count", found.len())
        }
    })
}

/// Frees an image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_image_free(image: *mut ConsetImage) {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_image_free", || unsafe { handle::free(image) });
}
