//! The arrays of a VTU file: text, base64, or bytes appended after the XML tree.
//!
//! | format | where | bytes |
//! |---|---|---|
//! | `ascii` | in the element | numbers as text |
//! | `binary` | in the element | base64 |
//! | `appended` | after `_` in `AppendedData`, from `offset` | `encoding`: raw or base64 |
//!
//! The bytes start with their length as one number of `header_type`. With a compressor they start
//! with the number of blocks, the length of a block, the length of the last block (0: the same), and
//! the compressed length of each. Base64 may be padded after the header and continue.
//!
//! The counts of the piece determine the length of each array. The header of an array is compared
//! with that length before anything is decompressed. The bytes are then streamed through a small
//! buffer. Since zlib and LZMA can compress a thousandfold, the arrays of a compressed file together may take
//! at most [`RATIO`] times the bytes of the file plus [`SMALL`], whatever the counts declare, and
//! never more than the memory limit of the reader.

use std::cell::Cell;
use std::io::{self, Read};

use conset_ir::Result;
use conset_ir::convert::{to_f64, to_u32, to_u64};
use roxmltree::Node;

use super::VtuFile;
use super::bytes::{Base64Reader, CompressedBlocks};

/// The end tags of a tree whose appended data were removed.
pub(super) const CLOSING: &str = "</AppendedData></VTKFile>";

/// Size of the buffer in bytes, a multiple of the size of every number type.
const CHUNK: usize = 8 * 1024;

/// The arrays of a compressed file may take this many times the size of the file in memory. Meshes of
/// a regular lattice, which compress best, reach 7; only the types of cells, a byte each, reach more.
const RATIO: u64 = 64;

/// Bytes that the arrays may take in addition, so that small files are not limited.
const SMALL: u64 = 64 << 20;

/// A result whose error is a message without a position.
type MessageResult<T> = std::result::Result<T, String>;

/// Splits a file into the XML tree and the bytes after the `_` that follows the `AppendedData` tag.
pub(super) fn split(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    let tag = b"<AppendedData";
    let Some(at) = bytes.windows(tag.len()).position(|window| window == tag) else {
        return (bytes, None);
    };
    let Some(close) = bytes[at..].iter().position(|&b| b == b'>') else { return (bytes, None) };
    let rest = &bytes[at + close + 1..];
    match rest.iter().position(|b| !b.is_ascii_whitespace()) {
        Some(mark) if rest[mark] == b'_' => (&bytes[..at + close + 1], Some(&rest[mark + 1..])),
        _ => (bytes, None),
    }
}

/// How the blocks of an array are compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Lz4,
    /// In the container of xz.
    Lzma,
}

/// Decodes the arrays of a file.
pub(super) struct ArrayReader<'f, 'a> {
    file: &'f VtuFile<'a>,
    big_endian: bool,
    /// Size in bytes of a number in a header.
    header: usize,
    compression: Compression,
    /// The appended bytes, and whether they are base64.
    appended: Option<(&'f [u8], bool)>,
    /// Bytes of memory that further arrays may take, and an explanation of the limit.
    budget: Cell<u64>,
    limit: String,
}

impl<'f, 'a> ArrayReader<'f, 'a> {
    pub(super) fn new(
        file: &'f VtuFile<'a>,
        root: Node<'_, '_>,
        appended: Option<&'f [u8]>,
        memory: u64,
    ) -> Result<Self> {
        let big_endian = match root.attribute("byte_order").unwrap_or("LittleEndian") {
            "LittleEndian" => false,
            "BigEndian" => true,
            other => return Err(file.error(root, format!("byte_order `{other}`"))),
        };
        let header = match root.attribute("header_type").unwrap_or("UInt32") {
            "UInt32" => 4,
            "UInt64" => 8,
            other => return Err(file.error(root, format!("header_type `{other}`"))),
        };
        let compression = match root.attribute("compressor").unwrap_or("") {
            "" => Compression::None,
            "vtkZLibDataCompressor" => Compression::Zlib,
            "vtkLZ4DataCompressor" => Compression::Lz4,
            "vtkLZMADataCompressor" => Compression::Lzma,
            other => {
                let message = format!(
                    "compressor `{other}`; expected vtkZLibDataCompressor, vtkLZ4DataCompressor or \
                     vtkLZMADataCompressor"
                );
                return Err(file.error(root, message).help("write it with ZLib or without"));
            }
        };
        let encoding = root.children().find(|node| node.has_tag_name("AppendedData"));
        let encoding = encoding.and_then(|node| node.attribute("encoding")).unwrap_or("base64");
        let base64 = match (encoding, appended) {
            ("base64", _) | (_, None) => true,
            ("raw", _) => false,
            (other, _) => return Err(file.error(root, format!("encoding `{other}`"))),
        };
        let size = to_u64(file.tree.len() + appended.map_or(0, <[u8]>::len));
        let most = size.saturating_mul(RATIO).saturating_add(SMALL);
        let (budget, limit) = match compression {
            Compression::Zlib | Compression::Lz4 | Compression::Lzma if most < memory => {
                (most, format!("{RATIO} times the {size} bytes of this file plus 64 MiB"))
            }
            _ => (memory, format!("the memory limit of {memory} bytes (<memory>)")),
        };
        let appended = appended.map(|bytes| (bytes, base64));
        Ok(Self {
            file,
            big_endian,
            header,
            compression,
            appended,
            budget: Cell::new(budget),
            limit,
        })
    }

