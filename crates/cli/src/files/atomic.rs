//! Files that become visible when they are complete.
//!
//! The bytes go to a temporary file in the same folder and are synced; then the file is renamed over the
//! target, so a killed command leaves either the old file or the new one. Several files are published
//! together, after all of them are complete: a full disk leaves none of them. A symbolic link is kept:
//! its target is written, even if it does not exist yet, as with `>` in a shell. On Linux the temporary
//! file has no name until it is complete, so a killed command leaves no other file either.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A file that is complete but does not have its name yet.
pub(super) enum CompleteFile {
    /// A device or a pipe, which is only written to.
    Device,
    /// A file with a temporary name, and its target.
    Named(TempPath, PathBuf),
    /// A file without a name, and its target.
    #[cfg(target_os = "linux")]
    Nameless(File, PathBuf),
}

impl CompleteFile {
    /// Writes what `fill` produces to a temporary file beside `path`.
    pub(super) fn write(
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        // A symbolic link is kept; its target is replaced or created.
        let path = end_of(path)?;
        if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            // A device or a pipe cannot be replaced, only written to.
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(&path)?);
            fill(&mut out)?;
            out.flush()?;
            return Ok(CompleteFile::Device);
        }
        let folder = folder_of(&path);
        #[cfg(target_os = "linux")]
        if let Ok(file) = nameless::open(folder, mode_of(&path)) {
            let mut out = BufWriter::new(file);
            fill(&mut out)?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            return Ok(CompleteFile::Nameless(file, path));
        }
        let mut builder = temporary();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(mode_of(&path)));
        }
        let mut out = BufWriter::new(builder.tempfile_in(folder)?);
        fill(&mut out)?;
        let temporary = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        temporary.as_file().sync_all()?;
        Ok(CompleteFile::Named(temporary.into_temp_path(), path))
    }

    /// Gives the files their names. All have temporary names before the first replaces its target, as
    /// only that needs space.
    pub(super) fn publish(files: Vec<Self>) -> io::Result<()> {
        let mut named = Vec::with_capacity(files.len());
        for file in files {
            named.push(match file {
                CompleteFile::Device => continue,
                CompleteFile::Named(temporary, path) => (temporary, path),
                #[cfg(target_os = "linux")]
                CompleteFile::Nameless(file, path) => {
                    let link = |name: &Path| nameless::link(&file, name);
                    let temporary = temporary().make_in(folder_of(&path), link)?;
                    (temporary.into_temp_path(), path)
                }
            });
        }
        let mut folders = BTreeSet::new();
        for (temporary, path) in named {
            temporary.persist(&path).map_err(|e| e.error)?;
            folders.insert(folder_of(&path).to_owned());
        }
        // The renames must survive a crash too.
        #[cfg(unix)]
        for folder in folders {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// The folder that a new file would be in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The target of a path through all symbolic links; it need not exist.
pub(super) fn end_of(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A cycle of links is an error here, so the loop ends.
            found => return found,
        }
        match fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(_) => return Ok(path),
        }
    }
}

fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".conset-").suffix(".tmp");
    builder
}

/// The permissions of the replaced file, or those of a new file.
#[cfg(unix)]
fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or(0o666, |m| m.permissions().mode() & 0o7777)
}

/// Files without a name until they are complete.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    fn own_name(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Creates a file without a name in `folder`. Not all file systems support this, and naming it
    /// later needs `/proc`.
    pub(super) fn open(folder: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        let file = OpenOptions::new().write(true).mode(mode).custom_flags(flags).open(folder)?;
        own_name(&file).symlink_metadata()?;
        Ok(file)
    }

    /// Gives the file an unused name.
    pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
        linkat(CWD, own_name(file), CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn an_incomplete_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        if nameless::open(folder.path(), 0o600).is_err() {
            return; // not every file system can
        }
        let path = folder.path().join("out.json");
        let count = || fs::read_dir(folder.path()).unwrap().count();
        let file = CompleteFile::write(&path, |out| out.write_all(&[0; 1 << 20])).unwrap();
        assert_eq!(count(), 0);
        CompleteFile::publish(vec![file]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
        assert_eq!(count(), 1);
    }
}
