//! The heat equation with explicit time steps, on a mesh that the solver reads itself.
//!
//! A solver often has a reader of its own for its meshes, and needs from conset only who has what
//! and who sends what to whom. Two files say so:
//!
//! ```text
//! conset compile MESH -o SCHEDULE --write-partition PARTITION.txt
//! heat MESH --schedule SCHEDULE --partition PARTITION.txt
//! ```
//!
//! The partition has the part of each element by the number that the mesh file has for it
//! ([`read_partition`]), the schedule has the cell of each part and the numbers that the mesh file
//! has for the nodes of its lists ([`PartMap`]). This module reads Gmsh 2.2 files of triangles or
//! tetrahedra ([`read_msh`]) and makes no use of conset's readers and partitions
//! ([`Job::from_files`]).
//! [`Job::in_one`] does all of it in one program; both give the same bits.
//!
//! With the mass lumped at the nodes, a step is `u -= dt K u / m`: a product with the stiffness matrix
//! of each cell's elements, and an exchange that sums what the cells have for shared nodes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use conset::input::{self, Input, LoadOptions};
use conset::ir::{CellId, Document, Image, Machine, PartMap};
use conset::{Compiled, Compiler};
use conset_runtime::{Cell, CellError, Layout, Plan, World};

use crate::element::Element;
use crate::mesh::{Part, Simplices};
use crate::sparse::Csr;
use crate::{Failure, failure};

/// A mesh as its file has it.
#[derive(Clone, Debug, Default)]
pub struct MshFile {
    /// Nodes and elements; the corners of elements are positions in `nodes`.
    pub mesh: Simplices,
    /// The number of each node, ascending.
    pub nodes: Vec<u64>,
    /// The number of each element.
    pub elements: Vec<u64>,
}

/// What is computed, by which cells.
#[derive(Debug)]
pub struct Job {
    image: Arc<Image>,
    plan: Plan,
    /// The part of each cell; `ids` are the numbers of the mesh file.
    parts: Vec<Part>,
    dt: f64,
}

/// The elements of one cell, ready to be multiplied with.
#[derive(Debug)]
struct Body {
    stiffness: Csr,
    mass: Vec<f64>,
}

impl Job {
    /// A job from a mesh, the partition and the schedule that `conset compile` wrote for it.
    ///
    /// # Errors
    /// Files that cannot be read or do not belong together.
    pub fn from_files(mesh: &Path, partition: &Path, schedule: &Path) -> Result<Self, Failure> {
        let file = read_msh(&read_text(mesh)?)?;
        let part_of = read_partition(&read_text(partition)?)?;
        let name = schedule.display().to_string();
        let bytes = std::fs::read(schedule).map_err(|e| failure(format!("{name}: {e}")))?;
        let Document::Schedule(schedule) = Document::parse_any(&name, &bytes)? else {
            return Err(failure(format!("{name} is not a schedule")));
        };
        let compiled = Compiled::import(schedule, &mut |_| ())?;
        let map = compiled.schedule().part_map();
        let map = map.ok_or_else(|| failure(format!("{name} is not the schedule of a mesh")))?;
        let mut elements: Vec<Vec<usize>> = vec![Vec::new(); map.cells().len()];
        for (position, number) in file.elements.iter().enumerate() {
            let part = part_of.get(number).and_then(|&part| elements.get_mut(part));
            let part = part.ok_or_else(|| failure(format!("element {number} has no part")))?;
            part.push(position);
        }
        let cells = compiled.schedule().machine().cell_count();
        let mut parts = vec![Part::default(); cells];
        for (elements, cell) in elements.iter().zip(map.cells()) {
            parts[cell.index()] = part(&file, elements);
        }
        Self::new(&compiled, &file.mesh, parts, map)
    }

