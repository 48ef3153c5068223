//! Growth by active messages: S. Bae and S. Ranka, A Comparison of Different Message-Passing
//! Paradigms for the Parallelization of Two Irregular Applications.
//!
//! Figure 31 has the speed-ups of Wolff clusters by five schemes, Figure 32 those of Lee's maze
//! routing, and Figures 35 and 36 the packets and cycles of both. Ours: the applications
//! ([`crate::growth`]) grow, [`trace`] counts what each cell does in each cycle, and
//! [`price`](mod@price) gives the time by each scheme; the best of all widths of stripes is kept,
//! as in the paper.
//!
//! The paper does not say what its messages cost. Of every scheme one constant is calibrated, on
//! the speed-up of Wolff clusters on 16 processors with 256 x 256 sites; the other cells of Figure
//! 31 are a test, and Figure 32 has no constant of its own. Its grids are not available; ours are
//! stand-ins ([`MAZES`]). `docs/fidelity.md` lists what was chosen in sight of the figures.

pub mod price;
pub mod trace;

use conset_ir::convert::{to_f64, to_u32, to_u64, to_usize};

use super::SEED;
use super::beside::{Beside, Exhibit, PaperTable};
use crate::growth::lee::{Maze, Obstacles, manhattan, random_ends};
use crate::growth::random::Stream;
use crate::growth::wolff::{CRITICAL, Spins};
use crate::growth::{GrowthError, Stripes, grow};
use crate::{CompileError, parallel};
use price::{Application, Scheme, price};
use trace::Trace;

const SIDES: [u32; 3] = [256, 512, 1024];
/// Sequential times of Figure 31: milliseconds of a cluster as large as the lattice.
const WOLFF_ALONE: [f64; 3] = [2124.664, 8620.074, 35_314.967];
/// Speed-ups of Figure 31, by scheme ([`Scheme::ALL`]) and side.
const FIGURE_31: [(u32, [[f64; 3]; 5]); 2] = [
    (
        16,
        [
            [2.988, 4.261, 5.607],
            [5.004, 6.281, 7.568],
            [2.256, 3.512, 4.875],
            [6.270, 7.655, 8.659],
            [6.481, 7.978, 9.290],
        ],
    ),
    (
        32,
        [
            [3.398, 5.252, 7.388],
            [6.226, 8.414, 10.438],
            [2.635, 3.990, 5.880],
            [8.494, 10.806, 13.721],
            [8.680, 11.282, 14.680],
        ],
    ),
];
/// Packets to the left and to the right in a cycle, and cycles, of Figure 35, by side.
const FIGURE_35: [[[f64; 3]; 3]; 2] = [
    [[4.099, 3.748, 5.032], [4.099, 3.751, 5.035], [307.20, 573.25, 1326.00]],
    [[3.295, 3.710, 3.765], [3.295, 3.710, 3.766], [347.40, 581.75, 1286.22]],
];
/// Processors of Figures 32 and 36.
const LEE_CELLS: u32 = 32;
/// The grids of Figure 32: percent blocked, milliseconds of the sequential program, speed-ups by
/// scheme and side; and packets and cycles of Figure 36.
struct Mazes {
    percent: u32,
    alone: [f64; 3],
    speedups: [[f64; 3]; 5],
    counts: [[f64; 3]; 3],
}

const LEE: [Mazes; 2] = [
    Mazes {
        percent: 25,
        alone: [178.607, 753.025, 2532.771],
        speedups: [
            [2.610, 4.875, 8.624],
            [4.452, 7.358, 12.188],
            [1.377, 2.872, 5.350],
            [5.861, 8.641, 13.093],
            [5.940, 8.639, 13.699],
        ],
        counts: [[3.117, 3.330, 3.041], [3.117, 3.331, 3.042], [193.7, 331.5, 537.8]],
    },
    Mazes {
        percent: 50,
        alone: [131.068, 470.749, 2018.324],
        speedups: [
            [2.242, 3.978, 5.754],
            [4.198, 6.457, 8.611],
            [1.248, 2.368, 3.491],
            [5.720, 7.945, 10.371],
            [5.948, 8.403, 10.480],
        ],
        counts: [[2.421, 3.836, 3.637], [2.421, 3.836, 3.636], [184.7, 311.5, 706.7]],
    },
];

