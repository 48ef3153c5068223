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

/// Runs `conset` with words split at blanks, in `folder`.
pub(crate) fn conset_in(folder: &Path, words: &str) -> Outcome {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    Outcome {
        code: status.code().expect("not killed"),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs at the root of the checkout and wants success.
pub(crate) fn done(words: &str) -> String {
    let outcome = conset_in(&root(), words);
    assert_eq!(outcome.code, 0, "conset {words}\n{}", outcome.stderr);
    outcome.stdout
}

pub(crate) fn json(words: &str) -> Value {
    serde_json::from_str(&done(&format!("{words} --json"))).unwrap()
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
