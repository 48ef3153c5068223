//! The SPMD interface that solvers link.
