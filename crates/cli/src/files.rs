//! Reading and writing files. No other module accesses the user's files.
//!
//! Writes are atomic ([`CompleteFile`]), also those of several files into a folder. `-` is standard
//! input and output. If the reader of standard output stops early (`| head`), the output ends without
//! an error. A standard output that is closed from the beginning (`>&-`) is an error.
//!
//! Long subcommands call [`OutputTarget::check`] first, so that a wrong output path is found before the
//! work.

mod atomic;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use conset_ir::convert::to_u64;
use conset_ir::{At, InputError};

use crate::memory;
use atomic::CompleteFile;

/// Greatest size of an input. Every reader needs memory in proportion to its input.
const INPUT_BYTES_MAX: u64 = 8 << 30;

/// Reads a whole file, or standard input for `-`. Returns the name for messages and the bytes.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), InputError> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        let mut limited = io::stdin().lock().take(most() + 1);
        limited.read_to_end(&mut bytes).map_err(|e| unreadable("<stdin>", &e))?;
        check_size("<stdin>", to_u64(bytes.len()))?;
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
    bytes.reserve_exact(usize::try_from(metadata.len()).unwrap_or(0));
    // Devices and pipes have no length, so the limit is also checked while reading.
    file.take(most() + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&name, &e))?;
    check_size(&name, to_u64(bytes.len()))?;
    Ok((name, bytes))
}

/// Greatest number of bytes that are read: half of the memory limit, because the parsed input needs
/// memory too.
fn most() -> u64 {
    memory::limit().map_or(INPUT_BYTES_MAX, |limit| INPUT_BYTES_MAX.min(limit / 2))
}

fn check_size(name: &str, bytes: u64) -> Result<(), InputError> {
    if bytes <= most() {
        return Ok(());
    }
    let message = format!("more than {}, the greatest size of an input", memory::Bytes(most()));
    let error = InputError::new(name, At::Whole, message);
    Err(if most() < INPUT_BYTES_MAX { error.help("allow more with --memory") } else { error })
}

fn unreadable(name: &str, error: &io::Error) -> InputError {
    let error = InputError::new(name, At::Whole, format!("cannot be read: {error}"));
    if error.message.contains("No such file") {
        return error.help("check the path");
    }
    error
}

/// The target of an output.
pub(crate) enum OutputTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, replaced as a whole.
    File(PathBuf),
}

impl OutputTarget {
    /// `-` is standard output, everything else a file.
    pub(crate) fn new(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdout } else { Self::File(path.to_owned()) }
    }

    /// Checks that the target can be written.
    ///
    /// # Errors
    /// The folder does not exist, the target is a folder, or it is one of `inputs`, which would be
    /// overwritten.
    pub(crate) fn check(&self, inputs: &[&Path]) -> Result<(), InputError> {
        let path = match self {
            OutputTarget::Stdout => return check_stdout(),
            OutputTarget::Stderr => return Ok(()),
            OutputTarget::File(path) => path,
        };
        let name = path.display().to_string();
        let wrong = |message: String| InputError::new(name.clone(), At::Whole, message);
        let real = atomic::end_of(path).map_err(|e| unwritable(&name, &e))?;
        if !real.exists() {
            check_folder(&name, &real)?;
            let folder = real.as_os_str().as_encoded_bytes().ends_with(b"/");
            let message = "this is the name of a folder, expected a file to write";
            return if folder { Err(wrong(message.into())) } else { Ok(()) };
        }
        if real.is_dir() {
            return Err(wrong("this is a folder, expected a file to write".into()));
        }
        let same = |input: &&&Path| fs::canonicalize(input).is_ok_and(|input| input == real);
        match inputs.iter().find(same) {
            Some(_) if real.is_file() => {
                Err(wrong("this is the input; it would be overwritten".into())
                    .help("write to another file"))
            }
            _ => Ok(()),
        }
    }

    /// Writes what `fill` produces.
    pub(crate) fn write(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), InputError> {
        match self {
            OutputTarget::Stdout => {
                check_stdout()?;
                let mut out = BufWriter::new(io::stdout().lock());
                match fill(&mut out).and_then(|()| out.flush()) {
                    // The reader has stopped early (`| head`): not an error.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    other => other.map_err(|e| unwritable("<stdout>", &e)),
                }
            }
            OutputTarget::Stderr => {
                let mut out = BufWriter::new(io::stderr().lock());
                let written = fill(&mut out).and_then(|()| out.flush());
                written.map_err(|e| unwritable("<stderr>", &e))
            }
            OutputTarget::File(path) => {
                self.check(&[])?;
                CompleteFile::write(path, fill)
                    .and_then(|file| CompleteFile::publish(vec![file]))
                    .map_err(|e| unwritable(&path.display().to_string(), &e))
            }
        }
    }
}

fn check_stdout() -> Result<(), InputError> {
    #[cfg(target_os = "linux")]
    if closed::was_closed() {
        let message = "cannot be written: it is closed";
        return Err(InputError::new("<stdout>", At::Whole, message));
    }
    Ok(())
}

fn check_folder(name: &str, path: &Path) -> Result<(), InputError> {
    let folder = atomic::folder_of(path);
    if folder.is_dir() {
        return Ok(());
    }
    let folder = folder.display();
    let message = format!("cannot be written: the folder {folder} does not exist");
    Err(InputError::new(name, At::Whole, message).help("create it first, or check the path"))
}

fn unwritable(name: &str, error: &io::Error) -> InputError {
    InputError::new(name, At::Whole, format!("cannot be written: {error}"))
}

