//! Every word that the output uses as a label, a column or a kind of bound is in the vocabulary of
//! the README.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use conset_ir::Binding;

/// The width of the labels at the beginning of report lines, with the blanks behind them.
const LABEL_WIDTH: usize = 9;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The words in the first columns of the tables of the README's vocabulary.
fn vocabulary() -> BTreeSet<String> {
    let readme = fs::read_to_string(here().join("../../README.md")).unwrap();
    let section = readme.split("\n## Vocabulary\n").nth(1).expect("the README has a vocabulary");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let words = rows.flat_map(|row| row.split(" | ").next().unwrap().split(", "));
    words.map(|word| word.trim_matches('`').to_owned()).collect()
}

/// The label at the beginning of a report line, such as `phases` in `phases   4, bound 4`.
fn label(line: &str) -> Option<&str> {
    let (label, rest) = line.split_at_checked(LABEL_WIDTH)?;
    let word = label.trim_end();
    let is_label = word.len() < LABEL_WIDTH
        && !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_lowercase())
        && rest.starts_with(|first: char| !first.is_whitespace());
    is_label.then_some(word)
}

/// The columns of a table, if the line is its header: lower-case words, at least two blanks apart.
fn columns(line: &str) -> Vec<&str> {
    let cells: Vec<&str> =
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let is_name = |cell: &&str| {
        cell.bytes().all(|byte| byte.is_ascii_lowercase() || b"_ ".contains(&byte))
            && cell.split(' ').count() <= 3
    };
    if cells.len() < 2 || label(line).is_some() || !cells.iter().all(is_name) {
        return Vec::new();
    }
    cells
}

/// The files of a folder and of the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn labels_and_columns_of_the_output_are_in_the_vocabulary() {
    let known = vocabulary();
    let mut used = BTreeSet::new();
    for file in files(&here().join("tests/golden")) {
        // Help texts are prose.
        if file.file_name().is_some_and(|name| name == "help.txt") {
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        used.extend(text.lines().filter_map(label).map(str::to_owned));
        // A header has rows below it.
        let lines: Vec<&str> = text.lines().collect();
        let headers = lines.windows(2).filter(|pair| !pair[1].is_empty()).map(|pair| pair[0]);
        used.extend(headers.flat_map(columns).map(str::to_owned));
    }
    for word in ["machine", "tried", "max_sharing", "witness", "phase_clocks", "what it is"] {
        assert!(used.contains(word), "the goldens have no `{word}`: {used:?}");
    }
    // Labels of lines that no golden has, from the format strings of the subcommands.
    for file in files(&here().join("src/commands")) {
        let text = fs::read_to_string(file).unwrap();
        // At least two blanks, unlike in sentences.
        let labels = text.split('"').filter_map(label).filter(|word| word.len() + 2 <= LABEL_WIDTH);
        used.extend(labels.map(str::to_owned));
    }
    assert!(used.contains("fabric") && used.contains("reuse"), "{used:?}");
    let unknown: Vec<&String> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "not in the vocabulary of README.md: {unknown:?}");
}

#[test]
fn kinds_of_bounds_are_in_the_vocabulary() {
    let known = vocabulary();
    for binding in Binding::ALL {
        assert!(known.contains(binding.name()), "not in the vocabulary of README.md: {binding}");
    }
}
