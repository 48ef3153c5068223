//! The SPMD interface that solvers link.

pub use conset_ir as ir;
pub use conset_ir::Image;
