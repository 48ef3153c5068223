//! Shared parts of the binaries: arguments, the comparison with the sequential run, printing.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::Failure;
use crate::cg::Solution;
use crate::sparse::{max_difference, max_norm};
use crate::team::{Account, TeamArgs};

/// A mesh and into how many parts it is dealt.
#[derive(clap::Args, Clone, Debug)]
pub struct MeshArgs {
    /// A mesh file that conset reads, or generate:SPEC (generate:m11k, generate:plate:32x32,
    /// generate:tets:8x8x8).
    pub mesh: String,
    /// Number of parts [default: the file's own, or the machine's cells].
    #[arg(long, value_name = "N")]
    pub parts: Option<usize>,
    /// Write the solution as a VTU file, for ParaView; over MPI each process writes its own (u-c4.vtu
    /// has the cells from c4 on).
    #[arg(long, value_name = "FILE")]
    pub vtu: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it")]
    pub team: TeamArgs,
}

/// When conjugate gradients stop.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct StopArgs {
    /// Stop when the residual is this fraction of the first one.
    #[arg(long, value_name = "FRACTION", default_value_t = 1e-10)]
    pub tolerance: f64,
    /// Stop after so many iterations.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub iterations: usize,
}

impl From<StopArgs> for crate::cg::Stop {
    fn from(args: StopArgs) -> Self {
        Self { tolerance: args.tolerance, iterations: args.iterations }
    }
}

/// How far the cells' result is from the sequential run's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// The largest difference.
    pub difference: f64,
    /// The largest value.
    pub scale: f64,
    /// What rounding explains, as a fraction of the largest value.
    pub allowed: f64,
}

impl Agreement {
    /// Compares two vectors.
    pub fn of(cells: &[f64], alone: &[f64], allowed: f64) -> Self {
        let scale = max_norm(alone);
        Self { difference: max_difference(cells, alone), scale, allowed }
    }

    /// Whether rounding explains the difference. NaN never agrees.
    pub fn holds(&self) -> bool {
        self.difference <= self.allowed * self.scale
    }
}

impl Display for Agreement {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let verb = if self.holds() { "agrees" } else { "DOES NOT AGREE" };
        write!(
            f,
            "{verb} with the sequential run: max difference {:.2e}, largest value {:.2e}",
            self.difference, self.scale
        )
    }
}

/// What a solver has to tell.
pub trait Report: Display {
    /// How far the result is from the sequential run's.
    fn agreement(&self) -> Agreement;
    /// What the run took.
    fn account(&self) -> &Account;
}

/// How an iterative solver came to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The residual after each iteration on the cells, as a fraction of the first one.
    pub residuals: Vec<f64>,
    /// Iterations of the sequential run.
    pub alone: usize,
}

impl History {
    /// All cells have the same residuals; a process without cells tells those of the sequential
    /// run.
    pub fn of(cells: &[Solution], alone: &Solution) -> Self {
        let residuals = cells.first().unwrap_or(alone).residuals.clone();
        Self { residuals, alone: alone.residuals.len() }
    }
}

impl Display for History {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let every = self.residuals.len().div_ceil(8).max(1);
        for (done, residual) in self.residuals.iter().enumerate().skip(every - 1).step_by(every) {
            writeln!(f, "iteration {:5}: residual {residual:.2e} of the first", done + 1)?;
        }
        let (cells, alone) = (self.residuals.len(), self.alone);
        let last = self.residuals.last().copied().unwrap_or(0.0);
        write!(f, "{cells} iterations (alone {alone}), last residual {last:.2e} of the first")
    }
}

/// The result of an iterative solver, beside the sequential one.
#[derive(Clone, Debug)]
pub struct Solved {
    /// What was solved.
    pub title: String,
    /// The whole solution.
    pub x: Vec<f64>,
    /// How it went.
    pub history: History,
    /// The largest difference from the manufactured solution.
    pub error: f64,
    /// Against the sequential run.
    pub agreement: Agreement,
    /// What the run took.
    pub account: Account,
}

impl Report for Solved {
    fn agreement(&self) -> Agreement {
        self.agreement
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl Display for Solved {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(f, "{}", self.history)?;
        writeln!(f, "max error against the manufactured solution: {:.3e}", self.error)?;
        writeln!(f, "{}", self.account)?;
        write!(f, "{}", self.agreement)
    }
}

/// Prints a result, or what went wrong. Of an MPI job the first process speaks, and any whose
/// own cells' result is wrong. Exit codes: 0 done, 1 wrong result, 2 no result.
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "the end of a binary")]
pub fn finish<R: Report>(result: Result<R, Failure>) -> ExitCode {
    match result {
        Ok(report) => {
            let right = report.agreement().holds();
            if report.account().speaks || !right {
                println!("{report}");
            }
            ExitCode::from(u8::from(!right))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
