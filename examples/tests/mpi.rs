//! The solvers over MPI: the same bits as on the emulated machine. Without a job around it, this
//! program starts itself as jobs of 3 and 6 ranks (`CONSET_MPIRUN` names another launcher than
//! `mpirun`): with 4 cells that is one rank with two cells, and ranks without any. The attached
//! solver, which has one cell on each rank, runs on 1, 2 and 4 ranks.
//!
//! Each rank runs each solver twice, over MPI and by itself on the emulated machine. Residuals,
//! energies and the unknowns of the elimination come from all cells, and every rank has them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test program of its own")]

use std::process::{Command, ExitCode};

use conset_examples::cg::Stop;
use conset_examples::growth::SchemeArg;
use conset_examples::report::{MeshArgs, Report};
use conset_examples::team::{ByArg, TeamArgs, TransportArg};
use conset_examples::{attached, elasticity, fft, gauss, lee, poisson, wave, wolff};
use conset_runtime::By;
use conset_runtime::mpi::{Attached, Comm};

/// The environment variable by which a rank knows that it is one, and what it runs.
const RANK: &str = "CONSET_EXAMPLES_RANK";
const ALL: &str = "solvers";
const ATTACHED: &str = "attached solver";
const STOP: Stop = Stop { tolerance: 1e-10, iterations: 500 };

fn main() -> ExitCode {
    if std::env::var_os(RANK).is_some() {
        as_rank();
        return ExitCode::SUCCESS;
    }
    let jobs = [(ALL, "3"), (ALL, "6"), (ATTACHED, "1"), (ATTACHED, "2"), (ATTACHED, "4")];
    let failed = jobs.into_iter().filter(|(solvers, ranks)| !job(solvers, ranks)).count();
    ExitCode::from(u8::from(failed > 0))
}

/// Whether a job of so many ranks ends well.
fn job(solvers: &str, ranks: &str) -> bool {
    let launcher = std::env::var("CONSET_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let output = Command::new("timeout")
        .args(["-k", "5", "100", &launcher, "-n", ranks])
        .arg(std::env::current_exe().expect("this program"))
        .env(RANK, solvers)
        // More ranks than cores, and perhaps as root in a container; other libraries ignore it.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()
        .expect("timeout and the MPI launcher can be run");
    let good = output.status.success();
    println!("test {solvers} on {ranks} ranks ... {}", if good { "ok" } else { "FAILED" });
    if !good {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    good
}

fn as_rank() {
    if std::env::var(RANK).is_ok_and(|solvers| solvers == ATTACHED) {
        return attached_as_alone();
    }
    [ByArg::Phases, ByArg::Steps, ByArg::Messages].into_iter().for_each(all_solvers);
    [SchemeArg::Am, SchemeArg::Amp, SchemeArg::Asr, SchemeArg::Ssr].into_iter().for_each(growths);
}

/// Clusters and paths by one scheme over MPI: each is compared with the sequential run's.
fn growths(scheme: SchemeArg) {
    let team = TeamArgs {
        machine: "iwarp:2x2".into(),
        transport: TransportArg::Mpi,
        ..TeamArgs::default()
    };
    let beta = conset::growth::wolff::CRITICAL;
    let args = wolff::WolffArgs { side: 16, beta, sweeps: 5, width: 2, scheme, check: None };
    let clusters = wolff::solve(&team, &args).unwrap();
    assert!(clusters.agreement().holds(), "{clusters}");
    let args =
        lee::LeeArgs { side: 24, blocked: 30, rectangles: None, routes: 3, width: 2, scheme };
    let routes = lee::solve(&team, &args).unwrap();
    assert!(routes.agreement().holds(), "{routes}");
}

/// The solver without a callback: together, and on every rank by itself. The latter is compared with
/// the equations.
fn attached_as_alone() {
    let attach = |comm: Comm| Attached::new(&comm).unwrap();
    const SIDE: usize = 20;
    let solve = |comm| attached::solve(&attach(comm), SIDE as u64, 1e-9).unwrap();
    let together = solve(Comm::world().unwrap());
    let alone = solve(Comm::alone().unwrap());
    for (at, x) in alone.x.iter().enumerate() {
        let near = [
            (at >= SIDE, at.wrapping_sub(SIDE)),
            (at % SIDE > 0, at.wrapping_sub(1)),
            (at % SIDE + 1 < SIDE, at + 1),
            (at + SIDE < SIDE * SIDE, at + SIDE),
        ];
        let near = near.iter().filter(|(inside, _)| *inside).map(|&(_, at)| alone.x[at]);
        assert!((4.0 * x - near.sum::<f64>() - 1.0).abs() < 1e-7, "row {at}");
    }
    assert!(together.residual <= 1e-9 && together.steps.abs_diff(alone.steps) <= 1);
    let largest = alone.x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let whole = &alone.x[together.rows.start as usize..together.rows.end as usize];
    assert_eq!(whole.len(), together.x.len());
    for (x, whole) in together.x.iter().zip(whole) {
        assert!((x - whole).abs() <= 1e-7 * largest, "{x} {whole}");
    }
}

/// All solvers by one way to exchange, over MPI and on the fabric.
fn all_solvers(way: ByArg) {
    let team = |transport| TeamArgs {
        machine: "iwarp:2x2".into(),
        transport,
        by: way,
        ..TeamArgs::default()
    };
    let on = |mesh: &str, transport| MeshArgs {
        mesh: format!("generate:{mesh}"),
        parts: None,
        vtu: None,
        team: team(transport),
    };
    let both = [TransportArg::Mpi, TransportArg::Fabric];
    let by = By::from(way);

    let duration = wave::Duration { steps: 20, energy_every: 1, in_turn: false };
    let energies = |waves: &wave::Waves| waves.energies.iter().map(|e| e.1).collect::<Vec<_>>();
    let [mpi, fabric] = both.map(|t| poisson::solve(&on("plate:8x8", t), STOP, by).unwrap());
    same(&mpi.history.residuals, &fabric.history.residuals, &mpi);

    let tets = |t| on("tets:3x3x3", t);
    let [mpi, fabric] = both.map(|t| elasticity::solve(&tets(t), STOP, by).unwrap());
    same(&mpi.history.residuals, &fabric.history.residuals, &mpi);

    let [mpi, fabric] = both.map(|t| wave::solve(&tets(t), duration, by, None).unwrap());
    same(&energies(&mpi), &energies(&fabric), &mpi);

    let [mpi, fabric] = both.map(|t| fft::solve(&team(t), 10, by).unwrap());
    assert_eq!(mpi.values, fabric.values);
    same(&[], &[], &mpi);

    let [mpi, fabric] = both.map(|t| gauss::solve(&team(t), 20).unwrap());
    same(&mpi.x, &fabric.x, &mpi);
}

fn same(mpi: &[f64], fabric: &[f64], report: &impl Report) {
    assert!(report.agreement().holds(), "{report}");
    // A rank without cells has what the sequential run gave.
    if report.account().spent.is_empty() {
        return;
    }
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(mpi), bits(fabric), "{report}");
}
