//! Calls of the command, as its users make them: exit codes and output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// What a call of the command ended with.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            code: status.code().expect("not killed"),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }
}

/// Runs `conset` with words split at blanks, in `folder`.
pub(crate) fn conset_in(folder: &Path, words: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conset"));
    Outcome::of(command.args(words.split_whitespace()).current_dir(folder))
}

/// A shell in which `conset` is the command, with a line to run, in `folder`.
pub(crate) fn shell_in(folder: &Path, line: &str) -> Command {
    let line = format!("conset() {{ \"{}\" \"$@\"; }}\n{line}", env!("CARGO_BIN_EXE_conset"));
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(folder);
    command
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs in `folder` and wants success; returns standard output.
#[track_caller]
pub(crate) fn done_in(folder: &Path, words: &str) -> String {
    let outcome = conset_in(folder, words);
    assert_eq!(outcome.code, 0, "conset {words}\n{}", outcome.stderr);
    outcome.stdout
}

/// Runs at the root of the checkout and wants success.
#[track_caller]
pub(crate) fn done(words: &str) -> String {
    done_in(&root(), words)
}

pub(crate) fn json(words: &str) -> Value {
    serde_json::from_str(&done(&format!("{words} --json"))).unwrap()
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
