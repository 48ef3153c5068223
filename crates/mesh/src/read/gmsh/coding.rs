//! How numbers and sections are written in a Gmsh file: text or binary, in either byte order.

use conset_ir::{InputError, Result};

use super::super::cursor::{Cursor, show};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Version {
    V22,
    V41,
}

/// How numbers are written.
#[derive(Clone, Copy)]
pub(super) enum Coding {
    Text,
    Binary { big_endian: bool, wide: bool },
}

pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) coding: Coding,
}

impl<'a> Reader<'a> {
    /// An `int`: 4 bytes.
    #[inline]
    pub(super) fn int(&mut self, what: &str) -> Result<i32> {
        match self.coding {
            Coding::Text => self.cursor.signed(what),
            Coding::Binary { big_endian, .. } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) })
            }
        }
    }

    /// An `int` that cannot be negative.
    #[inline]
    pub(super) fn count(&mut self, what: &str) -> Result<u64> {
        match self.coding {
            Coding::Text => self.cursor.integer(what, i32::MAX as u64),
            Coding::Binary { .. } => {
                let value = self.int(what)?;
                u64::try_from(value)
                    .map_err(|_| self.cursor.error(format!("{value} is negative; expected {what}")))
            }
        }
    }

    /// A `size_t`.
    #[inline]
    pub(super) fn size(&mut self, what: &str) -> Result<u64> {
        match self.coding {
            Coding::Text => self.cursor.integer(what, u64::MAX),
            Coding::Binary { big_endian, wide: true } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
            }
            Coding::Binary { big_endian, wide: false } => {
                let bytes = self.cursor.take(what)?;
                let value =
                    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
                Ok(u64::from(value))
            }
        }
    }

    /// A `double`, finite.
    #[inline]
    pub(super) fn real(&mut self, what: &str) -> Result<f64> {
        let Coding::Binary { big_endian, .. } = self.coding else {
            return self.cursor.real(what);
        };
        let bytes = self.cursor.take(what)?;
        let value = if big_endian { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.cursor.error(format!("{value} is not finite; expected {what}")))
        }
    }

    /// Checks a declared count before anything believes it.
    pub(super) fn checked(&self, count: u64, limit: usize, what: &str) -> Result<u64> {
        if count > limit as u64 {
            return Err(self.cursor.error(format!("{count} {what}, at most {limit}")));
        }
        Ok(count)
    }

    /// The name of the next section, or nothing at the end of the file.
    pub(super) fn section(&mut self) -> Result<Option<&'a [u8]>> {
        self.cursor.skip_space();
        if self.cursor.at_end() {
            return Ok(None);
        }
        let name = self.cursor.word("a section")?;
        if name.len() < 2 || name[0] != b'$' || name.starts_with(b"$End") {
            return Err(self.cursor.error(format!(
                "`{}` where a section (`$Name`) was expected; the section before it may have more \
                 entries than its count says",
                show(name)
            )));
        }
        self.cursor.end_line("the name of a section stands alone")?;
        Ok(Some(&name[1..]))
    }

    /// The end of the section `name`.
    pub(super) fn end_section(&mut self, name: &str) -> Result<()> {
        let word = self.cursor.word(&format!("$End{name}"))?;
        if word.strip_prefix(b"$End") != Some(name.as_bytes()) {
            return Err(self.cursor.error(format!(
                "`{}` where $End{name} was expected; the section has more entries than its count \
                 says",
                show(word)
            )));
        }
        Ok(())
    }

    /// Goes past the end of a section that is not read.
    pub(super) fn skip_section(&mut self, name: &[u8]) -> Result<()> {
        let start = self.cursor.last();
        let end = [b"$End", name].concat();
        loop {
            let Some(at) = self.cursor.rest().iter().position(|&b| b == b'$') else {
                let name = show(name);
                return Err(self.cursor.error_at(start, format!("${name} has no $End{name}")));
            };
            self.cursor.seek(self.cursor.offset() + at);
            if self.cursor.peek_word() == end {
                self.cursor.seek(self.cursor.offset() + end.len());
                return Ok(());
            }
            self.cursor.seek(self.cursor.offset() + 1);
        }
    }
}

/// The count that begins a section of 2.2, written as text in binary files too.
pub(super) fn section_count_22(reader: &mut Reader<'_>, limit: usize, what: &str) -> Result<u64> {
    let count = reader.cursor.integer(what, limit as u64)?;
    reader.cursor.end_line(what)?;
    Ok(count)
}

pub(super) fn wrong_total(
    reader: &Reader<'_>,
    declared_at: usize,
    what: &str,
    count: u64,
) -> InputError {
    reader.cursor.error_at(
        declared_at,
        format!("{count} {what} are declared, but the blocks do not have as many"),
    )
}
