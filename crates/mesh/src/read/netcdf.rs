//! NetCDF files in the classic formats: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit data).
//!
//! The layout is that of "The NetCDF Classic Format Specification" (Unidata) and, for CDF-5, of
//! PnetCDF. A header lists dimensions, attributes and variables; each variable's values are at an
//! offset of the file, big-endian and row-major. Variables with the unlimited dimension (records)
//! are listed and not read. NetCDF-4 files are HDF5 files and are refused.

use conset_ir::Result;
use conset_ir::convert::to_u64;

use super::cursor::{Cursor, show};
use super::foreign_format;

/// Type of the values of a variable or attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Byte,
    Char,
    Short,
    Int,
    Float,
    Double,
    UByte,
    UShort,
    UInt,
    Int64,
    UInt64,
}

impl Kind {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Kind::Byte,
            2 => Kind::Char,
            3 => Kind::Short,
            4 => Kind::Int,
            5 => Kind::Float,
            6 => Kind::Double,
            7 => Kind::UByte,
            8 => Kind::UShort,
            9 => Kind::UInt,
            10 => Kind::Int64,
            11 => Kind::UInt64,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Kind::Byte | Kind::Char | Kind::UByte => 1,
            Kind::Short | Kind::UShort => 2,
            Kind::Int | Kind::UInt | Kind::Float => 4,
            Kind::Double | Kind::Int64 | Kind::UInt64 => 8,
        }
    }
}

/// A variable: its place in the file, its shape, and those of its attributes that are text or
/// integers.
pub(super) struct Variable {
    pub(super) name: String,
    /// Lengths of its dimensions.
    pub(super) shape: Vec<usize>,
    attributes: Vec<(String, Attribute)>,
    kind: Kind,
    begin: usize,
    /// Has the unlimited dimension.
    record: bool,
}

/// The value of an attribute.
enum Attribute {
    Text(String),
    Integers(Vec<i32>),
}

impl Variable {
    /// A text attribute.
    pub(super) fn text_attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|(key, value)| match value {
            Attribute::Text(text) if key == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// An attribute of 32-bit integers.
    pub(super) fn integer_attribute(&self, name: &str) -> Option<&[i32]> {
        self.attributes.iter().find_map(|(key, value)| match value {
            Attribute::Integers(numbers) if key == name => Some(numbers.as_slice()),
            _ => None,
        })
    }
}

/// The header of a file, and its bytes.
pub(super) struct Dataset<'a> {
    pub(super) cursor: Cursor<'a>,
    /// `CDF-1`, `CDF-2` or `CDF-5`.
    pub(super) version: &'static str,
    /// Bytes of the file.
    length: usize,
    dimensions: Vec<(String, usize)>,
    pub(super) variables: Vec<Variable>,
}

impl<'a> Dataset<'a> {
    /// Reads the header.
    pub(super) fn open(file: &'a str, bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(file, bytes);
        cursor.set_binary();
        if let Some(foreign) = foreign_format(bytes) {
            return Err(cursor.error(foreign.title).help(foreign.help));
        }
        let magic: [u8; 4] = cursor.take("`CDF` and a version")?;
        let version = match magic {
            [b'C', b'D', b'F', 1] => "CDF-1",
            [b'C', b'D', b'F', 2] => "CDF-2",
            [b'C', b'D', b'F', 5] => "CDF-5",
            _ => return Err(cursor.error("not a NetCDF file: it does not begin with CDF")),
        };
        let mut header =
            Header { cursor, wide: version == "CDF-5", wide_offsets: version != "CDF-1" };
        // The number of records; only variables that are not read have any.
        header.number("the number of records")?;
        let mut dimensions = Vec::new();
        for _ in 0..header.list(10, "dimensions")? {
            let name = header.name("the name of a dimension")?;
            let length = header.number("the length of a dimension")?;
            dimensions.push((name, usize::try_from(length).unwrap_or(usize::MAX)));
        }
        header.attributes()?;
        let mut variables = Vec::new();
        for _ in 0..header.list(11, "variables")? {
            variables.push(header.variable(&dimensions)?);
        }
        Ok(Self { cursor: header.cursor, version, length: bytes.len(), dimensions, variables })
    }