/// The stand-ins for the paper's grids, which it does not describe.
pub const MAZES: &str = "25 %: sites blocked one by one at random; 50 %: rectangles with sides of N/32 sites in the mean, \
                         as single sites would leave no long paths";

/// Speed-ups of the paper that differ by less than this fraction have no rank: in one column
/// AM-NC-O is 0.02 % before ST-NC-O, which the text calls the better one everywhere.
const TIE: f64 = 1e-3;

/// How many times as many mazes are made as are wanted, if some have no path.
const MAX_BATCHES: u64 = 4;

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Clusters before the first that is counted.
    pub warm_up: u64,
    /// Clusters that are counted on the largest lattice. On smaller ones, where they take less
    /// time, it is more, in inverse proportion to the side.
    pub clusters: u64,
    /// Mazes of each kind.
    pub mazes: u64,
}

impl Effort {
    /// At least as many clusters as the paper, and 40 mazes for its 10.
    pub const FULL: Self = Self { warm_up: 100, clusters: 100, mazes: 40 };
    /// For a first look.
    pub const QUICK: Self = Self { warm_up: 50, clusters: 25, mazes: 10 };
}

/// The figures with numbers, or one of them.
///
/// # Errors
/// A grid that cannot be made, which is a bug.
pub fn figures(number: Option<u8>, effort: Effort) -> Result<Vec<PaperTable>, CompileError> {
    let bug = |error: GrowthError| CompileError::bug("the growth", &error);
    let wanted = |figure: u8| number.is_none_or(|number| number == figure);
    let mut all = Vec::new();
    // The others are not needed for mazes, whose constants are those of the first.
    let count = if wanted(31) || wanted(35) { SIDES.len() } else { 1 };
    let numbers: Vec<usize> = (0..SIDES.len()).collect();
    let sides = parallel::try_map(&numbers[..count], |&side| wolff(side, effort)).map_err(bug)?;
    let constants = calibrated(&sides[0]);
    for (at, (cells, paper)) in FIGURE_31.iter().enumerate().filter(|_| count > 1) {
        let of_cells = |runs: &Vec<Runs>| {
            runs.iter().filter(|runs| runs.cells == *cells).cloned().collect::<Vec<_>>()
        };
        let results = Results { sides: sides.iter().map(of_cells).collect(), constants };
        if wanted(31) {
            let title = format!("speed-up of Wolff clusters on {cells} processors, by side");
            let mut table = results.speedups((31, title), paper);
            table.notes.push(tested(&table, usize::from(at == 0)));
            table.notes.extend((at == 0).then(|| constants_used(&constants)));
            all.push(table);
        }
        if wanted(35) {
            let title = format!("Wolff clusters on {cells} processors by active messages, by side");
            all.push(results.counts((35, title), &FIGURE_35[at], 2));
        }
    }
    for mazes in LEE.iter().filter(|_| wanted(32) || wanted(36)) {
        let sides = parallel::try_map(&numbers, |&side| lee(mazes, side, effort)).map_err(bug)?;
        let results = Results { sides, constants };
        let what =
            format!("Lee's maze routing on {LEE_CELLS} processors, {} % blocked", mazes.percent);
        if wanted(32) {
            let title = format!("speed-up of {what}, by side");
            let mut table = results.speedups((32, title), &mazes.speedups);
            table.notes.push(tested(&table, 0));
            table.notes.push(format!("The grids are stand-ins; {MAZES}."));
            all.push(table);
        }
        if wanted(36) {
            let title = format!("{what}, by active messages, by side");
            all.push(results.counts((36, title), &mazes.counts, 1));
        }
    }
    all.sort_by_key(|table| table.number);
    Ok(all)
}

