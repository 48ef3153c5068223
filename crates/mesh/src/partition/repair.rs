//! Repair of a partition for the exchange that it causes.
//!
//! A partitioner minimises the edge cut or the total volume. A compiled exchange is as slow as its
//! busiest part, and has as many phases as the part with the most connections needs. So the repair
//! moves items at the borders of parts for two goals:
//!
//! * *fewer phases*: a contact of few words between two parts costs each of them as many channels as
//!   a long border. The items at such contacts move to a third part, until no part has more
//!   connections than fit into one phase less.
//! * *less load*: items move into or out of the busiest part, as long as the sorted loads of all
//!   parts decrease in lexicographic order and no part gets more connections than the phases allow.
//!
//! Every move is tried and rolled back if it does not help. A move never makes a part empty or
//! heavier than the allowed imbalance. The work is limited by a count, so the result is the same on
//! every computer.
//!
//! # Model
//!
//! A *net* is a value that parts exchange: a node of a mesh, whose parts all send it to each other,
//! or a vertex or row, whose owner sends it to the parts that need it. The number of pins (items of
//! the net) in each part is updated with every move, and so are the words between two parts
//! (module `exchange`).

mod exchange;

use conset_ir::Lists;
use conset_ir::convert::{index, to_u32, to_u64};

use super::{Partition, Partitioner, Weights};
use crate::model::{Mesh, Source, row};
use exchange::Exchange;

/// What an exchange costs on a machine, as far as a partition determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExchangeCost {
    /// Connections that can begin or end at a part in one phase.
    pub ends_per_phase: u64,
    /// Clocks of a phase beside its words.
    pub phase_clocks: u64,
    /// Clocks for a word at the sending or the receiving part.
    pub word_clocks: u64,
    /// Clocks to open a connection.
    pub setup_clocks: u64,
    /// Connections that a part has open at the same time in one direction.
    pub streams: u64,
    /// Whether a part either sends or receives.
    pub half_duplex: bool,
    /// Whether fewer phases are worth any number of clocks.
    pub phases_first: bool,
}

impl Default for ExchangeCost {
    /// One clock per word, and no limit on the connections of a phase.
    fn default() -> Self {
        Self {
            ends_per_phase: u64::MAX,
            phase_clocks: 0,
            word_clocks: 1,
            setup_clocks: 0,
            streams: 1,
            half_duplex: false,
            phases_first: false,
        }
    }
}

impl ExchangeCost {
    /// Phases of so many clocks and so many connections of a part, and clocks for a word.
    pub fn new(phase_clocks: u64, ends_per_phase: u64, word_clocks: u64) -> Self {
        Self { ends_per_phase, phase_clocks, word_clocks, ..Self::default() }
    }

    /// Sets the clocks to open a connection, and how many a part has open at the same time.
    #[must_use]
    pub fn setup(self, setup_clocks: u64, streams: u64) -> Self {
        Self { setup_clocks, streams, ..self }
    }

    /// Sets whether a part either sends or receives.
    #[must_use]
    pub fn half_duplex(self, half_duplex: bool) -> Self {
        Self { half_duplex, ..self }
    }

    /// Sets whether fewer phases are worth any number of clocks.
    #[must_use]
    pub fn phases_first(self, phases_first: bool) -> Self {
        Self { phases_first, ..self }
    }

    /// The phases that a part with this many connections needs.
    pub fn phases(&self, ends: u64) -> u64 {
        ends.div_ceil(self.ends_per_phase.max(1))
    }

    /// Clocks that a part sends and receives, given words and connections of both directions.
    pub fn load(&self, out: (u64, u64), into: (u64, u64)) -> u64 {
        let clocks = |(words, opened): (u64, u64)| {
            let words = words.saturating_mul(self.word_clocks);
            let setups = opened.saturating_mul(self.setup_clocks);
            match self.streams {
                0 | 1 => words.saturating_add(setups),
                streams => words.max(setups.div_ceil(streams)),
            }
        };
        match self.half_duplex {
            true => clocks((out.0 + into.0, out.1 + into.1)),
            false => clocks(out).max(clocks(into)),
        }
    }

