//! The `conset` command as its users meet it: real files, real exit codes, real output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `conset` with words split at blanks, in `folder`.
fn conset_in(folder: &Path, words: &str) -> Outcome {
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs at the root of the checkout and wants success.
fn done(words: &str) -> String {
    let outcome = conset_in(&root(), words);
    assert_eq!(outcome.code, 0, "conset {words}\n{}", outcome.stderr);
    outcome.stdout
}

fn json(words: &str) -> Value {
    serde_json::from_str(&done(&format!("{words} --json"))).unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_readmes_main_command_delivers_every_word() {
    let text = done("run fixtures/meshes/plate.msh");
    assert!(text.contains("each once, in order, at the right cell"), "{text}");
}

#[test]
fn batches_deliver_the_whole_set_beside_its_bound() {
    let words = "run pattern:all-to-all --machine torus:4x4 --words 64";
    let whole = &json(words)["sets"][0];
    let batches = &json(&format!("{words} --batches 4"))["sets"][0];
    for key in ["connections", "words", "word_hops", "bound_clocks", "bound_phases"] {
        assert_eq!(batches[key], whole[key], "{key}");
    }
    assert_eq!((&batches["batches"], &batches["payload_ok"]), (&4.into(), &true.into()));
    assert!(done(&format!("{words} --batches 4")).contains("240 connections in 4 batches"));
    let compiled = folder();
    let file = compiled.path().join("a.csi");
    done(&format!("compile pattern:torus -o {}", file.display()));
    let refused = conset_in(&root(), &format!("run {} --batches 2", file.display()));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("already compiled"), "{}", refused.stderr);
}

#[test]
fn a_run_prints_the_promised_object_and_is_the_same_every_time() {
    for input in ["pattern:torus", "pattern:hypercube", "fixtures/meshes/two_pieces.msh"] {
        let first = json(&format!("run {input}"));
        for key in
            ["phases", "measured_clocks", "predicted_clocks", "bound_clocks", "words", "word_hops"]
        {
            assert!(!first["sets"][0][key].is_null(), "{key} of {input}");
            assert!(!first["total"][key].is_null(), "{key} of {input}");
        }
        let total = &first["total"];
        assert_eq!(total["payload_ok"], true);
        assert!(total["measured_clocks"].as_u64() >= total["bound_clocks"].as_u64());
        assert_eq!(first, json(&format!("run {input}")));
    }
}

#[test]
fn phases_asked_for_are_reached() {
    for (input, paper, best) in
        [("pattern:torus", 1, 1), ("pattern:hypercube", 2, 2), ("pattern:all-to-all", 30, 27)]
    {
        for (words, most) in [("--algorithm paper", paper), ("--objective phases", best)] {
            let report = json(&format!("compile {input} {words}"));
            let phases = report["sets"][0]["phases"].as_u64().unwrap();
            assert!(phases <= most, "{input} {words}: {phases}");
        }
    }
}

#[test]
fn every_form_of_a_schedule_verifies_and_runs_alike() {
    let folder = folder();
    let plate = root().join("fixtures/meshes/plate.msh");
    let mut reports = Vec::new();
    for name in ["a.json", "a.cset", "a.csb", "a.csi"] {
        let compiled = conset_in(folder.path(), &format!("compile {} -o {name}", plate.display()));
        assert_eq!(compiled.code, 0, "{}", compiled.stderr);
        let verified = conset_in(folder.path(), &format!("verify {name}"));
        assert_eq!(verified.code, 0, "{}", verified.stderr);
        let run = conset_in(folder.path(), &format!("run {name} --json"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        reports.push(run.stdout);
        for what in ["summary", "phases", "routes", "timetable", "channels", "links", "contexts"] {
            let shown = conset_in(folder.path(), &format!("show {what} {name}"));
            assert_eq!(shown.code, 0, "{}", shown.stderr);
            assert!(!shown.stdout.is_empty());
        }
    }
    assert!(reports.windows(2).all(|pair| pair[0] == pair[1]));
    // The same input, options and seed give the same bytes.
    let again = conset_in(folder.path(), &format!("compile {} -o b.csb", plate.display()));
    assert_eq!(again.code, 0);
    let read = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.csb"), read("b.csb"));
}

#[test]
fn predictions_have_the_promised_keys() {
    let words = "predict pattern:all-to-all --machine cm5:8 --words 4";
    let plain = json(words);
    assert_eq!(plain["machine"]["cells"], 8);
    for key in ["protocol", "processors", "latency", "bisection", "packet_bytes", "setup"] {
        assert!(!plain["c3"][key].is_null(), "{key}");
    }
    let set = &plain["sets"][0];
    assert_eq!((&set["set"], &set["words"]), (&Value::from("all-to-all"), &Value::from(224)));
    assert_eq!(set["summaries"], Value::Array(Vec::new()));
    let measured = json(&format!("{words} --measure"));
    let set = &measured["sets"][0];
    let rows = set["rows"].as_array().unwrap();
    assert!(rows.len() >= 15, "{rows:?}");
    for (row, plain) in rows.iter().zip(plain["sets"][0]["rows"].as_array().unwrap()) {
        for key in ["method", "by", "steps_model", "measured"] {
            let left_out = key == "steps_model" && row["by"] == "messages";
            assert_eq!(row[key].is_null(), left_out, "{key} of {row}");
        }
        assert_eq!(row["c3"].is_null(), row["by"] == "phases", "{row}");
        assert_eq!(plain["method"], row["method"]);
        assert!(plain["measured"].is_null() && row["refused"].is_null(), "{row}");
        assert_eq!(plain["steps_model"]["value"], row["steps_model"]["value"]);
        assert_eq!(plain["steps_model"]["rank"], row["steps_model"]["rank"]);
    }
    let models = set["summaries"].as_array().unwrap();
    let names: Vec<&Value> = models.iter().map(|summary| &summary["model"]).collect();
    assert_eq!(names, ["c3", "paper", "steps"]);
    for key in
        ["methods", "median_error_percent", "worst_error_percent", "pairs", "choice_over_fastest"]
    {
        assert!(models.iter().all(|summary| summary[key].is_number()), "{key}");
    }
}

#[test]
fn the_json_schedule_has_the_promised_keys() {
    let folder = folder();
    std::fs::write(
        folder.path().join("one.cset"),
        "conset set 1\nset halo\n  c3 -> c4 words 133\n",
    )
    .unwrap();
    let compiled = conset_in(folder.path(), "compile one.cset -o one.json");
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    let text = std::fs::read_to_string(folder.path().join("one.json")).unwrap();
    let schedule: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schedule["format"], "conset-schedule");
    // Version 2 has the digest and the witnesses; the keys of version 1 are all there.
    assert_eq!(schedule["version"], 2);
    assert_eq!(schedule["machine"]["topology"]["dims"], serde_json::json!([8, 8]));
    let set = &schedule["sets"][0];
    assert_eq!(set["connections"][0]["words"], 133);
    assert_eq!(set["phases"][0]["routes"][0]["cells"], serde_json::json!([3, 4]));
    assert_eq!(set["phases"][0]["routes"][0]["channels"].as_array().unwrap().len(), 2);
    assert_eq!(set["phases"][0]["timetable"][0]["start"], 0);
    assert_eq!(set["bounds"]["phases"], 1);
}

/// Compiles the hypercube to a JSON value, lets `spoil` change it, and verifies the result.
fn verify_spoilt(spoil: impl FnOnce(&mut Value)) -> Outcome {
    let folder = folder();
    let compiled = conset_in(folder.path(), "compile pattern:hypercube -o h.json");
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    let path = folder.path().join("h.json");
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    spoil(&mut value);
    std::fs::write(&path, value.to_string()).unwrap();
    let run = conset_in(folder.path(), "run h.json");
    let verified = conset_in(folder.path(), "verify h.json");
    assert_eq!(run.code, verified.code, "run and verify agree\n{}", run.stderr);
    verified
}

#[test]
fn spoilt_schedules_are_rejected_with_the_rule_broken() {
    let untouched = verify_spoilt(|_| ());
    assert_eq!(untouched.code, 0, "{}", untouched.stderr);
    let booked_twice = verify_spoilt(|value| {
        let routes = value["sets"][0]["phases"][0]["routes"].as_array_mut().unwrap();
        let (cell, channel) = (routes[0]["cells"][0].clone(), routes[0]["channels"][0].clone());
        let other = routes.iter_mut().skip(1).find(|r| r["cells"][0] == cell).unwrap();
        other["channels"][0] = channel;
    });
    assert_eq!(booked_twice.code, 1, "{}", booked_twice.stderr);
    let lost = verify_spoilt(|value| {
        let phase = &mut value["sets"][0]["phases"][0];
        phase["routes"].as_array_mut().unwrap().pop();
        phase["timetable"].as_array_mut().unwrap().pop();
    });
    assert_ne!(lost.code, 0);
    let far = verify_spoilt(|value| {
        value["sets"][0]["phases"][0]["routes"][0]["cells"][0] = Value::from(36);
    });
    assert_eq!(far.code, 1, "{}", far.stderr);
    let late = verify_spoilt(|value| {
        value["sets"][0]["phases"][0]["makespan"] = Value::from(1);
    });
    assert_eq!(late.code, 1, "{}", late.stderr);
    let misspelt = verify_spoilt(|value| {
        value["sets"][0]["phases"][0]["makespam"] = Value::from(1);
    });
    assert_eq!(misspelt.code, 2, "{}", misspelt.stderr);
}

#[test]
fn former_names_of_options_still_work() {
    let folder = folder();
    for words in [
        "compile pattern:torus --machine iwarp:4x4 --set channels_per_cell=9 --algorithm best \
         --attempts 2 -o old.json",
        "compile pattern:torus --machine iwarp:4x4 --set channels_per_cell=9 --from old.json",
        "compile pattern:torus --reroutes 2 --algorithm paper",
        "show summary old.json --set-name torus",
        "emit old.json --lang c -o c",
        "run old.json --against messages",
    ] {
        let outcome = conset_in(folder.path(), words);
        assert_eq!(outcome.code, 0, "{words}: {}", outcome.stderr);
    }
}

#[test]
fn wrong_words_and_wrong_files_are_errors_that_help() {
    for (words, code, says) in [
        ("run nothing.msh", 2, "nothing.msh"),
        ("run pattern:all-to-al", 2, "all-to-all"),
        ("run pattern:torus --machine cray", 2, "iwarp"),
        ("run pattern:torus --param chanels_per_cell=3", 2, "channels_per_cell"),
        ("run pattern:torus --param channels_per_cell", 2, "KEY=VALUE"),
        ("run pattern:torus --words 0", 2, "words"),
        ("run pattern:torus --parts 8", 2, "--parts"),
        ("run fixtures/meshes/plate.msh --words 8", 2, "--words"),
        ("run CONTRIBUTING.md", 2, "--input-format"),
        ("run fixtures/meshes/plate.msh --parts 0", 2, "part"),
        ("run fixtures/meshes/plate.msh --parts 100", 1, "cells"),
        ("run fixtures/meshes/plate.msh --elements triangles", 2, "graph"),
        ("run fixtures/meshes/plate.msh --format metis-graph", 2, "plate.msh"),
        ("run pattern:hypercube --machine torus:3x5", 2, "two"),
        ("run pattern:torus --words -5", 2, "from 1 to 1073741824"),
        ("run pattern:torus --seed -1", 2, "from 0 to 18446744073709551615"),
        ("run pattern:torus --parts 1.5", 2, "from 1 to 1048576"),
        ("run pattern:torus --max-plans -1", 2, "from 1 to"),
        ("run pattern:torus --param streams=2 --param streams=3", 2, "twice"),
        ("run pattern:torus --param chanel_depth=3", 2, "did you mean `channel_depth`"),
        ("run pattern:torus --machine tours:4x4", 2, "did you mean `torus`"),
        ("run all-to-all", 2, "write pattern:all-to-all"),
        ("run shift:3,2", 2, "write pattern:shift:3,2"),
        ("run pattern:torus --algorithm paper --objective time", 2, "--objective"),
        ("run no/such/file.cset", 2, "check the path"),
        ("verify no/such/file.cset", 2, "check the path"),
        ("machines iwarp -o machine.txt", 2, ".toml"),
        ("patterns torus -o torus.csi", 2, "images"),
        ("diff - -", 2, "once"),
        ("reproduce 7", 2, "from 1 to 6"),
        ("compile pattern:hypercube --max-phases 1", 1, "fix"),
        ("compile pattern:torus -o out.xyz", 2, ".json"),
        ("compile pattern:torus -o no/such/folder/out.json", 2, "out.json"),
        ("verify fixtures/meshes/plate.msh", 2, "compile"),
        ("show phases fixtures/meshes/plate.msh", 2, "compile"),
        ("fly", 2, "unrecognized"),
    ] {
        let outcome = conset_in(&root(), words);
        assert_eq!(outcome.code, code, "conset {words}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "conset {words}\n{}", outcome.stderr);
        assert!(outcome.stdout.is_empty(), "conset {words}\n{}", outcome.stdout);
    }
}

#[test]
fn cells_that_are_dead_or_not_there_are_told_apart() {
    let folder = folder();
    let machine = "preset = \"iwarp\"\ndead_cells = [9]\n";
    std::fs::write(folder.path().join("m.toml"), machine).unwrap();
    for (cell, says, help) in [(9, "dead", "live cells"), (64, "c0 to c63", "iwarp:16x16")] {
        let text = format!("conset set 1\nset s\n  c1 -> c{cell} words 3\n");
        std::fs::write(folder.path().join("s.cset"), text).unwrap();
        for subcommand in ["compile", "bound", "compile --placement best"] {
            let wrong = conset_in(folder.path(), &format!("{subcommand} s.cset --machine m.toml"));
            assert_eq!(wrong.code, 2, "{}", wrong.stderr);
            assert!(wrong.stderr.contains(says) && wrong.stderr.contains(help), "{}", wrong.stderr);
        }
    }
}

#[test]
fn empty_files_are_said_to_be_empty_and_names_do_not_hide_a_schedule() {
    let folder = folder();
    for name in ["e", "e.json", "e.cset", "e.csi", "e.msh", "e.graph", "e.vtu"] {
        std::fs::write(folder.path().join(name), "").unwrap();
        for subcommand in ["compile", "verify"] {
            let wrong = conset_in(folder.path(), &format!("{subcommand} {name}"));
            assert_eq!(wrong.code, 2, "{subcommand} {name}");
            let says = ["is empty", "compile it first"];
            assert!(says.iter().any(|s| wrong.stderr.contains(s)), "{}", wrong.stderr);
            assert!(!wrong.stderr.contains("--format"), "{}", wrong.stderr);
        }
    }
    assert_eq!(conset_in(folder.path(), "compile pattern:torus -o t.json").code, 0);
    for name in ["plain", "t.msh", "t.toml"] {
        std::fs::copy(folder.path().join("t.json"), folder.path().join(name)).unwrap();
        let verified = conset_in(folder.path(), &format!("verify {name}"));
        assert_eq!(verified.code, 0, "{}", verified.stderr);
    }
}

#[test]
fn an_output_is_refused_before_the_work_where_it_could_not_be_written() {
    let folder = folder();
    let text = "conset set 1\nset s\n  c0 -> c1 words 3\n";
    std::fs::write(folder.path().join("s.cset"), text).unwrap();
    std::fs::create_dir(folder.path().join("dir.json")).unwrap();
    for (words, says) in [
        ("compile s.cset -o s.cset", "this is the input"),
        ("compile s.cset -o ./dir.json/../s.cset", "this is the input"),
        ("run s.cset --trace s.cset", "this is the input"),
        ("compile s.cset -o dir.json", "this is a folder"),
        ("compile s.cset -o none/s.json", "the folder none does not exist"),
        ("run s.cset --trace none/t.json", "the folder none does not exist"),
        ("generate plate -o none/p.msh", "the folder none does not exist"),
        ("patterns torus -o none/p.cset", "the folder none does not exist"),
    ] {
        let wrong = conset_in(folder.path(), words);
        assert_eq!(wrong.code, 2, "{words}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(says) && !wrong.stderr.contains(".tmp"), "{}", wrong.stderr);
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("s.cset")).unwrap(), text);
    assert_eq!(conset_in(folder.path(), "compile s.cset -o s.json").code, 0);
    let into_file = conset_in(folder.path(), "emit s.json --format c -o s.json");
    assert_eq!(into_file.code, 2);
    assert!(into_file.stderr.contains("expected a folder"), "{}", into_file.stderr);
}

#[test]
fn options_that_say_nothing_are_refused() {
    let folder = folder();
    let text = "conset set 1\nset a\n  c0 -> c1 words 3\nset b\n  c2 -> c1 words 3\n";
    std::fs::write(folder.path().join("two.cset"), text).unwrap();
    assert_eq!(conset_in(folder.path(), "compile two.cset -o two.json").code, 0);
    for (words, says) in [
        ("emit two.json --format rust --name x -o e", "--name"),
        ("emit two.json --format c --runtime x -o e", "--runtime"),
        ("emit two.json --format c --runtime-git x@y -o e", "--runtime-git"),
        ("emit two.json --format rust --runtime-git x -o e", "URL@REV"),
        ("emit two.json --format c --name 9a -o e", "letter"),
        ("show summary two.json --phase 0", "show phases"),
        ("show summary two.json --set c", "sets: a, b"),
        ("show phases two.json --phase 1", "p0 to p0"),
        ("show phases two.json --phase x", "3 or p3"),
        ("show cell -1 two.json", "not an id"),
        ("why two.json -1", "x0 to x0"),
    ] {
        let wrong = conset_in(folder.path(), words);
        assert_eq!(wrong.code, 2, "{words}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(says), "{words}: {}", wrong.stderr);
    }
    let one = conset_in(folder.path(), "show summary two.json --set b").stdout;
    assert!(one.contains("set      b") && !one.contains("set      a"), "{one}");
    assert!(one.contains("at most 1 channel on a cell, 1 route on a link"), "{one}");
    assert_eq!(conset_in(folder.path(), "show phases two.json --phase p0").code, 0);
}

#[test]
fn what_messages_cannot_reach_is_no_bug() {
    let folder = folder();
    let text = "conset set 1\nmachine graph:3\n  link c0 -> c1\n  link c1 -> c0\n  \
                link c2 -> c1\nset s\n  c2 -> c0 words 2\n";
    std::fs::write(folder.path().join("one_way.cset"), text).unwrap();
    assert_eq!(conset_in(folder.path(), "run one_way.cset").code, 0);
    let wrong = conset_in(folder.path(), "run one_way.cset --compare messages");
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("cannot be exchanged by messages"), "{}", wrong.stderr);
}

#[test]
fn every_subcommand_that_writes_a_file_says_so_in_text_and_json() {
    let folder = folder();
    for (words, name) in [
        ("compile pattern:torus", "t.json"),
        ("patterns torus", "t.cset"),
        ("machines iwarp", "m.toml"),
        ("generate plate", "p.msh"),
    ] {
        let words = format!("{words} -o {name}");
        let text = conset_in(folder.path(), &words);
        assert!(text.stdout.contains(&format!("wrote {name}")), "{words}: {}", text.stdout);
        let object = conset_in(folder.path(), &format!("{words} --json"));
        let object: Value = serde_json::from_str(&object.stdout).expect(&words);
        assert_eq!(object["output"], name, "{words}");
    }
    std::fs::write(folder.path().join("none.cset"), "conset set 1\n").unwrap();
    assert_eq!(conset_in(folder.path(), "bound none.cset").stdout, "no sets\n");
}

#[test]
fn options_that_would_change_what_is_compiled_are_refused() {
    let folder = folder();
    for name in ["a.json", "a.csi"] {
        assert_eq!(conset_in(folder.path(), &format!("compile pattern:torus -o {name}")).code, 0);
        assert_eq!(conset_in(folder.path(), &format!("run {name} --seed 3")).code, 0);
        let seeded = conset_in(folder.path(), &format!("compile {name} --seed 3"));
        assert!(seeded.code == 2 && seeded.stderr.contains("--seed"), "{}", seeded.stderr);
        for option in [
            "--machine iwarp",
            "--param channels_per_cell=9",
            "--parts 4",
            "--words 8",
            "--algorithm auto",
            "--objective time",
            "--rip-up-iterations 3",
            "--max-phases 3",
        ] {
            for subcommand in ["run", "compile"] {
                let outcome = conset_in(folder.path(), &format!("{subcommand} {name} {option}"));
                assert_eq!(outcome.code, 2, "{subcommand} {name} {option}\n{}", outcome.stderr);
                let named = option.split(' ').next().unwrap();
                assert!(outcome.stderr.contains(named), "{}", outcome.stderr);
            }
        }
    }
}

#[test]
fn a_failed_compile_leaves_the_old_output_alone() {
    let folder = folder();
    std::fs::write(folder.path().join("out.json"), "precious").unwrap();
    std::fs::write(folder.path().join("bad.cset"), "conset set 1\nset a\n  c0 > c1 words 3\n")
        .unwrap();
    let outcome = conset_in(folder.path(), "compile bad.cset -o out.json");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("bad.cset:3:"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_to_string(folder.path().join("out.json")).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn an_earlier_schedule_is_replaced_as_a_whole_or_not_at_all() {
    let folder = folder();
    let run = |words: &str| conset_in(folder.path(), words);
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let set = |rows: &str| format!("conset set 1\nmachine iwarp:4x4\nset s\n{rows}");
    let rows: String = (1..16).map(|cell| format!("  c0 -> c{cell} words 3\n")).collect();
    let text = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    text("a.cset", set("  c0 -> c1 words 3\n"));
    text("b.cset", set("  c0 -> c1 words 3\n  c1 -> c2 words 4\n"));
    text("bad.cset", set("  c0 > c1 words 3\n"));
    text("many.cset", set(&rows));
    assert_eq!(run("compile a.cset -o s.json").code, 0);
    let before = file("s.json");
    let names = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let there = names();
    for (code, words) in [
        (2, "compile bad.cset --reuse s.json -o s.json"),
        (1, "compile many.cset --reuse s.json -o s.json --max-phases 1"),
        (2, "compile b.cset --machine iwarp:4x5 --reuse s.json -o s.json"),
        (2, "compile b.cset --reuse s.json -o s.json --write-partition s.json"),
        (2, "compile b.cset --reuse s.json -o s.json --write-partition none/p.txt"),
    ] {
        let failed = run(words);
        assert_eq!(failed.code, code, "{words}: {}{}", failed.stdout, failed.stderr);
        assert_eq!((file("s.json"), names()), (before.clone(), there.clone()), "{words}");
    }
    assert_eq!(run("compile b.cset --reuse s.json -o other.json").code, 0);
    let replaced = run("compile b.cset --reuse s.json -o s.json");
    assert!(replaced.stdout.contains("1 connection kept"), "{}", replaced.stderr);
    assert_eq!(file("s.json"), file("other.json"));
}

#[test]
fn odd_machines_and_odd_sets_work() {
    for words in [
        "run pattern:all-to-all --machine torus:1",
        "run pattern:all-to-all --machine torus:2x2",
        "run pattern:torus --machine torus:2x5",
        "run pattern:torus --machine torus:2x1x3",
        "run pattern:all-to-all --machine fat-tree:16",
        "run pattern:all-to-all --machine hypercube:4",
        "run pattern:all-to-all --machine ring:7 --param duplex=half",
        "run pattern:all-to-all --machine mesh:3x3x2 --param streams=3 --param stream_setup=10",
        "run pattern:all-to-all --machine mesh:4x4 --param channels_per_cell=1",
        "run pattern:torus --param channel_depth=1 --param link_clocks_per_word=7",
        "run pattern:butterfly --machine iwarp-fem:4x4",
        "run fixtures/meshes/one_cell.msh",
        "run fixtures/meshes/box.msh --parts 1",
        "run fixtures/meshes/box.msh --machine iwarp-fem --parts 5",
    ] {
        let report = json(words);
        assert_eq!(report["total"]["payload_ok"], true, "{words}");
    }
    let folder = folder();
    let cases = [
        ("empty", "conset set 1\nset none\n"),
        ("self", "conset set 1\nset self\n  c0 -> c0 words 5\n  c0 -> c1 words 2\n"),
        ("two", "conset set 1\nset a\n  c0 -> c1 words 5\nset b\n  c1 -> c0 words 2\n"),
        ("nothing", "conset set 1\n"),
    ];
    for (name, text) in cases {
        std::fs::write(folder.path().join(format!("{name}.cset")), text).unwrap();
        for machine in ["iwarp", "iwarp-fem:2x2"] {
            let words = format!("run {name}.cset --json --machine {machine}");
            let outcome = conset_in(folder.path(), &words);
            assert_eq!(outcome.code, 0, "{words}\n{}", outcome.stderr);
            let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
            assert_eq!(report["total"]["payload_ok"], true, "{words}");
        }
    }
}

#[test]
fn every_subcommand_explains_itself_with_an_example() {
    for subcommand in [
        "compile",
        "run",
        "show",
        "why",
        "diff",
        "verify",
        "bound",
        "emit",
        "reproduce",
        "machines",
        "tune",
        "patterns",
        "generate",
    ] {
        let help = done(&format!("{subcommand} --help"));
        assert!(help.contains("Example: conset"), "{subcommand}\n{help}");
    }
}

#[test]
fn traces_open_in_trace_viewers() {
    let folder = folder();
    let outcome = conset_in(folder.path(), "run pattern:hypercube --trace t.json");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let text = std::fs::read_to_string(folder.path().join("t.json")).unwrap();
    let events: Value = serde_json::from_str(&text).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    assert!(events.len() > 700, "{}", events.len());
    assert!(events.iter().all(|e| !e["ph"].is_null() && !e["pid"].is_null()));
}

#[test]
fn machine_files_and_written_patterns_come_back() {
    let folder = folder();
    let made = conset_in(folder.path(), "machines iwarp:4x4 --param channels_per_cell=7 -o m.toml");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let run = conset_in(folder.path(), "run pattern:all-to-all --machine m.toml --json");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let made = conset_in(folder.path(), "patterns all-to-all --machine m.toml -o all.cset");
    assert_eq!(made.code, 0, "{}", made.stderr);
    let again = conset_in(folder.path(), "run all.cset --json");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(run.stdout, again.stdout);
}

#[test]
fn emitted_sources_are_written_into_the_folder() {
    let folder = folder();
    assert_eq!(conset_in(folder.path(), "compile pattern:torus -o t.json").code, 0);
    for lang in ["rust", "listing", "text"] {
        let outcome = conset_in(folder.path(), &format!("emit t.json --format {lang} -o {lang}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(folder.path().join(lang).is_dir());
    }
    std::fs::create_dir(folder.path().join("runtime")).unwrap();
    let beside = conset_in(folder.path(), "emit t.json --format rust --runtime runtime -o beside");
    assert_eq!(beside.code, 0, "{}", beside.stderr);
    let manifest = std::fs::read_to_string(folder.path().join("beside/Cargo.toml")).unwrap();
    let path = folder.path().join("runtime").canonicalize().unwrap();
    assert!(manifest.contains(path.to_str().unwrap()), "{manifest}");
    let nowhere = conset_in(folder.path(), "emit t.json --format rust --runtime none -o beside");
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    let verified = conset_in(folder.path(), "verify text/image.cset");
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

#[test]
fn a_run_against_messages_has_them_beside_it() {
    let run = json("run pattern:torus --words 256 --machine iwarp-stream --compare messages");
    let (set, total) = (&run["sets"][0], &run["total"]);
    let messages = &set["messages"];
    assert_eq!(messages, &total["messages"]);
    assert_eq!(messages["payload_ok"], true);
    assert_eq!(messages["predicted_clocks"], 5248);
    let clocks = |of: &Value| of["measured_clocks"].as_f64().unwrap();
    let ratio = clocks(messages) / clocks(set);
    assert!((ratio - messages["clocks_over_phases"].as_f64().unwrap()).abs() < 1e-9);
    assert!(json("run pattern:torus")["sets"][0]["messages"].is_null());
    let text = done("run pattern:all-to-all --compare messages --message-order random");
    assert!(text.contains("x connections"), "{text}");
    let clocks = |order: &str| {
        let run = json(&format!(
            "run pattern:all-to-all --machine torus:4x4 --compare messages --message-order {order}"
        ));
        let messages = &run["total"]["messages"];
        (messages["measured_clocks"].as_u64().unwrap(), messages["order"].clone())
    };
    let orders = ["given", "longest-first", "staggered", "random"];
    let (best, name) = clocks("best");
    assert_eq!(orders.map(|order| clocks(order).0).iter().min(), Some(&best));
    assert_eq!(clocks(name.as_str().unwrap()).0, best);
    assert!(best < clocks("given").0);
    let refused = conset_in(&root(), "run pattern:torus --message-order random");
    assert_eq!(refused.code, 2);
}

#[test]
fn tables_are_reproduced_beside_the_papers() {
    let out = folder();
    let figures = out.path().join("figures");
    let table = json(&format!("reproduce 1 --figures {}", figures.display()));
    let rows = table["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for key in ["conset_predicted", "conset_measured", "message_predicted", "message_measured"] {
        for part in ["ours", "paper", "error_percent"] {
            assert!(rows[0][key][part].is_number(), "{key}.{part}");
        }
    }
    assert_eq!(table["machines"][0]["parameters"]["stream_setup"], 98);
    let svg = std::fs::read_to_string(figures.join("figure2.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert!(done("reproduce 1").contains("1 180 / 1 168 (+1.0)"));
    assert_eq!(conset_in(&root(), "reproduce 7").code, 2);
    assert!(done("reproduce c3 3").contains("26.50 / 27.00 (-1.9)"));
    let table = json("reproduce cm5 8");
    assert_eq!((&table["paper"], table["tables"][0]["number"].as_u64()), (&"cm5".into(), Some(8)));
    let table = json("reproduce cm5 2");
    assert_eq!(table["schedules"][0]["steps"][2]["ours"], "0-1 2-3 4-5 6-7");
    assert!(
        done("reproduce cm5 1").contains("schedule of PEX on 8 processors: equal to the paper's")
    );
    let table = json("reproduce cm5 5");
    assert!(table["tables"][1]["notes"].as_array().unwrap().len() > 5);
    let table = json("reproduce acl 2");
    assert_eq!(table["tables"].as_array().unwrap().len(), 3);
    json(&format!("reproduce c3 --figures {}", figures.display()));
    assert!(figures.join("figure4.svg").exists());
    let table = json("reproduce active 36 --quick");
    let cell = &table["tables"][0]["rows"][2]["cells"][0];
    assert_eq!((&table["paper"], cell["paper"].as_f64()), (&"active".into(), Some(193.7)));
    for wrong in [
        "reproduce c3 4",
        "reproduce cm5 9",
        "reproduce acl 3",
        "reproduce active 33",
        "reproduce cm5 8 --quick",
        "reproduce 1 --quick",
        "reproduce 2 1",
        "reproduce cm5 4 --figures f",
        "reproduce c3 --meshes f",
    ] {
        assert_eq!(conset_in(&root(), wrong).code, 2, "{wrong}");
    }
}

#[test]
fn meshes_that_are_not_there_are_left_out_and_named() {
    let nowhere = folder();
    let report = json(&format!("reproduce 4 --meshes {}", nowhere.path().display()));
    assert_eq!(report["meshes"].as_array().unwrap().len(), 3);
    let left_out = report["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 2);
    assert!(left_out[0]["reason"].as_str().unwrap().contains("crack.graph"));
}

#[test]
fn why_says_what_else_there_was() {
    let folder = folder();
    let text = "conset set 1\nset one\n  \"left\" c0 -> c1 words 5\n  c0 -> c0 words 2\n\
                set none\nset two\n  c1 -> c2 words 5\n  c2 -> c1 words 5\n  c3 -> c1 words 5\n";
    std::fs::write(folder.path().join("p.cset"), text).unwrap();
    for name in ["p.json", "p.csi"] {
        let made = conset_in(folder.path(), &format!("compile p.cset -o {name}"));
        assert_eq!(made.code, 0, "{}", made.stderr);
        for words in ["left", "x2", "x0 --set one", "1 --set one", "1 --set two"] {
            let words = format!("why {name} {words}");
            let shown = conset_in(folder.path(), &words);
            assert_eq!(shown.code, 0, "conset {words}\n{}", shown.stderr);
            assert!(shown.stdout.contains("phase    p0 of 1"), "{}", shown.stdout);
            let object = conset_in(folder.path(), &format!("{words} --json"));
            let object: Value = serde_json::from_str(&object.stdout).unwrap();
            assert_eq!(object["parts_total"], 1);
            assert!(!object["parts"][0]["start"]["earliest"].is_null());
        }
        for (words, says) in [
            ("x1", "--set"),
            ("x9", "x0 to x2"),
            ("x0 --set none", "no connections"),
            ("x0 --set three", "one, none, two"),
            ("lift", "id"),
            ("x99999999999", "id"),
        ] {
            let wrong = conset_in(folder.path(), &format!("why {name} {words}"));
            assert_eq!(wrong.code, 2, "{words}: {}", wrong.stderr);
            assert!(wrong.stderr.contains(says), "{words}: {}", wrong.stderr);
            assert!(wrong.stderr.contains("help:"), "{words}: {}", wrong.stderr);
        }
    }
    let uncompiled = conset_in(folder.path(), "why p.cset 0");
    assert_eq!(uncompiled.code, 2);
    assert!(uncompiled.stderr.contains("compile"), "{}", uncompiled.stderr);
}

#[test]
fn sets_are_joined_where_that_is_faster() {
    let folder = folder();
    let text = "conset set 1\nset a\n  c0 -> c1 words 9\nset b\n  c8 -> c9 words 9\n";
    std::fs::write(folder.path().join("two.cset"), text).unwrap();
    let made = conset_in(folder.path(), "compile two.cset --fuse a,b -o two.json");
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(made.stdout.contains("sets a, b: merged; 2 phases"), "{}", made.stdout);
    let run = conset_in(folder.path(), "run two.json --json");
    let report: Value = serde_json::from_str(&run.stdout).expect(&run.stderr);
    let set = &report["sets"][0];
    assert_eq!((set["set"].as_str(), set["phases"].as_u64()), (Some("a.b"), Some(1)));
    for (words, says) in [
        ("compile two.cset --fuse a", "two or more"),
        ("compile two.cset --fuse a,c", "no set `c`"),
        ("compile two.json --fuse a,b", "--fuse"),
        ("compile two.cset --fuse a,b --time-limit 1", "cannot be used with"),
    ] {
        let wrong = conset_in(folder.path(), words);
        assert_eq!(wrong.code, 2, "{words}");
        assert!(wrong.stderr.contains(says), "{words}: {}", wrong.stderr);
    }
}

#[test]
fn diff_says_what_changed_and_identical_where_nothing_did() {
    let folder = folder();
    for words in [
        "compile pattern:all-to-all --machine iwarp:4x4 -o a.json",
        "compile pattern:all-to-all --machine iwarp:4x4 -o a.csi",
        "compile pattern:all-to-all --machine iwarp:4x4 --words 33 --param t_sync=1 -o b.json",
    ] {
        let made = conset_in(folder.path(), words);
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let same = conset_in(folder.path(), "diff a.json a.csi");
    assert_eq!((same.code, same.stdout.as_str()), (0, "identical\n"), "{}", same.stderr);
    let changed = conset_in(folder.path(), "diff a.json b.json");
    assert_eq!(changed.code, 0, "{}", changed.stderr);
    for says in ["t_sync 352 -> 1", "words 32 -> 33", "240 changed", "and 230 more (--all)"] {
        assert!(changed.stdout.contains(says), "{says}\n{}", changed.stdout);
    }
    let all = conset_in(folder.path(), "diff a.json b.json --all");
    assert!(!all.stdout.contains("more (--all)"), "{}", all.stdout);
    let object = conset_in(folder.path(), "diff a.json b.json --json");
    let object: Value = serde_json::from_str(&object.stdout).unwrap();
    assert_eq!(object["identical"], false);
    assert_eq!(object["sets"][0]["changed"]["total"], 240);
    assert_eq!(conset_in(folder.path(), "diff a.json nothing.json").code, 2);
}

#[test]
fn diff_compares_parts_and_node_numbers() {
    let folder = folder();
    let run = |words: &str| conset_in(folder.path(), words);
    // The same graph; METIS counts its vertices from 1.
    std::fs::write(folder.path().join("g.graph"), "6 6\n2 6\n1 3\n2 4\n3 5\n4 6\n5 1\n").unwrap();
    std::fs::write(folder.path().join("two.part"), "0\n0\n0\n1\n1\n1\n").unwrap();
    std::fs::write(folder.path().join("three.part"), "0\n0\n0\n1\n1\n2\n").unwrap();
    let compile = "compile g.graph --machine iwarp:2x2 --placement given";
    for (part, out) in [("two", "a.json"), ("two", "a.csi"), ("three", "c.json")] {
        let made = run(&format!("{compile} --partition {part}.part -o {out}"));
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let text = std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    let mut schedule: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schedule["parts"], serde_json::json!([0, 1]));
    schedule["node_numbers"]["from"] = 0.into();
    std::fs::write(folder.path().join("b.json"), schedule.to_string()).unwrap();
    let diff = |words: &str| {
        let (text, object) = (run(&format!("diff {words}")), run(&format!("diff {words} --json")));
        assert_eq!((text.code, object.code), (0, 0), "{}{}", text.stderr, object.stderr);
        (text.stdout, serde_json::from_str::<Value>(&object.stdout).unwrap())
    };
    let (text, object) = diff("a.json a.json");
    assert_eq!((text.as_str(), &object["parts"]["identical"]), ("identical\n", &true.into()));
    // Images have no parts.
    let (text, object) = diff("a.json a.csi");
    assert_eq!(text, "identical\nparts    only a has parts; they are not compared\n");
    assert_eq!(object["parts"]["parts"], serde_json::json!({"a": 2, "b": null}));
    let (text, object) = diff("a.json b.json");
    assert!(text.contains("0 of 2 on another cell, 4 nodes with another number"), "{text}");
    assert!(text.contains("set      halo: identical"), "{text}");
    assert!(text.contains("numbers of nodes in the file\n  node 0: 1 -> 0\n"), "{text}");
    assert_eq!(
        (&object["identical"], &object["sets"][0]["identical"]),
        (&false.into(), &true.into())
    );
    assert_eq!(object["parts"]["renumbered"]["total"], 4);
    let (text, object) = diff("a.json c.json");
    assert!(text.contains("parts on other cells\n  part 2: none -> c2\n"), "{text}");
    let moved = serde_json::json!({"total": 1, "first": [{"part": 2, "a": null, "b": 2}]});
    assert_eq!(object["parts"]["moved"], moved);
}

#[test]
fn figures_of_a_given_partition_are_those_of_the_search() {
    let folder = folder();
    let run = |words: &str| conset_in(folder.path(), words);
    std::fs::copy(root().join("fixtures/meshes/plate.msh"), folder.path().join("p.msh")).unwrap();
    let found = run("compile p.msh --machine iwarp:3x3 -o s.json --write-partition p.txt --json");
    let found: Value = serde_json::from_str(&found.stdout).expect(&found.stderr);
    let partition = &found["parts"]["partition"];
    assert_ne!(partition["method"], "given");
    assert_eq!(found["sets"][0]["bound_of"], "partition");
    // The same partition as a file: one line per element, the part in the second column.
    let lines = std::fs::read_to_string(folder.path().join("p.txt")).unwrap();
    let rows = lines.lines().filter(|line| !line.starts_with('#'));
    let parts: String =
        rows.map(|row| format!("{}\n", row.split_whitespace().nth(1).unwrap())).collect();
    std::fs::write(folder.path().join("p.part"), parts).unwrap();
    let given = run("compile p.msh --machine iwarp:3x3 --partition p.part --json");
    let given: Value = serde_json::from_str(&given.stdout).expect(&given.stderr);
    assert_eq!(given["parts"]["partition"]["method"], "given");
    for figure in ["items_per_part", "words_per_part", "max_degree", "words"] {
        assert_eq!(given["parts"][figure], found["parts"][figure], "{figure}");
    }
    for figure in ["imbalance_percent", "cut"] {
        assert_eq!(given["parts"]["partition"][figure], partition[figure], "{figure}");
    }
    // What a schedule can say of its parts.
    let info: Value = serde_json::from_str(&run("info s.json --json").stdout).unwrap();
    let parts = &info["decomposition"];
    for figure in ["parts", "words_per_part", "max_degree", "words"] {
        assert_eq!(parts[figure], found["parts"][figure], "{figure}");
    }
    assert!(parts["items_per_part"].is_null() && parts["partition"].is_null(), "{parts}");
    let bound_of = |words: &str| {
        let object: Value = serde_json::from_str(&run(words).stdout).unwrap();
        let set = object.get("sets").map_or(&object, |sets| &sets[0]);
        set["bound_of"].as_str().unwrap().to_owned()
    };
    for words in ["run s.json --json", "bound s.json --json", "bound p.msh --json"] {
        assert_eq!(bound_of(words), "partition", "{words}");
    }
    let shift = "pattern:ring-shift:1 --machine iwarp:3x3 --json";
    for words in ["compile", "run", "bound"] {
        assert_eq!(bound_of(&format!("{words} {shift}")), "set", "{words}");
    }
}

#[test]
fn parts_are_placed_as_asked_and_stages_are_timed() {
    let mesh = "compile fixtures/meshes/plate.msh --machine mesh:5x5 --parts 20 --algorithm paper";
    let best = json(mesh);
    assert_eq!(best["placement"]["method"], "best");
    for stage in ["reading", "partitioning", "placing_parts", "routing", "checking"] {
        assert!(best["stage_seconds"][stage].is_number(), "{stage}: {}", best["stage_seconds"]);
    }
    let given = json(&format!("{mesh} --placement given"));
    let cells: Vec<u64> = (0..20).collect();
    assert_eq!(given["placement"]["cells"], Value::from(cells));
    assert!(given["sets"][0]["hops"].as_u64() > best["sets"][0]["hops"].as_u64());
    assert!(done(mesh).contains("stages   reading"));
}

#[test]
fn sets_that_name_cells_are_placed_only_when_asked() {
    let folder = folder();
    let far = "conset set 1\nset a\n  c0 -> c36 words 9\nset b\n  c36 -> c4 words 9\n";
    std::fs::write(folder.path().join("far.cset"), far).unwrap();
    let hops = |words: &str| -> u64 {
        let outcome = conset_in(folder.path(), &format!("compile far.cset --json {words}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let sets = report["sets"].as_array().unwrap();
        sets.iter().map(|set| set["hops"].as_u64().unwrap()).sum()
    };
    assert_eq!((hops(""), hops("--placement given")), (12, 12));
    assert_eq!(hops("--placement best"), 2);
    assert_eq!(conset_in(folder.path(), "compile far.cset -o far.json").code, 0);
    let compiled = conset_in(folder.path(), "run far.json --placement best");
    assert_eq!(compiled.code, 2, "{}", compiled.stderr);
    assert!(compiled.stderr.contains("--placement"), "{}", compiled.stderr);
    assert_eq!(conset_in(folder.path(), "compile far.cset --placement elsewhere").code, 2);
}

#[test]
fn best_says_how_it_was_found_and_what_is_optimal() {
    let input = "compile pattern:hypercube --machine iwarp:4x4 --algorithm auto";
    let text = done(&format!("{input} --objective phases"));
    assert!(text.contains("(optimal: phases at the bound)") && text.contains("tried "), "{text}");
    // Only starts that are kept make a prediction exact.
    for (machine, proved) in [("iwarp:4x4", false), ("iwarp-timed:4x4", true)] {
        let input = format!("compile pattern:ring-shift --machine {machine}");
        let text = done(&input);
        assert_eq!(text.contains("(predicted at the bound)"), !proved, "{text}");
        assert!(!text.contains("(optimal: clocks"), "{text}");
        assert_eq!(json(&input)["sets"][0]["clocks_proved"], proved, "{text}");
    }
    let nothing = done("compile pattern:all-to-all --machine mesh:1x1");
    assert!(nothing.contains("(optimal: clocks at the bound)"), "{nothing}");
    let usual = json(input);
    let set = &usual["sets"][0];
    assert!(set["phases_over_bound"].is_number() && set["bound_phases_by"].is_string(), "{usual}");
    assert!(set["fewest_phases"].is_boolean() && set["fewest_clocks"].is_boolean(), "{usual}");
    // Five plans are five plans on any machine; time is not.
    let folder = folder();
    for name in ["a.csb", "b.csb"] {
        let made = conset_in(folder.path(), &format!("{input} --max-plans 5 -o {name}"));
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a.csb"), read("b.csb"));
    let none = json(&format!("{input} --time-limit 0"));
    assert_eq!(none["sets"][0]["search"]["made"], 1, "{none}");
    assert!(none["sets"][0]["search"]["ended"].is_string(), "{none}");
    for (words, says) in [
        ("--time-limit 1 --max-plans 2", "cannot be used with"),
        ("--time-limit -1", "--time-limit"),
        ("--time-limit nan", "expected seconds"),
        ("--time-limit inf", "expected seconds"),
        ("--max-plans 0", "--max-plans"),
        ("--algorithm paper --time-limit 1", "leave out"),
        ("--algorithm paper --max-plans 1", "leave out"),
    ] {
        let words = format!("compile pattern:hypercube --algorithm auto {words}");
        let words = words.replace("auto --algorithm paper", "paper");
        let wrong = conset_in(folder.path(), &words);
        assert_eq!(wrong.code, 2, "{words}: {}", wrong.stderr);
        assert!(wrong.stderr.contains(says), "{words}: {}", wrong.stderr);
    }
}

#[test]
fn an_older_compile_is_repaired_after_a_part_died() {
    let folder = folder();
    let row = |i: u32| format!("  c{} -> c{} words 9\n", i % 16, (i * 7 + 3) % 16);
    let rows: String = (0..48).map(row).collect();
    let text = format!("conset set 1\nmachine iwarp:4x4\nset one\n{rows}");
    std::fs::write(folder.path().join("a.cset"), text).unwrap();
    let run = |words: &str| conset_in(folder.path(), words);
    assert_eq!(run("compile a.cset -o old.csb").code, 0);
    let new = run("compile a.cset --reuse old.csb --dead c3->c0 -o new.csb");
    let line =
        new.stdout.lines().find(|line| line.starts_with("machine  ") && line.contains("lost"));
    let line = line.unwrap_or_else(|| panic!("{}{}", new.stdout, new.stderr));
    assert!(line.contains("of 48 kept; the machine lost link c3 -> c0"), "{line}");
    assert_eq!(run("run new.csb").code, 0);
    // Both ways, and what stands already on the machine that lost one of them.
    let both = run("compile a.cset --reuse new.csb --dead c0-c3 --json -o both.csb");
    let object: Value = serde_json::from_str(&both.stdout).expect(&both.stderr);
    let lost = &object["sets"][0]["reuse"]["kept"]["machine_lost"];
    assert_eq!(*lost, serde_json::json!(["link c0 -> c3"]));
    let dead = run("compile a.cset --reuse old.csb --dead c5");
    assert_eq!(dead.code, 2, "{}", dead.stdout);
    assert!(dead.stderr.contains("use live cells only"), "{}", dead.stderr);
    for (part, says) in [
        ("c16", "not one of the machine's 16 cells"),
        ("c0-c5", "no link joins c0 to c5"),
        ("c0->c99999999999", "expected a cell or a link"),
        ("5", "expected a cell or a link"),
    ] {
        let wrong = run(&format!("compile a.cset --dead {part}"));
        assert_eq!(wrong.code, 2, "{part}: {}", wrong.stdout);
        assert!(wrong.stderr.contains(says), "{part}: {}", wrong.stderr);
    }
    // What is compiled keeps its machine, and the budgets it was made with.
    for words in ["--dead c1", "--unlimited"] {
        assert_eq!(run(&format!("run old.csb {words}")).code, 2, "{words}");
    }
}

#[test]
fn an_older_compile_is_kept_where_it_fits() {
    let folder = folder();
    let rows = |gone: u32, words: u32| {
        let row = |i: u32| format!("  c{} -> c{} words {words}\n", i % 16, (i * 7 + 3) % 16);
        let rows: String = (0..48).filter(|&i| i != gone).map(row).collect();
        format!("conset set 1\nmachine iwarp:4x4\nset one\n{rows}")
    };
    std::fs::write(folder.path().join("a.cset"), rows(99, 9)).unwrap();
    std::fs::write(folder.path().join("b.cset"), rows(7, 9)).unwrap();
    std::fs::write(folder.path().join("c.cset"), rows(99, 8)).unwrap();
    let run = |words: &str| conset_in(folder.path(), words);
    for name in ["old.csb", "old.json", "old.csi"] {
        let made = run(&format!("compile a.cset --algorithm auto -o {name}"));
        assert_eq!(made.code, 0, "{}", made.stderr);
    }
    let same = run("compile a.cset --reuse old.csb -o same.csb");
    assert!(same.stdout.contains("48 connections kept"), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("100.0 % unchanged"), "{}", same.stdout);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("same.csb"), read("old.csb"));
    for old in ["old.json", "old.csi"] {
        let new = run(&format!("compile b.cset --reuse {old} --json -o new.json"));
        let object: Value = serde_json::from_str(&new.stdout).expect(&new.stderr);
        let kept = &object["sets"][0]["reuse"]["kept"];
        assert_eq!((kept["removed"].as_u64(), kept["inserted"].as_u64()), (Some(1), Some(0)));
        assert!(kept["entries"]["stability"].as_f64().unwrap() > 0.9, "{kept}");
        assert_eq!(run("verify new.json").code, 0);
    }
    let fresh = run("compile c.cset --reuse old.csb");
    assert!(fresh.stdout.contains("nothing reused"), "{}{}", fresh.stdout, fresh.stderr);
    let other = run("compile a.cset --reuse old.csb --machine iwarp:5x4");
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert!(other.stderr.contains("another machine"), "{}", other.stderr);
    for words in ["--reuse old.csb", "--time-limit 1 --algorithm auto", "--max-phases 3"] {
        let compiled = run(&format!("run old.csb {words}"));
        assert_eq!(compiled.code, 2, "{words}: {}", compiled.stderr);
    }
    assert_eq!(run("compile a.cset --reuse a.cset").code, 2);
}

#[test]
fn verify_against_an_input_names_the_first_connection_that_differs() {
    let folder = folder();
    let run = |words: &str| conset_in(folder.path(), words);
    let program = "pattern:transpose --machine torus:4x4";
    assert_eq!(run(&format!("compile {program} --words 9 -o t.json -q")).code, 0);
    assert_eq!(run("compile t.json -o t.csi -q").code, 0);
    for file in ["t.json", "t.csi"] {
        let same = run(&format!("verify {file} --against {program} --words 9"));
        assert_eq!(same.code, 0, "{}", same.stderr);
        assert!(same.stdout.contains("connection by connection"), "{}", same.stdout);
        let words = run(&format!("verify {file} --against {program} --words 8"));
        assert_eq!(words.code, 1);
        let first = "set `transpose`: x0 is c1 -> c4 words 9 in the file, c1 -> c4 words 8";
        assert!(words.stderr.contains(first), "{}", words.stderr);
        let machine =
            run(&format!("verify {file} --against {program} --words 9 --param streams=2"));
        assert_eq!(machine.code, 1);
        assert!(machine.stderr.contains("the machine's streams is 1 in the file, 2 in the input"));
    }
    let alone = run("verify t.json --words 9");
    assert_eq!(alone.code, 2);
    assert!(alone.stderr.contains("--against"), "{}", alone.stderr);
}

#[test]
fn a_bound_that_is_not_proved_is_refused_by_verify_and_run() {
    let outcome = verify_spoilt(|schedule| {
        let set = &mut schedule["sets"][0];
        set["bounds"]["clocks"] = (set["bounds"]["clocks"].as_u64().unwrap() + 1).into();
        set["predicted_clocks"] = (set["predicted_clocks"].as_u64().unwrap() + 1).into();
    });
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("claim"), "{}", outcome.stderr);
}

#[test]
fn a_page_is_one_file_that_names_no_other() {
    let folder = folder();
    let run = |words: &str| conset_in(folder.path(), words);
    let name = "a&b.json";
    assert_eq!(run(&format!("compile pattern:torus --machine torus:3x3 -o {name}")).code, 0);
    let report = run(&format!("view {name} -o page.html --json"));
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!(report["bytes"], page.len());
    assert_eq!(report["left_out"], Value::Array(vec![]));
    assert!(page.contains("<title>a&amp;b.json"), "the name is escaped");
    for reference in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}: a page needs no other file");
    }
    assert_eq!(run(&format!("view {name} -o -")).stdout, page);
    // The program that is compiled by `view` is the one that `compile` writes.
    let data = |page: &str| page[page.find("block-0.0.routes").unwrap()..].to_owned();
    assert_eq!(run("view pattern:torus --machine torus:3x3 -o direct.html").code, 0);
    let direct = std::fs::read_to_string(folder.path().join("direct.html")).unwrap();
    assert_eq!(data(&direct), data(&page));
}
