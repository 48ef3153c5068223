//! The encoding of numbers and sections in a Gmsh file: text or binary, in either byte order.

use conset_ir::convert::to_u64;
use conset_ir::{InputError, Result};

use crate::read::cursor::{Cursor, MAX_INT, show};

/// The version of the format.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Version {
    /// 2.0, 2.1 and 2.2.
    V2,
    V40,
    V41,
}

/// The encoding of numbers.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Text,
    /// `wide`: a `size_t` has 8 bytes, else 4.
    Binary {
        big_endian: bool,
        wide: bool,
    },
}

/// A cursor that decodes numbers.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) encoding: Encoding,
    /// Tags of nodes and elements are `size_t` (4.1), else `int`.
    pub(super) wide_tags: bool,
}

impl<'a> Reader<'a> {
    /// Whether numbers are text.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.encoding, Encoding::Text)
    }

    /// From here on numbers are text.
    pub(super) fn set_text(&mut self) {
        self.encoding = Encoding::Text;
    }

    /// Reads the tag of a node or an element.
    #[inline]
    pub(super) fn node_tag(&mut self, what: &str) -> Result<u64> {
        if self.wide_tags { self.size(what) } else { self.count(what) }
    }

    /// Reads an `int`, which has 4 bytes.
    #[inline]
    pub(super) fn int(&mut self, what: &str) -> Result<i32> {
        match self.encoding {
            Encoding::Text => self.cursor.signed(what),
            Encoding::Binary { big_endian, .. } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) })
            }
        }
    }

    /// Reads an `int` that must not be negative.
    #[inline]
    pub(super) fn count(&mut self, what: &str) -> Result<u64> {
        match self.encoding {
            Encoding::Text => self.cursor.integer(what, MAX_INT),
            Encoding::Binary { .. } => {
                let value = self.int(what)?;
                u64::try_from(value)
                    .map_err(|_| self.cursor.error(format!("{value} is negative; expected {what}")))
            }
        }
    }

    /// Reads a `size_t`.
    #[inline]
    pub(super) fn size(&mut self, what: &str) -> Result<u64> {
        match self.encoding {
            Encoding::Text => self.cursor.integer(what, u64::MAX),
            Encoding::Binary { big_endian, wide: true } => {
                let bytes = self.cursor.take(what)?;
                Ok(if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
            }
            Encoding::Binary { big_endian, wide: false } => {
                let bytes = self.cursor.take(what)?;
                let value =
                    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
                Ok(u64::from(value))
            }
        }
    }

    /// Reads a `double`, which must be finite.
    #[inline]
    pub(super) fn real(&mut self, what: &str) -> Result<f64> {
        let Encoding::Binary { big_endian, .. } = self.encoding else {
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

    /// Skips a `double`, which may be anything.
    pub(super) fn skip_real(&mut self, what: &str) -> Result<()> {
        match self.encoding {
            Encoding::Text => self.cursor.token(what).map(|_| ()),
            Encoding::Binary { .. } => self.cursor.take::<8>(what).map(|_| ()),
        }
    }

    /// Checks a declared count against a limit.
    pub(super) fn checked(&self, count: u64, limit: usize, what: &str) -> Result<u64> {
        if count > to_u64(limit) {
            return Err(self.cursor.error(format!("{count} {what}; the limit is {limit}")));
        }
        Ok(count)
    }

    /// Reads the name of the next section; `None` at the end of the file.
    pub(super) fn section(&mut self) -> Result<Option<&'a [u8]>> {
        self.cursor.skip_space();
        if self.cursor.at_end() {
            return Ok(None);
        }
        let name = self.cursor.token("a section")?;
        if name.len() < 2 || name[0] != b'$' || name.starts_with(b"$End") {
            return Err(self.cursor.error(format!(
                "expected a section (`$Name`), found `{}`; the previous section may have more entries \
                 than its count declares",
                show(name)
            )));
        }
        self.cursor.end_line("only the name of a section")?;
        Ok(Some(&name[1..]))
    }

    /// Reads the end of the section `name`.
    pub(super) fn end_section(&mut self, name: &str) -> Result<()> {
        let token = self.cursor.token(&format!("$End{name}"))?;
        if token.strip_prefix(b"$End") != Some(name.as_bytes()) {
            return Err(self.cursor.error(format!(
                "expected $End{name}, found `{}`; the section has more entries than its count declares",
                show(token)
            )));
        }
        Ok(())
    }

    /// Skips a section.
    pub(super) fn skip_section(&mut self, name: &[u8]) -> Result<()> {
        let start = self.cursor.last();
        let end = [b"$End", name].concat();
        loop {
            let Some(at) = self.cursor.rest().iter().position(|&b| b == b'$') else {
                let name = show(name);
                return Err(self.cursor.error_at(start, format!("${name} has no $End{name}")));
            };
            self.cursor.seek(self.cursor.offset() + at);
            if self.cursor.peek_token() == end {
                self.cursor.seek(self.cursor.offset() + end.len());
                return Ok(());
            }
            self.cursor.seek(self.cursor.offset() + 1);
        }
    }
}

/// Reads the count at the start of a section of version 2, which is text in binary files too.
pub(super) fn section_count_2(reader: &mut Reader<'_>, limit: usize, what: &str) -> Result<u64> {
    let count = reader.cursor.integer(what, to_u64(limit))?;
    reader.cursor.end_line(what)?;
    Ok(count)
}

/// The error for blocks whose sizes do not add up to the declared total.
pub(super) fn wrong_total(
    reader: &Reader<'_>,
    declared_at: usize,
    what: &str,
    count: u64,
) -> InputError {
    reader.cursor.error_at(
        declared_at,
        format!("{count} {what} are declared, but the blocks have a different number"),
    )
}
