//! `docs/json.schema.json` describes every object that `--json` prints, of every subcommand, in success
//! and in failure.
//!
//! The schema allows members that it does not name, because a later release can add some. Here it is
//! closed first, so that a member without a description fails the test.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Runs before the samples, and writes the files that they read.
const PREPARATIONS: [&str; 9] = [
    "compile pattern:all-to-all --machine iwarp:4x4 --words 8 -o a.json",
    "compile pattern:all-to-all --machine iwarp:4x4 --words 16 -o b.json",
    "compile pattern:hypercube --machine iwarp-timed:4x4 --words 8 -o timed.json",
    "compile pattern:all-to-all --machine cm5:8 --by steps --words 8 -o s.json",
    "compile pattern:all-to-all --machine cm5:8 --by steps --words 9 -o t.cset",
    "compile plate.msh --machine iwarp:3x3 -o plate.json",
    "compile plate.msh --machine iwarp:3x3 --seed 2 -o other.json",
    "compile pattern:torus --machine iwarp:4x4 -o image.csi",
    "compile pattern:torus --machine mesh:4x4 -o mesh.json",
];

const SUCCESSES: [&str; 98] = [
    "compile pattern:transpose --machine mesh:4x4 -o out.json",
    "compile plate.msh --machine iwarp:3x3 --explain-search",
    "compile plate.msh --machine iwarp:3x3 --parts 4 --reuse plate.json",
    "compile pattern:torus --machine iwarp:4x4 --max-plans 3",
    "compile pattern:torus --machine iwarp:4x4 --by best",
    "compile pattern:random:density=0.5 --machine cm5:8 --by steps --explain-search -o out.cset",
    "compile two.cset --machine iwarp:4x4",
    "compile empty.cset --machine iwarp:4x4",
    "compile two.cset --machine iwarp:4x4 --fuse a,b",
    "run a.json",
    "run two.cset --machine iwarp:4x4 --compare messages",
    "run two.cset --machine iwarp:4x4 --compare steps",
    "run empty.cset --machine iwarp:4x4",
    "run s.json",
    "run pattern:torus --machine iwarp:4x4 --by best",
    "run one_cell.msh --trace trace.json",
    "run two.cset --machine iwarp:4x4 --profile",
    "run two.cset --machine iwarp:4x4 --profile --what-if --cells",
    "run s.json --profile",
    "run two.cset --machine iwarp:4x4 --faults late.faults",
    "run two.cset --machine iwarp:4x4 --faults late.faults --checked",
    "run two.cset --machine iwarp:4x4 --by steps --faults late.faults --checked",
    "run two.cset --machine iwarp:4x4 --faults dead.faults --checked --recover",
    "run two.cset --machine iwarp:4x4 --faults dead.faults --recover --compare messages",
    "run two.cset --machine iwarp:4x4 --faults dead.faults --recover --by steps",
    "predict pattern:all-to-all --machine cm5:4",
    "predict pattern:random:density=0.4 --machine iwarp:4x4 --measure",
    "predict empty.cset --machine iwarp:4x4 --measure",
    "show a.json",
    "show a.json summary",
    "show a.json cells --sort idle",
    "show a.json map --phase 1",
    "show a.json gantt",
    "show a.json profile",
    "show a.json link l3",
    "show s.json links",
    "show s.json cells",
    "show s.json map",
    "show s.json gantt",
    "show s.json profile",
    "show s.json link l3",
    "show phases a.json",
    "show phases timed.json",
    "show routes a.json",
    "show timetable a.json",
    "show channels a.json",
    "show links a.json",
    "show contexts a.json",
    "show cell 3 a.json",
    "show connection 7 a.json",
    "show summary s.json",
    "show steps s.json",
    "show cell 3 s.json",
    "show connection 7 s.json",
    "why a.json 12",
    "why timed.json 3",
    "why plate.json 0",
    "why s.json 3",
    "diff a.json a.json",
    "diff a.json b.json",
    "diff a.json mesh.json",
    "diff plate.json other.json",
    "diff s.json s.json",
    "diff s.json t.cset",
    "verify a.json",
    "verify timed.json",
    "verify s.json",
    "verify image.csi",
    "verify a.json --against pattern:all-to-all --machine iwarp:4x4 --words 8",
    "bound pattern:all-to-all --machine ring:5",
    "bound plate.msh --machine iwarp:3x3",
    "bound empty.cset --machine ring:2",
    "info plate.msh",
    "info box.msh",
    "info triangle.graph",
    "info matrix.mtx",
    "info two.cset",
    "info a.json",
    "info s.json",
    "info image.csi",
    "emit a.json --format listing -o listing",
    "view a.json -o a.html",
    "view a.json b.json -o ab.html",
    "view plate.msh --machine iwarp:3x3 -o plate.html",
    "sweep pattern:torus --machine ring:5 --vary words=1,8 --vary streams=1..2",
    "sweep pattern:torus --machine cm5:8 --by steps --predict --vary words=1..8*2 -o sweep.html",
    "sweep pattern:torus --vary machine=ring:5,ring:0 -o sweep.csv",
    "machines",
    "machines cm5:8",
    "machines iwarp -o mine.toml",
    "patterns",
    "patterns torus --machine ring:4 -o p.cset",
    "generate",
    "generate plate:2x2 -o new.msh",
    "soak --programs 2 --seed 3",
    "completions bash -o conset.bash",
    "man -o pages",
    "help words",
];