    /// The value by which exchanges with these phases and this greatest load are compared; less is
    /// better.
    pub fn price(&self, phases: u64, load: u64) -> (u64, u64) {
        let clocks = phases.saturating_mul(self.phase_clocks).saturating_add(load);
        if self.phases_first { (phases, clocks) } else { (clocks, phases) }
    }
}

/// The values that the items of an input exchange.
#[derive(Debug)]
pub struct Nets {
    /// The items of each net: the elements of a node, or the rows that need a vertex.
    pins: Lists,
    /// The nets of which each item is a pin.
    nets_of: Lists,
    /// Words of each net; `None` if all have one.
    words: Option<Vec<u32>>,
    /// Whether net `i` belongs to item `i`, which sends it. Otherwise all parts of a net send it to
    /// each other.
    owned: bool,
}

impl Nets {
    /// The nets of an input; a list of connections has none.
    pub fn new(source: &Source) -> Self {
        match source {
            Source::Mesh(mesh) => Self::of_mesh(mesh),
            Source::Decomposition(decomposition) => Self::of_mesh(decomposition.mesh()),
            Source::Graph(graph) => {
                let words = graph.vertex_sizes().map(<[u32]>::to_vec);
                Self::of_needs(graph.first(), graph.neighbours(), words)
            }
            Source::Matrix(matrix) => Self::of_needs(matrix.first(), matrix.columns(), None),
            Source::Connections(_) => Self::of_needs(&[0], &[], None),
        }
    }

    fn of_mesh(mesh: &Mesh) -> Self {
        let mut nodes: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (element, corners) in (0..).zip(mesh.elements()) {
            nodes.clear();
            nodes.extend_from_slice(corners);
            nodes.sort_unstable();
            nodes.dedup();
            pairs.extend(nodes.iter().map(|&node| (element, node)));
        }
        let nets_of = Lists::new(mesh.element_count(), pairs.iter().copied());
        let pins = Lists::new(mesh.node_count(), pairs.iter().map(|&(item, net)| (net, item)));
        Self { pins, nets_of, words: None, owned: false }
    }

    /// The entries of row `u` are the items whose values `u` needs.
    fn of_needs(first: &[u32], needs: &[u32], words: Option<Vec<u32>>) -> Self {
        let items = first.len() - 1;
        let mut sorted: Vec<u32> = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(needs.len());
        for item in 0..to_u32(items) {
            sorted.clear();
            sorted.extend_from_slice(row(first, needs, index(item)));
            sorted.sort_unstable();
            sorted.dedup();
            pairs.extend(sorted.iter().filter(|&&net| net != item).map(|&net| (item, net)));
        }
        let nets_of = Lists::new(items, pairs.iter().copied());
        let pins = Lists::new(items, pairs.iter().map(|&(item, net)| (net, item)));
        Self { pins, nets_of, words, owned: true }
    }

    fn words(&self, net: u32) -> u64 {
        self.words.as_ref().map_or(1, |words| u64::from(words[index(net)]))
    }
}

/// Items of one part at a net that are moved together.
const GROUP: usize = 16;

/// Nets of a contact that may be removed.
const CONTACT: usize = 12;

