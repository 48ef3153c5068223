//! The complete exchange of a ring, cut into steps that use every link once.
//!
//! On a ring of `n` cells (`n` = 2m, and m even) four messages close the ring in one direction:
//! from `i` over `d` links, on over `m - d`, and the same from the far side: the cells of the
//! *step* `{i, i + d, i + m, i + m + d}` each send one message and receive one, and every link of
//! that direction carries one. Messages over m links go half one way and half the other, and make
//! up a step with two cells that send to themselves. The steps of both directions have the same
//! cells, and they come in *classes* whose steps' cells tile the ring. (The idea of closing rings:
//! Hinrichs, Kosak, O'Hallaron, Stricker, Take 1994; the classes are our own derivation.)
//!
//! A class of a distance `d` is every second step round the cycles that `d` makes modulo m; they
//! tile only if these cycles are even, which they are where n is a power of two.

/// The steps of a ring of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    cells: u32,
    half: u32,
}

/// Where a message of a ring belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The class, below [`Ring::classes`].
    pub(super) class: u32,
    /// The step among those of its class, below [`Ring::steps`].
    pub(super) step: u32,
    /// Whether it goes towards larger coordinates.
    pub(super) forward: bool,
}

impl Ring {
    /// The steps of a ring; `None` for sizes whose steps do not tile.
    pub(super) fn new(cells: u32) -> Option<Self> {
        (cells >= 4 && cells.is_power_of_two()).then_some(Self { cells, half: cells / 2 })
    }

    /// Number of classes.
    pub(super) fn classes(self) -> u32 {
        self.half
    }

    /// The first class whose steps have the same cells as those of `class`.
    pub(super) fn cells_of(self, class: u32) -> u32 {
        class.min(self.half - 2)
    }

    /// Whether cells send to themselves in a class.
    pub(super) fn has_selves(self, class: u32) -> bool {
        class == self.half - 1
    }

    /// Steps in each class.
    pub(super) fn steps(self) -> u32 {
        self.half / 2
    }

    /// The step of the message between two coordinates.
    pub(super) fn step_of(self, source: u32, target: u32) -> Step {
        let (m, quarter) = (self.half, self.half / 2);
        let ahead = (target + self.cells - source) % self.cells;
        let place = source % m;
        if ahead == 0 || ahead == m {
            // Where one direction has its long messages, the other's cells send to themselves.
            let forward = (place < quarter) == (ahead == m);
            return Step { class: m - 1, step: place % quarter, forward };
        }
        let forward = ahead < m;
        let hops = if forward { ahead } else { self.cells - ahead };
        if hops == quarter {
            return Step { class: m - 2, step: place % quarter, forward };
        }
        let short = hops.min(m - hops);
        // The step's first cell: its short message forwards starts there, backwards ends there.
        let first = if (hops == short) == forward { place } else { (place + m - short) % m };
        let (turn, cycle) = self.place_in_cycle(first, short);
        let step = cycle * (m / gcd(short, m) / 2) + turn / 2;
        Step { class: 2 * (short - 1) + turn % 2, step, forward }
    }

    /// The cycles of `+ by` modulo m: how many turns from its start `place` is, and which cycle.
    fn place_in_cycle(self, place: u32, by: u32) -> (u32, u32) {
        let (m, cycle) = (self.half, place % gcd(by, self.half));
        let mut at = cycle;
        let mut turn = 0;
        while at != place {
            at = (at + by) % m;
            turn += 1;
        }
        (turn, cycle)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step uses every link of its direction once, each of its cells sends once and
    /// receives once, and the steps of a class tile the ring in the same way both ways.
    #[test]
    fn steps_close_the_ring_and_tile_it() {
        for n in [4u32, 8, 16, 32] {
            let ring = Ring::new(n).unwrap();
            for class in 0..ring.classes() {
                let mut owner = vec![None; n as usize];
                for forward in [true, false] {
                    let mut sends = 0;
                    for step in 0..ring.steps() {
                        let mut links = vec![0; n as usize];
                        let mut received = vec![0; n as usize];
                        for (s, t) in (0..n).flat_map(|s| (0..n).map(move |t| (s, t))) {
                            if ring.step_of(s, t) != (Step { class, step, forward }) {
                                continue;
                            }
                            sends += 1;
                            received[t as usize] += 1;
                            assert!(owner[s as usize].is_none_or(|o| o == step), "{n} {class}");
                            owner[s as usize] = Some(step);
                            let mut at = s;
                            while at != t {
                                links[at as usize] += 1;
                                at = if forward { (at + 1) % n } else { (at + n - 1) % n };
                            }
                        }
                        assert!(links.iter().all(|&l| l == 1), "{n} {class} {step} {links:?}");
                        assert!(received.iter().all(|&r| r <= 1));
                    }
                    assert_eq!(sends, n, "{n} {class} {forward}");
                }
                assert!(owner.iter().all(Option::is_some));
            }
        }
    }

    #[test]
    fn other_sizes_have_no_steps() {
        assert!([0, 1, 2, 3, 5, 6, 12].into_iter().all(|n| Ring::new(n).is_none()));
    }
}
