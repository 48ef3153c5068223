//! The use of links and ports over time, and the cost of intervals of slots.
//!
//! A resource, a link or a port, is a row with a column for each slot. A row also stores the prefix
//! sums of its costs, so that an interval of any length costs one subtraction, and the intervals
//! from all slots are two slices of one row.

use conset_ir::convert::index;

/// The cost of a hop over a link without other users, per slot; as a base that surcharges multiply, and as a
/// cost.
pub(super) const HOP_BASE: u32 = 64;
pub(super) const HOP: i32 = HOP_BASE.cast_signed();

/// A cost above those of all routes; the sum of two fits into 32 bits.
pub(super) const NEVER: i32 = 1 << 29;

/// The parameters by which costs rise.
#[derive(Clone, Copy)]
pub(super) struct Prices {
    /// The present cost factor: an overuse adds this factor of a cost, in 4096ths.
    pub(super) present: u32,
    /// The history cost that an overused resource gains per pass, and its maximum.
    pub(super) history: u32,
    pub(super) history_most: u32,
    /// The maximum cost of a resource in a slot, below 2^31.
    pub(super) dearest: u32,
}

/// The users of a resource in a slot, and its history cost.
#[derive(Clone, Copy, Default)]
pub(super) struct Use {
    pub(super) users: u32,
    history: u32,
}

impl Use {
    /// The cost for one more user in addition to `base`, the cost of the unused resource.
    #[inline]
    pub(super) fn surcharge(self, capacity: u32, base: u32, prices: &Prices) -> i32 {
        let over = (self.users + 1).saturating_sub(capacity).min(1 << 6);
        let history = u64::from(self.history);
        let present = u64::from(over) * u64::from(prices.present) * (u64::from(base) + history);
        let cost = (history + (present >> 12)).min(u64::from(prices.dearest));
        i32::try_from(cost).unwrap_or(i32::MAX)
    }

    /// Adds or removes a user and returns the change of the overuse.
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

    /// Raises the history cost if the resource is overused.
    #[inline]
    pub(super) fn remember(&mut self, capacity: u32, prices: &Prices) {
        let over = self.users.saturating_sub(capacity).min(4);
        self.history = (self.history + prices.history * over).min(prices.history_most);
    }

    /// Reduces the history cost to `kept` 64ths.
    pub(super) fn forget(&mut self, kept: u32) {
        self.history = self.history * kept / 64;
    }
}

#[derive(Clone)]
pub(super) struct Rows {
    slots: usize,
    capacity: Vec<u32>,
    /// The base cost that surcharges multiply.
    base: u32,
    /// The cost of a free resource.
    free: i32,
    uses: Vec<Use>,
    /// The overuse of each row in all slots.
    over: Vec<i64>,
    /// Of each row what all slots before a column cost; a row has a column more than slots.
    sums: Vec<i32>,
}

impl Rows {
    pub(super) fn new(capacity: Vec<u32>, base: u32, free: i32) -> Self {
        let (uses, over, sums) = (Vec::new(), Vec::new(), Vec::new());
        Self { slots: 0, capacity, base, free, uses, over, sums }
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
        let over = vec![0; self.capacity.len()];
        let mut this = Self { slots, uses, over, sums, capacity: self.capacity.clone(), ..*self };
        this.sum(prices, |_, _| ());
        this
    }

    /// Adds up all costs anew, each after an update of the use by its capacity.
    #[inline]
    fn sum(&mut self, prices: &Prices, update: impl Fn(&mut Use, u32)) {
        let uses = self.uses.chunks_mut(self.slots.max(1));
        for ((uses, sums), &capacity) in
            uses.zip(self.sums.chunks_mut(self.slots + 1)).zip(&self.capacity)
        {
            let mut sum = 0;
            for (of, to) in uses.iter_mut().zip(&mut sums[1..]) {
                update(of, capacity);
                sum += self.free + of.surcharge(capacity, self.base, prices);
                *to = sum;
            }
        }
    }

    /// Books or releases an interval of a row and returns the change of the overuse.
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
        self.over[row] += over;
        over
    }

    /// Whether a slot of an interval of a row is overused.
    pub(super) fn is_overused(&self, row: usize, (from, count): (usize, usize)) -> bool {
        // Towards the end of a negotiation few rows are overused.
        self.over[row] > 0 && {
            let uses = &self.uses[row * self.slots + from..][..count];
            uses.iter().any(|of| of.users > self.capacity[row])
        }
    }

    /// Makes what is overused dearer, and all costs those of these prices.
    pub(super) fn remember(&mut self, prices: &Prices) {
        self.sum(prices, |of, capacity| of.remember(capacity, prices));
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

    /// The cost of an interval.
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

    /// The overuse of all rows in each slot.
    pub(super) fn overuse(&self) -> Vec<u64> {
        let mut over = vec![0; self.slots];
        for (row, &capacity) in self.uses.chunks(self.slots.max(1)).zip(&self.capacity) {
            let of = |of: &Use| u64::from(of.users.saturating_sub(capacity));
            row.iter().zip(&mut over).for_each(|(u, sum)| *sum += of(u));
        }
        over
    }
}
