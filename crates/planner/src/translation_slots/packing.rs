//! Packing of items into circular arrays by a min-conflicts search.
//!
//! There are arrays of `period` entries, and each entry of an array has the array's capacity. An
//! item is placed at a time, in one of several *choices*. A choice takes entries of some arrays,
//! each at the time less a delay, modulo the period. A packing is a time and a choice for every
//! item such that no capacity is exceeded.
//!
//! The search is min-conflicts with weights on entries (breakout: Morris, AAAI 1993; the history
//! cost of PathFinder): items in conflict move, one after the other, to the cheapest time and
//! choice. Entries that stay overused become more expensive; this addition decays. Among placements
//! of equal cost it prefers those that leave no free entry next to the entries they take, so that
//! free entries stay contiguous. The cost of all times is a sum of rotated arrays of 16-bit
//! numbers, which a processor adds many at a time.
//!
//! Arrays may have mirror images, which are used in the same way with time reversed. An item then
//! stands for two, which halves the search. An image costs as much as its original, so images are
//! counted but not added up.

use conset_ir::convert::{index, to_f64, to_u32, to_u64};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The use of an array by an item: `count` of the capacity of the entry at its time less `delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Take {
    pub(super) array: u32,
    pub(super) delay: u32,
    pub(super) count: u32,
}

/// A way to place an item.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) takes: Vec<Take>,
    /// Entries just before and after runs of entries that are taken; `count` means nothing.
    pub(super) beside: Vec<Take>,
}

/// The items to be packed.
pub(super) struct Items {
    pub(super) period: usize,
    /// The capacity of the entries of each array.
    pub(super) capacity: Vec<u32>,
    pub(super) choices: Vec<Vec<Choice>>,
    /// For each item its row of `choices`.
    pub(super) row_of: Vec<u32>,
    /// For each array its mirror image and a sum: whatever takes an entry takes the entry of the
    /// image with which its number adds up to this sum, modulo the period, as well.
    pub(super) mirror: Option<Vec<(u32, u32)>>,
    /// Whether to take the first of several times of equal cost instead of a random one.
    pub(super) first_fit: bool,
}

impl Items {
    /// The load of each array by some items, averaged over their choices.
    pub(super) fn loads(&self, is_in: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacity.len()];
        for (_, &row) in self.row_of.iter().enumerate().filter(|&(item, _)| is_in(item)) {
            let choices = &self.choices[index(row)];
            let takes = choices.iter().flat_map(|choice| &choice.takes);
            takes.for_each(|take| {
                loads[index(take.array)] += f64::from(take.count) / to_f64(choices.len());
            });
        }
        loads
    }
}

/// The choice and the time of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemPlacement {
    pub(super) choice: u32,
    pub(super) time: u32,
}

/// The weights of the search; the cost of an overuse is [`UNIT`] when it is new.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The history cost that a pass adds to an overused entry.
    pub growth: u32,
    /// The share of history costs that is kept from pass to pass, in 1024ths.
    pub kept: u32,
    /// The cost of a free entry next to an entry that an item takes.
    pub beside: u32,
    /// The number of passes without fewer conflicts after which the search gives up.
    pub patience: u32,
}

pub(super) const UNIT: u32 = 1 << 12;

/// The maximum history cost, and the maximum overuse of an entry that is counted.
const DEAREST: u32 = 1 << 16;
const COUNTED: u32 = 8;

/// The number of entries added up per unit of work.
const ENTRIES: u64 = 1 << 10;

struct MinConflicts<'a> {
    items: &'a Items,
    weights: &'a Weights,
    /// For each entry, what is taken of it and the additional cost of overusing it.
    users: Vec<u32>,
    extra: Vec<u32>,
    /// Each array twice in succession: what one more user pays, and what a free entry costs.
    cost: Vec<i16>,
    free: Vec<i16>,
    places: Vec<Option<ItemPlacement>>,
    sums: Vec<i16>,
}

/// Packs items. Returns `None` if the search gives up or the budget is used up. Subtracts the work
/// done from `budget`.
pub(super) fn pack(
    items: &Items,
    weights: &Weights,
    budget: &mut u64,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<ItemPlacement>> {
    let entries = items.capacity.len() * items.period;
    let mut search = MinConflicts {
        items,
        weights,
        users: vec![0; entries],
        extra: vec![0; entries],
        cost: vec![0; 2 * entries],
        free: vec![0; 2 * entries],
        places: vec![None; items.row_of.len()],
        sums: vec![0; items.period],
    };
    (0..entries).for_each(|entry| search.price(entry));
    // What takes most is the hardest to place.
    let takes = |item: u32| &items.choices[index(items.row_of[index(item)])][0].takes;
    let taken = |item: u32| takes(item).iter().map(|take| take.count).sum::<u32>();
    let mut open: Vec<u32> = (0..to_u32(items.row_of.len())).collect();
    open.shuffle(rng);
    open.sort_by_key(|&item| std::cmp::Reverse(taken(item)));
    let (mut least, mut stalled) = (usize::MAX, 0);
    loop {
        for &item in &open {
            search.remove(item);
            let work = search.place(item, rng);
            *budget = budget.saturating_sub(work);
            if *budget == 0 {
                return None;
            }
        }
        let overused = search.remember();
        if overused == 0 {
            return search.places.into_iter().collect();
        }
        *budget = budget.saturating_sub(to_u64(entries) / (ENTRIES / 8));
        stalled = if overused < least { 0 } else { stalled + 1 };
        least = least.min(overused);
        if stalled > weights.patience {
            return None;
        }
        open.clear();
        open.extend((0..to_u32(items.row_of.len())).filter(|&item| search.is_in_conflict(item)));
        open.shuffle(rng);
    }
}

impl MinConflicts<'_> {
    /// Renews what one more user of an entry pays.
    fn price(&mut self, entry: usize) {
        let period = self.items.period;
        let (array, at) = (entry / period, entry % period);
        let over = (self.users[entry] + 1).saturating_sub(self.items.capacity[array]);
        let cost = rounded(over.min(COUNTED) * (UNIT + self.extra[entry]));
        let free = if self.users[entry] == 0 { rounded(self.weights.beside) } else { 0 };
        for row in [2 * array * period + at, (2 * array + 1) * period + at] {
            (self.cost[row], self.free[row]) = (cost, free);
        }
    }

    fn choice(&self, item: u32, choice: u32) -> &Choice {
        &self.items.choices[index(self.items.row_of[index(item)])][index(choice)]
    }

    fn entry(&self, take: &Take, time: u32) -> usize {
        let period = self.items.period;
        index(take.array) * period + (index(time) + period - index(take.delay)) % period
    }

    /// The mirror image of an entry, where there are any.
    fn image(&self, entry: usize) -> Option<usize> {
        let period = self.items.period;
        let (array, sum) = self.items.mirror.as_ref()?[entry / period];
        Some(index(array) * period + (index(sum) + period - entry % period) % period)
    }

    fn count(&mut self, item: u32, place: ItemPlacement, add: bool) {
        let items = self.items;
        let row = &items.choices[index(items.row_of[index(item)])];
        for take in &row[index(place.choice)].takes {
            let entry = self.entry(take, place.time);
            for entry in std::iter::once(entry).chain(self.image(entry)) {
                let users = &mut self.users[entry];
                *users = if add { *users + take.count } else { *users - take.count };
                self.price(entry);
            }
        }
    }

    fn remove(&mut self, item: u32) {
        if let Some(place) = self.places[index(item)].take() {
            self.count(item, place, false);
        }
    }

    /// Places an item where it costs least and returns the work done.
    fn place(&mut self, item: u32, rng: &mut ChaCha8Rng) -> u64 {
        let items = self.items;
        let mut sums = std::mem::take(&mut self.sums);
        let (mut best, mut ties, mut place) = (i16::MAX, 0, ItemPlacement::default());
        let mut work = 0;
        let choices = &items.choices[index(items.row_of[index(item)])];
        for (row, choice) in choices.iter().enumerate() {
            self.sum(choice, &mut sums);
            work += to_u64((choice.takes.len() + choice.beside.len() + 2) * items.period);
            let cost = sums.iter().fold(i16::MAX, |least, &sum| least.min(sum));
            if cost > best {
                continue;
            }
            let here = to_u32(sums.iter().filter(|&&sum| sum == cost).count());
            ties = if cost < best { here } else { ties + here };
            best = cost;
            // One of all that cost the same, each as likely as the others; or the first of them.
            let drawn = if items.first_fit { ties - here } else { rng.random_range(0..ties) };
            if drawn < here {
                let equal = sums.iter().enumerate().filter(|&(_, &sum)| sum == cost);
                let time = equal.map(|(time, _)| to_u32(time)).nth(index(drawn));
                place = ItemPlacement { choice: to_u32(row), time: time.expect("counted") };
            }
        }
        self.sums = sums;
        self.places[index(item)] = Some(place);
        self.count(item, place, true);
        work.div_ceil(ENTRIES)
    }

    /// The cost of a choice at every time.
    fn sum(&self, choice: &Choice, sums: &mut [i16]) {
        let period = self.items.period;
        sums.fill(0);
        let first = |take: &Take| 2 * index(take.array) * period + period - index(take.delay);
        let mut add = |row: &[i16]| {
            sums.iter_mut().zip(row).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
        };
        choice.takes.iter().filter(|take| take.count == 1).for_each(|take| {
            add(&self.cost[first(take)..][..period]);
        });
        if self.weights.beside > 0 {
            choice.beside.iter().for_each(|take| add(&self.free[first(take)..][..period]));
        }
        for take in choice.takes.iter().filter(|take| take.count > 1) {
            let capacity = self.items.capacity[index(take.array)];
            for (time, sum) in (0u32..).zip(sums.iter_mut()) {
                let entry = self.entry(take, time);
                let over = (self.users[entry] + take.count).saturating_sub(capacity);
                let cost = rounded(over.min(COUNTED) * (UNIT + self.extra[entry]));
                *sum = sum.saturating_add(cost);
            }
        }
    }

    fn is_in_conflict(&self, item: u32) -> bool {
        let place = self.places[index(item)].expect("placed");
        self.choice(item, place.choice).takes.iter().any(|take| {
            self.users[self.entry(take, place.time)] > self.items.capacity[index(take.array)]
        })
    }

    /// Raises the history costs of overused entries, lowers the others, and returns the number of
    /// overused entries.
    fn remember(&mut self) -> usize {
        let mut overused = 0;
        for entry in 0..self.users.len() {
            let capacity = self.items.capacity[entry / self.items.period];
            let over = self.users[entry].saturating_sub(capacity);
            let extra = self.extra[entry];
            if over == 0 && extra == 0 {
                continue;
            }
            overused += usize::from(over > 0);
            let grown = extra + over.min(COUNTED) * self.weights.growth;
            self.extra[entry] =
                to_u32(u64::from(grown.min(DEAREST)) * u64::from(self.weights.kept) / 1024);
            self.price(entry);
        }
        overused
    }
}

/// A cost in 64ths of [`UNIT`].
fn rounded(cost: u32) -> i16 {
    i16::try_from(cost / (UNIT / 64)).unwrap_or(i16::MAX)
}
