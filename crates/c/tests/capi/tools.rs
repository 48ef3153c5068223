//! Compilers and what they make: found, run, their words kept.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crate's own folder.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the crate.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(here().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The texts of a folder's files of a kind, in the order of their names.
pub(crate) fn files(folder: &str, kind: &str) -> Vec<String> {
    let entries = std::fs::read_dir(here().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == kind));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A folder of its own for a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether there is such a command; if not, says on the test's standard error, which is not
/// captured, that something is left out.
pub(crate) fn have(command: &str, what: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED {what}: there is no `{command}`");
    }
    found
}

/// What a command printed on standard output; it must succeed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?} ended with {}:\n{}", output.status, all(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command, for so long at most.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// All that it printed.
pub(crate) fn all(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// A program that is ended if it takes too long.
pub(crate) fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "300"]).arg(program);
    command
}
