//! Putting rows that carry their ids in any order into their places.

use crate::ids::ConnectionId;

/// An id that cannot be: the row of the file it stands in, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadId {
    pub(crate) row: usize,
    pub(crate) message: String,
}

/// Checks that the ids are 0 to n - 1 in any order, and yields for each id the row that has it;
/// `None` if the rows are in order already.
///
/// # Errors
/// The first id beyond the rows or given twice. (With neither, there can be no hole.)
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
        *slot = row as u32;
    }
    Ok(Some(row_of))
}

/// The rows in the order of their ids.
pub(crate) fn reorder<T>(rows: Vec<T>, order: Option<&[u32]>) -> Vec<T> {
    let Some(order) = order else { return rows };
    let mut rows: Vec<Option<T>> = rows.into_iter().map(Some).collect();
    order.iter().filter_map(|&row| rows[row as usize].take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ids: &[u32]) -> Result<Option<Vec<u32>>, BadId> {
        order_of_ids(&ids.iter().map(|&id| ConnectionId(id)).collect::<Vec<_>>())
    }

    #[test]
    fn any_order_will_do_but_no_hole_and_no_repeat() {
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
