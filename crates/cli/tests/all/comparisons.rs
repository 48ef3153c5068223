//! Subcommands and options that explain or compare plans, place parts, and start from an older compile.

use serde_json::Value;

use crate::calls::{conset_in, done, folder, json, root};

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
        assert_eq!(text.contains("(optimal: clocks at the bound)"), proved, "{text}");
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
