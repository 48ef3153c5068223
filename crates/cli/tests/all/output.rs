//! What goes to which stream, and in which format: tables for programs, `--quiet`, `--color`, `-o -`
//! beside `--json`, completions, man pages, and files whose names are not UTF-8.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::calls::Outcome;

/// Runs `conset` with words split at blanks, in `folder`.
fn conset(folder: &Path, words: &str) -> Outcome {
    run(folder, words.split_whitespace().map(OsStr::new))
}

fn run<'a>(folder: &Path, words: impl Iterator<Item = &'a OsStr>) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conset"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    Outcome::of(command.args(words).current_dir(folder))
}

/// Runs and wants success; returns standard output.
#[track_caller]
fn done(folder: &Path, words: &str) -> String {
    let outcome = conset(folder, words);
    assert_eq!(outcome.code, 0, "conset {words}\n{}", outcome.stderr);
    outcome.stdout
}

/// A folder with a schedule of phases and one of steps.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    done(at, "compile pattern:all-to-all --machine iwarp:4x4 --words 3000 -o a.json");
    done(at, "compile pattern:all-to-all --machine cm5:8 --words 3000 --by steps -o s.json");
    folder
}

/// Every command that prints tables.
const TABLES: [&str; 28] = [
    "show a.json",
    "show a.json phases",
    "show a.json routes",
    "show a.json timetable",
    "show a.json channels",
    "show a.json links",
    "show a.json cells --sort idle",
    "show a.json contexts",
    "show a.json map",
    "show a.json gantt",
    "show a.json profile",
    "show a.json profile --cells",
    "show a.json profile --what-if",
    "show a.json cell 3",
    "show a.json link 3",
    "show a.json connection 3",
    "show s.json",
    "show s.json steps",
    "show s.json links",
    "show s.json cells",
    "show s.json profile",
    "diff a.json a.json",
    "diff s.json s.json",
    "bound pattern:all-to-all --machine iwarp:4x4 --words 3000",
    "predict pattern:all-to-all --machine cm5:4 --words 3000 --measure",
    "machines",
    "machines torus:4x4",
    "patterns",
];

#[test]
fn tables_for_programs_have_one_header_and_as_many_fields_in_every_row() {
    let folder = folder();
    for words in TABLES {
        let plain = done(folder.path(), &format!("{words} --format plain"));
        let mut lines = plain.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let header = lines.next().expect("a header");
        assert!(header.len() > 1, "{words}: {header:?}");
        let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        assert!(header.iter().all(is_name), "{words}: {header:?}");
        let rows: Vec<Vec<&str>> = lines.collect();
        assert!(!rows.is_empty(), "{words} has no rows");
        for row in &rows {
            assert_eq!(row.len(), header.len(), "{words}: {row:?}");
            assert!(row.iter().all(|field| !field.is_empty()), "{words}: {row:?}");
        }
        // The same rows as comma-separated values, with nothing in the place of `-`.
        let csv = done(folder.path(), &format!("{words} --format csv"));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), header, "{words}");
        let records: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), rows.len(), "{words}");
        for (record, row) in records.iter().zip(&rows) {
            let same = |(a, b): (&str, &&str)| a == *b || (a.is_empty() && *b == "-");
            assert!(record.iter().zip(row).all(same), "{words}: {record:?} and {row:?}");
        }
    }
}

#[test]
fn tables_have_the_numbers_of_the_json_without_separators() {
    let folder = folder();
    let at = folder.path();
    for words in ["show a.json links", "show s.json steps", "show a.json cells"] {
        let json: Value = serde_json::from_str(&done(at, &format!("{words} --json"))).unwrap();
        let csv = done(at, &format!("{words} --format csv"));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let header = reader.headers().unwrap().clone();
        let records: Vec<_> = reader.records().map(Result::unwrap).collect();
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(rows.len(), records.len(), "{words}");
        for (row, record) in rows.iter().zip(&records) {
            for (name, field) in header.iter().zip(record) {
                let value = &row[name];
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                assert_eq!(text, field, "{words}: {name}");
            }
        }
    }
    assert!(done(at, "show a.json --format plain").contains("\t720000\t"));
    assert!(done(at, "show a.json").contains("720 000 words"));
    let both = conset(at, "show a.json --format csv --json");
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains("--json and --format"), "{}", both.stderr);
}

