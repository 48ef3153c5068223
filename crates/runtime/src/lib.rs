//! The SPMD library that solvers link: runs a program on every cell of a compiled image.
//!
//! A *program* is one function, executed by every live cell with an agent. It uses the operations
//! of the paper (section 2): it instantiates a phase, sends and receives elements of connections,
//! or exchanges a whole set by the compiled operation lists. For comparison it can also send
//! messages, or exchange a set by messages ([`By`]).
//!
//! The [`World`] selects the transport, and the program stays the same:
//!
//! * the emulated machine of `conset-fabric`, which moves every word and counts every clock, for
//!   connections and for messages;
//! * [`threads`]: a few workers with many cells each, which read each other's memory;
//! * the ranks of an MPI job, with the feature `mpi`.
//!
//! ```
//! use conset_runtime::ir::{Image, Machine};
//! use conset_runtime::World;
//!
//! // Compile sets with the facade crate to exchange them; this image has none.
//! let image = Image::new(Machine::from_spec("ring:4")?.into(), Vec::new())?;
//! let (squares, report) = World::new(image).try_run(|cell| {
//!     cell.compute(10)?;
//!     Ok(cell.id().index().pow(2))
//! })?;
//! assert_eq!(squares, [0, 1, 4, 9]);
//! assert_eq!(report.clocks, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a compiled set, each cell exchanges one buffer for each of its connections:
//!
//! ```
//! use conset_runtime::{Image, World};
//!
//! fn sum_of_neighbours(image: Image) -> Result<Vec<f64>, conset_runtime::RunError> {
//!     let (sums, _report) = World::new(image).try_run(|cell| {
//!         let outgoing = vec![[f64::from(cell.id().0)]; cell.connections_out("halo")?.len()];
//!         let mut incoming = vec![[0.0]; cell.connections_in("halo")?.len()];
//!         cell.exchange("halo", &outgoing, &mut incoming)?;
//!         Ok(incoming.iter().map(|words| words[0]).sum())
//!     })?;
//!     Ok(sums)
//! }
//! ```
//!
//! Solvers exchange vectors. A [`Layout`] states which of their entries belong together, its set is
//! compiled, a [`Plan`] combines layout and image, and [`Collectives`] reduce. Copies of one entry
//! count once, on the cell that owns it ([`Plan::owned`]).
//!
//! ```
//! use std::sync::Arc;
//! use conset_runtime::{Collectives, Image, Layout, Op, Plan, World, tree_sets};
//! use conset_runtime::ir::{ConnectionSet, Machine};
//!
//! /// The norm of a vector that each cell has assembled from its own elements.
//! fn norm(
//!     machine: &Machine,
//!     ids: &[Vec<u64>],
//!     compile: impl Fn(Vec<ConnectionSet>) -> Arc<Image>,
//! ) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
//!     let layout = Layout::from_shared_ids(ids)?;
//!     let mut sets = vec![layout.set("halo", 1)?];
//!     sets.extend(tree_sets(machine, 1)?);
//!     let image = compile(sets);
//!     let halo = Plan::new(&image, "halo", layout, 1)?;
//!     let trees = Collectives::new(&image)?;
//!     let (norms, _report) = World::new(image).try_run(|cell| {
//!         let mut x = vec![1.0; ids[cell.id().index()].len()];
//!         cell.sum_shared(&halo, &mut x)?;
//!         let own = halo.owned(cell.id());
//!         let squares = x.iter().zip(own).filter(|(_, own)| *own).map(|(x, _)| x * x);
//!         let mut square = [squares.sum::<f64>()];
//!         cell.allreduce(&trees, Op::Add, &mut square)?;
//!         Ok(square[0].sqrt())
//!     })?;
//!     Ok(norms)
//! }
//! ```
//!
//! Each cell is a stackful coroutine. On the emulated machine one runs at a time, in the order of
//! cell ids within a clock: the same program gives the same words, clocks and errors on every run.
//! On threads it gives the same words. A run never hangs: if nothing can continue, it ends with an
//! error that states which cell waits for which. Any error of any cell ends the run for all.
//!
//! A cell uses its transport through one internal trait, `port::CellPort`. Invalid calls of a
//! single cell are detected before, so their errors are the same on all transports.
//!
//! The runtime does not compile; the facade crate `conset` does.

#![warn(clippy::as_conversions)]
#![cfg_attr(test, allow(clippy::as_conversions))]

mod call;
mod cell;
mod collectives;
mod deadlock;
mod epochs;
mod error;
mod executor;
mod fabric_driver;
mod fabric_port;
mod former_names;
mod layout;
pub mod lists;
mod loaded_image;
mod message_queue;
mod messages;
#[cfg(feature = "mpi")]
pub mod mpi;
mod patience;
mod phase;
mod plan;
mod port;
mod report;
mod requests;
mod stack;
mod store;
mod sync;
pub mod threads;
mod word;
mod world;

pub use conset_fabric::FaultPlan;
pub use conset_ir as ir;
pub use conset_ir::Image;

pub use cell::Cell;
pub use collectives::{Collectives, ReducePlan, tree_sets, tree_sets_named};
#[doc(hidden)]
pub use epochs::{ByteOutbox, ROUNDS};
pub use epochs::{Epoch, Item, Outbox, Routing, Settled, recorded_set};
pub use error::{
    Awaiting, CellCall, CellError, CellWait, EpochUse, MpiError, PlanError, PlanUse, RunError,
};
pub use layout::{CsrLayout, Layout, LayoutError, LocalCsr, Owned, OwnedLayout};
pub use lists::{Number, Op};
pub use phase::{PhaseName, PhaseRef, SetRef};
pub use plan::Plan;
pub use port::By;
pub use report::RunReport;
pub use requests::Pending;
pub use stack::OVERFLOW_STATUS;
pub use threads::ThreadOptions;
pub use word::Word;
pub use world::{Transport, World};
