//! Mesh generators: replicas of the paper's four meshes, and simple shapes.
//!
//! `lattice` generates plates and boxes with regular elements, `delaunay` generates triangulated
//! plates with random nodes. The paper's meshes (section 5.2, table 4) are not published; the ones
//! generated here have the same type, dimension, number of nodes and number of elements:
//!
//! | name | nodes | elements | description |
//! |---|---|---|---|
//! | `m11k` | 11000 | 20998 triangles | 10000 random nodes in a plate, 1000 evenly spaced on its boundary |
//! | `c10k` | 10240 | 20141 triangles | a plate with a crack, refined around the crack |
//! | `c100k` | 105000 | 204873 triangles | the same |
//! | `q20k` | 22451 | 20000 bricks | a box with a valley and a hill on its top |
//!
//! A triangulated disk with n nodes, h of them on its boundary, has 2n - 2 - h triangles, which
//! determines the numbers of boundary nodes. Every generated mesh is conforming, every node is used,
//! and every element has a positive area or volume. Equal specifications and seeds give equal meshes
//! on any computer: only operations that IEEE 754 defines exactly are used, no sines and no
//! logarithms.

mod delaunay;
mod lattice;

use conset_ir::Result;
use conset_ir::convert::to_u32;

pub use delaunay::{cracked_plate, random_plate};
pub use lattice::{bricks, plate, tetrahedra, two_plates, valley};

use crate::model::Mesh;
use crate::patterns::Parameter;
use crate::patterns::spec::Spec;

/// The largest number of elements that a specification may request.
const MAX_ELEMENTS: usize = 1 << 24;
/// The largest number of nodes of a triangulation, which takes about 200 bytes per node.
const MAX_DELAUNAY_NODES: usize = 1 << 22;

/// A mesh generator of [`by_name`].
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// Its name in specifications.
    pub name: &'static str,
    /// Its parameters, in the order of values without a name.
    pub parameters: &'static [Parameter],
    /// Its description, in one line.
    pub summary: &'static str,
    parse: fn(&mut Spec<'_>) -> Result<MeshSpec>,
}

/// A parsed specification with all its numbers.
enum MeshSpec {
    Plate([u32; 2]),
    TwoPlates([u32; 2]),
    Bricks([u32; 3]),
    Tetrahedra([u32; 3]),
    Valley,
    Random { nodes: usize, rim: usize },
    Cracked { nodes: usize, rim: usize, crack: usize },
}

