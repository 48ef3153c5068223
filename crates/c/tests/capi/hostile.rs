//! Wrong calls, made up from the interface itself: every function with each of its arguments wrong in
//! every way that a library can find out, the others right; and with nothing but zeros.
//!
//! Not made up is what the header forbids and nobody can see: arrays shorter than the call says,
//! pointers to nowhere.

use std::fmt::Write;

use crate::header::{Function, functions};
use crate::installed::compile;
use crate::tools::{all, folder, here, limited, run};

/// The right argument for a name and type.
fn right(name: &str, kind: &str) -> String {
    let text = match (kind, name) {
        ("char const *", "machine") => "\"ring:4\"",
        ("char const *", "set" | "name") => "\"halo\"",
        ("char const *", "path") => "\"hostile.csi\"",
        ("char const *", "prefix") => "\"\"",
        ("char const *", "reduce") => "\"reduce\"",
        ("char const *", "broadcast") => "\"broadcast\"",
        ("char const *", _) => "\"allreduce\"",
        ("conset_program", _) => "program",
        ("conset_handler", _) => "handler",
        ("conset_combine", _) => "combine",
        ("void const *", "ptr") => "ptr",
        ("void const *", "idx") => "idx",
        ("void const *", "bytes") => "bytes",
        ("void const *" | "void *", "incoming" | "own" | "all") => "more",
        ("void const *" | "void *", _) => "buffer",
        ("void * const *", _) => "vectors",
        ("void const * const *", _) => "const_vectors",
        ("size_t const *", "first") => "first",
        ("conset_connection_set const *", _) => "&connection_set",
        ("conset_connection *", "connections") => "records",
        ("size_t const *", "owned") => "one",
        ("size_t const *", _) => "two",
        ("uint64_t const *", _) => "ids",
        ("uint32_t const *", _) => "place",
        ("uint32_t const * *", _) => "&connections",
        ("size_t *", _) => "sizes",
        ("uint32_t *", _) => "numbers",
        ("uint64_t *", _) => "longs",
        ("int *", _) => "ints",
        ("size_t", "cells" | "parts") => "4",
        ("size_t", "item_bytes") => "8",
        ("size_t", "block") => "1",
        ("size_t", "room") => "64",
        ("size_t", "size") => "bytes_size",
        ("size_t", _) => "2",
        ("uint32_t" | "uint64_t" | "unsigned", _) => "0",
        ("int", "operation") => "CONSET_ADD",
        ("int", "index_type") => "CONSET_INT32",
        ("int", _) => "CONSET_DOUBLE",
        ("conset_rows const *", _) => "&rows",
        ("conset_set const *", _) => "sets",
        ("conset_layout * *", "backward") => "&new_backward",
        ("conset_operation *", _) => "operations",
        ("conset_compile_options const *" | "conset_compile_options *", _) => "&compile_options",
        ("conset_options const *" | "conset_options *", _) => "&options",
        ("conset_local_csr *", _) => "&local",
        _ => return handle_or_structure(kind),
    };
    text.to_owned()
}

fn handle_or_structure(kind: &str) -> String {
    let name = kind.trim_end_matches([' ', '*']).trim_end_matches("const").trim();
    let short = name.strip_prefix("conset_").unwrap_or_else(|| panic!("no value for `{kind}`"));
    match (short, kind.matches('*').count()) {
        (_, 2) => format!("&new_{short}"),
        (
            "image" | "layout" | "matrix" | "plan" | "trees" | "lists" | "cell" | "epoch"
            | "arrivals",
            _,
        ) => short.to_owned(),
        // MPI makes them.
        ("communicator" | "attached" | "halo", _) => "NULL".to_owned(),
        _ => format!("&{short}"),
    }
}

