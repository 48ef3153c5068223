//! The header and the code say the same.
//!
//! The functions' Rust signatures are read from the sources and written as C declarations behind
//! the header's own: a C compiler refuses a second declaration of another type. So it is with the
//! sizes and places of structures' fields, and the numbers of statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use conset_c::Status;
use conset_c::attached::ConsetField;
use conset_c::compile::{ConsetCompileOptions, ConsetSet, ConsetTree};
use conset_c::connections::ConsetConnectionSet;
use conset_c::epoch::ConsetSettled;
use conset_c::image::{ConsetConnection, ConsetOperation};
use conset_c::layout::ConsetList;
use conset_c::lists::ConsetRows;
use conset_c::matrix::ConsetLocalCsr;
use conset_c::pending::ConsetPending;
use conset_c::run::{ConsetOptions, ConsetReport};
use conset_c::unknown::ConsetArrival;

use crate::tools::{files, folder, here, read, succeed};

/// A function of the library as its Rust source has it, in types of C.
pub(crate) struct Function {
    pub(crate) result: String,
    /// Names and types.
    pub(crate) arguments: Vec<(String, String)>,
}

impl Function {
    /// `name(a: *const T, ...) -> c_int`.
    fn parse(signature: &str) -> (String, Self) {
        let (name, rest) = signature.split_once('(').unwrap();
        let (arguments, result) = rest.rsplit_once(')').unwrap();
        let arguments = arguments
            .split(',')
            .filter_map(|argument| argument.split_once(':'))
            .map(|(name, kind)| (name.trim().to_owned(), c_type(kind.trim())));
        let result =
            result.trim().strip_prefix("->").map_or("void".to_owned(), |r| c_type(r.trim()));
        (name.to_owned(), Self { result, arguments: arguments.collect() })
    }

    fn declaration(&self, name: &str) -> String {
        let types: Vec<&str> = self.arguments.iter().map(|(_, kind)| kind.as_str()).collect();
        let arguments = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
        format!("{} {name}({arguments});", self.result)
    }
}

/// The functions of the library by their names.
pub(crate) fn functions() -> BTreeMap<String, Function> {
    let mut found = BTreeMap::new();
    for text in files("src", "rs") {
        for (at, _) in text.match_indices("#[unsafe(no_mangle)]") {
            let text = &text[at..];
            let begin = text.find("fn ").unwrap() + 3;
            let signature = &text[begin..begin + text[begin..].find('{').unwrap()];
            let (name, function) = Function::parse(signature);
            assert!(found.insert(name, function).is_none());
        }
    }
    found
}

fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(target));
    }
    match rust {
        "c_int" => "int".to_owned(),
        "c_uint" => "unsigned".to_owned(),
        "c_char" => "char".to_owned(),
        "c_void" => "void".to_owned(),
        "usize" => "size_t".to_owned(),
        "u32" => "uint32_t".to_owned(),
        "u64" => "uint64_t".to_owned(),
        name if name.starts_with("Conset") => snake(name),
        other => panic!("`{other}` has no type in C"),
    }
}

/// `ConsetLocalCsr` as `conset_local_csr`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Source of C without its comments.
pub(crate) fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find("*/").unwrap() + 2..];
    }
    code.push_str(rest);
    code
}

/// The names before an opening parenthesis in a declaration.
fn declared(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some((before, _)) = statement.split_once('(') else { continue };
        let name = before.rsplit([' ', '*', '\n']).next().unwrap();
        if name.starts_with("conset_") && !statement.contains("typedef") {
            found.push(name.to_owned());
        }
    }
    found.sort();
    found
}

fn fields(out: &mut String, name: &str, size: usize, offsets: &[(&str, usize)]) {
    writeln!(out, "_Static_assert(sizeof({name}) == {size}, \"{name}\");").unwrap();
    for (field, offset) in offsets {
        let place = format!("offsetof({name}, {field}) == {offset}");
        writeln!(out, "_Static_assert({place}, \"{name}.{field}\");").unwrap();
    }
}

