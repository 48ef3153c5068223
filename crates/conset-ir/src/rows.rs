//! Sorting of rows that have explicit ids, which files may list in any order.

use crate::convert::{index, to_u32};
use crate::ids::ConnectionId;

/// An invalid id: its row in the file, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadId {
    pub(crate) row: usize,
    pub(crate) message: String,
}

/// Checks that the ids are 0 to n - 1 in any order, and returns the row of each id; `None` if the
/// rows are already in order.
///
/// # Errors
/// The first id that is n or more, or a duplicate. (Without either, no id is missing.)
pub(crate) fn order_of_ids(ids: &[ConnectionId]) -> Result<Option<Vec<u32>>, BadId> {
    const UNSEEN: u32 = u32::MAX;
    if ids.iter().enumerate().all(|(row, id)| id.index() == row) {
        return Ok(None);
    }
    let mut row_of = vec![UNSEEN; ids.len()];
    for (row, &id) in ids.iter().enumerate() {
        let Some(slot) = row_of.get_mut(id.index()) else {
            let last = ConnectionId::from_index(ids.len() - 1);
            let message = format!(
                "{id} leaves a hole: the ids of {} connections are x0 to {last}",
                ids.len()
            );
            return Err(BadId { row, message });
        };
        if *slot != UNSEEN {
            let message = format!("{id} is already the id of connection number {}", *slot + 1);
            return Err(BadId { row, message });
        }
        *slot = to_u32(row);
    }
    Ok(Some(row_of))
}

/// The rows in the order of their ids.
pub(crate) fn reorder<T>(rows: Vec<T>, order: Option<&[u32]>) -> Vec<T> {
    let Some(order) = order else { return rows };
    let mut rows: Vec<Option<T>> = rows.into_iter().map(Some).collect();
    order.iter().filter_map(|&row| rows[index(row)].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ids: &[u32]) -> Result<Option<Vec<u32>>, BadId> {
        order_of_ids(&ids.iter().map(|&id| ConnectionId(id)).collect::<Vec<_>>())
    }

    #[test]
    fn ids_may_have_any_order_without_gaps_and_duplicates() {
        assert_eq!(order(&[]), Ok(None));
        assert_eq!(order(&[0, 1, 2]), Ok(None));
        let found = order(&[2, 0, 1]).unwrap().unwrap();
        assert_eq!(found, [1, 2, 0]);
        assert_eq!(reorder(vec!["c", "a", "b"], Some(&found)), ["a", "b", "c"]);
        assert_eq!(order(&[0, 3, 1]).unwrap_err().row, 1);
        let error = order(&[1, 0, 1]).unwrap_err();
        assert_eq!((error.row, error.message.contains("number 1")), (2, true));
    }
}