/// A growth on a partition: microseconds alone and by each scheme without its constant, and cycles.
#[derive(Clone, Copy, Debug)]
struct Run {
    alone: f64,
    schemes: [f64; 5],
    cycles: f64,
}

/// The runs of an application on a partition.
#[derive(Clone, Debug)]
struct Runs {
    cells: u32,
    width: u32,
    runs: Vec<Run>,
    /// Packets of every cell, left and right, of all runs.
    packets: Vec<[u64; 2]>,
}

impl Runs {
    fn new(stripes: &Stripes) -> Self {
        let packets = vec![[0; 2]; to_usize(stripes.cells())];
        Self { cells: stripes.cells(), width: stripes.width(), runs: Vec::new(), packets }
    }

    fn add(&mut self, trace: &Trace, application: &Application, alone: f64) {
        let schemes = Scheme::ALL.map(|scheme| price(trace, application, scheme));
        let cycles = to_f64(to_u64(price::cycles(trace, application.delta)));
        self.runs.push(Run { alone, schemes, cycles });
        for (sum, packets) in self.packets.iter_mut().zip(trace.packets()) {
            sum[0] += packets[0];
            sum[1] += packets[1];
        }
    }

    fn sum(&self, of: impl Fn(&Run) -> f64) -> f64 {
        self.runs.iter().map(of).sum()
    }

    /// Total time alone by total time of a scheme.
    fn speedup(&self, scheme: usize, constants: &[f64; 5]) -> f64 {
        let time = |run: &Run| run.schemes[scheme] + constants[scheme] * run.cycles;
        self.sum(|run| run.alone) / self.sum(time)
    }

    /// The standard error of a speed-up in percent, as that of a ratio of means.
    fn spread(&self, scheme: usize, constants: &[f64; 5]) -> f64 {
        let ratio = self.speedup(scheme, constants);
        let time = |run: &Run| run.schemes[scheme] + constants[scheme] * run.cycles;
        let squares = self.sum(|run| (run.alone - ratio * time(run)).powi(2));
        100.0 * squares.sqrt() / self.sum(|run| run.alone)
    }
}

/// The stripes of a grid whose number is a multiple of the cells'.
fn partitions(side: u32, cells: u32) -> Result<Vec<Stripes>, GrowthError> {
    let widths = (0..).map(|log| 1_u32 << log).take_while(|width| width * cells <= side);
    widths.map(|width| Stripes::new(side, cells, width)).collect()
}

fn wolff_application(side: usize) -> Application {
    let n = f64::from(SIDES[side]);
    let delta = to_usize(SIDES[side] / 20);
    Application { site: 1e3 * WOLFF_ALONE[side] / (n * n), delta, global: false }
}

/// Grows clusters, and gives the traces of each on all partitions, and the number of its sites.
fn clusters(
    side: usize,
    partitions: &[Stripes],
    effort: Effort,
    mut each: impl FnMut(&[Trace], u32),
) -> Result<(), GrowthError> {
    let mut spins = Spins::alone(SIDES[side], CRITICAL, SEED)?;
    let count = effort.clusters * u64::from(SIDES[2] / SIDES[side]);
    for sweep in 1..=effort.warm_up + count {
        let Some(first) = spins.start(sweep) else { continue };
        let counted = sweep > effort.warm_up;
        let traced = if counted { partitions } else { &[] };
        let mut traces: Vec<Trace> = traced.iter().map(|&s| Trace::new::<Spins>(s)).collect();
        let mut sites = 0;
        grow(&mut spins, first, |front| {
            sites += to_u32(front.len());
            traces.iter_mut().for_each(|trace| trace.add(front));
            true
        });
        if counted {
            each(&traces, sites);
        }
    }
    Ok(())
}

