//! What people see: the text output of every subcommand on small inputs, and its help.
//!
//! Each file of `tests/golden` is a session: lines `$ conset ...`, each followed by its output
//! (standard output, then standard error) and its exit code if that is not 0. The commands of a file
//! run in order in one folder, which has the files of `fixtures/meshes` and `fixtures/cases`. To add
//! a case, add its `$ conset` line; `CONSET_BLESS=1 cargo test -p conset-cli --test golden` writes the
//! outputs. Times are replaced by `_`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Replaces the times in a line that reports how long something took.
fn without_times(line: &str) -> String {
    let is_timed = ["compiled and verified in ", "stages "].iter().any(|s| line.starts_with(s));
    if !is_timed {
        return line.to_owned();
    }
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let words = line.split(' ').map(|word| if is_number(word) { "_" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The session that the commands of a golden file give.
fn session(commands: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for entry in ["meshes", "cases"].iter().flat_map(|f| fixtures.join(f).read_dir().unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let mut text = String::new();
    for command in commands.lines().filter_map(|line| line.strip_prefix("$ conset")) {
        let output = Command::new(env!("CARGO_BIN_EXE_conset"))
            .args(command.split_whitespace())
            .current_dir(folder.path())
            .output()
            .unwrap();
        writeln!(text, "$ conset{command}").unwrap();
        for stream in [&output.stdout, &output.stderr] {
            for line in std::str::from_utf8(stream).unwrap().lines() {
                writeln!(text, "{}", without_times(line).trim_end()).unwrap();
            }
        }
        match output.status.code() {
            Some(0) => (),
            code => writeln!(text, "exit code {}", code.expect("not killed")).unwrap(),
        }
        text.push('\n');
    }
    text
}

#[test]
fn every_subcommand_prints_what_it_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut changed = String::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let golden = std::fs::read_to_string(&path).unwrap();
        let now = session(&golden);
        if std::env::var_os("CONSET_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else if now != golden {
            let lines = now.lines().zip(golden.lines().chain(std::iter::repeat("")));
            let first = lines.clone().position(|(a, b)| a != b).unwrap_or(now.lines().count());
            let here = lines.skip(first).take(5).map(|(a, b)| format!("  is  {a}\n  was {b}\n"));
            let name = path.file_name().unwrap().to_string_lossy();
            writeln!(changed, "{name}, line {}:\n{}", first + 1, here.collect::<String>()).unwrap();
        }
    }
    assert!(changed.is_empty(), "{changed}CONSET_BLESS=1 takes the new outputs");
}
