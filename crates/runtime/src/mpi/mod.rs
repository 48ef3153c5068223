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
//! order. Otherwise all that a cell sends to another is one message, whatever its phases. Arrived words are combined in the order of connection ids, so results have the same bits
//! as on the other transports. A nonblocking exchange proceeds while programs compute, as far as
//! MPI progresses by itself and whenever any cell of the rank makes a call.
//!
//! * [`Comm`] is the runtime's own duplicate of a communicator; one serves any number of worlds.
//!   [`Comm::broadcast_image`] gives all ranks the image that one of them compiles.
//! * Requests are persistent and belong to a set in a run; an exchange allocates nothing.
//! * Rows of more than 16 kB are sent from where the program has them and received where it wants them, if
//!   their connection is the only one between its cells and the set has no order. They have requests that
//!   serve once.
//! * Every run first compares the digests of the images of all ranks. If some differ, every rank
//!   gets an error that names these ranks.
//! * A tree is walked by one message over each edge ([`crate::Collectives`]), without agreement of the
//!   ranks.
//! * A run that fails returns an error on all ranks, and the communicator can be used again. All
//!   ranks agree on switches and on the end of a run, and errors found there are the same on all of
//!   them. An error that one rank finds alone (of a cell, a panic of a program) is
//!   [`MpiError::Elsewhere`] on the others, which learn of it within a fraction of a second while
//!   they wait. A panic is the program's own where it catches it.
//! * Errors of MPI, and time-outs, end the job: the other ranks could not be told.
//! * Cells that do not make the same switches and exchanges are named: when the ranks agree, or
//!   when one has waited long for another.
//! * A wait without progress on this rank is reported on standard error after 10 seconds, then after
//!   20, 40, ...: which cell waits for which rank, in which phase. It goes on for as long as it takes,
//!   as a lost rank cannot be told from one that computes for a long time, unless there is a time-out
//!   ([`Comm::timeout`], or the environment variable `CONSET_TIMEOUT`, in seconds).
//!
//! Programs with an MPI `main` of their own use [`Attached`] instead: no image, no callback, one cell a
//! rank (module `attached`). [`tune`] measures what messages cost and writes it as a machine file.
//!
//! Limits: one run at a time on a communicator, one thread per rank, no clocks.
//!
//! Modules, bottom up: `ffi` (the C shim), `aligned_buffer`, `raw_requests`, `comm`, `backoff`;
//! `borrowed_request`; `gather_at_root`, `message_queue` (single words, messages); `rank_map`, `message_layout`,
//! `passed_words`, `cell_exchange`, `body_messages` and `persistent_requests` (exchanges), `nonblocking`; `byte_requests`, `tree` (a node of a tree, which
//! needs no run), `walks` (the trees of a run) and `started_walks`; `run` with `consensus`, `unreceived`, `mismatch` and
//! `failure`; and `port`, with `direct` (one cell to another), `direct_rounds` (rounds of epochs),
//! and `live_tree` (short reductions).

mod aligned_buffer;
mod attached;
mod backoff;
#[cfg(feature = "mpi-baseline")]
pub mod baseline;
mod body_messages;
mod borrowed_request;
mod broadcast;
mod byte_requests;
mod cell_exchange;
mod comm;
mod consensus;
mod direct;
mod direct_rounds;
mod failure;
mod ffi;
mod gather_at_root;
mod live_tree;
mod message_layout;
mod message_queue;
mod mismatch;
mod nonblocking;
mod passed_words;
mod persistent_requests;
mod port;
mod rank_map;
mod raw_requests;
mod rounds;
mod run;
mod started_walks;
mod tree;
pub mod tune;
mod unreceived;
mod walks;

pub use crate::error::MpiError;
#[doc(hidden)]
pub use attached::set_up_messages;
pub use attached::{
    Attached, AttachedRows, Field, Halo, HaloError, PendingExchange, PendingReduction, Pod,
    SetupFault,
};
pub use comm::Comm;
pub(crate) use run::{cells, run};
