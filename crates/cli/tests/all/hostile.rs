//! The `conset` command among closed, full and odd files, and with less memory than it wants: it ends
//! with a line and an exit code, and what was there before is there after.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use crate::calls::{self, Outcome};

/// Runs a line of shell, in which `conset` is the command, in `folder`. Names of files need not be UTF-8.
fn shell_in(folder: &Path, line: &str) -> Outcome {
    let output = calls::shell_in(folder, line).output().unwrap();
    Outcome {
        code: output.status.code().expect("not killed"),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Wants this exit code and these words in one line on standard error.
#[track_caller]
fn ends(folder: &Path, line: &str, code: i32, words: &[&str]) {
    let outcome = shell_in(folder, line);
    assert_eq!(outcome.code, code, "{line}\n{}", outcome.stderr);
    let told = |text: &str| words.iter().all(|word| text.contains(word));
    assert!(outcome.stderr.lines().any(told), "{line}: {words:?}\n{}", outcome.stderr);
}

const LARGE: &str = "pattern:all-to-all --machine torus:32x32";

#[test]
fn what_needs_more_memory_than_allowed_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for line in [
        format!("conset run {LARGE} --memory 20MB"),
        format!("ulimit -v 600000; conset run {LARGE} --memory 1TB"),
        format!("ulimit -d 50000; conset run {LARGE}"),
        format!("ulimit -c unlimited; conset compile {LARGE} -o a.json --memory 30MiB"),
    ] {
        let outcome = shell_in(at, &line);
        assert_eq!(outcome.code, 1, "{line}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{line}: {}", outcome.stderr);
        for word in ["out of memory", "allowed", "--memory", "pattern:all-to-all"] {
            assert!(outcome.stderr.contains(word), "{line}: {}", outcome.stderr);
        }
        assert_eq!(fs::read_dir(at).unwrap().count(), 0, "{line}");
    }
    assert_eq!(shell_in(at, "conset run pattern:torus --memory 100MB").code, 0);
    for size in ["0", "1e9", "-1GB", "4 XB", "lots", "\"\""] {
        assert_eq!(shell_in(at, &format!("conset machines --memory {size}")).code, 2, "{size}");
    }
}

#[test]
fn inputs_without_end_and_partitions_without_room_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let words = ["/dev/zero", "more than 38.1 MiB, the greatest size of an input"];
    ends(at, "conset run /dev/zero --memory 80MB", 2, &words);
    ends(at, "conset run - --memory 80MB </dev/zero", 2, &["<stdin>", "38.1 MiB"]);
    ends(at, "yes | conset verify - --memory 80MB", 2, &["<stdin>", "38.1 MiB"]);
    assert_eq!(shell_in(at, "conset generate plate:300x300 -o a.msh").code, 0);
    // Somewhere on the way, which may be in METIS, there is no more. Never a crash.
    for megabytes in (16..50).step_by(3) {
        let outcome = shell_in(at, &format!("conset bound a.msh --memory {megabytes}MB"));
        assert!((0..=2).contains(&outcome.code), "{megabytes} MB: {}", outcome.stderr);
        let told = ["a.msh", "emory"].iter().all(|word| outcome.stderr.contains(word));
        assert!(outcome.code == 0 || told, "{megabytes} MB: {}", outcome.stderr);
    }
    ends(at, "conset bound a.msh --memory 8MB", 2, &["a.msh", "the greatest size of an input"]);
    assert_eq!(shell_in(at, "conset bound a.msh --memory 300MB").code, 0);
}

#[test]
fn a_closed_or_full_output_is_an_error_and_a_reader_that_leaves_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let closed = ["<stdout>", "it is closed"];
    ends(at, "conset compile pattern:torus -o - >&-", 2, &closed);
    ends(at, "conset machines >&-", 2, &closed);
    ends(at, "conset machines --json >&-", 2, &closed);
    ends(at, "conset generate plate -o - >&-", 2, &closed);
    // With other files closed as well, and with one opened in its place.
    ends(at, "conset machines >&- <&-", 2, &closed);
    assert_eq!(shell_in(at, "conset machines >&- 2>&- <&-").code, 2);
    assert_eq!(shell_in(at, "conset machines >/dev/null 2>&- <&-").code, 0);
    assert_eq!(shell_in(at, "conset machines 1<>/dev/null").code, 0);
    let full = ["No space left"];
    ends(at, "conset machines >/dev/full", 2, &full);
    ends(at, "conset generate plate -o /dev/full", 2, &full);
    ends(at, "conset run pattern:torus --trace /dev/full", 2, &full);
    assert_eq!(shell_in(at, "conset --help >/dev/full").code, 2);
    // Nobody hears the error, but the exit code is the same.
    assert_eq!(shell_in(at, "conset run none.msh 2>/dev/full").code, 2);
    assert_eq!(shell_in(at, "conset run none.msh 2>&-").code, 2);
    let head = "set -o pipefail; conset generate plate:200x200 -o - | head -n 1";
    let outcome = shell_in(at, head);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{}", outcome.stdout);
    assert_eq!(outcome.stdout, "$MeshFormat\n");
}

#[test]
fn a_failing_write_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("old.json"), "precious").unwrap();
    // A limit on the size of files fails the write in its middle; its signal must not end us.
    let line = "trap '' XFSZ; ulimit -f 4; conset compile pattern:torus -o old.json";
    ends(at, line, 2, &["old.json", "File too large"]);
    assert_eq!(fs::read_to_string(at.join("old.json")).unwrap(), "precious");
    assert_eq!(shell_in(at, "conset run pattern:torus --max-phases 0 -o old.json").code, 2);
    let line = format!("conset compile {LARGE} --memory 20MB -o old.json");
    ends(at, &line, 1, &["out of memory"]);
    assert_eq!(fs::read_to_string(at.join("old.json")).unwrap(), "precious");
    assert_eq!(fs::read_dir(at).unwrap().count(), 1);
}

#[test]
fn odd_names_and_kinds_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    ends(at, "conset compile pattern:torus -o new.json/", 2, &["the name of a folder"]);
    ends(at, "conset run .", 2, &["this is a folder"]);
    ends(at, "conset run ''", 2, &["cannot be read"]);
    ends(at, "conset run -- -x.msh", 2, &["-x.msh", "cannot be read"]);
    ends(at, "ln -s ring ring; conset run ring", 2, &["ring", "cannot be read"]);
    ends(at, "conset run $'\\xff.msh'", 2, &["cannot be read"]);
    ends(at, "touch $'\\xff'; conset verify $'\\xff'", 2, &["the file is empty"]);
    let made = shell_in(at, "conset compile pattern:torus -q -o $'\\xfe.json'");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(shell_in(at, "conset verify $'\\xfe.json'").code, 0);
    // A link to nothing is written through, and stays a link.
    let made = shell_in(at, "ln -s real.json link.json; conset compile pattern:torus -o link.json");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(fs::symlink_metadata(at.join("link.json")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(at.join("real.json")).unwrap().is_file());
    // Pipes with names are read to their end, and written to.
    let line = "mkfifo in.msh out.json; conset generate plate:3x3 -o - >in.msh & \
        conset bound in.msh && (cat out.json >got.json & conset compile pattern:torus -o out.json \
        && wait $!) && conset verify got.json";
    let outcome = shell_in(at, line);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}
