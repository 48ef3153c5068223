//! Emitted crates are compiled and run, and must build the image they were generated from.
//!
//! The crates are in a subfolder of the target folder, which has its own target folder, so only the
//! first run builds their dependencies. Cargo runs offline and with the lock file of this workspace.

mod common;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use common::{compiled, machine};
use conset_codegen::rust::Runtime;
use conset_codegen::{CrateOptions, EmitError, c, emit, emit_with, image};
use conset_ir::document::Document;
use conset_ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Image, Machine, NodeLists, Parameters, Piece,
    SetImage, StepMessages, Steps, Topology, binary,
};

/// All-to-all on the 8x8 torus: some thirty phases of 64 cells.
fn large() -> Image {
    let machine = machine("iwarp", |_| {});
    let ends = (0..64u32).flat_map(|a| (0..64).filter(move |&b| b != a).map(move |b| (a, b)));
    let connections = ends.map(|(a, b)| Connection::new(CellId(a), CellId(b), 1 + a * b)).collect();
    let set = ConnectionSet::new("all-to-all", connections).unwrap();
    image(&machine, &[compiled(&machine, set, 1 << 20)]).unwrap()
}

/// Everything that an image can hold: names that collide or are keywords, order, nodes, parts,
/// requirements, a cell that sends to itself, an empty set, dead cells and links, a machine
/// that is a graph and has a name that needs escapes.
fn odd() -> Image {
    let links = (0..5u32).flat_map(|a| [(a, (a + 1) % 5), ((a + 1) % 5, a), (a, 5), (5, a)]);
    let topology = Topology::Graph { cells: 5, switches: 1, links: links.collect() };
    let parameters =
        Parameters { channels_per_cell: 3, stream_setup: 3, ..Parameters::iwarp_fem() };
    let dead_links = vec![(CellId(0), CellId(1))];
    let name = "a \"machine\" \\ of `ours` ü";
    let machine = Machine::new(name, topology, parameters, vec![CellId(3)], dead_links).unwrap();
    let machine = Arc::new(machine);

    let named = |source, target, words, name: &str| Connection {
        name: Some(name.into()),
        ..Connection::new(CellId(source), CellId(target), words)
    };
    let contract = Connection {
        min_bandwidth: Some(1),
        max_latency: Some(100_000),
        ..Connection::new(CellId(0), CellId(2), 3)
    };
    let connections = vec![
        named(0, 1, 7, "east.1"),
        named(0, 1, 2, "EAST-1"),
        named(1, 1, 4, "--"),
        Connection::new(CellId(0), CellId(1), 1),
        named(2, 4, 5, "c0_to_c1"),
        contract,
    ];
    let lists: Vec<Vec<u32>> = connections.iter().map(|c| (10..10 + c.words).collect()).collect();
    let nodes = NodeLists::from_lists(lists.iter().map(Vec::as_slice));
    let order = vec![(ConnectionId(0), ConnectionId(1)), (ConnectionId(0), ConnectionId(4))];
    let set = ConnectionSet::new("match", connections.clone()).unwrap();
    let set = set.with_order(order).unwrap().with_nodes(nodes).unwrap();
    let lib = ConnectionSet::new("Lib", connections[..3].to_vec()).unwrap();
    let none = ConnectionSet::new("none", vec![]).unwrap();
    let sets = [
        // Ordered connections are not split; the others are.
        compiled(&machine, set, 1 << 20),
        compiled(&machine, lib, 3),
        compiled(&machine, none, 1),
    ];
    image(&machine, &sets).unwrap()
}

/// A step plan in which a cell passes words on, part of them in a second message.
fn stepped() -> Image {
    let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
    let connections =
        vec![Connection::new(CellId(0), CellId(2), 5), Connection::new(CellId(1), CellId(0), 3)];
    let set = Arc::new(ConnectionSet::new("relay", connections).unwrap());
    let piece = |connection, first_word, words| Piece {
        connection: ConnectionId(connection),
        first_word,
        words,
    };
    let mut messages = StepMessages::new();
    messages.push(CellId(0), CellId(1), &[piece(0, 0, 2)]).unwrap();
    messages.push(CellId(0), CellId(1), &[piece(0, 2, 3)]).unwrap();
    messages.push(CellId(1), CellId(0), &[piece(1, 0, 3)]).unwrap();
    messages.end_step().unwrap();
    messages.push(CellId(1), CellId(2), &[piece(0, 0, 5)]).unwrap();
    messages.end_step().unwrap();
    let steps = conset_verify::steps(Steps::new(machine.clone(), set, messages).unwrap()).unwrap();
    Image::new(machine, vec![SetImage::of_steps(steps.into_inner())]).unwrap()
}

fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

const DIGEST: &str = "\
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
";