    /// The same job in one program: conset reads and divides the mesh and compiles the exchange.
    ///
    /// # Errors
    /// A mesh that conset cannot read or compile for the machine.
    pub fn in_one(mesh: &Path, machine: &str, parts: Option<usize>) -> Result<Self, Failure> {
        let name = mesh.display().to_string();
        let bytes = std::fs::read(mesh).map_err(|e| failure(format!("{name}: {e}")))?;
        let machine = Arc::new(Machine::from_spec(machine)?);
        let options = LoadOptions::default().parts(parts).seed(1).keep_reading(true);
        let loaded = match input::load(&name, &bytes, &machine, &options, &mut |_| ())? {
            Input::Program(loaded) => loaded,
            _ => return Err(failure(format!("{name} is not a mesh"))),
        };
        let (Some(halo), Some(reading)) = (&loaded.halo, &loaded.reading) else {
            return Err(failure(format!("{name} is not a mesh")));
        };
        let compiled = Compiler::new(&machine).seed(1).compile(&loaded.program)?;
        let conset::mesh::Source::Mesh(read) = &reading.source else {
            return Err(failure(format!("{name} is not a mesh of elements")));
        };
        let whole = Simplices {
            dimension: usize::from(read.dimension()),
            points: read.coordinates().to_vec(),
            corners: read.element_nodes().to_vec(),
        };
        let nodes = (0..read.node_count() as u32).map(|node| reading.node_number(node)).collect();
        let file = MshFile { mesh: whole, nodes, elements: Vec::new() };
        let mut parts = vec![Part::default(); machine.cell_count()];
        for (number, cell) in halo.place.iter().enumerate() {
            let elements = halo.halo.parts.items_of(number).iter().map(|&e| e as usize);
            parts[cell.index()] = part(&file, &elements.collect::<Vec<_>>());
        }
        let map = loaded.part_map.as_ref().ok_or_else(|| failure("the mesh has no parts"))?;
        Self::new(&compiled, &file.mesh, parts, map)
    }

    fn new(
        compiled: &Compiled,
        mesh: &Simplices,
        parts: Vec<Part>,
        map: &PartMap,
    ) -> Result<Self, Failure> {
        // The lists of the schedule name nodes that count from 0. A node of the file that is in no
        // list gets an id that none of them can have.
        let inner = |number: u64| u64::from(u32::MAX) + 1 + number;
        let ids = |part: &Part| -> Vec<u64> {
            let id = |&number: &u64| map.node(number).map_or_else(|| inner(number), u64::from);
            part.ids.iter().map(id).collect()
        };
        let ids: Vec<Vec<u64>> = parts.iter().map(ids).collect();
        let image = compiled.image().clone();
        let layout = Layout::from_image(&image, "halo", 1, &ids)?;
        let plan = Plan::new(&image, "halo", layout, 1)?;
        // Smaller than 2 / (the largest eigenvalue of K / m), which no element exceeds.
        let mut stiffest = 0.0f64;
        for corners in mesh.elements() {
            let element = Element::of(mesh, corners)?;
            let trace: f64 = (0..corners.len()).map(|a| element.stiffness(a, a)).sum();
            stiffest = stiffest.max(trace * corners.len() as f64 / element.volume);
        }
        Ok(Self { image, plan, parts, dt: 1.0 / stiffest })
    }

    /// Temperatures after some steps, by the file's numbers of the nodes; the square of the first
    /// coordinate at the start.
    ///
    /// # Errors
    /// What went wrong in the run; copies of a node that differ.
    pub fn run(&self, steps: usize) -> Result<BTreeMap<u64, f64>, Failure> {
        let body = |part: &Part| body(&part.mesh);
        let bodies: Vec<Body> = self.parts.iter().map(body).collect::<Result<_, _>>()?;
        let (values, _) = World::new(self.image.clone()).try_run(|cell| {
            let at = cell.id().index();
            self.on_cell(cell, &self.parts[at], &bodies[at], steps)
        })?;
        let mut all: BTreeMap<u64, f64> = BTreeMap::new();
        for (part, values) in self.parts.iter().zip(&values) {
            for (&number, &value) in part.ids.iter().zip(values) {
                let other = all.insert(number, value);
                if other.is_some_and(|other| other.to_bits() != value.to_bits()) {
                    return Err(failure(format!("the copies of node {number} differ: a bug")));
                }
            }
        }
        Ok(all)
    }

    fn on_cell(
        &self,
        cell: &mut Cell<'_>,
        part: &Part,
        body: &Body,
        steps: usize,
    ) -> Result<Vec<f64>, CellError> {
        let mut mass = body.mass.clone();
        cell.sum_shared(&self.plan, &mut mass)?;
        let mut u: Vec<f64> = part.mesh.points.iter().map(|point| point[0] * point[0]).collect();
        let mut flux = vec![0.0; u.len()];
        for _ in 0..steps {
            body.stiffness.times(&u, &mut flux);
            cell.sum_shared(&self.plan, &mut flux)?;
            for ((u, flux), mass) in u.iter_mut().zip(&flux).zip(&mass) {
                *u -= self.dt * flux / mass;
            }
        }
        Ok(u)
    }

    /// The cells that have a part.
    pub fn cells(&self) -> Vec<CellId> {
        let used = |&(_, part): &(usize, &Part)| !part.ids.is_empty();
        self.parts.iter().enumerate().filter(used).map(|(cell, _)| CellId(cell as u32)).collect()
    }
}