/// The constant of each scheme with which the speed-up on the first cell of Figure 31 is the
/// paper's; at least 0.
fn calibrated(runs: &[Runs]) -> [f64; 5] {
    let (cells, paper) = &FIGURE_31[0];
    let runs: Vec<&Runs> = runs.iter().filter(|runs| runs.cells == *cells).collect();
    let mut constants = [0.0; 5];
    for (scheme, constant) in constants.iter_mut().enumerate() {
        // All partitions have the same cycles, so the constant does not change which one is best.
        let missing = runs.iter().map(|runs| {
            let time = runs.sum(|run| run.alone) / paper[scheme][0];
            (time - runs.sum(|run| run.schemes[scheme])) / runs.sum(|run| run.cycles)
        });
        *constant = missing.fold(0.0, f64::max);
    }
    constants
}

fn wolff(side: usize, effort: Effort) -> Result<Vec<Runs>, GrowthError> {
    let application = wolff_application(side);
    let mut stripes = Vec::new();
    for (cells, _) in &FIGURE_31 {
        stripes.extend(partitions(SIDES[side], *cells)?);
    }
    let mut runs: Vec<Runs> = stripes.iter().map(Runs::new).collect();
    clusters(side, &stripes, effort, |traces, sites| {
        let alone = application.site * f64::from(sites);
        let mut pairs: Vec<_> = runs.iter_mut().zip(traces).collect();
        parallel::map_mut(&mut pairs, |(runs, trace)| runs.add(trace, &application, alone));
    })?;
    Ok(runs)
}

/// A wave from a source to a destination: traces on all partitions, sites that the sequential
/// program expands, and cycles between reductions. None if there is no path.
fn wave(
    side: u32,
    mazes: &Mazes,
    partitions: &[Stripes],
    seed: u64,
) -> Result<Option<(Vec<Trace>, u32, u32)>, GrowthError> {
    let obstacles = match mazes.percent {
        50 => Obstacles::Rectangles { mean: side / 32 },
        _ => Obstacles::Sites,
    };
    let blocked = obstacles.blocked(side, mazes.percent, seed)?;
    let distances = 2 * side / 5..=3 * side / 5;
    let [source, destination] = random_ends(side, &blocked, distances, Stream::new(seed, 1))?;
    let delta = (manhattan(side, [source, destination]) / 5).max(1);
    let mut maze = Maze::new(Stripes::alone(side)?, 0, &blocked);
    let mut traces: Vec<Trace> = partitions.iter().map(|&s| Trace::new::<Maze>(s)).collect();
    let (mut alone, mut cycle, mut last) = (0, 0, None);
    if let Some(first) = maze.start(source) {
        grow(&mut maze, first, |front| {
            if last.is_none() && front.iter().any(|candidate| candidate.site == destination) {
                // The other cells learn at the next reduction that it is found.
                last = Some(u32::next_multiple_of(cycle, delta));
            }
            if last == Some(cycle) {
                return false;
            }
            if last.is_none() {
                alone += to_u32(front.len());
            }
            traces.iter_mut().for_each(|trace| trace.add(front));
            cycle += 1;
            true
        });
    }
    Ok(last.map(|_| (traces, alone, delta)))
}

fn lee(mazes: &Mazes, side: usize, effort: Effort) -> Result<Vec<Runs>, GrowthError> {
    let n = SIDES[side];
    let partitions = partitions(n, LEE_CELLS)?;
    // Mazes without a path between the two sites are left out, and others made for them.
    let (wanted, mut waves) = (to_usize(effort.mazes), Vec::new());
    for batch in 0..MAX_BATCHES {
        let first = SEED + batch * effort.mazes;
        let seeds: Vec<u64> = (first..first + effort.mazes).collect();
        let made = parallel::try_map(&seeds, |&seed| wave(n, mazes, &partitions, seed))?;
        waves.extend(made.into_iter().flatten());
        if waves.len() >= wanted {
            break;
        }
    }
    waves.truncate(wanted);
    let sites: f64 = waves.iter().map(|(_, alone, _)| f64::from(*alone)).sum();
    // The sequential program takes the paper's time for the mean of our mazes.
    let site = 1e3 * mazes.alone[side] * to_f64(to_u64(waves.len())) / sites;
    let mut runs: Vec<Runs> = partitions.iter().map(Runs::new).collect();
    for (traces, alone, delta) in &waves {
        let application = Application { site, delta: to_usize(*delta), global: true };
        for (runs, trace) in runs.iter_mut().zip(traces) {
            runs.add(trace, &application, site * f64::from(*alone));
        }
    }
    Ok(runs)
}

