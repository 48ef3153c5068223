//! The wave equation with explicit time steps, the application of the earthquake meshes of the
//! paper.
//!
//! The second time derivative of u is its Laplacian, with no force on the boundary. With the mass
//! lumped at the nodes, a step is a product with the stiffness matrix, an exchange of shared nodes,
//! and a division: `u_next = 2 u - u_last - dt^2 K u / m` (central differences). There is one
//! exchange per step and no reduction; the energy is reduced from time to time.
//!
//! By phases, the exchange is started when the rows of shared nodes are done, and completed after
//! those of the inner nodes ([`Cell::start_shared`], [`Cell::wait`]), so that the cells compute
//! while the machine transfers words. `--in-turn` exchanges in one blocking call after all rows,
//! for comparison, and so does an exchange by messages. The results have the same bits.
//!
//! Steps below 2 / sqrt(the largest eigenvalue of K / m) are stable, and no eigenvalue exceeds the
//! largest of any single element, which the trace of the element bounds. With central differences
//! the sum `m v^2 / 2 + u_next K u / 2` with `v = (u_next - u) / dt` is constant up to rounding.

use conset_runtime::{By, Cell, CellError, Op};

use crate::Failure;
use crate::assembled::Assembled;
use crate::element::Element;
use crate::mesh::{Part, Simplices, load};
use crate::report::{Agreement, MeshArgs, Report};
use crate::sparse::{Csr, dot};
use crate::system::Scalar;
use crate::team::{Account, Meter};

/// How long to go on, and how.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Duration {
    /// Steps in time.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub steps: usize,
    /// Steps between two looks at the energy.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub energy_every: usize,
    /// Exchange in one call after all rows, and not beside those of the inner nodes.
    #[arg(long)]
    pub in_turn: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Waves {
    title: String,
    /// The displacement after the last step.
    pub u: Vec<f64>,
    /// The time of a step.
    pub dt: f64,
    /// Steps and the energy after them.
    pub energies: Vec<(usize, f64)>,
    /// Against the sequential run.
    pub agreement: Agreement,
    /// What the run took.
    pub account: Account,
}

/// The part of a body, or all of it.
#[derive(Clone, Debug, Default)]
struct Body {
    stiffness: Csr,
    /// What its own elements give each node.
    mass: Vec<f64>,
    start: Vec<f64>,
    /// A bound on the eigenvalues of its elements.
    stiffest: f64,
}

/// A run of one part, or of all.
#[derive(Clone, Debug)]
struct Run {
    u: Vec<f64>,
    dt: f64,
    energies: Vec<(usize, f64)>,
}

/// A hill in the middle of the mesh's box.
fn hill(mesh: &Simplices) -> impl Fn([f64; 3]) -> f64 + use<> {
    let extreme = |axis: usize, pick: fn(f64, f64) -> f64| {
        mesh.points.iter().map(|point| point[axis]).reduce(pick).unwrap_or(0.0)
    };
    let middle = [0, 1, 2].map(|axis| (extreme(axis, f64::min) + extreme(axis, f64::max)) / 2.0);
    move |point| {
        let squares = (0..3).map(|axis| (point[axis] - middle[axis]).powi(2));
        (-50.0 * squares.sum::<f64>()).exp()
    }
}

/// Lets a displacement go that is at rest (a hill in the middle, unless `start` says otherwise),
/// on cells and alone.
///
/// # Errors
/// A mesh that cannot be read, dealt or computed on; a run that failed.
pub fn solve(
    args: &MeshArgs,
    duration: Duration,
    by: By,
    start: Option<Scalar<'_>>,
) -> Result<Waves, Failure> {
    let source = load(&args.mesh, args.team.seed)?;
    let mesh = Simplices::from_source(&source)?;
    let hill = hill(&mesh);
    let start = start.unwrap_or(&hill);

    let dealt = Assembled::new(&args.team, (&mesh, &source), args.parts, (1, by))?;
    let of_part = |part: &Part| body(&part.mesh, start);
    let bodies: Vec<Body> = dealt.parts.iter().map(of_part).collect::<Result<_, _>>()?;
    let (runs, account) = dealt.run(|cell, meter| {
        let body = &bodies[cell.id().index()];
        on_cell(cell, meter, &dealt, body, duration)
    })?;

    let alone = alone(&body(&mesh, start)?, duration);
    let u = dealt.gather(runs.iter().map(|run| run.u.as_slice()), alone.u.clone())?;
    dealt.write(args.vtu.as_deref(), runs.iter().map(|run| run.u.as_slice()))?;
    let run = runs.into_iter().next().unwrap_or_else(|| alone.clone());
    Ok(Waves {
        title: format!(
            "waves: {} nodes, {} elements, {} parts; {} steps of {:.3e}",
            mesh.node_count(),
            mesh.elements().len(),
            dealt.part_count(),
            duration.steps,
            run.dt
        ),
        agreement: Agreement::of(&u, &alone.u, 1e-14 * (duration.steps + 10) as f64),
        u,
        dt: run.dt,
        energies: run.energies,
        account,
    })
}

