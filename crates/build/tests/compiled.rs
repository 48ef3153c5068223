//! From a matrix to words delivered, and from a build script to a crate that runs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use conset::{Algorithm, Compiler};
use conset_build::{Build, BuildError};
use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use conset_runtime::{Collectives, Layout, Op, Plan, ThreadOptions, Transport, World, tree_sets};

/// The five-point Laplacian on a square of `n` by `n`, by rows.
fn laplacian(n: usize) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
    let (mut ptr, mut idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n * n {
        let (x, y) = (row % n, row / n);
        let columns = [
            (y > 0).then(|| row - n),
            (x > 0).then(|| row - 1),
            Some(row),
            (x + 1 < n).then(|| row + 1),
            (y + 1 < n).then(|| row + n),
        ];
        for column in columns.into_iter().flatten() {
            idx.push(column);
            values.push(if column == row { 4.0 } else { -1.0 });
        }
        ptr.push(idx.len());
    }
    (ptr, idx, values)
}

/// `y = A x` with each row's entries added from left to right.
fn product(
    ptr: &[usize],
    idx: &[impl Copy + TryInto<usize>],
    values: &[f64],
    x: &[f64],
) -> Vec<f64> {
    let at = |i: usize| idx[i].try_into().ok().unwrap();
    let row = |span: &[usize]| (span[0]..span[1]).map(|i| values[i] * x[at(i)]).sum();
    ptr.windows(2).map(row).collect()
}

#[test]
fn a_matrix_is_dealt_compiled_and_multiplied() {
    let (ptr, idx, values) = laplacian(24);
    let whole = Machine::from_spec("iwarp:4x4").unwrap();
    let (topology, parameters) = (whole.topology().clone(), whole.parameters().clone());
    let holes = Machine::new("holes", topology, parameters, vec![CellId(0), CellId(6)], vec![]);
    for machine in [whole, holes.unwrap(), Machine::from_spec("ring:1").unwrap()] {
        let machine = Arc::new(machine);
        let cells: Vec<CellId> = machine.endpoints().collect();
        let owner = |row: usize| cells[row % 24 / 6 * 4 + row / 24 / 6].0;
        let owner: Vec<u32> = (0..24 * 24)
            .map(|row| if cells.len() < 16 { cells[row / 7 % cells.len()].0 } else { owner(row) })
            .collect();
        let csr = Layout::from_csr(&ptr, &idx, &owner, machine.agent_count()).unwrap();
        let trees = tree_sets(&machine, 1).unwrap();
        let halos =
            [csr.forward.set("forward", 1).unwrap(), csr.backward.set("backward", 1).unwrap()];
        for algorithm in [Algorithm::Paper, Algorithm::Auto] {
            let sets = halos.iter().chain(&trees).cloned();
            let compiled = Compiler::new(&machine).algorithm(algorithm).compile_sets(sets).unwrap();
            let image = compiled.image().clone();
            let forward = Plan::new(&image, "forward", csr.forward.clone(), 1).unwrap();
            let backward = Plan::new(&image, "backward", csr.backward.clone(), 1).unwrap();
            let trees = Collectives::new(&image).unwrap();
            let global: Vec<f64> = (0..24 * 24).map(|i| (i as f64).sqrt()).collect();
            let expected = product(&ptr, &idx, &values, &global);
            let threads = |n| Transport::Threads(ThreadOptions::workers(n));
            let mut norms = Vec::new();
            for transport in [Transport::Fabric, threads(1), threads(2)] {
                let world = World::new(image.clone()).on(transport);
                let (found, _) = world
                    .try_run(|cell| {
                        let part = &csr.parts[cell.id().index()];
                        let local = part.values(&ptr, &values);
                        let mut x = part.gather(&global);
                        x[part.owned()..].fill(f64::NAN);
                        cell.exchange_nodes(&forward, Op::Copy, &mut x)?;
                        let y = product(part.ptr(), part.idx(), &local, &x);
                        for (&id, &y) in part.ids().iter().zip(&y) {
                            assert_eq!(y.to_bits(), expected[id as usize].to_bits());
                        }
                        // Each ghost is one contribution to its owner's row.
                        let mut counts = vec![0u32; part.ids().len()];
                        counts[part.owned()..].fill(1);
                        cell.exchange_nodes(&backward, Op::Add, &mut counts)?;
                        let mut norm = [y.iter().map(|y| y * y).sum::<f64>()];
                        cell.allreduce(&trees, Op::Add, &mut norm)?;
                        Ok((norm[0], counts[..part.owned()].iter().sum::<u32>()))
                    })
                    .unwrap();
                let ghosts: usize =
                    csr.parts.iter().map(|part| part.ids().len() - part.owned()).sum();
                assert_eq!(found.iter().map(|found| found.1 as usize).sum::<usize>(), ghosts);
                norms.extend(found.iter().map(|found| found.0.to_bits()));
            }
            assert!(norms.windows(2).all(|pair| pair[0] == pair[1]), "the same bits everywhere");
        }
    }
}

