//! The SPMD interface that solvers link.
//!
//! A *program* is one function, executed by every live cell with an agent. It speaks the paper's
//! language (section 2): it instantiates a phase, sends and receives elements of connections, or
//! exchanges a whole set by the compiled operation lists. The cells run on the emulated machine
//! of `conset-fabric`, so that every word really travels and every clock is accounted for.
//!
//! ```
//! use conset_runtime::{Image, World};
//!
//! fn sum_of_neighbours(image: Image) -> Result<Vec<f64>, conset_runtime::RunError> {
//!     let (sums, _report) = World::new(image).try_run(|cell| {
//!         let outgoing = vec![[cell.id().0 as f64]; cell.connections_out("halo")?.len()];
//!         let mut incoming = vec![[0.0]; cell.connections_in("halo")?.len()];
//!         cell.exchange("halo", &outgoing, &mut incoming)?;
//!         Ok(incoming.iter().map(|words| words[0]).sum())
//!     })?;
//!     Ok(sums)
//! }
//! ```
//!
//! Each cell is a stackful coroutine; there are no threads, and one runs at a time, in the order
//! of cell ids within a clock. The same program gives the same words, clocks and errors on every
//! run. A run never hangs: when nothing can go on, it ends with an error that says who waits for
//! whom. Any error of any cell ends the run for all.
//!
//! What it does not do: threads and MPI as transports, and packing of vectors by node lists.

mod cell;
mod collectives;
mod error;
mod fabric;
mod layout;
pub mod lists;
mod loaded;
mod mail;
#[cfg(feature = "mpi")]
pub mod mpi;
mod phase;
mod plan;
mod port;
mod scheduler;
mod store;
mod sync;
mod threads;
mod waits;
mod word;
mod world;

pub use conset_ir as ir;
pub use conset_ir::Image;

pub use cell::Cell;
pub use collectives::{Collectives, tree_sets};
pub use error::{Awaiting, CellError, CellWait, RunError};
pub use layout::{CsrLayout, Layout, LayoutError, LocalCsr, Owned, OwnedLayout};
pub use lists::{Number, Op};
pub use phase::{PhaseName, PhaseRef, SetRef};
pub use plan::{Pending, Plan, PlanError, PlanUse};
pub use threads::ThreadOptions;
pub use word::Word;
pub use world::{RunReport, Transport, World};
