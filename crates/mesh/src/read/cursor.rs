//! A place in the bytes of a file, for all readers.
//!
//! Readers pull words, whole numbers and reals straight from the bytes; nothing is split into
//! lines or copied into strings. Line and column are counted only when an error is made. A
//! carriage return counts as blank, so files from any system read alike.

use conset_ir::{At, InputError, Result};

/// Where a reader is in its file.
pub(crate) struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the word read last began.
    last: usize,
    /// Errors name byte offsets instead of lines.
    binary: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { file, bytes, at, last: at, binary: false }
    }

    /// From here on the file is binary.
    pub(crate) fn set_binary(&mut self) {
        self.binary = true;
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes to a byte.
    pub(crate) fn seek(&mut self, offset: usize) {
        self.at = offset.min(self.bytes.len());
        self.last = self.at;
    }

    /// Where the word read last began.
    pub(crate) fn last(&self) -> usize {
        self.last
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Room to reserve for `declared` rows of at least `row_bytes` each: never more than the rest
    /// of the file can hold.
    pub(crate) fn capacity(&self, declared: u64, row_bytes: usize) -> usize {
        let possible = self.rest().len() / row_bytes.max(1) + 1;
        usize::try_from(declared).unwrap_or(usize::MAX).min(possible)
    }

    /// An error at a byte of the file.
    pub(crate) fn error_at(&self, offset: usize, message: impl Into<String>) -> InputError {
        let at = if self.binary {
            At::Byte(offset)
        } else {
            let before = &self.bytes[..offset.min(self.bytes.len())];
            let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
            At::Text {
                line: before.iter().filter(|&&b| b == b'\n').count() + 1,
                column: before.len() - line_start + 1,
                offset,
            }
        };
        InputError::new(self.file, at, message)
    }

    /// An error at the word read last.
    pub(crate) fn error(&self, message: impl Into<String>) -> InputError {
        self.error_at(self.last, message)
    }

    /// Skips blanks and line ends.
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips blanks within the line; whether the line (or the file) ends here.
    #[inline]
    pub(crate) fn at_line_end(&mut self) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte == b'\n' {
                return true;
            }
            if !byte.is_ascii_whitespace() {
                return false;
            }
            self.at += 1;
        }
        true
    }

    /// Whether nothing is left.
    pub(crate) fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Goes to the start of the next line.
    pub(crate) fn next_line(&mut self) {
        self.at = match self.rest().iter().position(|&b| b == b'\n') {
            Some(n) => self.at + n + 1,
            None => self.bytes.len(),
        };
    }

    /// Goes to the next line.
    ///
    /// # Errors
    /// Something is left on this one; `expected` says what should have been all.
    pub(crate) fn end_line(&mut self, expected: &str) -> Result<()> {
        if !self.at_line_end() {
            let offset = self.at;
            let word = show(self.peek_word());
            return Err(self.error_at(offset, format!("`{word}` is too much here: {expected}")));
        }
        self.next_line();
        Ok(())
    }

    /// From the start of a line, goes past lines that are empty or begin with `mark`.
    pub(crate) fn skip_blank_and_comment_lines(&mut self, mark: u8) {
        while !self.at_end() {
            if self.at_line_end() || self.bytes[self.at] == mark {
                self.next_line();
            } else {
                return;
            }
        }
    }

    /// From the start of a line, goes past lines that begin with `mark`.
    pub(crate) fn skip_comment_lines(&mut self, mark: u8) {
        while self.bytes.get(self.at) == Some(&mark) {
            self.next_line();
        }
    }

    /// The word that begins at the next byte, empty at a blank or the end.
    pub(crate) fn peek_word(&self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The next word, on this line or a later one.
    ///
    /// # Errors
    /// The file ends first.
    #[inline]
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a [u8]> {
        self.skip_space();
        self.last = self.at;
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.error(format!("the file ends where {what} was expected")));
        }
        self.at += word.len();
        Ok(word)
    }

    /// The next whole number, from 0 to `max`.
    ///
    /// # Errors
    /// No number, or a larger one.
    #[inline]
    pub(crate) fn integer(&mut self, what: &str, max: u64) -> Result<u64> {
        let word = self.word(what)?;
        match parse_integer(word) {
            Some(value) if value <= max => Ok(value),
            _ => Err(self.wrong_integer(word, what, max)),
        }
    }

    #[cold]
    fn wrong_integer(&self, word: &[u8], what: &str, max: u64) -> InputError {
        let shown = show(word);
        if !word.is_empty() && word.iter().all(u8::is_ascii_digit) {
            self.error(format!("`{shown}` is too large for {what}; expected at most {max}"))
        } else {
            self.error(format!("`{shown}` is not a whole number; expected {what}"))
        }
    }

    /// The next whole number with sign.
    ///
    /// # Errors
    /// No number, or one beyond 32 bits.
    pub(crate) fn signed(&mut self, what: &str) -> Result<i32> {
        let word = self.word(what)?;
        let (negative, digits) = match word {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, word),
        };
        parse_integer(digits)
            .and_then(|value| i64::try_from(value).ok())
            .and_then(|value| i32::try_from(if negative { -value } else { value }).ok())
            .ok_or_else(|| self.wrong_integer(word, what, i32::MAX as u64))
    }

    /// The next number, which must be finite.
    ///
    /// # Errors
    /// No number, or `nan` or `inf`.
    pub(crate) fn real(&mut self, what: &str) -> Result<f64> {
        let word = self.word(what)?;
        let value = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
        match value {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(self.error(format!("`{}` is not finite; expected {what}", show(word)))),
            None => Err(self.error(format!("`{}` is not a number; expected {what}", show(word)))),
        }
    }

    /// The next `N` bytes of a binary file.
    ///
    /// # Errors
    /// The file ends first.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        self.last = self.at;
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.error(format!("the file ends where {what} was expected"))),
        }
    }
}

