//! The routes of all phases, and the channels that they occupy.
//!
//! Each layer is a table of the channels in use on each cell. In addition, each cell has the set of
//! phases in which it is full, so that a connection considers only the layers in which both its
//! ends are free. Neither takes memory for cells without routes. Routes are stored in one pool,
//! indexed by connection; a removed route leaves a gap in the pool until it is compacted.

use std::ops::Range;

use conset_ir::convert::{index, to_u32};

use super::paged_table::{PagedTable, PhaseView};

/// The phase of a connection without a route.
pub(crate) const UNROUTED: u32 = u32::MAX;

/// The range of the pool that holds a route.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolRange {
    start: usize,
    len: u32,
}

impl PoolRange {
    fn range(self) -> Range<usize> {
        self.start..self.start + index(self.len)
    }
}

/// The routes of all phases, and the channels that they occupy.
#[derive(Clone, Debug)]
pub(crate) struct RoutingState {
    /// Channels per cell, or fewer if there are fewer connections.
    pub(crate) capacity: u32,
    /// Number of phases, including empty ones.
    pub(crate) phases: u32,
    used: PagedTable<u32>,
    /// By cell: bit `p` is set while the cell has no free channel in phase `p`. Bits beyond the end
    /// are 0.
    full: Vec<Vec<u64>>,
    /// The phase of each connection.
    pub(crate) phase_of: Vec<u32>,
    pool_ranges: Vec<PoolRange>,
    pool: Vec<u32>,
    /// Entries of the pool that belong to a route.
    live_entries: usize,
    /// Channels in use, for each phase.
    pub(crate) load: Vec<u64>,
    /// Number of routed connections.
    pub(crate) routed: usize,
    /// The connections of each phase, in no particular order.
    members: Vec<Vec<u32>>,
    /// The connections on each cell, by phase and cell, once this index was requested.
    routes_through: Option<PagedTable<Vec<u32>>>,
    /// The position of each connection among the members of its phase.
    member_position: Vec<u32>,
}

impl RoutingState {
    /// No routes, no phase.
    pub(crate) fn new(cells: usize, capacity: u32, connections: usize) -> Self {
        Self {
            capacity,
            phases: 0,
            used: PagedTable::new(cells),
            full: vec![Vec::new(); cells],
            phase_of: vec![UNROUTED; connections],
            pool_ranges: vec![PoolRange::default(); connections],
            pool: Vec::new(),
            live_entries: 0,
            load: Vec::new(),
            routed: 0,
            members: Vec::new(),
            routes_through: None,
            member_position: vec![0; connections],
        }
    }

    /// Builds the index for [`RoutingState::routes_through`] and keeps it up to date from now on.
    pub(crate) fn track_routes_through(&mut self) {
        let mut routes_through: PagedTable<Vec<u32>> = PagedTable::new(self.full.len());
        routes_through.reset(self.phases);
        for (phase, members) in self.members.iter().enumerate() {
            for &x in members {
                for &cell in self.route(x) {
                    routes_through.value_mut(to_u32(phase), cell).push(x);
                }
            }
        }
        self.routes_through = Some(routes_through);
    }

    /// The connections whose routes use a cell in a phase, in no particular order.
    pub(crate) fn routes_through(&self, phase: u32, cell: u32) -> &[u32] {
        match &self.routes_through {
            Some(routes_through) => routes_through.of(phase).get(cell),
            None => &[],
        }
    }

    /// Adds an empty phase at the end.
    pub(crate) fn open_phase(&mut self) {
        self.used.open_phase();
        self.load.push(0);
        if let Some(routes_through) = &mut self.routes_through {
            routes_through.open_phase();
        }
        self.members.push(Vec::new());
        self.phases += 1;
    }

    /// Cells of all phases together for which memory is allocated.
    pub(crate) fn allocated_cells(&self) -> usize {
        self.used.allocated_cells()
    }