/// Writes a crate with a program that prints the image it builds and the values of some names.
fn write_crate(folder: &Path, name: &str, image: &Image, uses: &str) {
    let runtime = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime").to_owned();
    let options = CrateOptions::new(name).runtime(Runtime::Path(runtime));
    let sources = folder.join(name).join("src");
    if sources.exists() {
        std::fs::remove_dir_all(&sources).unwrap();
    }
    std::fs::create_dir_all(&sources).unwrap();
    for (file, mut text) in emit_with(image, &options).unwrap() {
        if file == "src/lib.rs" {
            text.insert_str(0, "#![deny(warnings, missing_docs)]\n");
        }
        std::fs::write(folder.join(name).join(file), text).unwrap();
    }
    let library = name.replace('-', "_");
    let main = format!(
        "{DIGEST}\nfn main() {{\n    println!(\"{{}}\", digest(&format!(\"{{:?}}\", {library}::image())));\n{uses}}}\n"
    );
    std::fs::write(sources.join("main.rs"), main).unwrap();
}

/// Builds and runs a crate of the workspace in `folder`, and returns its output.
fn run(folder: &Path, name: &str) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--offline", "--package", name])
        .current_dir(folder)
        // What crates from generated code depend on is compiled once for the tests of all crates.
        .env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/generated"))
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn emitted_crates_rebuild_their_images() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emitted");
    std::fs::create_dir_all(&folder).unwrap();
    let members = "[\"large\", \"odd\", \"nothing\", \"stepped\"]";
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = {members}\n");
    std::fs::write(folder.join("Cargo.toml"), workspace).unwrap();
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    std::fs::copy(lock, folder.join("Cargo.lock")).unwrap();

    let nothing = image(&machine("ring:1", |_| {}), &[]).unwrap();
    let (large, odd, stepped) = (large(), odd(), stepped());
    let mut uses = String::new();
    for name in [
        "match_::connections::EAST_1",
        "match_::connections::EAST_1_2",
        "match_::connections::N__",
        "match_::connections::C0_TO_C1_2",
        "match_::connections::C0_TO_C1",
        "match_::connections::C0_TO_C2",
        "match_::phases::P0",
        "lib_::phases::P1",
    ] {
        writeln!(uses, "    println!(\"{{}}\", odd::{name});").unwrap();
    }
    write_crate(&folder, "large", &large, "");
    write_crate(&folder, "odd", &odd, &uses);
    write_crate(&folder, "nothing", &nothing, "");
    // The emitted program runs its plan: c1 passes on what c0 sends to c2.
    let program = "
    let world = conset_runtime::World::new(stepped::image());
    let program = |cell: &mut conset_runtime::Cell<'_>| {
        let words = |x: &conset_runtime::ir::ConnectionId| vec![u64::from(x.0) + 7; [5, 3][x.0 as usize]];
        let out: Vec<Vec<u64>> = cell.connections_out(\"relay\")?.iter().map(words).collect();
        let expected: Vec<Vec<u64>> = cell.connections_in(\"relay\")?.iter().map(words).collect();
        let mut into: Vec<Vec<u64>> = expected.iter().map(|row| vec![0; row.len()]).collect();
        cell.exchange(\"relay\", &out, &mut into)?;
        Ok(expected == into)
    };
    let (right, report) = world.try_run(program).unwrap();
    println!(\"{right:?} {}\", report.words);
";
    write_crate(&folder, "stepped", &stepped, program);

    let printed = run(&folder, "large");
    assert_eq!(printed.trim(), digest(&format!("{large:?}")).to_string());
    let printed = run(&folder, "odd");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], digest(&format!("{odd:?}")).to_string());
    assert_eq!(lines[1..], ["x0", "x1", "x2", "x3", "x4", "x5", "p0", "p1"]);
    let printed = run(&folder, "stepped");
    let lines: Vec<&str> = printed.lines().collect();
    // Five words over two messages, and three over one.
    assert_eq!(lines, [&*digest(&format!("{stepped:?}")).to_string(), "[true, true, true] 13"]);
    let printed = run(&folder, "nothing");
    assert_eq!(printed.trim(), digest(&format!("{nothing:?}")).to_string());
}

#[test]
fn emission_is_repeatable_and_keeps_to_its_folder() {
    let image = odd();
    let files = emit(&image).unwrap();
    assert_eq!(files, emit(&image).unwrap());
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    let expected = [
        "Cargo.toml",
        "src/lib.rs",
        "src/tables.rs",
        "src/match_.rs",
        "src/lib_.rs",
        "src/none.rs",
    ];
    assert_eq!(names, expected);
}

#[test]
fn manifests_are_written_with_escapes() {
    let image = image(&machine("ring:1", |_| {}), &[]).unwrap();
    let with = |name: &str, path: &str| {
        let runtime = Runtime::Path(path.to_owned());
        emit_with(&image, &CrateOptions::new(name).runtime(runtime))
    };
    let files = with("my-image", "C:\\a \"b\"").unwrap();
    assert!(files[0].1.contains("conset-runtime = { path = \"C:\\\\a \\\"b\\\"\" }\n"));
    for name in ["", "1st", "a b", "a\"\n[x]"] {
        assert!(matches!(with(name, "x"), Err(EmitError::CrateName { .. })), "{name}");
    }
}