/// Slow ones, or with other objects than one might expect of their subcommand.
const REPRODUCTIONS: [&str; 5] =
    ["reproduce 1", "reproduce c3", "reproduce cm5 1", "reproduce cm5 8", "reproduce acl 1"];

const FAILURES: [(&str, &str); 31] = [
    ("sweep pattern:torus --vary words=x", "input"),
    ("sweep pattern:torus --vary words", "usage"),
    ("compile pattern:none", "input"),
    ("compile wrong.cset", "input"),
    ("compile a.json --words 9", "input"),
    ("compile pattern:all-to-all --machine iwarp:4x4 --max-phases 1", "infeasible"),
    ("compile", "usage"),
    ("run nothing.msh", "input"),
    ("run two.cset --machine iwarp:4x4 --faults wrong.cset", "input"),
    ("run spoilt.json", "rejected"),
    ("show phases nothing.json", "input"),
    ("show nonsense a.json", "input"),
    ("show profile spoilt.json", "rejected"),
    ("why a.json 9999", "input"),
    ("diff a.json nothing.json", "input"),
    ("verify nothing.json", "input"),
    ("verify cut.csb", "input"),
    ("bound a.json --machine nowhere", "input"),
    ("info nothing.graph", "input"),
    ("emit a.json --format goal -o goal", "input"),
    ("predict pattern:none", "input"),
    ("view nothing.json -o n.html", "input"),
    ("machines torus:0", "input"),
    // Without MPI nothing can be measured, and with MPI one rank has nobody to send to.
    ("tune -o tune.toml", "rejected"),
    ("patterns none", "input"),
    ("generate none -o none.msh", "input"),
    ("reproduce 9", "usage"),
    ("soak --programs 0", "usage"),
    ("completions nonsense", "usage"),
    ("man -o plate.msh", "input"),
    ("nonsense", "usage"),
];

struct Sample {
    words: String,
    code: i32,
    value: Value,
}

fn sample(folder: &Path, words: &str) -> Sample {
    let output = Command::new(env!("CARGO_BIN_EXE_conset"))
        .args(words.split_whitespace())
        .args(["--json", "--quiet"])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let value = serde_json::from_str(&text);
    let value = value.unwrap_or_else(|e| panic!("conset {words}: not one JSON value: {e}\n{text}"));
    Sample { words: words.to_owned(), code: output.status.code().expect("not killed"), value }
}

