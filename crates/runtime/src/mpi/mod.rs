//! MPI as a transport.
#[cfg(feature = "mpi-baseline")]
pub mod baseline;
mod comm;
mod error;
mod ffi;
mod mail;
mod meet;
mod place;
mod port;
mod requests;
mod run;
mod wait;
mod wires;

pub use comm::Comm;
pub use error::MpiError;
pub(crate) use run::{cells, run};
