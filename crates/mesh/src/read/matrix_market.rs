//! Matrix Market coordinate matrices (Boisvert, Pozo, Remington: The Matrix Market Exchange
//! Formats, NISTIR 5935).
//!
//! Only the pattern is kept: a row needs the values of its columns whatever the entries are, also
//! where a stored entry is 0. Of a symmetric, skew-symmetric or Hermitian matrix one triangle is
//! in the file and the other is added. An entry given twice counts once (assembled matrices are
//! often written so). Dense matrices (`array`) are refused: there is no pattern in them.

use conset_ir::{Result, limits};

use super::cursor::{Cursor, show};
use crate::model::Matrix;

/// Reads a matrix.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Matrix> {
    let mut cursor = Cursor::new(file, bytes);
    let (values, symmetric) = banner(&mut cursor)?;
    cursor.skip_blank_and_comment_lines(b'%');
    let rows = cursor.integer("the number of rows", limits::NODES as u64)?;
    let rows_at = cursor.last();
    let columns = cursor.integer("the number of columns", limits::NODES as u64)?;
    let columns_at = cursor.last();
    let count = cursor.integer("the number of entries", limits::NODES as u64)?;
    cursor.end_line("rows, columns and entries")?;
    if symmetric && rows != columns {
        return Err(cursor.error_at(
            columns_at,
            format!("{columns} columns for {rows} rows; a symmetric matrix is square"),
        ));
    }
    // An entry takes at least 4 bytes, so beyond this almost all rows or columns are empty.
    let sane = bytes.len() as u64 + (1 << 20);
    if rows.max(columns) > sane {
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
        cursor.end_line("an entry is a row, a column and the values that the first line says")?;
        entries.push((row, column));
        if symmetric && row != column {
            entries.push((column, row));
        }
    }
    cursor.skip_blank_and_comment_lines(b'%');
    if !cursor.at_end() {
        let message = format!("more than the {count} entries declared");
        return Err(cursor.error_at(cursor.offset(), message));
    }
    let (first, columns_of_rows) = compress(rows as usize, columns as usize, entries);
    Matrix::new(columns as usize, first, columns_of_rows).map_err(|error| error.in_file(file))
}

/// The first line: values per entry, and whether one triangle stands for both.
fn banner(cursor: &mut Cursor<'_>) -> Result<(usize, bool)> {
    let is = |word: &[u8], wanted: &str| word.eq_ignore_ascii_case(wanted.as_bytes());
    if !is(cursor.word("%%MatrixMarket")?, "%%MatrixMarket") {
        return Err(cursor.error("not a Matrix Market file: it does not begin with %%MatrixMarket"));
    }
    let object = cursor.word("`matrix`")?;
    if !is(object, "matrix") {
        return Err(cursor.error(format!("`{}`; expected `matrix`", show(object))));
    }
    let layout = cursor.word("`coordinate`")?;
    if !is(layout, "coordinate") {
        let error = cursor.error(format!("`{}`; expected `coordinate`", show(layout)));
        return Err(error.help("write the matrix in sparse (coordinate) form"));
    }
    let field = cursor.word("the kind of values")?;
    let kinds = [("pattern", 0), ("real", 1), ("double", 1), ("integer", 1), ("complex", 2)];
    let Some(&(_, values)) = kinds.iter().find(|kind| is(field, kind.0)) else {
        let field = show(field);
        return Err(
            cursor.error(format!("`{field}`; expected `pattern`, `real`, `integer` or `complex`"))
        );
    };
    let symmetry = cursor.word("the symmetry")?;
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

/// A row or column, counted from 1 in the file and from 0 here.
fn position(cursor: &mut Cursor<'_>, what: &str, count: u64) -> Result<u32> {
    let number = cursor.integer(what, count)?;
    if number == 0 {
        return Err(cursor.error("rows and columns count from 1"));
    }
    Ok(number as u32 - 1)
}

/// Sorts entries by row and column and drops repetitions: two passes of counting sort, first by
/// column, then by row.
fn compress(rows: usize, columns: usize, entries: Vec<(u32, u32)>) -> (Vec<u32>, Vec<u32>) {
    let mut by_column = vec![(0, 0); entries.len()];
    let mut next = starts(columns, entries.iter().map(|entry| entry.1));
    for &entry in &entries {
        let place = &mut next[entry.1 as usize];
        by_column[*place] = entry;
        *place += 1;
    }
    drop(entries);
    let mut next = starts(rows, by_column.iter().map(|entry| entry.0));
    let mut sorted = vec![0u32; by_column.len()];
    for &(row, column) in &by_column {
        let place = &mut next[row as usize];
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
        first.push(kept as u32);
    }
    sorted.truncate(kept);
    (first, sorted)
}

fn starts(count: usize, keys: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut starts = vec![0usize; count + 1];
    for key in keys {
        starts[key as usize + 1] += 1;
    }
    for i in 0..count {
        starts[i + 1] += starts[i];
    }
    starts
}
