//! Programs against an installed library: `install.sh` into a folder, then a compiler with the
//! flags of `pkg-config`, as a user does it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use conset::ir::{CellId, Connection, ConnectionSet, Machine};

use crate::header::functions;
use crate::tools::{all, folder, have, here, limited, run, succeed};

/// The folder that the library is installed in, once for all tests.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = folder("prefix");
        let mut install = Command::new("sh");
        install.arg(here().join("install.sh")).arg(&prefix);
        if cfg!(feature = "mpi") {
            install.arg("--mpi");
        }
        if cfg!(debug_assertions) {
            // The library of this test is there already: as a part of the workspace, whose packages
            // choose features of dependencies together.
            install.args([
                "--profile",
                "dev",
                "--",
                "test",
                "--workspace",
                "--test",
                "capi",
                "--no-run",
            ]);
        }
        let said = succeed(&mut install);
        assert!(said.contains("installed conset"), "{said}");
        prefix
    })
}

/// The flags that programs are compiled with, and a path to find the library when they start.
fn flags() -> Vec<String> {
    let prefix = prefix();
    let library = prefix.join("lib");
    let mut flags = if have("pkg-config", "flags by pkg-config (explicit ones are taken)") {
        let mut ask = Command::new("pkg-config");
        ask.args(["--cflags", "--libs", "conset"]);
        ask.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        succeed(&mut ask).split_whitespace().map(str::to_owned).collect()
    } else {
        vec![
            format!("-I{}", prefix.join("include").display()),
            format!("-L{}", library.display()),
            "-lconset".to_owned(),
        ]
    };
    flags.push(format!("-Wl,-rpath,{}", library.display()));
    flags.push("-lm".to_owned());
    flags
}

const STRICT: [&str; 6] = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Compiles a C program.
pub(crate) fn compile(sources: &[PathBuf], more: &[&str], name: &str) -> PathBuf {
    let program = folder("programs").join(name);
    let mut cc = Command::new("cc");
    succeed(cc.args(STRICT).args(more).args(sources).args(flags()).arg("-o").arg(&program));
    program
}

fn example(name: &str) -> PathBuf {
    here().join("examples").join(name)
}

/// What a program prints with an argument.
fn says(program: &Path, argument: &str) -> String {
    succeed(limited(program).arg(argument))
}

#[test]
fn conjugate_gradients_in_c_have_the_same_bits_on_the_fabric_and_on_threads() {
    let program = compile(&[example("cg.c")], &[], "cg");
    let fabric = says(&program, "fabric");
    assert!(fabric.starts_with("iterations ") && fabric.contains("residual 0x1"), "{fabric}");
    for _ in 0..3 {
        assert_eq!(says(&program, "threads"), fabric);
    }
}

#[test]
fn every_way_to_exchange_in_c() {
    let program = compile(&[example("halo.c")], &[], "halo");
    let fabric = says(&program, "fabric");
    assert!(fabric.contains("all as expected on 16 cells"), "{fabric}");
    assert_eq!(says(&program, "threads"), fabric);
    let trace = folder("programs").join("trace.json");
    assert_eq!(succeed(limited(&program).arg("fabric").arg(&trace)), fabric);
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(text.starts_with('{') && text.contains("\"ph\""), "{text}");
}

/// Epochs, exchanges with unknown partners, messages and collectives without trees.
#[test]
fn unknown_traffic_in_c() {
    let program = compile(&[example("unknown.c")], &[], "unknown");
    let fabric = says(&program, "fabric");
    assert!(fabric.contains("all as expected on 8 cells"), "{fabric}");
    assert_eq!(says(&program, "threads"), fabric);
    #[cfg(feature = "mpi")]
    {
        let program = compile_mpi(here().join("tests/capi/unknown_ranks.c"), "unknown-ranks");
        for ranks in ["1", "2", "4"] {
            assert_eq!(succeed(&mut job(&program, ranks)), fabric, "{ranks} ranks");
        }
    }
}

#[test]
fn parts_are_placed_in_c() {
    let program = compile(&[example("bar.c")], &[], "bar");
    for transport in ["fabric", "threads"] {
        assert_eq!(says(&program, transport), "squares 238, 0 wrong\n");
    }
}

