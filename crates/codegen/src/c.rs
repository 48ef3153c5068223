//! Images as C source: a header of names and a table of bytes.
//!
//! There are two files. `NAME.h` has an enumeration of the sets and, for each set, enumerations of
//! its phases and connections, so that a program that uses an unknown name does not compile. The
//! names are those of [`crate::names`], prefixed with the name of the image and of the set. `NAME.c`
//! has the image in its binary form (`docs/format.md`) and a function that loads it with the C
//! library of the runtime, which checks it like a file. The sources need `conset.h` and that
//! library. They are C99; the header can also be included in C++.
//!
//! The table has bytes instead of structures because compilers take long for initialisers, and
//! because the reader of images is well tested. No source is generated beyond [`BYTES`]; such an
//! image must be loaded from its file.

use conset_ir::{Document, Image, SetImage, binary};

use crate::names::{self, Unique};
use crate::source::{EmitError, SourceFile, plan_length, put};

/// The greatest number of bytes of an image in source code, which compiles in some seconds.
pub const BYTES: usize = 1 << 24;

/// Numbers per line of the table.
const LINE: usize = 20;

/// The header and source file of an image. `name` is the prefix of every C name and the name of
/// both files.
///
/// # Errors
/// [`EmitError::TooManyBytes`], and [`EmitError::CName`] if the name is not a C identifier.
pub fn emit(image: &Image, name: &str) -> Result<Vec<SourceFile>, EmitError> {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if !letter || name.len() > 64 || !name.bytes().all(legal) {
        return Err(EmitError::CName { name: name.to_owned() });
    }
    let bytes = binary::write(&Document::Image(image.clone()));
    if bytes.len() > BYTES {
        return Err(EmitError::TooManyBytes { bytes: bytes.len(), limit: BYTES });
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
        // The name of a machine may contain the end of a comment.
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

/// All names of the header are in one scope; `given` has those of all sets.
fn set_names(out: &mut String, image: &SetImage, prefix: &str, given: &mut Unique) {
    let upper = prefix.to_ascii_uppercase();
    let plan = plan_length(image);
    put(
        out,
        format_args!(
            "\n/* Set {}: {} connections in {plan}. */\n#define {} \"{}\"\n",
            image.set.name(),
            image.set.len(),
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

/// An enumeration that counts from 0, given its members and their comments. C does not permit one
/// without members.
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