#[test]
fn the_former_name_of_the_input_format_is_that_of_the_output_where_there_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("triangle"), "3 3\n2 3\n1 3\n1 2\n").unwrap();
    let machine = "--machine iwarp:2x2 --parts 3";
    for command in ["compile", "run"] {
        for option in ["--format", "--input-format"] {
            done(at, &format!("{command} triangle {machine} {option} metis-graph"));
        }
    }
    done(at, "info triangle --format metis-graph");
    done(at, &format!("bound triangle {machine} --input-format metis-graph --format csv"));
    assert_eq!(conset(at, &format!("bound triangle {machine} --format metis-graph")).code, 2);
    // Errors name the option that there is.
    let unknown = conset(at, &format!("bound triangle {machine}"));
    assert!(unknown.stderr.contains("give --input-format"), "{}", unknown.stderr);
}

#[test]
fn quiet_prints_only_errors_and_what_is_asked_for() {
    let folder = folder();
    let at = folder.path();
    for words in [
        "compile pattern:torus --machine iwarp:4x4 -o t.json",
        "run a.json",
        "verify a.json",
        "show a.json links",
        "diff a.json s.json",
        "view a.json -o a.html",
        "machines",
        "emit a.json --format listing -o listing",
    ] {
        let outcome = conset(at, &format!("{words} --quiet"));
        assert_eq!(outcome.stdout, "", "conset {words}");
        let is_error = outcome.code != 0;
        assert_eq!(!outcome.stderr.is_empty(), is_error, "conset {words}\n{}", outcome.stderr);
    }
    assert!(at.join("listing/listing.txt").exists());
    for words in ["-o -", "-o - --json", "--json"] {
        let words = format!("compile pattern:torus --machine iwarp:4x4 --quiet {words}");
        assert!(done(at, &words).starts_with('{'), "conset {words}");
    }
    assert!(done(at, "show a.json --quiet --format csv").starts_with("set,"));
}

#[test]
fn a_file_on_standard_output_leaves_the_report_to_standard_error() {
    let folder = folder();
    let at = folder.path();
    for (words, first) in [
        ("compile pattern:torus --machine iwarp:4x4 -o -", "{"),
        ("compile pattern:torus --machine cm5:8 --by steps -o -", "{"),
        ("run a.json --trace -", "{"),
        ("view a.json -o -", "<!"),
        ("machines iwarp -o -", "name"),
        ("patterns torus -o -", ""),
        ("generate plate:2x2 -o -", "$MeshFormat"),
        ("completions bash -o -", "_conset"),
    ] {
        let silent = conset(at, words);
        assert_eq!((silent.code, silent.stderr.as_str()), (0, ""), "conset {words}");
        let outcome = conset(at, &format!("{words} --json"));
        assert_eq!(outcome.code, 0, "conset {words}");
        assert!(outcome.stdout.trim_start().starts_with(first), "conset {words}");
        let report: Value = serde_json::from_str(&outcome.stderr).unwrap();
        let verb = words.split(' ').next().unwrap();
        assert_eq!(report["format"], format!("conset-{verb}"), "conset {words}");
    }
    // A failure is one object on standard error too, and standard output stays empty.
    let failed = conset(at, "compile nothing.msh -o - --json");
    assert_eq!((failed.code, failed.stdout.as_str()), (2, ""));
    let failure: Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!(failure["kind"], "input");
    // The compiled file is the same as without the report.
    let words = "compile pattern:torus --machine iwarp:4x4";
    done(at, &format!("{words} -o t.json"));
    assert_eq!(
        done(at, &format!("{words} -o - --json")),
        fs::read_to_string(at.join("t.json")).unwrap()
    );
}

#[test]
fn colours_are_for_errors_and_help_and_can_be_switched() {
    let folder = folder();
    let at = folder.path();
    let escape = '\u{1b}';
    for (words, is_error) in [("run nothing.msh", true), ("fly", true), ("--help", false)] {
        let told = |words: String| {
            let outcome = conset(at, &words);
            if is_error { outcome.stderr } else { outcome.stdout }
        };
        // Neither stream is a terminal here.
        assert!(!told(words.to_owned()).contains(escape), "{words}");
        assert!(!told(format!("{words} --color never")).contains(escape), "{words}");
        assert!(told(format!("{words} --color always")).contains(escape), "{words}");
        assert!(told(format!("--color=always {words}")).contains(escape), "{words}");
    }
    assert!(!done(at, "show a.json links --color always").contains(escape));
    assert_eq!(conset(at, "machines --color purple").code, 2);
}

