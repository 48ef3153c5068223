//! Generators of triangulated plates with random nodes: Delaunay triangulations of the unit square,
//! computed by `spade`.
//!
//! Nodes on the sides of the square have coordinates of exactly 0 or 1, and spade's predicates are
//! exact, so all of them are on the boundary of the triangulation, and the number of triangles
//! follows from Euler's formula: 2n - 2 - h for n nodes, h of them on the boundary. The number is
//! checked; if it is wrong (because two random nodes are equal), new nodes are drawn.
//!
//! A crack is a chain of constrained edges from the middle of the left side to the centre of the
//! square. Each of its nodes except the tip is then split into one for the upper and one for the
//! lower face, and both faces become part of the boundary. Finally the crack is opened slightly, in
//! the shape of the displacements of an elastic plate under tension around the tip of a crack, so
//! that no two nodes coincide.

use conset_ir::ShapeError;
use conset_ir::convert::{index, to_f64, to_u32};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use spade::{ConstrainedDelaunayTriangulation, Point2, Triangulation};

use super::MAX_DELAUNAY_NODES;
use super::lattice;
use crate::model::Mesh;

type Point = [f64; 2];
type Triangle = [u32; 3];

/// Number of draws before the generator fails. More than one is almost never necessary.
const MAX_DRAWS: u32 = 8;
/// Number of smoothing steps of a refined mesh, which move nodes to the mean of their neighbours.
const SMOOTHING_STEPS: u32 = 4;
/// The spacing of nodes on the crack at its tip, relative to the mean spacing on the crack.
const TIP_SPACING: f64 = 0.25;
/// The growth of the node spacing per distance from the crack.
const GROWTH: f64 = 0.0625;
/// The half width of the opened crack at distance 1 from the tip.
const OPENING: f64 = 0.03125;
/// Rows and columns of the table for drawing nodes.
const BINS: usize = 128;

