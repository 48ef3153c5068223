//! The solvers on small meshes: the error falls as it should, the cells' result is the sequential
//! one to rounding, and all transports give the same bits.
//!
//! Where meshes made by others are, and what becomes of tests without them, says
//! `fixtures/shared_meshes.rs`.

#[path = "../../fixtures/shared_meshes.rs"]
mod shared_meshes;

use conset_examples::cg::Stop;
use conset_examples::fft::Complex64;
use conset_examples::histogram::Size;
use conset_examples::mesh::{Simplices, load};
use conset_examples::report::{Agreement, MeshArgs, Report, Solved};
use conset_examples::team::{ByArg, TeamArgs, TransportArg};
use conset_examples::{bfs, elasticity, fft, gauss, histogram, laplacian, poisson, wave};
use conset_runtime::By;

const STOP: Stop = Stop { tolerance: 1e-11, iterations: 2_000 };

fn team(machine: &str, transport: TransportArg) -> TeamArgs {
    let workers = (transport == TransportArg::Threads).then_some(2);
    TeamArgs { machine: machine.to_owned(), transport, workers, ..TeamArgs::default() }
}

fn on(mesh: &str, machine: &str, transport: TransportArg) -> MeshArgs {
    MeshArgs { mesh: mesh.to_owned(), parts: None, vtu: None, team: team(machine, transport) }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Solves on the fabric and on threads, checks each and that they are the same.
fn both(solve: impl Fn(TransportArg) -> Solved) -> Solved {
    let (fabric, threads) = (solve(TransportArg::Fabric), solve(TransportArg::Threads));
    for solved in [&fabric, &threads] {
        assert!(solved.agreement.holds(), "{solved}");
        let last = solved.history.residuals.last().copied().unwrap_or(0.0);
        assert!(last <= STOP.tolerance, "{solved}");
    }
    assert_eq!(bits(&fabric.x), bits(&threads.x), "{fabric}\n{threads}");
    assert_eq!(bits(&fabric.history.residuals), bits(&threads.history.residuals));
    assert!(fabric.account.report.clocks > 0, "{fabric}");
    fabric
}

/// Meshes with nonblocking exchanges, plans and trees by steps give the bits of phases.
#[test]
fn steps_give_the_bits_of_phases() {
    let by = |by, transport| {
        let mesh = on("generate:plate:5x4", "cm5:8", transport);
        MeshArgs { team: TeamArgs { by, ..mesh.team.clone() }, ..mesh }
    };
    let duration = wave::Duration { steps: 12, energy_every: 4, in_turn: false };
    for transport in [TransportArg::Fabric, TransportArg::Threads] {
        let [phases, steps] = [ByArg::Phases, ByArg::Steps]
            .map(|way| poisson::solve(&by(way, transport), STOP, By::Phases).unwrap());
        assert_eq!(bits(&phases.x), bits(&steps.x), "{phases}\n{steps}");
        assert!(steps.agreement.holds(), "{steps}");
        let [phases, steps] = [ByArg::Phases, ByArg::Steps].map(|way| {
            let tets = MeshArgs { mesh: "generate:tets:3x3x3".to_owned(), ..by(way, transport) };
            wave::solve(&tets, duration, By::Phases, None).unwrap()
        });
        assert_eq!(bits(&phases.u), bits(&steps.u), "{transport:?}");
    }
}

/// [`both`], by phases and by messages: the same bits.
fn both_ways(solve: impl Fn(TransportArg, By) -> Solved) -> Solved {
    let [phases, messages] =
        [By::Phases, By::Messages].map(|by| both(|transport| solve(transport, by)));
    assert_eq!(bits(&phases.x), bits(&messages.x), "{phases}\n{messages}");
    phases
}

fn solve_poisson(mesh: &str, machine: &str) -> Solved {
    both_ways(|transport, by| poisson::solve(&on(mesh, machine, transport), STOP, by).unwrap())
}

fn solve_elasticity(mesh: &str, machine: &str) -> Solved {
    both_ways(|transport, by| elasticity::solve(&on(mesh, machine, transport), STOP, by).unwrap())
}

/// A file of the shared meshes, if they are here.
fn shared(name: &str) -> Option<String> {
    shared_meshes::find(name)?.to_str().map(str::to_owned)
}

#[test]
fn poisson_converges_with_the_square_of_the_element_size() {
    for (coarse, fine) in [("plate:12x12", "plate:24x24"), ("tets:4x4x4", "tets:8x8x8")] {
        let error = |mesh: &str| solve_poisson(&format!("generate:{mesh}"), "iwarp:2x2").error;
        let (coarse, fine) = (error(coarse), error(fine));
        assert!(fine * 3.0 < coarse && fine * 5.0 > coarse, "{coarse} to {fine}");
    }
}

#[test]
fn elasticity_converges_with_the_square_of_the_element_size() {
    for (coarse, fine) in [("plate:8x8", "plate:16x16"), ("tets:3x3x3", "tets:6x6x6")] {
        let error = |mesh: &str| solve_elasticity(&format!("generate:{mesh}"), "iwarp:2x2").error;
        let (coarse, fine) = (error(coarse), error(fine));
        assert!(fine * 3.0 < coarse && fine * 6.0 > coarse, "{coarse} to {fine}");
    }
}

#[test]
fn odd_machines_and_meshes() {
    // One cell; a ring of two; three dimensions; a mesh in two pieces; more cells than elements.
    for (mesh, machine) in [
        ("generate:plate:6x6", "mesh:1x1"),
        ("generate:plate:6x6", "ring:2"),
        ("generate:tets:3x3x3", "torus:2x2x2"),
        ("generate:two-plates:5x5", "iwarp:3x3"),
        ("generate:plate:2x2", "iwarp:4x4"),
    ] {
        solve_poisson(mesh, machine);
    }
}

/// The numbers of all arrays of a name in a VTU file.
fn array(text: &str, name: &str) -> Vec<f64> {
    let begin = format!("{name} format=\"ascii\">");
    let arrays = text.split("<DataArray ").filter_map(|array| array.split_once(&begin));
    let words = arrays.flat_map(|(_, rest)| rest.split('<').next().unwrap().split_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

#[test]
fn solutions_are_written_for_paraview() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("vtu");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, mesh, parts) in
        [("plate", "generate:plate:4x3", 4), ("tets", "generate:tets:3x2x2", 3)]
    {
        let vtu = folder.join(format!("{name}.vtu"));
        let args = on(mesh, "iwarp:2x2", TransportArg::Fabric);
        let args = MeshArgs { vtu: Some(vtu.clone()), parts: Some(parts), ..args };
        let solved = elasticity::solve(&args, STOP, By::Phases).unwrap();
        let text = std::fs::read_to_string(vtu).unwrap();
        assert_eq!(text.matches("<Piece ").count(), parts);

        let source = load(mesh, 1).unwrap();
        let whole = Simplices::from_source(&source).unwrap();
        let block = whole.dimension;
        let points = array(&text, "Name=\"Points\" NumberOfComponents=\"3\"");
        let values = array(&text, &format!("Name=\"u\" NumberOfComponents=\"{block}\""));
        assert_eq!(points.len() / 3, values.len() / block);
        for (point, value) in points.chunks(3).zip(values.chunks(block)) {
            let node = whole.points.iter().position(|known| known[..] == *point).unwrap();
            assert_eq!(bits(value), bits(&solved.x[node * block..][..block]));
        }
        // conset reads it: all elements are there.
        let format = conset::mesh::Format::Vtu;
        let conset::mesh::Source::Mesh(back) =
            conset::mesh::read(format, "u.vtu", text.as_bytes()).unwrap()
        else {
            panic!("no mesh")
        };
        assert_eq!(back.elements().len(), whole.elements().len());
    }
}

#[test]
fn fewer_parts_than_cells() {
    both_ways(|transport, by| {
        let args = on("generate:plate:6x6", "iwarp:4x4", transport);
        poisson::solve(&MeshArgs { parts: Some(3), ..args }, STOP, by).unwrap()
    });
}

#[test]
fn waves_keep_their_energy_and_stand_where_they_should() {
    // cos(pi x) stands on a square: it swings with cos(pi t).
    let standing = |point: [f64; 3]| (std::f64::consts::PI * point[0]).cos();
    let duration = wave::Duration { steps: 60, energy_every: 5, in_turn: false };
    let run_for = |duration, mesh: &str, transport, by| {
        let args = on(mesh, "iwarp:2x2", transport);
        let waves = wave::solve(&args, duration, by, Some(&standing)).unwrap();
        assert!(waves.agreement.holds(), "{waves}");
        assert!(waves.drift() < 1e-12, "{waves}");
        waves
    };
    let run = |mesh: &str, transport, by| run_for(duration, mesh, transport, by);
    let mesh = "generate:plate:24x24";
    let fabric = run(mesh, TransportArg::Fabric, By::Phases);
    for (transport, by) in [
        (TransportArg::Threads, By::Phases),
        (TransportArg::Fabric, By::Messages),
        (TransportArg::Threads, By::Messages),
    ] {
        assert_eq!(bits(&fabric.u), bits(&run(mesh, transport, by).u), "{transport:?} {by:?}");
    }
    let in_turn = wave::Duration { in_turn: true, ..duration };
    let in_turn = run_for(in_turn, mesh, TransportArg::Fabric, By::Phases);
    assert_eq!(bits(&fabric.u), bits(&in_turn.u));
    let [beside, in_turn] = [&fabric, &in_turn].map(|waves| waves.account.report.clocks);
    assert!(beside < in_turn, "{beside} {in_turn}");
    let swing = (std::f64::consts::PI * fabric.dt * duration.steps as f64).cos();
    // The value at the corner where x is 0, the most there is.
    let found = fabric.u.iter().copied().fold(0.0f64, |a, b| a.max(b.abs()));
    assert!((found - swing.abs()).abs() < 0.01, "{found} for {swing}");
}

#[test]
fn the_spectrum_is_the_sum_of_its_definition() {
    for (size, machine) in [(12, "iwarp:2x2"), (9, "ring:5"), (3, "iwarp:2x2"), (4, "mesh:1x1")] {
        let solve = |transport, by| fft::solve(&team(machine, transport), size, by).unwrap();
        let fabric = solve(TransportArg::Fabric, By::Phases);
        for transport in [TransportArg::Fabric, TransportArg::Threads] {
            for by in [By::Phases, By::Messages] {
                let other = solve(transport, by);
                assert!(other.agreement.holds(), "{other}");
                assert_eq!(fabric.values, other.values, "{transport:?} {by:?}");
            }
            let steps = TeamArgs { by: ByArg::Steps, ..team(machine, transport) };
            let other = fft::solve(&steps, size, By::Phases).unwrap();
            assert_eq!(fabric.values, other.values, "{transport:?} by steps");
            assert_eq!(other.agreement.difference, 0.0, "{other}");
        }
        let input = fft::matrix(size, 1);
        let naive = |k: usize, l: usize| {
            let term = |(at, value): (usize, &Complex64)| {
                let (re, im) = (value.re, value.im);
                let turns = (at / size * k + at % size * l) as f64 / size as f64;
                let (sin, cos) = (-std::f64::consts::TAU * turns).sin_cos();
                (re * cos - im * sin, re * sin + im * cos)
            };
            input.iter().enumerate().map(term).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        let naive = (0..size * size).map(|at| naive(at / size, at % size));
        let naive: Vec<f64> = naive.flat_map(|(re, im)| [re, im]).collect();
        let found: Vec<f64> = fabric.values.iter().flat_map(|value| [value.re, value.im]).collect();
        let agreement = Agreement::of(&found, &naive, 1e-12);
        assert!(agreement.holds(), "{size} on {machine}: {agreement}");
    }
}

/// The transform of the CM-5 paper's Table 6: transposes by step plans on 32 of its processors.
#[test]
fn the_transform_by_steps_on_a_cm5_is_the_sequential_one() {
    for transport in [TransportArg::Fabric, TransportArg::Threads] {
        let steps = TeamArgs { by: ByArg::Steps, ..team("cm5:32", transport) };
        let spectrum = fft::solve(&steps, 64, By::Phases).unwrap();
        assert_eq!(spectrum.agreement.difference, 0.0, "{spectrum}");
    }
}

#[test]
fn transposes_by_messages_can_follow_each_other_at_once() {
    // Letters of the next transpose come to cells that are still sending those of this one.
    let team = team("iwarp:4x4", TransportArg::Fabric);
    let spectrum = fft::solve(&team, 64, By::Messages).unwrap();
    assert!(spectrum.account.alone.is_some_and(|calls| calls.clocks > 0), "{spectrum}");
}

#[test]
fn elimination_is_the_sequential_one_to_the_bit() {
    for (size, machine) in [(24, "iwarp:2x2"), (70, "ring:3"), (2, "iwarp:2x2"), (5, "mesh:1x1")] {
        let solve = |transport| gauss::solve(&team(machine, transport), size).unwrap();
        let (fabric, threads) = (solve(TransportArg::Fabric), solve(TransportArg::Threads));
        assert_eq!(bits(&fabric.x), bits(&threads.x));
        let steps = [TransportArg::Fabric, TransportArg::Threads].map(|transport| {
            let args = TeamArgs { by: ByArg::Steps, ..team(machine, transport) };
            gauss::solve(&args, size).unwrap()
        });
        for solved in [&fabric, &threads, &steps[0], &steps[1]] {
            assert_eq!(bits(&fabric.x), bits(&solved.x));
            assert_eq!(solved.agreement().difference, 0.0, "{solved}");
            assert!(solved.residual < 1e-13, "{solved}");
        }
    }
}

#[test]
fn a_singular_matrix_is_said_to_be_one_on_all_cells() {
    let mut system = gauss::Dense::noise(6, 3);
    system.rows[4] = system.rows[1].iter().map(|x| 2.0 * x).collect();
    for transport in [TransportArg::Fabric, TransportArg::Threads] {
        let error = gauss::solve_system(&team("iwarp:2x2", transport), &system).unwrap_err();
        assert!(error.to_string().contains("singular"), "{error}");
    }
}

#[test]
fn what_cannot_be_solved_on_is_refused() {
    let solve = |mesh: &str, machine: &str| {
        let solved = poisson::solve(&on(mesh, machine, TransportArg::Fabric), STOP, By::Phases);
        solved.map(|_| ()).unwrap_err().to_string()
    };
    assert!(solve("generate:bricks:2x2x2", "iwarp:2x2").contains("8 corners"));
    assert!(solve("no/such.msh", "iwarp:2x2").contains("no/such.msh"));
    assert!(solve("no-ending", "iwarp:2x2").contains("format"));
    assert!(solve("generate:plate:4x4", "no-machine").contains("no-machine"));
    let mesh = on("generate:plate:4x4", "iwarp:2x2", TransportArg::Fabric);
    let graph = laplacian::solve(&mesh, STOP, By::Phases);
    assert!(graph.unwrap_err().to_string().contains("not a graph"));
}

#[test]
fn the_spark98_mesh_in_its_own_64_parts() {
    let Some(mesh) = shared("spark98/sf10.64.pack") else { return };
    let solved = solve_poisson(&mesh, "iwarp");
    assert!(solved.title.contains("64 parts"), "{solved}");
    assert!(solved.error < 5e-3, "{solved}");
    let duration = wave::Duration { steps: 40, energy_every: 10, in_turn: false };
    let run = |transport| {
        wave::solve(&on(&mesh, "iwarp", transport), duration, By::Phases, None).unwrap()
    };
    let (fabric, threads) = (run(TransportArg::Fabric), run(TransportArg::Threads));
    assert!(fabric.agreement.holds() && fabric.drift() < 1e-12, "{fabric}");
    assert_eq!(bits(&fabric.u), bits(&threads.u));
}

#[test]
fn a_mesh_of_gmsh() {
    for name in ["derived/gmsh_plate.v41a.msh", "derived/gmsh_box.v41b.msh"] {
        let Some(mesh) = shared(name) else { return };
        assert!(solve_poisson(&mesh, "iwarp:4x4").error < 5e-3);
    }
}

#[test]
fn graphs() {
    for name in ["walshaw/crack.graph", "walshaw/fe_body.graph"] {
        let Some(graph) = shared(name) else { return };
        let solve = |transport, by| {
            laplacian::solve(&on(&graph, "iwarp:4x4", transport), STOP, by).unwrap()
        };
        let phases = both(|transport| solve(transport, By::Phases));
        let messages = both(|transport| solve(transport, By::Messages));
        assert!(phases.error < 1e-8, "{phases}");
        assert_eq!(bits(&phases.x), bits(&messages.x));
    }
}

/// Every update arrives, in one batch and in many, and counters have the same values everywhere.
#[test]
fn histograms_count_every_update() {
    for (machine, updates, batch) in
        [("ring:1", 50, 7), ("iwarp:4x4", 300, 64), ("cm5:6", 200, 999)]
    {
        let size = Size { table: 37, updates, batch };
        let [fabric, threads] = [TransportArg::Fabric, TransportArg::Threads]
            .map(|transport| histogram::update(&team(machine, transport), size).unwrap());
        assert!(fabric.agreement().holds(), "{fabric}");
        assert_eq!(fabric.tables, threads.tables);
        let counted: u64 = fabric.tables.iter().flatten().sum();
        assert_eq!(counted, updates * fabric.tables.len() as u64);
    }
}

/// Distances and parents are those of a sequential search, for connected graphs and others.
#[test]
fn searches_find_the_tree_of_a_sequential_search() {
    let mut unreached = 0;
    for (graph, machine) in [
        ("random:1:0", "ring:3"),
        ("random:300:1", "iwarp:4x4"),
        ("random:400:3", "cm5:6"),
        ("random:2000:5", "mesh:3x2"),
    ] {
        let [fabric, threads] = [TransportArg::Fabric, TransportArg::Threads]
            .map(|transport| bfs::search(&on(graph, machine, transport), 0).unwrap());
        assert!(fabric.agreement().holds() && threads.agreement().holds(), "{graph}: {fabric}");
        assert_eq!(fabric.found, threads.found);
        unreached += fabric.found.iter().filter(|found| found.0 == bfs::NONE).count();
    }
    assert!(unreached > 0, "all graphs were connected");
    assert!(bfs::search(&on("random:5:1", "ring:2", TransportArg::Fabric), 5).is_err());
}

#[test]
fn searches_of_graphs_from_files() {
    for name in ["4elt.graph", "copter2.graph"] {
        let Some(path) = shared_meshes::find(&format!("metis/{name}")) else { continue };
        let args = on(path.to_str().unwrap(), "iwarp:4x4", TransportArg::Threads);
        let found = bfs::search(&args, 11).unwrap();
        assert!(found.agreement().holds(), "{found}");
        assert!(found.found.iter().all(|found| found.0 != bfs::NONE), "the graph is connected");
    }
}