/// The guide's programs, as it says them to be compiled, and with all warnings.
#[test]
fn the_guide_s_programs() {
    let guide = std::fs::read_to_string(here().join("../../docs/guide.md")).unwrap();
    let blocks = |kind: &str| -> Vec<&str> {
        let begin = format!("```{kind}\n");
        let blocks = guide.split(begin.as_str()).skip(1);
        blocks.map(|block| block.split("```").next().unwrap()).collect()
    };
    let folder = folder("guide");
    let programs = blocks("c");
    assert_eq!(programs.len(), 1);
    std::fs::write(folder.join("solver.c"), programs[0]).unwrap();
    std::fs::copy(example("cg.f90"), folder.join("solver.f90")).unwrap();
    let strict = compile(&[folder.join("solver.c")], &[], "guide");
    let fabric = says(&strict, "fabric");
    assert!(fabric.starts_with("x A x = "), "{fabric}");
    assert_eq!(says(&strict, "threads"), fabric);

    let mut ran = 0;
    for command in blocks("console").concat().lines() {
        let command = command.strip_prefix("$ ").unwrap();
        let tool = command.split(' ').next().unwrap();
        // The library is installed already.
        if tool.ends_with("install.sh") || !have(tool, "the guide's commands") {
            continue;
        }
        let library = prefix().join("lib");
        let command = command.replace("/usr/local", &prefix().display().to_string());
        let mut shell = Command::new("sh");
        shell.current_dir(&folder).args(["-e", "-c", &command]);
        succeed(shell.env("PKG_CONFIG_PATH", library.join("pkgconfig")));
        succeed(limited(&folder.join("solver")).env("LD_LIBRARY_PATH", &library));
        ran += 1;
    }
    assert_eq!(ran, 2);
}

#[test]
fn the_static_library_links_too() {
    if !have("pkg-config", "the static library") {
        return;
    }
    let library = prefix().join("lib");
    let mut ask = Command::new("pkg-config");
    ask.args(["--static", "--cflags", "--libs", "conset"]);
    ask.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
    let flags = succeed(&mut ask).replace("-lconset", "-l:libconset.a");
    let program = folder("programs").join("halo-static");
    let link = |sources: &[PathBuf]| {
        let mut cc = Command::new("cc");
        cc.args(STRICT).args(sources).args(flags.split_whitespace()).arg("-o").arg(&program);
        succeed(&mut cc);
        assert!(says(&program, "threads").contains("all as expected"));
    };
    link(&[example("halo.c")]);
    if cfg!(target_os = "linux") && have("objcopy", "a METIS beside the static library") {
        // The program's own METIS, of which conset's must not become a part.
        let metis = folder("programs").join("metis.c");
        let calls = ["METIS_PartGraphKway", "METIS_SetDefaultOptions", "METIS_MeshToDual"];
        let calls =
            calls.map(|name| format!("int {name}(void);\nint {name}(void) {{ abort(); }}\n"));
        std::fs::write(&metis, format!("#include <stdlib.h>\n{}", calls.concat())).unwrap();
        link(&[example("halo.c"), metis]);
    }
}

/// What a Fortran example prints on the fabric, which is what it prints on threads.
fn fortran(name: &str) -> Option<String> {
    if !have("gfortran", "the Fortran examples") {
        return None;
    }
    let folder = folder(&format!("fortran-{name}"));
    let (module, program) = (prefix().join("share/conset/conset.f90"), folder.join(name));
    let mut compiler = Command::new("gfortran");
    compiler.current_dir(&folder).args(["-O1", "-g", "-Wall", "-fcheck=all", "-fbacktrace"]);
    let source = example(&format!("{name}.f90"));
    succeed(compiler.arg(module).arg(source).args(flags()).arg("-o").arg(&program));
    let fabric = says(&program, "fabric");
    assert_eq!(says(&program, "threads"), fabric);
    Some(fabric)
}

#[test]
fn conjugate_gradients_in_fortran() {
    let said = fortran("cg");
    assert!(said.is_none_or(|said| said.contains("iterations ") && said.contains(" error ")));
}

#[test]
fn ways_to_exchange_in_fortran() {
    let said = fortran("halo");
    assert!(said.is_none_or(|said| said == "all as expected\n"));
}

#[test]
fn unknown_traffic_in_fortran() {
    let said = fortran("unknown");
    assert!(said.is_none_or(|said| said == "all as expected\n"));
}