/// A square plate of `nodes` nodes: `rim` of them evenly spaced on its boundary, the others at
/// uniformly random positions inside. It has 2 * nodes - 2 - rim triangles.
///
/// # Errors
/// Fewer than 4 nodes on the boundary, fewer nodes than boundary nodes, more than 2^22 nodes.
pub fn random_plate(nodes: usize, rim: usize, seed: u64) -> Result<Mesh, ShapeError> {
    if rim < 4 || nodes < rim || nodes > MAX_DELAUNAY_NODES {
        return Err(ShapeError::new(
            "nodes",
            format!(
                "{nodes} with {rim} on the boundary; expected at least 4 on the boundary, at most \
                 {MAX_DELAUNAY_NODES} in total"
            ),
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A margin to the boundary prevents very thin triangles.
    let margin = 1.0 / to_f64(rim).max(16.0);
    for _ in 0..MAX_DRAWS {
        let mut points = even_rim(rim);
        let inside = |rng: &mut ChaCha8Rng| rng.random_range(margin..1.0 - margin);
        points.extend((rim..nodes).map(|_| [inside(&mut rng), inside(&mut rng)]));
        let Some(triangles) = triangulate(&points, &[], 2 * nodes - 2 - rim) else { continue };
        if all_positive(&points, &triangles) {
            return mesh(&points, &triangles);
        }
    }
    Err(no_triangulation())
}

/// A square plate of `nodes` nodes with a crack from the middle of its left side to its centre: `rim`
/// nodes on its sides, `crack` on each face of the crack besides the tip (the one on the left side of
/// the lower face counts as a node of the sides), the others inside. The density of nodes increases
/// towards the crack and is highest at its tip. The plate has 2 * nodes - 2 - rim - 2 * crack
/// triangles.
///
/// # Errors
/// Fewer than 8 nodes on the sides, none on the crack, fewer nodes than these, more than 2^22, or
/// counts so uneven that opening the crack would invert a triangle.
pub fn cracked_plate(
    nodes: usize,
    rim: usize,
    crack: usize,
    seed: u64,
) -> Result<Mesh, ShapeError> {
    let least = crack.saturating_mul(2).saturating_add(rim);
    if rim < 8 || crack < 1 || nodes < least || nodes > MAX_DELAUNAY_NODES {
        return Err(ShapeError::new(
            "nodes",
            format!(
                "{nodes} with {rim} on the sides and twice {crack} on the crack; expected at least 8 \
                 on the sides, 1 on the crack, at most {MAX_DELAUNAY_NODES} in total"
            ),
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let plate = CrackedPlate::new(nodes, rim, crack);
    for _ in 0..MAX_DRAWS {
        let Some((mut points, mut triangles)) = plate.draw(&mut rng) else { continue };
        plate.split(&mut points, &mut triangles);
        plate.open(&mut points);
        if all_positive(&points, &triangles) {
            return mesh(&points, &triangles);
        }
    }
    Err(no_triangulation())
}

/// The plate before the crack is split. Its nodes are, in this order: the boundary, anticlockwise from
/// the corner (0, 0); the crack, from the mouth (which is on the boundary) to the tip; the inside.
struct CrackedPlate {
    nodes: usize,
    /// Number of nodes on the boundary.
    rim: usize,
    /// Number of edges of the crack.
    edges: usize,
    /// The node at the crack's mouth.
    mouth: usize,
    /// All nodes with a fixed position.
    fixed: Vec<Point>,
}

impl CrackedPlate {
    fn new(nodes: usize, rim: usize, edges: usize) -> Self {
        let (mut fixed, mouth) = graded_rim(rim);
        fixed.extend((1..=edges).map(|i| {
            let to_tip = to_f64(edges - i) / to_f64(edges);
            [0.5 - 0.5 * graded(to_tip), 0.5]
        }));
        Self { nodes, rim, edges, mouth, fixed }
    }

    /// Node `i` of the crack, from the mouth, 0, to the tip, `edges`.
    fn crack_node(&self, i: usize) -> usize {
        if i == 0 { self.mouth } else { self.rim + i - 1 }
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> Option<(Vec<Point>, Vec<Triangle>)> {
        let mut points = self.fixed.clone();
        let inside = self.nodes - self.rim - 2 * self.edges;
        self.draw_inside(rng, inside, &mut points);
        let chain: Vec<[usize; 2]> =
            (0..self.edges).map(|i| [self.crack_node(i), self.crack_node(i + 1)]).collect();
        let count = 2 * points.len() - 2 - self.rim;
        for _ in 0..SMOOTHING_STEPS {
            let triangles = triangulate(&points, &chain, count)?;
            smooth(&mut points, self.fixed.len(), &triangles);
            // A node on the crack itself would split its edges.
            let on_crack = |p: &Point| p[1] == 0.5 && p[0] <= 0.5;
            if points[self.fixed.len()..].iter().any(on_crack) {
                return None;
            }
        }
        let triangles = triangulate(&points, &chain, count)?;
        Some((points, triangles))
    }

    /// Draws `count` points with density 1 / spacing^2 by rejection: a bin with probability
    /// proportional to its bound on the density, then a point in it, which is kept with probability
    /// density / bound.
    fn draw_inside(&self, rng: &mut ChaCha8Rng, count: usize, points: &mut Vec<Point>) {
        let size = 1.0 / to_f64(BINS);
        let corner = |bin: usize| [to_f64(bin % BINS) * size, to_f64(bin / BINS) * size];
        let bounds: Vec<f64> = (0..BINS * BINS)
            .map(|bin| self.least_spacing(corner(bin), size))
            .map(|spacing| 1.0 / (spacing * spacing))
            .collect();
        let mut sums = Vec::with_capacity(bounds.len());
        let mut sum = 0.0;
        for bound in &bounds {
            sum += bound;
            sums.push(sum);
        }
        let total = points.len() + count;
        while points.len() < total {
            let at = rng.random_range(0.0..sum);
            let bin = sums.partition_point(|&s| s <= at).min(bounds.len() - 1);
            let [left, low] = corner(bin);
            let p = [left + size * rng.random::<f64>(), low + size * rng.random::<f64>()];
            let spacing = self.spacing(p);
            let keep = rng.random::<f64>() * bounds[bin] < 1.0 / (spacing * spacing);
            let clearance = p[0].min(p[1]).min(1.0 - p[0]).min(1.0 - p[1]).min(crack_distance(p));
            if keep && clearance > 0.3 * spacing {
                points.push(p);
            }
        }
    }

    /// The desired distance between neighbours around `p`: the spacing at the nearest point of the
    /// crack, growing with the distance from it up to the spacing on the boundary.
    fn spacing(&self, p: Point) -> f64 {
        self.spacing_at(p[0], crack_distance(p))
    }

    /// A lower bound of the spacing in a square bin.
    fn least_spacing(&self, [left, low]: Point, size: f64) -> f64 {
        let centre = [left + 0.5 * size, low + 0.5 * size];
        // No point of the bin is further from its centre than 0.75 of the length of its side.
        self.spacing_at(left + size, (crack_distance(centre) - 0.75 * size).max(0.0))
    }

    /// The spacing at coordinate `x` and a distance from the crack; decreases with `x` and increases
    /// with `distance`.
    fn spacing_at(&self, x: f64, distance: f64) -> f64 {
        let to_tip = (1.0 - 2.0 * x).max(0.0);
        // The derivative of `graded` at the argument where its value is `to_tip`.
        let slope = (TIP_SPACING * TIP_SPACING + 4.0 * (1.0 - TIP_SPACING) * to_tip).sqrt();
        let on_crack = 0.5 * slope / to_f64(self.edges);
        (on_crack + GROWTH * distance).min(4.0 / to_f64(self.rim))
    }

    /// Gives the triangles above the crack their own copies of its nodes, which are added at the end,
    /// from the mouth on.
    fn split(&self, points: &mut Vec<Point>, triangles: &mut [Triangle]) {
        let mut upper: Vec<u32> = (0..to_u32(points.len())).collect();
        for i in 0..self.edges {
            let node = self.crack_node(i);
            upper[node] = to_u32(points.len());
            points.push(points[node]);
        }
        for triangle in triangles {
            // No edge crosses the crack, so a triangle that touches it lies on one side.
            if triangle.iter().any(|&node| points[index(node)][1] > 0.5) {
                *triangle = triangle.map(|node| upper[index(node)]);
            }
        }
    }

    /// Moves the nodes above the crack up and those below it down, by sqrt(r) * |sin(angle / 2)| around
    /// the tip, decreasing towards the top and the bottom.
    fn open(&self, points: &mut [Point]) {
        let first_upper = points.len() - self.edges;
        for (node, [x, y]) in points.iter_mut().enumerate() {
            let (dx, dy) = (*x - 0.5, *y - 0.5);
            let r = (dx * dx + dy * dy).sqrt();
            // r - dx without cancellation.
            let behind = if dx > 0.0 { dy * dy / (r + dx) } else { r - dx };
            let up = if dy > 0.0 || node >= first_upper { 1.0 } else { -1.0 };
            *y += up * OPENING * 4.0 * *y * (1.0 - *y) * (0.5 * behind).sqrt();
        }
    }
}

/// A function from [0, 1] to [0, 1] with slope [`TIP_SPACING`] at 0.
fn graded(t: f64) -> f64 {
    t * (TIP_SPACING + (1.0 - TIP_SPACING) * t)
}

fn crack_distance([x, y]: Point) -> f64 {
    let (dx, dy) = ((x - 0.5).max(0.0), y - 0.5);
    (dx * dx + dy * dy).sqrt()
}

/// Evenly spaced nodes on the sides of the square, anticlockwise from (0, 0).
fn even_rim(count: usize) -> Vec<Point> {
    let left = count / 4;
    let mut points = three_sides(count - left);
    points.extend((0..left).map(|i| [0.0, 1.0 - to_f64(i) / to_f64(left)]));
    points
}

/// [`even_rim`] with the density on the left side increasing towards its middle, and one node exactly
/// in the middle, whose number is returned too.
fn graded_rim(count: usize) -> (Vec<Point>, usize) {
    let half = count / 8;
    let mut points = three_sides(count - 2 * half);
    let offset = |i: usize| 0.5 * graded(to_f64(i) / to_f64(half));
    points.extend((1..=half).rev().map(|i| [0.0, 0.5 + offset(i)]));
    let mouth = points.len();
    points.extend((0..half).map(|i| [0.0, 0.5 - offset(i)]));
    (points, mouth)
}

/// Evenly spaced nodes along the bottom, right and top sides, from (0, 0) to (0, 1), which is
/// excluded.
fn three_sides(count: usize) -> Vec<Point> {
    let bottom = count.div_ceil(3);
    let right = (count - bottom).div_ceil(2);
    let top = count - bottom - right;
    let part = |i: usize, n: usize| to_f64(i) / to_f64(n);
    let mut points: Vec<Point> = (0..bottom).map(|i| [part(i, bottom), 0.0]).collect();
    points.extend((0..right).map(|i| [1.0, part(i, right)]));
    points.extend((0..top).map(|i| [1.0 - part(i, top), 1.0]));
    points
}

/// The constrained Delaunay triangles of the points, anticlockwise, with the edges of `chain`; `None`
/// if points coincide or the number of triangles is not `count`.
///
/// Each triangle starts with its smallest node, and they are sorted, so that their order does not
/// depend on spade.
fn triangulate(points: &[Point], chain: &[[usize; 2]], count: usize) -> Option<Vec<Triangle>> {
    let vertices: Vec<Point2<f64>> = points.iter().map(|&[x, y]| Point2::new(x, y)).collect();
    let mut conflict = false;
    let triangulation = ConstrainedDelaunayTriangulation::<Point2<f64>>::try_bulk_load_cdt(
        vertices,
        chain.to_vec(),
        |_| conflict = true,
    )
    .ok()?;
    if conflict || triangulation.num_vertices() != points.len() {
        return None;
    }
    let mut triangles: Vec<Triangle> = triangulation
        .inner_faces()
        .map(|face| face.vertices().map(|vertex| to_u32(vertex.fix().index())))
        .collect();
    for triangle in &mut triangles {
        let smallest = (0..3).min_by_key(|&i| triangle[i])?;
        triangle.rotate_left(smallest);
    }
    triangles.sort_unstable();
    (triangles.len() == count).then_some(triangles)
}

/// Moves all points from `first_free` on to the mean of their neighbours.
fn smooth(points: &mut [Point], first_free: usize, triangles: &[Triangle]) {
    // Each neighbour of an inner point is in two of its triangles, so all have the same weight.
    let mut sums = vec![[0.0, 0.0, 0.0]; points.len()];
    for triangle in triangles {
        for i in 0..3 {
            let (sum, a, b) = (
                &mut sums[index(triangle[i])],
                points[index(triangle[(i + 1) % 3])],
                points[index(triangle[(i + 2) % 3])],
            );
            *sum = [sum[0] + a[0] + b[0], sum[1] + a[1] + b[1], sum[2] + 2.0];
        }
    }
    for (point, [x, y, count]) in points.iter_mut().zip(sums).skip(first_free) {
        *point = [x / count, y / count];
    }
}

fn all_positive(points: &[Point], triangles: &[Triangle]) -> bool {
    triangles.iter().all(|triangle| {
        let [a, b, c] = triangle.map(|node| points[index(node)]);
        (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]) > 0.0
    })
}

fn mesh(points: &[Point], triangles: &[Triangle]) -> Result<Mesh, ShapeError> {
    let coordinates = points.iter().map(|&[x, y]| [x, y, 0.0]).collect();
    lattice::mesh(2, 3, coordinates, triangles.iter().flatten().copied().collect())
}

/// The error after [`MAX_DRAWS`] draws.
fn no_triangulation() -> ShapeError {
    ShapeError::new(
        "nodes",
        format!("no valid triangulation with these counts in {MAX_DRAWS} draws"),
    )
}
