//! Plates of triangles with random nodes: Delaunay triangulations (by spade) of the unit square.
//!
//! Nodes on the sides of the square have coordinates of exactly 0 or 1, and spade's predicates are
//! exact, so every one of them is on the rim of the triangulation and the number of triangles is
//! that of Euler's formula: 2n - 2 - h for n nodes, h of them on the rim. The count is checked all
//! the same; a draw that misses it (two equal random nodes) is drawn again.
//!
//! A crack is a chain of constrained edges from the middle of the left side to the middle of the
//! square. Each of its nodes but the tip is then split into one for the upper and one for the
//! lower face, and both faces join the rim. Last, the crack is opened a little, by the shape that
//! the displacements of an elastic plate under tension have around a crack's tip, so that no two
//! nodes share a place.

use conset_ir::ShapeError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use spade::{ConstrainedDelaunayTriangulation, Point2, Triangulation};

use super::MAX_DELAUNAY_NODES;
use super::lattice;
use crate::model::Mesh;

type Point = [f64; 2];
type Triangle = [u32; 3];

/// Draws before giving up. More than one is all but never needed.
const DRAWS: u32 = 8;
/// How often the nodes of a refined mesh move to the middle of their neighbours.
const SMOOTHINGS: u32 = 4;
/// The spacing of nodes along the crack: at the tip, as a share of the mean.
const TIP_SPACING: f64 = 0.25;
/// How fast the spacing of nodes grows with the distance from the crack.
const GROWTH: f64 = 0.0625;
/// The half width of the opened crack at distance 1 from the tip.
const OPENING: f64 = 0.03125;
/// Rows and columns of the table by which nodes are drawn.
const BINS: usize = 128;

/// A square plate of `nodes` nodes: `rim` of them evenly on its sides, the others at random
/// places inside, evenly distributed. It has 2 * nodes - 2 - rim triangles.
///
/// # Errors
/// Fewer than 4 nodes on the rim, fewer nodes than that, more than 2^22 nodes.
pub fn random_plate(nodes: usize, rim: usize, seed: u64) -> Result<Mesh, ShapeError> {
    if rim < 4 || nodes < rim || nodes > MAX_DELAUNAY_NODES {
        return Err(ShapeError::new(
            "nodes",
            format!(
                "{nodes} with {rim} on the rim; expected at least 4 on the rim, at most {MAX_DELAUNAY_NODES} in all"
            ),
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // A little away from the rim, or the triangles there would be needles.
    let margin = 1.0 / (rim as f64).max(16.0);
    for _ in 0..DRAWS {
        let mut points = even_rim(rim);
        let inside = |rng: &mut ChaCha8Rng| rng.random_range(margin..1.0 - margin);
        points.extend((rim..nodes).map(|_| [inside(&mut rng), inside(&mut rng)]));
        let Some(triangles) = triangulate(&points, &[], 2 * nodes - 2 - rim) else { continue };
        if all_positive(&points, &triangles) {
            return mesh(&points, &triangles);
        }
    }
    Err(gave_up())
}

/// A square plate of `nodes` nodes with a crack from the middle of its left side to its centre:
/// `rim` nodes on its sides, `crack` on each face of the crack besides the tip (the one on the
/// left side of the lower face counts to the rim), the others inside, the denser the nearer to the
/// crack, and densest at its tip. It has 2 * nodes - 2 - rim - 2 * crack triangles.
///
/// # Errors
/// Fewer than 8 nodes on the rim, none on the crack, fewer nodes than these, more than 2^22, or
/// counts so uneven that the opened crack would turn a triangle over.
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
                "{nodes} with {rim} on the rim and twice {crack} on the crack; expected at least 8 on the rim, 1 on the crack, at most {MAX_DELAUNAY_NODES} in all"
            ),
        ));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let plate = Cracked::new(nodes, rim, crack);
    for _ in 0..DRAWS {
        let Some((mut points, mut triangles)) = plate.draw(&mut rng) else { continue };
        plate.split(&mut points, &mut triangles);
        plate.open(&mut points);
        if all_positive(&points, &triangles) {
            return mesh(&points, &triangles);
        }
    }
    Err(gave_up())
}