#[test]
fn manifests_say_where_the_runtime_comes_from() {
    let image = image(&machine("ring:1", |_| {}), &[]).unwrap();
    let manifest = |options: CrateOptions| {
        let files = emit_with(&image, &options).unwrap();
        let (before, dependencies) = files[0].1.split_once("[dependencies]\n").unwrap();
        assert!(before.starts_with("[package]\n"));
        dependencies.to_owned()
    };
    let version = env!("CARGO_PKG_VERSION");
    let published = manifest(CrateOptions::default());
    assert!(published.ends_with(&format!("\nconset-runtime = \"{version}\"\n")), "{published}");
    assert!(published.starts_with("# While this version is not published"), "{published}");
    let git = Runtime::Git { url: "https://example.org/conset".into(), rev: "abc123".into() };
    let git = manifest(CrateOptions::default().runtime(git));
    let source = "{ git = \"https://example.org/conset\", rev = \"abc123\" }";
    assert!(git.ends_with(&format!("\nconset-runtime = {source}\n")), "{git}");
    assert!(git.contains(&format!("The published version: conset-runtime = \"{version}\"")));
}

/// The declarations of the C library that the emitted sources need to compile; the tests of conset-c
/// link them with the library.
const CONSET_H: &str = "\
#include <stddef.h>
typedef struct conset_image conset_image;
int conset_image_parse(const void *bytes, size_t size, conset_image **image);
";

/// Compiles emitted C sources with a program that writes the bytes of the image and the values of
/// some names.
fn run_c(folder: &Path, image: &Image, uses: &str) -> (Vec<u8>, String) {
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("conset.h", CONSET_H);
    for (name, text) in c::emit(image, "my_program").unwrap() {
        write(&name, &text);
    }
    write(
        "main.c",
        &format!(
            "#include <stdio.h>\n#include \"my_program.h\"\n\
             int conset_image_parse(const void *bytes, size_t size, conset_image **image)\n{{\n    \
             *image = NULL;\n    return fwrite(bytes, 1, size, stdout) == size ? 0 : 1;\n}}\n\
             int main(void)\n{{\n    conset_image *image;\n    {uses}\n    \
             return my_program_image(&image);\n}}\n"
        ),
    );
    let program = folder.join("program");
    let output = Command::new("cc")
        .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(folder)
        .args([folder.join("main.c"), folder.join("my_program.c")])
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler, which building METIS takes anyway");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success());
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn emitted_c_sources_hold_their_images() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emitted-c");
    let nothing = image(&machine("ring:1", |_| {}), &[]).unwrap();
    for (name, image) in [("large", &large()), ("odd", &odd()), ("nothing", &nothing)] {
        let uses = match name {
            "odd" => {
                "fprintf(stderr, \"%d %d %d %d %s\", MY_PROGRAM_LIB, MY_PROGRAM_MATCH_P0, \
                 MY_PROGRAM_MATCH_EAST_1_2, MY_PROGRAM_MATCH_C0_TO_C2, MY_PROGRAM_LIB_NAME);"
            }
            _ => "",
        };
        let (bytes, names) = run_c(&folder.join(name), image, uses);
        assert_eq!(bytes, binary::write(&Document::Image(image.clone())), "{name}");
        if name == "odd" {
            assert_eq!(names, "1 0 1 5 Lib");
        }
    }
}

#[test]
fn c_names_do_not_collide_and_none_are_made_of_what_is_no_name() {
    // A set `a` with a connection `b_P0` and a set `a_b` with a phase 0; a connection `P0`.
    let machine = machine("ring:4", |_| {});
    let named = |name: &str| Connection {
        name: Some(name.into()),
        ..Connection::new(CellId(0), CellId(1), 1)
    };
    let sets = [("a", vec![named("b_P0"), named("P0"), named("NAME")]), ("a_b", vec![named("x")])];
    let sets = sets.map(|(name, connections)| {
        compiled(&machine, ConnectionSet::new(name, connections).unwrap(), 1 << 20)
    });
    let image = image(&machine, &sets).unwrap();
    let header = &c::emit(&image, "p").unwrap()[0].1;
    for line in [
        "    P_A = 0,",
        "    P_A_P0 = 0,",
        "    P_A_B_P0 = 0, /* c0 to c1, 1 words */",
        "    P_A_P0_2 = 1, /* c0 to c1, 1 words */",
        "    P_A_NAME_2 = 2, /* c0 to c1, 1 words */",
        "    P_A_B_P0_2 = 0,",
    ] {
        assert!(header.lines().any(|l| l == line), "{line}\n{header}");
    }
    for name in ["", "1st", "a b", "a-b", "a\"", "ä"] {
        assert!(matches!(c::emit(&image, name), Err(EmitError::CName { .. })), "{name}");
    }
}
