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
//! How long an array must be is known beforehand, and no more than that is ever unpacked.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conset_ir::Result;
use flate2::read::ZlibDecoder;
use roxmltree::Node;

use super::File;

/// What closes a tree whose appended data were cut out.
pub(super) const CLOSING: &str = "</AppendedData></VTKFile>";

/// Letters of base64 that stand for three bytes.
const GROUP: usize = 4;

/// Letters that are decoded at once.
const RUN: usize = 1024 * GROUP;

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
}

impl<'f, 'a> Arrays<'f, 'a> {
    pub(super) fn new(
        file: &'f File<'a>,
        root: Node<'_, '_>,
        appended: Option<&'f [u8]>,
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
        let appended = appended.map(|bytes| (bytes, base64));
        Ok(Self { file, big_endian, header, packing, appended })
    }

    /// Numbers that are whole and not negative.
    pub(super) fn integers(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<u64>> {
        let negative = || self.file.error(array, "a number below 0");
        if self.is_text(array) {
            return self.text(array, count);
        }
        let kind = self.kind(array)?;
        let bytes = self.bytes(array, count.saturating_mul(kind.size))?;
        let mut numbers = Vec::with_capacity(count);
        for word in bytes.chunks_exact(kind.size) {
            let number = self.number(word);
            match kind.form {
                Form::Unsigned => numbers.push(number),
                Form::Signed if number >> (8 * kind.size - 1) == 0 => numbers.push(number),
                Form::Signed => return Err(negative()),
                Form::Float => return Err(self.file.error(array, "expected an integer type")),
            }
        }
        Ok(numbers)
    }

    /// Numbers of any type.
    pub(super) fn reals(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<f64>> {
        if self.is_text(array) {
            return self.text(array, count);
        }
        let kind = self.kind(array)?;
        let bytes = self.bytes(array, count.saturating_mul(kind.size))?;
        let words = bytes.chunks_exact(kind.size).map(|word| self.number(word));
        Ok(words
            .map(|bits| match (kind.form, kind.size) {
                (Form::Float, 4) => f64::from(f32::from_bits(bits as u32)),
                (Form::Float, _) => f64::from_bits(bits),
                (Form::Unsigned, _) => bits as f64,
                // The sign bit to the top and back.
                (Form::Signed, size) => {
                    ((bits << (64 - 8 * size)) as i64 >> (64 - 8 * size)) as f64
                }
            })
            .collect())
    }

    fn is_text(&self, array: Node<'_, '_>) -> bool {
        array.attribute("format").unwrap_or("ascii") == "ascii"
    }

    fn text<T: std::str::FromStr>(&self, array: Node<'_, '_>, count: usize) -> Result<Vec<T>> {
        let mut numbers = Vec::new();
        let own = array.children().filter(Node::is_text).filter_map(|node| node.text());
        for word in own.flat_map(str::split_ascii_whitespace) {
            let number = word.parse().map_err(|_| {
                let shown: String = word.chars().take(20).collect();
                self.file.error(array, format!("`{shown}` is not a number that can stand here"))
            })?;
            if numbers.len() == count {
                return Err(self.wrong_length(array, "more", count));
            }
            numbers.push(number);
        }
        if numbers.len() < count {
            return Err(self.wrong_length(array, &numbers.len().to_string(), count));
        }
        Ok(numbers)
    }

    fn wrong_length(
        &self,
        array: Node<'_, '_>,
        found: &str,
        count: usize,
    ) -> conset_ir::InputError {
        let name = array.attribute("Name").unwrap_or("");
        self.file
            .error(array, format!("array `{name}` should have {count} numbers, it has {found}"))
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

    /// The bytes of an array, `length` of them.
    fn bytes(&self, array: Node<'_, '_>, length: usize) -> Result<Vec<u8>> {
        let decoded;
        let stored = match array.attribute("format").unwrap_or("") {
            "binary" => {
                let text = array.children().filter(Node::is_text).filter_map(|node| node.text());
                decoded = self.base64(array, text.flat_map(str::bytes), usize::MAX)?;
                decoded.as_slice()
            }
            "appended" => {
                let (bytes, base64) = self
                    .appended
                    .ok_or_else(|| self.file.error(array, "there is no appended data"))?;
                let offset = self.file.count(array, "offset", bytes.len())?;
                if base64 {
                    // Base64 of one array runs into the next, so only what it can need is decoded.
                    let most = length.saturating_mul(2).saturating_add(1 << 16);
                    decoded = self.base64(array, bytes[offset..].iter().copied(), most)?;
                    decoded.as_slice()
                } else {
                    &bytes[offset..]
                }
            }
            other => return Err(self.file.error(array, format!("format `{other}`"))),
        };
        let plain = match self.packing {
            Packing::None => self.plain(stored, length),
            Packing::Zlib => self.unpacked(stored, length),
        };
        plain.map_err(|message| {
            let name = array.attribute("Name").unwrap_or("");
            self.file.error(array, format!("array `{name}`: {message}"))
        })
    }

    /// Decodes base64 that may be padded within, about `most` bytes of it. A last group that is
    /// not whole is left out.
    fn base64(
        &self,
        array: Node<'_, '_>,
        text: impl Iterator<Item = u8>,
        most: usize,
    ) -> Result<Vec<u8>> {
        let legal = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let text = text.filter(|b| !b.is_ascii_whitespace()).take_while(legal);
        let mut text = text.take(most.saturating_add(4)).fuse();
        let mut bytes = Vec::new();
        // Whole groups, as many as fit; behind padding, base64 begins anew.
        let mut run = [0; RUN];
        loop {
            let mut length = 0;
            while length < RUN
                && let Some(byte) = text.next()
            {
                run[length] = byte;
                length += 1;
                if length.is_multiple_of(GROUP) && byte == b'=' {
                    break;
                }
            }
            if length == 0 {
                return Ok(bytes);
            }
            STANDARD
                .decode_vec(&run[..length / GROUP * GROUP], &mut bytes)
                .map_err(|e| self.file.error(array, format!("no base64: {e}")))?;
        }
    }

    /// Takes a header's next number.
    fn header(&self, bytes: &mut &[u8]) -> std::result::Result<usize, String> {
        let (number, rest) =
            bytes.split_at_checked(self.header).ok_or("the header is cut short")?;
        *bytes = rest;
        usize::try_from(self.number(number)).map_err(|_| "a length beyond this machine".into())
    }

    fn plain(&self, mut bytes: &[u8], length: usize) -> std::result::Result<Vec<u8>, String> {
        let stated = self.header(&mut bytes)?;
        if stated != length {
            return Err(format!("{stated} bytes, expected {length}"));
        }
        let own = bytes
            .get(..length)
            .ok_or_else(|| format!("the file ends after {} of {length} bytes", bytes.len()))?;
        Ok(own.to_vec())
    }

    fn unpacked(&self, mut bytes: &[u8], length: usize) -> std::result::Result<Vec<u8>, String> {
        let blocks = self.header(&mut bytes)?;
        let (_block, _last) = (self.header(&mut bytes)?, self.header(&mut bytes)?);
        let table = blocks.checked_mul(self.header).and_then(|size| bytes.split_at_checked(size));
        let (mut sizes, mut data) = table.ok_or("the list of blocks is cut short")?;
        let mut plain = Vec::new();
        for block in 0..blocks {
            let size = self.header(&mut sizes)?;
            let (packed, rest) = data
                .split_at_checked(size)
                .ok_or_else(|| format!("block {block} of {blocks} is cut short"))?;
            // One byte more than there may be shows that there are too many.
            let room = (length - plain.len().min(length)) as u64 + 1;
            ZlibDecoder::new(packed)
                .take(room)
                .read_to_end(&mut plain)
                .map_err(|e| format!("block {block} of {blocks}: {e}"))?;
            if plain.len() > length {
                return Err(format!("more than the expected {length} bytes"));
            }
            data = rest;
        }
        if plain.len() < length {
            return Err(format!("{} bytes, expected {length}", plain.len()));
        }
        Ok(plain)
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