    /// The length of a dimension; 0 if there is none of this name.
    pub(super) fn dimension(&self, name: &str) -> usize {
        self.dimensions.iter().find(|(key, _)| key == name).map_or(0, |&(_, length)| length)
    }

    /// The variable of this name.
    pub(super) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// Goes to the values of a variable, all of which are in the file, and returns their number.
    fn seek(&mut self, variable: usize) -> Result<usize> {
        let Variable { name, shape, kind, begin, record, .. } = &self.variables[variable];
        let error = |message: String| {
            self.cursor.error_at(*begin, format!("variable `{}` {message}", show(name.as_bytes())))
        };
        if *record {
            return Err(error("has the unlimited dimension; a mesh does not".to_owned()));
        }
        let count = shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
        let room = self.length.saturating_sub(*begin);
        let Some(count) = count.filter(|&count| count <= room / kind.size()) else {
            return Err(error(format!(
                "needs more values than the {room} bytes behind its offset"
            )));
        };
        let begin = *begin;
        self.cursor.seek(begin);
        Ok(count)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|variable| variable.name == name)
    }

    /// The values of an integer variable, negative ones as `None`; nothing if there is none of this name.
    pub(super) fn integers(&mut self, name: &str) -> Result<Option<Vec<Option<u64>>>> {
        let Some(position) = self.position(name) else { return Ok(None) };
        let count = self.seek(position)?;
        let kind = self.variables[position].kind;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let cursor = &mut self.cursor;
            let value = match kind {
                Kind::Byte => i64::from(i8::from_be_bytes(cursor.take(name)?)),
                Kind::UByte => i64::from(u8::from_be_bytes(cursor.take(name)?)),
                Kind::Short => i64::from(i16::from_be_bytes(cursor.take(name)?)),
                Kind::UShort => i64::from(u16::from_be_bytes(cursor.take(name)?)),
                Kind::Int => i64::from(i32::from_be_bytes(cursor.take(name)?)),
                Kind::UInt => i64::from(u32::from_be_bytes(cursor.take(name)?)),
                Kind::Int64 | Kind::UInt64 => i64::from_be_bytes(cursor.take(name)?),
                Kind::Char | Kind::Float | Kind::Double => {
                    let message =
                        format!("variable `{}` does not have integers", show(name.as_bytes()));
                    return Err(cursor.error(message));
                }
            };
            values.push(u64::try_from(value).ok());
        }
        Ok(Some(values))
    }

    /// The values of a real variable; nothing if there is none of this name.
    pub(super) fn reals(&mut self, name: &str) -> Result<Option<Vec<f64>>> {
        let Some(position) = self.position(name) else { return Ok(None) };
        let count = self.seek(position)?;
        let kind = self.variables[position].kind;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let cursor = &mut self.cursor;
            let value = match kind {
                Kind::Float => f64::from(f32::from_be_bytes(cursor.take(name)?)),
                Kind::Double => f64::from_be_bytes(cursor.take(name)?),
                _ => {
                    let message =
                        format!("variable `{}` does not have reals", show(name.as_bytes()));
                    return Err(cursor.error(message));
                }
            };
            if !value.is_finite() {
                return Err(cursor.error(format!("{value} is not finite; expected a coordinate")));
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    /// The rows of a variable of characters, without what pads them; nothing if there is none of
    /// this name.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>> {
        let Some(position) = self.position(name) else { return Ok(Vec::new()) };
        let count = self.seek(position)?;
        let variable = &self.variables[position];
        let length = variable.shape.last().copied().unwrap_or(0);
        if variable.kind != Kind::Char || length == 0 {
            return Ok(Vec::new());
        }
        Ok(self.cursor.rest()[..count].chunks(length).map(text).collect())
    }
}

/// Characters up to the first 0.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
}

struct Header<'a> {
    cursor: Cursor<'a>,
    /// Counts have 64 bits.
    wide: bool,
    wide_offsets: bool,
}