#[test]
fn trees_survive_any_division_into_phases() {
    // Few channels, so that the trees take several phases.
    for (spec, channels) in [("mesh:5x3", 2), ("iwarp", 3), ("ring:13", 2), ("hypercube:4", 3)] {
        let machine = Machine::from_spec(spec).unwrap();
        let mut parameters = machine.parameters().clone();
        parameters.channels_per_cell = channels;
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        for algorithm in [Algorithm::Paper, Algorithm::Auto] {
            let compiled = Compiler::new(&machine)
                .algorithm(algorithm)
                .compile_sets(tree_sets(&machine, 2).unwrap())
                .unwrap();
            let image = compiled.image().clone();
            let trees = Collectives::new(&image).unwrap();
            let (found, _) = World::new(image)
                .try_run(|cell| {
                    let mut x = [u64::from(cell.id().0), 1, 2, 3, 1 << cell.id().0];
                    cell.allreduce(&trees, Op::Add, &mut x)?;
                    cell.barrier(&trees)?;
                    Ok(x)
                })
                .unwrap();
            let n = found.len() as u64;
            let bits = if n == 64 { u64::MAX } else { (1 << n) - 1 };
            assert!(found.iter().all(|x| *x == [n * (n - 1) / 2, n, 2 * n, 3 * n, bits]), "{spec}");
        }
    }
}

#[test]
fn one_set_both_ways_saves_a_switch() {
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let [reduce, broadcast, allreduce] = tree_sets(&machine, 1).unwrap();
    let run = |sets: Vec<ConnectionSet>| {
        let compiled = Compiler::new(&machine).compile_sets(sets).unwrap();
        let image = compiled.image().clone();
        let trees = Collectives::new(&image).unwrap();
        let program = |cell: &mut conset_runtime::Cell<'_>| {
            let mut x = [1.0f64];
            cell.allreduce(&trees, Op::Add, &mut x)?;
            Ok(x[0])
        };
        let (found, report) = World::new(image).try_run(program).unwrap();
        assert_eq!(found, [64.0; 64]);
        (report.switches, report.clocks)
    };
    let two = run(vec![reduce.clone(), broadcast.clone()]);
    let one = run(vec![reduce, broadcast, allreduce]);
    assert!(one.0 < two.0 && one.1 < two.1, "{one:?} {two:?}");
}

fn sets() -> [ConnectionSet; 2] {
    let named =
        Connection { name: Some("east".into()), ..Connection::new(CellId(0), CellId(1), 3) };
    let other = Connection::new(CellId(1), CellId(2), 3);
    let unnamed = Connection::new(CellId(3), CellId(0), 1);
    let set = |name, connections| ConnectionSet::new(name, connections).unwrap();
    [set("halo", vec![named, other]), set("type", vec![unnamed])]
}

