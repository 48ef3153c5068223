//! `conset help words`: the meaning of the words of the output.
//!
//! The words are those of the README's vocabulary, of which `words.md` is a copy; a test keeps them
//! equal.

use comfy_table::{ColumnConstraint, ContentArrangement, Width};

use crate::error::CliError;
use crate::rows::TableRows;
use crate::text::{self, Terminal};

/// The vocabulary of the README.
const VOCABULARY: &str = include_str!("../words.md");

/// The width of the text.
const WIDTH: u16 = 100;

/// The greatest width of the column of words.
const WORD_WIDTH: u16 = 28;

/// A line of the vocabulary.
enum Line<'a> {
    Sentence(&'a str),
    Word { word: &'a str, meaning: &'a str },
}

fn lines() -> impl Iterator<Item = Line<'static>> {
    let is_header = |line: &str| line.starts_with("| word |") || line.starts_with("|---");
    let lines = VOCABULARY.lines().filter(move |line| !line.is_empty() && !is_header(line));
    lines.map(|line| {
        let row = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        match row.and_then(|row| row.split_once(" | ")) {
            Some((word, meaning)) => Line::Word { word, meaning },
            None => Line::Sentence(line),
        }
    })
}

/// Prints all words.
pub(crate) fn words(terminal: &Terminal) -> Result<(), CliError> {
    let mut rows = TableRows::new(&["word", "meaning"], 2);
    for line in lines() {
        if let Line::Word { word, meaning } = line {
            rows.rows.push(vec![word.into(), meaning.into()]);
        }
    }
    rows.print_drawn(terminal, |out| {
        let mut lines = lines().peekable();
        while let Some(line) = lines.next() {
            let Line::Sentence(sentence) = line else { continue };
            writeln!(out, "{sentence}\n")?;
            let mut table = text::table(&["word", "meaning"], 2);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
            if let Some(column) = table.column_mut(0) {
                column.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(WORD_WIDTH)));
            }
            while let Some(Line::Word { word, meaning }) =
                lines.next_if(|line| matches!(line, Line::Word { .. }))
            {
                table.add_row([word, meaning]);
            }
            text::write_table(out, &table)?;
            if lines.peek().is_some() {
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_readme() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let readme = std::fs::read_to_string(path).unwrap();
        let (_, section) = readme.split_once("\n## Vocabulary\n").expect("it has a vocabulary");
        let section = section.split("\n## ").next().unwrap().trim();
        if std::env::var_os("CONSET_BLESS").is_some() {
            let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/src/words.md");
            return std::fs::write(copy, format!("{section}\n")).unwrap();
        }
        assert!(section == VOCABULARY.trim(), "words.md is old: CONSET_BLESS=1 writes it anew");
    }

    #[test]
    fn every_line_is_a_sentence_or_a_word() {
        let words = lines().filter(|line| matches!(line, Line::Word { .. })).count();
        let sentences = lines().filter_map(|line| match line {
            Line::Sentence(sentence) => Some(sentence),
            Line::Word { .. } => None,
        });
        let sentences: Vec<&str> = sentences.collect();
        assert!(words > 50 && sentences.iter().all(|s| s.ends_with(':')), "{words} {sentences:?}");
        assert!(matches!(lines().next(), Some(Line::Sentence(_))), "each table has a title");
    }
}
