//! Channels in which streams mix, which only a wrong table can bring about.
//!
//! The words of such a channel are a queue of *runs*: the first word's tag and how many follow it.
//! The record of the channel keeps the first word and the number of all words, so that whoever
//! asks for these need not know. A channel leaves here when one run is left.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::Network;
use super::channel::Tag;

/// The runs of channels in which streams mix: at least two each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mixed {
    runs: BTreeMap<u32, VecDeque<(Tag, u16)>>,
}

impl Mixed {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Words of channel `row`, if it is one of these.
    #[cfg(test)]
    pub(super) fn words_of(&self, row: u32) -> Option<u16> {
        Some(self.runs.get(&row)?.iter().map(|run| run.1).sum())
    }
}

impl Network {
    /// Word `tag` was pushed into channel `row`, and does not follow the words there, or the
    /// channel may be a mixed one.
    #[cold]
    pub(super) fn no_follower(&mut self, row: u32, tag: Tag) {
        let channel = &mut self.channels[row as usize];
        let before = channel.held - 1;
        if before == 0 {
            channel.head = tag;
            return;
        }
        let follows = channel.head.on(u64::from(before)) == tag;
        let runs = match self.mixed.runs.entry(row) {
            Entry::Vacant(_) if follows => return,
            Entry::Vacant(entry) => entry.insert(VecDeque::from([(channel.head, before)])),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        match runs.back_mut() {
            Some((first, count)) if first.on(u64::from(*count)) == tag => *count += 1,
            _ => runs.push_back((tag, 1)),
        }
    }

    /// A word was popped from channel `row`, which may be a mixed one.
    #[cold]
    pub(super) fn popped_mixed(&mut self, row: u32) {
        let Some(runs) = self.mixed.runs.get_mut(&row) else { return };
        let (first, count) = runs.front_mut().expect("there are two runs");
        (*first, *count) = (first.on(1), *count - 1);
        if *count == 0 {
            runs.pop_front();
        }
        self.channels[row as usize].head = runs.front().expect("there were two runs").0;
        if runs.len() == 1 {
            self.mixed.runs.remove(&row);
        }
    }
}