#[test]
fn sets_are_compiled_to_steps_in_c() {
    let program = compile(&[here().join("tests/capi/steps.c")], &[], "steps");
    let said = succeed(&mut limited(&program));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "cm5:16 phases");
    assert_eq!(lines[1..7], ["cm5:16 steps"; 6]);
    assert_eq!(lines[7..], ["cm5:16 phases", "cm5:16 t_phase=100000 steps"]);
}

#[test]
fn misuse_is_an_error_with_a_text() {
    let source = here().join("tests/capi/misuse.c");
    let program = compile(&[source], &["-D_POSIX_C_SOURCE=200809L", "-pthread"], "misuse");
    let output = run(limited(&program).current_dir(folder("programs")));
    assert!(output.status.success(), "{}", all(&output));
}

#[test]
fn wrong_uses_of_unknown_traffic_are_errors_with_a_text() {
    let program = compile(&[here().join("tests/capi/misuse_unknown.c")], &[], "misuse-unknown");
    let output = run(limited(&program).current_dir(folder("programs")));
    assert!(output.status.success(), "{}", all(&output));
}

/// Address and undefined-behaviour sanitizers on the C side; memory of both sides is watched.
/// How a program ends that has a frame of so many KiB on a stack, and what it says.
fn with_frame(
    program: &Path,
    transport: &str,
    stack: &str,
    kib: &str,
    what: &str,
) -> (i32, String) {
    let output = run(limited(program).args([transport, stack, kib, what]));
    (output.status.code().unwrap_or(-1), all(&output))
}

#[test]
fn frames_that_are_larger_than_a_stack_end_the_program_and_name_the_cell() {
    let source = here().join("tests/capi/stack.c");
    let program = compile(&[source], &["-Wno-vla"], "stack");
    for transport in ["fabric", "threads"] {
        let ends = |stack, kib| with_frame(&program, transport, stack, kib, "ends");
        // What a stack has room for.
        for (stack, kib) in [("0", "200"), ("0", "900"), ("4194304", "1536")] {
            assert_eq!(ends(stack, kib), (0, "OK\n".to_owned()), "{transport} {stack} {kib}");
        }
        for (stack, kib, bytes) in [
            ("131072", "200", "131072"),
            ("0", "1536", "1048576"),
            ("0", "12000", "1048576"),
            ("65536", "16000", "65536"),
        ] {
            let (code, text) = ends(stack, kib);
            let says =
                format!("cell c2 overflowed its stack of {bytes} bytes; enlarge stack_bytes");
            assert!(code == 70 && text.contains(&says), "{transport} {stack} {kib}: {code} {text}");
        }
        // What is nearly used up leaves no room for a call; what lies elsewhere is damaged.
        let calls = |kib| with_frame(&program, transport, "0", kib, "calls");
        let (code, text) = calls("1000");
        assert_eq!(code, 10, "{text}");
        assert!(text.contains("c2 has used 10") && text.contains("of 1048576 bytes"), "{text}");
        // Such a frame is far beyond any guard.
        let (code, text) = calls("40000");
        assert!(code != 0 && !text.contains("OK"), "{code} {text}");
    }
}

#[test]
fn a_sanitizer_finds_nothing() {
    let probe = folder("programs").join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let mut cc = Command::new("cc");
    cc.arg("-fsanitize=address,undefined").arg(&probe).arg("-o").arg(probe.with_extension(""));
    if !run(&mut cc).status.success() {
        have("-fsanitize=address", "the sanitizer");
        return;
    }
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
    for name in ["cg", "halo", "unknown"] {
        let source = example(&format!("{name}.c"));
        let program = compile(&[source], &flags, &format!("{name}-sanitized"));
        for transport in ["fabric", "threads"] {
            let mut limited = limited(&program);
            let output = run(limited.arg(transport));
            assert!(output.status.success(), "{name} {transport}: {}", all(&output));
        }
    }
}

/// A program of C++ that uses emitted tables.
const CELLS_CPP: &str = r#"#include "tables.h"
#include <cstdio>
int main()
{
    conset_image *image = nullptr;
    if (tables_image(&image) != CONSET_OK || TABLES_HALO != 1)
        return 1;
    std::printf("%d\n", static_cast<int>(conset_image_cells(image)));
    conset_image_free(image);
    return 0;
}
"#;

