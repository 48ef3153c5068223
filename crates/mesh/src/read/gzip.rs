//! Files that are compressed with gzip, of any format.

use std::io::Read;

use conset_ir::convert::to_u64;
use conset_ir::{At, InputError, Result};
use flate2::bufread::MultiGzDecoder;

/// Whether the bytes begin as gzip does.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The bytes that were compressed, of which there may be `memory` at most.
pub(super) fn decompress(file: &str, bytes: &[u8], memory: u64) -> Result<Vec<u8>> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(memory.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(|error| {
        let message = format!("gzip: {error}, after {} bytes", plain.len());
        InputError::new(file, At::Whole, message).help("the file was cut or damaged")
    })?;
    if to_u64(plain.len()) > memory {
        let message = format!("gzip: the file decompresses to more than {memory} bytes");
        return Err(InputError::new(file, At::Whole, message));
    }
    Ok(plain)
}

/// The first bytes of what was compressed, as many as can be had.
pub(super) fn start(bytes: &[u8], length: u64) -> Vec<u8> {
    let mut plain = Vec::new();
    // Damage is reported when the file is read.
    let _ = MultiGzDecoder::new(bytes).take(length).read_to_end(&mut plain);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        flate2::read::GzEncoder::new(plain, flate2::Compression::best())
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    #[test]
    fn memory_is_limited_and_damage_reported() {
        let zeros = packed(&vec![b'0'; 1 << 20]);
        assert_eq!(decompress("f", &zeros, 1 << 20).unwrap().len(), 1 << 20);
        assert!(decompress("f", &zeros, (1 << 20) - 1).unwrap_err().message.contains("more than"));
        assert!(decompress("f", &zeros[..zeros.len() / 2], u64::MAX).is_err());
        assert_eq!(start(&zeros, 10), b"0000000000");
    }
}
