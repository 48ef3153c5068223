//! Wolff clusters of the Ising model, on cells that do not know who will need what.
//!
//! Every sweep grows a cluster and flips it ([`conset::growth::wolff`]). With a random number for
//! each bond the cells grow the clusters of the sequential run, site by site, by every scheme,
//! number of cells and width of stripes; that is compared. The sequential chain is compared with
//! exact values ([`Checked`]).

use conset::growth::ising::{self, blocked};
use conset::growth::wolff::{CRITICAL, Spins};
use conset::growth::{Growth, Stripes};
use conset_runtime::{Cell, CellError};

use crate::growth::{Grown, Peers, SchemeArg};
use crate::report::{Agreement, Report};
use crate::team::{Account, Meter, Team, TeamArgs};
use crate::{Failure, failure};

/// The lattice and how it is divided.
#[derive(clap::Args, Clone, Debug)]
pub struct WolffArgs {
    /// Rows and columns.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub side: u32,
    /// Inverse temperature.
    #[arg(long, value_name = "BETA", default_value_t = CRITICAL)]
    pub beta: f64,
    /// Clusters that are grown.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub sweeps: u64,
    /// Columns of a stripe; stripes go to the cells by turns.
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub width: u32,
    /// What carries candidates to other cells.
    #[arg(long, value_enum, default_value_t)]
    pub scheme: SchemeArg,
    /// Compare averages over so many sweeps with exact values: the energy at the critical
    /// temperature, the magnetisation at BETA 0.5, clusters and magnetisation.
    #[arg(long, value_name = "SWEEPS", num_args = 0..=1, default_missing_value = "20000")]
    pub check: Option<u64>,
}

/// The clusters, beside those of the sequential run.
#[derive(Clone, Debug)]
pub struct Clusters {
    /// Sites of each cluster.
    pub sizes: Vec<u64>,
    /// Clusters and cells whose sites are not those of the sequential run, and cells whose spins
    /// are not.
    pub different: usize,
    /// Averages beside exact values, if they were asked for.
    pub checked: Vec<Checked>,
    /// What was grown.
    pub title: String,
    /// What the run took.
    pub account: Account,
}

/// An average with its standard error, and the exact value.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Of what.
    pub name: &'static str,
    /// The average.
    pub mean: f64,
    /// Its standard error, from blocks of the chain.
    pub error: f64,
    /// The exact value.
    pub exact: f64,
}

impl Checked {
    /// The distance from the exact value in standard errors.
    pub fn sigmas(&self) -> f64 {
        (self.mean - self.exact) / self.error.max(f64::MIN_POSITIVE)
    }

    /// Whether the exact value is within three standard errors.
    pub fn holds(&self) -> bool {
        self.sigmas().abs() <= 3.0
    }
}

/// Grows clusters on cells, and alone.
///
/// # Errors
/// Arguments that cannot be; a run that failed.
pub fn solve(team_args: &TeamArgs, args: &WolffArgs) -> Result<Clusters, Failure> {
    if !(args.beta > 0.0 && args.beta < 100.0) {
        return Err(failure(format!("--beta {}: expected above 0 and below 100", args.beta)));
    }
    let machine = team_args.machine()?;
    let cells: Vec<_> = machine.endpoints().collect();
    let stripes = Stripes::new(args.side, cells.len() as u32, args.width)?;
    let peers = Peers::new(args.scheme, cells, stripes)?;
    let team = Team::without_sets(team_args, &machine)?;
    let seed = team_args.seed;
    let (results, account) = team.run(|cell, meter| on_cell(cell, meter, &peers, args, seed))?;

    let (alone, spins) = alone(&stripes, args, seed)?;
    let mut different = 0;
    for (cell, (grown, spins_of_cell)) in team.own_cells().into_iter().zip(results) {
        let rank = peers.rank(cell);
        different += grown
            .iter()
            .zip(&alone)
            .filter(|(grown, alone)| **grown != alone[rank as usize])
            .count();
        let same =
            stripes.sites_of(rank).zip(&spins_of_cell).all(|(site, up)| spins.is_up(site) == *up);
        different += usize::from(!same);
    }
    let checked = args.check.map(|sweeps| check(args.side, sweeps, seed)).transpose()?;
    Ok(Clusters {
        sizes: alone.iter().map(|ranks| ranks.iter().map(|grown| grown.sites).sum()).collect(),
        different,
        checked: checked.unwrap_or_default(),
        title: format!(
            "{} Wolff clusters at beta {}, {side} x {side} sites in stripes of {} on {} cells, by {:?}",
            args.sweeps,
            args.beta,
            args.width,
            stripes.cells(),
            args.scheme,
            side = args.side
        ),
        account,
    })
}