    /// Reads an array of integers, none of which may be negative or too large for `T`.
    pub(super) fn integers<T>(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<T>>
    where
        T: TryFrom<u64>,
    {
        let fit = |number: u64| {
            T::try_from(number).map_err(|_| format!("the number {number} is too large"))
        };
        if self.is_text(array) {
            let mut numbers = self.list(array, count, size_of::<T>())?;
            self.text(array, count, |number| {
                numbers.push(fit(number)?);
                Ok(())
            })?;
            return Ok(numbers);
        }
        let number_type = self.number_type(array)?;
        if matches!(number_type.class, Class::Float) {
            return Err(self.file.error(array, "expected an integer type"));
        }
        let negative = |word| {
            matches!(number_type.class, Class::Signed) && word >> (8 * number_type.size - 1) != 0
        };
        let mut numbers = self.list(array, count, number_type.size)?;
        self.words(array, number_type.size, count, |word| {
            if negative(word) {
                return Err("a negative number".into());
            }
            numbers.push(fit(word)?);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Reads an array of points, three numbers of any type each.
    pub(super) fn points(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<[f64; 3]>> {
        let mut points = self.list(array, count, size_of::<[f64; 3]>())?;
        let (mut point, mut at) = ([0.0; 3], 0);
        let mut add = |number: f64| {
            point[at] = number;
            at = (at + 1) % point.len();
            if at == 0 {
                points.push(point);
            }
            Ok(())
        };
        let count = count.saturating_mul(3);
        if self.is_text(array) {
            self.text(array, count, add)?;
            return Ok(points);
        }
        let number_type = self.number_type(array)?;
        self.words(array, number_type.size, count, |bits| {
            add(match (number_type.class, number_type.size) {
                (Class::Float, 4) => f64::from(f32::from_bits(to_u32(bits))),
                (Class::Float, _) => f64::from_bits(bits),
                (Class::Unsigned, _) => to_f64(bits),
                (Class::Signed, size) => {
                    // Extends the sign bit.
                    let unused = 64 - 8 * size;
                    let number = (bits << unused).cast_signed() >> unused;
                    to_f64(number.unsigned_abs()).copysign(if number < 0 { -1.0 } else { 1.0 })
                }
            })
        })?;
        Ok(points)
    }

    /// An empty vector for `count` items of an array, of at least `size` bytes each, if the memory
    /// budget suffices. The vector grows only as far as there are items.
    fn list<T>(&self, array: Node<'_, '_>, count: usize, size: usize) -> Result<Vec<T>> {
        let needed = to_u64(count).saturating_mul(to_u64(size.max(size_of::<T>())));
        let left = self.budget.get().checked_sub(needed).ok_or_else(|| {
            let message = format!("{count} entries would take {needed} bytes");
            let message = format!("{message}; the arrays together may take {}", self.limit);
            self.file.error(array, named(array, &message))
        })?;
        self.budget.set(left);
        Ok(Vec::new())
    }

    fn is_text(&self, array: Node<'_, '_>) -> bool {
        array.attribute("format").unwrap_or("ascii") == "ascii"
    }

    /// Passes the `count` numbers of a text to `each`.
    fn text<T: std::str::FromStr>(
        &self,
        array: Node<'_, '_>,
        count: usize,
        mut each: impl FnMut(T) -> MessageResult<()>,
    ) -> Result<()> {
        let mut found = 0;
        let own = array.children().filter(Node::is_text).filter_map(|node| node.text());
        for token in own.flat_map(str::split_ascii_whitespace) {
            let number = token.parse().map_err(|_| {
                let shown: String = token.chars().take(20).collect();
                self.file.error(array, format!("`{shown}` is not a valid number here"))
            })?;
            if found == count {
                return Err(self.wrong_length(array, "more", count));
            }
            found += 1;
            each(number).map_err(|message| self.file.error(array, named(array, &message)))?;
        }
        if found < count {
            return Err(self.wrong_length(array, &found.to_string(), count));
        }
        Ok(())
    }

    fn wrong_length(
        &self,
        array: Node<'_, '_>,
        found: &str,
        count: usize,
    ) -> conset_ir::InputError {
        let message = format!("expected {count} numbers, found {found}");
        self.file.error(array, named(array, &message))
    }

    fn number_type(&self, array: Node<'_, '_>) -> Result<NumberType> {
        let name = array.attribute("type").unwrap_or("");
        let (class, size) = match name {
            "Int8" => (Class::Signed, 1),
            "UInt8" => (Class::Unsigned, 1),
            "Int16" => (Class::Signed, 2),
            "UInt16" => (Class::Unsigned, 2),
            "Int32" => (Class::Signed, 4),
            "UInt32" => (Class::Unsigned, 4),
            "Int64" => (Class::Signed, 8),
            "UInt64" => (Class::Unsigned, 8),
            "Float32" => (Class::Float, 4),
            "Float64" => (Class::Float, 8),
            _ => return Err(self.file.error(array, format!("unknown type `{name}`"))),
        };
        Ok(NumberType { class, size })
    }

    /// Decodes a number in the file's byte order.
    fn number(&self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
    }

    /// Passes the `count` numbers of `size` bytes of a binary array to `each`, as unsigned integers.
    fn words(
        &self,
        array: Node<'_, '_>,
        size: usize,
        count: usize,
        mut each: impl FnMut(u64) -> MessageResult<()>,
    ) -> Result<()> {
        let wrong = |message: String| self.file.error(array, named(array, &message));
        let length = count.checked_mul(size).ok_or_else(|| wrong("too many bytes".into()))?;
        let mut stored = self.stored(array)?;
        let mut plain: Box<dyn Read> = match self.compression {
            Compression::None => {
                let stated = self.header(&mut stored).map_err(wrong)?;
                check_length(to_u64(stated), length).map_err(wrong)?;
                Box::new(stored.take(to_u64(length)))
            }
            Compression::Zlib | Compression::Lz4 | Compression::Lzma => {
                Box::new(self.blocks(stored, length).map_err(wrong)?)
            }
        };
        let mut chunk = [0; CHUNK];
        let mut done = 0;
        while done < length {
            let part = &mut chunk[..CHUNK.min(length - done)];
            plain.read_exact(part).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    wrong(format!("the file ends before the {length} bytes of the array do"))
                }
                _ => wrong(e.to_string()),
            })?;
            done += part.len();
            for word in part.chunks_exact(size) {
                each(self.number(word)).map_err(wrong)?;
            }
        }
        // Reads the end of the last block, which has a checksum.
        plain.read(&mut [0]).map_err(|e| wrong(e.to_string()))?;
        Ok(())
    }

    /// The stored bytes of an array from its header on. The header gives their length: appended arrays
    /// are followed by the next one.
    fn stored<'s>(&'s self, array: Node<'s, 's>) -> Result<Box<dyn Read + 's>> {
        match array.attribute("format").unwrap_or("") {
            "binary" => {
                let text = array.children().filter(Node::is_text).filter_map(|node| node.text());
                Ok(Box::new(Base64Reader::new(text.flat_map(str::bytes))))
            }
            "appended" => {
                let (bytes, base64) = self
                    .appended
                    .ok_or_else(|| self.file.error(array, "the file has no appended data"))?;
                let bytes = &bytes[self.file.count(array, "offset", bytes.len())?..];
                Ok(match base64 {
                    true => Box::new(Base64Reader::new(bytes.iter().copied())),
                    false => Box::new(bytes),
                })
            }
            other => Err(self.file.error(array, format!("format `{other}`"))),
        }
    }

