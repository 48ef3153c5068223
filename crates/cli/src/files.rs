//! Files in and out. The only module that touches the file system.
//!
//! Outputs are atomic: the bytes go to a temporary file beside the target, are synced, and the
//! file is renamed over the target, so a killed run leaves the old file or the new one, never a
//! half. `-` stands for standard input and output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use conset_ir::{At, InputError};

/// The most bytes an input may have. Every reader needs memory in proportion to its input.
const INPUT_BYTES_MAX: u64 = 8 << 30;

/// Reads a whole file, or standard input for `-`. Gives the name to use in messages with it.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), InputError> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        let mut limited = io::stdin().lock().take(INPUT_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(|e| unreadable("<stdin>", &e))?;
        check_size("<stdin>", bytes.len() as u64)?;
        return Ok(("<stdin>".to_owned(), bytes));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| unreadable(&name, &e))?;
    let metadata = file.metadata().map_err(|e| unreadable(&name, &e))?;
    if metadata.is_dir() {
        return Err(InputError::new(name, At::Whole, "this is a folder, expected a file"));
    }
    check_size(&name, metadata.len())?;
    let mut bytes = Vec::new();
    // A device or pipe has no length beforehand, so the limit is kept while reading, too.
    file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&name, &e))?;
    check_size(&name, bytes.len() as u64)?;
    Ok((name, bytes))
}

fn check_size(name: &str, bytes: u64) -> Result<(), InputError> {
    if bytes > INPUT_BYTES_MAX {
        return Err(InputError::new(
            name,
            At::Whole,
            format!("more than {} GiB, the most that is read", INPUT_BYTES_MAX >> 30),
        ));
    }
    Ok(())
}

fn unreadable(name: &str, error: &io::Error) -> InputError {
    let error = InputError::new(name, At::Whole, format!("cannot be read: {error}"));
    if error.message.contains("No such file") {
        return error.help("check the path; a pattern is written pattern:all-to-all");
    }
    error
}

/// Where output goes.
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A file, replaced as a whole.
    File(PathBuf),
}

impl Target {
    /// `-` is standard output, everything else a file.
    pub(crate) fn new(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdout } else { Self::File(path.to_owned()) }
    }

    /// Writes what `fill` produces.
    pub(crate) fn write(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), InputError> {
        match self {
            Target::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                match fill(&mut out).and_then(|()| out.flush()) {
                    // Whoever reads us has had enough (`| head`): not an error.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    other => other.map_err(|e| unwritable("<stdout>", &e)),
                }
            }
            Target::File(path) => write_atomically(path, fill)
                .map_err(|e| unwritable(&path.display().to_string(), &e)),
        }
    }
}

fn unwritable(name: &str, error: &io::Error) -> InputError {
    InputError::new(name, At::Whole, format!("cannot be written: {error}"))
}

fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link to a file stays a link: its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(metadata) = fs::metadata(&path) {
        if metadata.is_dir() {
            return Err(io::Error::other("this is a folder, expected a file"));
        }
        if !metadata.is_file() {
            // A device or a pipe cannot be replaced, only written to.
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(&path)?);
            fill(&mut out)?;
            return out.flush();
        }
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".conset-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).map_or(0o666, |m| m.permissions().mode() & 0o7777);
        temporary.permissions(fs::Permissions::from_mode(mode));
    }
    let temporary = temporary.tempfile_in(folder)?;
    let mut out = BufWriter::new(temporary);
    fill(&mut out)?;
    let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    temporary.as_file().sync_all()?;
    temporary.persist(&path).map_err(|e| e.error)?;
    // The rename itself must survive a crash as well.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// Makes a folder for outputs, with its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), InputError> {
    fs::create_dir_all(path).map_err(|e| unwritable(&path.display().to_string(), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let result = Target::new(&path).write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(result.unwrap_err().message.contains("disk full"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        Target::new(&path).write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        Target::new(&link).write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn folders_and_missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().message.contains("folder"));
        assert!(read(&folder.path().join("none")).unwrap_err().help.is_some());
        assert!(Target::new(folder.path()).write(|_| Ok(())).is_err());
    }
}
