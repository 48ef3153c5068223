//! Meshes of triangles or tetrahedra, whole and divided into parts.
//!
//! A part is a smaller mesh with local node numbers; `ids` gives the global ones. Nodes on the
//! border between parts belong to every part that has an element there. Each part can therefore sum
//! over its own elements (stiffness matrix, mass, load), and the cells exchange the sums of shared
//! nodes.
//!
//! Coordinates are scaled so that the longest side of the mesh is 1: the manufactured solutions
//! then fit any mesh.
//!
//! Quadrilaterals, bricks and curved elements are not supported.

use std::collections::BTreeMap;

use conset::mesh::partition::{self, Partition};
use conset::mesh::{Format, Mesh, Source, generate, halo, read};

use crate::{Failure, failure};

/// Triangles in the plane or tetrahedra in space.
#[derive(Clone, Debug, Default)]
pub struct Simplices {
    /// 2 or 3; an element has one corner more.
    pub dimension: usize,
    /// Where the nodes are; the third coordinate is 0 in the plane.
    pub points: Vec<[f64; 3]>,
    /// The corners of all elements, element behind element.
    pub corners: Vec<u32>,
}

/// A part of a mesh.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Its elements, and the nodes that these have.
    pub mesh: Simplices,
    /// The global number of each node.
    pub ids: Vec<u64>,
}

/// Reads a mesh file, or makes the mesh of `generate:SPEC` (`generate:m11k`, `generate:tets:8x8x8`;
/// `conset generate --help` lists them).
///
/// # Errors
/// No such file, a name whose ending says no format, a file that is not as its format says.
pub fn load(input: &str, seed: u64) -> Result<Source, Failure> {
    if let Some(spec) = input.strip_prefix("generate:") {
        return Ok(Source::Mesh(generate::by_name(spec, seed)?));
    }
    let format = Format::from_file_name(input)
        .ok_or_else(|| failure(format!("{input}: its ending says no mesh format")))?;
    let bytes = std::fs::read(input).map_err(|e| failure(format!("{input}: {e}")))?;
    Ok(read(format, input, &bytes)?)
}

/// The partition of a source for a machine of so many cells. If nobody asks for a number of parts
/// it is the source's own partition, where it states one that fits the machine, else one part for
/// each cell, as far as there are elements.
///
/// # Errors
/// More parts than there are elements.
pub fn divide(
    source: &Source,
    parts: Option<usize>,
    cells: usize,
    seed: u64,
) -> Result<Partition, Failure> {
    if let Some(own) = partition::stated(source)
        && parts.map_or(own.part_count() <= cells, |parts| parts == own.part_count())
    {
        return Ok(own);
    }
    let parts = parts.unwrap_or(cells.min(partition::item_count(source)).max(1));
    let options = partition::PartitionOptions::new(parts).seed(seed);
    Ok(partition::partition(source, &options, "the mesh")?)
}

impl Simplices {
    /// The triangles or tetrahedra of what was read.
    ///
    /// # Errors
    /// Something without elements or coordinates, or with elements of other shapes.
    pub fn from_source(source: &Source) -> Result<Self, Failure> {
        let mesh = match source {
            Source::Mesh(mesh) => mesh,
            Source::Decomposition(decomposition) => decomposition.mesh(),
            _ => return Err(failure("it has no elements; `laplacian` solves on graphs")),
        };
        if mesh.coordinates().is_empty() {
            return Err(failure("its nodes have no coordinates; `laplacian` solves on graphs"));
        }
        let dimension = usize::from(mesh.dimension());
        if !(2..=3).contains(&dimension) {
            return Err(failure(format!("elements of dimension {dimension}, expected 2 or 3")));
        }
        if let Some(e) = mesh.elements().position(|corners| corners.len() != dimension + 1) {
            let corners = mesh.element(e).len();
            let message = format!("element {e} has {corners} corners, expected {}", dimension + 1);
            return Err(failure(message));
        }
        let points = scaled(mesh, dimension)?;
        Ok(Self { dimension, points, corners: mesh.element_nodes().to_vec() })
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.points.len()
    }

    /// The corners of each element.
    pub fn elements(&self) -> std::slice::ChunksExact<'_, u32> {
        self.corners.chunks_exact(self.dimension + 1)
    }

    /// The places of an element's corners; in the plane the last one is not used.
    pub fn corners_of(&self, element: &[u32]) -> [[f64; 3]; 4] {
        let mut places = [[0.0; 3]; 4];
        for (place, &node) in places.iter_mut().zip(element) {
            *place = self.points[node as usize];
        }
        places
    }

    /// The nodes at which a solution is given: those of sides that one element alone has, and
    /// those that no element has.
    pub fn rim(&self) -> Vec<bool> {
        let mut sides: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let mut rim = vec![true; self.node_count()];
        for element in self.elements() {
            for opposite in 0..element.len() {
                let mut side = element.to_vec();
                side.remove(opposite);
                side.sort_unstable();
                *sides.entry(side).or_default() += 1;
                rim[element[opposite] as usize] = false;
            }
        }
        for (side, _) in sides.iter().filter(|(_, elements)| **elements == 1) {
            for &node in side {
                rim[node as usize] = true;
            }
        }
        rim
    }

    /// Deals the elements to the parts of a partition.
    ///
    /// # Errors
    /// A partition that is not this mesh's.
    pub fn distribute(&self, source: &Source, partition: &Partition) -> Result<Vec<Part>, Failure> {
        let parts = halo(source, partition, "halo")?.parts;
        let mut local = vec![0u32; self.node_count()];
        let part = |part: usize| {
            let nodes = parts.nodes_of(part);
            for (number, &node) in (0u32..).zip(nodes) {
                local[node as usize] = number;
            }
            let of_element = |&e: &u32| {
                let first = e as usize * (self.dimension + 1);
                &self.corners[first..first + self.dimension + 1]
            };
            let corners = parts.items_of(part).iter().flat_map(of_element);
            let mesh = Self {
                dimension: self.dimension,
                points: nodes.iter().map(|&node| self.points[node as usize]).collect(),
                corners: corners.map(|&node| local[node as usize]).collect(),
            };
            Part { mesh, ids: nodes.iter().map(|&node| u64::from(node)).collect() }
        };
        Ok((0..parts.len()).map(part).collect())
    }
}

impl Part {
    /// The part's share of something that each node of the whole mesh has.
    pub fn share<T: Copy>(&self, global: &[T]) -> Vec<T> {
        self.ids.iter().map(|&id| global[id as usize]).collect()
    }
}

/// The coordinates, moved and scaled into the box from 0 to 1. Triangles must lie in a plane of
/// constant third coordinate.
fn scaled(mesh: &Mesh, dimension: usize) -> Result<Vec<[f64; 3]>, Failure> {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in mesh.coordinates() {
        for axis in 0..3 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    if dimension == 2 && low[2] != high[2] {
        return Err(failure("its triangles are a surface in space, expected a flat mesh"));
    }
    let side = (0..dimension).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
    if side <= 0.0 {
        return Err(failure("all its nodes are in one place"));
    }
    let place = |point: &[f64; 3]| {
        let mut scaled = [0.0; 3];
        for axis in 0..dimension {
            scaled[axis] = (point[axis] - low[axis]) / side;
        }
        scaled
    };
    Ok(mesh.coordinates().iter().map(place).collect())
}
