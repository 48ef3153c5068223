//! An image as a file and a module of typed names, to be included in somebody's crate.
//!
//! What a build script leaves behind: the image in the binary form, and one source file that
//! embeds it and names its sets, connections and phases. It needs `conset-runtime` only. Unlike
//! the crate of [`crate::rust`] it has no tables as source, so it compiles fast at any size; the
//! image is read and checked when it is first asked for.
//!
//! ```text
//! image()                     the image, an `Arc` to the same one at each call
//! halo::SET, halo::NAME       the set, by row and by name
//! halo::connections::EAST     a connection
//! halo::phases::P0            a phase
//! ```
//!
//! Sets of more than [`NAMES`] connections get no constants for them.

use conset_ir::{Image, SetImage};

use crate::{names, rust};

/// Most connections of a set that get a constant each.
pub const NAMES: usize = 1 << 16;

/// The module of an image that lies in `file`, a name relative to the module's own file.
pub fn module(image: &Image, file: &str) -> String {
    let mut out = format!(
        "// Written by conset-codegen; compile the program again rather than change it.\n\n\
         /// The image of the compiled program: the same one at each call.\n\
         ///\n\
         /// # Panics\n\
         /// If the file beside this module was changed.\n\
         pub fn image() -> ::std::sync::Arc<::conset_runtime::Image> {{\n    \
         static IMAGE: ::std::sync::OnceLock<::std::sync::Arc<::conset_runtime::Image>> =\n        \
         ::std::sync::OnceLock::new();\n    \
         let read = || {{\n        \
         let bytes = include_bytes!({file:?});\n        \
         match ::conset_runtime::ir::binary::parse({file:?}, bytes) {{\n            \
         Ok(::conset_runtime::ir::Document::Image(image)) => ::std::sync::Arc::new(image),\n            \
         Ok(_) => panic!(\"{{}} is no image\", {file:?}),\n            \
         Err(error) => panic!(\"{{error}}\"),\n        \
         }}\n    }};\n    \
         IMAGE.get_or_init(read).clone()\n}}\n"
    );
    let modules = names::modules(image.sets().iter().map(|set| set.set.name()));
    for (row, (set, module)) in image.sets().iter().zip(&modules).enumerate() {
        set_module(&mut out, row, set, module);
    }
    out
}

fn set_module(out: &mut String, row: usize, set: &SetImage, module: &str) {
    let name = set.set.name();
    let mut inner = String::new();
    if set.set.len() <= NAMES {
        rust::connection_names(&mut inner, set);
    }
    rust::phase_names(&mut inner, set);
    let (connections, phases) = (set.set.len(), set.phases.len());
    rust::put(
        out,
        format_args!(
            "\n/// Connection set `{name}`: {connections} connections in {phases} phases.\n\
             pub mod {module} {{\n    \
             /// The set's row in the image.\n    pub const SET: usize = {row};\n    \
             /// The set's name in the image.\n    pub const NAME: &str = {name:?};\n"
        ),
    );
    for line in inner.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        rust::put(out, format_args!("{indent}{line}\n"));
    }
    out.push_str("}\n");
}
