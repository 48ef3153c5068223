//! Rust modules of typed names for an image file, to be included in another crate.
//!
//! A build script writes the image in the binary form and this module, which embeds the file and has
//! constants for its sets, connections and phases. The module depends on `conset-runtime` only.
//! Unlike the crate of [`crate::rust`] it has no tables as source code, so it compiles fast for any
//! size. The image is parsed and checked at the first call.
//!
//! ```text
//! image()                     the image; every call returns an `Arc` of the same image
//! halo::SET, halo::NAME       the row and the name of a set
//! halo::connections::EAST     a connection
//! halo::phases::P0            a phase
//! ```
//!
//! The connections of sets with more than [`NAMES`] connections have no constants.

use conset_ir::{Image, SetImage};

use crate::source::{plan_length, put};
use crate::{names, rust};

/// The greatest number of connections of a set that have constants.
pub const NAMES: usize = 1 << 16;

/// The module of an image in `file`, a path relative to the file of the module.
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
    if set.steps.is_none() {
        rust::phase_names(&mut inner, set);
    }
    let plan = plan_length(set);
    let connections = set.set.len();
    put(
        out,
        format_args!(
            "\n/// Connection set `{name}`: {connections} connections in {plan}.\n\
             pub mod {module} {{\n    \
             /// The set's row in the image.\n    pub const SET: usize = {row};\n    \
             /// The set's name in the image.\n    pub const NAME: &str = {name:?};\n"
        ),
    );
    for line in inner.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        put(out, format_args!("{indent}{line}\n"));
    }
    out.push_str("}\n");
}
