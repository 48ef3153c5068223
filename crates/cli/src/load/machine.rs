//! The machine that the command line names: a preset or a machine file, with parameters set and dead
//! parts removed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use conset_ir::{At, CellId, InputError, Machine, machine_file};

use crate::args::MachineArgs;
use crate::error::CliError;
use crate::files;

/// The machine of a specification or machine file, with parameters set.
pub(crate) fn machine(spec: &OsStr, set: &[String]) -> Result<Arc<Machine>, CliError> {
    let machine = if spec.as_encoded_bytes().ends_with(b".toml") {
        let (name, bytes) = files::read(Path::new(spec))?;
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            InputError::new(&name, At::Byte(e.valid_up_to()), "not UTF-8, expected a TOML text")
        })?;
        machine_file::parse(&name, text).map_err(|e| CliError::in_source(e, &bytes))?
    } else {
        Machine::from_spec(&spec.to_string_lossy())
            .map_err(|e| e.with_alternative("give a machine file ending in .toml"))?
    };
    with_settings(Arc::new(machine), set)
}

/// The machine with `KEY=VALUE` settings applied.
fn with_settings(machine: Arc<Machine>, set: &[String]) -> Result<Arc<Machine>, CliError> {
    if set.is_empty() {
        return Ok(machine);
    }
    let mut parameters = machine.parameters().clone();
    let mut keys = HashSet::new();
    for setting in set {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            InputError::new("--param", At::Path(setting.clone()), "expected KEY=VALUE")
                .help("for example --param channels_per_cell=20")
        })?;
        if !keys.insert(key.trim()) {
            let at = At::Path(key.trim().to_owned());
            return Err(InputError::new("--param", at, "set twice; expected once").into());
        }
        parameters.set(key.trim(), value.trim()).map_err(|e| in_option("--param", e))?;
    }
    let changed = machine
        .with_parameters(parameters)
        .map_err(|e| InputError::new("--param", At::Path(e.place), e.message))?;
    Ok(Arc::new(changed))
}

/// An error about the argument of an option.
fn in_option(option: &str, mut error: InputError) -> InputError {
    error.file = option.to_owned();
    error
}

/// The machine that the arguments name, else the given default, with settings applied.
pub(super) fn chosen_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, CliError> {
    Ok(with_dead(whole_machine(args, default)?, &args.dead)?)
}

/// The same, without the dead parts of `--dead`.
pub(super) fn whole_machine(
    args: &MachineArgs,
    default: Option<Arc<Machine>>,
) -> Result<Arc<Machine>, CliError> {
    match (&args.machine, default) {
        (Some(spec), _) => machine(spec, &args.params),
        (None, Some(default)) => with_settings(default, &args.params),
        (None, None) => machine("iwarp".as_ref(), &args.params),
    }
}

/// The machine without the parts that `--dead` names: `c5`, `c0->c1`, or `c0-c1` for both ways.
pub(super) fn with_dead(
    machine: Arc<Machine>,
    parts: &[String],
) -> Result<Arc<Machine>, InputError> {
    let (mut cells, mut links) = (Vec::new(), Vec::new());
    for part in parts {
        let at = || At::Path(part.clone());
        let cell = |text: &str| {
            let number = text.trim().strip_prefix('c').and_then(|number| number.parse().ok());
            number.map(CellId).ok_or_else(|| {
                InputError::new("--dead", at(), "expected a cell or a link")
                    .help("c5 is a cell, c0->c1 a link, c0-c1 the links between two cells")
            })
        };
        let (from, to, both) = match (part.split_once("->"), part.split_once('-')) {
            (Some((from, to)), _) => (cell(from)?, cell(to)?, false),
            (None, Some((from, to))) => (cell(from)?, cell(to)?, true),
            (None, None) => {
                cells.push(cell(part)?);
                continue;
            }
        };
        let pairs = [(from, to), (to, from)];
        // If the cells are linked in one direction only, that direction is meant.
        let linked = |pair: &(CellId, CellId)| machine.with_dead(&[], &[*pair]).is_ok();
        let meant = pairs.into_iter().filter(|pair| both && linked(pair));
        let before = links.len();
        links.extend(meant);
        if links.len() == before {
            links.push((from, to));
        }
    }
    if cells.is_empty() && links.is_empty() {
        return Ok(machine);
    }
    let changed = machine.with_dead(&cells, &links);
    Ok(Arc::new(changed.map_err(|e| InputError::new("--dead", At::Path(e.place), e.message))?))
}

/// The machine that the arguments name, for subcommands without an input.
pub(crate) fn machine_of(args: &MachineArgs) -> Result<Arc<Machine>, CliError> {
    chosen_machine(args, None)
}
