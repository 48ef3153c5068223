//! What a mesh file contains before it becomes a [`Mesh`], and the rule which of its elements are divided.
//!
//! Files list elements of several dimensions together: volumes, the faces of their boundary, beams
//! and shells of a mixed structure. Readers put all of them into an [`Assembly`];
//! [`Assembly::into_mesh`] then applies one rule for all formats:
//!
//! * An element is *attached* if its nodes all belong to one element of higher dimension: a
//!   boundary face, an edge, a vertex. The part that has that element has all nodes of the
//!   attached one, so the attached one adds nothing to the exchange.
//! * Every other element is *divided* over the parts, whatever its dimension: the elements of the
//!   greatest dimension, and beams and shells that are elements of their own.
//!
//! Nothing is left out silently: the [`Inventory`] counts both kinds by type and lists everything
//! else that the file has with the reason why it is not used.

mod merge;

use std::collections::{BTreeMap, HashMap};

use conset_ir::convert::{index, to_u32};
use conset_ir::{At, InputError, Result, limits};

use super::element_type::ElementType;
use super::{Mesh, row};
pub(crate) use merge::merge;

/// Part of an element that the file puts into none.
pub(crate) const NO_PART: u32 = u32::MAX;

/// No element.
const NONE: u32 = u32::MAX;

/// With more candidates than this, searches for the same nodes are done once.
const MANY: usize = 64;

/// Something in a file that does not become part of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// What it is, as the file calls it, with a count where there is one.
    pub what: String,
    /// Why it is not used.
    pub why: String,
}

/// A named group of elements: physical group, element set, block, material or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The file's name or number of the group.
    pub name: String,
    /// Number of its elements.
    pub element_count: usize,
}

/// How many elements of a type a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// The type.
    pub element_type: ElementType,
    /// Number of elements, attached ones included.
    pub count: usize,
    /// Those that are attached to an element of higher dimension.
    pub attached: usize,
}

/// What a mesh file contains, in numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inventory {
    /// Name and version of the format, as in `Gmsh 4.1, binary`.
    pub format: String,
    /// Number of nodes.
    pub node_count: usize,
    /// Nodes that no element has.
    pub unused_nodes: usize,
    /// Nodes that the file says are the same as another one (periodic boundaries) and that were
    /// replaced by it.
    pub joined_nodes: usize,
    /// Elements by type, in ascending order of the shape; empty if the file does not state the
    /// types.
    pub elements: Vec<TypeCount>,
    /// Groups, in the file's order.
    pub groups: Vec<Group>,
    /// Number of parts stated in the file, 0 if it states none.
    pub part_count: usize,
    /// Everything else in the file.
    pub unused: Vec<Unused>,
    /// Smallest and largest coordinates; `None` if the file has no coordinates.
    pub bounding_box: Option<[[f64; 3]; 2]>,
}

impl Inventory {
    /// Number of elements that are attached to another one.
    pub fn attached(&self) -> usize {
        self.elements.iter().map(|entry| entry.attached).sum()
    }

    /// The inventory of a mesh whose file has elements of one dimension only and nothing else.
    pub fn of_mesh(format: impl Into<String>, mesh: &Mesh) -> Self {
        Self { elements: counts_of(mesh), ..Self::without_types(format, mesh) }
    }

    fn without_types(format: impl Into<String>, mesh: &Mesh) -> Self {
        let mut used = vec![false; mesh.node_count()];
        for &node in mesh.element_nodes() {
            used[index(node)] = true;
        }
        Self {
            format: format.into(),
            node_count: mesh.node_count(),
            unused_nodes: used.iter().filter(|&&used| !used).count(),
            joined_nodes: 0,
            elements: Vec::new(),
            groups: Vec::new(),
            part_count: mesh.part_count(),
            unused: Vec::new(),
            bounding_box: bounding_box(mesh.coordinates()),
        }
    }
}