/// Wrong arguments of a type.
fn wrong(kind: &str, right: &str) -> Vec<String> {
    let list = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    match kind {
        "size_t" => list(&["0", "1", "SIZE_MAX", "SIZE_MAX / 2 + 1"]),
        "uint32_t" => list(&["1", "99", "UINT32_MAX"]),
        "uint64_t" => list(&["1", "UINT64_MAX"]),
        "unsigned" => list(&["1"]),
        "int" => list(&["-1", "1", "99", "INT_MIN", "INT_MAX"]),
        "conset_program" | "conset_handler" | "conset_combine" => list(&["NULL"]),
        "char const *" => {
            list(&["NULL", "\"\"", "\"\\xff\\xfe\"", "\"/no/such folder\"", "\"a b=c\""])
        }
        _ => {
            let mut found = list(&["NULL"]);
            found.push(format!("({kind})((char *)(void *)({right}) + 1)"));
            match right {
                "image" | "layout" | "matrix" | "plan" | "trees" | "lists" | "cell" | "epoch"
                | "arrivals" => {
                    let other = if right == "trees" { "plan" } else { "trees" };
                    found.push(format!("({kind})(void *){other}"));
                    found.push(format!("({kind})(void *)freed"));
                }
                "&options" | "&compile_options" => {
                    found.push(right.replace('&', "&odd_"));
                }
                _ => {}
            }
            if right == "cell" {
                found.extend(list(&["other", "(conset_cell *)(void *)&buffer"]));
            }
            if right == "epoch" {
                found.extend(list(&["closed", "others_epoch", "(conset_epoch *)(void *)&buffer"]));
            }
            found
        }
    }
}

/// The calls of a function: what is wrong, and the call.
fn calls(name: &str, function: &Function) -> Vec<(String, String)> {
    let arguments = &function.arguments;
    let mut rights: Vec<String> = arguments.iter().map(|(name, kind)| right(name, kind)).collect();
    if name == "conset_connection_set_write" {
        // Not over the image, which others read.
        rights[1] = "\"hostile.cset\"".to_owned();
    }
    let zeros: Vec<&str> = arguments.iter().map(|_| "0").collect();
    let mut found = vec![("all zero".to_owned(), zeros.join(", "))];
    let frees = name.ends_with("_free");
    // What MPI makes is NULL here, so no call with it is right.
    let of_mpi = |(_, kind): &(String, String)| {
        ["conset_attached ", "conset_halo "].iter().any(|name| kind.starts_with(name))
    };
    if !frees && !arguments.iter().any(of_mpi) {
        found.push(("all right".to_owned(), rights.join(", ")));
    }
    for (row, (argument, kind)) in arguments.iter().enumerate() {
        for value in wrong(kind, &rights[row]) {
            let mut all = rights.clone();
            all[row].clone_from(&value);
            found.push((format!("{argument} is {value}"), all.join(", ")));
        }
    }
    found
}

fn source() -> String {
    let (mut names, mut cases, mut counts, mut row) = (String::new(), String::new(), [0, 0], 0);
    for of_cells in [false, true] {
        for (name, function) in &functions() {
            let takes_cell = |(_, kind): &(String, String)| {
                kind.starts_with("conset_cell ") || kind.starts_with("conset_epoch ")
            };
            // A communicator is MPI's to look at, before it is ours.
            if function.arguments.first().is_some_and(takes_cell) != of_cells
                || ["conset_communicator_new", "conset_attach"].contains(&name.as_str())
            {
                continue;
            }
            for (what, arguments) in calls(name, function) {
                let what = format!("{name}: {what}").replace('\\', "\\\\").replace('"', "\\\"");
                writeln!(names, "    \"{what}\",").unwrap();
                let call = format!("{name}({arguments})");
                let call = match function.result.as_str() {
                    "int" => format!("return {call};"),
                    _ => format!("(void){call}; return 0;"),
                };
                writeln!(cases, "    case {row}: {call}").unwrap();
                row += 1;
                counts[usize::from(of_cells)] += 1;
            }
        }
    }
    let text = std::fs::read_to_string(here().join("tests/capi/hostile.c")).unwrap();
    let (before, after) = text.split_once("static int call(int row, conset_cell *cell);").unwrap();
    let after = after.split_once("calls_of_cells;\n").unwrap().1;
    format!(
        "{before}static int call(int row, conset_cell *cell)\n{{\n    (void)cell;\n    \
         switch (row) {{\n{cases}    }}\n    return 0;\n}}\n\n\
         static const char *const names[] = {{\n{names}}};\n\
         static const int calls = {}, calls_of_cells = {};\n{after}",
        counts[0], counts[1]
    )
}

#[test]
fn no_wrong_call_crashes() {
    let folder = folder("hostile");
    let file = folder.join("calls.c");
    std::fs::write(&file, source()).unwrap();
    // Casts away from const and to stricter alignment are what is tested.
    let more = ["-Wno-cast-qual", "-Wno-unused-result", "-Wno-nonnull"];
    let program = compile(&[file], &more, "hostile");
    let output = run(limited(&program).current_dir(&folder));
    let said = all(&output);
    assert!(output.status.success(), "{said}");
    let calls: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(calls > 800, "{said}");
}
