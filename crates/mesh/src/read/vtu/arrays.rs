//! The arrays of a VTU file: text, base64, or bytes behind the tree.
//!
//! | format | where | bytes |
//! |---|---|---|
//! | `ascii` | in the element | numbers as text |
//! | `binary` | in the element | base64 |
//! | `appended` | behind `_` in `AppendedData`, from `offset` | `encoding`: raw or base64 |
//!
//! Bytes begin with their length as one number of `header_type`; with a compressor they begin
//! with the number of blocks, the length of a block and of the last one (0: as the others), and
//! the compressed length of each. Base64 may be padded after the header and go on.
//!
//! How long an array must be is known beforehand from the counts of the piece, and what the header
//! of the array says is compared with it before anything is unpacked. Bytes then stream through a
//! small buffer into the numbers. As a few bytes of zlib can stand for a thousand times as many,
//! all arrays together may take [`RATIO`] times the bytes of the file and no more, whatever the
//! counts say, and no more than the memory that the reader was given.

use std::cell::Cell;
use std::io::{self, Read};

use conset_ir::Result;
use roxmltree::Node;

use super::File;
use super::bytes::{Base64, Blocks};

/// What closes a tree whose appended data were cut out.
pub(super) const CLOSING: &str = "</AppendedData></VTKFile>";

/// Bytes that are looked at once; whole numbers of every type.
const CHUNK: usize = 8 * 1024;

/// How many times the size of the file its arrays may take in memory if they are compressed.
/// Meshes of a regular lattice, which compress best, reach 7; only the types of cells, a byte each,
/// reach more.
const RATIO: u64 = 64;

/// What arrays may take in any case.
const SMALL: u64 = 64 << 20;

type Told<T> = std::result::Result<T, String>;

/// The tree, and what is appended behind the `_` that follows the `AppendedData` tag.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Zlib,
}