    /// Channels in use on each cell in a phase.
    #[inline]
    pub(crate) fn used(&self, phase: u32) -> PhaseView<'_, u32> {
        self.used.of(phase)
    }

    /// The phases in which both cells have a free channel, 64 per word, starting at word 0. Bits of
    /// phases that do not exist yet are set too.
    #[inline]
    pub(crate) fn both_free(&self, a: u32, b: u32, word: usize) -> u64 {
        let full = |cell: u32| self.full[index(cell)].get(word).copied().unwrap_or(0);
        !(full(a) | full(b))
    }

    /// Records whether a cell is full in a phase.
    fn set_full(&mut self, cell: u32, phase: u32, is_full: bool) {
        let (word, bit) = (index(phase) / 64, 1 << (phase % 64));
        let row = &mut self.full[index(cell)];
        if word >= row.len() {
            row.resize(word + 1, 0);
        }
        row[word] = if is_full { row[word] | bit } else { row[word] & !bit };
    }

    /// The cells of a connection's route.
    pub(crate) fn route(&self, connection: u32) -> &[u32] {
        &self.pool[self.pool_ranges[index(connection)].range()]
    }

    /// Adds a route to a phase. The caller has checked that every cell has a free channel.
    pub(crate) fn insert(&mut self, connection: u32, phase: u32, route: &[u32]) {
        debug_assert_eq!(self.phase_of[index(connection)], UNROUTED);
        self.pool_ranges[index(connection)] =
            PoolRange { start: self.pool.len(), len: to_u32(route.len()) };
        self.pool.extend_from_slice(route);
        self.occupy(connection, phase);
    }

    /// Adds the last route of a connection to a phase.
    pub(crate) fn occupy(&mut self, connection: u32, phase: u32) {
        let place = self.pool_ranges[index(connection)];
        for at in place.range() {
            let cell = self.pool[at];
            let used = self.used.value_mut(phase, cell);
            *used += 1;
            let is_full = *used >= self.capacity;
            if let Some(routes_through) = &mut self.routes_through {
                routes_through.value_mut(phase, cell).push(connection);
            }
            if is_full {
                self.set_full(cell, phase, true);
            }
        }
        self.live_entries += index(place.len);
        self.load[index(phase)] += u64::from(place.len);
        self.phase_of[index(connection)] = phase;
        let members = &mut self.members[index(phase)];
        self.member_position[index(connection)] = to_u32(members.len());
        members.push(connection);
        self.routed += 1;
    }

    /// Removes a connection from its phase and frees its channels. Its route can be read until the
    /// pool is compacted.
    pub(crate) fn remove(&mut self, connection: u32) {
        let phase = std::mem::replace(&mut self.phase_of[index(connection)], UNROUTED);
        let place = self.pool_ranges[index(connection)];
        for at in place.range() {
            let cell = self.pool[at];
            let used = self.used.value_mut(phase, cell);
            *used -= 1;
            let was_full = *used + 1 == self.capacity;
            if let Some(routes_through) = &mut self.routes_through {
                let row = routes_through.value_mut(phase, cell);
                if let Some(at) = row.iter().position(|&x| x == connection) {
                    row.swap_remove(at);
                }
            }
            if was_full {
                self.set_full(cell, phase, false);
            }
        }
        self.live_entries -= index(place.len);
        self.load[index(phase)] -= u64::from(place.len);
        let members = &mut self.members[index(phase)];
        let member_position = index(self.member_position[index(connection)]);
        members.swap_remove(member_position);
        if let Some(&moved) = members.get(member_position) {
            self.member_position[index(moved)] = to_u32(member_position);
        }
        self.routed -= 1;
    }

    /// The connections of a phase, in an unspecified but deterministic order.
    pub(crate) fn members(&self, phase: u32) -> &[u32] {
        &self.members[index(phase)]
    }

    /// The range of a connection's route in the pool; for [`RoutingState::restore`].
    pub(crate) fn pool_range(&self, connection: u32) -> PoolRange {
        self.pool_ranges[index(connection)]
    }

    /// Gives an unrouted connection a route that it had before.
    pub(crate) fn restore(&mut self, connection: u32, phase: u32, place: PoolRange) {
        self.pool_ranges[index(connection)] = place;
        self.occupy(connection, phase);
    }

    /// Removes the gaps from the pool if they make up most of it.
    pub(crate) fn compact_pool(&mut self) {
        if self.pool.len() < 2 * self.live_entries + (1 << 16) {
            return;
        }
        let mut pool = Vec::with_capacity(self.live_entries);
        for (connection, place) in self.pool_ranges.iter_mut().enumerate() {
            if self.phase_of[connection] == UNROUTED {
                continue;
            }
            let route = place.range();
            place.start = pool.len();
            pool.extend_from_slice(&self.pool[route]);
        }
        self.pool = pool;
    }

    /// Removes a phase without routes; later phases move up.
    pub(crate) fn close_phase(&mut self, phase: u32) {
        debug_assert_eq!(self.load[index(phase)], 0);
        self.used.close_phase(phase);
        if let Some(routes_through) = &mut self.routes_through {
            routes_through.close_phase(phase);
        }
        self.load.remove(index(phase));
        self.members.remove(index(phase));
        self.phases -= 1;
        for of in &mut self.phase_of {
            if *of != UNROUTED && *of > phase {
                *of -= 1;
            }
        }
        self.full.iter_mut().for_each(|row| without_bit(row, phase));
    }
}

/// Removes a bit from a row; later bits move up.
fn without_bit(row: &mut [u64], bit: u32) {
    let word = index(bit) / 64;
    for at in word..row.len() {
        let below = if at == word { (1u64 << (bit % 64)) - 1 } else { 0 };
        let next = row.get(at + 1).map_or(0, |next| next << 63);
        row[at] = row[at] & below | (row[at] >> 1 & !below) | next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_goes_takes_its_bit_along() {
        let phases: Vec<u32> = (0..200).filter(|p| p % 3 == 0 || p % 7 == 1).collect();
        for gone in [0, 1, 5, 62, 63, 64, 65, 127, 128, 191, 199, 500] {
            let mut row = vec![0u64; 4];
            phases.iter().for_each(|p| row[*p as usize / 64] |= 1 << (p % 64));
            without_bit(&mut row, gone);
            let left = (0..256u32).filter(|p| row[*p as usize / 64] >> (p % 64) & 1 == 1);
            let moved = phases.iter().filter(|p| **p != gone).map(|p| p - u32::from(*p > gone));
            assert!(left.eq(moved), "{gone}");
        }
    }
}