fn by_side(figure: (u8, String), heading: &str) -> PaperTable {
    let names = SIDES.map(|side| side.to_string());
    let columns: Vec<&str> =
        std::iter::once(heading).chain(names.iter().map(String::as_str)).collect();
    PaperTable::new((Exhibit::Figure, figure.0), figure.1, &columns)
}

/// The runs of an application by side and partition, and the constants of the schemes.
struct Results {
    sides: Vec<Vec<Runs>>,
    constants: [f64; 5],
}

impl Results {
    /// For each side the partition on which a scheme is the fastest.
    fn best(&self, scheme: usize) -> Vec<&Runs> {
        let speedup = |runs: &Runs| runs.speedup(scheme, &self.constants);
        let fastest = |runs: &'_ Vec<Runs>| {
            let speedups = runs.iter().map(speedup).enumerate();
            speedups.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
        };
        self.sides.iter().filter_map(|runs| runs.get(fastest(runs))).collect()
    }

    /// Speed-ups by scheme, of the best width of each.
    fn speedups(&self, figure: (u8, String), paper: &[[f64; 3]; 5]) -> PaperTable {
        let mut table = by_side(figure, "scheme");
        let (mut widths, mut most) = (Vec::new(), 0.0_f64);
        for (at, scheme) in Scheme::ALL.into_iter().enumerate() {
            let best = self.best(at);
            let cells = best
                .iter()
                .zip(paper[at])
                .map(|(runs, paper)| Beside::new(runs.speedup(at, &self.constants), Some(paper)));
            table.push(scheme.name(), cells.collect());
            let names: Vec<String> = best.iter().map(|runs| runs.width.to_string()).collect();
            widths.push(format!("{} {}", scheme.name(), names.join(", ")));
            let spreads = best.iter().map(|runs| runs.spread(at, &self.constants));
            most = spreads.fold(most, f64::max);
        }
        table.notes.push(format!("Best widths of stripes: {}.", widths.join("; ")));
        table.notes.push(format!("Standard error of our speed-ups: at most {most:.1} %."));
        table
    }

    /// Packets that a cell sends in a cycle, the most of all cells, and cycles; with the best width
    /// of active messages. `extra` packets in each direction end a cycle.
    fn counts(&self, figure: (u8, String), paper: &[[f64; 3]; 3], extra: u32) -> PaperTable {
        let mut table = by_side(figure, "counted");
        let active = Scheme::ALL.iter().position(|&scheme| scheme == Scheme::Am).unwrap_or(0);
        let best = self.best(active);
        let packets = |runs: &Runs, side: usize| {
            let most = runs.packets.iter().map(|packets| packets[side]).max().unwrap_or(0);
            to_f64(most) / runs.sum(|run| run.cycles) + f64::from(extra)
        };
        let cycles = |runs: &Runs| runs.sum(|run| run.cycles) / runs.sum(|_| 1.0);
        let row = |of: &dyn Fn(&Runs) -> f64, paper: &[f64; 3]| {
            let cells = best.iter().zip(paper);
            cells.map(|(runs, &paper)| Beside::new(of(runs), Some(paper))).collect()
        };
        table.push("packets to the left", row(&|runs| packets(runs, 0), &paper[0]));
        table.push("packets to the right", row(&|runs| packets(runs, 1), &paper[1]));
        table.push("cycles", row(&cycles, &paper[2]));
        table
    }
}