impl Header<'_> {
    fn int(&mut self, what: &str) -> Result<u32> {
        self.cursor.take(what).map(u32::from_be_bytes)
    }

    /// A count.
    fn number(&mut self, what: &str) -> Result<u64> {
        match self.wide {
            true => self.cursor.take(what).map(u64::from_be_bytes),
            false => self.int(what).map(u64::from),
        }
    }

    /// The number of entries of a list with this tag; an absent list has none.
    fn list(&mut self, tag: u32, what: &str) -> Result<u64> {
        let found = self.int(what)?;
        let count = self.number(what)?;
        if found != tag && (found, count) != (0, 0) {
            return Err(self.cursor.error(format!("the header does not have {what} here")));
        }
        Ok(count)
    }

    /// Bytes padded to a multiple of 4.
    fn padded(&mut self, length: u64, what: &str) -> Result<&[u8]> {
        let room = self.cursor.rest();
        let whole = usize::try_from(length)
            .ok()
            .and_then(|length| Some((length, length.checked_next_multiple_of(4)?)))
            .filter(|&(_, padded)| padded <= room.len());
        let Some((length, padded)) = whole else {
            return Err(self.cursor.error(format!("the file ends within {what}")));
        };
        self.cursor.seek(self.cursor.offset() + padded);
        Ok(&room[..length])
    }

    fn name(&mut self, what: &str) -> Result<String> {
        let length = self.number(what)?;
        self.padded(length, what).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn kind(&mut self) -> Result<Kind> {
        let number = self.int("a type")?;
        Kind::from_number(number)
            .ok_or_else(|| self.cursor.error(format!("type {number}; expected 1 to 11")))
    }

    /// The attributes of a list that are text or 32-bit integers.
    fn attributes(&mut self) -> Result<Vec<(String, Attribute)>> {
        let mut attributes = Vec::new();
        for _ in 0..self.list(12, "attributes")? {
            let name = self.name("the name of an attribute")?;
            let kind = self.kind()?;
            let count = self.number("the length of an attribute")?;
            let size = count.saturating_mul(to_u64(kind.size()));
            let bytes = self.padded(size, "an attribute")?;
            match kind {
                Kind::Char => attributes.push((name, Attribute::Text(text(bytes)))),
                Kind::Int => {
                    let (numbers, _) = bytes.as_chunks();
                    let numbers = numbers.iter().map(|&number| i32::from_be_bytes(number));
                    attributes.push((name, Attribute::Integers(numbers.collect())));
                }
                _ => {}
            }
        }
        Ok(attributes)
    }

    fn variable(&mut self, dimensions: &[(String, usize)]) -> Result<Variable> {
        let name = self.name("the name of a variable")?;
        let mut shape = Vec::new();
        for _ in 0..self.number("the number of dimensions of a variable")? {
            let number = self.number("a dimension of a variable")?;
            let dimension = usize::try_from(number).ok().and_then(|n| dimensions.get(n));
            let Some(&(_, length)) = dimension else {
                let message = format!("dimension {number} of {}", dimensions.len());
                return Err(self.cursor.error(message));
            };
            shape.push(length);
        }
        let attributes = self.attributes()?;
        let kind = self.kind()?;
        self.number("the size of a variable")?;
        let begin = match self.wide_offsets {
            true => self.cursor.take("the offset of a variable").map(u64::from_be_bytes)?,
            false => self.int("the offset of a variable").map(u64::from)?,
        };
        // A dimension of length 0 is the unlimited one, and can only be the first.
        let record = shape.first() == Some(&0);
        let begin = usize::try_from(begin).unwrap_or(usize::MAX);
        Ok(Variable { name, shape, attributes, kind, begin, record })
    }
}

/// A count from a dimension that numbers nodes or elements.
pub(super) fn limited(dataset: &Dataset<'_>, name: &str, limit: usize) -> Result<usize> {
    let count = dataset.dimension(name);
    if count > limit {
        let message = format!("dimension {name} is {count}, at most {limit}");
        return Err(dataset.cursor.error_at(0, message));
    }
    Ok(count)
}
