//! Growth on cells: the clusters and paths of the sequential run, by every scheme, number of cells,
//! width of stripes and transport.

use conset_examples::growth::SchemeArg;
use conset_examples::lee::{self, LeeArgs};
use conset_examples::report::Report;
use conset_examples::team::{TeamArgs, TransportArg};
use conset_examples::wolff::{self, WolffArgs};

const SCHEMES: [SchemeArg; 4] = [SchemeArg::Am, SchemeArg::Amp, SchemeArg::Asr, SchemeArg::Ssr];
const TRANSPORTS: [TransportArg; 2] = [TransportArg::Fabric, TransportArg::Threads];

fn team(machine: &str, transport: TransportArg, seed: u64) -> TeamArgs {
    let workers = (transport == TransportArg::Threads).then_some(2);
    TeamArgs { machine: machine.to_owned(), transport, workers, seed, ..TeamArgs::default() }
}

fn wolff_args(side: u32, width: u32, scheme: SchemeArg) -> WolffArgs {
    let beta = conset::growth::wolff::CRITICAL;
    WolffArgs { side, beta, sweeps: 6, width, scheme, check: None }
}

fn lee_args(side: u32, blocked: u32, width: u32, scheme: SchemeArg) -> LeeArgs {
    LeeArgs { side, blocked, rectangles: None, routes: 3, width, scheme }
}

#[test]
fn clusters_are_those_of_the_sequential_run() {
    for scheme in SCHEMES {
        for (machine, side, width) in [
            ("mesh:1x1", 8, 3),
            ("ring:2", 8, 1),
            ("ring:3", 12, 2),
            ("iwarp:2x2", 16, 4),
            ("iwarp:4x4", 16, 1),
            ("torus:4x4x2", 32, 1),
        ] {
            for transport in TRANSPORTS {
                let args = wolff_args(side, width, scheme);
                let clusters = wolff::solve(&team(machine, transport, 1), &args).unwrap();
                assert!(clusters.agreement().holds(), "{clusters}");
                assert!(clusters.sizes.iter().all(|&size| size > 0), "{clusters}");
            }
        }
    }
    // Stripes that are no ring, and cells without a column.
    for scheme in [SchemeArg::Am, SchemeArg::Asr, SchemeArg::Ssr] {
        for (machine, side, width) in
            [("ring:3", 10, 2), ("iwarp:4x4", 10, 16), ("fat-tree:8", 9, 1)]
        {
            let args = wolff_args(side, width, scheme);
            let clusters = wolff::solve(&team(machine, TransportArg::Threads, 2), &args).unwrap();
            assert!(clusters.agreement().holds(), "{clusters}");
        }
    }
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    let refused = |args: &WolffArgs| {
        wolff::solve(&team("ring:3", TransportArg::Fabric, 1), args).unwrap_err().to_string()
    };
    assert!(refused(&wolff_args(10, 2, SchemeArg::Amp)).contains("no multiple of 6"));
    assert!(refused(&wolff_args(1, 1, SchemeArg::Am)).contains("side 1"));
    assert!(refused(&wolff_args(8, 0, SchemeArg::Am)).contains("0 columns"));
    let beta = WolffArgs { beta: f64::NAN, ..wolff_args(8, 1, SchemeArg::Am) };
    assert!(refused(&beta).contains("--beta"));
    let walls =
        lee::solve(&team("ring:3", TransportArg::Fabric, 1), &lee_args(8, 95, 1, SchemeArg::Am));
    assert!(walls.unwrap_err().to_string().contains("95 %"));
}

/// Averages of the chain are within three standard errors of the exact values; and would not be of
/// others.
#[test]
fn the_chain_has_the_exact_averages() {
    for row in wolff::check(32, 4000, 1).unwrap() {
        assert!(row.holds(), "{row:?}");
        assert!(row.error > 0.0 && row.error < 0.01, "{row:?}");
        let wrong = wolff::Checked { exact: row.exact + 0.02, ..row };
        assert!(!wrong.holds(), "{wrong:?}");
    }
}

fn routes_on(seeds: std::ops::Range<u64>) -> [usize; 2] {
    let mut found = [0; 2];
    for seed in seeds {
        let pick = |from: &[u32], step: u64| from[(seed / step) as usize % from.len()];
        let (side, blocked) = (pick(&[6, 12, 16, 24], 1), pick(&[0, 20, 35, 45, 55], 2));
        let (machine, width) = [("ring:3", 2), ("iwarp:2x2", 1), ("ring:2", 3)][seed as usize % 3];
        let scheme = SCHEMES[seed as usize / 3 % 4];
        let transport = TRANSPORTS[seed as usize / 5 % 2];
        let mut args = lee_args(side, blocked, width, scheme);
        args.rectangles = seed.is_multiple_of(3).then_some(2);
        // A multiple of cells times width of all three machines.
        if scheme == SchemeArg::Amp && side % 12 != 0 {
            args.side = 24;
        }
        let routes = lee::solve(&team(machine, transport, seed), &args).unwrap();
        assert!(routes.agreement().holds(), "seed {seed}: {routes}");
        assert_eq!(routes.distances.len(), 3);
        for distance in &routes.distances {
            found[usize::from(distance.is_some())] += 1;
        }
    }
    found
}

/// Every path is a shortest one, the same on every cell; unreachable destinations are told.
#[test]
fn paths_are_those_of_the_sequential_run() {
    let found = routes_on(0..60);
    assert!(found.iter().all(|&count| count > 5), "{found:?}");
}

#[test]
#[ignore = "3000 routes in 1000 mazes; 2 s in a release build, a minute or more without"]
fn paths_in_a_thousand_mazes() {
    let found = routes_on(0..1000);
    assert!(found.iter().all(|&count| count > 100), "{found:?}");
}

/// All schemes and transports give the same paths.
#[test]
fn paths_do_not_depend_on_scheme_and_transport() {
    let route = |scheme, transport, machine: &str, width| {
        let args = lee_args(24, 30, width, scheme);
        let routes = lee::solve(&team(machine, transport, 7), &args).unwrap();
        assert!(routes.agreement().holds(), "{routes}");
        routes.paths
    };
    let first = route(SchemeArg::Am, TransportArg::Fabric, "mesh:1x1", 24);
    assert!(first.iter().any(|path| path.len() > 8), "{first:?}");
    for scheme in SCHEMES {
        for transport in TRANSPORTS {
            for (machine, width) in [("iwarp:2x2", 1), ("ring:3", 4), ("iwarp:4x4", 1)] {
                if scheme == SchemeArg::Amp && machine == "iwarp:4x4" {
                    continue;
                }
                assert_eq!(route(scheme, transport, machine, width), first, "{scheme:?} {machine}");
            }
        }
    }
}
