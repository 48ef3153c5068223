//! METIS graphs and meshes (METIS manual, "Graph file", "Mesh file"), and connection lists.
//!
//! These files are made of lines: one for each vertex or element, so an empty line is a vertex
//! without neighbours. Lines that begin with `%` are comments. Numbers count from 1.
//!
//! * A *graph* begins with `vertices edges [fmt [ncon]]`. The digits of `fmt` say whether
//!   vertices have sizes, vertices have weights (`ncon` each) and edges have weights. A graph is
//!   undirected: each edge stands in the lines of both its ends, with one weight. Loops, repeated
//!   edges, edges without their reverse and weights of 0 on edges are errors.
//! * A *connection list* has the same syntax and another meaning: the line of a part names the
//!   parts that it sends to, the edge weights (or 1) are words. It may be as one-sided as it
//!   likes, repeat a pair, and name the part itself. Its count of edges may count entries, or, as
//!   METIS does, half of them. Sizes and weights of vertices are passed over.
//! * A *mesh* begins with `elements [ncon]`; a line has the element's weights, then its nodes.
//!   METIS 4 wrote an element type where METIS 5 has `ncon`; a file that could be either is
//!   refused rather than guessed. If the nodes named are few among large numbers they are
//!   numbered by rank.

use conset_ir::{InputError, Result, ShapeError, limits};

use super::cursor::{Cursor, show};
use super::numbering::Numbering;
use crate::model::{ConnectionList, Graph, Mesh};

/// Weights that a vertex or element may have.
const WEIGHTS: u64 = 64;

/// First line of a graph.
struct Header {
    vertices: usize,
    edges: u64,
    /// Where the number of edges stands.
    edges_at: usize,
    sizes: bool,
    vertex_weights: usize,
    edge_weights: bool,
}

fn graph_header(cursor: &mut Cursor<'_>) -> Result<Header> {
    cursor.skip_blank_and_comment_lines(b'%');
    let vertices = cursor.integer("the number of vertices", limits::NODES as u64)? as usize;
    let edges = cursor.integer("the number of edges", limits::NODES as u64)?;
    let edges_at = cursor.last();
    let mut header =
        Header { vertices, edges, edges_at, sizes: false, vertex_weights: 0, edge_weights: false };
    if !cursor.at_line_end() {
        let fmt = cursor.word("fmt")?;
        if fmt.len() > 3 || !fmt.iter().all(|b| matches!(b, b'0' | b'1')) {
            return Err(cursor.error(format!(
                "`{}` is not a format; expected up to three digits 0 or 1: vertex sizes, vertex \
                 weights, edge weights",
                show(fmt)
            )));
        }
        let digit = |place: usize| fmt.len() > place && fmt[fmt.len() - 1 - place] == b'1';
        header.sizes = digit(2);
        header.vertex_weights = usize::from(digit(1));
        header.edge_weights = digit(0);
        if !cursor.at_line_end() {
            let count = cursor.integer("the number of weights of a vertex", WEIGHTS)? as usize;
            if count == 0 || header.vertex_weights == 0 {
                return Err(cursor.error(format!(
                    "{count} weights for each vertex, where the format says that vertices have {}",
                    if header.vertex_weights == 0 { "none" } else { "some" }
                )));
            }
            header.vertex_weights = count;
        }
    }
    cursor.end_line("vertices, edges, format and number of weights")?;
    Ok(header)
}

/// All numbers of a graph file.
#[derive(Default)]
struct Rows {
    first: Vec<u32>,
    neighbours: Vec<u32>,
    sizes: Vec<u32>,
    vertex_weights: Vec<u32>,
    edge_weights: Vec<u32>,
}