/// Whether a move is kept, given the exchange after it and the excess of connections before it.
type Judge = fn(&Exchange<'_>, u64) -> bool;

/// Whether the load of the busiest of the changed parts is less, without more excess.
fn relieves(exchange: &Exchange<'_>, excess: u64) -> bool {
    exchange.excess() <= excess && exchange.is_relief()
}

/// Whether there is less excess of connections.
fn removes_excess(exchange: &Exchange<'_>, excess: u64) -> bool {
    exchange.excess() < excess
}

/// The repair of one partition.
struct Repair<'a> {
    exchange: Exchange<'a>,
    weights: Weights<'a>,
    /// Weights of the parts, all constraints of a part in a row.
    part_weights: Vec<u64>,
    /// The greatest weight of a part, for each constraint.
    allowed: Vec<u64>,
    /// The items of each part, in any order, and the place of each item in its list.
    members: Vec<Vec<u32>>,
    place: Vec<u32>,
    work_limit: u64,
}

impl Partitioner {
    /// The heaviest part that an imbalance of so many thousandths allows, for each constraint. A
    /// part can always have its share, rounded up to whole items of average weight.
    fn allowed(&self, parts: usize, thousandths: u32) -> Vec<u64> {
        let weights = Weights::new(&self.graph);
        let items = u128::from(to_u64(self.graph.len()).max(1));
        let parts = u128::from(to_u64(parts));
        let of_constraint = |constraint: usize| {
            let all = (0..to_u32(self.graph.len())).map(|item| weights.weight(item, constraint));
            let total: u128 = all.map(u128::from).sum();
            let asked = total * u128::from(1000 + thousandths) / (1000 * parts);
            let even = (total * items.div_ceil(parts)).div_ceil(items);
            u64::try_from(asked.max(even)).unwrap_or(u64::MAX)
        };
        (0..weights.per_item()).map(of_constraint).collect()
    }

    /// Whether no part of a partition is heavier than an imbalance of so many thousandths allows. A
    /// part can always have its share, rounded up to whole items of average weight.
    pub fn is_balanced(&self, partition: &Partition, thousandths: u32) -> bool {
        let allowed = self.allowed(partition.part_count(), thousandths);
        let sums = Weights::new(&self.graph).of_parts(partition);
        let fits = |part: &[u64]| part.iter().zip(&allowed).all(|(sum, most)| sum <= most);
        sums.chunks(allowed.len()).all(fits)
    }

    /// Changes a partition so that its exchange costs less, and returns it with the number of items
    /// that moved. No part becomes heavier than an imbalance of so many thousandths allows; items of
    /// heavier parts move to lighter neighbours first. `work` limits the changes that are tried.
    pub fn repair(
        &self,
        nets: &Nets,
        partition: &Partition,
        cost: ExchangeCost,
        thousandths: u32,
        work: u64,
    ) -> (Partition, usize) {
        let parts = partition.part_count();
        let mut members = vec![Vec::new(); parts];
        let mut place = Vec::with_capacity(partition.part_of().len());
        for (item, &part) in (0..).zip(partition.part_of()) {
            place.push(to_u32(members[index(part)].len()));
            members[index(part)].push(item);
        }
        let weights = Weights::new(&self.graph);
        let exchange = Exchange::new(nets, partition, cost);
        let repair = Repair {
            work_limit: exchange.work.saturating_add(work),
            exchange,
            part_weights: weights.of_parts(partition),
            weights,
            allowed: self.allowed(parts, thousandths),
            members,
            place,
        };
        let part_of = repair.run();
        let moved = part_of.iter().zip(partition.part_of()).filter(|(a, b)| a != b).count();
        (Partition { part_count: parts, part_of }, moved)
    }
}

