//! Layouts of a sparse matrix whose rows have owners.
//!
//! A cell owns rows, and for each row the entry of the vector with that number. For a product with
//! its rows it needs the entries of their columns; those that it does not own are its ghosts. The
//! local numbering is the usual one: owned rows ascending, then ghosts by (owner, id), so that the
//! entries from one neighbour are contiguous.

use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use conset_ir::limits;

use super::{Layout, LayoutEntry, LayoutError, OwnedLayout, check_cells};

/// A matrix dealt to cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CsrLayout {
    /// From owners to ghosts: before a product with the rows.
    pub forward: Layout,
    /// From ghosts to owners: after a product with the rows transposed.
    pub backward: Layout,
    /// The rows of each cell, in the order of cell ids.
    pub parts: Vec<LocalCsr>,
}

/// The rows of one cell, in local numbers; [`Layout::from_csr`] makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalCsr {
    ids: Vec<u64>,
    owned: usize,
    ptr: Vec<usize>,
    idx: Vec<u32>,
}

impl LocalCsr {
    /// The values of the cell's rows, out of the global matrix's, in the order of `idx`. `ptr` is
    /// the global matrix's; rows that it or `values` do not have are left out.
    pub fn values<I: Copy + TryInto<usize>, V: Copy>(&self, ptr: &[I], values: &[V]) -> Vec<V> {
        let at = |row: usize| ptr.get(row).and_then(|&at| at.try_into().ok());
        let mut own = Vec::with_capacity(self.idx.len());
        for &row in &self.ids[..self.owned] {
            if let (Some(from), Some(to)) = (at(to_usize(row)), at(to_usize(row) + 1)) {
                own.extend_from_slice(values.get(from..to).unwrap_or(&[]));
            }
        }
        own
    }

    /// The entries of the cell's vector out of a global one: own and ghosts.
    pub fn gather<V: Copy>(&self, global: &[V]) -> Vec<V> {
        self.ids.iter().filter_map(|&id| global.get(to_usize(id)).copied()).collect()
    }
}

impl LocalCsr {
    /// The global row of each entry of the local vector: own rows ascending, then ghosts.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Number of own rows, which are the first of [`LocalCsr::ids`].
    pub fn owned(&self) -> usize {
        self.owned
    }

    /// Where the entries of each own row begin in [`LocalCsr::idx`], and where the last ends.
    pub fn ptr(&self) -> &[usize] {
        &self.ptr
    }

    /// The local column of each entry, by rows, in the order of the global matrix.
    pub fn idx(&self) -> &[u32] {
        &self.idx
    }
}

impl CsrLayout {
    /// The two layouts alone.
    pub fn layouts(self) -> OwnedLayout {
        OwnedLayout { forward: self.forward, backward: self.backward }
    }
}

impl Layout {
    /// Deals the rows of a square matrix in compressed rows (`ptr`, `idx`) to `cells` cells:
    /// local numbering, local rows, and the layouts both ways. Rows need not be sorted, and the
    /// pattern need not be symmetric.
    ///
    /// O(rows + entries + cells), and a sort of each cell's ghosts.
    ///
    /// ```
    /// use conset_runtime::Layout;
    ///
    /// // [2 1 0]
    /// // [1 2 1]   Cell 0 owns the first two rows, cell 1 the last one.
    /// // [0 1 2]
    /// let matrix = Layout::from_csr(&[0, 2, 5, 7], &[0, 1, 0, 1, 2, 1, 2], &[0, 0, 1], 2)?;
    /// let rows = &matrix.parts[1];
    /// // The last row needs the entry of row 1, which follows its own entry.
    /// assert_eq!((rows.ids(), rows.owned()), (&[2, 1][..], 1));
    /// assert_eq!((rows.ptr(), rows.idx()), (&[0, 2][..], &[1, 0][..]));
    /// assert_eq!(matrix.forward.len(), 2);
    /// # Ok::<(), conset_runtime::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// Pointers that are none, a column that is no row, a row without an owner among the cells.
    pub fn from_csr<I: Copy + TryInto<usize> + std::fmt::Display>(
        ptr: &[I],
        idx: &[I],
        owner: &[u32],
        cells: usize,
    ) -> Result<CsrLayout, LayoutError> {
        check_cells(cells)?;
        let ptr = row_pointers(ptr, idx.len())?;
        let rows = ptr.len() - 1;
        if owner.len() != rows {
            return Err(LayoutError::Owners { owners: owner.len(), rows });
        }
        let mut parts = vec![LocalCsr { ptr: vec![0], ..LocalCsr::default() }; cells];
        let mut local = vec![0u32; rows];
        for (row, &owner) in owner.iter().enumerate() {
            let Some(part) = parts.get_mut(index(owner)) else {
                return Err(LayoutError::Owner { row, owner, cells });
            };
            local[row] = to_u32(part.ids.len());
            part.ids.push(to_u64(row));
            part.owned += 1;
        }
        let mut deal = Deal {
            ptr: &ptr,
            idx,
            owner,
            local: &local,
            seen_by: vec![u32::MAX; rows],
            ghost: vec![0; rows],
            entries: Vec::new(),
        };
        for (cell, part) in parts.iter_mut().enumerate() {
            deal.part(to_u32(cell), part)?;
        }
        let entries = deal.entries;
        let items = parts.iter().map(|part| to_u32(part.ids.len())).collect();
        let forward = Self::from_entries(items, entries, false);
        Ok(CsrLayout { backward: forward.reversed(), forward, parts })
    }
}