/// Elements by type, as dimension and number of nodes tell; empty if they do not.
fn counts_of(mesh: &Mesh) -> Vec<TypeCount> {
    let mut counts: BTreeMap<ElementType, usize> = BTreeMap::new();
    for nodes in mesh.elements() {
        let Some(element_type) = ElementType::of_dimension(mesh.dimension(), nodes.len()) else {
            return Vec::new();
        };
        *counts.entry(element_type).or_default() += 1;
    }
    let count = |(element_type, count)| TypeCount { element_type, count, attached: 0 };
    counts.into_iter().map(count).collect()
}

/// A mesh with its inventory, and which element of the file each of its elements is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Assembled {
    /// The divided elements, in the file's order.
    pub mesh: Mesh,
    /// What the file contains.
    pub inventory: Inventory,
    /// Which of its elements they are.
    pub origin: ElementOrigin,
}

/// From the elements of a mesh to those of the file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ElementOrigin {
    /// The position in the file, from 0, of each element of the mesh.
    pub divided: Vec<u32>,
    /// The position in the file of each attached element, and the element of the mesh that it is
    /// attached to.
    pub attached: Vec<(u32, u32)>,
    /// The file's own number of each of its elements; empty if they are 1, 2, 3 and so on or the
    /// format numbers none.
    pub ids: Vec<u64>,
    /// The type of each element of the mesh.
    pub types: Vec<ElementType>,
    /// The nodes of the elements of the mesh as the file has them, row by row as in the mesh; empty
    /// unless nodes were joined.
    pub separate_nodes: Vec<u32>,
    /// Whether the nodes of each element begin with its corners in an order that gives its shape.
    pub has_node_order: bool,
    /// The number of the first node and element in formats that number them by their rows.
    pub first_number: u64,
}

impl ElementOrigin {
    /// The file's own number of the element at a position in the file.
    pub fn number(&self, position: u32) -> u64 {
        let counted = u64::from(position) + self.first_number;
        self.ids.get(index(position)).copied().unwrap_or(counted)
    }
}

/// All nodes and elements of a file, whatever their dimension.
#[derive(Clone, Debug)]
pub struct Assembly {
    format: String,
    node_count: usize,
    node_ids: Vec<u64>,
    coordinates: Vec<[f64; 3]>,
    types: Vec<ElementType>,
    /// Where each element's nodes end.
    ends: Vec<u32>,
    nodes: Vec<u32>,
    element_ids: Vec<u64>,
    parts: Vec<u32>,
    part_count: usize,
    groups: Vec<Group>,
    same_nodes: Vec<(u32, u32)>,
    unused: Vec<Unused>,
    has_node_order: bool,
    first_number: u64,
}

impl Default for Assembly {
    fn default() -> Self {
        Self::new("")
    }
}

impl Assembly {
    /// No nodes and no elements yet; `format` names the format and its version.
    pub fn new(format: impl Into<String>) -> Self {
        Self {
            format: format.into(),
            node_count: 0,
            node_ids: Vec::new(),
            coordinates: Vec::new(),
            types: Vec::new(),
            ends: Vec::new(),
            nodes: Vec::new(),
            element_ids: Vec::new(),
            parts: Vec::new(),
            part_count: 0,
            groups: Vec::new(),
            same_nodes: Vec::new(),
            unused: Vec::new(),
            has_node_order: true,
            first_number: 1,
        }
    }

    /// States that nodes and elements without ids of their own count from 0 in the file.
    pub fn count_from_0(&mut self) {
        self.first_number = 0;
    }

    /// As [`Assembly::count_from_0`], for ids that are one more than the file's numbers.
    pub(crate) fn lower_ids(&mut self) {
        self.count_from_0();
        for id in self.node_ids.iter_mut().chain(&mut self.element_ids) {
            *id = id.saturating_sub(1);
        }
    }

    /// States that the order of an element's nodes says nothing about its shape.
    pub(crate) fn without_node_order(&mut self) {
        self.has_node_order = false;
    }

    /// Whether nodes have ids of their own.
    pub(crate) fn has_node_ids(&self) -> bool {
        !self.node_ids.is_empty()
    }

    /// Sets the nodes: their number, the file's id of each or nothing if these are 1, 2, 3 and so
    /// on (or 0, 1, 2 in formats that count from 0), and their coordinates, if the file has them.
    pub fn set_nodes(&mut self, node_count: usize, ids: Vec<u64>, coordinates: Vec<[f64; 3]>) {
        self.node_count = node_count;
        self.node_ids = ids;
        self.coordinates = coordinates;
    }

