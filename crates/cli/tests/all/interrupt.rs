//! Signals: a search that is interrupted keeps its best plan, a soak test says what it did.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The bit of SIGINT in the masks of `/proc/PID/status`.
const SIGINT: u64 = 1 << 1;

fn conset(folder: &Path, words: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the process handles SIGINT, which it does from the beginning of a search.
fn wait_for_handler(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    loop {
        assert!(child.try_wait().unwrap().is_none(), "ended before it was interrupted");
        let text = fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT != 0 {
            return;
        }
        std::thread::yield_now();
    }
}

fn signal(name: &str, child: &Child) {
    let done = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn an_interrupted_search_writes_its_best_plan() {
    let folder = tempfile::tempdir().unwrap();
    // Without the signal this would last for an hour.
    let words = "compile pattern:all-to-all --machine torus:5x7 --words 40 --time-limit 3600 -o a.json --json";
    let mut child = conset(folder.path(), words);
    wait_for_handler(&mut child);
    signal("-INT", &child);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("interrupted: keeping the best plan"), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sets"][0]["search"]["ended"], "interrupted");
    let verified = conset(folder.path(), "verify a.json").wait_with_output().unwrap();
    assert!(verified.status.success());
}

#[test]
fn a_terminated_soak_test_says_what_it_did() {
    for name in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        // Without the signal this would last for a day.
        let mut child = conset(folder.path(), "soak --hours 24 --json");
        wait_for_handler(&mut child);
        signal(name, &child);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["interrupted"], true);
        // Programs are numbered from 1.
        assert_eq!(report["programs"].as_u64().unwrap(), report["last_seed"].as_u64().unwrap_or(0));
    }
}
