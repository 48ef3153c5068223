//! Structured cases: larger machines, patterns, and halos of partitioned meshes.

use arbitrary::{Result, Unstructured};
use conset::ir::{ConnectionSet, Machine, Topology};
use conset::mesh::halo::HaloKind;
use conset::mesh::read::Reading;
use conset::mesh::{Source, generate};
use conset::partition_route::placement::Method;

use conset::input::{self, Input, LoadOptions, LoadedProgram, NodeWords};

/// The greatest number of connections of a structured set. More only take longer.
const MAX_CONNECTIONS: usize = 400;

/// A larger machine, a fat-tree with any parents, or a graph with switches.
pub(crate) fn topology(u: &mut Unstructured<'_>) -> Result<Topology> {
    Ok(match u.int_in_range(0..=5)? {
        0 => Topology::Torus { dims: vec![u.int_in_range(4..=8)?, u.int_in_range(2..=8)?] },
        1 => Topology::Mesh { dims: vec![u.int_in_range(4..=8)?, u.int_in_range(2..=8)?] },
        2 => Topology::Ring { cells: u.int_in_range(10..=40)? },
        3 => Topology::Hypercube { dimension: u.int_in_range(5..=6)? },
        4 => {
            let parents = (0..u.int_in_range(1..=4)?).map(|_| u.int_in_range(1..=4));
            Topology::FatTree {
                parents: parents.collect::<Result<_>>()?,
                leaves: u.int_in_range(1..=40)?,
            }
        }
        _ => {
            let (cells, switches) = (u.int_in_range(1..=12u32)?, u.int_in_range(0..=8u32)?);
            let all = cells + switches;
            let mut links = Vec::new();
            // A tree of links in both directions, so that most cells reach each other.
            for node in 1..all {
                let other = u.int_in_range(0..=node - 1)?;
                links.extend([(node, other), (other, node)]);
            }
            for _ in 0..u.int_in_range(0..=2 * all)? {
                let link = (u.int_in_range(0..=all - 1)?, u.int_in_range(0..=all - 1)?);
                links.extend(Some(link).filter(|(from, to)| from != to));
            }
            Topology::Graph { cells, switches, links }
        }
    })
}

/// The set of a pattern, or the halo of a mesh, with the name of set number `row`; `None` if it does not
/// fit the machine.
pub(crate) fn set(
    u: &mut Unstructured<'_>,
    machine: &Machine,
    row: u32,
) -> Result<Option<ConnectionSet>> {
    let loaded = if u.arbitrary()? { pattern(u, machine)? } else { halo(u, machine)? };
    let Some(set) = loaded.and_then(|loaded| loaded.program.sets().first().cloned()) else {
        return Ok(None);
    };
    if set.len() > MAX_CONNECTIONS {
        return Ok(None);
    }
    let renamed = ConnectionSet::new(format!("s{row}"), set.connections().to_vec())
        .and_then(|renamed| renamed.with_order(set.order().to_vec()))
        .and_then(|renamed| match set.nodes() {
            Some(nodes) => renamed.with_nodes(nodes.clone()),
            None => Ok(renamed),
        });
    Ok(Some(renamed.expect("only the name differs")))
}

fn pattern(u: &mut Unstructured<'_>, machine: &Machine) -> Result<Option<LoadedProgram>> {
    let names = [
        "torus",
        "stencil",
        "nearest",
        "shift",
        "ring-shift:3",
        "hypercube",
        "butterfly",
        "bit-reversal",
        "transpose",
        "all-to-all",
        "one-to-all",
        "all-to-one",
        "broadcast-tree",
        "reduction-tree",
        "random:density=0.2",
    ];
    let name = *u.choose(&names)?;
    let words = *u.choose(&[1, 3, 16, 100, 700])?;
    Ok(input::pattern(name, machine, words).ok())
}

fn halo(u: &mut Unstructured<'_>, machine: &Machine) -> Result<Option<LoadedProgram>> {
    let size = |u: &mut Unstructured<'_>, most: u32| u.int_in_range(1..=most);
    let mesh = match u.int_in_range(0..=3)? {
        0 => format!("plate:{}x{}", size(u, 12)?, size(u, 12)?),
        1 => format!("two-plates:{}x{}", size(u, 6)?, size(u, 6)?),
        2 => format!("bricks:{}x{}x{}", size(u, 4)?, size(u, 4)?, size(u, 4)?),
        _ => format!("random:{}", u.int_in_range(12..=120u32)?),
    };
    let seed = u.int_in_range(0..=9)?;
    let Ok(mesh) = generate::by_name(&mesh, seed) else { return Ok(None) };
    let kind = *u.choose(&HaloKind::ALL)?;
    let words = *u.choose(&[1, 2, 7])?;
    let mut options = LoadOptions::default()
        .seed(seed)
        .halo(kind)
        .layers(u.int_in_range(1..=2)?)
        .words_per_node(NodeWords::Each(words))
        .max_partitions(u.int_in_range(1..=3)?);
    if u.arbitrary()? {
        options = options.parts(u.int_in_range(1..=machine.endpoints().count().max(1))?);
    }
    options = options.placement(*u.choose(&[Method::Given, Method::Best])?);
    let reading = Reading::from(Source::Mesh(mesh));
    Ok(match input::from_reading("mesh", reading, machine, &options, &mut |_| ()) {
        Ok(Input::Program(loaded)) => Some(*loaded),
        _ => None,
    })
}
