//! The exchange of a partition that changes item by item: words and connections of every part.

use conset_ir::convert::{index, to_u32};

use super::{ExchangeCost, Nets, Partition};

/// The words that a part sends to another one.
type Flow = (u32, u64);

/// The exchange of a partition.
pub(super) struct Exchange<'a> {
    nets: &'a Nets,
    cost: ExchangeCost,
    part_of: Vec<u32>,
    /// The parts with pins of each net and the number of these pins, in any order: net `n` has the
    /// first `pin_len[n]` entries from `pin_first[n]`.
    pin_first: Vec<usize>,
    pin_len: Vec<u32>,
    pin_parts: Vec<(u32, u32)>,
    /// The flows of each part to others, by part.
    flows: Vec<Vec<Flow>>,
    sent: Vec<u64>,
    received: Vec<u64>,
    leaving: Vec<u64>,
    arriving: Vec<u64>,
    total_words: u64,
    /// The greatest number of connections of a part that is not excess.
    most_ends: u64,
    excess: u64,
    /// The parts that have changed since [`Exchange::watch`], with their loads before.
    changed: Vec<(u32, u64)>,
    is_changed: Vec<bool>,
    /// Pins and flows changed so far: the measure of work.
    pub(super) work: u64,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(nets: &'a Nets, partition: &Partition, cost: ExchangeCost) -> Self {
        let parts = partition.part_count();
        let count = index(nets.pins.rows());
        let mut pin_first = Vec::with_capacity(count);
        let mut room = 0;
        for net in 0..count {
            pin_first.push(room);
            room += nets.pins.of(to_u32(net)).len().min(parts);
        }
        let mut this = Self {
            nets,
            cost,
            part_of: partition.part_of().to_vec(),
            pin_first,
            pin_len: vec![0; count],
            pin_parts: vec![(0, 0); room],
            flows: vec![Vec::new(); parts],
            sent: vec![0; parts],
            received: vec![0; parts],
            leaving: vec![0; parts],
            arriving: vec![0; parts],
            total_words: 0,
            most_ends: u64::MAX,
            excess: 0,
            changed: Vec::new(),
            is_changed: vec![false; parts],
            work: 0,
        };
        for net in 0..to_u32(count) {
            for &item in nets.pins.of(net) {
                let part = this.part_of[index(item)];
                this.add_pin(net, part);
            }
        }
        this.watch();
        this
    }

    pub(super) fn part_of(&self) -> &[u32] {
        &self.part_of
    }

    pub(super) fn into_parts(self) -> Vec<u32> {
        self.part_of
    }

    /// Words of all connections.
    pub(super) fn total_words(&self) -> u64 {
        self.total_words
    }

    /// Connections above the limit, of all parts.
    pub(super) fn excess(&self) -> u64 {
        self.excess
    }

    /// Connections of a part above the limit.
    pub(super) fn excess_of(&self, part: usize) -> u64 {
        self.ends(part).saturating_sub(self.most_ends)
    }

    fn ends(&self, part: usize) -> u64 {
        self.leaving[part] + self.arriving[part]
    }

    /// Clocks of a part.
    pub(super) fn load(&self, part: usize) -> u64 {
        let out = (self.sent[part], self.leaving[part]);
        self.cost.load(out, (self.received[part], self.arriving[part]))
    }

    /// The phases that the part with the most connections needs.
    pub(super) fn most_phases(&self) -> u64 {
        let ends = (0..self.flows.len()).map(|part| self.ends(part)).max().unwrap_or(0);
        self.cost.phases(ends)
    }

    pub(super) fn price(&self) -> (u64, u64) {
        let load = (0..self.flows.len()).map(|part| self.load(part)).max().unwrap_or(0);
        self.cost.price(self.most_phases(), load)
    }

    /// Sets the limit of connections of a part to those of so many phases.
    pub(super) fn limit_phases(&mut self, phases: u64) {
        self.most_ends = phases.saturating_mul(self.cost.ends_per_phase);
        self.excess = (0..self.flows.len()).map(|part| self.excess_of(part)).sum();
    }

    /// Forgets which parts have changed.
    pub(super) fn watch(&mut self) {
        for (part, _) in self.changed.drain(..) {
            self.is_changed[index(part)] = false;
        }
    }

    fn note(&mut self, part: u32) {
        if !std::mem::replace(&mut self.is_changed[index(part)], true) {
            self.changed.push((part, self.load(index(part))));
        }
    }

    /// Whether the sorted loads of the parts that changed are smaller than before, in lexicographic
    /// order from the greatest.
    pub(super) fn is_relief(&self) -> bool {
        let mut before: Vec<u64> = self.changed.iter().map(|changed| changed.1).collect();
        let mut after: Vec<u64> =
            self.changed.iter().map(|changed| self.load(index(changed.0))).collect();
        before.sort_unstable_by(|a, b| b.cmp(a));
        after.sort_unstable_by(|a, b| b.cmp(a));
        after < before
    }

    fn pin_parts(&self, net: u32) -> &[(u32, u32)] {
        let start = self.pin_first[index(net)];
        &self.pin_parts[start..start + index(self.pin_len[index(net)])]
    }

    /// The parts that send or receive a net, ascending.
    pub(super) fn parts_at(&self, net: u32) -> Vec<u32> {
        let owner = self.nets.owned.then(|| self.part_of[index(net)]);
        let pins = self.pin_parts(net).iter().map(|entry| entry.0);
        let mut parts: Vec<u32> = pins.chain(owner).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The parts with which a part exchanges a net, ascending.
    pub(super) fn partners_at(&self, net: u32, part: u32) -> Vec<u32> {
        let mut parts = self.parts_at(net);
        if self.nets.owned {
            let owner = self.part_of[index(net)];
            parts.retain(|&other| owner == part || owner == other);
        }
        parts.retain(|&other| other != part);
        parts
    }

    /// The number of pins of a net.
    pub(super) fn pins_of(&self, net: u32) -> usize {
        self.nets.pins.of(net).len()
    }

    /// The items of a part at a net, ascending: its pins, and the item that owns it.
    pub(super) fn items_at(&self, net: u32, part: u32) -> Vec<u32> {
        let pins = self.nets.pins.of(net).iter().copied();
        let owner = Some(net).filter(|_| self.nets.owned);
        let own = |&item: &u32| self.part_of[index(item)] == part;
        let mut items: Vec<u32> = pins.chain(owner).filter(own).collect();
        items.sort_unstable();
        items
    }

    /// The parts other than `part` that share a net with an item, ascending.
    pub(super) fn neighbours_of(&self, item: u32, part: u32) -> Vec<u32> {
        let own = Some(item).filter(|_| self.nets.owned);
        let nets = self.nets.nets_of.of(item).iter().copied().chain(own);
        let mut parts: Vec<u32> = nets.flat_map(|net| self.parts_at(net)).collect();
        parts.retain(|&other| other != part);
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Adds the nets that the part of an item exchanges because of it.
    pub(super) fn add_border_nets(&self, item: u32, border: &mut Vec<u32>) {
        let part = self.part_of[index(item)];
        for &net in self.nets.nets_of.of(item) {
            let is_shared = match self.nets.owned {
                true => self.part_of[index(net)] != part,
                false => self.pin_len[index(net)] > 1,
            };
            if is_shared {
                border.push(net);
            }
        }
        if self.nets.owned && self.pin_parts(item).iter().any(|entry| entry.0 != part) {
            border.push(item);
        }
    }

    /// Moves an item to another part.
    pub(super) fn move_item(&mut self, item: u32, to: u32) {
        let from = self.part_of[index(item)];
        let nets = self.nets;
        for &net in nets.nets_of.of(item) {
            // The old pin goes first, because a net has room for as many parts as it has pins.
            self.remove_pin(net, from);
            self.add_pin(net, to);
        }
        self.part_of[index(item)] = to;
        if !nets.owned {
            return;
        }
        let words = nets.words(item);
        let start = self.pin_first[index(item)];
        for place in start..start + index(self.pin_len[index(item)]) {
            let other = self.pin_parts[place].0;
            if other != from {
                self.change_flow(from, other, words, false);
            }
            if other != to {
                self.change_flow(to, other, words, true);
            }
        }
    }

    fn add_pin(&mut self, net: u32, part: u32) {
        self.work += 1;
        let start = self.pin_first[index(net)];
        let end = start + index(self.pin_len[index(net)]);
        if let Some(entry) = self.pin_parts[start..end].iter_mut().find(|entry| entry.0 == part) {
            entry.1 += 1;
            return;
        }
        self.pin_parts[end] = (part, 1);
        self.pin_len[index(net)] += 1;
        self.change_net(net, part, true);
    }

    fn remove_pin(&mut self, net: u32, part: u32) {
        self.work += 1;
        let start = self.pin_first[index(net)];
        let end = start + index(self.pin_len[index(net)]);
        let Some(place) = (start..end).find(|&place| self.pin_parts[place].0 == part) else {
            return;
        };
        self.pin_parts[place].1 -= 1;
        if self.pin_parts[place].1 == 0 {
            self.change_net(net, part, false);
            self.pin_parts.swap(place, end - 1);
            self.pin_len[index(net)] -= 1;
        }
    }

    /// Adds or removes the words that a net causes between a part with pins and other parts.
    fn change_net(&mut self, net: u32, part: u32, add: bool) {
        let words = self.nets.words(net);
        if self.nets.owned {
            let owner = self.part_of[index(net)];
            if owner != part {
                self.change_flow(owner, part, words, add);
            }
            return;
        }
        let start = self.pin_first[index(net)];
        for place in start..start + index(self.pin_len[index(net)]) {
            let other = self.pin_parts[place].0;
            if other != part {
                self.change_flow(part, other, words, add);
                self.change_flow(other, part, words, add);
            }
        }
    }

    /// Adds or removes words between two parts.
    fn change_flow(&mut self, from: u32, to: u32, words: u64, add: bool) {
        if words == 0 {
            return;
        }
        self.work += 1;
        self.note(from);
        self.note(to);
        let flows = &mut self.flows[index(from)];
        let (was_connected, is_connected) = match flows.binary_search_by_key(&to, |flow| flow.0) {
            Ok(place) if add => {
                flows[place].1 += words;
                (true, true)
            }
            Ok(place) => {
                flows[place].1 -= words;
                let is_left = flows[place].1 > 0;
                if !is_left {
                    flows.remove(place);
                }
                (true, is_left)
            }
            Err(place) => {
                flows.insert(place, (to, words));
                (false, true)
            }
        };
        let change = |sum: &mut u64| *sum = if add { *sum + words } else { *sum - words };
        change(&mut self.sent[index(from)]);
        change(&mut self.received[index(to)]);
        change(&mut self.total_words);
        if was_connected != is_connected {
            let excess = self.excess_of(index(from)) + self.excess_of(index(to));
            for count in [&mut self.leaving[index(from)], &mut self.arriving[index(to)]] {
                *count = if is_connected { *count + 1 } else { *count - 1 };
            }
            let now = self.excess_of(index(from)) + self.excess_of(index(to));
            self.excess = self.excess + now - excess;
        }
    }
}