#[test]
fn completions_and_man_pages_know_every_subcommand() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = done(at, &format!("completions {shell}"));
        for word in ["reproduce", "completions", "input-format", "all-to-all"].iter().take(3) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    done(at, "man -o pages/man1");
    let pages = fs::read_dir(at.join("pages/man1")).unwrap();
    let pages: Vec<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let help = done(at, "--help");
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !name.is_empty()) {
        assert!(pages.contains(&format!("conset-{name}.1")), "{name}: {pages:?}");
    }
    let page = fs::read_to_string(at.join("pages/man1/conset-show.1")).unwrap();
    assert!(page.contains("conset\\-show") && page.contains("connection X"), "{page}");
}

#[test]
fn help_has_the_words_and_the_subcommands() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let words = done(at, "help words");
    for word in ["critical path", "word-hop", "makespan", "optimal"] {
        assert!(words.lines().any(|line| line.starts_with(word)), "{word}: {words}");
    }
    assert!(words.lines().all(|line| line.chars().count() <= 100), "{words}");
    assert_eq!(done(at, "help show"), done(at, "show --help"));
    assert_eq!(done(at, "help"), done(at, "--help"));
    assert_eq!(conset(at, "help nonsense").code, 2);
    assert_eq!(conset(at, "help -- --").code, 2);
}

/// Names of files need not be UTF-8 on Linux; elsewhere file systems may refuse them.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8_are_read_and_written() {
    let folder = folder();
    let at = folder.path();
    let named = |extension: &str| {
        let mut name = b"r\xe9seau.".to_vec();
        name.extend(extension.bytes());
        name
    };
    let meshes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/meshes");
    let path = |extension: &str| at.join(OsStr::from_bytes(&named(extension)));
    fs::copy(meshes.join("plate.msh"), path("msh")).unwrap();
    fs::write(path("words"), "2\n".repeat(10_000)).unwrap();
    // Words are split at blanks, and `@msh` stands for the name with this extension.
    for words in [
        "machines iwarp:4x4 -o @toml",
        "machines @toml",
        "compile @msh --machine @toml -o @json",
        "compile @msh --machine iwarp:4x4 --reuse @json --write-partition @txt",
        "compile a.json -o @csi",
        "run @json --trace @gz",
        "show @json links",
        "show links @json",
        "why @json 0",
        "diff @json @json",
        "verify @json --against @msh --machine @toml",
        "bound @msh --machine iwarp:4x4",
        "predict @msh --machine iwarp:4x4 --algorithm phases",
        "view @msh @msh --machine iwarp:4x4 -o @html",
        "info @msh",
        "emit @json --format listing -o @folder",
        "emit @json --format rust -o @crate",
        "generate plate:2x2 -o @msh",
        "patterns torus -o @cset",
        "completions zsh -o @zsh",
        "man -o @man",
    ] {
        let words: Vec<Vec<u8>> = words
            .split(' ')
            .map(|word| word.strip_prefix('@').map_or_else(|| word.into(), named))
            .collect();
        let outcome = run(at, words.iter().map(|word| OsStr::from_bytes(word)));
        assert_eq!(outcome.code, 0, "{:?}\n{}", words, outcome.stderr);
    }
    for extension in ["json", "txt", "csi", "gz", "html", "folder/listing.txt", "cset", "zsh"] {
        assert!(path(extension).exists(), "{extension}");
    }
}

/// A limit on the size of files stands for a full disk: the image exceeds it, other files do not.
#[test]
fn a_disk_that_is_full_has_nothing_of_an_emitted_crate() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("kept")).unwrap();
    let emit = |output: &str| {
        let line = format!(
            "trap '' XFSZ; ulimit -f 8; exec '{}' emit a.json --format rust -o {output}",
            env!("CARGO_BIN_EXE_conset"),
        );
        Command::new("bash").args(["-c", &line]).current_dir(at).output().unwrap()
    };
    for output in ["out/deep", "kept"] {
        let outcome = emit(output);
        let told = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status.code(), Some(2), "{told}");
        assert!(told.contains("cannot be written"), "{told}");
    }
    assert!(!at.join("out").exists(), "folders that were created are removed");
    assert_eq!(fs::read_dir(at.join("kept")).unwrap().count(), 0);
    done(at, "emit a.json --format rust -o out/deep");
    assert!(at.join("out/deep/Cargo.toml").exists());
}
