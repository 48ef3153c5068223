//! Files of fuzzing inputs: a corpus is kept as one file for each target.
//!
//! `fuzz/corpora/TARGET.gz` is a gzip file of records: four bytes for the length of an input (little endian), and the
//! input. `.ci/deep` minimises what libFuzzer has collected and writes these files (`fuzz/examples/corpora.rs`).

use std::io::{self, Read as _, Write as _};

use conset::ir::convert::{index, to_u32};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

/// The inputs of a file.
///
/// # Errors
/// It is no gzip file, or ends within an input.
pub fn unpack(file: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    GzDecoder::new(file).read_to_end(&mut records)?;
    let mut rest = &records[..];
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (&length, after) = rest.split_first_chunk().ok_or_else(end)?;
        let (input, after) =
            after.split_at_checked(index(u32::from_le_bytes(length))).ok_or_else(end)?;
        inputs.push(input.to_vec());
        rest = after;
    }
    Ok(inputs)
}

/// The file of some inputs: sorted, each once, so that the same inputs give the same bytes.
///
/// # Panics
/// Never: writing to memory succeeds.
pub fn pack(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    inputs.dedup();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for input in inputs {
        let length = to_u32(input.len()).to_le_bytes();
        encoder.write_all(&length).and_then(|()| encoder.write_all(&input)).expect("memory");
    }
    encoder.finish().expect("memory")
}
