//! How the bytes of an array of a VTU file are stored: as base64, and in compressed blocks.
//!
//! Both are streams: what was decoded or unpacked is handed on before more is, so that a file needs
//! no more memory than itself and one buffer, whatever its blocks would unpack to. A block must
//! unpack to as many bytes as the header of the array says, and is not unpacked any further.

use std::io::{self, Read};
use std::iter::Fuse;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::ZlibDecoder;

/// Letters of base64 that stand for three bytes.
const GROUP: usize = 4;

/// Letters that are decoded at once.
const RUN: usize = 1024 * GROUP;

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Decodes base64 that may be padded within, up to the first byte that is none. A last group that
/// is not whole is left out.
pub(super) struct Base64<I: Iterator> {
    letters: Fuse<I>,
    run: Vec<u8>,
    bytes: Vec<u8>,
    /// How many of the bytes were handed on.
    used: usize,
}

impl<I: Iterator<Item = u8>> Base64<I> {
    pub(super) fn new(letters: I) -> Self {
        Self { letters: letters.fuse(), run: Vec::new(), bytes: Vec::new(), used: 0 }
    }

    /// Whole groups, as many as fit; behind padding, base64 begins anew.
    fn decode(&mut self) -> io::Result<()> {
        self.run.clear();
        let legal = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let blank = |b: &u8| !b.is_ascii_whitespace();
        for byte in self.letters.by_ref().filter(blank).take_while(legal) {
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
            .map_err(|e| invalid(format!("no base64: {e}")))
    }
}

impl<I: Iterator<Item = u8>> Read for Base64<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.bytes.len() {
            self.decode()?;
        }
        let count = (&self.bytes[self.used..]).read(into)?;
        self.used += count;
        Ok(count)
    }
}

/// Unpacks the blocks of an array, one behind the other.
pub(super) struct Blocks<'s> {
    stored: Box<dyn Read + 's>,
    /// Bytes of the blocks, packed and plain.
    sizes: Vec<(usize, usize)>,
    next: usize,
    open: Option<Block>,
}

/// A block that is being unpacked.
struct Block {
    decoder: ZlibDecoder<io::Cursor<Vec<u8>>>,
    /// Plain bytes that are still to come.
    left: usize,
}

impl<'s> Blocks<'s> {
    /// The blocks of these sizes, packed and plain, which `stored` has one behind the other.
    pub(super) fn new(stored: Box<dyn Read + 's>, sizes: Vec<(usize, usize)>) -> Self {
        Self { stored, sizes, next: 0, open: None }
    }

    /// Says which block is wrong; the open one was taken already.
    fn wrong(&self, what: &str) -> io::Error {
        invalid(format!("block {} of {} {what}", self.next - 1, self.sizes.len()))
    }

    /// Takes the packed bytes of the next block, if there is one.
    fn open(&mut self) -> io::Result<Option<Block>> {
        let Some(&(packed, plain)) = self.sizes.get(self.next) else { return Ok(None) };
        self.next += 1;
        // Grown as the bytes really arrive.
        let mut bytes = Vec::new();
        self.stored.by_ref().take(packed as u64).read_to_end(&mut bytes)?;
        if bytes.len() < packed {
            return Err(self.wrong("is cut short"));
        }
        Ok(Some(Block { decoder: ZlibDecoder::new(io::Cursor::new(bytes)), left: plain }))
    }
}

impl Read for Blocks<'_> {
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
                // Its last byte was there, and the stream is at its end as well.
                (0, 0) => {}
                (0, _) => return Err(self.wrong("is longer than the header says")),
                (_, 0) => return Err(self.wrong("is shorter than the header says")),
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
