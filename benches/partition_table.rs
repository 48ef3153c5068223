//! The search for a partition, compared with the partitions of single seeds.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use conset::Compiler;
use conset::input::{self, Input, LoadOptions, PartitionUnit};
use conset_ir::Machine;
use conset_mesh::generate;
use conset_mesh::write_msh::{MshFormat, write};

use crate::{machine, shared_mesh};

/// The heading of the section.
pub const HEADING: &str = "## Partitions";

/// Meshes whose results were looked at while the search was developed.
const TUNED: [&str; 16] = [
    "walshaw/crack.graph",
    "walshaw/3elt.graph",
    "walshaw/whitaker3.graph",
    "walshaw/data.graph",
    "walshaw/wing_nodal.graph",
    "walshaw/fe_body.graph",
    "metis/4elt.graph",
    "metis/copter2.graph",
    "metis/metis.mesh",
    "su2/brick_tets_3d.su2",
    "su2/mesh_RAE2822_turb.su2",
    "derived/gmsh_plate.v41a.msh",
    "derived/gmsh_box.v41b.msh",
    "derived/global.v41a.msh",
    "derived/sf10.pattern.sym.mtx",
    "derived/sf10.ele",
];

/// Meshes that were not.
const HELD_OUT: [&str; 5] = [
    "petsc/annulus-20.exo",
    "vtk/tet_binary_lz4_h32.vtu",
    "gmsh-versions/nested_cubes.msh",
    "exodus/geom_8.exo",
    "walshaw/crack.graph, triangles",
];

/// Generated meshes that were not either, and their seeds.
const GENERATED: [(&str, u64); 4] =
    [("m11k", 3), ("cracked:6000", 2), ("tets:18x15x12", 1), ("bricks:24x16x20", 1)];

/// What is asked: clocks within 5 % of the best of six seeds in 40 of 42 cases, within 10 % in all,
/// and three times the seconds of one seed, or one second.
const NEAR: f64 = 1.05;
const FAR: f64 = 1.10;
const TIMES: f64 = 3.0;

/// The seeds that are compared.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=6;

struct Mesh {
    name: String,
    bytes: Vec<u8>,
    unit: PartitionUnit,
}

fn shared(name: &str) -> Option<Mesh> {
    let (file, unit) = match name.strip_suffix(", triangles") {
        Some(file) => (file, PartitionUnit::Triangles),
        None => (name, PartitionUnit::AsRead),
    };
    let (_, bytes) = shared_mesh(file)?;
    Some(Mesh { name: name.to_owned(), bytes, unit })
}

fn generated(spec: &str, seed: u64) -> Mesh {
    let mesh = generate::by_name(spec, seed).expect("benches name meshes that exist");
    let bytes = write(&mesh, MshFormat::V41Binary).expect("it is a mesh");
    Mesh { name: format!("{spec}.msh"), bytes, unit: PartitionUnit::AsRead }
}

/// Clocks, phases and seconds of reading and compiling a mesh, and how many partitions were looked
/// at.
fn compiled(
    mesh: &Mesh,
    machine: &Arc<Machine>,
    seed: u64,
    partitions: Option<u32>,
) -> (u64, usize, f64, usize) {
    let start = Instant::now();
    let options = LoadOptions::default().elements(mesh.unit).seed(seed).max_partitions(partitions);
    let file = mesh.name.split(',').next().unwrap_or_default();
    let loaded = match input::load(file, &mesh.bytes, machine, &options, &mut |_| ()) {
        Ok(Input::Program(loaded)) => loaded,
        other => panic!("{} is no mesh: {other:?}", mesh.name),
    };
    let compiled = Compiler::new(machine).seed(seed).compile(&loaded.program).expect("it fits");
    let seconds = start.elapsed().as_secs_f64();
    let set = &compiled.schedule().sets()[0];
    let report = loaded.halo.and_then(|halo| halo.partition);
    let looked_at = report.map_or(0, |report| report.looked_at);
    (set.predicted_clocks, set.timetable.phases().len(), seconds, looked_at)
}

#[derive(Default)]
struct Count {
    cases: usize,
    near: usize,
    far: usize,
    late: usize,
}

fn rows(out: &mut String, meshes: &[Mesh]) -> Count {
    let mut count = Count::default();
    for mesh in meshes {
        for spec in ["iwarp:4x4", "iwarp:8x8"] {
            let machine = machine(spec);
            let seeds: Vec<_> = SEEDS.map(|seed| compiled(mesh, &machine, seed, Some(1))).collect();
            let (clocks, phases, seconds, looked_at) = compiled(mesh, &machine, 1, None);
            let best = seeds.iter().map(|seed| seed.0).min().unwrap_or(1);
            let worst = seeds.iter().map(|seed| seed.0).max().unwrap_or(1);
            let ratio = clocks as f64 / best as f64;
            let late = seconds > (TIMES * seeds[0].2).max(1.0);
            count.cases += 1;
            count.near += usize::from(ratio <= NEAR);
            count.far += usize::from(ratio > FAR);
            count.late += usize::from(late);
            let mark = |bold: bool, text: String| if bold { format!("**{text}**") } else { text };
            let line = format!(
                "| {} | {} | {} | {} | {best} | {worst} | {phases} | {clocks} | {} | {looked_at} | {:.2} s | {} |\n",
                mesh.name,
                machine.endpoints().count(),
                seeds[0].1,
                seeds[0].0,
                mark(ratio > NEAR, format!("{ratio:.3}")),
                seeds[0].2,
                mark(late, format!("{seconds:.2} s")),
            );
            crate::say(&line);
            out.push_str(&line);
        }
    }
    count
}

fn table(title: &str, meshes: &[Mesh]) -> String {
    let mut out = format!(
        "### {title}\n\n\
         | mesh | parts | phases, seed 1 | clocks, seed 1 | best of seeds 1 to 6 | worst | phases, default | clocks, default | over best seed | partitions | seed 1 in | default in |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let count = rows(&mut out, meshes);
    writeln!(
        out,
        "\n{} of {} cases within 5 % of the best seed, {} more than 10 % behind, {} slower than three times one seed and one second.\n",
        count.near, count.cases, count.far, count.late,
    )
    .expect("a string");
    out
}

/// The section of `docs/quality.md`.
pub fn section() -> String {
    let mut out = format!(
        "{HEADING}\n\n\
         The default search against METIS's own partition with each of the seeds 1 to 6 (`--max-partitions 1`), in 16 and 64 parts on `iwarp:4x4` and `iwarp:8x8`, \
         predicted clocks. Asked: within 5 % of the best seed in at least 40 of 42 cases, never more than 10 % behind, in at most three times the time of one seed, or 1 s; \
         what is missed is **bold**. Seconds are of reading, partitioning, placing and compiling, by the clock of one run; other programs on the machine make them longer.\n\n"
    );
    let tuned: Vec<Mesh> = TUNED.iter().filter_map(|name| shared(name)).collect();
    let mut held_out: Vec<Mesh> = HELD_OUT.iter().filter_map(|name| shared(name)).collect();
    held_out.extend(GENERATED.iter().map(|&(spec, seed)| generated(spec, seed)));
    if tuned.is_empty() {
        out.push_str("The folder of shared meshes was absent in this run.\n\n");
    } else {
        out.push_str(&table("Meshes that the search was tuned on", &tuned));
    }
    out.push_str(&table("Meshes held out", &held_out));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