/// The lines after the header. `refuse` looks at each entry `(vertex, neighbour)` and
/// says what is wrong with it.
fn graph_rows(
    cursor: &mut Cursor<'_>,
    header: &Header,
    mut refuse: impl FnMut(u32, u32) -> Option<&'static str>,
) -> Result<Rows> {
    let mut rows = Rows::default();
    rows.first.reserve(cursor.capacity(header.vertices as u64, 1) + 1);
    rows.neighbours.reserve(cursor.capacity(header.edges * 2, 2));
    rows.first.push(0);
    for vertex in 0..header.vertices as u32 {
        start_row(cursor, vertex as usize, header.vertices, "vertices")?;
        if header.sizes {
            rows.sizes.push(weight(cursor, "the size of a vertex")?);
        }
        for _ in 0..header.vertex_weights {
            rows.vertex_weights.push(weight(cursor, "a weight of a vertex")?);
        }
        while !cursor.at_line_end() {
            let number = cursor.integer("a neighbour", header.vertices as u64)?;
            if number == 0 {
                return Err(cursor.error("vertices count from 1"));
            }
            let neighbour = number as u32 - 1;
            if let Some(wrong) = refuse(vertex, neighbour) {
                return Err(cursor.error(format!("vertex {number} {wrong}")));
            }
            rows.neighbours.push(neighbour);
            if header.edge_weights {
                if cursor.at_line_end() {
                    return Err(cursor.error(format!("no weight follows neighbour {number}")));
                }
                rows.edge_weights.push(weight(cursor, "the weight of an edge")?);
                if rows.edge_weights.last() == Some(&0) {
                    return Err(cursor.error("the weight of an edge is at least 1"));
                }
            }
        }
        cursor.next_line();
        if rows.neighbours.len() > limits::NODES {
            return Err(cursor.error("more entries than 31 bits can count"));
        }
        rows.first.push(rows.neighbours.len() as u32);
    }
    end_rows(cursor, header.vertices, "vertices")?;
    Ok(rows)
}

