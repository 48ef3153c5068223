//! Unpacks the stored inputs of all fuzz targets into folders, or packs folders into the stored files.
//!
//! `cargo run --example corpora -- unpack FOLDER` adds the inputs of `corpora/TARGET.gz` to `FOLDER/TARGET`;
//! `cargo run --example corpora -- pack FOLDER` replaces each file whose folder exists and has inputs.

use std::path::{Path, PathBuf};
use std::{fs, io};

use conset_fuzz::{TARGETS, corpus};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (action, folder) = (arguments.next().unwrap_or_default(), arguments.next());
    let folder = PathBuf::from(folder.unwrap_or_default());
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
    for (target, _) in TARGETS {
        let (file, inputs) = (corpora.join(format!("{target}.gz")), folder.join(target));
        match &*action {
            "unpack" if !file.exists() => {}
            "unpack" => unpack(&file, &inputs)?,
            "pack" if !inputs.exists() => {}
            "pack" => pack(&inputs, &file)?,
            _ => return Err(io::Error::other("expected `unpack FOLDER` or `pack FOLDER`")),
        }
    }
    Ok(())
}

fn unpack(file: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in corpus::unpack(&fs::read(file)?)?.into_iter().enumerate() {
        fs::write(folder.join(format!("stored-{number}")), input)?;
    }
    Ok(())
}

fn pack(folder: &Path, file: &Path) -> io::Result<()> {
    let inputs: Vec<Vec<u8>> =
        fs::read_dir(folder)?.map(|entry| fs::read(entry?.path())).collect::<io::Result<_>>()?;
    if inputs.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    fs::write(file, corpus::pack(inputs))
}
