//! Halos of three-dimensional meshes in many parts beside their bounds: a section of
//! `docs/quality.md`.
//!
//! ```console
//! $ cargo run --release -p conset-benches --bin halos3d [-- FOLDER]
//! $ cargo run --release -p conset-benches --bin halos3d -- print wing@16x16 bricks     # some rows, printed
//! ```

use std::sync::Arc;

use conset::Objective;
use conset::input::{self, Input, LoadOptions};
use conset_benches::measure::{measure, timed_machine, verdict};
use conset_benches::{KEPT_SECTIONS, replace_section, say, shared_mesh};
use conset_ir::{ConnectionSet, Machine};

/// Issue 11: clocks over the bound.
const OVER_BOUND: f64 = 1.10;

const HEADING: &str = KEPT_SECTIONS[1];

/// Meshes made by others, and generated ones.
const MESHES: [&str; 7] = [
    "walshaw/wing_nodal.graph",
    "derived/sf10.zlib.vtu",
    "derived/sf10.pattern.sym.mtx",
    "su2/brick_tets_3d.su2",
    "derived/gmsh_box.v41b.msh",
    "metis/copter2.graph",
    "bricks:24x20x25",
];

const MACHINES: [&str; 4] = ["torus:16x16", "torus:16x32", "torus:8x8x8", "torus:32x32"];

/// The halo of a mesh with a part for each cell; `None` if the mesh is not here.
fn halo(mesh: &str, machine: &Machine) -> Option<Arc<ConnectionSet>> {
    let (name, bytes) = if mesh.contains(':') {
        let mesh = conset_mesh::generate::by_name(mesh, 1).expect("a generator of the list");
        let format = conset_mesh::write_msh::MshFormat::V41Binary;
        let bytes = conset_mesh::write_msh::write(&mesh, format).expect("a small mesh");
        ("generated.msh".to_owned(), bytes)
    } else {
        shared_mesh(mesh)?
    };
    // One partition, because the table is about plans.
    let options = LoadOptions::default().seed(1).max_partitions(1);
    match input::load(&name, &bytes, machine, &options, &mut |_| ()) {
        Ok(Input::Program(loaded)) => Some(loaded.program.sets()[0].clone()),
        other => panic!("{mesh} is no mesh: {other:?}"),
    }
}

const HEAD: &str = "| mesh | machine | connections | phases / bound | clocks | over bound | planner | plans | compiled in |\n|---|---|---|---|---|---|---|---|---|\n";

fn line(mesh: &str, spec: &str) -> Option<String> {
    let machine = timed_machine(spec);
    let set = halo(mesh, &machine)?;
    let row = measure(&machine, &set, Objective::Time);
    let (phases, bound) = row.phases;
    Some(format!(
        "| {mesh} | {spec} | {} | {} / {bound} | {} | {} | {} | {} | {:.1} s |\n",
        set.len(),
        verdict(phases.to_string(), phases as u32 <= bound),
        row.clocks.0,
        verdict(format!("{:.3}", row.over_bound()), row.over_bound() <= OVER_BOUND),
        row.planner(),
        row.search.plans,
        row.seconds,
    ))
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let print = arguments.next_if(|word| word == "print").is_some();
    let filters: Vec<String> = if print { arguments.collect() } else { Vec::new() };
    let mut section = format!(
        "{HEADING}\n\nWritten by `cargo run --release -p conset-benches --bin halos3d`. One word for each shared node (or cut edge of a graph), a part for each cell, `iwarp` parameters with timed starts. Asked: \
         phases at the bound, and at most {OVER_BOUND:.2} over the bound in time. What is missed is **bold**. *Compiled in* is CPU seconds.\n\n{HEAD}"
    );
    say(HEAD);
    for mesh in MESHES {
        for spec in MACHINES {
            // A filter is a part of the name of a mesh, and after a `@` of a machine.
            let is_meant = |filter: &String| {
                let (name, on) = filter.split_once('@').unwrap_or((filter, ""));
                mesh.contains(name) && spec.contains(on)
            };
            if !filters.is_empty() && !filters.iter().any(is_meant) {
                continue;
            }
            if let Some(line) = line(mesh, spec) {
                say(&line);
                section.push_str(&line);
            }
        }
    }
    if print { Ok(()) } else { replace_section(HEADING, &section) }
}