fn body(mesh: &Simplices, start: Scalar<'_>) -> Result<Body, Failure> {
    let mut stiffness = Csr::pattern(mesh.node_count(), 1, mesh.elements());
    let mut mass = vec![0.0; mesh.node_count()];
    let mut stiffest = 0.0f64;
    for corners in mesh.elements() {
        let element = Element::of(mesh, corners)?;
        let share = element.volume / corners.len() as f64;
        let mut trace = 0.0;
        for (a, &node) in corners.iter().enumerate() {
            mass[node as usize] += share;
            trace += element.stiffness(a, a);
            for (b, &other) in corners.iter().enumerate() {
                stiffness.add(node as usize, other as usize, element.stiffness(a, b));
            }
        }
        stiffest = stiffest.max(trace / share);
    }
    let start = mesh.points.iter().map(|&point| start(point)).collect();
    Ok(Body { stiffness, mass, start, stiffest })
}

/// The part of one cell.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    dealt: &Assembled,
    body: &Body,
    duration: Duration,
) -> Result<Run, CellError> {
    let size = body.mass.len();
    let mut mass = body.mass.clone();
    dealt.sum_shared(cell, &mut mass)?;
    let own = dealt.owned(cell.id());
    let copies = dealt.plan.multiplicity(cell.id());
    let (shared, inner): (Vec<usize>, Vec<usize>) = (0..size).partition(|&node| copies[node] > 1);
    let mut stiffest = [body.stiffest];
    cell.allreduce(&dealt.trees, Op::Max, &mut stiffest)?;
    let dt = step(stiffest[0]);

    let mut u = body.start.clone();
    let mut last = u.clone();
    let mut force = vec![0.0; size];
    let mut energies = Vec::new();
    for done in 1..=duration.steps {
        let flops = body.stiffness.rows_times(&shared, &u, &mut force);
        meter.compute(cell, flops)?;
        let pending = match dealt.by {
            By::Phases if !duration.in_turn => {
                Some(cell.start_shared(&dealt.plan, Op::Add, &force)?)
            }
            _ => None,
        };
        let flops = body.stiffness.rows_times(&inner, &u, &mut force);
        meter.compute(cell, flops + 5 * size)?;
        meter.exchange(cell, |cell| match pending {
            Some(pending) => cell.wait(&dealt.plan, pending, &mut force),
            None => dealt.sum_shared(cell, &mut force),
        })?;
        advance(&mut u, &mut last, &force, &mass, dt, done == 1);
        if done.is_multiple_of(duration.energy_every) {
            let of_node = |node: usize| energy((&u, &last), &force, &mass, dt, node);
            let nodes = (0..size).filter(|&node| own[node]);
            let mut sum = [nodes.map(of_node).sum::<f64>()];
            meter.collective(cell, |cell| cell.allreduce(&dealt.trees, Op::Add, &mut sum))?;
            energies.push((done, sum[0]));
        }
    }
    Ok(Run { u, dt, energies })
}

/// The whole body on one processor.
fn alone(body: &Body, duration: Duration) -> Run {
    let dt = step(body.stiffest);
    let mut u = body.start.clone();
    let mut last = u.clone();
    let mut force = vec![0.0; u.len()];
    let mut energies = Vec::new();
    for done in 1..=duration.steps {
        body.stiffness.times(&u, &mut force);
        advance(&mut u, &mut last, &force, &body.mass, dt, done == 1);
        if done.is_multiple_of(duration.energy_every) {
            let of_node = |node| energy((&u, &last), &force, &body.mass, dt, node);
            energies.push((done, (0..u.len()).map(of_node).sum()));
        }
    }
    Run { u, dt, energies }
}

/// Nine tenths of the longest stable step.
fn step(stiffest: f64) -> f64 {
    0.9 * 2.0 / stiffest.sqrt()
}

/// One step: `u` becomes the next displacement, `last` the present one. The first step starts at
/// rest.
fn advance(u: &mut [f64], last: &mut [f64], force: &[f64], mass: &[f64], dt: f64, first: bool) {
    for node in 0..u.len() {
        // A node without elements has no mass and does not move.
        let pull = if mass[node] == 0.0 { 0.0 } else { dt * dt * force[node] / mass[node] };
        let next = if first { u[node] - 0.5 * pull } else { 2.0 * u[node] - last[node] - pull };
        last[node] = u[node];
        u[node] = next;
    }
}

/// A node's share of the energy between two steps; `force` is `K` times the earlier one.
fn energy((u, last): (&[f64], &[f64]), force: &[f64], mass: &[f64], dt: f64, node: usize) -> f64 {
    let speed = (u[node] - last[node]) / dt;
    0.5 * mass[node] * speed * speed + 0.5 * u[node] * force[node]
}

impl Waves {
    /// How far the energy strays from the first one, as a fraction of it.
    pub fn drift(&self) -> f64 {
        let first = self.energies.first().map_or(1.0, |energy| energy.1);
        let strays = self.energies.iter().map(|energy| (energy.1 - first).abs() / first);
        strays.fold(0.0, f64::max)
    }
}

impl Report for Waves {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Waves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        for (step, energy) in &self.energies {
            writeln!(f, "step {step:5}: energy {energy:.12e}")?;
        }
        writeln!(f, "the energy strays by {:.1e} of the first", self.drift())?;
        writeln!(f, "root of the mean square of the displacement: {:.6e}", {
            (dot(&self.u, &self.u) / self.u.len().max(1) as f64).sqrt()
        })?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}
