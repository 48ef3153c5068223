//! Maximum matching in a bipartite graph, by augmenting paths.

/// For each column a row that may be matched with it, so that as many as possible have one and each
/// row at most one. Rows are matched in the given order, and prefer the first of the columns that
/// `allowed` yields.
pub(super) fn matching<C: Iterator<Item = usize>>(
    rows: impl IntoIterator<Item = usize>,
    columns: usize,
    allowed: impl Fn(usize) -> C,
) -> Vec<Option<usize>> {
    let mut partner = vec![None; columns];
    let mut seen = vec![false; columns];
    for row in rows {
        seen.fill(false);
        augment(row, &allowed, &mut partner, &mut seen);
    }
    partner
}

/// Gives a row a column; other rows may change theirs. The depth is at most the number of rows.
fn augment<C: Iterator<Item = usize>>(
    row: usize,
    allowed: &impl Fn(usize) -> C,
    partner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for column in allowed(row) {
        if std::mem::replace(&mut seen[column], true) {
            continue;
        }
        let free = match partner[column] {
            None => true,
            Some(taken) => augment(taken, allowed, partner, seen),
        };
        if free {
            partner[column] = Some(row);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose only column is taken moves the other row on.
    #[test]
    fn a_matching_is_as_large_as_possible() {
        let allowed = [vec![0, 1], vec![0], vec![1]];
        let found = matching(0..3, 2, |row| allowed[row].iter().copied());
        assert_eq!(found, [Some(1), Some(0)]);
        assert_eq!(matching(0..1, 1, |_| std::iter::empty()), [None]);
    }
}
