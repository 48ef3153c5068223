//! Words that faulty links spoil ([`crate::injection`]).
//!
//! A link carries one word at a time, so the word that arrives over the link that feeds a channel is the last one
//! of that channel's queue.

use super::{NONE, Network, Tag};
use conset_ir::convert::index;

impl Network {
    /// Removes the last word of channel `row`, which is on its way, and makes its space free.
    pub(crate) fn lose(&mut self, row: u32) -> Tag {
        let channel = &mut self.channels[index(row)];
        channel.held -= 1;
        let last = channel.head.plus(u64::from(channel.held));
        let waiter = std::mem::replace(&mut channel.waiter, NONE);
        let tag = self.pop_back_mixed(row).unwrap_or(last);
        if waiter != NONE {
            self.wake(row, waiter);
        }
        tag
    }

    /// Adds a word to channel `row` that no link carries, even if the channel is full.
    pub(crate) fn insert(&mut self, row: u32, tag: Tag) {
        self.reserve(row, tag);
        self.arrive(row);
    }

    fn reserve(&mut self, row: u32, tag: Tag) {
        if !self.channels[index(row)].push(tag) | !self.mixed.is_empty() {
            self.push_unordered(row, tag);
        }
    }
}