/// What a cell has grown in each sweep, and its spins at the end.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    peers: &Peers,
    args: &WolffArgs,
    seed: u64,
) -> Result<(Vec<Grown>, Vec<bool>), CellError> {
    let mut spins = Spins::new(peers.stripes(), peers.rank(cell.id()), args.beta, seed);
    // An epoch ends by itself when nothing grows; the other schemes have to ask.
    let delta = match args.scheme {
        SchemeArg::Am => u32::MAX,
        _ => (args.side / 20).max(1),
    };
    let mut all = Vec::new();
    for sweep in 1..=args.sweeps {
        let first = spins.start(sweep);
        all.push(
            meter.exchange(cell, |cell| peers.grow(cell, &mut spins, first, delta, |_| false))?,
        );
    }
    Ok((all, spins.spins().to_vec()))
}

/// The same clusters on one processor, counted for the cells that have the sites; and the spins.
fn alone(
    stripes: &Stripes,
    args: &WolffArgs,
    seed: u64,
) -> Result<(Vec<Vec<Grown>>, Spins), Failure> {
    let mut spins = Spins::alone(args.side, args.beta, seed)?;
    let mut all = Vec::new();
    for sweep in 1..=args.sweeps {
        let mut ranks = vec![Grown::default(); stripes.cells() as usize];
        for_each_site(&mut spins, sweep, |site| ranks[stripes.owner(site) as usize].add(site));
        all.push(ranks);
    }
    Ok((all, spins))
}

/// Grows a cluster as in a textbook, with one queue.
fn for_each_site(spins: &mut Spins, sweep: u64, mut each: impl FnMut(u32)) {
    let mut queue: std::collections::VecDeque<_> = spins.start(sweep).into_iter().collect();
    while let Some(parent) = queue.pop_front() {
        each(parent.site);
        for candidate in spins.expand(parent).into_iter().flatten() {
            if spins.accept(candidate) {
                queue.push_back(candidate);
            }
        }
    }
}

/// Averages of sequential chains of so many sweeps, a tenth more before the first, beside exact
/// values.
///
/// # Errors
/// A side out of range.
pub fn check(side: u32, sweeps: u64, seed: u64) -> Result<Vec<Checked>, Failure> {
    const BLOCKS: usize = 40;
    let (mut energies, mut excess, mut magnetisations) = (Vec::new(), Vec::new(), Vec::new());
    for beta in [CRITICAL, 0.5] {
        let mut spins = Spins::alone(side, beta, seed)?;
        let sites = f64::from(side * side);
        for sweep in 1..=sweeps + sweeps / 10 {
            let (magnetisation, mut size) = (spins.magnetisation() as f64 / sites, 0_u64);
            for_each_site(&mut spins, sweep, |_| size += 1);
            if sweep <= sweeps / 10 {
                continue;
            }
            if beta == CRITICAL {
                energies.push(spins.energy() as f64 / sites);
                excess.push(size as f64 / sites - magnetisation * magnetisation);
            } else {
                magnetisations.push(magnetisation.abs());
            }
        }
    }
    let row = |name, numbers: &[f64], exact| {
        let (mean, error) = blocked(numbers, BLOCKS);
        Checked { name, mean, error, exact }
    };
    Ok(vec![
        row(
            "energy of a site at the critical temperature (Kaufman)",
            &energies,
            ising::energy(side, CRITICAL),
        ),
        row(
            "magnetisation at beta 0.5 (Yang, infinite lattice)",
            &magnetisations,
            ising::magnetisation(0.5),
        ),
        row("mean cluster / sites - mean square of the magnetisation", &excess, 0.0),
    ])
}

impl Report for Clusters {
    fn agreement(&self) -> Agreement {
        let wrong = self.different + self.checked.iter().filter(|row| !row.holds()).count();
        Agreement { difference: wrong as f64, scale: 1.0, allowed: 0.0 }
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        let mean = self.sizes.iter().sum::<u64>() as f64 / self.sizes.len().max(1) as f64;
        let most = self.sizes.iter().max().copied().unwrap_or(0);
        writeln!(f, "sites of a cluster: {mean:.1} in the mean, {most} at most")?;
        for row in &self.checked {
            let verdict = if row.holds() { "within" } else { "NOT WITHIN" };
            writeln!(
                f,
                "{}: {:.6} +- {:.6}, exact {:.6}: {verdict} 3 standard errors ({:+.2})",
                row.name,
                row.mean,
                row.error,
                row.exact,
                row.sigmas()
            )?;
        }
        writeln!(f, "{}", self.account)?;
        match self.different {
            0 => write!(f, "every cluster is that of the sequential run, site by site"),
            count => write!(f, "{count} clusters on a cell ARE NOT those of the sequential run"),
        }
    }
}