const fn generator(
    name: &'static str,
    parameters: &'static [Parameter],
    summary: &'static str,
    parse: fn(&mut Spec<'_>) -> Result<MeshSpec>,
) -> Generator {
    Generator { name, parameters, summary, parse }
}

const SQUARES: Parameter =
    Parameter::new("size", "16x16", "squares in x and y, two triangles each");
const CUBES: Parameter = Parameter::new("size", "8x8x8", "bricks in x, y and z");

/// All generators.
pub const LIST: &[Generator] = &[
    generator("m11k", &[], "the paper's: 11000 nodes, 20998 triangles, random", |_| {
        Ok(MeshSpec::Random { nodes: 11_000, rim: 1_000 })
    }),
    generator("c10k", &[], "the paper's: 10240 nodes, 20141 triangles, cracked", |_| {
        Ok(MeshSpec::Cracked { nodes: 10_240, rim: 161, crack: 88 })
    }),
    generator("c100k", &[], "the paper's: 105000 nodes, 204873 triangles, cracked", |_| {
        Ok(MeshSpec::Cracked { nodes: 105_000, rim: 1_601, crack: 1_762 })
    }),
    generator("q20k", &[], "the paper's: 22451 nodes, 20000 bricks, a valley", |_| {
        Ok(MeshSpec::Valley)
    }),
    generator("plate", &[SQUARES], "a rectangle of triangles", |spec| {
        Ok(MeshSpec::Plate(sizes(spec, [16, 16])?))
    }),
    generator(
        "strip",
        &[Parameter::new("length", "64", "squares in a row, two triangles each")],
        "a plate one square wide",
        |spec| Ok(MeshSpec::Plate([spec.number("length", 64, 1, to_u32(MAX_ELEMENTS))?, 1])),
    ),
    generator("two-plates", &[SQUARES], "two plates that share no nodes", |spec| {
        Ok(MeshSpec::TwoPlates(sizes(spec, [16, 16])?))
    }),
    generator(
        "random",
        &[
            Parameter::new("nodes", "1000", "total number of nodes"),
            Parameter::new("rim", "3 * sqrt(nodes)", "nodes on the boundary, at least 4"),
        ],
        "a square of triangles with random nodes",
        |spec| {
            let nodes = spec.number("nodes", 1000, 4, MAX_DELAUNAY_NODES)?;
            let rim = spec.number("rim", (3 * nodes.isqrt()).clamp(4, nodes), 4, nodes)?;
            Ok(MeshSpec::Random { nodes, rim })
        },
    ),
    generator(
        "cracked",
        &[
            Parameter::new("nodes", "1000", "total number of nodes, including those of the crack"),
            Parameter::new("rim", "1.6 * sqrt(nodes)", "nodes on the sides, at least 8"),
            Parameter::new("crack", "0.9 * sqrt(nodes)", "nodes on each face of the crack"),
        ],
        "a square of triangles with a crack, refined around it",
        |spec| {
            let nodes = spec.number("nodes", 1000, 10, MAX_DELAUNAY_NODES)?;
            let usual = (nodes.isqrt() * 16 / 10).clamp(8, nodes - 2);
            let rim = spec.number("rim", usual, 8, nodes - 2)?;
            let most = (nodes - rim) / 2;
            let usual = (nodes.isqrt() * 9 / 10).clamp(1, most);
            Ok(MeshSpec::Cracked { nodes, rim, crack: spec.number("crack", usual, 1, most)? })
        },
    ),
    generator("bricks", &[CUBES], "a box of bricks", |spec| {
        Ok(MeshSpec::Bricks(sizes(spec, [8, 8, 8])?))
    }),
    generator("tets", &[CUBES], "a box of bricks cut into six tetrahedra each", |spec| {
        Ok(MeshSpec::Tetrahedra(sizes(spec, [8, 8, 8])?))
    }),
];

/// Generates the mesh of a specification such as `m11k`, `plate:100x100` or `cracked:1000`; see
/// [`LIST`]. Regular meshes do not depend on the seed.
///
/// ```
/// let mesh = conset_mesh::generate::by_name("plate:3x2", 1)?;
/// assert_eq!((mesh.node_count(), mesh.element_count()), (12, 12));
/// # Ok::<(), conset_ir::InputError>(())
/// ```
///
/// # Errors
/// An unknown name (the help lists the known ones and suggests one), an unknown or out-of-range
/// parameter, more than 2^24 elements, numbers of nodes for which there is no mesh.
pub fn by_name(spec: &str, seed: u64) -> Result<Mesh> {
    let mut spec = Spec::parse("mesh", spec)?;
    let Some(generator) = LIST.iter().find(|generator| generator.name == spec.name()) else {
        let names: Vec<&str> = LIST.iter().map(|generator| generator.name).collect();
        return Err(spec.unknown_name(&names));
    };
    let mesh_spec = (generator.parse)(&mut spec)?;
    spec.finish()?;
    let mesh = match mesh_spec {
        MeshSpec::Plate([nx, ny]) => plate(nx, ny),
        MeshSpec::TwoPlates([nx, ny]) => two_plates(nx, ny),
        MeshSpec::Bricks([nx, ny, nz]) => bricks(nx, ny, nz),
        MeshSpec::Tetrahedra([nx, ny, nz]) => tetrahedra(nx, ny, nz),
        MeshSpec::Valley => valley(),
        MeshSpec::Random { nodes, rim } => random_plate(nodes, rim, seed),
        MeshSpec::Cracked { nodes, rim, crack } => cracked_plate(nodes, rim, crack, seed),
    };
    mesh.map_err(|e| spec.error(format!("{}: {}", e.place, e.message)))
}

fn sizes<const D: usize>(spec: &mut Spec<'_>, default: [u32; D]) -> Result<[u32; D]> {
    match spec.sizes("size", to_u32(MAX_ELEMENTS))? {
        None => Ok(default),
        Some(sizes) => sizes.try_into().map_err(|sizes: Vec<u32>| {
            spec.error(format!("size: expected {D} numbers separated by x, found {}", sizes.len()))
        }),
    }
}