    /// Name and version of the format.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// Sets the file's own id of each node.
    pub(crate) fn set_node_ids(&mut self, ids: Vec<u64>) {
        self.node_ids = ids;
    }

    /// Number of elements.
    pub fn element_count(&self) -> usize {
        self.types.len()
    }

    /// Number of element nodes.
    pub fn element_node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Adds an element, whose nodes count from 0.
    ///
    /// # Panics
    /// The nodes of all elements are more than [`limits::NODES`]. Readers check
    /// [`Assembly::element_node_count`] first.
    pub fn push(&mut self, element_type: ElementType, nodes: &[u32]) {
        self.types.push(element_type);
        self.nodes.extend_from_slice(nodes);
        self.ends.push(to_u32(self.nodes.len()));
    }

    /// Sets the file's own number of each element.
    pub fn set_element_ids(&mut self, ids: Vec<u64>) {
        let in_order = ids.iter().zip(1u64..).all(|(&id, position)| id == position);
        self.element_ids = if in_order { Vec::new() } else { ids };
    }

    /// Sets the part of each element, `u32::MAX` for those in no part.
    pub fn set_parts(&mut self, parts: Vec<u32>, part_count: usize) {
        self.parts = parts;
        self.part_count = part_count;
    }

    /// Sets the number of parts, where those of the elements do not show the last ones.
    pub(crate) fn set_part_count(&mut self, part_count: usize) {
        self.part_count = part_count;
    }

    /// Type, part and nodes of each element; the part is `u32::MAX` for those in no part.
    pub(crate) fn elements_with_parts(&self) -> impl Iterator<Item = (ElementType, u32, &[u32])> {
        self.types.iter().enumerate().map(|(element, &element_type)| {
            let part = self.parts.get(element).copied().unwrap_or(NO_PART);
            (element_type, part, self.element(element))
        })
    }

    /// The greatest dimension of an element, 0 if there are none.
    pub(crate) fn greatest_dimension(&self) -> u8 {
        self.types.iter().map(|element_type| element_type.dimension()).max().unwrap_or(0)
    }

    /// Adds a group.
    pub fn add_group(&mut self, name: impl Into<String>, element_count: usize) {
        self.groups.push(Group { name: name.into(), element_count });
    }

    /// States that two nodes are one, as on the two sides of a periodic boundary.
    pub fn join(&mut self, a: u32, b: u32) {
        self.same_nodes.push((a, b));
    }

    /// Discards what [`Assembly::join`] stated.
    pub fn discard_joined(&mut self) {
        if !self.same_nodes.is_empty() {
            let what = format!("{} pairs of periodic nodes", self.same_nodes.len());
            self.same_nodes = Vec::new();
            self.add_unused(what, "they are not to be joined");
        }
    }

    /// Notes something that is not used, and why.
    pub fn add_unused(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.unused.push(Unused { what: what.into(), why: why.into() });
    }

    fn element(&self, element: usize) -> &[u32] {
        &self.nodes[self.range(element)]
    }

    /// Where an element's nodes are.
    fn range(&self, element: usize) -> std::ops::Range<usize> {
        let start = element.checked_sub(1).map_or(0, |before| index(self.ends[before]));
        start..index(self.ends[element])
    }

