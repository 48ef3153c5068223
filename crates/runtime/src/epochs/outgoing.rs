//! The items that a cell sends in a round: the bytes for each target, in the order of sending.
//!
//! Targets are found by their places without a search, and a cell that sends to few of very many
//! has memory for few: the lists are kept in pages, each made when an item for it is sent. Memory of
//! lists that were handled is used again.

/// Lists of a page.
const PAGE: usize = 256;

type Page = Box<[Vec<u8>; PAGE]>;

/// A list of bytes for each target, by place.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pages: Vec<Option<Page>>,
    /// Empty lists with memory.
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    /// The list for a target, to be appended to.
    #[inline]
    pub(super) fn list(&mut self, target: usize) -> &mut Vec<u8> {
        let (page, place) = (target / PAGE, target % PAGE);
        if self.pages.get(page).is_none_or(Option::is_none) {
            self.make_page(page);
        }
        let page = self.pages[page].as_mut().expect("the page was made above");
        let list = &mut page[place];
        if list.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            *list = spare;
        }
        list
    }

    #[cold]
    fn make_page(&mut self, page: usize) {
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(Box::new(std::array::from_fn(|_| Vec::new())));
    }

    /// All lists with bytes, by target; none is left.
    pub(super) fn take(&mut self) -> Vec<(usize, Vec<u8>)> {
        let pages = self.pages.iter_mut().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((number, page.as_mut()?)));
        pages
            .flat_map(|(number, page)| {
                let lists = page.iter_mut().enumerate().filter(|(_, list)| !list.is_empty());
                lists.map(move |(place, list)| (number * PAGE + place, std::mem::take(list)))
            })
            .collect()
    }

    /// Bytes of all lists.
    pub(super) fn bytes(&self) -> usize {
        self.pages.iter().flatten().flat_map(|page| page.iter()).map(Vec::len).sum()
    }

    /// An empty list, with memory if there is any left.
    pub(super) fn spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the memory of a list.
    pub(super) fn reuse(&mut self, mut list: Vec<u8>) {
        if self.spare.len() < PAGE {
            list.clear();
            self.spare.push(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_by_target_and_their_memory_is_used_again() {
        let mut outgoing = Outgoing::default();
        for target in [3 * PAGE + 1, 5, 0, 5] {
            outgoing.list(target).push(u8::try_from(target % 251).unwrap());
        }
        outgoing.list(9);
        assert_eq!(outgoing.bytes(), 4);
        let last = 3 * PAGE + 1;
        let lists = outgoing.take();
        assert_eq!(lists, [(0, vec![0]), (5, vec![5, 5]), (last, vec![(last % 251) as u8])]);
        assert_eq!((outgoing.bytes(), outgoing.take()), (0, vec![]));
        for (_, list) in lists {
            outgoing.reuse(list);
        }
        assert!(outgoing.list(7).capacity() > 0);
    }
}
