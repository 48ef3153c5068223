//! What is routed where: the copies of the machine graph, one for each phase.
//!
//! A copy is a row of occupancy counts, one for each cell. Beside them stands, for each cell, the
//! set of phases in which it still has a free channel, so that a connection looks only at the
//! copies where both of its ends are free. Routes lie in one pool and are named by connection;
//! a route that is taken out leaves a gap there until the pool is packed.

/// No phase: the connection is not routed.
pub(crate) const UNROUTED: u32 = u32::MAX;

/// The routes of all phases and the channels they occupy.
#[derive(Clone, Debug)]
pub(crate) struct State {
    cells: usize,
    /// Channels per cell.
    pub(crate) capacity: u16,
    /// Phases there are, empty ones included.
    pub(crate) phases: u32,
    used: Vec<u16>,
    /// Row `cell`: bit `p` is set while the cell has a free channel in phase `p`.
    free: Vec<u64>,
    /// Words in a row of `free`.
    stride: usize,
    /// The phase of each connection.
    pub(crate) phase_of: Vec<u32>,
    routes: Vec<(u64, u32)>,
    pool: Vec<u32>,
    /// Entries of the pool that belong to a route.
    live: usize,
    /// Channels in use, for each phase.
    pub(crate) load: Vec<u64>,
    /// Connections routed.
    pub(crate) routed: usize,
    /// The connections of each phase, in no particular order.
    members: Vec<Vec<u32>>,
    /// The connections on each cell, by phase and cell, once somebody asked for it.
    passing: Option<Vec<Vec<u32>>>,
    /// Where each connection stands among the members of its phase.
    seat: Vec<u32>,
}

impl State {
    /// Nothing routed, no phase.
    pub(crate) fn new(cells: usize, capacity: u16, connections: usize) -> Self {
        Self {
            cells,
            capacity,
            phases: 0,
            used: Vec::new(),
            free: Vec::new(),
            stride: 0,
            phase_of: vec![UNROUTED; connections],
            routes: vec![(0, 0); connections],
            pool: Vec::new(),
            live: 0,
            load: Vec::new(),
            routed: 0,
            members: Vec::new(),
            passing: None,
            seat: vec![0; connections],
        }
    }

    /// From now on keeps the connections on each cell, for [`State::passing`].
    pub(crate) fn keep_passing(&mut self) {
        let mut passing = vec![Vec::new(); self.used.len()];
        for (phase, members) in self.members.iter().enumerate() {
            for &x in members {
                for &cell in self.route(x) {
                    passing[phase * self.cells + cell as usize].push(x);
                }
            }
        }
        self.passing = Some(passing);
    }

    /// The connections whose routes are on a cell in a phase, in no particular order.
    pub(crate) fn passing(&self, phase: u32, cell: u32) -> &[u32] {
        match &self.passing {
            Some(passing) => &passing[phase as usize * self.cells + cell as usize],
            None => &[],
        }
    }

    /// Adds an empty phase at the end.
    pub(crate) fn open_phase(&mut self) {
        let phase = self.phases as usize;
        if phase == self.stride * 64 {
            self.widen();
        }
        self.used.resize(self.used.len() + self.cells, 0);
        self.load.push(0);
        if let Some(passing) = &mut self.passing {
            passing.resize(self.used.len(), Vec::new());
        }
        self.members.push(Vec::new());
        for cell in 0..self.cells {
            self.free[cell * self.stride + phase / 64] |= 1 << (phase % 64);
        }
        self.phases += 1;
    }

    fn widen(&mut self) {
        let stride = (self.stride * 2).max(1);
        let mut free = vec![0; self.cells * stride];
        for cell in 0..self.cells {
            let old = &self.free[cell * self.stride..(cell + 1) * self.stride];
            free[cell * stride..cell * stride + self.stride].copy_from_slice(old);
        }
        self.free = free;
        self.stride = stride;
    }

    /// Channels in use on each cell in a phase.
    #[inline]
    pub(crate) fn used(&self, phase: u32) -> &[u16] {
        let start = phase as usize * self.cells;
        &self.used[start..start + self.cells]
    }

    /// The phases in which both cells have a free channel, 64 to a word, from word 0.
    #[inline]
    pub(crate) fn both_free(&self, a: u32, b: u32, word: usize) -> u64 {
        self.free[a as usize * self.stride + word] & self.free[b as usize * self.stride + word]
    }

    /// The cells of a connection's route.
    pub(crate) fn route(&self, connection: u32) -> &[u32] {
        let (start, len) = self.routes[connection as usize];
        &self.pool[start as usize..start as usize + len as usize]
    }

