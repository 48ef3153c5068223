//! Runs a function for each of some items, on all threads; the results have the order of the items.
//!
//! The iterators of rayon are compiled for each of their uses, with everything that deals out the work. Nothing that is
//! dealt out here is short, so one loop deals out all of it and calls what it runs through a pointer.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The results of a function for each item.
pub(crate) fn map<I: Sync, T: Send>(items: &[I], make: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::default()).collect();
    deal_out(items.len(), &|row| {
        let result = make(&items[row]);
        *results[row].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let result = |slot: Mutex<Option<T>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|slot| result(slot).expect("each row was dealt out")).collect()
}

/// [`map`] for items that the function changes.
pub(crate) fn map_mut<I: Send, T: Send>(
    items: &mut [I],
    make: impl Fn(&mut I) -> T + Sync,
) -> Vec<T> {
    let items: Vec<Mutex<&mut I>> = items.iter_mut().map(Mutex::new).collect();
    map(&items, |item| make(&mut item.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// [`map`] for a function that can fail.
///
/// # Errors
/// That of the first item for which the function fails, on any number of threads.
pub(crate) fn try_map<I: Sync, T: Send, E: Send>(
    items: &[I],
    make: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    map(items, make).into_iter().collect()
}

fn deal_out(rows: usize, run: &(dyn Fn(usize) + Sync)) {
    (0..rows).into_par_iter().for_each(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors_have_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(
            map(&items, |item| item * 2),
            (0..1000).map(|item| item * 2).collect::<Vec<_>>()
        );
        let odd = |&item: &usize| if item % 400 == 399 { Err(item) } else { Ok(()) };
        assert_eq!(try_map(&items, odd), Err(399));
        assert_eq!(try_map(&items[..399], odd).map(|all| all.len()), Ok(399));
        assert!(map::<u8, u8>(&[], |_| unreachable!()).is_empty());
        let mut items = items;
        let before = map_mut(&mut items, |item| std::mem::replace(item, 7));
        assert!(before.is_sorted() && items.iter().all(|&item| item == 7));
    }
}
