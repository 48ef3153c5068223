//! Solvers that communicate by compiled connection sets.
//!
//! There is one binary for each solver. The library has:
//!
//! * the solvers: [`poisson`] and [`elasticity`] (finite elements), [`wave`] (explicit time steps),
//!   [`laplacian`] (matrix of a graph by rows), [`heat`] (explicit steps, from files), [`fft`] (transposes), [`gauss`] (dense
//!   elimination), [`composite`] (volume rendering, reductions by swap). Each has a function that a cell runs, a sequential one, and one that compares
//!   them; `attached` (with the feature `mpi`) is one in an MPI program without a callback;
//! * programs in which nobody knows before who sends what to whom: [`histogram`], [`bfs`] (breadth-first search),
//!   [`wolff`] (clusters of the Ising model) and [`lee`] (maze routing), the last two by the schemes of [`growth`];
//! * the numerics: [`mesh`], [`element`], [`system`], [`sparse`], [`cg`];
//! * the set-up: [`team`] compiles sets and runs programs, [`assembled`] does so for a mesh whose
//!   parts share nodes.
//!
//! The solvers are written to be read; they are neither the fastest nor the most general of their
//! kind.

pub mod assembled;
#[cfg(feature = "mpi")]
pub mod attached;
pub mod bfs;
pub mod cg;
pub mod composite;
pub mod elasticity;
pub mod element;
pub mod fft;
pub mod gauss;
pub mod growth;
pub mod heat;
pub mod histogram;
pub mod laplacian;
pub mod lee;
pub mod mesh;
pub mod poisson;
pub mod report;
pub mod sparse;
pub mod system;
pub mod team;
pub mod vtu;
pub mod wave;
pub mod wolff;

/// Why an example could not do what was asked.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A failure with a message of its own.
pub fn failure(message: impl Into<String>) -> Failure {
    message.into().into()
}

/// A number in (-1, 1) for each index: the same on every machine, with no pattern to the eye.
pub fn noise(seed: u64, index: u64) -> f64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
    let mut x =
        seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}