    /// Puts a route into a phase. The caller has seen that every cell has a free channel.
    pub(crate) fn put(&mut self, connection: u32, phase: u32, route: &[u32]) {
        debug_assert_eq!(self.phase_of[connection as usize], UNROUTED);
        self.routes[connection as usize] = (self.pool.len() as u64, route.len() as u32);
        self.pool.extend_from_slice(route);
        self.occupy(connection, phase);
    }

    /// Puts the route that a connection had last into a phase.
    pub(crate) fn occupy(&mut self, connection: u32, phase: u32) {
        let (start, len) = self.routes[connection as usize];
        let base = phase as usize * self.cells;
        for &cell in &self.pool[start as usize..start as usize + len as usize] {
            let used = &mut self.used[base + cell as usize];
            *used += 1;
            if let Some(passing) = &mut self.passing {
                passing[base + cell as usize].push(connection);
            }
            if *used >= self.capacity {
                let word = cell as usize * self.stride + phase as usize / 64;
                self.free[word] &= !(1 << (phase % 64));
            }
        }
        self.live += len as usize;
        self.load[phase as usize] += u64::from(len);
        self.phase_of[connection as usize] = phase;
        let members = &mut self.members[phase as usize];
        self.seat[connection as usize] = members.len() as u32;
        members.push(connection);
        self.routed += 1;
    }

    /// Takes a connection out of its phase and gives its channels back. Its route can still be
    /// read until the pool is packed.
    pub(crate) fn take(&mut self, connection: u32) {
        let phase = std::mem::replace(&mut self.phase_of[connection as usize], UNROUTED);
        let (start, len) = self.routes[connection as usize];
        let base = phase as usize * self.cells;
        for &cell in &self.pool[start as usize..start as usize + len as usize] {
            let used = &mut self.used[base + cell as usize];
            *used -= 1;
            if let Some(passing) = &mut self.passing {
                let row = &mut passing[base + cell as usize];
                if let Some(at) = row.iter().position(|&x| x == connection) {
                    row.swap_remove(at);
                }
            }
            if *used + 1 == self.capacity {
                let word = cell as usize * self.stride + phase as usize / 64;
                self.free[word] |= 1 << (phase % 64);
            }
        }
        self.live -= len as usize;
        self.load[phase as usize] -= u64::from(len);
        let members = &mut self.members[phase as usize];
        let seat = self.seat[connection as usize] as usize;
        members.swap_remove(seat);
        if let Some(&moved) = members.get(seat) {
            self.seat[moved as usize] = seat as u32;
        }
        self.routed -= 1;
    }

    /// The connections of a phase, in no particular order (but always the same).
    pub(crate) fn members(&self, phase: u32) -> &[u32] {
        &self.members[phase as usize]
    }

    /// Where a connection's route lies in the pool; for [`State::restore`].
    pub(crate) fn place_of(&self, connection: u32) -> (u64, u32) {
        self.routes[connection as usize]
    }

    /// Gives an unrouted connection back a route that it had before.
    pub(crate) fn restore(&mut self, connection: u32, phase: u32, place: (u64, u32)) {
        self.routes[connection as usize] = place;
        self.occupy(connection, phase);
    }

    /// Closes the gaps in the pool if they have become most of it.
    pub(crate) fn pack(&mut self) {
        if self.pool.len() < 2 * self.live + (1 << 16) {
            return;
        }
        let mut pool = Vec::with_capacity(self.live);
        for (connection, place) in self.routes.iter_mut().enumerate() {
            if self.phase_of[connection] == UNROUTED {
                continue;
            }
            let start = place.0 as usize;
            place.0 = pool.len() as u64;
            pool.extend_from_slice(&self.pool[start..start + place.1 as usize]);
        }
        self.pool = pool;
    }

    /// Takes out a phase in which nothing is routed; those after it move up.
    pub(crate) fn close_phase(&mut self, phase: u32) {
        debug_assert_eq!(self.load[phase as usize], 0);
        let start = phase as usize * self.cells;
        self.used.drain(start..start + self.cells);
        if let Some(passing) = &mut self.passing {
            passing.drain(start..start + self.cells);
        }
        self.load.remove(phase as usize);
        self.members.remove(phase as usize);
        self.phases -= 1;
        for of in &mut self.phase_of {
            if *of != UNROUTED && *of > phase {
                *of -= 1;
            }
        }
        self.free.fill(0);
        for p in 0..self.phases as usize {
            for cell in 0..self.cells {
                if self.used[p * self.cells + cell] < self.capacity {
                    self.free[cell * self.stride + p / 64] |= 1 << (p % 64);
                }
            }
        }
    }
}