impl Repair<'_> {
    /// Repairs for the phases that the partition needs, then for fewer.
    fn run(mut self) -> Vec<u32> {
        if self.members.len() < 2 {
            return self.exchange.into_parts();
        }
        self.rebalance();
        let mut phases = self.exchange.most_phases();
        self.limit_phases(phases);
        self.relieve();
        let mut best = (self.exchange.price(), self.exchange.part_of().to_vec());
        while phases > 1 && !self.is_exhausted() {
            phases -= 1;
            self.limit_phases(phases);
            self.remove_contacts();
            if self.exchange.excess() > 0 {
                break;
            }
            self.relieve();
            let price = self.exchange.price();
            if price < best.0 {
                best = (price, self.exchange.part_of().to_vec());
            }
        }
        best.1
    }

    fn limit_phases(&mut self, phases: u64) {
        self.exchange.limit_phases(phases);
    }

    fn is_exhausted(&self) -> bool {
        self.exchange.work >= self.work_limit
    }

    fn weight(&self, part: u32, constraint: usize) -> u64 {
        self.part_weights[index(part) * self.weights.per_item() + constraint]
    }

    /// Moves an item and updates members and weights.
    fn move_item(&mut self, item: u32, to: u32) {
        let from = self.exchange.part_of()[index(item)];
        self.exchange.move_item(item, to);
        let per_item = self.weights.per_item();
        for constraint in 0..per_item {
            let weight = self.weights.weight(item, constraint);
            self.part_weights[index(from) * per_item + constraint] -= weight;
            self.part_weights[index(to) * per_item + constraint] += weight;
        }
        let place = index(self.place[index(item)]);
        self.members[index(from)].swap_remove(place);
        if let Some(&other) = self.members[index(from)].get(place) {
            self.place[index(other)] = to_u32(place);
        }
        self.place[index(item)] = to_u32(self.members[index(to)].len());
        self.members[index(to)].push(item);
    }

    /// Whether a part has room for a group of items of one other part, which must keep an item.
    fn has_room(&self, group: &[u32], to: u32) -> bool {
        let Some(&first) = group.first() else { return false };
        let from = self.exchange.part_of()[index(first)];
        let fits = |constraint: usize| {
            let more: u64 = group.iter().map(|&item| self.weights.weight(item, constraint)).sum();
            more == 0 || self.weight(to, constraint) + more <= self.allowed[constraint]
        };
        from != to
            && self.members[index(from)].len() > group.len()
            && (0..self.weights.per_item()).all(fits)
    }

    /// Moves a group of items of one part to another part, and back if that is not better.
    fn try_group(&mut self, group: &[u32], to: u32, is_better: Judge) -> bool {
        if !self.has_room(group, to) {
            return false;
        }
        let from = self.exchange.part_of()[index(group[0])];
        self.exchange.watch();
        let excess = self.exchange.excess();
        for &item in group {
            self.move_item(item, to);
        }
        if is_better(&self.exchange, excess) {
            return true;
        }
        for &item in group {
            self.move_item(item, from);
        }
        false
    }

    /// Moves border items out of parts that are too heavy.
    fn rebalance(&mut self) {
        for constraint in 0..self.weights.per_item() {
            for part in 0..to_u32(self.members.len()) {
                while self.weight(part, constraint) > self.allowed[constraint]
                    && !self.is_exhausted()
                    && self.move_cheapest(part, constraint)
                {}
            }
        }
    }

    /// Moves the border item out of a part that causes the fewest words elsewhere, if one fits.
    fn move_cheapest(&mut self, part: u32, constraint: usize) -> bool {
        let mut items = self.members[index(part)].clone();
        items.sort_unstable();
        let mut best: Option<(u64, u32, u32)> = None;
        for item in items {
            if self.weights.weight(item, constraint) == 0 {
                continue;
            }
            for to in self.exchange.neighbours_of(item, part) {
                if !self.has_room(&[item], to) {
                    continue;
                }
                self.move_item(item, to);
                let words = self.exchange.total_words();
                self.move_item(item, part);
                if best.is_none_or(|best| words < best.0) {
                    best = Some((words, item, to));
                }
            }
        }
        let Some((_, item, to)) = best else { return false };
        self.move_item(item, to);
        true
    }

    /// Reduces the load of the busiest part, repeatedly.
    fn relieve(&mut self) {
        while !self.is_exhausted() {
            let loads = (0..self.members.len()).map(|part| self.exchange.load(part));
            let greatest = loads.clone().max().unwrap_or(0);
            let busiest: Vec<u32> =
                (0..).zip(loads).filter(|&(_, load)| load == greatest).map(|(p, _)| p).collect();
            if greatest == 0 || !busiest.iter().any(|&part| self.relieve_part(part)) {
                return;
            }
        }
    }

    /// Whether moves into or out of a part reduced the sorted loads.
    fn relieve_part(&mut self, part: u32) -> bool {
        let before = self.exchange.load(index(part));
        let mut any = false;
        for net in self.border_nets(part) {
            if self.is_exhausted() {
                break;
            }
            for other in self.exchange.parts_at(net) {
                if other != part {
                    any |= self.try_at(net, part, other) || self.try_at(net, other, part);
                }
            }
            // Another part may be the busiest one now.
            if any && self.exchange.load(index(part)) < before {
                return true;
            }
        }
        any
    }

    /// Tries to move all items that a part has at a net to another part, then each one alone.
    fn try_at(&mut self, net: u32, from: u32, to: u32) -> bool {
        let group = self.exchange.items_at(net, from);
        self.exchange.work += to_u64(self.exchange.pins_of(net));
        if group.len() > GROUP {
            return false;
        }
        let together = self.try_group(&group, to, relieves);
        together
            || (group.len() > 1 && group.iter().any(|&item| self.try_group(&[item], to, relieves)))
    }

    /// The nets that a part exchanges with others, ascending.
    fn border_nets(&mut self, part: u32) -> Vec<u32> {
        let mut border = Vec::new();
        for &item in &self.members[index(part)] {
            self.exchange.add_border_nets(item, &mut border);
        }
        self.exchange.work += to_u64(self.members[index(part)].len() + border.len());
        border.sort_unstable();
        border.dedup();
        border
    }

    /// Removes contacts of few words from parts with too many connections.
    fn remove_contacts(&mut self) {
        while self.exchange.excess() > 0 && !self.is_exhausted() {
            let parts = 0..to_u32(self.members.len());
            let mut full: Vec<(u64, u32)> = parts
                .map(|part| (self.exchange.excess_of(index(part)), part))
                .filter(|&(excess, _)| excess > 0)
                .collect();
            full.sort_unstable_by_key(|&(excess, part)| (std::cmp::Reverse(excess), part));
            if !full.into_iter().any(|(_, part)| self.remove_contact(part)) {
                return;
            }
        }
    }

    /// Whether a contact of a part could be removed without as much new excess elsewhere.
    fn remove_contact(&mut self, part: u32) -> bool {
        let mut contacts: Vec<(u32, u32)> = Vec::new();
        for net in self.border_nets(part) {
            let others = self.exchange.partners_at(net, part);
            contacts.extend(others.into_iter().map(|other| (other, net)));
        }
        contacts.sort_unstable();
        let mut by_neighbour: Vec<&[(u32, u32)]> = contacts.chunk_by(|a, b| a.0 == b.0).collect();
        by_neighbour.sort_by_key(|contact| contact.len());
        for contact in by_neighbour {
            if contact.len() > CONTACT || self.is_exhausted() {
                break;
            }
            let other = contact[0].0;
            for side in [part, other] {
                let nets = contact.iter().map(|&(_, net)| net);
                let mut group: Vec<u32> =
                    nets.flat_map(|net| self.exchange.items_at(net, side)).collect();
                group.sort_unstable();
                group.dedup();
                if group.len() > CONTACT * GROUP {
                    continue;
                }
                let items = group.iter();
                let mut targets: Vec<u32> =
                    items.flat_map(|&item| self.exchange.neighbours_of(item, side)).collect();
                targets.sort_unstable();
                targets.dedup();
                // The other side comes last, because a contact rarely vanishes that way.
                targets.sort_by_key(|&to| to == part || to == other);
                if targets.into_iter().any(|to| self.try_group(&group, to, removes_excess)) {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