macro_rules! structure {
    ($out:expr, $kind:ident { $($field:ident),* }) => {
        fields(
            $out,
            &snake(stringify!($kind)),
            size_of::<$kind>(),
            &[$((stringify!($field), offset_of!($kind, $field))),*],
        )
    };
}

fn structures() -> String {
    let mut out = String::new();
    structure!(&mut out, ConsetConnection { source, target, words });
    structure!(&mut out, ConsetOperation { connection, sends, first_word, words });
    structure!(&mut out, ConsetLocalCsr { items, owned, entries, ids, ptr, idx });
    structure!(&mut out, ConsetSet { name, layout, block });
    structure!(&mut out, ConsetList { source, target, items, ids, send, receive });
    structure!(&mut out, ConsetRows { count, first, positions });
    structure!(&mut out, ConsetTree { prefix, words, sets });
    structure!(
        &mut out,
        ConsetCompileOptions {
            size,
            seed,
            tree_words,
            max_phases,
            algorithm,
            objective,
            attempts,
            reroutes,
            placement,
            trees,
            tree_count,
            by,
            planner,
            communicator,
            connection_sets,
            connection_set_count
        }
    );
    structure!(
        &mut out,
        ConsetOptions { size, transport, workers, time_out_ms, stack_bytes, communicator, trace }
    );
    structure!(&mut out, ConsetReport { clocks, switches, switch_clocks, words, word_hops });
    structure!(&mut out, ConsetField { vector, bytes });
    structure!(&mut out, ConsetPending { numbers });
    structure!(&mut out, ConsetConnectionSet { name, connections, count });
    structure!(&mut out, ConsetArrival { source, count, words });
    structure!(&mut out, ConsetSettled { rounds, handled });
    for status in Status::ALL {
        let name = snake(&format!("{status:?}")).to_uppercase();
        let number = status as i32;
        writeln!(out, "_Static_assert(CONSET_{name} == {number}, \"{name}\");").unwrap();
    }
    let count = Status::ALL.len();
    writeln!(out, "_Static_assert(CONSET_BUG == {count} - 1, \"the last status\");").unwrap();
    let version: Vec<&str> = env!("CARGO_PKG_VERSION").split('.').collect();
    for (part, number) in ["MAJOR", "MINOR", "PATCH"].iter().zip(version) {
        writeln!(out, "_Static_assert(CONSET_VERSION_{part} == {number}, \"version\");").unwrap();
    }
    out
}

#[test]
fn the_header_declares_what_the_library_has() {
    let functions = functions();
    let declared = declared(&read("include/conset.h"));
    assert_eq!(declared, functions.keys().cloned().collect::<Vec<_>>());
    let mut source = "#include <conset.h>\n".to_owned();
    for (name, function) in &functions {
        writeln!(source, "{}", function.declaration(name)).unwrap();
    }
    source.push_str(&structures());
    let file = folder("header").join("declarations.c");
    std::fs::write(&file, source).unwrap();
    succeed(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
            .arg("-I")
            .arg(here().join("include"))
            .arg(file),
    );
}

#[test]
fn a_wrong_declaration_would_be_refused() {
    let file = folder("header").join("wrong.c");
    let source = "#include <conset.h>\nint conset_image_cells(const conset_image *);\n";
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-fsyntax-only").arg("-I").arg(here().join("include")).arg(file);
    assert!(!crate::tools::run(&mut compiler).status.success());
}

