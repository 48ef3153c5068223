//! Reading the user's files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use conset_ir::{At, InputError};

/// Greatest size of an input, as in the command.
const INPUT_BYTES_MAX: u64 = 8 << 30;

/// Reads a whole file. Returns the name for messages and the bytes.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), InputError> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let error = InputError::new(&name, At::Whole, format!("cannot be read: {error}"));
        if missing { error.help("check the path") } else { error }
    };
    if path.is_dir() {
        let message = "this is a folder, expected a file";
        return Err(InputError::new(name, At::Whole, message));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).map_or(true, |length| length > INPUT_BYTES_MAX) {
        let message = "more than 8.0 GiB, the greatest size of an input";
        return Err(InputError::new(name, At::Whole, message));
    }
    Ok((name, bytes))
}
