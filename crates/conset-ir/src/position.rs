//! Positions in a text for error messages, and suggestions for misspelt words.
//!
//! Readers track byte offsets only. Lines are counted when there is an error to report.

use crate::error::{At, InputError, Result};

/// Bytes as text. `name` is the name of the file in error messages.
///
/// # Errors
/// The position of the first byte that is not UTF-8.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        InputError::new(name, locate(bytes, e.valid_up_to()), "not text: expected UTF-8")
    })
}

/// The position of byte `offset` of a text: line and column from 1, columns in bytes. An offset
/// beyond the end means the end. O(offset).
///
/// ```
/// use conset_ir::{At, position::locate};
///
/// assert_eq!(locate(b"ab\ncd", 4), At::Text { line: 2, column: 2, offset: 4 });
/// ```
pub fn locate(text: &[u8], offset: usize) -> At {
    let offset = offset.min(text.len());
    let before = &text[..offset];
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
    At::Text { line, column: offset - start + 1, offset }
}

/// The position of a line and column reported by another parser (from 1; 0 means 1).
pub fn locate_line(text: &[u8], line: usize, column: usize) -> At {
    let start = match line {
        0 | 1 => 0,
        _ => text
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .nth(line - 2)
            .map_or(text.len(), |(newline, _)| newline + 1),
    };
    locate(text, start + column.saturating_sub(1))
}

/// The known word that is closest to `word` by edit distance, if it is close enough for `word` to
/// be a misspelling of it.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 40;
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= (candidate.len() + 1).max(3) / 3)
        .map(|(_, candidate)| candidate)
}

/// The edit distance from `a` to `b`: bytes to insert, remove, replace or swap with the next one.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Row i: distances from the first i bytes of `a` to the first j of `b`. Swaps use row i - 2.
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replaced = rows[i][j] + usize::from(a[i] != b[j]);
            row[j + 1] = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(rows[i - 1][j - 1] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Help for serde's "unknown field `x`, expected one of `a`, `b`": the closest known key.
pub(crate) fn help_unknown_key(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    did_you_mean(wrong, quoted).map(|meant| format!("did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize, offset: usize) -> At {
        At::Text { line, column, offset }
    }

    #[test]
    fn offsets_become_lines_and_columns() {
        let text = b"ab\n\ncd";
        assert_eq!(locate(text, 0), at(1, 1, 0));
        assert_eq!(locate(text, 2), at(1, 3, 2));
        assert_eq!(locate(text, 3), at(2, 1, 3));
        assert_eq!(locate(text, 5), at(3, 2, 5));
        assert_eq!(locate(text, 99), at(3, 3, 6));
        assert_eq!(locate_line(text, 3, 2), at(3, 2, 5));
        assert_eq!(locate_line(text, 9, 1), at(3, 3, 6));
        assert_eq!(locate_line(b"", 0, 0), at(1, 1, 0));
    }

    #[test]
    fn close_words_are_suggested_and_distant_ones_are_not() {
        let known = ["words", "phase", "channels_per_cell"];
        assert_eq!(did_you_mean("wrods", known), Some("words"));
        assert_eq!(did_you_mean("sned", ["send", "receive"]), Some("send"));
        assert_eq!(did_you_mean("sword", known), Some("words"));
        assert_eq!(did_you_mean("word", known), Some("words"));
        assert_eq!(did_you_mean("chanels_per_cel", known), Some("channels_per_cell"));
        assert_eq!(did_you_mean("zebra", known), None);
        let message = "unknown field `cel`, expected one of `cells`, `channels`";
        assert_eq!(help_unknown_key(message).unwrap(), "did you mean `cells`?");
    }
}
