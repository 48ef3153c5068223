//! Lower bounds of programs, and the ratio of a result to its bound.

use conset_ir::convert::to_f64;
use conset_ir::{
    At, Binding, Bounds, ConnectionSet, InputError, Machine, Program, Schedule, ShapeError,
};
use conset_partition_route::bounds::{self, BoundsReport};
use conset_scheduler::predict::Prediction;

use crate::{CompileError, parallel};

/// Computes the lower bounds of every set of a program without compiling it.
///
/// ```
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
///
/// let machine = Machine::from_spec("ring:4")?;
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 5)])?;
/// let bounds = conset::lower_bounds(&machine, &set.into())?;
/// assert_eq!(bounds[0].summary().phases, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A connection whose ends are not live cells of the machine or have no path between them; a
/// program that takes more clocks than [`conset_ir::limits::SERIAL_TIME`]; routes that need more
/// memory than a compilation may use by default.
pub fn lower_bounds(
    machine: &Machine,
    program: &Program,
) -> Result<Vec<BoundsReport>, CompileError> {
    of_program(machine, program, false)
}

/// The lower bounds of every set, with or without the default limit on memory.
pub(crate) fn of_program(
    machine: &Machine,
    program: &Program,
    unlimited: bool,
) -> Result<Vec<BoundsReport>, CompileError> {
    program
        .check_clocks(machine)
        .map_err(|e| InputError::new("<program>", At::Path(e.place), e.message))?;
    let of_set = if unlimited { bounds::bounds } else { bounds::bounds_in_budget };
    parallel::try_map(program.sets(), |set| {
        set.check_machine(machine).map_err(|e| endpoint_error(machine, set, e))?;
        Ok(of_set(machine, set)?)
    })
}

/// The bounds that a schedule claims: no more clocks than its own prediction. Where streams share
/// links, the cost model has words on all links from the first clock and adds with rounding errors, so
/// it can be a few clocks below what is proved.
pub(crate) fn claimed(bounds: &BoundsReport, prediction: &Prediction) -> Bounds {
    let summary = bounds.summary();
    Bounds { clocks: summary.clocks.min(prediction.clocks), ..summary }
}

/// The error for a set with a connection end that is not a live cell of the machine.
pub(crate) fn endpoint_error(
    machine: &Machine,
    set: &ConnectionSet,
    error: ShapeError,
) -> CompileError {
    let cells = machine.cell_count();
    let mut ends = set.connections().iter().flat_map(|c| [c.source, c.target]);
    let help = match ends.any(|cell| cell.index() >= cells) {
        true => "choose a machine that has these cells, for example iwarp:16x16",
        false => "use live cells only, or choose another machine",
    };
    let file = format!("set `{}`", set.name());
    InputError::new(file, At::Path(error.place), error.message).help(help).into()
}

/// The result divided by its bound, 1 if both are 0. The result is at most this factor above the
/// optimum; 1 is optimal.
///
/// ```
/// assert_eq!(conset::bound_ratio(30, 20), 1.5);
/// ```
pub fn bound_ratio(result: u64, bound: u64) -> f64 {
    if bound == 0 { 1.0 } else { to_f64(result) / to_f64(bound) }
}

/// The bounds of a schedule: the sums over its sets, and what binds the set with the greatest
/// bound.
pub fn total_bounds(schedule: &Schedule) -> Bounds {
    let mut total =
        Bounds { phases: 0, phases_by: Binding::Nothing, clocks: 0, clocks_by: Binding::Nothing };
    let mut greatest = (0, 0);
    for set in schedule.sets() {
        total.phases += set.bounds.phases;
        total.clocks += set.bounds.clocks;
        if set.bounds.phases > greatest.0 {
            greatest.0 = set.bounds.phases;
            total.phases_by = set.bounds.phases_by;
        }
        if set.bounds.clocks > greatest.1 {
            greatest.1 = set.bounds.clocks;
            total.clocks_by = set.bounds.clocks_by;
        }
    }
    total
}
