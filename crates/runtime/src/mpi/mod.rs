//! The transport over MPI, with the feature `mpi`.
//!
//! ```text
//! let comm = Comm::world()?;                          // or Comm::from_fortran(handle)
//! let world = World::new(image).on(Transport::Mpi(comm));
//! let (results, _) = world.try_run(program)?;         // of the cells of this rank
//! ```
//!
//! The same program runs on every rank of a job (`mpirun -n 8 program`). The cells are distributed
//! to the ranks in contiguous blocks. The cells of one rank take turns on one thread and exchange
//! words without MPI. An exchange keeps its compiled phases: a cell starts the sends in the
//! compiled order, and waits for the receives of a phase before the next only if the set has an
//! order. Arrived words are combined in the order of connection ids, so results have the same bits
//! as on the other transports. A nonblocking exchange proceeds while programs compute, as far as
//! MPI progresses by itself and whenever any cell of the rank makes a call.
//!
//! * [`Comm`] is the runtime's own duplicate of a communicator; one serves any number of worlds.
//! * Requests are persistent and belong to a set in a run; an exchange allocates nothing.
//! * Every run first compares the digests of the images of all ranks. If some differ, every rank
//!   gets an error that names these ranks.
//! * All ranks agree on switches and on the end of a run, and errors found there are errors on all
//!   of them. Errors that one rank finds alone (an error of a cell, a panic, a time-out) are
//!   printed, and the job is aborted, because the other ranks could not be told. With one rank they
//!   are values, too.
//! * Cells that do not make the same switches and exchanges are named: when the ranks agree, or
//!   when one has waited long for another.
//! * A wait without progress on this rank ends after a time-out ([`Comm::timeout`]), with an error
//!   that states which cell waits for which in which phase. It cannot distinguish a lost rank from one that
//!   computes for a long time.
//!
//! Programs with an MPI `main` of their own use [`Attached`] instead: no image, no callback, one cell a
//! rank (module `attached`).
//!
//! Limits: one run at a time on a communicator, one thread per rank, no clocks.
//!
//! Modules, bottom up: `ffi` (the C shim), `raw_requests`, `comm`, `backoff`; `gather_at_root`,
//! `message_queue` (single words, messages); `rank_map`, `message_layout` and `persistent_requests`
//! (exchanges), `nonblocking`; `run` with `consensus`, `unreceived` and `mismatch`; and `port`.

mod attached;
mod backoff;
#[cfg(feature = "mpi-baseline")]
pub mod baseline;
mod comm;
mod consensus;
mod ffi;
mod gather_at_root;
mod message_layout;
mod message_queue;
mod mismatch;
mod nonblocking;
mod persistent_requests;
mod port;
mod rank_map;
mod raw_requests;
mod run;
mod unreceived;

pub use crate::error::MpiError;
#[doc(hidden)]
pub use attached::set_up_messages;
pub use attached::{
    Attached, AttachedRows, Field, Halo, HaloError, PendingExchange, Pod, SetupFault,
};
pub use comm::Comm;
pub(crate) use run::{cells, run};