/// Goes to the line of row `row`.
fn start_row(cursor: &mut Cursor<'_>, row: usize, rows: usize, what: &str) -> Result<()> {
    cursor.skip_comment_lines(b'%');
    if cursor.at_end() {
        let message = format!("the file ends after {row} of {rows} {what}");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    Ok(())
}

/// After the last row only comments and empty lines may follow.
fn end_rows(cursor: &mut Cursor<'_>, rows: usize, what: &str) -> Result<()> {
    cursor.skip_blank_and_comment_lines(b'%');
    if !cursor.at_end() {
        let message = format!("more than the {rows} {what} that the first line declares");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    Ok(())
}

/// A weight or size on the same line.
fn weight(cursor: &mut Cursor<'_>, what: &str) -> Result<u32> {
    if cursor.at_line_end() {
        return Err(cursor.error_at(cursor.offset(), format!("the line ends before {what}")));
    }
    Ok(cursor.integer(what, i32::MAX as u64)? as u32)
}

/// Reads an undirected graph.
pub(super) fn read_graph(file: &str, bytes: &[u8]) -> Result<Graph> {
    let mut cursor = Cursor::new(file, bytes);
    let header = graph_header(&mut cursor)?;
    // The last vertex that named each one.
    let mut named_by = vec![u32::MAX; cursor.capacity(header.vertices as u64, 1)];
    let rows = graph_rows(&mut cursor, &header, |vertex, neighbour| {
        if vertex == neighbour {
            return Some("is a neighbour of itself");
        }
        // Rows beyond the file's end are never reached, but may be named before it is found.
        let named = named_by.get_mut(neighbour as usize)?;
        let again = *named == vertex;
        *named = vertex;
        again.then_some("is named twice in this line")
    })?;
    check_reverse(&mut cursor, &header, &rows)?;
    if rows.neighbours.len() as u64 != header.edges * 2 {
        return Err(cursor.error_at(
            header.edges_at,
            format!(
                "{} edges are declared, but the lines have {} entries, which are {} edges",
                header.edges,
                rows.neighbours.len(),
                rows.neighbours.len() / 2
            ),
        ));
    }
    build_graph(rows, &header).map_err(|error| error.in_file(file))
}

fn build_graph(rows: Rows, header: &Header) -> Result<Graph, ShapeError> {
    let mut graph = Graph::new(rows.first, rows.neighbours, false)?;
    if header.edge_weights {
        graph = graph.with_edge_weights(rows.edge_weights)?;
    }
    if header.vertex_weights > 0 {
        graph = graph.with_vertex_weights(rows.vertex_weights, header.vertex_weights)?;
    }
    if header.sizes {
        graph = graph.with_vertex_sizes(rows.sizes)?;
    }
    Ok(graph)
}

/// Entries that are wrong in one way: how many, and the first as `(vertex, entry)`.
#[derive(Default)]
struct Wrong {
    count: usize,
    first: Option<(usize, u32)>,
}

impl Wrong {
    fn note(&mut self, vertex: usize, entry: u32) {
        self.count += 1;
        self.first.get_or_insert((vertex, entry));
    }
}

/// Checks that each entry has its reverse, with the same weight.
fn check_reverse(cursor: &mut Cursor<'_>, header: &Header, rows: &Rows) -> Result<()> {
    let vertices = header.vertices;
    let (back_first, back) = transpose(vertices, &rows.first, &rows.neighbours);
    let weight = |entry: u32| rows.edge_weights.get(entry as usize);
    // For each vertex, the entry by which it names the one whose turn it is.
    let mut names = vec![(u32::MAX, 0u32); vertices];
    let (mut no_reverse, mut other_weight) = (Wrong::default(), Wrong::default());
    for vertex in 0..vertices {
        for &(source, entry) in &back[back_first[vertex] as usize..back_first[vertex + 1] as usize]
        {
            names[source as usize] = (vertex as u32, entry);
        }
        for entry in rows.first[vertex]..rows.first[vertex + 1] {
            let (named, reverse) = names[rows.neighbours[entry as usize] as usize];
            if named != vertex as u32 {
                no_reverse.note(vertex, entry);
            } else if weight(entry) != weight(reverse) {
                other_weight.note(vertex, entry);
            }
        }
    }
    let wrong = if no_reverse.count > 0 { &no_reverse } else { &other_weight };
    let Some((vertex, entry)) = wrong.first else { return Ok(()) };
    let place = locate(cursor, header, vertex, entry - rows.first[vertex])?;
    let neighbour = rows.neighbours[entry as usize] + 1;
    let (vertex, count) = (vertex + 1, wrong.count);
    let message = if no_reverse.count > 0 {
        format!(
            "vertex {vertex} names vertex {neighbour}, but {neighbour} does not name {vertex} \
             ({count} entries in all have no reverse); a METIS graph is undirected"
        )
    } else {
        format!(
            "the edge from {vertex} to {neighbour} has another weight in the line of {neighbour} \
             ({count} entries in all); a METIS graph is undirected"
        )
    };
    Err(cursor.error_at(place, message).help(
        "if these are connections (who sends how many words to whom), read the file with \
         `--format graph-connections`; else name each edge in the lines of both its ends",
    ))
}

/// For each vertex, who names it and by which entry, ascending.
fn transpose(vertices: usize, first: &[u32], neighbours: &[u32]) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut back_first = vec![0u32; vertices + 1];
    for &neighbour in neighbours {
        back_first[neighbour as usize + 1] += 1;
    }
    for v in 0..vertices {
        back_first[v + 1] += back_first[v];
    }
    let mut next = back_first.clone();
    let mut back = vec![(0, 0); neighbours.len()];
    for vertex in 0..vertices {
        for entry in first[vertex]..first[vertex + 1] {
            let place = &mut next[neighbours[entry as usize] as usize];
            back[*place as usize] = (vertex as u32, entry);
            *place += 1;
        }
    }
    (back_first, back)
}

/// Where entry `entry` of a vertex's line stands. Read again, so that no place need be kept for
/// every entry of a file that is right.
fn locate(cursor: &mut Cursor<'_>, header: &Header, vertex: usize, entry: u32) -> Result<usize> {
    cursor.seek(0);
    cursor.skip_blank_and_comment_lines(b'%');
    for _ in 0..=vertex {
        cursor.next_line();
        cursor.skip_comment_lines(b'%');
    }
    let before = usize::from(header.sizes) + header.vertex_weights;
    let per_entry = 1 + usize::from(header.edge_weights);
    for _ in 0..=before + entry as usize * per_entry {
        cursor.word("an entry")?;
    }
    Ok(cursor.last())
}

/// Reads a list of connections.
pub(super) fn read_connections(file: &str, bytes: &[u8]) -> Result<ConnectionList> {
    let mut cursor = Cursor::new(file, bytes);
    let header = graph_header(&mut cursor)?;
    let rows = graph_rows(&mut cursor, &header, |_, _| None)?;
    let entries = rows.neighbours.len();
    if entries as u64 != header.edges && entries as u64 != header.edges * 2 {
        return Err(cursor.error_at(
            header.edges_at,
            format!(
                "{} edges are declared, but the lines have {entries} entries; expected as many, \
                 or twice as many",
                header.edges
            ),
        ));
    }
    let connections = (0..header.vertices)
        .flat_map(|part| (rows.first[part]..rows.first[part + 1]).map(move |e| (part, e as usize)))
        .map(|(part, e)| {
            let words = rows.edge_weights.get(e).copied().unwrap_or(1);
            (part as u32, rows.neighbours[e], words)
        })
        .collect();
    ConnectionList::new(header.vertices, connections).map_err(|error| error.in_file(file))
}

/// Reads a mesh.
pub(super) fn read_mesh(file: &str, bytes: &[u8]) -> Result<Mesh> {
    let mut cursor = Cursor::new(file, bytes);
    cursor.skip_blank_and_comment_lines(b'%');
    if cursor.peek_word().starts_with(b"MeshVersionFormatted") {
        return Err(cursor
            .error_at(cursor.offset(), "this is a Medit mesh, not a METIS mesh")
            .help("convert it to Gmsh's format with Gmsh or meshio"));
    }
    let count = cursor.integer("the number of elements", limits::ELEMENTS as u64)? as usize;
    let mut weights_per_element = 0;
    if !cursor.at_line_end() {
        weights_per_element = cursor.integer("the number of weights", WEIGHTS)? as usize;
    }
    let weights_at = cursor.last();
    cursor.end_line("the number of elements and the number of weights")?;
    let mut first = Vec::with_capacity(cursor.capacity(count as u64, 2) + 1);
    first.push(0);
    let mut nodes: Vec<u32> = Vec::new();
    let mut weights = Vec::new();
    let mut shortest = usize::MAX;
    let mut longest = 0;
    for element in 0..count {
        start_row(&mut cursor, element, count, "elements")?;
        for _ in 0..weights_per_element {
            weights.push(weight(&mut cursor, "a weight of the element")?);
        }
        let start = nodes.len();
        while !cursor.at_line_end() {
            let node = cursor.integer("a node of the element", limits::NODES as u64)?;
            if node == 0 {
                return Err(cursor.error("nodes count from 1"));
            }
            nodes.push(node as u32 - 1);
        }
        let length = nodes.len() - start;
        if length == 0 || length > limits::ELEMENT_NODES || nodes.len() > limits::NODES {
            return Err(cursor.error_at(
                cursor.offset(),
                format!("an element of {length} nodes; expected 1 to {}", limits::ELEMENT_NODES),
            ));
        }
        shortest = shortest.min(length);
        longest = longest.max(length);
        first.push(nodes.len() as u32);
        cursor.next_line();
    }
    end_rows(&mut cursor, count, "elements")?;
    if count == 0 {
        return Err(cursor.error_at(cursor.offset(), "the mesh has no elements"));
    }
    // METIS 4: type 1 are triangles, 2 tetrahedra, 3 bricks. Read as METIS 5 that would be this
    // many weights, and so many nodes fewer.
    let as_metis_4 = [(1, 3), (2, 4), (3, 8)];
    if shortest == longest
        && as_metis_4.contains(&(weights_per_element, shortest + weights_per_element))
    {
        return Err(ambiguous(&cursor, weights_at, weights_per_element, shortest));
    }
    let (node_count, ids) = renumber_if_sparse(&mut nodes);
    let build = || {
        let mut mesh = Mesh::new(0, node_count, Vec::new(), first, nodes)?;
        if !ids.is_empty() {
            mesh = mesh.with_node_ids(ids)?;
        }
        if weights_per_element > 0 {
            mesh = mesh.with_element_weights(weights, weights_per_element)?;
        }
        Ok(mesh)
    };
    build().map_err(|error: ShapeError| error.in_file(file))
}

fn ambiguous(cursor: &Cursor<'_>, at: usize, weights: usize, nodes: usize) -> InputError {
    cursor
        .error_at(
            at,
            format!(
                "in METIS 4 this {weights} is a type, and elements have {} nodes; in METIS 5 it \
                 is the number of weights, and elements have {nodes} nodes",
                nodes + weights
            ),
        )
        .help(format!(
            "if it is a METIS 4 file, delete this {weights}; if the elements do have weights, \
             write them as a graph or a Gmsh file"
        ))
}

/// The number of nodes that `nodes` (from 0) name. Where most numbers are not used they are
/// replaced by ranks, so that one large number cannot make arrays of its size; the ids returned
/// then give the numbers in the file, from 1.
pub(super) fn renumber_if_sparse(nodes: &mut [u32]) -> (usize, Vec<u64>) {
    let node_count = nodes.iter().max().map_or(0, |&node| node as usize + 1);
    if node_count <= 4 * nodes.len() + 1024 {
        return (node_count, Vec::new());
    }
    let mut ids: Vec<u64> = nodes.iter().map(|&node| u64::from(node) + 1).collect();
    ids.sort_unstable();
    ids.dedup();
    let numbering = Numbering::new(ids);
    for node in nodes.iter_mut() {
        *node = numbering.rank(u64::from(*node) + 1).expect("every node was collected");
    }
    (numbering.len(), numbering.into_ids())
}