/// The plate before it is split. Its nodes are, in this order: the rim, anticlockwise from
/// the corner (0, 0); the crack, from the mouth (which is on the rim) to the tip; the inside.
struct Cracked {
    nodes: usize,
    /// Nodes on the rim.
    rim: usize,
    /// Edges of the crack.
    edges: usize,
    /// The node at the crack's mouth.
    mouth: usize,
    /// All nodes that have a fixed place.
    fixed: Vec<Point>,
}

impl Cracked {
    fn new(nodes: usize, rim: usize, edges: usize) -> Self {
        let (mut fixed, mouth) = graded_rim(rim);
        fixed.extend((1..=edges).map(|i| {
            let to_tip = (edges - i) as f64 / edges as f64;
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
        for _ in 0..SMOOTHINGS {
            let triangles = triangulate(&points, &chain, count)?;
            smooth(&mut points, self.fixed.len(), &triangles);
            // A node on the crack itself would cut its edges.
            let on_crack = |p: &Point| p[1] == 0.5 && p[0] <= 0.5;
            if points[self.fixed.len()..].iter().any(on_crack) {
                return None;
            }
        }
        let triangles = triangulate(&points, &chain, count)?;
        Some((points, triangles))
    }

    /// Draws `count` points with a density of 1 / spacing^2: a bin by its bound on the density,
    /// a point in it, kept with the probability density / bound.
    fn draw_inside(&self, rng: &mut ChaCha8Rng, count: usize, points: &mut Vec<Point>) {
        let size = 1.0 / BINS as f64;
        let corner = |bin: usize| [(bin % BINS) as f64 * size, (bin / BINS) as f64 * size];
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
        let wanted = points.len() + count;
        while points.len() < wanted {
            let at = rng.random_range(0.0..sum);
            let bin = sums.partition_point(|&s| s <= at).min(bounds.len() - 1);
            let [left, low] = corner(bin);
            let p = [left + size * rng.random::<f64>(), low + size * rng.random::<f64>()];
            let spacing = self.spacing(p);
            let keep = rng.random::<f64>() * bounds[bin] < 1.0 / (spacing * spacing);
            let room = p[0].min(p[1]).min(1.0 - p[0]).min(1.0 - p[1]).min(crack_distance(p));
            if keep && room > 0.3 * spacing {
                points.push(p);
            }
        }
    }

    /// The distance between neighbours that the mesh should have around `p`: that of the nearest
    /// place on the crack, growing with the distance up to that of the rim.
    fn spacing(&self, p: Point) -> f64 {
        self.spacing_at(p[0], crack_distance(p))
    }

    /// At most the spacing anywhere in a square bin.
    fn least_spacing(&self, [left, low]: Point, size: f64) -> f64 {
        let centre = [left + 0.5 * size, low + 0.5 * size];
        // No point of the bin is further from its centre than 0.75 of its side.
        self.spacing_at(left + size, (crack_distance(centre) - 0.75 * size).max(0.0))
    }

    /// Falls with `x`, rises with `distance`.
    fn spacing_at(&self, x: f64, distance: f64) -> f64 {
        let to_tip = (1.0 - 2.0 * x).max(0.0);
        // The derivative of `graded`, at the argument for which it is `to_tip`.
        let slope = (TIP_SPACING * TIP_SPACING + 4.0 * (1.0 - TIP_SPACING) * to_tip).sqrt();
        let on_crack = 0.5 * slope / self.edges as f64;
        (on_crack + GROWTH * distance).min(4.0 / self.rim as f64)
    }

    /// Gives the triangles above the crack nodes of their own; the new ones come last, from the
    /// mouth on.
    fn split(&self, points: &mut Vec<Point>, triangles: &mut [Triangle]) {
        let mut upper: Vec<u32> = (0..points.len() as u32).collect();
        for i in 0..self.edges {
            let node = self.crack_node(i);
            upper[node] = points.len() as u32;
            points.push(points[node]);
        }
        for triangle in triangles {
            // No edge crosses the crack, so a triangle that touches it lies on one side.
            if triangle.iter().any(|&node| points[node as usize][1] > 0.5) {
                *triangle = triangle.map(|node| upper[node as usize]);
            }
        }
    }

    /// Moves the nodes up above the crack and down below it, by sqrt(r) * |sin(angle / 2)|
    /// around the tip, fading out towards the top and the bottom.
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

/// From 0 to 1 like its argument, with slope [`TIP_SPACING`] at 0.
fn graded(t: f64) -> f64 {
    t * (TIP_SPACING + (1.0 - TIP_SPACING) * t)
}

fn crack_distance([x, y]: Point) -> f64 {
    let (dx, dy) = ((x - 0.5).max(0.0), y - 0.5);
    (dx * dx + dy * dy).sqrt()
}

/// Nodes on the sides of the square, anticlockwise from (0, 0).
fn even_rim(count: usize) -> Vec<Point> {
    let left = count / 4;
    let mut points = three_sides(count - left);
    points.extend((0..left).map(|i| [0.0, 1.0 - i as f64 / left as f64]));
    points
}

/// The same, with those on the left side the denser the nearer to its middle, and one exactly
/// there, whose number is returned too.
fn graded_rim(count: usize) -> (Vec<Point>, usize) {
    let half = count / 8;
    let mut points = three_sides(count - 2 * half);
    let offset = |i: usize| 0.5 * graded(i as f64 / half as f64);
    points.extend((1..=half).rev().map(|i| [0.0, 0.5 + offset(i)]));
    let mouth = points.len();
    points.extend((0..half).map(|i| [0.0, 0.5 - offset(i)]));
    (points, mouth)
}

/// Nodes from (0, 0) up to but without (0, 1), along the bottom, right and top sides.
fn three_sides(count: usize) -> Vec<Point> {
    let bottom = count.div_ceil(3);
    let right = (count - bottom).div_ceil(2);
    let top = count - bottom - right;
    let part = |i: usize, n: usize| i as f64 / n as f64;
    let mut points: Vec<Point> = (0..bottom).map(|i| [part(i, bottom), 0.0]).collect();
    points.extend((0..right).map(|i| [1.0, part(i, right)]));
    points.extend((0..top).map(|i| [1.0 - part(i, top), 1.0]));
    points
}

/// The Delaunay triangles of the points, anticlockwise, with `chain` among their edges; `None`
/// where points coincide or the number of triangles is not `count`.
///
/// Each begins with its smallest node and they are sorted, so that their order does not depend
/// on how spade works.
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
        .map(|face| face.vertices().map(|vertex| vertex.fix().index() as u32))
        .collect();
    for triangle in &mut triangles {
        let smallest = (0..3).min_by_key(|&i| triangle[i])?;
        triangle.rotate_left(smallest);
    }
    triangles.sort_unstable();
    (triangles.len() == count).then_some(triangles)
}

/// Moves every point from `first_free` on to the mean of its neighbours.
fn smooth(points: &mut [Point], first_free: usize, triangles: &[Triangle]) {
    // Around an inner point every neighbour is in two triangles, so all count the same.
    let mut sums = vec![[0.0, 0.0, 0.0]; points.len()];
    for triangle in triangles {
        for i in 0..3 {
            let (sum, a, b) = (
                &mut sums[triangle[i] as usize],
                points[triangle[(i + 1) % 3] as usize],
                points[triangle[(i + 2) % 3] as usize],
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
        let [a, b, c] = triangle.map(|node| points[node as usize]);
        (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]) > 0.0
    })
}

fn mesh(points: &[Point], triangles: &[Triangle]) -> Result<Mesh, ShapeError> {
    let coordinates = points.iter().map(|&[x, y]| [x, y, 0.0]).collect();
    lattice::mesh(2, 3, coordinates, triangles.iter().flatten().copied().collect())
}

fn gave_up() -> ShapeError {
    ShapeError::new("nodes", format!("no good triangles in {DRAWS} draws with these counts"))
}
