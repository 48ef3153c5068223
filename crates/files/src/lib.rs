//! Opening inputs that are several files: OpenFOAM cases, and meshes that Gmsh split.
//!
//! | named by the user | what is read |
//! |---|---|
//! | a folder `polyMesh`, or one that contains it or `constant/polyMesh` | the mesh |
//! | a case with folders `processor0`, `processor1`, ... | the decomposition in them |
//! | a file `NAME.foam` | the case in its folder |
//! | one of the files `NAME_1.msh`, `NAME_2.msh`, ... of a split mesh | all of them |
//!
//! Every other input is one file. The interfaces (the command, the Python package) give the
//! function that reads a file, with their own limits.

#![forbid(unsafe_code)]
#![warn(clippy::as_conversions)]

use std::path::{Path, PathBuf};

use conset_ir::convert::index;
use conset_ir::{At, InputError};
use conset_mesh::Format;
use conset_mesh::read::{
    PolyMesh, ProcessorMesh, ReadOptions, Reading, SplitFile, read_openfoam,
    read_openfoam_decomposed, read_split_gmsh, split_gmsh,
};

/// A function that reads a whole file; it returns the name for messages and the bytes.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<(String, Vec<u8>), InputError>;

/// An input.
#[derive(Debug)]
pub enum Opened {
    /// The name and the bytes of a file.
    File(String, Vec<u8>),
    /// The name and the mesh of several files.
    Mesh(String, Box<Reading>),
}

/// Opens an input; `format` is the format that the user names.
///
/// # Errors
/// Files that cannot be read or are missing, a folder without a case, errors in a mesh of several
/// files. A single file is read, but not parsed.
pub fn open(
    path: &Path,
    format: Option<&str>,
    options: &ReadOptions,
    read: ReadFile<'_>,
) -> Result<Opened, InputError> {
    let is_foam = path.extension().is_some_and(|extension| extension == "foam");
    let folder = match path.parent() {
        Some(parent) if is_foam && path.is_file() => Some(match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        }),
        _ if path.is_dir() => Some(path),
        _ => None,
    };
    if let Some(folder) = folder {
        if let Some(format) = format {
            let at = At::Path(format.to_owned());
            return Err(InputError::new("<format>", at, "the input is a folder")
                .help("leave out <format>; folders are OpenFOAM cases"));
        }
        let reading = open_case(folder, options, read)?;
        return Ok(Opened::Mesh(path.display().to_string(), Box::new(reading)));
    }
    let (name, bytes) = read(path)?;
    let is_gmsh = match format {
        Some(format) => format == Format::Gmsh.name(),
        None => Format::detect(&name, &bytes) == Some(Format::Gmsh),
    };
    if let (true, Some(siblings)) = (is_gmsh, Siblings::of(path))
        && let Some(split) = split_gmsh(&name, &bytes, options)?
        && let Some(count) = siblings.count(split, options, read)?
    {
        let reading = siblings.open(count, options, read)?;
        return Ok(Opened::Mesh(name, Box::new(reading)));
    }
    Ok(Opened::File(name, bytes))
}

/// The files of a split mesh, by the name of one of them.
struct Siblings {
    folder: PathBuf,
    /// The name before and after the number.
    before: String,
    after: String,
    /// Digits of a number, with leading zeros; 0 if there are none.
    width: usize,
}

impl Siblings {
    /// The files that belong to `NAME_3.msh`; `None` if the name has no number.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        let (start, digits) = stem.rsplit_once('_')?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            folder: path.parent()?.to_owned(),
            before: format!("{start}_"),
            after: name[stem.len()..].to_owned(),
            width: if digits.starts_with('0') { digits.len() } else { 0 },
        })
    }

    fn path(&self, number: usize) -> PathBuf {
        let width = self.width;
        self.folder.join(format!("{}{number:0width$}{}", self.before, self.after))
    }

    /// The number of files that the mesh was split into; `None` if the file has a whole mesh. Where
    /// no file states it, the files that exist and have one part each belong to the mesh.
    fn count(
        &self,
        split: SplitFile,
        options: &ReadOptions,
        read: ReadFile<'_>,
    ) -> Result<Option<usize>, InputError> {
        if split.is_exact {
            return Ok(Some(split.part_count));
        }
        let mut count = split.part_count;
        loop {
            let path = self.path(count + 1);
            if !path.is_file() {
                break;
            }
            let (name, bytes) = read(&path)?;
            if Format::detect(&name, &bytes) != Some(Format::Gmsh) {
                break;
            }
            match split_gmsh(&name, &bytes, options)? {
                Some(next) if index(next.part) == count => count += 1,
                _ => break,
            }
        }
        Ok((count > 1).then_some(count))
    }

    fn open(
        &self,
        count: usize,
        options: &ReadOptions,
        read: ReadFile<'_>,
    ) -> Result<Reading, InputError> {
        let mut all = Vec::new();
        for number in 1..=count {
            let file = read(&self.path(number)).map_err(|error| {
                error.help(format!("the mesh is split into {count} files; all are needed"))
            })?;
            all.push(file);
        }
        let named: Vec<(&str, &[u8])> =
            all.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        read_split_gmsh(&named, options)
    }
}