    /// The mesh of the elements that are divided, see the module.
    ///
    /// The mesh has dimension 0 (unknown) if the divided elements have several dimensions. Joined
    /// nodes are replaced in elements by the smallest of them; they stay nodes of the mesh, which
    /// no element has.
    ///
    /// # Errors
    /// No elements, a node out of range, elements with a part beside elements without, and what
    /// [`Mesh::new`] does not accept; `file` is named.
    pub fn into_mesh(mut self, file: &str) -> Result<Assembled> {
        let whole = |message: String| InputError::new(file, At::Whole, message);
        if self.types.is_empty() {
            return Err(whole("the file has no elements".to_owned()));
        }
        if self.types.len() > limits::ELEMENTS {
            let (count, most) = (self.types.len(), limits::ELEMENTS);
            return Err(whole(format!("{count} elements, at most {most}")));
        }
        let joined = self.same_nodes.iter().flat_map(|&(a, b)| [a, b]);
        if let Some(node) =
            self.nodes.iter().copied().chain(joined).find(|&n| index(n) >= self.node_count)
        {
            return Err(whole(format!("node {node} of {}; nodes count from 0", self.node_count)));
        }
        let joins = !self.same_nodes.is_empty();
        let before = if joins { self.nodes.clone() } else { Vec::new() };
        let joined_nodes = self.join_nodes();
        let hosts = self.hosts();
        let mut divided = Vec::new();
        let mut mesh_element = vec![NONE; self.types.len()];
        let (mut first, mut nodes, mut parts) = (vec![0], Vec::new(), Vec::new());
        let (mut types, mut separate_nodes) = (Vec::new(), Vec::new());
        for (element, &host) in hosts.iter().enumerate() {
            if host != NONE {
                continue;
            }
            mesh_element[element] = to_u32(divided.len());
            divided.push(to_u32(element));
            types.push(self.types[element]);
            nodes.extend_from_slice(self.element(element));
            if joins {
                separate_nodes.extend_from_slice(&before[self.range(element)]);
            }
            first.push(to_u32(nodes.len()));
            parts.extend(self.parts.get(element));
        }
        let attached: Vec<(u32, u32)> = (0u32..)
            .zip(&hosts)
            .filter(|&(_, &host)| host != NONE)
            .map(|(element, &host)| (element, mesh_element[index(host)]))
            .collect();
        let some_part = parts.iter().any(|&part| part != NO_PART);
        if some_part && parts.contains(&NO_PART) {
            return Err(whole("some elements have a partition and others do not".to_owned())
                .help("partition the whole mesh, or save it without partitions"));
        }
        let dimensions = || divided.iter().map(|&element| self.types[index(element)].dimension());
        let greatest = dimensions().max().unwrap_or(0);
        let dimension = if dimensions().all(|own| own == greatest) { greatest } else { 0 };
        let elements = self.type_counts(&hosts);
        let shape = |error: conset_ir::ShapeError| error.in_file(file);
        let bounding_box = bounding_box(&self.coordinates);
        let mut mesh =
            Mesh::new(dimension, self.node_count, self.coordinates, first, nodes).map_err(shape)?;
        if !self.node_ids.is_empty() {
            mesh = mesh.with_node_ids(self.node_ids).map_err(shape)?;
        }
        if some_part {
            mesh = mesh.with_parts(parts, self.part_count).map_err(shape)?;
        }
        let mut inventory = Inventory::without_types(self.format, &mesh);
        inventory.unused_nodes -= joined_nodes.min(inventory.unused_nodes);
        inventory.joined_nodes = joined_nodes;
        inventory.elements = elements;
        inventory.groups = self.groups;
        inventory.unused = self.unused;
        inventory.bounding_box = bounding_box;
        let origin = ElementOrigin {
            divided,
            attached,
            ids: self.element_ids,
            types,
            separate_nodes,
            has_node_order: self.has_node_order,
            first_number: self.first_number,
        };
        Ok(Assembled { mesh, inventory, origin })
    }

    fn type_counts(&self, hosts: &[u32]) -> Vec<TypeCount> {
        let mut counts: BTreeMap<ElementType, (usize, usize)> = BTreeMap::new();
        for (&element_type, &host) in self.types.iter().zip(hosts) {
            let entry = counts.entry(element_type).or_default();
            entry.0 += 1;
            entry.1 += usize::from(host != NONE);
        }
        let count = |(element_type, (count, attached))| TypeCount { element_type, count, attached };
        counts.into_iter().map(count).collect()
    }