/// How this file's arrays are written.
pub(super) struct Arrays<'f, 'a> {
    file: &'f File<'a>,
    big_endian: bool,
    /// Bytes of a number in a header.
    header: usize,
    packing: Packing,
    /// The appended bytes, and whether they are base64.
    appended: Option<(&'f [u8], bool)>,
    /// Bytes of memory that further arrays may take, and what that limit comes from.
    room: Cell<u64>,
    limit: String,
}

impl<'f, 'a> Arrays<'f, 'a> {
    pub(super) fn new(
        file: &'f File<'a>,
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
        let packing = match root.attribute("compressor").unwrap_or("") {
            "" => Packing::None,
            "vtkZLibDataCompressor" => Packing::Zlib,
            other => {
                let message = format!("compressor `{other}`; expected vtkZLibDataCompressor");
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
        let size = (file.tree.len() + appended.map_or(0, <[u8]>::len)) as u64;
        let most = size.saturating_mul(RATIO).saturating_add(SMALL);
        let (room, limit) = match packing {
            Packing::Zlib if most < memory => {
                (most, format!("{RATIO} times the {size} bytes of this file, and 64 MiB"))
            }
            _ => (memory, format!("the limit of {memory} bytes (--memory)")),
        };
        let appended = appended.map(|bytes| (bytes, base64));
        Ok(Self { file, big_endian, header, packing, appended, room: Cell::new(room), limit })
    }

    /// Numbers that are whole, not negative and fit a `T`.
    pub(super) fn integers<T>(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<T>>
    where
        T: TryFrom<u64>,
    {
        let fit = |number: u64| {
            T::try_from(number).map_err(|_| format!("the number {number} is too large here"))
        };
        if self.is_text(array) {
            let mut numbers = self.list(array, count, size_of::<T>())?;
            self.text(array, count, |number| {
                numbers.push(fit(number)?);
                Ok(())
            })?;
            return Ok(numbers);
        }
        let kind = self.kind(array)?;
        if matches!(kind.form, Form::Float) {
            return Err(self.file.error(array, "expected an integer type"));
        }
        let negative = |word| matches!(kind.form, Form::Signed) && word >> (8 * kind.size - 1) != 0;
        let mut numbers = self.list(array, count, kind.size)?;
        self.words(array, kind.size, count, |word| {
            if negative(word) {
                return Err("a number below 0".into());
            }
            numbers.push(fit(word)?);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Points of three numbers of any type.
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
        let kind = self.kind(array)?;
        self.words(array, kind.size, count, |bits| {
            add(match (kind.form, kind.size) {
                (Form::Float, 4) => f64::from(f32::from_bits(bits as u32)),
                (Form::Float, _) => f64::from_bits(bits),
                (Form::Unsigned, _) => bits as f64,
                // The sign bit to the top and back.
                (Form::Signed, size) => {
                    ((bits << (64 - 8 * size)) as i64 >> (64 - 8 * size)) as f64
                }
            })
        })?;
        Ok(points)
    }

    /// An empty list for `count` items of an array, of at least `size` bytes each, if there is room
    /// for them. It grows as they really arrive.
    fn list<T>(&self, array: Node<'_, '_>, count: usize, size: usize) -> Result<Vec<T>> {
        let wanted = (count as u64).saturating_mul(size.max(size_of::<T>()) as u64);
        let left = self.room.get().checked_sub(wanted).ok_or_else(|| {
            let message = format!("{count} entries would take {wanted} bytes");
            let message = format!("{message}; all arrays together may take {}", self.limit);
            self.file.error(array, named(array, &message))
        })?;
        self.room.set(left);
        Ok(Vec::new())
    }

    fn is_text(&self, array: Node<'_, '_>) -> bool {
        array.attribute("format").unwrap_or("ascii") == "ascii"
    }

    /// The numbers of a text, which must be `count`.
    fn text<T: std::str::FromStr>(
        &self,
        array: Node<'_, '_>,
        count: usize,
        mut each: impl FnMut(T) -> Told<()>,
    ) -> Result<()> {
        let mut found = 0;
        let own = array.children().filter(Node::is_text).filter_map(|node| node.text());
        for word in own.flat_map(str::split_ascii_whitespace) {
            let number = word.parse().map_err(|_| {
                let shown: String = word.chars().take(20).collect();
                self.file.error(array, format!("`{shown}` is not a number that can stand here"))
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
        let message = format!("should have {count} numbers, it has {found}");
        self.file.error(array, named(array, &message))
    }

    fn kind(&self, array: Node<'_, '_>) -> Result<Kind> {
        let name = array.attribute("type").unwrap_or("");
        let (form, size) = match name {
            "Int8" => (Form::Signed, 1),
            "UInt8" => (Form::Unsigned, 1),
            "Int16" => (Form::Signed, 2),
            "UInt16" => (Form::Unsigned, 2),
            "Int32" => (Form::Signed, 4),
            "UInt32" => (Form::Unsigned, 4),
            "Int64" => (Form::Signed, 8),
            "UInt64" => (Form::Unsigned, 8),
            "Float32" => (Form::Float, 4),
            "Float64" => (Form::Float, 8),
            _ => return Err(self.file.error(array, format!("type `{name}` is none of VTK's"))),
        };
        Ok(Kind { form, size })
    }

    /// A number in the file's byte order.
    fn number(&self, bytes: &[u8]) -> u64 {
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
    }

    /// The words of `size` bytes of an array that is no text; there must be `count`.
    fn words(
        &self,
        array: Node<'_, '_>,
        size: usize,
        count: usize,
        mut each: impl FnMut(u64) -> Told<()>,
    ) -> Result<()> {
        let wrong = |message: String| self.file.error(array, named(array, &message));
        let length = count.checked_mul(size).ok_or_else(|| wrong("too many bytes".into()))?;
        let mut stored = self.stored(array)?;
        let mut plain: Box<dyn Read> = match self.packing {
            Packing::None => {
                let stated = self.header(&mut stored).map_err(wrong)?;
                check_length(stated as u64, length).map_err(wrong)?;
                Box::new(stored.take(length as u64))
            }
            Packing::Zlib => Box::new(self.blocks(stored, length).map_err(wrong)?),
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
        // The last block ends here as well, with its checksum.
        plain.read(&mut [0]).map_err(|e| wrong(e.to_string()))?;
        Ok(())
    }

    /// The bytes of an array as they are stored, from its header on. Where the array ends its own
    /// header says: appended ones run into the next.
    fn stored<'s>(&'s self, array: Node<'s, 's>) -> Result<Box<dyn Read + 's>> {
        match array.attribute("format").unwrap_or("") {
            "binary" => {
                let text = array.children().filter(Node::is_text).filter_map(|node| node.text());
                Ok(Box::new(Base64::new(text.flat_map(str::bytes))))
            }
            "appended" => {
                let (bytes, base64) = self
                    .appended
                    .ok_or_else(|| self.file.error(array, "there is no appended data"))?;
                let bytes = &bytes[self.file.count(array, "offset", bytes.len())?..];
                Ok(match base64 {
                    true => Box::new(Base64::new(bytes.iter().copied())),
                    false => Box::new(bytes),
                })
            }
            other => Err(self.file.error(array, format!("format `{other}`"))),
        }
    }

    /// Takes a header's next number.
    fn header(&self, bytes: &mut dyn Read) -> Told<usize> {
        let number = &mut [0; 8][..self.header];
        bytes.read_exact(number).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => "the header is cut short".to_owned(),
            _ => e.to_string(),
        })?;
        usize::try_from(self.number(number)).map_err(|_| "a length beyond this machine".into())
    }

    /// The blocks of a compressed array, whose header must promise `length` bytes.
    fn blocks<'s>(&self, mut stored: Box<dyn Read + 's>, length: usize) -> Told<Blocks<'s>> {
        let count = self.header(&mut stored)?;
        let (block, last) = (self.header(&mut stored)?, self.header(&mut stored)?);
        let last = if last == 0 { block } else { last };
        let whole = (count.saturating_sub(1) as u64).saturating_mul(block as u64);
        check_length(whole.saturating_add(if count == 0 { 0 } else { last as u64 }), length)?;
        // Grown as the numbers really arrive.
        let mut sizes = Vec::new();
        for index in 0..count {
            let plain = if index + 1 == count { last } else { block };
            let packed = self.header(&mut stored);
            sizes.push((packed.map_err(|_| "the list of blocks is cut short")?, plain));
        }
        Ok(Blocks::new(stored, sizes))
    }
}

/// A message about an array, with its name.
fn named(array: Node<'_, '_>, message: &str) -> String {
    format!("array `{}`: {message}", array.attribute("Name").unwrap_or(""))
}

fn check_length(stated: u64, length: usize) -> Told<()> {
    match stated == length as u64 {
        true => Ok(()),
        false => Err(format!("its header says {stated} bytes, expected {length}")),
    }
}

#[derive(Clone, Copy)]
enum Form {
    Unsigned,
    Signed,
    Float,
}

/// A number's type: form and bytes.
#[derive(Clone, Copy)]
struct Kind {
    form: Form,
    size: usize,
}
