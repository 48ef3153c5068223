//! Sort-last volume rendering: every cell renders its slab of a volume, and the images are combined by
//! swap (seed 002, section 6; Ma and others, Parallel Volume Rendering Using Binary-Swap Compositing,
//! 1994).
//!
//! The volume is analytic: a core, a shell that lets half of the light through, and a ring. It is divided
//! into slabs across one axis, one for each live cell. A ray passes the slabs in their order, so the image
//! of a slab hides those behind: the operator keeps the order of cells and does not commute.
//!
//! The picture has the same bits for any number of cells, however their images are combined. Mixing of
//! colours by opacity would not, as it rounds. So a pixel has [`RAYS`] rays, and each is stopped by one
//! sample or by none: a sample of opacity a stops a ray whose number for this sample is less than a
//! (stochastic transparency; Enderton and others, 2010). The numbers of the rays of a pixel are spread
//! evenly, so that about a part a of them is stopped. Combining two images then is choosing the ray of
//! the front if it was stopped there, which is exactly associative. The mean of the rays is taken at the
//! end.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conset::ir::{Image, Machine};
use conset_runtime::{CellError, ReducePlan, World};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use crate::team::TeamArgs;
use crate::{Failure, failure, noise};

/// Rays of a pixel. A byte each: 0 passes, other values are materials and brightness.
pub const RAYS: usize = 64;
/// Words of a pixel.
const WORDS: usize = RAYS / 8;
/// Levels of brightness of a material.
const LEVELS: u8 = 85;
/// The colours of the materials in full light, and of the background.
const COLOURS: [[f64; 3]; 3] = [[1.0, 0.62, 0.2], [0.35, 0.6, 1.0], [0.5, 1.0, 0.55]];
const BACKGROUND: [f64; 3] = [0.04, 0.05, 0.09];

/// What is rendered.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Pixels across and down.
    pub size: usize,
    /// Samples along a ray, over the diagonal of the volume.
    pub samples: usize,
    /// The angle around the vertical axis, in degrees.
    pub angle: f64,
}

/// A vector.
type Point = [f64; 3];

fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn length(a: Point) -> f64 {
    dot(a, a).sqrt()
}

/// The densities of the materials at a point of the cube from -1 to 1.
fn densities(p: Point) -> [f64; 3] {
    let radius = length(p);
    let bump = |distance: f64, width: f64| (-(distance / width).powi(2)).exp();
    let waves = 0.06 * ((7.0 * p[0]).sin() * (6.0 * p[1]).sin() + (8.0 * p[2]).sin());
    let core = bump((radius - waves).max(0.22) - 0.22, 0.06);
    // A quarter of the shell is missing.
    let open = if p[0] > 0.0 && p[2] < 0.0 { 0.0 } else { 1.0 };
    let shell = open * bump(radius - 0.62, 0.04);
    let around = (p[0].hypot(p[2]) - 0.85).hypot(p[1] - 0.25 * p[0]);
    [30.0 * core, 4.0 * shell, 25.0 * bump(around, 0.05)]
}

/// The opacity of a sample over a length, and its byte if it stops a ray.
fn sample(p: Point, step: f64, light: Point) -> (f64, u8) {
    let at = densities(p);
    let total: f64 = at.iter().sum();
    if total < 1e-3 {
        return (0.0, 0);
    }
    let material = (0..3).max_by(|&a, &b| at[a].total_cmp(&at[b])).unwrap_or(0);
    let delta = 1e-3;
    let slope = |axis: usize| {
        let mut beside = p;
        beside[axis] += delta;
        at[material] - densities(beside)[material]
    };
    let normal = [slope(0), slope(1), slope(2)];
    let towards = dot(normal, light) / length(normal).max(1e-9);
    let brightness = 0.25 + 0.75 * towards.abs();
    let level = (brightness * f64::from(LEVELS - 1)).clamp(0.0, f64::from(LEVELS - 1)) as u8;
    (1.0 - (-total * step).exp(), 1 + material as u8 * LEVELS + level)
}

impl View {
    /// The axes of the image in the volume: right, down, and away from the viewer.
    fn axes(&self) -> [Point; 3] {
        let (sin, cos) = self.angle.to_radians().sin_cos();
        let (tilt_sin, tilt_cos) = 0.45f64.sin_cos();
        [
            [sin, 0.0, -cos],
            [cos * tilt_sin, -tilt_cos, sin * tilt_sin],
            [cos * tilt_cos, tilt_sin, sin * tilt_cos],
        ]
    }

