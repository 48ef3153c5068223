//! Channels that hold words of several streams, which only a wrong table causes.
//!
//! The words of such a channel are a queue of *runs* of consecutive words: the tag of the first
//! word and the number of words. The channel's own record still holds its first word and the number
//! of all words, so other code needs no special case. A channel is removed from here when one run
//! is left.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::Network;
use super::channel::Tag;
use conset_ir::convert::index;

/// The runs of the channels with mixed streams, at least two each.
#[derive(Clone, Debug, Default)]
pub(crate) struct MixedStreams {
    runs: BTreeMap<u32, VecDeque<(Tag, u16)>>,
}

impl MixedStreams {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Number of words of channel `row`, if its streams are mixed.
    #[cfg(test)]
    pub(super) fn words_of(&self, row: u32) -> Option<u16> {
        Some(self.runs.get(&row)?.iter().map(|run| run.1).sum())
    }
}

impl Network {
    /// Word `tag` was pushed into channel `row`, and either it is not consecutive to the words
    /// there or the streams of the channel may be mixed.
    #[cold]
    pub(super) fn push_unordered(&mut self, row: u32, tag: Tag) {
        let channel = &mut self.channels[index(row)];
        let before = channel.held - 1;
        if before == 0 {
            channel.head = tag;
            return;
        }
        let follows = channel.head.plus(u64::from(before)) == tag;
        let runs = match self.mixed.runs.entry(row) {
            Entry::Vacant(_) if follows => return,
            Entry::Vacant(entry) => entry.insert(VecDeque::from([(channel.head, before)])),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        match runs.back_mut() {
            Some((first, count)) if first.plus(u64::from(*count)) == tag => *count += 1,
            _ => runs.push_back((tag, 1)),
        }
    }

    /// A word was popped from channel `row`, whose streams may be mixed.
    #[cold]
    pub(super) fn pop_mixed(&mut self, row: u32) {
        let Some(runs) = self.mixed.runs.get_mut(&row) else { return };
        let (first, count) = runs.front_mut().expect("there are two runs");
        (*first, *count) = (first.plus(1), *count - 1);
        if *count == 0 {
            runs.pop_front();
        }
        self.channels[index(row)].head = runs.front().expect("there were two runs").0;
        if runs.len() == 1 {
            self.mixed.runs.remove(&row);
        }
    }

    /// The last word of channel `row`, which must have one.
    pub(crate) fn last_word(&self, row: u32) -> Tag {
        if let Some((first, count)) = self.mixed.runs.get(&row).and_then(VecDeque::back) {
            return first.plus(u64::from(*count - 1));
        }
        let channel = &self.channels[index(row)];
        channel.head.plus(u64::from(channel.held - 1))
    }

    /// Removes the last word of channel `row` if its streams are mixed.
    pub(super) fn pop_back_mixed(&mut self, row: u32) -> Option<Tag> {
        let runs = self.mixed.runs.get_mut(&row)?;
        let (first, count) = runs.back_mut().expect("there are two runs");
        *count -= 1;
        let tag = first.plus(u64::from(*count));
        if *count == 0 {
            runs.pop_back();
        }
        if runs.len() == 1 {
            self.mixed.runs.remove(&row);
        }
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Channel, GATE, NONE};

    /// Also where the number of a word is as far from the first one as if no others were between them.
    #[test]
    fn words_of_mixed_streams_leave_in_the_order_in_which_they_came() {
        for words in [
            vec![(0, 0), (1, 5), (0, 2)],
            vec![(0, 0), (0, 1), (1, 7), (0, 3), (0, 4)],
            vec![(0, 4), (1, 0), (1, 1), (0, 4), (0, 5)],
        ] {
            let tags = Vec::from_iter(words.iter().map(|&(stream, word)| Tag::new(stream, word)));
            let mut network = Network::new(0, 8);
            network.load(vec![Channel::new(GATE, 0, NONE)], []);
            for &tag in &tags {
                network.put(0, tag);
                network.arrive(0);
                assert_eq!(network.last_word(0), tag, "{words:?}");
            }
            let left: Vec<Tag> = tags.iter().map(|_| network.take(0)).collect();
            assert_eq!(left, tags, "{words:?}");
        }
    }
}
