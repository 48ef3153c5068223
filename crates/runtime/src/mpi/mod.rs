//! MPI as a transport, with the feature `mpi`.
//!
//! ```text
//! let comm = Comm::world()?;                          // or Comm::from_fortran(handle)
//! let world = World::new(image).on(Transport::Mpi(comm));
//! let (results, _) = world.try_run(program)?;         // of the cells of this rank
//! ```
//!
//! The same program runs on every rank of a job (`mpirun -n 8 program`). The cells are dealt to
//! the ranks in contiguous blocks; the cells of one rank take turns on one thread and hand words
//! to each other without MPI. An exchange keeps its compiled phases: a cell starts their sends in
//! the compiled order, and waits for what a phase receives before the next only where the set has an
//! order. What arrives is combined in the order of connection ids, so results have the same bits as
//! on the other transports. An exchange that is begun goes on while programs do something else, as
//! far as MPI goes on by itself and whenever any cell of the rank calls.
//!
//! * [`Comm`] is the runtime's own duplicate of a communicator, one for any number of worlds.
//! * Requests are persistent and belong to a set in a run; an exchange allocates nothing.
//! * Every run first compares the digests of the ranks' images; if some differ, every rank gets an
//!   error that names the odd ones.
//! * Switches and the end of a run are agreed upon by all ranks, and what is wrong there is an error
//!   on all of them. What one rank alone finds (an error of a cell, a panic, a time-out) it prints,
//!   and ends the job, as nobody could tell the others. With one rank these are values too.
//! * Cells that do not make the same switches and exchanges are named: when the ranks meet, or when
//!   one waits for another for long.
//! * A wait without anything going on at this rank ends after a time-out ([`Comm::timeout`]), with
//!   an error that says who waits for whom in which phase. It cannot know a rank that is lost from
//!   one that computes for long.
//!
//! What it does not do: more than one run at a time on a communicator, more than one thread on a
//! rank, and clocks.
//!
//! Bottom up: `ffi` (the C shim), `requests`, `comm`, `wait`; `meet` (what all ranks do together),
//! `mail` (words one by one, messages); `place`, `lay` and `wires` (exchanges), `requests` (those that
//! were begun); `run` with `agree` and `left` (what its meetings are about) and `steps` (what cells do
//! together, compared), and `port`.

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
pub use comm::Comm;
pub(crate) use run::{cells, run};