/// Whether standard output was closed when the program started. Before `main`, Rust's runtime opens
/// `/dev/null` in its place, which hides this.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "only a function of the linker's section runs early enough")]
mod closed {
    use std::sync::atomic::{AtomicBool, Ordering};

    static CLOSED: AtomicBool = AtomicBool::new(false);

    // Functions in this section are called before Rust's runtime starts. This one makes one system
    // call, which needs no runtime.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
        CLOSED.store(closed, Ordering::Relaxed);
    }

    pub(super) fn was_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}

/// Writes files into a folder, which is created if necessary, all or none of them. Their names can begin
/// with further folders. Returns the paths.
pub(crate) fn write_folder(
    folder: &Path,
    files: &[(String, Vec<u8>)],
) -> Result<Vec<String>, InputError> {
    let mut made = Vec::new();
    let written = write_into(folder, files, &mut made);
    if written.is_err() {
        // What remains is not empty: it has files of others.
        made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    written
}

/// The same; adds the folders that it creates to `made`.
fn write_into(
    folder: &Path,
    files: &[(String, Vec<u8>)],
    made: &mut Vec<PathBuf>,
) -> Result<Vec<String>, InputError> {
    let (mut written, mut complete) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let path = folder.join(name);
        let parent = atomic::folder_of(&path);
        make_folder(parent, made)?;
        OutputTarget::File(path.clone()).check(&[])?;
        let name = path.display().to_string();
        let file = CompleteFile::write(&path, |out| out.write_all(bytes));
        complete.push(file.map_err(|e| unwritable(&name, &e))?);
        written.push(name);
    }
    let name = || folder.display().to_string();
    CompleteFile::publish(complete).map_err(|e| unwritable(&name(), &e))?;
    Ok(written)
}

/// Creates a folder with its parents, and adds those that did not exist to `made`.
fn make_folder(path: &Path, made: &mut Vec<PathBuf>) -> Result<(), InputError> {
    let name = || path.display().to_string();
    if path.is_file() {
        return Err(InputError::new(name(), At::Whole, "this is a file, expected a folder"));
    }
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder).map_err(|e| unwritable(&name(), &e))?;
        made.push(folder.to_owned());
    }
    Ok(())
}

/// The absolute path of a folder, which must exist.
pub(crate) fn whole_path(folder: &Path) -> Result<PathBuf, InputError> {
    let wrong = |why: String| InputError::new(folder.display().to_string(), At::Whole, why);
    let path = fs::canonicalize(folder).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    if path.is_dir() { Ok(path) } else { Err(wrong("this is a file, expected a folder".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        fs::write(&path, "old").unwrap();
        let result = OutputTarget::new(&path).write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(result.unwrap_err().message.contains("disk full"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        OutputTarget::new(&path).write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn targets_that_cannot_be_written_are_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let (input, none) = (folder.path().join("in"), folder.path().join("none/out.json"));
        fs::write(&input, "precious").unwrap();
        let check = |path: &Path| OutputTarget::new(path).check(&[&input, Path::new("-")]);
        assert!(check(&folder.path().join("out.json")).is_ok());
        assert!(check(Path::new("-")).is_ok() && check(Path::new("bare.json")).is_ok());
        assert!(check(folder.path()).unwrap_err().message.contains("folder"));
        let error = check(&none).unwrap_err();
        assert!(error.message.ends_with("none does not exist") && error.help.is_some(), "{error}");
        assert_eq!(OutputTarget::new(&none).write(|_| Ok(())).unwrap_err(), error);
        assert!(check(&folder.path().join("./in")).unwrap_err().message.contains("the input"));
        assert!(write_folder(&input, &[]).unwrap().is_empty());
        let file = [("a/b".to_owned(), Vec::new())];
        let error = write_folder(&input, &file).unwrap_err();
        assert!(error.message.contains("cannot be written"), "{error}");
        let file = [("b".to_owned(), Vec::new())];
        let error = write_folder(&input, &file).unwrap_err();
        assert!(error.message.contains("expected a folder"), "{error}");
        assert!(whole_path(&input).unwrap_err().message.contains("expected a folder"));
        assert!(whole_path(&none).is_err() && whole_path(Path::new(".")).unwrap().is_absolute());
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
        OutputTarget::new(&link).write(|out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_nothing_are_written_through() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // A chain of relative links, in another folder, to a file that is not there.
        fs::create_dir(at("inner")).unwrap();
        symlink("inner/second", at("first")).unwrap();
        symlink("../new", at("inner/second")).unwrap();
        for bytes in ["new", "newer"] {
            OutputTarget::new(&at("first")).write(|out| out.write_all(bytes.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(at("new")).unwrap(), bytes);
            assert!(fs::symlink_metadata(at("first")).unwrap().is_symlink());
            assert!(fs::symlink_metadata(at("inner/second")).unwrap().is_symlink());
        }
        symlink("none/new", at("astray")).unwrap();
        let error = OutputTarget::new(&at("astray")).check(&[]).unwrap_err();
        assert!(error.message.contains("does not exist"), "{error}");
        assert_eq!(OutputTarget::new(&at("astray")).write(|_| Ok(())).unwrap_err(), error);
        symlink("ring", at("ring")).unwrap();
        assert!(OutputTarget::new(&at("ring")).check(&[]).is_err());
        assert!(OutputTarget::new(&at("ring")).write(|_| Ok(())).is_err());
        assert!(fs::symlink_metadata(at("ring")).unwrap().is_symlink());
    }

    #[test]
    fn folders_and_missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().message.contains("folder"));
        assert!(read(&folder.path().join("none")).unwrap_err().help.is_some());
        assert!(OutputTarget::new(folder.path()).write(|_| Ok(())).is_err());
    }
}
