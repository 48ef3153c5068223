//! An image as C source: a header of names and a table of bytes.
//!
//! Two files. `NAME.h` has an enumeration of the sets and, for each set, of its phases and
//! connections, so that a program that uses what is not there does not compile; names come about
//! as in [`crate::names`], behind the image's and the set's. `NAME.c` holds the image in its binary
//! form (`docs/format.md`), contexts and operation lists and all, and a function that loads it
//! through the C library of the runtime, which checks it as it checks a file. The sources need
//! `conset.h` and link with that library; they are C99, and C++ may include the header.
//!
//! Bytes rather than structures, because there is one reader of images, it is fuzzed, and a
//! compiler takes its time for each initialiser. Beyond [`BYTES`] no source is written; such an
//! image is loaded from its file.

use conset_ir::document::Document;
use conset_ir::{Image, SetImage, binary};

use crate::names::{self, Unique};
use crate::rust::{File, put};

/// Most bytes of an image that are written as source: some seconds of compiling.
pub const BYTES: usize = 1 << 24;

/// Numbers in a line of the table.
const LINE: usize = 20;

/// Why no source was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The image is too large to be compiled in reasonable time.
    #[error(
        "{bytes} bytes of an image are too many for source code, at most {limit}; load the image from its file instead"
    )]
    TooLarge {
        /// Bytes there are.
        bytes: usize,
        /// Bytes there may be.
        limit: usize,
    },
    /// The name cannot begin a C identifier.
    #[error("`{name}` cannot begin C names; expected a letter, then letters, digits or `_`")]
    Name {
        /// The name.
        name: String,
    },
}

/// The header and source of an image; `name` begins every C name and both files' names.
///
/// # Errors
/// An image that is too large, a name that is none.
pub fn emit(image: &Image, name: &str) -> Result<Vec<File>, EmitError> {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !letter || name.len() > 64 || !name.bytes().all(legal) {
        return Err(EmitError::Name { name: name.to_owned() });
    }
    let bytes = binary::write(&Document::Image(image.clone()));
    if bytes.len() > BYTES {
        return Err(EmitError::TooLarge { bytes: bytes.len(), limit: BYTES });
    }
    Ok(vec![
        (format!("{name}.h"), header(image, name)),
        (format!("{name}.c"), source(name, &bytes)),
    ])
}

fn header(image: &Image, name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    let mut given = Unique::default();
    let guard = given.take(format!("{upper}_IMAGE_H"));
    let mut out = format!(
        "/* The image of a compiled program for machine {}: names of its sets, phases and\n   \
         connections. Written by conset; compile the program again rather than change it. */\n\
         #ifndef {guard}\n#define {guard}\n\n\
         #include <stddef.h>\n\n#include <conset.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        // A machine's name may hold what ends a comment.
        image.machine().name().replace("*/", "* /")
    );
    let modules = names::prefixed(image.sets().iter().map(|set| set.set.name()));
    let sets: Vec<_> = modules
        .iter()
        .map(|m| (given.take(format!("{upper}_{}", m.to_ascii_uppercase())), String::new()))
        .collect();
    enumeration(&mut out, &format!("{name}_set"), "The sets in the order of execution.", &sets);
    for (set, module) in image.sets().iter().zip(&modules) {
        set_names(&mut out, set, &format!("{name}_{module}"), &mut given);
    }
    put(
        &mut out,
        format_args!(
            "\n/* The image in its binary form. */\nextern const unsigned char {name}_bytes[];\n\
             extern const size_t {name}_size;\n\n\
             /* Loads the image: CONSET_OK, or the status of conset_image_parse. Free it with\n   \
             conset_image_free. */\nint {name}_image(conset_image **image);\n\n\
             #ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
        ),
    );
    out
}

/// All names of the header are in one scope, so `given` knows those of all sets.
fn set_names(out: &mut String, image: &SetImage, prefix: &str, given: &mut Unique) {
    let upper = prefix.to_ascii_uppercase();
    put(
        out,
        format_args!(
            "\n/* Set {}: {} connections in {} phases. */\n#define {} \"{}\"\n",
            image.set.name(),
            image.set.len(),
            image.phases.len(),
            given.take(format!("{upper}_NAME")),
            image.set.name()
        ),
    );
    let phases: Vec<_> = (0..image.phases.len())
        .map(|row| (given.take(format!("{upper}_P{row}")), String::new()))
        .collect();
    enumeration(out, &format!("{prefix}_phase"), "Its phases in the order of execution.", &phases);
    let named = image.set.connections().iter().zip(names::connections(&image.set));
    let connections: Vec<_> = named
        .map(|(c, name)| {
            let note = format!(" /* {} to {}, {} words */", c.source, c.target, c.words);
            (given.take(format!("{upper}_{}", name.to_ascii_uppercase())), note)
        })
        .collect();
    enumeration(out, &format!("{prefix}_connection"), "Its connections.", &connections);
}

/// An enumeration that counts from 0: members and what stands behind them. C has none without
/// members.
fn enumeration(out: &mut String, name: &str, comment: &str, members: &[(String, String)]) {
    if members.is_empty() {
        return;
    }
    put(out, format_args!("\n/* {comment} */\nenum {name} {{\n"));
    for (row, (member, note)) in members.iter().enumerate() {
        put(out, format_args!("    {member} = {row},{note}\n"));
    }
    out.push_str("};\n");
}

fn source(name: &str, bytes: &[u8]) -> String {
    let mut out = format!(
        "/* The image of a compiled program. Written by conset; compile the program again rather\n   \
         than change it. */\n#include \"{name}.h\"\n\nconst unsigned char {name}_bytes[] = {{\n"
    );
    for line in bytes.chunks(LINE) {
        out.push_str("   ");
        for byte in line {
            put(&mut out, format_args!(" {byte},"));
        }
        out.push('\n');
    }
    put(
        &mut out,
        format_args!(
            "}};\n\nconst size_t {name}_size = sizeof {name}_bytes;\n\n\
             int {name}_image(conset_image **image)\n{{\n    \
             return conset_image_parse({name}_bytes, {name}_size, image);\n}}\n"
        ),
    );
    out
}