/// A folder with the files that the samples read.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let meshes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/meshes");
    for mesh in ["plate.msh", "box.msh", "one_cell.msh"] {
        std::fs::copy(meshes.join(mesh), folder.path().join(mesh)).unwrap();
    }
    for (name, text) in [
        ("two.cset", "conset set 1\nset a\n  c0 -> c1 words 9\nset b\n  c8 -> c9 words 9\n"),
        ("empty.cset", "conset set 1\nset none\n"),
        ("wrong.cset", "conset set 1\nset a\n  c0 => c1 words 9\n"),
        ("late.faults", "cell c0 late 40 at switch 0\nlink c0 -> c1 stalled 9\n"),
        (
            "dead.faults",
            "link c0 -> c1 dead at 560\ncell c8 dead at 600\nlink c0 -> c4 drops word 2\n",
        ),
        ("triangle.graph", "3 3\n2 3\n1 3\n1 2\n"),
        ("matrix.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n2 1 3.5\n"),
        ("cut.csb", "\u{7f}conset"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for words in PREPARATIONS {
        let made = sample(folder.path(), words);
        assert_eq!(made.code, 0, "conset {words}: {}", made.value);
    }
    let text = std::fs::read_to_string(folder.path().join("a.json")).unwrap();
    let mut spoilt: Value = serde_json::from_str(&text).unwrap();
    spoilt["sets"][0]["phases"][0]["routes"][0]["channels"][0] = json!(5);
    spoilt["sets"][0]["phases"][0]["routes"][1]["channels"][0] = json!(5);
    std::fs::write(folder.path().join("spoilt.json"), spoilt.to_string()).unwrap();
    folder
}

/// The schema, without permission for members that it does not name.
fn closed_schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.schema.json");
    let text = std::fs::read_to_string(&path).expect("the schema exists");
    let mut schema = serde_json::from_str(&text).expect("the schema is JSON");
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object)
                && !members.contains_key("additionalProperties")
            {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn check(schema: &Value, sample: &Sample) {
    let format = sample.value["format"].as_str().expect("a format");
    let mut own = schema.clone();
    own.as_object_mut().unwrap().remove("oneOf");
    own["$ref"] = format!("#/$defs/{format}").into();
    let validator = jsonschema::validator_for(&own).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(&sample.value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "conset {}\n{}", sample.words, errors.join("\n"));
}

/// The subcommands that the help lists.
fn subcommands() -> BTreeSet<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_conset")).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Further lines of a description begin with more blanks.
    let lines = lines.filter_map(|line| line.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|&name| name != "help").map(str::to_owned).collect()
}

#[test]
fn every_object_is_as_the_schema_says() {
    let (folder, schema) = (folder(), closed_schema());
    let (mut succeeded, mut failed) = (BTreeSet::new(), BTreeSet::new());
    let verb = |words: &str| words.split_whitespace().next().unwrap_or_default().to_owned();
    for words in SUCCESSES.iter().chain(&REPRODUCTIONS) {
        let sample = sample(folder.path(), words);
        assert_eq!(sample.code, 0, "conset {words}: {}", sample.value);
        assert_eq!(sample.value["format"], format!("conset-{}", verb(words)), "conset {words}");
        check(&schema, &sample);
        succeeded.insert(verb(words));
    }
    for (words, kind) in FAILURES {
        let sample = sample(folder.path(), words);
        assert_eq!(sample.value["kind"], kind, "conset {words}: {}", sample.value);
        assert_eq!(sample.value["exit_code"], sample.code, "conset {words}");
        check(&schema, &sample);
        failed.insert(verb(words));
    }
    // A report that says no is a report.
    for words in [
        "verify spoilt.json",
        "show spoilt.json",
        "show spoilt.json phases",
        "show spoilt.json map",
        "view spoilt.json -o spoilt.html",
    ] {
        let refused = sample(folder.path(), words);
        assert_eq!((refused.code, &refused.value["verified"]), (1, &json!(false)), "{words}");
        assert_eq!(refused.value["violations"][0]["rule"], "double-booking", "{words}");
        check(&schema, &refused);
    }
    let all = subcommands();
    assert!(!all.is_empty());
    // It succeeds in an MPI job only (`tests/mpi.rs`).
    succeeded.insert("tune".to_owned());
    assert_eq!(all.difference(&succeeded).collect::<Vec<_>>(), [""; 0], "without a success");
    assert_eq!(all.difference(&failed).collect::<Vec<_>>(), [""; 0], "without a failure");
}

#[test]
fn the_schema_refuses_what_it_should() {
    let schema = closed_schema();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let good = json!({"format": "conset-error", "version": 1, "kind": "bug", "exit_code": 3, "message": "m"});
    assert!(validator.is_valid(&good));
    for (member, value) in [
        ("version", json!(2)),
        ("format", json!("conset-none")),
        ("kind", json!("other")),
        ("more", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[member] = value;
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}
