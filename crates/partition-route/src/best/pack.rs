//! Rounds into phases: as many rounds as the channels of every cell hold.
//!
//! Rounds are taken in order, and each goes into the first open phase where it fits as a whole;
//! only the last [`OPEN`] phases are open. A round that needs more channels than there are is
//! split, connection by connection, over as many phases as it takes.

use super::paths::Paths;

/// Phases looked at for each round.
const OPEN: usize = 64;

/// Cells of all open phases together.
const HELD: usize = 1 << 26;

/// A division of connections into phases.
pub(super) struct Packed {
    /// Number of phases.
    pub(super) phases: u32,
    /// The phase of each connection.
    pub(super) phase_of: Vec<u32>,
}

/// Packs rounds of connections into phases. Every path visits a cell once at most.
pub(super) fn pack(
    cells: usize,
    channels: u32,
    rounds: u32,
    round_of: &[u32],
    paths: &Paths,
) -> Packed {
    let members = Members::new(rounds as usize, round_of);
    let mut packer = Packer { cells, channels, first: 0, open: Vec::new(), taken: Vec::new() };
    let mut phase_of = vec![0; round_of.len()];
    let mut needs = vec![0u32; cells];
    for round in 0..rounds as usize {
        let members = members.of(round);
        if members.is_empty() {
            continue;
        }
        let mut used: Vec<u32> = Vec::new();
        for &x in members {
            for &cell in paths.of(x as usize) {
                if needs[cell as usize] == 0 {
                    used.push(cell);
                }
                needs[cell as usize] += 1;
            }
        }
        let fits_alone = used.iter().all(|&cell| needs[cell as usize] <= channels);
        if fits_alone {
            let phase = packer.take(&used, |cell| needs[cell as usize]);
            for &x in members {
                phase_of[x as usize] = phase;
            }
        } else {
            for &x in members {
                phase_of[x as usize] = packer.take(paths.of(x as usize), |_| 1);
            }
        }
        for cell in used {
            needs[cell as usize] = 0;
        }
    }
    Packed { phases: packer.first + packer.open.len() as u32, phase_of }
}

/// Connections by round.
struct Members {
    first: Vec<u32>,
    ids: Vec<u32>,
}

impl Members {
    fn new(rounds: usize, round_of: &[u32]) -> Self {
        let mut first = vec![0u32; rounds + 1];
        for &round in round_of {
            first[round as usize + 1] += 1;
        }
        for round in 0..rounds {
            first[round + 1] += first[round];
        }
        let mut next = first.clone();
        let mut ids = vec![0; round_of.len()];
        for (x, &round) in round_of.iter().enumerate() {
            ids[next[round as usize] as usize] = x as u32;
            next[round as usize] += 1;
        }
        Self { first, ids }
    }

    fn of(&self, round: usize) -> &[u32] {
        &self.ids[self.first[round] as usize..self.first[round + 1] as usize]
    }
}

struct Packer {
    cells: usize,
    channels: u32,
    /// Phases closed already.
    first: u32,
    /// Channels taken on each cell in each open phase.
    open: Vec<Vec<u16>>,
    /// Memory of closed phases.
    taken: Vec<Vec<u16>>,
}

impl Packer {
    /// Takes channels in the first open phase that has them, else in a new one.
    fn take(&mut self, used: &[u32], need: impl Fn(u32) -> u32) -> u32 {
        let fits = |phase: &Vec<u16>| {
            used.iter().all(|&cell| u32::from(phase[cell as usize]) + need(cell) <= self.channels)
        };
        let found = self.open.iter().position(fits);
        let place = found.unwrap_or_else(|| self.begin());
        for &cell in used {
            self.open[place][cell as usize] += need(cell) as u16;
        }
        self.first + place as u32
    }

    fn begin(&mut self) -> usize {
        if self.open.len() >= (HELD / self.cells.max(1)).clamp(1, OPEN) {
            self.taken.push(self.open.remove(0));
            self.first += 1;
        }
        let mut phase = self.taken.pop().unwrap_or_default();
        phase.clear();
        phase.resize(self.cells, 0);
        self.open.push(phase);
        self.open.len() - 1
    }
}
