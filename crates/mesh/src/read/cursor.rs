//! The tokenizer of all readers: a position in the bytes of a file.
//!
//! Readers take tokens, integers and floating-point numbers directly from the bytes; nothing is
//! split into lines or copied into strings. Line and column are computed only for errors. A carriage
//! return counts as white space, so line ends of any system are accepted.

use conset_ir::convert::{to_u32, to_u64, to_usize};
use conset_ir::{At, InputError, Result};

/// The largest value of a signed 32-bit integer, which several formats and METIS use.
pub(crate) const MAX_INT: u64 = 0x7fff_ffff;

/// The position of a reader in its file.
pub(crate) struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Where the last token starts.
    last: usize,
    /// Errors give byte offsets instead of lines.
    binary: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { file, bytes, at, last: at, binary: false }
    }

    /// Declares the rest of the file binary.
    pub(crate) fn set_binary(&mut self) {
        self.binary = true;
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Moves to a byte offset.
    pub(crate) fn seek(&mut self, offset: usize) {
        self.at = offset.min(self.bytes.len());
        self.last = self.at;
    }

    /// Where the last token starts.
    pub(crate) fn last(&self) -> usize {
        self.last
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The capacity to reserve for `declared` rows of at least `row_bytes` each: never more than the
    /// rest of the file can hold.
    pub(crate) fn capacity(&self, declared: u64, row_bytes: usize) -> usize {
        let possible = self.rest().len() / row_bytes.max(1) + 1;
        usize::try_from(declared).unwrap_or(usize::MAX).min(possible)
    }

    /// An error at a byte offset.
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

    /// An error at the last token.
    pub(crate) fn error(&self, message: impl Into<String>) -> InputError {
        self.error_at(self.last, message)
    }

    /// Skips white space, including line ends.
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Skips white space within the line; returns whether the line (or the file) ends here.
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

    /// Whether the file ends here.
    pub(crate) fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Moves to the start of the next line.
    pub(crate) fn next_line(&mut self) {
        self.at = match self.rest().iter().position(|&b| b == b'\n') {
            Some(n) => self.at + n + 1,
            None => self.bytes.len(),
        };
    }

    /// Moves to the next line.
    ///
    /// # Errors
    /// This line has another token; `expected` describes the complete line.
    pub(crate) fn end_line(&mut self, expected: &str) -> Result<()> {
        if !self.at_line_end() {
            let offset = self.at;
            let token = show(self.peek_token());
            let message =
                format!("unexpected `{token}` at the end of the line: expected {expected}");
            return Err(self.error_at(offset, message));
        }
        self.next_line();
        Ok(())
    }

    /// At the start of a line: skips lines that are empty or start with `mark`.
    pub(crate) fn skip_blank_and_comment_lines(&mut self, mark: u8) {
        while !self.at_end() {
            if self.at_line_end() || self.bytes[self.at] == mark {
                self.next_line();
            } else {
                return;
            }
        }
    }

    /// At the start of a line: skips lines that start with `mark`.
    pub(crate) fn skip_comment_lines(&mut self, mark: u8) {
        while self.bytes.get(self.at) == Some(&mark) {
            self.next_line();
        }
    }

    /// The token that starts at the next byte; empty at white space or the end.
    pub(crate) fn peek_token(&self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The next token, on this line or a later one.
    ///
    /// # Errors
    /// The file ends first.
    #[inline]
    pub(crate) fn token(&mut self, what: &str) -> Result<&'a [u8]> {
        self.skip_space();
        self.last = self.at;
        let token = self.peek_token();
        if token.is_empty() {
            return Err(self.error(format!("the file ends where {what} was expected")));
        }
        self.at += token.len();
        Ok(token)
    }

    /// The next integer, from 0 to `max`.
    ///
    /// # Errors
    /// The token is not an integer or is larger than `max`.
    #[inline]
    pub(crate) fn integer(&mut self, what: &str, max: u64) -> Result<u64> {
        let token = self.token(what)?;
        match parse_integer(token) {
            Some(value) if value <= max => Ok(value),
            _ => Err(self.integer_error(token, what, max)),
        }
    }

    /// [`Cursor::integer`] for a number that is used as a count.
    #[inline]
    pub(crate) fn count(&mut self, what: &str, max: usize) -> Result<usize> {
        self.integer(what, to_u64(max)).map(to_usize)
    }

    /// [`Cursor::integer`] for a number that is stored in 32 bits; `max` must fit.
    #[inline]
    pub(crate) fn number(&mut self, what: &str, max: usize) -> Result<u32> {
        self.integer(what, to_u64(max)).map(to_u32)
    }

    #[cold]
    fn integer_error(&self, token: &[u8], what: &str, max: u64) -> InputError {
        let shown = show(token);
        if !token.is_empty() && token.iter().all(u8::is_ascii_digit) {
            self.error(format!("`{shown}` is too large for {what}; expected at most {max}"))
        } else {
            self.error(format!("`{shown}` is not a whole number; expected {what}"))
        }
    }

    /// The next signed integer.
    ///
    /// # Errors
    /// The token is not an integer or does not fit 32 bits.
    pub(crate) fn signed(&mut self, what: &str) -> Result<i32> {
        let token = self.token(what)?;
        let (negative, digits) = match token {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, token),
        };
        parse_integer(digits)
            .and_then(|value| i64::try_from(value).ok())
            .and_then(|value| i32::try_from(if negative { -value } else { value }).ok())
            .ok_or_else(|| self.integer_error(token, what, MAX_INT))
    }

    /// The next floating-point number.
    ///
    /// # Errors
    /// The token is not a number or is not finite.
    pub(crate) fn real(&mut self, what: &str) -> Result<f64> {
        let token = self.token(what)?;
        let value = std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok());
        match value {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(self.error(format!("`{}` is not finite; expected {what}", show(token)))),
            None => Err(self.error(format!("`{}` is not a number; expected {what}", show(token)))),
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

/// An unsigned integer in decimal digits.
#[inline]
fn parse_integer(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A token for an error message: printable and of limited length.
pub(crate) fn show(token: &[u8]) -> String {
    let cut = &token[..token.len().min(40)];
    let text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if token.len() > cut.len() { text + "..." } else { text }
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
        assert!(c.token("n").unwrap_err().message.contains("ends where n"));
    }

    #[test]
    fn positions_are_line_column_and_offset() {
        let mut c = Cursor::new("f", b"ab\n  cd x");
        c.token("w").unwrap();
        c.token("w").unwrap();
        assert_eq!(c.error("e").at, At::Text { line: 2, column: 3, offset: 5 });
        let error = c.end_line("one token").unwrap_err();
        assert_eq!(error.at, At::Text { line: 2, column: 6, offset: 8 });
        c.set_binary();
        assert_eq!(c.error("e").at, At::Byte(5));
    }

    #[test]
    fn capacity_never_exceeds_the_file() {
        let c = Cursor::new("f", b"0123456789");
        assert_eq!(c.capacity(u64::MAX, 2), 6);
        assert_eq!(c.capacity(3, 2), 3);
    }
}
