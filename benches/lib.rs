//! What the benches share: inputs, and where the meshes made by others are.
//!
//! A bench that needs a mesh made by others is left out where that is absent, and says so
//! (`fixtures/shared_meshes.rs`).

#[path = "../fixtures/shared_meshes.rs"]
mod shared_meshes;

pub mod families;
pub mod measure;
pub mod message_table;
pub mod partition_table;
pub mod prediction_table;

use std::path::Path;
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

/// The meshes of `docs/quality.md` whose halos are exchanged in 64 parts, and what is partitioned.
pub const HALOS: [(&str, PartitionUnit); 16] = [
    ("walshaw/crack.graph", PartitionUnit::Triangles),
    ("walshaw/crack.graph", PartitionUnit::AsRead),
    ("walshaw/3elt.graph", PartitionUnit::AsRead),
    ("walshaw/whitaker3.graph", PartitionUnit::AsRead),
    ("walshaw/data.graph", PartitionUnit::AsRead),
    ("walshaw/wing_nodal.graph", PartitionUnit::AsRead),
    ("walshaw/fe_body.graph", PartitionUnit::AsRead),
    ("metis/4elt.graph", PartitionUnit::AsRead),
    ("metis/copter2.graph", PartitionUnit::AsRead),
    ("metis/metis.mesh", PartitionUnit::AsRead),
    ("spark98/sf10.64.pack", PartitionUnit::AsRead),
    ("su2/brick_tets_3d.su2", PartitionUnit::AsRead),
    ("derived/gmsh_plate.v41a.msh", PartitionUnit::AsRead),
    ("derived/gmsh_box.v41b.msh", PartitionUnit::AsRead),
    ("derived/global.v41a.msh", PartitionUnit::AsRead),
    ("derived/sf10.pattern.sym.mtx", PartitionUnit::AsRead),
];

/// The name of a halo in tables.
pub fn halo_name(file: &str, elements: PartitionUnit) -> String {
    let triangles = if elements == PartitionUnit::Triangles { ", triangles" } else { "" };
    format!("{file}{triangles}")
}

/// Headings of the sections of `quality.md` that `--bin quality` keeps, because other programs, or
/// programs that are not part of this repository, measure them.
pub const KEPT_SECTIONS: [&str; 3] = [
    "## All-to-all on tori",
    "## Halos of three-dimensional meshes in 256 to 1024 parts",
    "## A scheduler for networks on chip",
];

/// Where a section of a page is, with its heading; at the end if the page does not have it.
fn section(page: &str, heading: &str) -> std::ops::Range<usize> {
    let start = page.find(heading).unwrap_or(page.len());
    let rest = page[start..].get(1..);
    let end = rest.and_then(|rest| rest.find("\n## ")).map_or(page.len(), |at| start + at + 2);
    start..end
}

/// The sections of a page that are kept when it is written again.
pub fn kept_sections(page: &str) -> String {
    let sections = KEPT_SECTIONS.iter().map(|heading| page[section(page, heading)].trim_end());
    let sections = sections.filter(|section| !section.is_empty());
    sections.map(|section| format!("\n{section}\n")).collect()
}

/// Replaces a section of `quality.md`, in the folder that is the program's first argument or in
/// `docs`; a section that is not there is appended.
///
/// # Errors
/// A file that cannot be written.
pub fn replace_section(heading: &str, text: &str) -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".to_owned());
    let path = Path::new(&folder).join("quality.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let old = section(&page, heading);
    let before = page[..old.start].trim_end();
    let after = &page[old.end..];
    let gap = if after.is_empty() { "" } else { "\n" };
    std::fs::write(path, format!("{before}\n\n{text}{gap}{after}"))
}

/// Prints a line of a table that takes minutes.
#[allow(clippy::print_stderr, reason = "a run takes minutes and must be seen to go on")]
pub fn say(line: &str) {
    eprint!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_other_programs_are_kept() {
        let [first, _, last] = KEPT_SECTIONS;
        let page =
            format!("# Page\n\n## Own\n\na\n\n{last}\n\nb\n\n## More\n\nc\n\n{first}\n\nd\n");
        assert_eq!(kept_sections(&page), format!("\n{first}\n\nd\n\n{last}\n\nb\n"));
        assert_eq!(kept_sections("# Page\n"), "");
    }
}
