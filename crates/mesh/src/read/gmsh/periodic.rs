//! The section `$Periodic`: pairs of nodes on the two sides of a periodic boundary, which are one
//! node of the solution.

use conset_ir::Result;

use super::encoding::{Reader, Version};
use crate::model::Assembly;
use crate::read::numbering::NodeNumbering;

/// Reads the section and joins the nodes of each pair. In versions up to 2.2 it is text in binary
/// files too.
pub(super) fn read_periodic(
    reader: &mut Reader<'_>,
    version: Version,
    numbering: &NodeNumbering,
    assembly: &mut Assembly,
) -> Result<()> {
    let text = reader.is_text() || version == Version::V2;
    let encoding = reader.encoding;
    if text {
        reader.set_text();
    }
    let what = "the number of periodic links";
    // In binary files of 4.0 an `int`, as everything but the number of pairs.
    let links = if version == Version::V40 { reader.count(what)? } else { reader.size(what)? };
    for _ in 0..links {
        reader.int("the dimension of an entity")?;
        reader.int("the tag of an entity")?;
        reader.int("the tag of the master entity")?;
        let pairs = pair_count(reader, version, text)?;
        for _ in 0..pairs {
            let mut pair = [0; 2];
            for node in &mut pair {
                let tag = reader.node_tag("a node")?;
                *node = numbering
                    .rank(tag)
                    .ok_or_else(|| reader.cursor.error(format!("node {tag} is not in $Nodes")))?;
            }
            assembly.join(pair[0], pair[1]);
        }
    }
    reader.encoding = encoding;
    Ok(())
}

/// Skips the transformation, if there is one, and reads the number of pairs of nodes.
fn pair_count(reader: &mut Reader<'_>, version: Version, text: bool) -> Result<u64> {
    let (value, count) = ("a value of the transformation", "the number of pairs of nodes");
    if version == Version::V41 {
        // Gmsh writes NaN if it does not know the transformation.
        for _ in 0..reader.size("the number of values of the transformation")? {
            reader.skip_real(value)?;
        }
    } else if text {
        reader.cursor.skip_space();
        if reader.cursor.peek_token() == b"Affine" {
            reader.cursor.next_line();
        }
    } else {
        // A number of pairs that no file can have announces a transformation.
        let pairs = reader.size(count)?;
        if pairs != u64::MAX {
            return Ok(pairs);
        }
        for _ in 0..16 {
            reader.skip_real(value)?;
        }
    }
    reader.size(count)
}
