//! Compiling at start-up: sets of layouts, on a machine, into an image.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use conset::ir::{ConnectionSet, Machine, machine_file};
use conset::{Algorithm, Options, compile_sets};
use conset_runtime::tree_sets;

use crate::entry::enter;
use crate::image::ConsetImage;
use crate::layout::ConsetLayout;
use crate::memory::{self, array, options, text, value, write};
use crate::status::{Fault, Status};

/// `conset_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetSet {
    /// Its name.
    pub name: *const c_char,
    /// The layout whose connections it has.
    pub layout: *const ConsetLayout,
    /// Words for each item.
    pub block: usize,
}

/// `conset_compile_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConsetCompileOptions {
    /// Bytes of this structure.
    pub size: usize,
    /// The seed of every random choice.
    pub seed: u64,
    /// Words that the trees of collectives carry; 0 for none.
    pub tree_words: u32,
    /// The most phases that a set may take; 0 for as many as it needs.
    pub max_phases: u32,
    /// `conset_algorithm`.
    pub algorithm: c_int,
}

fn defaults() -> ConsetCompileOptions {
    let Options { seed, max_phases, .. } = Options::default();
    ConsetCompileOptions {
        size: size_of::<ConsetCompileOptions>(),
        seed,
        tree_words: 1,
        max_phases: max_phases.unwrap_or(0),
        algorithm: 0,
    }
}

/// Sets the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_compile_options_init(options: *mut ConsetCompileOptions) -> c_int {
    // SAFETY: the caller keeps the rules of `memory`.
    enter("conset_compile_options_init", || unsafe { write(options, "options", defaults()) })
}

/// Compiles sets for a machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn conset_compile(
    machine: *const c_char,
    sets: *const ConsetSet,
    count: usize,
    options: *const ConsetCompileOptions,
    image: *mut *mut ConsetImage,
) -> c_int {
    enter("conset_compile", || {
        // SAFETY: the caller keeps the rules of `memory`.
        unsafe {
            let machine = Arc::new(machine_of(text(machine, "machine")?)?);
            let given = self::options(options, defaults())?;
            let mut all = Vec::with_capacity(count);
            for (row, set) in array(sets, count, "sets")?.iter().enumerate() {
                let name = text(set.name, &format!("sets[{row}].name"))?;
                let layout = value(set.layout, &format!("sets[{row}].layout"))?;
                all.push(set_of(name, layout, set.block)?);
            }
            if given.tree_words > 0 {
                all.extend(tree_sets(&machine, given.tree_words)?);
            }
            memory::give(image, compile_sets(&machine, all, &how(&given)?)?)
        }
    })
}

fn set_of(
    name: &str,
    layout: &conset_runtime::Layout,
    block: usize,
) -> Result<ConnectionSet, Fault> {
    let set = layout.set(name, block);
    set.map_err(|error| Fault::argument(format!("set `{name}`: {error}")))
}

fn how(given: &ConsetCompileOptions) -> Result<Options, Fault> {
    let algorithm = match given.algorithm {
        0 => Algorithm::Best,
        1 => Algorithm::Paper,
        other => {
            let message = format!("{other} is no algorithm (enum conset_algorithm)");
            return Err(Fault::argument(message));
        }
    };
    let max_phases = (given.max_phases > 0).then_some(given.max_phases);
    Ok(Options { algorithm, seed: given.seed, max_phases, ..Options::default() })
}

/// A preset or a machine file, and settings behind it: `torus:4x4 channels_per_cell=8`.
fn machine_of(specification: &str) -> Result<Machine, Fault> {
    let mut parts = specification.split_ascii_whitespace();
    let spec = parts.next().unwrap_or("");
    let machine = if Path::new(spec).extension().is_some_and(|extension| extension == "toml") {
        let text = std::fs::read_to_string(spec)
            .map_err(|error| Fault::new(Status::File, format!("{spec}: {error}")))?;
        machine_file::parse(spec, &text)?
    } else {
        Machine::from_spec(spec)?
    };
    let mut parameters = machine.parameters().clone();
    for setting in parts {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Fault::new(Status::Input, format!("machine: `{setting}`, expected NAME=VALUE"))
        })?;
        parameters.set(name, value)?;
    }
    machine
        .with_parameters(parameters)
        .map_err(|error| Fault::new(Status::Input, format!("machine: {error}")))
}