/// How far the cells of a table are from the paper's, without those that were calibrated (the first
/// columns), and whether the schemes rank as in the paper.
fn tested(table: &PaperTable, calibrated: usize) -> String {
    let errors: Vec<f64> = table
        .rows
        .iter()
        .flat_map(|row| row.cells.iter().skip(calibrated))
        .filter_map(|cell| cell.error_percent)
        .collect();
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let rms = (squares / to_f64(to_u64(errors.len().max(1)))).sqrt();
    let worst = errors.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    let columns = 0..table.columns.len() - 1;
    let same = |&column: &usize| {
        let cells: Vec<&Beside> =
            table.rows.iter().filter_map(|row| row.cells.get(column)).collect();
        let ordered = |a: &Beside, b: &Beside| {
            let (paper_a, paper_b) = (a.paper.unwrap_or(0.0), b.paper.unwrap_or(0.0));
            paper_a <= (1.0 + TIE) * paper_b || a.ours > b.ours
        };
        cells.iter().all(|a| cells.iter().all(|b| ordered(a, b)))
    };
    let (right, count) = (columns.clone().filter(same).count(), columns.len());
    let cells = if calibrated > 0 { "The cells that were not calibrated" } else { "All cells" };
    format!(
        "{cells}: rms error {rms:.1} %, worst {worst:+.1} %; schemes ranked as in the paper in {right} of {count} columns."
    )
}

fn constants_used(constants: &[f64; 5]) -> String {
    let one = |(scheme, constant): (Scheme, &f64)| format!("{} {constant:.1}", scheme.name());
    let all: Vec<String> = Scheme::ALL.into_iter().zip(constants).map(one).collect();
    format!(
        "Calibrated on 16 processors and side 256, us in a cycle: {}. Given: a packet {} us at each end, a check {} us.",
        all.join(", "),
        price::PACKET,
        price::CHECK
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Effort = Effort { warm_up: 10, clusters: 2, mazes: 2 };

    /// Each scheme has the paper's speed-up on the cell that its constant was calibrated on.
    #[test]
    fn the_calibrated_cells_are_the_papers() {
        let runs = wolff(0, LEAST).unwrap();
        let constants = calibrated(&runs);
        let runs: Vec<Runs> = runs.into_iter().filter(|runs| runs.cells == 16).collect();
        assert_eq!(runs.len(), 5);
        let results = Results { sides: vec![runs], constants };
        for (scheme, paper) in FIGURE_31[0].1.iter().enumerate() {
            // A constant of 0 is the least there is; then the scheme may be slower than the
            // paper's.
            let ours = results.best(scheme)[0].speedup(scheme, &constants);
            let exact = (ours / paper[0] - 1.0).abs() < 1e-6;
            assert!(exact || constants[scheme] == 0.0 && ours < paper[0], "{scheme} {ours}");
        }
        assert!(constants[0] > 100.0 && constants[2] > constants[0], "{constants:?}");
    }

    #[test]
    fn figures_of_mazes_have_packets_and_cycles() {
        let tables = figures(Some(36), LEAST).unwrap();
        assert_eq!(tables.len(), 2);
        let drawn = crate::reproduce::figures::curves(&tables);
        assert_eq!(
            drawn.iter().map(|f| &f.file[..]).collect::<Vec<_>>(),
            ["figure36.svg", "figure36-2.svg"]
        );
        for table in &tables {
            assert_eq!((table.number, table.rows.len()), (36, 3));
            let packets = table.rows[..2].iter().flat_map(|row| &row.cells);
            assert!(packets.clone().all(|cell| cell.ours > 1.0 && cell.ours < 30.0), "{table:?}");
            // A path from 0.4 to 0.6 of the side takes at least as many cycles.
            let cycles = &table.rows[2].cells;
            assert!(cycles.iter().zip(SIDES).all(|(cell, side)| cell.ours > 0.4 * f64::from(side)));
        }
    }

    #[test]
    fn ranks_are_compared_with_the_papers() {
        let mut table = by_side((31, String::new()), "scheme");
        let row = |ours: f64, paper: f64| vec![Beside::new(ours, Some(paper)); 3];
        table.push("a", row(1.0, 2.0));
        table.push("b", row(3.0, 3.0));
        table.push("c", row(2.999, 3.0001));
        assert!(tested(&table, 0).contains("3 of 3"), "{}", tested(&table, 0));
        table.push("d", row(2.0, 5.0));
        assert!(tested(&table, 0).contains("0 of 3"));
    }
}
