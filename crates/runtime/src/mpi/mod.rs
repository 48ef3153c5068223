//! MPI as a transport.
mod comm;
mod error;
mod ffi;
mod meet;
mod place;
mod requests;
mod wait;
mod wires;

pub use comm::Comm;
pub use error::MpiError;
