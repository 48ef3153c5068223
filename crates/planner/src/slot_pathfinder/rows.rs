//! The use of links and ports over time, and the cost of intervals of slots.
//!
//! A resource, a link or a port, is a row with a column for each slot. A row also stores the prefix
//! sums of its costs, so that an interval of any length costs one subtraction, and the intervals
//! from all slots are two slices of one row.

use conset_ir::convert::index;

/// The cost of a hop over a link that nobody else wants, for a slot.
pub(super) const HOP: i32 = 64;

/// Above all costs of routes; two of them still fit.
pub(super) const NEVER: i32 = 1 << 29;

/// How costs rise.
#[derive(Clone, Copy)]
pub(super) struct Prices {
    /// What an overuse adds to a cost, as a factor of it, in 4096ths.
    pub(super) present: u32,
    /// What a pass in which a resource is overused adds to its cost, and the most of that.
    pub(super) history: u32,
    pub(super) history_most: u32,
    /// The most that a resource costs in a slot.
    pub(super) dearest: i32,
}

/// A resource's users, and what its overuse has cost so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Use {
    pub(super) users: u32,
    history: u32,
}

impl Use {
    /// What the next user pays beside `base`, the cost while nobody else wants it.
    #[inline]
    pub(super) fn surcharge(self, capacity: u32, base: i32, prices: &Prices) -> i32 {
        let over = (self.users + 1).saturating_sub(capacity).min(1 << 6);
        let history = i64::from(self.history);
        let present = i64::from(over) * i64::from(prices.present) * (i64::from(base) + history);
        let cost = i32::try_from(history + (present >> 12)).unwrap_or(i32::MAX);
        cost.min(prices.dearest)
    }

    /// Adds or takes a user; what that changes about the number of users too many.
    #[inline]
    pub(super) fn change(&mut self, capacity: u32, add: bool) -> i64 {
        if add {
            self.users += 1;
            i64::from(self.users > capacity)
        } else {
            self.users -= 1;
            -i64::from(self.users >= capacity)
        }
    }

    /// Makes what is overused dearer.
    #[inline]
    pub(super) fn remember(&mut self, capacity: u32, prices: &Prices) {
        let over = self.users.saturating_sub(capacity).min(4);
        self.history = (self.history + prices.history * over).min(prices.history_most);
    }

    /// Keeps so many 64ths of what overuse has cost.
    pub(super) fn forget(&mut self, kept: u32) {
        self.history = self.history * kept / 64;
    }
}

#[derive(Clone)]
pub(super) struct Rows {
    slots: usize,
    capacity: Vec<u32>,
    /// What surcharges are a factor of.
    base: i32,
    /// What a free resource costs.
    free: i32,
    uses: Vec<Use>,
    /// Of each row what all slots before a column cost; a row has a column more than slots.
    sums: Vec<i32>,
}

impl Rows {
    pub(super) fn new(capacity: Vec<u32>, base: i32, free: i32) -> Self {
        Self { slots: 0, capacity, base, free, uses: Vec::new(), sums: Vec::new() }
    }

    /// Rows without users in which column `c` remembers what column `from[c]` does.
    pub(super) fn reshaped(&self, from: &[Option<u32>], prices: &Prices) -> Self {
        let slots = from.len();
        let mut uses = Vec::with_capacity(self.capacity.len() * slots);
        for row in 0..self.capacity.len() {
            let old = &self.uses[row * self.slots..][..self.slots];
            let history = |from: &Option<u32>| from.map_or(0, |slot| old[index(slot)].history);
            uses.extend(from.iter().map(|from| Use { users: 0, history: history(from) }));
        }
        let sums = vec![0; self.capacity.len() * (slots + 1)];
        let mut this = Self { slots, uses, sums, capacity: self.capacity.clone(), ..*self };
        this.sum(prices);
        this
    }

    /// Adds up all costs anew, after prices have changed.
    fn sum(&mut self, prices: &Prices) {
        let uses = self.uses.chunks(self.slots.max(1));
        for ((uses, sums), &capacity) in
            uses.zip(self.sums.chunks_mut(self.slots + 1)).zip(&self.capacity)
        {
            let mut sum = 0;
            for (of, to) in uses.iter().zip(&mut sums[1..]) {
                sum += self.free + of.surcharge(capacity, self.base, prices);
                *to = sum;
            }
        }
    }

    /// Books or gives back a stretch of a row; what that changes about the users too many.
    pub(super) fn change(
        &mut self,
        row: usize,
        (from, count): (usize, usize),
        add: bool,
        prices: &Prices,
    ) -> i64 {
        let capacity = self.capacity[row];
        let sums = &mut self.sums[row * (self.slots + 1)..][..=self.slots];
        let (mut over, mut dearer) = (0, 0);
        for slot in from..from + count {
            let of = &mut self.uses[row * self.slots + slot];
            dearer -= of.surcharge(capacity, self.base, prices);
            over += of.change(capacity, add);
            dearer += of.surcharge(capacity, self.base, prices);
            sums[slot + 1] += dearer;
        }
        if dearer != 0 {
            let behind = &mut sums[from + count + 1..];
            behind.iter_mut().for_each(|sum| *sum = sum.wrapping_add(dearer));
        }
        over
    }

    /// Whether somebody uses what is overused in a stretch of a row.
    pub(super) fn is_overused(&self, row: usize, (from, count): (usize, usize)) -> bool {
        let uses = &self.uses[row * self.slots + from..][..count];
        uses.iter().any(|of| of.users > self.capacity[row])
    }

    /// Makes what is overused dearer, and all costs those of these prices.
    pub(super) fn remember(&mut self, prices: &Prices) {
        for (uses, &capacity) in self.uses.chunks_mut(self.slots.max(1)).zip(&self.capacity) {
            uses.iter_mut().for_each(|of| of.remember(capacity, prices));
        }
        self.sum(prices);
    }

    pub(super) fn forget(&mut self, kept: u32) {
        self.uses.iter_mut().for_each(|of| of.forget(kept));
    }

    /// The running sums where a stretch from each slot on begins, and where it ends.
    #[inline]
    pub(super) fn stretches(&self, row: usize, count: usize) -> (&[i32], &[i32]) {
        let sums = &self.sums[row * (self.slots + 1)..][..=self.slots];
        (&sums[..=self.slots - count], &sums[count..])
    }

    /// What a stretch costs.
    pub(super) fn cost(&self, row: usize, (from, count): (usize, usize)) -> i32 {
        let sums = &self.sums[row * (self.slots + 1)..];
        sums[from + count] - sums[from]
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Users of all rows in each slot.
    pub(super) fn users(&self) -> Vec<u64> {
        let mut users = vec![0; self.slots];
        for row in self.uses.chunks(self.slots.max(1)) {
            row.iter().zip(&mut users).for_each(|(of, sum)| *sum += u64::from(of.users));
        }
        users
    }

    /// Users too many of all rows in each slot.
    pub(super) fn overuse(&self) -> Vec<u64> {
        let mut over = vec![0; self.slots];
        for (row, &capacity) in self.uses.chunks(self.slots.max(1)).zip(&self.capacity) {
            let of = |of: &Use| u64::from(of.users.saturating_sub(capacity));
            row.iter().zip(&mut over).for_each(|(u, sum)| *sum += of(u));
        }
        over
    }
}