    /// Whether rays pass slabs in the order of increasing coordinates.
    fn is_forward(&self) -> bool {
        self.axes()[2][0] >= 0.0
    }

    /// Renders the samples of a slab, given as a half-open interval of the first coordinate.
    fn render(&self, slab: [f64; 2]) -> Vec<u64> {
        let [right, down, away] = self.axes();
        let diagonal = 2.0 * 3f64.sqrt();
        let step = diagonal / self.samples as f64;
        let light = [-away[0] + right[0], -away[1] + 0.5, -away[2] + right[2]];
        let light = light.map(|part| part / length(light));
        let mut image = Vec::with_capacity(self.size * self.size * WORDS);
        for pixel in 0..self.size * self.size {
            let at = |n: usize| ((n as f64 + 0.5) / self.size as f64 - 0.5) * 2.4;
            let (x, y) = (at(pixel % self.size), at(pixel / self.size));
            let start: Point =
                std::array::from_fn(|i| x * right[i] + y * down[i] - 0.5 * diagonal * away[i]);
            let mut rays = [0u8; RAYS];
            for k in 0..self.samples {
                let depth = (k as f64 + 0.5) * step;
                let p: Point = std::array::from_fn(|i| start[i] + depth * away[i]);
                let inside = p.iter().all(|part| part.abs() < 1.0);
                if inside && slab[0] <= p[0] && p[0] < slab[1] {
                    stop_rays(&mut rays, sample(p, step, light), (pixel, k));
                }
            }
            let bytes = rays.chunks_exact(8).map(|word| word.try_into().unwrap_or_default());
            image.extend(bytes.map(u64::from_le_bytes));
        }
        image
    }
}

/// Stops the rays of a pixel at a sample.
fn stop_rays(rays: &mut [u8; RAYS], (opacity, byte): (f64, u8), (pixel, k): (usize, usize)) {
    if opacity <= 0.0 {
        return;
    }
    let shift = 0.5 + 0.5 * noise(pixel as u64, k as u64);
    for (number, ray) in rays.iter_mut().enumerate() {
        // Multiples of the golden ratio lie evenly in the unit interval.
        let place = (number as f64 * 0.618_033_988_749_894_9 + shift).fract();
        if *ray == 0 && place < opacity {
            *ray = byte;
        }
    }
}

/// Puts the rays of images behind where those in front have passed; eight to a word.
pub fn behind(front: &mut [u64], back: &[u64]) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    for (front, &back) in front.iter_mut().zip(back) {
        // The upper bit of each byte that is not 0.
        let stopped = (((*front & !HIGH) + !HIGH) | *front) & HIGH;
        let kept = (stopped >> 7) * 0xff;
        *front |= back & !kept;
    }
}

/// The colours of the pixels, three bytes each: means over their rays.
fn colours(image: &[u64]) -> Vec<u8> {
    let pixels = image.chunks_exact(WORDS).flat_map(|pixel| {
        let mut sum = [0.0; 3];
        for ray in pixel.iter().flat_map(|word| word.to_le_bytes()) {
            let shade = |colour: [f64; 3], light: f64| colour.map(|part| part * light);
            let colour = match ray.checked_sub(1) {
                None => BACKGROUND,
                Some(ray) => {
                    let light = f64::from(ray % LEVELS) / f64::from(LEVELS - 1);
                    shade(COLOURS[usize::from(ray / LEVELS).min(2)], light)
                }
            };
            sum = std::array::from_fn(|part| sum[part] + colour[part]);
        }
        sum.map(|part| (255.0 * (part / RAYS as f64).powf(1.0 / 2.2)).round() as u8)
    });
    pixels.collect()
}

/// A picture as a PNG file.
///
/// # Errors
/// Only those of memory.
pub fn png(image: &[u64], size: usize) -> Result<Vec<u8>, Failure> {
    let side = u32::try_from(size)?.to_be_bytes();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: [u8; 4], data: &[u8]| -> Result<(), Failure> {
        let mut crc = Crc::new();
        crc.update(&kind);
        crc.update(data);
        file.extend(u32::try_from(data.len())?.to_be_bytes());
        file.extend(kind);
        file.extend(data);
        file.extend(crc.sum().to_be_bytes());
        Ok(())
    };
    // Eight bits for each of three colours, not interlaced.
    chunk(*b"IHDR", &[&side[..], &side, &[8, 2, 0, 0, 0]].concat())?;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in colours(image).chunks(3 * size) {
        rows.write_all(&[0])?;
        rows.write_all(row)?;
    }
    chunk(*b"IDAT", &rows.finish()?)?;
    chunk(*b"IEND", &[])?;
    Ok(file)
}

