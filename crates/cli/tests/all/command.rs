//! The `conset` command as its users meet it: real files, real exit codes, real output.

use serde_json::Value;

use crate::calls::{conset_in, done, folder, json, root};

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