fn body(mesh: &Simplices) -> Result<Body, Failure> {
    if mesh.corners.is_empty() {
        return Ok(Body { stiffness: Csr::default(), mass: Vec::new() });
    }
    let mut stiffness = Csr::pattern(mesh.node_count(), 1, mesh.elements());
    let mut mass = vec![0.0; mesh.node_count()];
    for corners in mesh.elements() {
        let element = Element::of(mesh, corners)?;
        for (a, &node) in corners.iter().enumerate() {
            mass[node as usize] += element.volume / corners.len() as f64;
            for (b, &other) in corners.iter().enumerate() {
                stiffness.add(node as usize, other as usize, element.stiffness(a, b));
            }
        }
    }
    Ok(Body { stiffness, mass })
}

/// Some elements of a mesh as a mesh of its own, whose nodes ascend by their numbers.
fn part(file: &MshFile, elements: &[usize]) -> Part {
    let corner_count = file.mesh.dimension + 1;
    let corners = || {
        elements.iter().flat_map(|&e| &file.mesh.corners[e * corner_count..(e + 1) * corner_count])
    };
    let mut nodes: Vec<u32> = corners().copied().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let local: HashMap<u32, u32> = nodes.iter().copied().zip(0..).collect();
    Part {
        mesh: Simplices {
            dimension: file.mesh.dimension,
            points: nodes.iter().map(|&node| file.mesh.points[node as usize]).collect(),
            corners: corners().map(|node| local[node]).collect(),
        },
        ids: nodes.iter().map(|&node| file.nodes[node as usize]).collect(),
    }
}

fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| failure(format!("{}: {e}", path.display())))
}

/// The part of each element, by its number, from the text that `--write-partition` writes: number,
/// part and cell, and comments that start with `#`.
///
/// # Errors
/// A line that is not three numbers.
pub fn read_partition(text: &str) -> Result<HashMap<u64, usize>, Failure> {
    let mut part_of = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        part_of.insert(number(words.next())?, number(words.next())?);
        number::<u32>(words.next())?;
    }
    Ok(part_of)
}

/// Reads the triangles, or if there are any the tetrahedra, of a Gmsh 2.2 file in ASCII.
///
/// # Errors
/// Anything else than such a file.
pub fn read_msh(text: &str) -> Result<MshFile, Failure> {
    let section = |name: &str| {
        let start = text.split_once(&format!("${name}\n")).map(|(_, rest)| rest);
        let body = start.and_then(|rest| rest.split_once(&format!("$End{name}")));
        let body = body.ok_or_else(|| failure(format!("the mesh has no ${name}")))?.0;
        Ok::<_, Failure>(body.lines().map(str::split_whitespace))
    };
    if section("MeshFormat")?.next().and_then(|mut words| words.next()) != Some("2.2") {
        return Err(failure("the mesh is not a Gmsh 2.2 file"));
    }
    let mut nodes: Vec<(u64, [f64; 3])> = Vec::new();
    for mut row in section("Nodes")?.skip(1) {
        let node = number(row.next())?;
        nodes.push((node, [number(row.next())?, number(row.next())?, number(row.next())?]));
    }
    nodes.sort_by_key(|node| node.0);
    let position: HashMap<u64, u32> = nodes.iter().map(|node| node.0).zip(0..).collect();
    let mut found: [(Vec<u64>, Vec<u32>); 2] = Default::default();
    for mut row in section("Elements")?.skip(1) {
        let element = number(row.next())?;
        let kind: u32 = number(row.next())?;
        let tags: usize = number(row.next())?;
        // 2 is a triangle, 4 a tetrahedron.
        let of_kind = match kind {
            2 => &mut found[0],
            4 => &mut found[1],
            _ => continue,
        };
        of_kind.0.push(element);
        for word in row.skip(tags) {
            let node = position.get(&number(Some(word))?);
            of_kind.1.push(*node.ok_or_else(|| failure(format!("there is no node {word}")))?);
        }
    }
    let [triangles, tetrahedra] = found;
    let (dimension, (elements, corners)) =
        if tetrahedra.0.is_empty() { (2, triangles) } else { (3, tetrahedra) };
    if elements.is_empty() || corners.len() != elements.len() * (dimension + 1) {
        return Err(failure("expected a mesh of triangles or tetrahedra"));
    }
    let (nodes, points) = nodes.into_iter().unzip();
    Ok(MshFile { mesh: Simplices { dimension, points, corners }, nodes, elements })
}

fn number<T: FromStr>(word: Option<&str>) -> Result<T, Failure> {
    let parsed = word.and_then(|word| word.parse().ok());
    parsed.ok_or_else(|| failure(format!("expected a number, found `{}`", word.unwrap_or(""))))
}
