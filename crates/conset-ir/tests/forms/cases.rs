//! Golden files: `fixtures/cases/*` are parsed and printed again, and `fixtures/cases/reject/*` are
//! refused with the message in the file of the same name with the suffix `.expect`.
//!
//! `CONSET_BLESS=1 cargo test -p conset-ir` rewrites the expectations; `git diff` shows what
//! changed.

use std::fs;
use std::path::{Path, PathBuf};

use conset_ir::{Document, binary, json, machine_file, text};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// The files of a folder that are in a conset format, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let extension = path.extension().and_then(|e| e.to_str());
            matches!(extension, Some("cset" | "json" | "toml" | "csb" | "csi"))
        })
        .collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Compares with the `.expect` file, or rewrites it. Returns the difference, if any.
fn expect(path: &Path, found: &str) -> Option<String> {
    let expected = PathBuf::from(format!("{}.expect", path.display()));
    if std::env::var_os("CONSET_BLESS").is_some() {
        fs::write(&expected, found).unwrap();
        return None;
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    (wanted != found)
        .then(|| format!("{}\n--- expected\n{wanted}\n--- found\n{found}", path.display()))
}

#[test]
fn accepted_files_print_canonically() {
    let mut different = Vec::new();
    let files = files(&folder("cases"));
    assert!(files.len() >= 10, "the cases are gone");
    for path in files {
        let document = Document::parse_any(&name(&path), &fs::read(&path).unwrap())
            .unwrap_or_else(|e| panic!("{e}"));
        let printed = text::write(&document);
        different.extend(expect(&path, &printed));
        // The printed text is parsed as an equal value, in every form.
        assert_eq!(text::parse("again", &printed).unwrap(), document, "{}", path.display());
        assert_eq!(binary::parse("again", &binary::write(&document)).unwrap(), document);
        if let Some(written) = json::write(&document) {
            assert_eq!(json::parse("again", written.as_bytes()).unwrap(), document);
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn rejected_files_are_refused_with_the_message_expected() {
    let mut different = Vec::new();
    let files = files(&folder("cases/reject"));
    assert!(files.len() >= 40, "the cases are gone");
    for path in files {
        match Document::parse_any(&name(&path), &fs::read(&path).unwrap()) {
            Ok(document) => different.push(format!("{} is a {}", path.display(), document.kind())),
            Err(error) => different.extend(expect(&path, &format!("{error}\n"))),
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Every file of a released version remains readable. These files were written by that version and
/// are never blessed; files with the same stem have the same value.
#[test]
fn files_of_old_versions_are_still_read() {
    let mut last: Option<(PathBuf, Document)> = None;
    let versions: Vec<Vec<PathBuf>> =
        (1..=text::VERSION).map(|version| files(&folder(&format!("compat/v{version}")))).collect();
    let least = [14, 3, 3, 17, 4, 4, 3, 3];
    assert_eq!(versions.len(), least.len(), "files of each version");
    let enough = versions.iter().zip(least).all(|(files, least)| files.len() >= least);
    assert!(enough, "the files of old versions are gone");
    for path in versions.into_iter().flatten() {
        let document = Document::parse_any(&name(&path), &fs::read(&path).unwrap())
            .unwrap_or_else(|e| panic!("{e}"));
        let stem = path.with_extension("");
        match &last {
            Some((same, value)) if *same == stem => assert_eq!(*value, document, "{}", name(&path)),
            _ => last = Some((stem, document)),
        }
    }
}

/// The examples of `docs/format.md` are correct: each fenced block whose language is `cset`, `json`
/// or `toml` can be parsed, and those marked `error` cannot.
#[test]
fn the_documented_examples_are_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let book = fs::read_to_string(&path).unwrap();
    let mut checked = 0;
    for (row, block) in book.split("\n```").enumerate().filter(|(row, _)| row % 2 == 1) {
        let (language, example) = block.split_once('\n').unwrap_or((block, ""));
        let mut words = language.split_whitespace();
        let form = words.next().unwrap_or_default();
        if !matches!(form, "cset" | "json" | "toml") {
            continue;
        }
        let refused = words.next() == Some("error");
        let place = format!("format.md, block {row}:\n{example}");
        let result = Document::parse_any("format.md", example.as_bytes());
        match result {
            Ok(document) => {
                assert!(!refused, "{place}\nis not refused");
                if let Document::Schedule(schedule) = &document {
                    let digest = schedule.digest();
                    let computed = schedule.clone().with_digest().digest();
                    assert!(digest.is_none() || digest == computed, "{place}\n{computed:x?}");
                }
                assert_eq!(text::parse("again", &text::write(&document)), Ok(document), "{place}");
            }
            Err(error) => assert!(refused, "{place}\n{error}"),
        }
        checked += 1;
    }
    assert!(checked >= 8, "{checked} examples in {}", path.display());
}

/// The presets are part of the text form: a file may contain only `machine iwarp:8x8`.
#[test]
fn the_presets_numbers_do_not_change() {
    let numbers = |spec: &str| {
        let machine = conset_ir::Machine::from_spec(spec).unwrap();
        let text = machine_file::write(&machine);
        text.lines().take_while(|l| !l.is_empty()).skip(1).collect::<Vec<_>>().join("\n")
    };
    let iwarp = "channels_per_cell = 12\nchannels_reserved = 8\nchannel_depth = 8\n\
        link_clocks_per_word = 2\naccess_clocks_per_word = 2\nstreams = 1\nstream_setup = 0\n\
        t_sync = 352\nt_phase = 176\nc_send = 400\nc_receive = 400\nmessage_extra_words = 4\n\
        clock_hz = 20000000\nword_bytes = 4\nduplex = \"full\"";
    for spec in ["iwarp", "torus:2x2", "mesh:2x2", "ring:4", "hypercube:2", "fat-tree:4"] {
        assert_eq!(numbers(spec), iwarp, "{spec}");
    }
    let fem = iwarp.replace("access_clocks_per_word = 2", "access_clocks_per_word = 10");
    assert_eq!(numbers("iwarp-fem"), fem.replace("full", "half"));
    let with_setup =
        |clocks| iwarp.replace("stream_setup = 0", &format!("stream_setup = {clocks}"));
    assert_eq!(numbers("iwarp-stream"), with_setup(98));
    assert_eq!(numbers("iwarp-spool"), with_setup(400));
    let changed = |rows: &[(&str, &str)], last: &str| {
        let set = |text: String, row: &(&str, &str)| text.replacen(row.0, row.1, 1);
        rows.iter().fold(iwarp.to_owned(), set) + last
    };
    let words = ("message_extra_words = 4", "message_extra_words = 0");
    let cm5 = [
        ("link_clocks_per_word = 2", "link_clocks_per_word = 25"),
        ("access_clocks_per_word = 2", "access_clocks_per_word = 45"),
        ("c_send = 400", "c_send = 3602"),
        ("c_receive = 400", "c_receive = 3603"),
        words,
        ("clock_hz = 20000000", "clock_hz = 100000000"),
        (
            "duplex = \"full\"",
            "control_barrier = 600\ncontrol_reduce = 4200\ncontrol_broadcast = 14300\n\
             control_clocks_per_word = 595\nduplex = \"half\"\nprotocol = \"rendezvous\"",
        ),
    ];
    assert_eq!(numbers("cm5"), changed(&cm5, ""));
    let active = "control_clocks_per_word = 595\nactive_words = 4\nc_active_send = 200\n\
                  c_active_receive = 200\nc_poll = 30";
    let with_active = numbers("cm5")
        .replace("control_reduce = 4200", "control_reduce = 600")
        .replace("control_clocks_per_word = 595", active);
    assert_eq!(numbers("cm5-active"), with_active);
    let delta = [
        ("link_clocks_per_word = 2", "link_clocks_per_word = 13"),
        ("access_clocks_per_word = 2", "access_clocks_per_word = 13"),
        ("c_send = 400", "c_send = 1400"),
        ("c_receive = 400", "c_receive = 0"),
        words,
        ("clock_hz = 20000000", "clock_hz = 40000000"),
    ];
    assert_eq!(numbers("delta"), changed(&delta, ""));
    let t3d = [
        ("link_clocks_per_word = 2", "link_clocks_per_word = 4"),
        ("access_clocks_per_word = 2", "access_clocks_per_word = 12"),
        ("c_send = 400", "c_send = 357"),
        ("c_receive = 400", "c_receive = 357"),
        ("message_extra_words = 4", "message_extra_words = 3"),
        ("clock_hz = 20000000", "clock_hz = 150000000"),
        (
            "word_bytes = 4",
            "word_bytes = 8\ncopy_clocks_per_word = 7\ncombine_clocks_per_word = 20",
        ),
    ];
    assert_eq!(numbers("t3d"), changed(&t3d, "\nprotocol = \"rendezvous\""));
}
