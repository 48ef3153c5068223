//! The complete exchange of a ring, divided into steps in which every link is used once.
//!
//! On a ring of `n` cells (`n` = 2m) four messages close the ring in one direction: from `i` over
//! `d` links, from there over `m - d`, and the same two from the opposite cell. The cells of the
//! *step* `{i, i + d, i + m, i + m + d}` each send one message and receive one, and every link of
//! that direction carries one. So there is one step in each direction for every two of the `m`
//! *places* (coordinates modulo m), and both steps have the same cells. Two messages over m links
//! close the ring as well. Half of them go in each direction, and the cells of a place that send to
//! themselves use the other direction. (Closing rings: Hinrichs, Kosak, O'Hallaron, Stricker, Take
//! 1994; the classes are derived here.)
//!
//! Steps are grouped in *classes* whose cells tile the ring. Pairs of places are the edges of a
//! complete graph, and its perfect matchings are the classes, constructed as the rounds of a
//! tournament:
//!
//! * m even: m - 1 classes of m/2 pairs, and one class for the longest messages, whose steps
//!   combine two of them, one in each direction. Every step uses every link. The first class has
//!   the same pairs of places as the last.
//! * m odd: m classes of (m - 1)/2 pairs and the remaining place, whose step has the longest
//!   messages in one direction only; in the other direction its links are idle.
//!
//! A ring with an odd number of cells is treated as the next larger ring in which one cell only
//! forwards. Its steps have idle entries, and the longest messages take one link more than
//! necessary.

/// The steps of a ring of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    cells: u32,
    half: u32,
}

/// Where a message of a ring belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Step {
    /// The class, below [`Ring::classes`].
    pub(super) class: u32,
    /// The step among those of its class, below [`Ring::steps`].
    pub(super) step: u32,
    /// Whether it goes towards larger coordinates.
    pub(super) forward: bool,
}

impl Ring {
    /// The steps of a ring; `None` for a single cell, which has no links.
    pub(super) fn new(cells: u32) -> Option<Self> {
        let half = cells.div_ceil(2);
        (cells >= 2).then_some(Self { cells: 2 * half, half })
    }

    /// Number of classes.
    pub(super) fn classes(self) -> u32 {
        self.half
    }

    /// The first class whose steps have the same cells as those of `class`.
    pub(super) fn cells_of(self, class: u32) -> u32 {
        if self.has_selves(class) { 0 } else { class }
    }

    /// Whether half the cells of every step of a class send to themselves.
    pub(super) fn has_selves(self, class: u32) -> bool {
        self.half.is_multiple_of(2) && class == self.half - 1
    }

    /// Steps in each class.
    pub(super) fn steps(self) -> u32 {
        self.half.div_ceil(2)
    }

    /// The step of the message between two coordinates.
    pub(super) fn step_of(self, source: u32, target: u32) -> Step {
        let m = self.half;
        let ahead = if target >= source { target - source } else { target + self.cells - source };
        let place = if source >= m { source - m } else { source };
        if ahead == 0 || ahead == m {
            // Where one direction has its long messages, the other's cells send to themselves.
            let (class, step, long_forward) = match m % 2 {
                0 => (m - 1, place % (m / 2), place < m / 2),
                _ => (place, 0, place.is_multiple_of(2)),
            };
            return Step { class, step, forward: long_forward == (ahead == m) };
        }
        let other = if target >= m { target - m } else { target };
        let (class, step) = self.class_of(place, other);
        Step { class, step, forward: ahead < m }
    }

    /// The class of two different places, and their step in it.
    fn class_of(self, a: u32, b: u32) -> (u32, u32) {
        let m = self.half;
        if m % 2 == 1 {
            return tournament(a, b, m);
        }
        // Players are numbered so that in round 0 those play that are half of the places apart.
        let player = |place: u32| match place.checked_sub(m / 2) {
            None => place,
            Some(k) => m - 1 - k,
        };
        let (a, b) = (player(a), player(b));
        match (a == m - 1, b == m - 1) {
            (true, _) => (b, 0),
            (_, true) => (a, 0),
            _ => tournament(a, b, m - 1),
        }
    }
}

/// The round of a tournament of an odd number of players in which two play: that of the player
/// just between them, who has none to play with; and how far they are from that one.
fn tournament(a: u32, b: u32, players: u32) -> (u32, u32) {
    let sum = (a + b) % players;
    let between = if sum.is_multiple_of(2) { sum / 2 } else { (sum + players) / 2 };
    let apart = (a + players - between) % players;
    (between, apart.min(players - apart))
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::convert::index;

    /// Each cell of a step sends once and receives once, no link is used twice, those of even
    /// rings all once, and the steps of a class tile the ring in the same way both ways.
    #[test]
    fn steps_close_the_ring_and_tile_it() {
        for n in (2u32..=21).chain([32, 64]) {
            let ring = Ring::new(n).unwrap();
            for class in 0..ring.classes() {
                let mut owner = vec![None; index(n)];
                let mut idle = 0;
                for forward in [true, false] {
                    let mut sends = 0;
                    for step in 0..ring.steps() {
                        let mut links = vec![0; index(n)];
                        let mut received = vec![0; index(n)];
                        for (s, t) in (0..n).flat_map(|s| (0..n).map(move |t| (s, t))) {
                            if ring.step_of(s, t) != (Step { class, step, forward }) {
                                continue;
                            }
                            sends += 1;
                            received[index(t)] += 1;
                            assert!(owner[index(s)].is_none_or(|o| o == step), "{n} {class}");
                            owner[index(s)] = Some(step);
                            let mut at = s;
                            while at != t {
                                links[index(at)] += 1;
                                at = if forward { (at + 1) % n } else { (at + n - 1) % n };
                            }
                        }
                        assert!(links.iter().all(|&l| l <= 1), "{n} {class} {step} {links:?}");
                        idle += usize::from(links.iter().all(|&l| l == 0));
                        assert!(n % 2 == 1 || links.iter().all(|&l| l == links[0]));
                        assert!(received.iter().all(|&r| r <= 1));
                    }
                    assert!(sends == n || n % 2 == 1, "{n} {class} {forward}");
                }
                assert!(owner.iter().all(Option::is_some));
                assert!(n % 2 == 1 || idle == usize::from(n % 4 == 2), "{n} {class}");
            }
        }
    }

    #[test]
    fn classes_of_the_same_cells_have_the_same_steps() {
        for n in [4u32, 8, 12, 16, 20] {
            let ring = Ring::new(n).unwrap();
            let last = ring.classes() - 1;
            assert_eq!((ring.cells_of(last), ring.has_selves(last)), (0, true));
            for (s, t) in (0..n).flat_map(|s| (0..n).map(move |t| (s, t))) {
                let (step, own) = (ring.step_of(s, t), ring.step_of(s, s));
                assert!(step.class != 0 || step.step == own.step, "{n} {s} {t}");
            }
        }
    }

    #[test]
    fn a_single_cell_has_no_steps() {
        assert!([0, 1].into_iter().all(|n| Ring::new(n).is_none()));
    }
}
