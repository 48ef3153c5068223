//! Files in which one number is one at which a type, a format or a limit ends: every subcommand ends
//! with exit code 0, 1 or 2, and soon.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use conset::CompileError;
use conset_ir::Document;

/// A run of any subcommand on one of these files is over after this.
const SOON: Duration = Duration::from_secs(60);

const BOUNDARIES: [&str; 11] = [
    "0",
    "1",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740992",
    "2305843009213693952",
    "4611686018427387904",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
];

const SET: &str = "conset set 1
machine ring:3
  streams 2
set a
  x0 c0 -> c1 words 7 min_bandwidth 20
  x1 c0 -> c2 words 7 max_latency 900
  order x0 before x1
";

const SCHEDULE: &str = "conset schedule 1
machine ring:3
  streams 1
set a
  x0 c0 -> c1 words 7 min_bandwidth 20
  x1 c2 -> c2 words 3
  phase p0 makespan 20
    route x0 c0/ch0 -> c1/ch0 start 6 duration 14
  phase p1 makespan 6
    route x1 c2/ch0 start 0 duration 6
  bounds phases 1 clocks 530
  predicted_clocks 1082
set b
  x0 c0 -> c1 words 7
  phase p0 makespan 14
    route x0 c0/ch0 -> c1/ch0 start 0 duration 14
  bounds phases 1 clocks 530
  predicted_clocks 542
";

const JSON: &str = r#"{"format": "conset-schedule", "version": 1,
 "machine": {"name": "iwarp", "topology": {"kind": "torus", "dims": [2, 2]}, "channels_per_cell": 12,
             "clocks": {"link_per_word": 2, "access_per_word": 2, "sync": 352, "phase": 176}},
 "origin": {"generator": "conset", "algorithm": "best", "seed": 1},
 "sets": [{"name": "halo",
   "connections": [{"id": 0, "source": 2, "target": 3, "words": 133}],
   "phases": [{"routes": [{"connection": 0, "cells": [2, 3], "channels": [0, 5]}],
               "timetable": [{"connection": 0, "start": 0, "duration": 266}], "makespan": 266}],
   "bounds": {"phases": 1, "clocks": 794}, "predicted_clocks": 798}]}"#;

const IMAGE: &str = "conset image 1
machine ring:3
  channels_per_cell 4
  streams 1
  duplex half
set s0
  x0 c0 -> c1 words 3
  x1 c2 -> c2 words 5
  phase p0
    cell c0
      ch0 from x0 to c1/ch2
      send x0 ch0 words 3 first_word 0 start 4
    cell c1
      ch2 from c0 to x0
      receive x0 ch2 words 3 first_word 0 start 4
    cell c2
      ch1 from x1 to x1
      send x1 ch1 words 5 first_word 0 start 0
      receive x1 ch1 words 5 first_word 0 start 0
";

