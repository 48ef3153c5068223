//! What the command refuses: wrong words, spoilt files and outputs that cannot be written, with errors that help and nothing damaged.

use serde_json::Value;

use crate::calls::{Outcome, conset_in, folder, json, root};

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
fn meshes_that_are_not_there_are_left_out_and_named() {
    let nowhere = folder();
    let report = json(&format!("reproduce 4 --meshes {}", nowhere.path().display()));
    assert_eq!(report["meshes"].as_array().unwrap().len(), 3);
    let left_out = report["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 2);
    assert!(left_out[0]["reason"].as_str().unwrap().contains("crack.graph"));
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