    /// Replaces joined nodes in the elements by the smallest of each class; how many were.
    fn join_nodes(&mut self) -> usize {
        if self.same_nodes.is_empty() {
            return 0;
        }
        let mut parent: Vec<u32> = (0..to_u32(self.node_count)).collect();
        fn root(parent: &mut [u32], mut node: u32) -> u32 {
            while parent[index(node)] != node {
                let above = parent[index(parent[index(node)])];
                parent[index(node)] = above;
                node = above;
            }
            node
        }
        for &(a, b) in &self.same_nodes {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            parent[index(a.max(b))] = a.min(b);
        }
        for node in &mut self.nodes {
            *node = root(&mut parent, *node);
        }
        parent.iter().zip(0u32..).filter(|&(&above, node)| above != node).count()
    }

    /// The element that each element is attached to; `NONE` for those that are divided. Hosts are
    /// divided elements: what contains an attached element is contained in a divided one.
    fn hosts(&self) -> Vec<u32> {
        let mut hosts = vec![NONE; self.types.len()];
        let mut present = [false; 4];
        for element_type in &self.types {
            present[usize::from(element_type.dimension())] = true;
        }
        for dimension in (0u8..3).rev() {
            let below = usize::from(dimension);
            if !present[below] || !present[below + 1..].contains(&true) {
                continue;
            }
            let mut search = HostSearch::new(self, dimension, &hosts);
            for (element, host) in hosts.iter_mut().enumerate() {
                if self.types[element].dimension() == dimension {
                    *host = search.host(self, self.element(element));
                }
            }
        }
        hosts
    }
}

/// Finds divided elements of higher dimension by their nodes.
struct HostSearch {
    first: Vec<u32>,
    elements: Vec<u32>,
    /// Answers for nodes that have many elements each, by the sorted nodes.
    known: HashMap<Vec<u32>, u32>,
}

