//! Snapshots of the network, without the words' numbers, and skipping of whole periods in it
//! ([`crate::fast_forward`]).

use super::{Channel, LinkState, Network, Tag};
use conset_ir::convert::index;

/// The state of a network in a settled clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkSnapshot {
    channels: Vec<Channel>,
    /// The links in use.
    links: Vec<LinkState>,
    extra_waiters: Vec<(u32, u32)>,
    word_hops: u64,
}

impl Channel {
    /// Whether two states are equal except for the words' numbers.
    #[inline]
    fn matches(&self, other: &Self) -> bool {
        self.head.stream() == other.head.stream()
            && Self { head: Tag::NONE, ..*self } == Self { head: Tag::NONE, ..*other }
    }
}

impl Network {
    /// Takes a snapshot.
    pub(crate) fn save(&self, snapshot: &mut NetworkSnapshot) {
        snapshot.channels.clone_from(&self.channels);
        snapshot.links.clear();
        snapshot.links.extend(self.in_use().cloned());
        snapshot.extra_waiters.clone_from(&self.extra_waiters);
        snapshot.word_hops = self.word_hops;
    }

    /// Whether the state equals the snapshot except for the words' numbers. A state with mixed
    /// streams never does. The caller must compare the words on links, which tell which links are busy.
    pub(crate) fn matches(&self, snapshot: &NetworkSnapshot) -> bool {
        let links = self.in_use().zip(&snapshot.links);
        let channels = self.channels.iter().zip(&snapshot.channels);
        self.channels.len() == snapshot.channels.len()
            && channels.into_iter().all(|(now, then)| now.matches(then))
            && links.into_iter().all(|(now, then)| now.round_robin == then.round_robin)
            && self.mixed.is_empty()
            && self.extra_waiters == snapshot.extra_waiters
    }

    /// Advances all counts and word numbers by `periods` times their advance since the snapshot.
    pub(crate) fn skip(&mut self, snapshot: &NetworkSnapshot, periods: u64) {
        for (now, then) in self.channels.iter_mut().zip(&snapshot.channels) {
            now.head = now.head.skip(then.head, periods);
        }
        for (&link, then) in self.serving.iter().zip(&snapshot.links) {
            let now = &mut self.links[index(link)];
            now.words += (now.words - then.words) * periods;
        }
        self.word_hops += (self.word_hops - snapshot.word_hops) * periods;
    }
}
