//! Columns of whole numbers in compressed blocks, as the page's program reads them.
//!
//! A block holds several columns. The values of a column have the same number of bytes, as few as its
//! greatest value needs, and the bytes are stored in *planes*: the lowest byte of all values, then the
//! next byte of all values. Planes of high bytes are almost constant, so the block compresses well.
//! A column of differences (`delta`) stores the differences between neighbouring values in zigzag
//! form (0, -1, 1, -2, ...), which is better for values that rise or change little.
//!
//! A block is compressed by gzip without name and time, so the same columns give the same bytes, and
//! written in base64.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conset_ir::convert::{to_u64, to_usize};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Coding {
    /// The values.
    Plain,
    /// Differences between neighbouring values, the first one to 0, in zigzag form.
    Delta,
}

/// Where a column is in its block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Column {
    name: &'static str,
    /// Values.
    count: usize,
    /// Bytes of a value.
    width: usize,
    coding: Coding,
    /// Position of the first byte in the block.
    offset: usize,
}

/// Columns before their compression.
#[derive(Debug, Default)]
pub(crate) struct Block {
    columns: Vec<Column>,
    bytes: Vec<u8>,
}

/// A compressed block: the columns in it, and the block in base64.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) directory: Directory,
    pub(crate) base64: String,
}

/// What the head of the page says about a block.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Directory {
    /// Bytes after decompression.
    bytes: usize,
    columns: Vec<Column>,
}

impl Block {
    /// Adds a column of values.
    pub(crate) fn plain(
        &mut self,
        name: &'static str,
        values: impl Iterator<Item = u64> + Clone,
    ) -> &mut Self {
        self.add(name, Coding::Plain, values)
    }

    /// Adds a column of differences.
    pub(crate) fn delta(
        &mut self,
        name: &'static str,
        values: impl Iterator<Item = u64> + Clone,
    ) -> &mut Self {
        let differences = values.scan(0u64, |before, value| {
            let difference = value.wrapping_sub(*before);
            *before = value;
            // Zigzag: the sign becomes the lowest bit.
            let sign = 0u64.wrapping_sub(difference >> 63);
            Some((difference << 1) ^ sign)
        });
        self.add(name, Coding::Delta, differences)
    }

    fn add(
        &mut self,
        name: &'static str,
        coding: Coding,
        values: impl Iterator<Item = u64> + Clone,
    ) -> &mut Self {
        let (count, greatest) =
            values.clone().fold((0, 0), |(count, most), value| (count + 1, most.max(value)));
        let bits = to_usize(u64::BITS - greatest.leading_zeros());
        let width = bits.div_ceil(8).max(1);
        let offset = self.bytes.len();
        self.bytes.resize(offset + count * width, 0);
        let planes = &mut self.bytes[offset..];
        for (row, value) in values.enumerate() {
            for (plane, byte) in value.to_le_bytes()[..width].iter().enumerate() {
                planes[plane * count + row] = *byte;
            }
        }
        self.columns.push(Column { name, count, width, coding, offset });
        self
    }

    /// Compresses the block.
    pub(crate) fn pack(&self) -> Packed {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        // Writing to memory cannot fail.
        let compressed = encoder.write_all(&self.bytes).and_then(|()| encoder.finish());
        Packed {
            directory: Directory { bytes: self.bytes.len(), columns: self.columns.clone() },
            base64: STANDARD.encode(compressed.unwrap_or_default()),
        }
    }
}

/// The lengths of texts and their UTF-8 bytes, as two columns.
pub(crate) fn texts<'a>(
    block: &mut Block,
    lengths: &'static str,
    bytes: &'static str,
    texts: impl Iterator<Item = &'a str> + Clone,
) {
    block.plain(lengths, texts.clone().map(|text| to_u64(text.len())));
    block.plain(bytes, texts.flat_map(str::bytes).map(u64::from));
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// What the page's program does to read a column.
    fn unpack(packed: &Packed, name: &str) -> Vec<u64> {
        let compressed = STANDARD.decode(&packed.base64).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), packed.directory.bytes);
        let column = packed.directory.columns.iter().find(|column| column.name == name).unwrap();
        let byte = |row, plane| u64::from(bytes[column.offset + plane * column.count + row]);
        let stored = (0..column.count)
            .map(|row| (0..column.width).map(|plane| byte(row, plane) << (8 * plane)).sum());
        match column.coding {
            Coding::Plain => stored.collect(),
            Coding::Delta => stored
                .scan(0u64, |value, zigzag: u64| {
                    *value = value.wrapping_add((zigzag >> 1) ^ 0u64.wrapping_sub(zigzag & 1));
                    Some(*value)
                })
                .collect(),
        }
    }

    #[test]
    fn columns_are_read_back() {
        let values = [0, 7, 255, 256, 65535, 3, 1 << 52, u64::MAX, 0];
        let mut block = Block::default();
        block.plain("plain", values.into_iter()).delta("delta", values.into_iter());
        block.plain("none", std::iter::empty());
        texts(&mut block, "lengths", "bytes", ["a", "", "\u{fc}"].into_iter());
        let packed = block.pack();
        assert_eq!(unpack(&packed, "plain"), values);
        assert_eq!(unpack(&packed, "delta"), values);
        assert_eq!(unpack(&packed, "none"), [0u64; 0]);
        assert_eq!(unpack(&packed, "lengths"), [1, 0, 2]);
        assert_eq!(unpack(&packed, "bytes"), [0x61, 0xc3, 0xbc]);
    }

    #[test]
    fn a_column_has_as_few_bytes_as_it_needs() {
        let mut block = Block::default();
        block.plain("small", [1, 2, 3].into_iter()).delta("rising", (1000..2000).map(|x| 256 * x));
        let widths: Vec<usize> = block.columns.iter().map(|column| column.width).collect();
        assert_eq!(widths, [1, 3]);
        assert_eq!(block.pack().base64, block.pack().base64);
    }
}