impl HostSearch {
    fn new(assembly: &Assembly, above: u8, hosts: &[u32]) -> Self {
        let divided = || {
            (0..assembly.types.len()).filter(|&element| {
                assembly.types[element].dimension() > above && hosts[element] == NONE
            })
        };
        let mut first = vec![0u32; assembly.node_count + 1];
        for element in divided() {
            for &node in assembly.element(element) {
                first[index(node) + 1] += 1;
            }
        }
        for node in 0..assembly.node_count {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut elements = vec![0u32; index(first[assembly.node_count])];
        for element in divided() {
            for &node in assembly.element(element) {
                let place = &mut next[index(node)];
                elements[index(*place)] = to_u32(element);
                *place += 1;
            }
        }
        Self { first, elements, known: HashMap::new() }
    }

    /// The first element that has all of `nodes`, or `NONE`.
    fn host(&mut self, assembly: &Assembly, nodes: &[u32]) -> u32 {
        let around = |node: u32| row(&self.first, &self.elements, index(node));
        let Some(candidates) = nodes.iter().map(|&node| around(node)).min_by_key(|row| row.len())
        else {
            return NONE;
        };
        let search = || {
            let has_all = |&&candidate: &&u32| {
                let own = assembly.element(index(candidate));
                nodes.iter().all(|node| own.contains(node))
            };
            candidates.iter().find(has_all).copied().unwrap_or(NONE)
        };
        if candidates.len() <= MANY {
            return search();
        }
        let mut key = nodes.to_vec();
        key.sort_unstable();
        if let Some(&host) = self.known.get(&key) {
            return host;
        }
        let host = search();
        self.known.insert(key, host);
        host
    }
}

fn bounding_box(coordinates: &[[f64; 3]]) -> Option<[[f64; 3]; 2]> {
    let (&start, rest) = coordinates.split_first()?;
    Some(rest.iter().fold([start, start], |[low, high], point| {
        let combine = |a: [f64; 3], pick: fn(f64, f64) -> f64| {
            [pick(a[0], point[0]), pick(a[1], point[1]), pick(a[2], point[2])]
        };
        [combine(low, f64::min), combine(high, f64::max)]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Shape;

    fn assembly(node_count: usize, elements: &[(Shape, &[u32])]) -> Assembly {
        let mut assembly = Assembly::new("test");
        assembly.set_nodes(node_count, Vec::new(), Vec::new());
        for &(shape, nodes) in elements {
            assembly.push(ElementType::new(shape, nodes.len()).unwrap(), nodes);
        }
        assembly
    }

    #[test]
    fn boundaries_are_attached_and_structures_are_elements() {
        let made = assembly(
            7,
            &[
                (Shape::Line, &[1, 0]),
                (Shape::Quadrilateral, &[0, 1, 2, 3]),
                (Shape::Line, &[3, 4]),
                (Shape::Point, &[4]),
                (Shape::Line, &[0, 2]),
                (Shape::Point, &[5]),
            ],
        )
        .into_mesh("f")
        .unwrap();
        // The beam 3-4 and the point mass 5 stand alone. The diagonal 0-2 belongs to the
        // quadrilateral as far as an exchange can tell.
        assert_eq!(made.origin.divided, [1, 2, 5]);
        assert_eq!(made.origin.attached, [(0, 0), (3, 1), (4, 0)]);
        assert_eq!(made.mesh.dimension(), 0);
        assert_eq!(made.inventory.unused_nodes, 1);
        assert_eq!(made.inventory.attached(), 3);
        let lines = made.inventory.elements[1];
        assert_eq!(
            (lines.element_type.to_string(), lines.count, lines.attached),
            ("2-node line".to_owned(), 3, 2)
        );
    }

    #[test]
    fn a_face_whose_nodes_no_single_element_has_is_divided() {
        let made = assembly(
            8,
            &[
                (Shape::Tetrahedron, &[0, 1, 2, 3]),
                (Shape::Tetrahedron, &[1, 2, 3, 4]),
                (Shape::Triangle, &[0, 1, 4]),
                (Shape::Triangle, &[3, 2, 1]),
            ],
        )
        .into_mesh("f")
        .unwrap();
        assert_eq!(made.origin.divided, [0, 1, 2]);
        assert_eq!(made.origin.attached, [(3, 0)]);
    }

    #[test]
    fn parts_are_those_of_divided_elements() {
        let mut both = assembly(4, &[(Shape::Triangle, &[0, 1, 2]), (Shape::Line, &[0, 1])]);
        both.set_parts(vec![1, NO_PART], 2);
        let made = both.into_mesh("f").unwrap();
        assert_eq!((made.mesh.parts(), made.mesh.part_count()), (&[1][..], 2));
        let mut some = assembly(4, &[(Shape::Triangle, &[0, 1, 2]), (Shape::Line, &[0, 3])]);
        some.set_parts(vec![1, NO_PART], 2);
        assert!(
            some.into_mesh("f").unwrap_err().message.contains("some elements have a partition")
        );
    }

    #[test]
    fn joined_nodes_are_one() {
        let mut ring = assembly(6, &[(Shape::Line, &[0, 1]), (Shape::Line, &[2, 3])]);
        ring.join(3, 1);
        ring.join(5, 3);
        let made = ring.into_mesh("f").unwrap();
        assert_eq!(made.mesh.element(1), [2, 1]);
        assert_eq!((made.inventory.joined_nodes, made.inventory.unused_nodes), (2, 1));
    }

    #[test]
    fn hubs_are_searched_once() {
        // Every triangle has node 0 and every line is 0-1, which none of them has.
        let triangles: Vec<[u32; 3]> = (0..20_000).map(|i| [0, 2 + i, 3 + i]).collect();
        let mut elements: Vec<(Shape, &[u32])> =
            triangles.iter().map(|nodes| (Shape::Triangle, &nodes[..])).collect();
        let others: Vec<[u32; 3]> = (0..20_000).map(|i| [1, 30_000 + i, 30_001 + i]).collect();
        elements.extend(others.iter().map(|nodes| (Shape::Triangle, &nodes[..])));
        elements.extend([(Shape::Line, &[0, 1][..]); 20_000]);
        let made = assembly(60_000, &elements).into_mesh("f").unwrap();
        assert_eq!(made.origin.divided.len(), 60_000);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(assembly(3, &[]).into_mesh("f").unwrap_err().message.contains("no elements"));
        assert!(assembly(2, &[(Shape::Line, &[0, 2])]).into_mesh("f").is_err());
        let mut far = assembly(2, &[(Shape::Line, &[0, 1])]);
        far.join(0, 7);
        assert!(far.into_mesh("f").is_err());
    }
}