    /// Reads the next number of a header.
    fn header(&self, bytes: &mut dyn Read) -> MessageResult<usize> {
        let number = &mut [0; 8][..self.header];
        bytes.read_exact(number).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => "the header is truncated".to_owned(),
            _ => e.to_string(),
        })?;
        usize::try_from(self.number(number))
            .map_err(|_| "a length that does not fit this computer's address space".into())
    }

    /// Reads the header of a compressed array, which must declare `length` bytes, and returns its blocks.
    fn blocks<'s>(
        &self,
        mut stored: Box<dyn Read + 's>,
        length: usize,
    ) -> MessageResult<CompressedBlocks<'s>> {
        let count = self.header(&mut stored)?;
        let (block, last) = (self.header(&mut stored)?, self.header(&mut stored)?);
        let last = if last == 0 { block } else { last };
        let whole = to_u64(count.saturating_sub(1)).saturating_mul(to_u64(block));
        check_length(whole.saturating_add(if count == 0 { 0 } else { to_u64(last) }), length)?;
        // The vector grows only as far as there are numbers.
        let mut sizes = Vec::new();
        for index in 0..count {
            let plain = if index + 1 == count { last } else { block };
            let packed = self.header(&mut stored);
            sizes.push((packed.map_err(|_| "the list of blocks is truncated")?, plain));
        }
        Ok(CompressedBlocks::new(self.compression, stored, sizes))
    }
}

/// Adds the name of an array to a message.
fn named(array: Node<'_, '_>, message: &str) -> String {
    format!("array `{}`: {message}", array.attribute("Name").unwrap_or(""))
}

fn check_length(stated: u64, length: usize) -> MessageResult<()> {
    match stated == to_u64(length) {
        true => Ok(()),
        false => Err(format!("the header declares {stated} bytes, expected {length}")),
    }
}

#[derive(Clone, Copy)]
enum Class {
    Unsigned,
    Signed,
    Float,
}

/// The type of a number: its class and its size in bytes.
#[derive(Clone, Copy)]
struct NumberType {
    class: Class,
    size: usize,
}
