//! Decoders for the bytes of a VTU array: base64 and compressed blocks.
//!
//! Both are streams: they pass on decoded bytes before they decode more, so a file needs no more
//! memory than its own size and one buffer, whatever its blocks would decompress to. (Blocks of LZ4
//! are decompressed at once; their size is checked first.) A block must
//! decompress to exactly the number of bytes that the header of the array declares; it is not
//! decompressed any further.

use std::io::{self, Read};
use std::iter::Fuse;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conset_ir::convert::to_u64;
use flate2::bufread::ZlibDecoder;
use lzma_rust2::XzReader;

use super::arrays::Compression;

/// Characters of base64 that encode three bytes.
const GROUP: usize = 4;

/// Characters that are decoded at once.
const RUN: usize = 1024 * GROUP;

/// Greatest compression of LZ4: a byte of its input stands for at most 255 bytes.
const LZ4_RATIO: usize = 255;

/// Memory of an LZMA decoder in KiB: what the highest level of compression needs.
const LZMA_MEMORY_KIB: u32 = 68 * 1024;

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Decodes base64, which may be padded in the middle, up to the first byte that is not base64. An
/// incomplete last group is ignored.
pub(super) struct Base64Reader<I: Iterator> {
    characters: Fuse<I>,
    run: Vec<u8>,
    bytes: Vec<u8>,
    /// Number of bytes that were passed on.
    used: usize,
}

impl<I: Iterator<Item = u8>> Base64Reader<I> {
    pub(super) fn new(characters: I) -> Self {
        Self { characters: characters.fuse(), run: Vec::new(), bytes: Vec::new(), used: 0 }
    }

    /// Decodes the next complete groups; after padding a new group starts.
    fn decode(&mut self) -> io::Result<()> {
        self.run.clear();
        let legal = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let visible = |b: &u8| !b.is_ascii_whitespace();
        for byte in self.characters.by_ref().filter(visible).take_while(legal) {
            self.run.push(byte);
            if self.run.len() == RUN || (self.run.len().is_multiple_of(GROUP) && byte == b'=') {
                break;
            }
        }
        self.bytes.clear();
        self.used = 0;
        let whole = self.run.len() / GROUP * GROUP;
        STANDARD
            .decode_vec(&self.run[..whole], &mut self.bytes)
            .map_err(|e| invalid(format!("invalid base64: {e}")))
    }
}

impl<I: Iterator<Item = u8>> Read for Base64Reader<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.bytes.len() {
            self.decode()?;
        }
        let count = (&self.bytes[self.used..]).read(into)?;
        self.used += count;
        Ok(count)
    }
}

/// Decompresses the blocks of an array, one after the other.
pub(super) struct CompressedBlocks<'s> {
    compression: Compression,
    stored: Box<dyn Read + 's>,
    /// Compressed and decompressed sizes of the blocks in bytes.
    sizes: Vec<(usize, usize)>,
    next: usize,
    open: Option<OpenBlock>,
}

/// A block that is being decompressed.
struct OpenBlock {
    decoder: Box<dyn Read>,
    /// Decompressed bytes still to be produced.
    left: usize,
}

impl<'s> CompressedBlocks<'s> {
    /// The blocks in `stored`, with their compressed and decompressed sizes.
    pub(super) fn new(
        compression: Compression,
        stored: Box<dyn Read + 's>,
        sizes: Vec<(usize, usize)>,
    ) -> Self {
        Self { compression, stored, sizes, next: 0, open: None }
    }

    /// An error about the block opened last.
    fn wrong(&self, what: &str) -> io::Error {
        invalid(format!("block {} of {} {what}", self.next - 1, self.sizes.len()))
    }

    /// Reads the compressed bytes of the next block, if there is one.
    fn open(&mut self) -> io::Result<Option<OpenBlock>> {
        let Some(&(packed, plain)) = self.sizes.get(self.next) else { return Ok(None) };
        self.next += 1;
        // The vector grows only as far as there are bytes.
        let mut bytes = Vec::new();
        self.stored.by_ref().take(to_u64(packed)).read_to_end(&mut bytes)?;
        if bytes.len() < packed {
            return Err(self.wrong("is truncated"));
        }
        let decoder: Box<dyn Read> = match self.compression {
            Compression::None => Box::new(io::Cursor::new(bytes)),
            Compression::Zlib => Box::new(ZlibDecoder::new(io::Cursor::new(bytes))),
            Compression::Lz4 => Box::new(io::Cursor::new(self.lz4(&bytes, plain)?)),
            Compression::Lzma => {
                Box::new(XzReader::new_mem_limit(io::Cursor::new(bytes), false, LZMA_MEMORY_KIB))
            }
        };
        Ok(Some(OpenBlock { decoder, left: plain }))
    }

    /// Decompresses a block of LZ4 that should have `plain` bytes.
    fn lz4(&self, bytes: &[u8], plain: usize) -> io::Result<Vec<u8>> {
        if plain > bytes.len().saturating_mul(LZ4_RATIO) {
            return Err(self.wrong("is shorter than the header declares"));
        }
        let mut block = vec![0; plain];
        let length = lz4_flex::block::decompress_into(bytes, &mut block)
            .map_err(|e| self.wrong(&format!("is damaged: {e}")))?;
        block.truncate(length);
        Ok(block)
    }
}

impl Read for CompressedBlocks<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            let open = match self.open.take() {
                None => self.open()?,
                open => open,
            };
            let Some(mut block) = open else { return Ok(0) };
            let most = into.len().min(block.left);
            let part = if most > 0 { &mut into[..most] } else { &mut [0][..] };
            let count =
                block.decoder.read(part).map_err(|e| self.wrong(&format!("is damaged: {e}")))?;
            match (most, count) {
                // All bytes were produced, and the compressed stream ends too.
                (0, 0) => {}
                (0, _) => return Err(self.wrong("is longer than the header declares")),
                (_, 0) => return Err(self.wrong("is shorter than the header declares")),
                _ => {
                    block.left -= count;
                    self.open = Some(block);
                    return Ok(count);
                }
            }
        }
        Ok(0)
    }
}