/// A picture and how it was made.
#[derive(Debug)]
pub struct Composite {
    /// Rays, eight to a word, on the rank of the first cell; elsewhere empty.
    pub image: Vec<u64>,
    /// Whether it has the bits of the picture that one cell renders alone; true where there is none.
    pub agrees: bool,
    /// Live cells.
    pub cells: usize,
    /// How images were combined.
    pub plan: ReducePlan,
    /// Clocks of the emulated machine, from the start of combining.
    pub clocks: u64,
    /// The time of combining, from when the last cell here had rendered.
    pub combining: Duration,
    view: View,
}

/// Renders a view on the cells of a machine, and alone. Images are combined by the plan, or by the
/// cheapest.
///
/// # Errors
/// No such machine or plan, and all that can go wrong in a run.
pub fn render(args: &TeamArgs, view: View, plan: Option<ReducePlan>) -> Result<Composite, Failure> {
    let machine = args.machine()?;
    let (cells, words) = (machine.endpoints().count(), view.size * view.size * WORDS);
    let cheapest = || ReducePlan::cheapest(machine.parameters(), cells, words);
    let plan = plan.unwrap_or_else(cheapest);
    let image = Image::new(machine.clone(), Vec::new())?;
    let world = World::new(image).on(args.transport()?);
    let (images, _) = world.try_run(|cell| {
        let mut image = view.render(slab(&machine, cell.id(), &view));
        let (clock, start) = (cell.clock(), Instant::now());
        let root = machine.endpoints().next().unwrap_or_default();
        cell.reduce_by(&plan, root, WORDS, &mut image, behind)?;
        let image = if cell.id() == root { image } else { Vec::new() };
        Ok::<_, CellError>((image, cell.clock() - clock, [start, Instant::now()]))
    })?;
    let clocks = images.iter().map(|(_, clocks, _)| *clocks).max().unwrap_or(0);
    let [start, end] = [0, 1].map(|k| images.iter().map(|(.., times)| times[k]).max());
    let combining = start.zip(end).map(|(start, end)| end - start).unwrap_or_default();
    let image = images.into_iter().map(|(image, ..)| image).find(|image| !image.is_empty());
    let image = image.unwrap_or_default();
    let agrees = image.is_empty() || image == view.render([-1.0, 1.0]);
    Ok(Composite { image, agrees, cells, plan, clocks, combining, view })
}

/// The slab of a live cell: those in front have lower ids.
fn slab(machine: &Arc<Machine>, cell: conset::ir::CellId, view: &View) -> [f64; 2] {
    let live: Vec<_> = machine.endpoints().collect();
    let place = live.binary_search(&cell).unwrap_or(0);
    let place = if view.is_forward() { place } else { live.len() - 1 - place };
    [place, place + 1].map(|end| 2.0 * end as f64 / live.len() as f64 - 1.0)
}

impl Composite {
    /// Writes the picture as a PNG file, on the rank that has it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), Failure> {
        if self.image.is_empty() {
            return Ok(());
        }
        let write = std::fs::write(file, png(&self.image, self.view.size)?);
        write.map_err(|error| failure(format!("{}: {error}", file.display())))
    }
}

impl fmt::Display for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { size, samples, angle } = self.view;
        writeln!(f, "{size} x {size} pixels of {RAYS} rays, {samples} samples, {angle} degrees")?;
        write!(f, "{} slabs, combined by ", self.cells)?;
        match &self.plan {
            ReducePlan::Swap { radices } => writeln!(f, "swap with radices {radices:?}")?,
            plan => writeln!(f, "{plan:?}")?,
        }
        writeln!(f, "combining: {} clocks, {:.1?}", self.clocks, self.combining)?;
        let agrees = if self.agrees { "agrees with" } else { "DOES NOT AGREE with" };
        write!(f, "{agrees} the sequential picture to the bit")
    }
}
