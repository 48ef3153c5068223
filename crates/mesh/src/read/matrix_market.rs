//! Matrix Market coordinate matrices (Boisvert, Pozo, Remington: The Matrix Market Exchange
//! Formats, NISTIR 5935).
//!
//! Only the sparsity pattern is kept: a row needs the values of its columns for any values of the
//! entries, including stored zeros. The file of a symmetric, skew-symmetric or Hermitian matrix has
//! one triangle; the other is added. A repeated entry counts once (assembled matrices are often
//! written this way). Dense matrices (`array`) are rejected, because they have no pattern.

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use crate::model::Matrix;

/// Reads a matrix.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Matrix> {
    let mut cursor = Cursor::new(file, bytes);
    let (values, symmetric) = banner(&mut cursor)?;
    cursor.skip_blank_and_comment_lines(b'%');
    let rows = cursor.integer("the number of rows", to_u64(limits::NODES))?;
    let rows_at = cursor.last();
    let columns = cursor.integer("the number of columns", to_u64(limits::NODES))?;
    let columns_at = cursor.last();
    let count = cursor.integer("the number of entries", to_u64(limits::NODES))?;
    cursor.end_line("rows, columns and entries")?;
    if symmetric && rows != columns {
        return Err(cursor.error_at(
            columns_at,
            format!("{columns} columns for {rows} rows; a symmetric matrix is square"),
        ));
    }
    // An entry takes at least 4 bytes, so in a larger matrix almost all rows or columns are empty.
    let most = to_u64(bytes.len()) + (1 << 20);
    if rows.max(columns) > most {
        return Err(cursor.error_at(
            rows_at,
            format!("{rows} rows and {columns} columns in a file of {} bytes", bytes.len()),
        ));
    }
    let mut entries = Vec::with_capacity(cursor.capacity(count, 4));
    for _ in 0..count {
        let row = position(&mut cursor, "a row", rows)?;
        let column = position(&mut cursor, "a column", columns)?;
        for _ in 0..values {
            if cursor.at_line_end() {
                let message = format!("the line ends early; expected row, column, {values} values");
                return Err(cursor.error_at(cursor.offset(), message));
            }
            cursor.real("a value")?;
        }
        cursor.end_line("a row, a column and the values declared in the first line")?;
        entries.push((row, column));
        if symmetric && row != column {
            entries.push((column, row));
        }
    }
    cursor.skip_blank_and_comment_lines(b'%');
    if !cursor.at_end() {
        let message = format!("the file has more than the {count} entries declared");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    let (rows, columns) = (to_usize(rows), to_usize(columns));
    let (first, columns_of_rows) = compress(rows, columns, entries);
    Matrix::new(columns, first, columns_of_rows).map_err(|error| error.in_file(file))
}

/// Reads the first line: the values per entry, and whether the file has only one triangle.
fn banner(cursor: &mut Cursor<'_>) -> Result<(usize, bool)> {
    let is = |token: &[u8], expected: &str| token.eq_ignore_ascii_case(expected.as_bytes());
    if !is(cursor.token("%%MatrixMarket")?, "%%MatrixMarket") {
        return Err(cursor.error("not a Matrix Market file: it does not begin with %%MatrixMarket"));
    }
    let object = cursor.token("`matrix`")?;
    if !is(object, "matrix") {
        return Err(cursor.error(format!("`{}`; expected `matrix`", show(object))));
    }
    let layout = cursor.token("`coordinate`")?;
    if !is(layout, "coordinate") {
        let error = cursor.error(format!("`{}`; expected `coordinate`", show(layout)));
        return Err(error.help("write the matrix in sparse (coordinate) form"));
    }
    let field = cursor.token("the kind of values")?;
    let kinds = [("pattern", 0), ("real", 1), ("double", 1), ("integer", 1), ("complex", 2)];
    let Some(&(_, values)) = kinds.iter().find(|kind| is(field, kind.0)) else {
        let field = show(field);
        return Err(
            cursor.error(format!("`{field}`; expected `pattern`, `real`, `integer` or `complex`"))
        );
    };
    let symmetry = cursor.token("the symmetry")?;
    let kinds =
        [("general", false), ("symmetric", true), ("skew-symmetric", true), ("hermitian", true)];
    let Some(&(_, symmetric)) = kinds.iter().find(|kind| is(symmetry, kind.0)) else {
        return Err(cursor.error(format!(
            "`{}`; expected `general`, `symmetric`, `skew-symmetric` or `hermitian`",
            show(symmetry)
        )));
    };
    cursor.end_line("object, layout, kind of values and symmetry")?;
    Ok((values, symmetric))
}

/// Reads a row or column number, which counts from 1 in the file and from 0 here.
fn position(cursor: &mut Cursor<'_>, what: &str, count: u64) -> Result<u32> {
    let number = cursor.integer(what, count)?;
    if number == 0 {
        return Err(cursor.error("rows and columns count from 1"));
    }
    Ok(to_u32(number - 1))
}

/// Sorts entries by row and column and removes repetitions: two passes of counting sort, first by
/// column, then by row.
fn compress(rows: usize, columns: usize, entries: Vec<(u32, u32)>) -> (Vec<u32>, Vec<u32>) {
    let mut by_column = vec![(0, 0); entries.len()];
    let mut next = starts(columns, entries.iter().map(|entry| entry.1));
    for &entry in &entries {
        let place = &mut next[index(entry.1)];
        by_column[*place] = entry;
        *place += 1;
    }
    drop(entries);
    let mut next = starts(rows, by_column.iter().map(|entry| entry.0));
    let mut sorted = vec![0u32; by_column.len()];
    for &(row, column) in &by_column {
        let place = &mut next[index(row)];
        sorted[*place] = column;
        *place += 1;
    }
    // `next[row]` is now the end of the row.
    let mut first = Vec::with_capacity(rows + 1);
    first.push(0);
    let (mut kept, mut start) = (0, 0);
    for &end in &next[..rows] {
        for at in start..end {
            if at == start || sorted[at] != sorted[at - 1] {
                sorted[kept] = sorted[at];
                kept += 1;
            }
        }
        start = end;
        first.push(to_u32(kept));
    }
    sorted.truncate(kept);
    (first, sorted)
}

/// The start of each key's run in a counting sort.
fn starts(count: usize, keys: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0usize; count + 1];
    for key in keys {
        starts[index(key) + 1] += 1;
    }
    for i in 0..count {
        starts[i + 1] += starts[i];
    }
    starts
}
