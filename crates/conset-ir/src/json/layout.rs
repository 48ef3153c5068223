//! Line breaks of the JSON formats: one line for each object in a list.
//!
//! Each object that is an element of a list starts a new line, indented by its depth. Numbers stay
//! on the line of their list. So a connection or a route is one line, which people can read and
//! `diff` can compare.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// A `serde_json` formatter that starts a new line for each object of a list.
#[derive(Default)]
pub(super) struct OneObjectPerLine {
    depth: usize,
    in_list: bool,
}

impl Formatter for OneObjectPerLine {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.in_list = false;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.in_list = true;
        if first { Ok(()) } else { writer.write_all(b",") }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.in_list = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.in_list) {
            writer.write_all(b"\n")?;
            for _ in 0..self.depth {
                writer.write_all(b" ")?;
            }
        }
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