#[test]
fn the_header_is_c99_and_cpp() {
    let include = here().join("include/conset.h");
    for (compiler, language, standard) in
        [("cc", "c", "-std=c99"), ("cc", "c", "-std=c17"), ("c++", "c++", "-std=c++11")]
    {
        if !crate::tools::have(compiler, "the header in C++") {
            continue;
        }
        succeed(
            Command::new(compiler)
                .args(["-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
                .arg("-fsyntax-only")
                .arg(&include),
        );
    }
}

/// The table of Rust's calls and C's has every function that does something in a run, and none that
/// is not there.
#[test]
fn the_readme_names_what_there_is() {
    let readme = read("README.md");
    let functions = functions();
    let structures = ["conset_options", "conset_report"];
    let words = readme.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("conset_")).collect();
    for name in &named {
        assert!(functions.contains_key(*name) || structures.contains(name), "no {name}");
    }
    for (name, function) in &functions {
        let of_cell = |(_, c): &(String, String)| {
            ["conset_cell ", "conset_epoch "].iter().any(|of| c.starts_with(of))
        };
        assert!(
            !function.arguments.first().is_some_and(of_cell) || named.contains(name.as_str()),
            "README.md has no {name}"
        );
    }
}

/// No call of a cell in Rust is missing in the table, so that none is forgotten here.
#[test]
fn the_readme_names_what_rust_has() {
    let readme = read("README.md");
    let words = readme.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: BTreeSet<&str> = words.collect();
    // The image is a handle of its own; numbers of positions come from layouts.
    let apart = ["image", "layout", "is_empty", "transport", "try_run", "new"];
    let sources = [
        ("cell.rs", "impl<'w> Cell<'w> {"),
        ("world.rs", "impl World {"),
        ("plan/mod.rs", "impl Plan {"),
        ("plan/mod.rs", "impl Cell<'_> {"),
        ("plan/combine.rs", "impl Cell<'_> {"),
        ("plan/nonblocking.rs", "impl Cell<'_> {"),
        ("collectives/mod.rs", "impl Collectives {"),
        ("collectives/mod.rs", "impl Cell<'_> {"),
        ("collectives/live/mod.rs", "impl Cell<'_> {"),
        ("collectives/live/reduce.rs", "impl Cell<'_> {"),
        ("messages.rs", "impl Cell<'_> {"),
        ("epochs/mod.rs", "impl<I: Item> Outbox<I> {"),
        ("epochs/mod.rs", "impl<'w> Cell<'w> {"),
        ("epochs/mod.rs", "impl<'w, I: Item> Epoch<'_, 'w, I> {"),
        ("epochs/sized.rs", "impl Cell<'_> {"),
        ("epochs/record.rs", "impl Cell<'_> {"),
        ("layout/mod.rs", "impl Layout {"),
        ("layout/shared.rs", "impl Layout {"),
        ("layout/owned.rs", "impl Layout {"),
        ("layout/csr.rs", "impl LocalCsr {"),
    ];
    for (file, head) in sources {
        let text = read(&format!("../runtime/src/{file}"));
        let (_, body) = text.split_once(head).unwrap_or_else(|| panic!("{file}: no `{head}`"));
        let body = body.split("\n}\n").next().unwrap();
        let mut found = 0;
        for piece in body.split("\n    pub fn ").skip(1) {
            let name = piece.split(['(', '<']).next().unwrap();
            assert!(named.contains(name) || apart.contains(&name), "README.md has no {name}");
            found += 1;
        }
        assert!(found > 0, "{file}: no functions");
    }
}

/// Texts of errors advise nothing that C has not: options of the command line stand in the few
/// places that C cannot reach, or are put into other words in `remedy`.
#[test]
fn errors_do_not_speak_of_the_command_line() {
    let crates =
        ["conset-ir", "partition-route", "scheduler", "verify", "codegen", "fabric", "runtime"];
    for name in crates {
        let mut folders = vec![here().join("..").join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("tests.rs") {
                    check_advice(&path);
                }
            }
        }
    }
}

fn check_advice(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    // These are `Fix`es.
    let known = |line: &str| path.ends_with("conset-ir/src/error.rs") && line.contains("(f, \"");
    for line in code.filter(|line| !known(line)) {
        let option = line.split("--").skip(1).any(|rest| rest.starts_with(char::is_alphabetic));
        assert!(!option, "{}: C's users have no options: {line}", path.display());
    }
}