/// What `conset emit --format c` writes, compiled and linked, as C and as C++.
#[test]
fn emitted_tables_link_and_run() {
    let machine = Arc::new(Machine::from_spec("torus:3x3").unwrap());
    let pairs = (0..9u32).flat_map(|a| (1..9).map(move |k| (a, (a + k) % 9)));
    let connections = pairs.map(|(a, b)| Connection::new(CellId(a), CellId(b), 1 + (a + b) % 5));
    let set = |name: &str| ConnectionSet::new(name, connections.clone().collect()).unwrap();
    let sets = [set("first"), set("halo")];
    let compiled = conset::Compiler::new(&machine).compile_sets(sets).unwrap();
    let image = compiled.image().clone();
    let folder = folder("emitted");
    let mut sources = vec![here().join("tests/capi/emitted.c")];
    for (name, text) in conset::codegen::c::emit(&image, "tables").unwrap() {
        std::fs::write(folder.join(&name), text).unwrap();
        if name.ends_with(".c") {
            sources.push(folder.join(name));
        }
    }
    let include = format!("-I{}", folder.display());
    let program = compile(&sources, &[&include], "emitted");
    for transport in ["fabric", "threads"] {
        assert_eq!(says(&program, transport), "all words as expected\n");
    }
    if have("c++", "emitted tables in C++") {
        let cells = folder.join("cells.cpp");
        std::fs::write(&cells, CELLS_CPP).unwrap();
        let program = folder.join("cells");
        let mut cpp = Command::new("c++");
        cpp.args(["-std=c++11", "-x", "c++", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        cpp.arg(cells).arg(folder.join("tables.c")).arg(include).args(["-x", "none"]);
        succeed(cpp.args(flags()).arg("-o").arg(&program));
        assert_eq!(says(&program, ""), "9\n");
    }
}

/// A program of MPI, compiled.
#[cfg(feature = "mpi")]
fn compile_mpi(source: PathBuf, name: &str) -> PathBuf {
    let program = folder("programs").join(name);
    let mut mpicc = Command::new(tool("MPICC", "mpicc"));
    succeed(mpicc.args(STRICT).arg(source).args(flags()).arg("-o").arg(&program));
    program
}

/// A job of some ranks.
#[cfg(feature = "mpi")]
fn job(program: &Path, ranks: &str) -> Command {
    let mut job = limited(Path::new(&tool("MPIRUN", "mpirun")));
    // One launcher may remove the folder of all their files while another begins to use it.
    let files = program.with_extension("job");
    std::fs::create_dir_all(&files).unwrap();
    job.args(["-n", ranks])
        .arg(program)
        .env("TMPDIR", files)
        // More ranks than cores, and perhaps as root in a container.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    job
}

/// The caller's communicator, on one, two and four ranks with several cells each.
#[cfg(feature = "mpi")]
#[test]
fn over_mpi() {
    let program = compile_mpi(example("mpi.c"), "mpi");
    for ranks in ["1", "2", "4"] {
        let fine = all(&run(&mut job(&program, ranks)));
        assert_eq!(fine.matches("as on the fabric").count().to_string(), ranks, "{fine}");
        let output = run(job(&program, ranks).arg("fail"));
        let text = all(&output);
        assert!(!output.status.success(), "{text}");
        assert!(text.contains("c3: its program returned 7"), "{text}");
    }
}

/// Every way to exchange, and what a job can be asked wrongly.
#[cfg(feature = "mpi")]
#[test]
fn every_way_over_mpi() {
    let program = compile_mpi(here().join("tests/capi/ranks.c"), "ranks");
    for ranks in ["1", "4"] {
        let output = run(&mut job(&program, ranks));
        let text = all(&output);
        assert!(output.status.success(), "{text}");
        assert_eq!(text.matches("all as expected").count().to_string(), ranks, "{text}");
    }
}

/// Halos and reductions without a callback.
#[cfg(feature = "mpi")]
#[test]
fn attached_programs() {
    let program = compile_mpi(here().join("tests/capi/attached.c"), "attached");
    for ranks in ["1", "2", "3", "8"] {
        let output = run(&mut job(&program, ranks));
        let text = all(&output);
        assert!(output.status.success(), "{text}");
        assert_eq!(text.matches("all as expected").count().to_string(), ranks, "{text}");
    }
    let program = compile_mpi(example("attach.c"), "attach");
    for ranks in ["1", "2", "4", "8"] {
        let output = run(&mut job(&program, ranks));
        let text = all(&output);
        assert!(output.status.success() && text.contains("agrees: yes"), "{text}");
    }
}

/// Runs a Fortran program over MPI, which says that all is as expected.
#[cfg(feature = "mpi")]
fn fortran_over_mpi(source: &Path, name: &str, ranks: [&str; 3]) {
    let mpifort = std::env::var("MPIFORT").unwrap_or_else(|_| "mpifort".to_owned());
    if !have(&mpifort, &format!("{name} in Fortran over MPI")) {
        return;
    }
    // Compilers write module files where they are.
    let (folder, program) = (folder(name), folder("programs").join(name));
    let mut compiler = Command::new(mpifort);
    compiler.current_dir(folder).args(["-O1", "-g", "-Wall", "-fcheck=all", "-fbacktrace"]);
    compiler.arg(prefix().join("share/conset/conset.f90")).arg(source);
    succeed(compiler.args(flags()).arg("-o").arg(&program));
    for ranks in ranks {
        let output = run(&mut job(&program, ranks));
        let text = all(&output);
        assert!(output.status.success() && text.contains("all as expected"), "{text}");
    }
}

#[cfg(feature = "mpi")]
#[test]
fn attached_programs_in_fortran() {
    fortran_over_mpi(&example("attach.f90"), "attach-fortran", ["1", "2", "3"]);
}

/// The same traffic as in the example, over MPI.
#[cfg(feature = "mpi")]
#[test]
fn unknown_traffic_in_fortran_over_mpi() {
    let text = std::fs::read_to_string(example("unknown.f90")).unwrap();
    let (module, _) = text.split_once("\nprogram unknown\n").expect("the example has a module");
    let main = std::fs::read_to_string(here().join("tests/capi/unknown_ranks.f90")).unwrap();
    let source = folder("fortran-ranks").join("ranks.f90");
    std::fs::write(&source, format!("{module}\n{main}")).unwrap();
    fortran_over_mpi(&source, "unknown-fortran", ["1", "2", "4"]);
}

/// hypre's arrays and conset's halo.
#[cfg(feature = "mpi")]
#[test]
fn a_parcsr_matrix_is_multiplied() {
    let program = compile_mpi(example("parcsr.c"), "parcsr");
    for ranks in ["1", "3", "4", "8"] {
        let said = succeed(&mut job(&program, ranks));
        assert_eq!(said, format!("{ranks} ranks, 400 rows, 0 wrong\n"));
    }
}

/// A KSP solve whose scatter is conset's, where PETSc is installed.
#[cfg(feature = "mpi")]
#[test]
fn a_scatter_of_petsc_is_replaced() {
    let mut ask = Command::new("pkg-config");
    let found = ask.args(["--cflags", "--libs", "PETSc"]).output();
    let Some(found) = found.ok().filter(|output| output.status.success()) else {
        have("pkg-config for PETSc", "a KSP solve of PETSc");
        return;
    };
    let found = String::from_utf8(found.stdout).unwrap();
    let program = folder("programs").join("petsc");
    let mut mpicc = Command::new(tool("MPICC", "mpicc"));
    mpicc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]).arg(example("petsc.c"));
    succeed(mpicc.args(found.split_whitespace()).args(flags()).arg("-o").arg(&program));
    for ranks in ["2", "4"] {
        let said = succeed(&mut job(&program, ranks));
        assert!(said.contains(" iterations, the same bits: yes"), "{said}");
    }
}

#[cfg(feature = "mpi")]
fn tool(variable: &str, usual: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| usual.to_owned())
}

#[test]
fn the_shared_library_has_its_name_and_exports_the_header_alone() {
    let library = prefix().join("lib/libconset.so");
    if !library.exists() || !have("readelf", "symbols") {
        return;
    }
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("Library soname: [libconset.so.0]"), "{dynamic}");
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let mut exported: Vec<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let functions = functions();
    assert_eq!(exported, functions.keys().map(String::as_str).collect::<Vec<_>>());
}
