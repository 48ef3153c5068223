//! Sets between the parts of a solver, to cells and an image: place, rename, compile.
//!
//! A solver divides its mesh or matrix into parts, and its exchanges are sets whose cells are part
//! numbers. [`assemble`] finds a cell for each part (one placement, the best for all such sets
//! together), renames the sets to it, and compiles them with those that name cells already (trees
//! for reductions). With the runtime's layouts that is the whole way:
//!
//! ```text
//!  let layout = Layout::from_shared_ids(&ids_of_parts)?;
//!  let halo = layout.set("halo", block)?;
//!  let done = assemble(&machine, (parts, vec![halo]), trees, Method::default(), &options)?;
//!  let layout = layout.placed(&done.place, machine.cell_count())?;
//!  let plan = Plan::new(done.compiled.image(), "halo", layout, block)?;
//! ```
//!
//! What it does not do: layouts and plans, which are the runtime's, on which this crate does not
//! depend; files, for which there is [`crate::input`].

use std::sync::Arc;

use conset_ir::{At, CellId, Connection, ConnectionSet, InputError, Machine, Program, ShapeError};
use conset_partition_route::placement::{self, Method};

use crate::compile::{CompileError, Compiled, Options, compile};

/// What came of it.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The cell of each part.
    pub place: Vec<CellId>,
    /// The program: the sets of parts on their cells, in the order given, then the others.
    pub compiled: Compiled,
}

/// Places the parts of some sets on a machine, by a method and the options' seed, and compiles
/// them with other sets. The cells of the sets `of_parts.1` are part numbers from 0 to
/// `of_parts.0`; their connections keep their order.
///
/// # Errors
/// More parts than live cells with an agent, a connection of a part that is not there; and as
/// [`crate::compile_sets`].
pub fn assemble(
    machine: &Arc<Machine>,
    of_parts: (usize, Vec<ConnectionSet>),
    of_cells: impl IntoIterator<Item = ConnectionSet>,
    method: Method,
    options: &Options,
) -> Result<Assembled, CompileError> {
    let (parts, sets) = of_parts;
    let place = match &sets[..] {
        [one] => placement::place(machine, one, parts, method, options.seed)?,
        _ => placement::place(machine, &together(&sets)?, parts, method, options.seed)?,
    };
    let placed = sets.into_iter().map(|set| set.placed(&place).map_err(wrong));
    let mut all = placed.collect::<Result<Vec<_>, _>>()?;
    all.extend(of_cells);
    let program = Program::new(all.into_iter().map(Arc::new).collect()).map_err(wrong)?;
    Ok(Assembled { place, compiled: compile(machine, &program, options, &mut |_| ())? })
}

/// All connections of some sets.
fn together(sets: &[ConnectionSet]) -> Result<ConnectionSet, InputError> {
    let connections = sets.iter().flat_map(ConnectionSet::connections);
    let bare = connections.map(|c| Connection::new(c.source, c.target, c.words));
    ConnectionSet::new("all-sets", bare.collect()).map_err(wrong)
}

fn wrong(error: ShapeError) -> InputError {
    InputError::new("<sets>", At::Path(error.place), error.message)
}