impl<'a> Cursor<'a> {
    /// The token that starts at the next byte; empty at white space or the end.
    pub(crate) fn peek_token(&self) -> &'a [u8] {
        self.peek_word()
    }

    /// The next token, on this line or a later one.
    ///
    /// # Errors
    /// The file ends first.
    pub(crate) fn token(&mut self, what: &str) -> Result<&'a [u8]> {
        self.word(what)
    }

    /// [`Cursor::integer`] for a number that is used as a count.
    pub(crate) fn count(&mut self, what: &str, max: usize) -> Result<usize> {
        self.integer(what, conset_ir::convert::to_u64(max)).map(conset_ir::convert::to_usize)
    }

    /// [`Cursor::integer`] for a number that is stored in 32 bits; `max` must fit.
    pub(crate) fn number(&mut self, what: &str, max: usize) -> Result<u32> {
        self.integer(what, conset_ir::convert::to_u64(max)).map(conset_ir::convert::to_u32)
    }
}

/// A whole number of decimal digits.
#[inline]
fn parse_integer(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A word as an error shows it: printable and not long.
pub(crate) fn show(word: &[u8]) -> String {
    let cut = &word[..word.len().min(40)];
    let text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if word.len() > cut.len() { text + "..." } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_lookalikes_refused() {
        let mut c = Cursor::new("f", b" 12\r\n-7 1e3 18446744073709551616 +3 nan 2.5 5");
        assert_eq!(c.integer("n", 12).unwrap(), 12);
        assert_eq!(c.signed("n").unwrap(), -7);
        assert_eq!(c.real("x").unwrap(), 1000.0);
        assert!(c.integer("n", 9).unwrap_err().message.contains("too large"));
        assert!(c.integer("n", 9).is_err());
        assert!(c.real("x").unwrap_err().message.contains("not finite"));
        assert!(c.integer("n", 9).unwrap_err().message.contains("not a whole number"));
        assert!(c.integer("n", 4).unwrap_err().message.contains("at most 4"));
        assert!(c.word("n").unwrap_err().message.contains("ends where n"));
    }

    #[test]
    fn positions_are_line_column_and_offset() {
        let mut c = Cursor::new("f", b"ab\n  cd x");
        c.word("w").unwrap();
        c.word("w").unwrap();
        assert_eq!(c.error("e").at, At::Text { line: 2, column: 3, offset: 5 });
        let error = c.end_line("one word").unwrap_err();
        assert_eq!(error.at, At::Text { line: 2, column: 6, offset: 8 });
        c.set_binary();
        assert_eq!(c.error("e").at, At::Byte(5));
    }

    #[test]
    fn room_is_never_reserved_for_a_claim() {
        let c = Cursor::new("f", b"0123456789");
        assert_eq!(c.capacity(u64::MAX, 2), 6);
        assert_eq!(c.capacity(3, 2), 3);
    }
}