/// Runs `conset` in `folder`; its exit code and what it printed as errors.
fn conset(folder: &Path, words: &str) -> (i32, String) {
    let errors = fs::File::create(folder.join("stderr")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > SOON {
            child.kill().unwrap();
            panic!("conset {words} does not end");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let errors = fs::read_to_string(folder.join("stderr")).unwrap();
    (status.code().unwrap_or_else(|| panic!("conset {words} was killed: {errors}")), errors)
}

/// Runs a subcommand that may refuse the file, and must not break.
fn survives(folder: &Path, words: &str, text: &str) -> i32 {
    let (code, errors) = conset(folder, words);
    assert!((0..=2).contains(&code), "conset {words}: exit code {code}\n{errors}\n{text}");
    code
}

/// Where the whole numbers of a text are, those that are part of an id included.
fn numbers_in(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// Whether the checker accepts the file, in this process: most are refused at once.
fn is_accepted(text: &str) -> Option<bool> {
    match Document::parse_any("f", text.as_bytes()).ok()? {
        Document::Schedule(schedule) => Some(conset::verify::check_schedule(&schedule).is_ok()),
        Document::Image(image) => Some(conset::verify::check_image(&image).is_ok()),
        Document::Program { .. } => Some(true),
        _ => None,
    }
}

/// The views of schedules of phases that need no argument, by the help.
fn views() -> Vec<String> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_conset")).args(["show", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let rows = help.lines().skip_while(|line| *line != "WHAT is:").skip(1);
    let rows = rows.map_while(|line| line.strip_prefix("  "));
    let rows = rows.filter(|row| !row.ends_with("[of steps]"));
    let names = rows.filter_map(|row| row.split("  ").next()).filter(|name| !name.contains(' '));
    let views: Vec<String> = names.map(str::to_owned).collect();
    assert!(views.len() > 10 && views.contains(&"gantt".to_owned()), "{views:?}");
    views
}

/// Every subcommand on a compiled file that the checker accepts. That it may be refused all the same
/// would be a difference between the checker and those who rely on it.
fn all_subcommands(folder: &Path, name: &str, base: &str, text: &str) {
    static VIEWS: OnceLock<Vec<String>> = OnceLock::new();
    let views = VIEWS.get_or_init(views);
    let mut commands: Vec<String> =
        views.iter().map(|view| format!("show {view} {name}")).collect();
    commands.extend([
        format!("verify {name}"),
        format!("show cell c0 {name}"),
        format!("diff {base} {name}"),
        format!("diff {name} {name}"),
        format!("run {name} --profile"),
        format!("emit {name} --format rust -o out-rust"),
        format!("emit {name} --format c -o out-c"),
    ]);
    for words in commands {
        assert_eq!(survives(folder, &words, text), 0, "conset {words}\n{text}");
    }
    // Not each of them has such a connection, a set of one name, or messages that get there.
    for words in [
        format!("show connection x0 {name}"),
        format!("why {name} x0"),
        format!("run {name} --compare messages --trace trace.json"),
        format!("bound {name}"),
    ] {
        survives(folder, &words, text);
    }
}

/// Changes each number of a file in turn.
fn try_all(base: &str, original: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join(base), original).unwrap();
    assert_eq!(is_accepted(original), Some(true), "{original}");
    let name = format!("changed-{base}");
    let (mut refused, mut accepted) = (0, 0);
    for range in numbers_in(original) {
        for number in BOUNDARIES {
            let mut text = original.to_owned();
            text.replace_range(range.clone(), number);
            if text == original {
                continue;
            }
            let outcome = is_accepted(&text);
            fs::write(folder.join(&name), &text).unwrap();
            match outcome {
                Some(true) if original.starts_with("conset set") => {
                    survives(folder, &format!("compile {name} -o out.json"), &text);
                    survives(folder, &format!("run {name} --compare messages"), &text);
                    survives(folder, &format!("bound {name}"), &text);
                    accepted += 1;
                }
                Some(true) => {
                    all_subcommands(folder, &name, base, &text);
                    accepted += 1;
                }
                // The commands read and check as this process did; now and then one is asked.
                _ => {
                    refused += 1;
                    if refused % 16 == 0 {
                        let code = survives(folder, &format!("run {name}"), &text);
                        assert_ne!(code, 0, "{text}");
                    }
                }
            }
        }
    }
    assert!(accepted > 5 && refused > 50, "{accepted} accepted, {refused} refused");
}

#[test]
fn numbers_of_a_set() {
    try_all("a.cset", SET);
}

#[test]
fn numbers_of_a_schedule_as_text() {
    try_all("s.cset", SCHEDULE);
}

#[test]
fn numbers_of_a_schedule_as_json() {
    try_all("s.json", JSON);
}

#[test]
fn numbers_of_an_image() {
    try_all("i.cset", IMAGE);
}

/// Numbers that fit together and are as large as the checker allows.
#[test]
fn the_latest_start_and_the_largest_claims_pass_through_every_subcommand() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("s.cset"), SCHEDULE).unwrap();
    let switches = 3 * 528 + 6 + 14;
    let start = (1u64 << 62) - switches - 14;
    let late = |start: u64| {
        SCHEDULE
            .replace("makespan 20", &format!("makespan {}", start + 14))
            .replace("start 6 duration 14", &format!("start {start} duration 14"))
    };
    let claims = late(start).replacen("clocks 1082", &format!("clocks {}", (1u64 << 62) - 600), 1);
    for text in [late(start), claims] {
        assert_eq!(is_accepted(&text), Some(true), "{text}");
        fs::write(folder.join("late.cset"), &text).unwrap();
        all_subcommands(folder, "late.cset", "s.cset", &text);
    }
    let text = late(start + 1);
    fs::write(folder.join("late.cset"), &text).unwrap();
    // It can be shown, with the violation first.
    assert_eq!(conset(folder, "show summary late.cset").0, 1);
    for subcommand in ["verify", "run"] {
        let (code, errors) = conset(folder, &format!("{subcommand} late.cset"));
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("4611686018427387905 clocks are planned"), "{errors}");
    }
}

/// The most words at the most clocks each: one such connection is compiled, more are refused.
#[test]
fn words_that_take_more_clocks_than_can_be_counted_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let set = |connections: usize| {
        let mut text = String::from(
            "conset set 1\nmachine ring:2\n  access_clocks_per_word 1000000000\nset a\n",
        );
        (0..connections).for_each(|_| text += "  c0 -> c1 words 1073741824\n");
        text
    };
    fs::write(folder.join("one.cset"), set(1)).unwrap();
    fs::write(folder.join("two.cset"), set(2)).unwrap();
    assert_eq!(survives(folder, "compile one.cset -o one.json", ""), 0);
    assert_eq!(survives(folder, "run one.json --compare messages", ""), 0);
    for subcommand in ["compile two.cset -o two.json", "bound two.cset", "run two.cset"] {
        let (code, errors) = conset(folder, subcommand);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("take 4294967"), "{errors}");
    }
}

/// What the test above takes for granted.
#[test]
fn a_refusal_of_the_checker_is_not_a_bug() {
    let Ok(Document::Schedule(schedule)) = Document::parse_any(
        "f",
        SCHEDULE.replace("start 6", "start 18446744073709551615").as_bytes(),
    ) else {
        panic!("any number of clocks is read");
    };
    let error = conset::Compiled::import(schedule, &mut |_| ()).unwrap_err();
    assert!(matches!(error, CompileError::Rejected(_)), "{error}");
}
