//! Placing the parts of a solver on cells, and compiling their connection sets.
//!
//! A solver divides its mesh or matrix into parts, and the cells in its connection sets are part
//! numbers. [`assemble`] chooses a cell for each part (one placement for all such sets), replaces
//! the part numbers, and compiles the sets together with sets that name cells already, such as trees
//! for reductions. With the layouts of the runtime this is all a solver needs:
//!
//! ```text
//!  let layout = Layout::from_shared_ids(&ids_of_parts)?;
//!  let halo = layout.set("halo", block)?;
//!  let assembled = assemble(compiler, (parts, vec![halo]), trees, Method::default())?;
//!  let layout = layout.placed(&assembled.place, machine.cell_count())?;
//!  let plan = Plan::new(assembled.compiled.image(), "halo", layout, block)?;
//! ```
//!
//! Layouts and plans belong to the runtime, on which this crate does not depend. For files see
//! [`crate::input`].

use conset_ir::{At, CellId, Connection, ConnectionSet, InputError, Machine, ShapeError};
use conset_partition_route::placement::{self, Method};

use crate::compiled::Compiled;
use crate::{CompileError, Compiler};

/// A compiled program and the placement of its parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assembled {
    /// The cell of each part.
    pub place: Vec<CellId>,
    /// The program: the placed sets of parts in their order, then the other sets.
    pub compiled: Compiled,
}

/// Places the parts of some sets on the machine of a compiler, by a method and the compiler's seed,
/// and compiles these sets and others.
///
/// `parts` is the number of parts, and the sets whose cells are part numbers below it; their
/// connections keep their order. The cells of `other_sets` are cells of the machine.
///
/// ```
/// use std::sync::Arc;
///
/// use conset::ir::{CellId, Connection, ConnectionSet, Machine};
/// use conset::partition_route::placement::Method;
/// use conset::{Compiler, assemble};
///
/// let machine = Arc::new(Machine::from_spec("torus:4x4")?);
/// // Three parts in a row; each sends 20 words to the next one.
/// let chain = (0..2).map(|part| Connection::new(CellId(part), CellId(part + 1), 20)).collect();
/// let parts = (3, vec![ConnectionSet::new("chain", chain)?]);
/// let assembled = assemble(Compiler::new(&machine), parts, [], Method::default())?;
/// assert_eq!(assembled.place.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// More parts than live cells with an agent, a part number out of range, and the errors of
/// [`Compiler::compile_sets`].
pub fn assemble(
    mut compiler: Compiler<'_>,
    parts: (usize, Vec<ConnectionSet>),
    other_sets: impl IntoIterator<Item = ConnectionSet>,
    method: Method,
) -> Result<Assembled, CompileError> {
    let seed = compiler.seed_of_options();
    let (place, sets) = place_parts(compiler.machine(), parts, other_sets, (method, seed))?;
    Ok(Assembled { place, compiled: compiler.compile_sets(sets)? })
}

/// Places the parts of some sets on a machine, by a method and its seed. Returns the cell of each part,
/// and the sets that [`assemble`] compiles: those of parts with cells in place of part numbers, then the
/// others.
///
/// # Errors
/// More parts than live cells with an agent, or a part number out of range.
pub fn place_parts(
    machine: &Machine,
    (count, sets): (usize, Vec<ConnectionSet>),
    other_sets: impl IntoIterator<Item = ConnectionSet>,
    (method, seed): (Method, u64),
) -> Result<(Vec<CellId>, Vec<ConnectionSet>), CompileError> {
    let place = match &sets[..] {
        [one] => placement::place(machine, one, count, method, seed)?,
        _ => placement::place(machine, &combined(&sets)?, count, method, seed)?,
    };
    let placed = sets.into_iter().map(|set| set.placed(&place).map_err(input_error));
    let mut all = placed.collect::<Result<Vec<_>, _>>()?;
    all.extend(other_sets);
    Ok((place, all))
}

/// One set with the connections of all sets.
fn combined(sets: &[ConnectionSet]) -> Result<ConnectionSet, InputError> {
    let connections = sets.iter().flat_map(ConnectionSet::connections);
    let bare = connections.map(|c| Connection::new(c.source, c.target, c.words));
    ConnectionSet::new("all-sets", bare.collect()).map_err(input_error)
}

fn input_error(error: ShapeError) -> InputError {
    InputError::new("<sets>", At::Path(error.place), error.message)
}
