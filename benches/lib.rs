//! What the benches share: inputs, and where the meshes made by others are.
//!
//! A bench that needs a mesh made by others is left out where that is absent, and says so
//! (`fixtures/shared_meshes.rs`).

#[path = "../fixtures/shared_meshes.rs"]
mod shared_meshes;

pub mod families;
pub mod partition_table;

use std::sync::Arc;

use conset::input::{self, Input, LoadOptions, PartitionUnit};
use conset_ir::{ConnectionSet, Machine};

/// The paper's machine.
pub fn iwarp() -> Arc<Machine> {
    machine("iwarp")
}

/// The machine of a specification.
pub fn machine(spec: &str) -> Arc<Machine> {
    Arc::new(Machine::from_spec(spec).expect("benches name machines that exist"))
}

/// The set of a pattern.
pub fn pattern(spec: &str, machine: &Machine, words: u32) -> Arc<ConnectionSet> {
    let set = conset_mesh::patterns::generate(spec, machine, words);
    Arc::new(set.expect("benches name patterns that exist"))
}

/// A mesh made by others: its name and bytes, if the folder is here.
pub fn shared_mesh(name: &str) -> Option<(String, Vec<u8>)> {
    Some((name.to_owned(), shared_meshes::bytes(name)?))
}

/// The placed halo of a shared mesh.
pub fn shared_halo(
    name: &str,
    elements: PartitionUnit,
    machine: &Machine,
) -> Option<Arc<ConnectionSet>> {
    let (name, bytes) = shared_mesh(name)?;
    // One partition, so that results compare with those of earlier versions.
    let options = LoadOptions::default().elements(elements).max_partitions(1);
    match input::load(&name, &bytes, machine, &options, &mut |_| ()) {
        Ok(Input::Program(loaded)) => Some(loaded.program.sets()[0].clone()),
        other => panic!("{name} is no mesh: {other:?}"),
    }
}

/// Prints a line of a table that takes minutes.
#[allow(clippy::print_stderr, reason = "a run takes minutes and must be seen to go on")]
pub fn say(line: &str) {
    eprint!("{line}");
}