/// The matrix, and what is reused from cell to cell.
struct Deal<'a, I> {
    ptr: &'a [usize],
    idx: &'a [I],
    owner: &'a [u32],
    /// The local number of each row at its owner.
    local: &'a [u32],
    /// The last cell that met each row as a ghost, and the ghost's local number there.
    seen_by: Vec<u32>,
    ghost: Vec<u32>,
    entries: Vec<LayoutEntry>,
}

impl<I: Copy + TryInto<usize> + std::fmt::Display> Deal<'_, I> {
    /// Numbers a cell's ghosts and rewrites its rows.
    fn part(&mut self, cell: u32, part: &mut LocalCsr) -> Result<(), LayoutError> {
        let mut ghosts: Vec<(u32, u64)> = Vec::new();
        for own in 0..part.owned {
            let row = to_usize(part.ids[own]);
            for at in self.ptr[row]..self.ptr[row + 1] {
                let column = self.column(row, at)?;
                if self.owner[column] != cell && self.seen_by[column] != cell {
                    self.seen_by[column] = cell;
                    ghosts.push((self.owner[column], to_u64(column)));
                }
            }
        }
        ghosts.sort_unstable();
        for &(owner, id) in &ghosts {
            let receive = to_u32(part.ids.len());
            let send = self.local[to_usize(id)];
            self.ghost[to_usize(id)] = receive;
            part.ids.push(id);
            self.entries.push(LayoutEntry { source: owner, target: cell, id, send, receive });
        }
        for own in 0..part.owned {
            let row = to_usize(part.ids[own]);
            for at in self.ptr[row]..self.ptr[row + 1] {
                let column = self.column(row, at)?;
                let own = self.owner[column] == cell;
                part.idx.push(if own { self.local[column] } else { self.ghost[column] });
            }
            part.ptr.push(part.idx.len());
        }
        Ok(())
    }

    fn column(&self, row: usize, at: usize) -> Result<usize, LayoutError> {
        let rows = self.owner.len();
        let column = self.idx[at].try_into().ok().filter(|&column| column < rows);
        column.ok_or_else(|| LayoutError::Column { row, column: self.idx[at].to_string(), rows })
    }
}

/// Row pointers as numbers: from 0 to the number of entries, never falling.
fn row_pointers<I: Copy + TryInto<usize> + std::fmt::Display>(
    ptr: &[I],
    entries: usize,
) -> Result<Vec<usize>, LayoutError> {
    let problem = |problem| Err(LayoutError::RowPointers { problem });
    if ptr.is_empty() {
        return problem("none, expected one more than there are rows".to_owned());
    }
    if ptr.len() - 1 > limits::NODES {
        return problem(format!("{} rows, at most {}", ptr.len() - 1, limits::NODES));
    }
    let mut read = Vec::with_capacity(ptr.len());
    let mut last = 0usize;
    for (row, &at) in ptr.iter().enumerate() {
        match at.try_into() {
            Ok(at) if at >= last && at <= entries => last = at,
            _ => {
                return problem(format!("pointer {row} is {at}, expected {last} to {entries}"));
            }
        }
        read.push(last);
    }
    if read[0] != 0 || last != entries {
        return problem(format!("from {} to {last}, expected 0 to {entries}", read[0]));
    }
    Ok(read)
}