/// A crate that includes what was built; it is compiled and run offline.
#[test]
fn what_is_built_can_be_included() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("included");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::copy(Path::new(root).join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let manifest = format!(
        "[package]\nname = \"included\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nconset-runtime = {{ path = {:?} }}\n\n[workspace]\n",
        format!("{root}/crates/runtime")
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let main = r#"
#![deny(warnings, missing_docs)]
//! Sends along a chain.

pub mod program {
    //! What was built.
    include!("generated/program.rs");
}

use conset_runtime::World;

fn main() {
    assert_eq!((program::halo::NAME, program::halo::SET, program::type_::SET), ("halo", 0, 1));
    let world = World::new(program::image());
    assert!(std::sync::Arc::ptr_eq(world.image(), &program::image()));
    let (words, _) = world
        .try_run(|cell| {
            cell.instantiate_phase((program::halo::SET, program::halo::phases::P0))?;
            match cell.id().0 {
                0 => cell.send_element(program::halo::connections::EAST, 7u32)?,
                1 => return cell.receive_element(program::halo::connections::EAST),
                _ => {}
            }
            Ok(0u32)
        })
        .unwrap();
    println!("{words:?} {}", program::type_::connections::C3_TO_C0);
}
"#;
    std::fs::write(folder.join("src/main.rs"), main.trim_start()).unwrap();
    let generated = folder.join("src/generated");
    std::fs::create_dir_all(&generated).unwrap();
    let build = Build::new().machine("ring:4").sets(sets()).out_dir(&generated).quiet();
    let built = build.compile().unwrap();
    assert_eq!(built.module, generated.join("program.rs"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--offline"])
        .current_dir(&folder)
        // What crates from generated code depend on is compiled once for the tests of all crates.
        .env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/generated"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "[0, 7, 0, 0] x0\n");
}

#[test]
fn builds_repeat_and_leave_what_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("m.toml");
    let text = conset_ir::machine_file::write(&Machine::from_spec("mesh:4x4").unwrap());
    std::fs::write(&machine, text).unwrap();
    let graph = folder.path().join("path.graph");
    std::fs::write(&graph, "6 5\n2\n1 3\n2 4\n3 5\n4 6\n5\n").unwrap();
    let build = Build::new()
        .machine(machine.display().to_string())
        .input(&graph)
        .sets(sets().into_iter().skip(1))
        .parts(3)
        .name("path")
        .out_dir(folder.path())
        .quiet();
    let built = build.compile().unwrap();
    assert_eq!(built.read, [machine, graph]);
    assert_eq!(built.halos.len(), 1);
    assert_eq!(built.compiled.image().sets().len(), 2);
    let read = || (std::fs::read(&built.image).unwrap(), std::fs::read(&built.module).unwrap());
    let before = read();
    let touched = || std::fs::metadata(&built.module).unwrap().modified().unwrap();
    let first = touched();
    build.compile().unwrap();
    assert_eq!((read(), touched()), (before.clone(), first));
    std::fs::write(&built.image, "damaged").unwrap();
    build.compile().unwrap();
    assert_eq!(read(), before);
    // The layout of the parts, from the image and what the build knows of them.
    let halo = &built.halos[0];
    let ids: Vec<Vec<u64>> = (0..halo.halo.parts.len())
        .map(|part| halo.halo.parts.nodes_of(part).iter().map(|&node| u64::from(node)).collect())
        .collect();
    let mut placed = vec![Vec::new(); 16];
    for (part, cell) in halo.place.iter().enumerate() {
        placed[cell.index()] = ids[part].clone();
    }
    let layout = Layout::from_image(built.compiled.image(), "halo", 1, &placed).unwrap();
    assert!(Plan::new(built.compiled.image(), "halo", layout, 1).is_ok());
}

#[test]
fn builds_by_steps_write_an_image_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let build = Build::new().machine("cm5:8").input("pattern:all-to-all").words(3).quiet();
    let built = build.name("steps").out_dir(folder.path()).compile_steps().unwrap();
    let bytes = std::fs::read(&built.image).unwrap();
    let read = conset_ir::binary::parse("steps.csi", &bytes).unwrap();
    assert_eq!(read, (**built.compiled.image()).clone().into());
    assert!(std::fs::read_to_string(&built.module).unwrap().contains("56 connections in"));
    let (right, _) = World::new(built.compiled.image().clone())
        .try_run(|cell| {
            let words = |x: &conset_ir::ConnectionId| vec![u64::from(x.0); 3];
            let outgoing: Vec<_> = cell.connections_out(0)?.iter().map(words).collect();
            let expected: Vec<_> = cell.connections_in(0)?.iter().map(words).collect();
            let mut incoming = vec![vec![99; 3]; expected.len()];
            cell.exchange(0, &outgoing, &mut incoming)?;
            Ok(incoming == expected)
        })
        .unwrap();
    assert_eq!(right, [true; 8]);
}

#[test]
fn what_cannot_be_built_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let build = || Build::new().machine("ring:4").out_dir(folder.path()).quiet();
    let error = |build: Build| build.compile().unwrap_err().to_string();
    let missing = folder.path().join("none.graph");
    assert!(error(build().input(&missing)).starts_with(&missing.display().to_string()));
    assert!(error(build().machine("rong:4")).contains("rong"));
    assert!(error(build().sets(sets()).sets(sets())).contains("`halo` is already the name"));
    assert!(error(build().machine("ring:2").sets(sets())).contains("cannot be an end"));
    assert!(error(build().name("a/b")).contains("cannot name a module"));
    let schedule = folder.path().join("machine.csb");
    let machine = Arc::new(Machine::from_spec("ring:4").unwrap());
    let document = conset_ir::Document::Machine(machine.clone());
    std::fs::write(&schedule, conset_ir::binary::write(&document)).unwrap();
    assert!(error(build().input(&schedule)).contains("expected an input to compile"));
    assert!(matches!(Build::new().on(machine).compile(), Err(BuildError::NoFolder)));
    let written = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(written, 1, "only what the test itself wrote");
}
