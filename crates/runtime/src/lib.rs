//! The SPMD interface that solvers link.
//!
//! A *program* is one function, executed by every live cell with an agent. It speaks the paper's
//! language (section 2): it instantiates a phase, sends and receives elements of connections, or
//! exchanges a whole set by the compiled operation lists. It can also send messages, or exchange a
//! set by messages, to be compared: the same buffers, one word changed.
//!
//! What carries the words is chosen by the [`World`], and the program does not change:
//!
//! * the emulated machine of `conset-fabric`, where every word really travels and every clock is
//!   accounted for, for connections and for messages;
//! * [`threads`], a few workers with many cells each, that read each other's memory.
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
//! Solvers exchange vectors. A [`Layout`] says which of their entries belong together, its set is
//! compiled, a [`Plan`] puts layout and image together, and [`Collectives`] reduce. Copies of one
//! entry count once: each is summed by the cell that owns it ([`Plan::owned`]).
//!
//! ```
//! use std::sync::Arc;
//! use conset_runtime::{Collectives, Image, Layout, Op, Plan, World, tree_sets};
//! use conset_runtime::ir::{ConnectionSet, Machine};
//!
//! /// The norm of a vector of which each cell has the sum of its own elements' terms.
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
//! With the feature `mpi` the cells can be dealt to the ranks of an MPI job (`mpi`).
//!
//! Each cell is a stackful coroutine. On the emulated machine one runs at a time, in the order of
//! cell ids within a clock: the same program gives the same words, clocks and errors on every
//! run. On threads it gives the same words. A run never hangs: when nothing can go on, it ends
//! with an error that says who waits for whom. Any error of any cell ends the run for all.
//!
//! A cell talks to its transport through one internal trait, `port::Port`; what cells do wrong by
//! themselves is found before that, so it is the same everywhere.
//!
//! What it does not do: compiling, which is the facade crate's.

mod call;
mod cell;
mod collectives;
mod deadlock;
mod error;
mod executor;
mod fabric_driver;
mod fabric_port;
mod former_names;
mod layout;
pub mod lists;
mod loaded_image;
mod message_queue;
#[cfg(feature = "mpi")]
pub mod mpi;
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

pub use conset_ir as ir;
pub use conset_ir::Image;

pub use cell::Cell;
pub use collectives::{Collectives, tree_sets, tree_sets_named};
pub use error::{Awaiting, CellCall, CellError, CellWait, MpiError, PlanError, PlanUse, RunError};
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
