//! The commands of README.md run from the top, in the order in which they stand there, and print what is
//! shown below them.
#![cfg(unix)]

use crate::calls;

/// A command of a console block, and the output below it.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// The commands of all console blocks that begin with `conset`.
fn commands(text: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut is_console = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if is_console && let Some(command) = line.strip_prefix("$ ") {
            // The remark behind a command is a comment of the shell.
            shown.push(Shown { command: command.to_owned(), output: Vec::new() });
        } else if is_console && let Some(last) = shown.last_mut() {
            last.output.push(line.to_owned());
        }
    }
    shown.retain(|shown| shown.command.starts_with("conset "));
    shown
}

/// Without the times of the computer, and the blanks at the end.
fn comparable(line: &str) -> String {
    let is_timed = ["compiled and verified in ", "stages "].iter().any(|s| line.starts_with(s));
    let is_time = |word: &str| is_timed && word.parse::<f64>().is_ok();
    let words = line.trim_end().split(' ').map(|word| if is_time(word) { "_" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_works_in_order_and_prints_what_is_shown() {
    let text = std::fs::read_to_string(calls::root().join("README.md")).unwrap();
    let commands = commands(&text);
    assert!(commands.iter().filter(|shown| !shown.output.is_empty()).count() >= 3);
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    for Shown { command, output } in &commands {
        let mut shell = calls::shell_in(folder.path(), command);
        let done = shell.env("HOME", home.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{command}\n{errors}");
        if !output.is_empty() {
            let printed = String::from_utf8_lossy(&done.stdout);
            let printed: Vec<String> = printed.lines().map(comparable).collect();
            let shown: Vec<String> = output.iter().map(|line| comparable(line)).collect();
            assert_eq!(printed, shown, "{command}");
        }
    }
}
