//! The network's part in skipping ([`crate::period`]): its state without the words' numbers.

use super::{Channel, Network, Tag, Wire};

/// The state of a network at a settled clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkState {
    channels: Vec<Channel>,
    /// Those in use.
    wires: Vec<Wire>,
    crowd: Vec<(u32, u32)>,
    word_hops: u64,
}

impl Channel {
    /// Whether two states differ in nothing but the words' numbers.
    #[inline]
    fn is_like(&self, other: &Self) -> bool {
        self.head.stream() == other.head.stream()
            && Self { head: Tag::NOTHING, ..*self } == Self { head: Tag::NOTHING, ..*other }
    }
}

impl Network {
    /// Takes a snapshot.
    pub(crate) fn save(&self, state: &mut NetworkState) {
        state.channels.clone_from(&self.channels);
        state.wires.clear();
        state.wires.extend(self.in_use().cloned());
        state.crowd.clone_from(&self.crowd);
        state.word_hops = self.word_hops;
    }

    /// Whether the state is that of the snapshot but for the words' numbers. Channels in which
    /// streams mix are left alone: they are never the same.
    pub(crate) fn is_as(&self, state: &NetworkState) -> bool {
        let wires = self.in_use().zip(&state.wires);
        let channels = self.channels.iter().zip(&state.channels);
        self.channels.len() == state.channels.len()
            && channels.into_iter().all(|(now, then)| now.is_like(then))
            && wires.into_iter().all(|(now, then)| now.idle == then.idle && now.turns == then.turns)
            && self.mixed.is_empty()
            && self.crowd == state.crowd
    }

    /// Advances all counts and word numbers by `periods` times what they have advanced since the
    /// snapshot.
    pub(crate) fn jump(&mut self, state: &NetworkState, periods: u64) {
        for (now, then) in self.channels.iter_mut().zip(&state.channels) {
            now.head = now.head.jump(then.head, periods);
        }
        for (&link, then) in self.serving.iter().zip(&state.wires) {
            let now = &mut self.wires[link as usize];
            now.words += (now.words - then.words) * periods;
        }
        self.word_hops += (self.word_hops - state.word_hops) * periods;
    }
}