/// Reads the mesh in a folder, or its decomposition if it has one.
fn open_case(
    folder: &Path,
    options: &ReadOptions,
    read: ReadFile<'_>,
) -> Result<Reading, InputError> {
    let processors = processors(folder)?;
    if !processors.is_empty() {
        return open_decomposed(&processors, options, read);
    }
    let Some(folder) = mesh_folder(folder) else {
        let name = folder.display().to_string();
        let message = "this is a folder without an OpenFOAM mesh";
        return Err(InputError::new(name, At::Whole, message).help(
            "expected the folder of a case (constant/polyMesh, or processor0, processor1, ...) or a file",
        ));
    };
    let files = FolderFiles::read(&folder, read)?;
    read_openfoam(&folder.display().to_string(), files.mesh(), options)
}

/// The folder `polyMesh` that a folder is or contains.
fn mesh_folder(folder: &Path) -> Option<PathBuf> {
    let candidates = [folder.to_owned(), folder.join("polyMesh"), folder.join("constant/polyMesh")];
    candidates.into_iter().find(|folder| find(folder, "owner").is_some())
}

/// A file, compressed or not, if it exists.
fn find(folder: &Path, file: &str) -> Option<PathBuf> {
    let names = [file.to_owned(), format!("{file}.gz")];
    names.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// The folders `polyMesh` of `processor0`, `processor1` and so on.
fn processors(case: &Path) -> Result<Vec<PathBuf>, InputError> {
    let wrong = |message: String| InputError::new(case.display().to_string(), At::Whole, message);
    let entries = std::fs::read_dir(case).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    let mut numbers: Vec<usize> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("processor")) else {
            continue;
        };
        if rest.starts_with('s') && entry.path().join("constant/polyMesh").is_dir() {
            return Err(wrong("decomposed in the collated format, which is not supported".into())
                .help("decompose it with `decomposePar -fileHandler uncollated`"));
        }
        numbers.extend(rest.parse::<usize>());
    }
    numbers.sort_unstable();
    let mut folders = Vec::new();
    for (expected, &number) in numbers.iter().enumerate() {
        if number != expected {
            return Err(wrong(format!(
                "processor{expected} is missing; the last is processor{}",
                numbers.last().copied().unwrap_or(number)
            )));
        }
        folders.push(case.join(format!("processor{number}/constant/polyMesh")));
    }
    Ok(folders)
}

fn open_decomposed(
    folders: &[PathBuf],
    options: &ReadOptions,
    read: ReadFile<'_>,
) -> Result<Reading, InputError> {
    let mut parts = Vec::new();
    for folder in folders {
        let addresses = |file: &str| {
            required(folder, file, read).map_err(|error| {
                error.help(
                    "a mesh that was decomposed when it was made cannot be put together; \
                     merge it with `reconstructParMesh` and decompose it with `decomposePar`",
                )
            })
        };
        let files = FolderFiles::read(folder, read)?;
        parts.push((files, addresses("pointProcAddressing")?, addresses("cellProcAddressing")?));
    }
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let parts: Vec<ProcessorMesh<'_>> = parts
        .iter()
        .map(|(files, points, cells)| ProcessorMesh { mesh: files.mesh(), points, cells })
        .collect();
    read_openfoam_decomposed(&names, &parts, options)
}

/// The files of a folder `polyMesh`.
struct FolderFiles {
    points: Vec<u8>,
    faces: Vec<u8>,
    owner: Vec<u8>,
    neighbour: Vec<u8>,
    boundary: Option<Vec<u8>>,
}

impl FolderFiles {
    fn read(folder: &Path, read: ReadFile<'_>) -> Result<Self, InputError> {
        let boundary = find(folder, "boundary").map(|path| read(&path)).transpose()?;
        Ok(Self {
            points: required(folder, "points", read)?,
            faces: required(folder, "faces", read)?,
            owner: required(folder, "owner", read)?,
            neighbour: required(folder, "neighbour", read)?,
            boundary: boundary.map(|(_, bytes)| bytes),
        })
    }

    fn mesh(&self) -> PolyMesh<'_> {
        PolyMesh {
            points: &self.points,
            faces: &self.faces,
            owner: &self.owner,
            neighbour: &self.neighbour,
            boundary: self.boundary.as_deref(),
        }
    }
}

/// The bytes of a file, compressed or not.
fn required(folder: &Path, file: &str, read: ReadFile<'_>) -> Result<Vec<u8>, InputError> {
    let path = find(folder, file).unwrap_or_else(|| folder.join(file));
    read(&path).map(|(_, bytes)| bytes)
}
