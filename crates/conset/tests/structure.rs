//! The invariants of `docs/architecture.md`, as tests over the source tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the stages: pure functions from values to values.
const STAGES: [&str; 8] =
    ["conset-ir", "mesh", "partition-route", "planner", "scheduler", "verify", "codegen", "fabric"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap_or_else(|e| panic!("{}: {e}", at.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{} has no sources", folder.display());
    found
}

/// The `conset*` packages in a manifest's `[dependencies]`.
fn own_dependencies(folder: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join("crates").join(folder).join("Cargo.toml"));
    let manifest = manifest.unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap();
    section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| name.starts_with("conset"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dependencies_point_down_and_stages_do_not_know_each_other() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("conset-ir", &[][..]),
        ("mesh", &["conset-ir"]),
        ("partition-route", &["conset-ir"]),
        ("scheduler", &["conset-ir"]),
        ("planner", &["conset-ir", "conset-partition-route"]),
        ("verify", &["conset-ir"]),
        ("codegen", &["conset-ir", "conset-verify"]),
        ("fabric", &["conset-ir"]),
        ("second-simulator", &["conset-ir"]),
        ("runtime", &["conset-ir", "conset-fabric"]),
    ]);
    for (folder, allowed) in allowed {
        for dependency in own_dependencies(folder) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "crates/{folder} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn every_module_opens_with_an_essay() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        for (path, text) in sources(&entry.unwrap().path().join("src")) {
            assert!(text.starts_with("//!"), "{} does not say what it is", path.display());
        }
    }
}

/// The first sentence of a module's essay, without links.
fn sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let words: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let words = words.join(" ").replace("[`", "`").replace("`]", "`");
    let end = words.find(". ").map_or(words.len(), |end| end + 1);
    words[..end].replace('|', "\\|")
}

/// Every module of every crate with its first sentence, as `docs/modules.md` has it.
fn module_map() -> String {
    let mut map =
        "# Modules\n\nWhat each module is, by the first sentence of its own text. Written \
        by `CONSET_BLESS=1 cargo test -p conset --test structure`.\n"
            .to_owned();
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut rows = BTreeMap::new();
        for (path, text) in sources(&folder.join("src")) {
            let path = path.strip_prefix(folder.join("src")).unwrap().with_extension("");
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            if parts.iter().any(|part| part == "tests") {
                continue;
            }
            let parts = match parts.split_last() {
                Some((last, folders)) if last == "mod" => folders,
                _ => &parts[..],
            };
            rows.insert(parts.join("::"), sentence(&text));
        }
        let root = rows.remove("lib").or_else(|| rows.remove("main")).expect("a root");
        map += &format!("\n## `crates/{name}`\n\n{root}\n");
        if !rows.is_empty() {
            map += "\n| module | what it is |\n|---|---|\n";
            rows.iter().for_each(|(name, is)| map += &format!("| `{name}` | {is} |\n"));
        }
    }
    map
}

#[test]
fn the_map_of_modules_is_that_of_the_tree() {
    let path = root().join("docs/modules.md");
    if std::env::var_os("CONSET_BLESS").is_some() {
        fs::write(&path, module_map()).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == module_map(), "docs/modules.md is old: CONSET_BLESS=1 writes it anew");
}

#[test]
fn stages_open_no_files_print_nothing_and_read_no_clock() {
    let forbidden = ["std::fs", "println!", "eprintln!", "Instant::now", "SystemTime", "std::env"];
    for folder in STAGES {
        for (path, text) in sources(&root().join("crates").join(folder).join("src")) {
            // Tests may: they are no part of the stage.
            let code = text.split("#[cfg(test)]").next().unwrap();
            if path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "tests.rs") {
                continue;
            }
            for word in forbidden {
                let used = code
                    .lines()
                    .any(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                assert!(!used, "{} uses {word}", path.display());
            }
        }
    }
}

/// The compiler refuses `unsafe` code in every crate but the runtime and the C interface, and in
/// the command outside of its allocator.
/// A hyphenated option in a line of code (not in a comment): `"--parts"`, `use --seed`.
fn names_an_option(line: &str) -> bool {
    let code = line.trim_start();
    let is_option = |tail: &str| tail.starts_with(|c: char| c.is_ascii_lowercase());
    !code.starts_with("//") && code.split("--").skip(1).any(is_option)
}

#[test]
fn only_the_command_knows_its_options() {
    assert!(names_an_option("    .help(\"leave out --parts\")"));
    assert!(!names_an_option("    // --parts") && !names_an_option("a -- b"));
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        // C names the options of its own install script; test programs call the command.
        if folder.ends_with("cli") || folder.ends_with("c") || folder.ends_with("testing") {
            continue;
        }
        for (path, text) in sources(&folder.join("src")) {
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let is_tests = path.ends_with("tests.rs");
            let lines = code.lines().filter(|line| !is_tests && names_an_option(line));
            found.extend(lines.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }
    assert!(found.is_empty(), "write `<parts>`, not `--parts`:\n{}", found.join("\n"));
}

#[test]
fn unsafe_code_is_forbidden_outside_of_the_runtime_and_the_c_interface() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        if folder.ends_with("runtime") || folder.ends_with("c") {
            continue;
        }
        let read = |name: &str| fs::read_to_string(folder.join("src").join(name));
        let (text, lint) = match read("lib.rs") {
            Ok(text) => (text, "#![forbid(unsafe_code)]"),
            Err(_) => (read("main.rs").unwrap(), "#![deny(unsafe_code)]"),
        };
        assert!(text.lines().any(|line| line == lint), "{}: {lint}", folder.display());
    }
}

/// The ordinary run of the property tests is the same everywhere: the seed comes from
/// `.cargo/config.toml`, which `.ci/deep` overrides, and no test has a way around it.
#[test]
fn property_tests_take_their_seed_from_outside() {
    let seed = std::env::var("PROPTEST_RNG_SEED").expect("cargo sets it, by .cargo/config.toml");
    assert!(seed.parse::<u64>().is_ok(), "PROPTEST_RNG_SEED={seed}");
    assert!(std::env::var_os("PROPTEST_DISABLE_FAILURE_PERSISTENCE").is_some());
    // In two pieces, so that this file does not find itself.
    let wrong = [concat!("RngSeed", "::"), concat!("TestRunner", "::"), concat!("rng_", "seed:")];
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        for (path, text) in sources(&folder.unwrap().path()) {
            let found = wrong.iter().find(|&&wrong| text.contains(wrong));
            assert!(found.is_none(), "{}: {found:?} beside the seed of all", path.display());
        }
    }
}
