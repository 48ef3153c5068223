//! The computation of programs, and the clocks that the machine takes from it.
//!
//! A cell has one computation agent. Its program computes for the clocks that it states; if the
//! machine needs the agent in the meantime ([`FabricDriver::occupy`]), the program continues that
//! much later. While the program waits, the agent works for the machine, and the program finds it
//! busy only if it returns before that work is done.
//!
//! An unsuccessful test takes [`TEST_CLOCKS`], so that polling terminates. If nothing is in
//! progress in the machine, and all cells wait, have ended, or only test and compute, the run
//! cannot succeed any more: a cell that tests without success has started an exchange that some
//! cell has not started, or that cannot proceed itself, and it must complete that exchange before
//! it can do anything that would help the other cell. It may still abort the run with a reason of
//! its own, so the run counts as deadlocked only after each of these cells has tested [`TESTS`]
//! times.

use conset_ir::convert::{index, to_u32};

use super::{CellState, FabricDriver};

/// Clocks of a test that says no: to read a register of the communication agent ("the processor
/// can determine the status of the communication agent by simply reading a register", paper,
/// 4.1.1), compare, and go back.
pub(super) const TEST_CLOCKS: u64 = 4;

/// So many tests that say no, while nothing else happens anywhere, are enough.
const TESTS: u32 = 1 << 12;

/// What programs are at between their calls to the machine; by place of the cell.
#[derive(Clone, Debug)]
pub(super) struct ProgramClocks {
    /// When what the program computes is done.
    until: Vec<u64>,
    /// When the machine does not need the agent of a waiting program any more.
    busy: Vec<u64>,
    /// How often something else than computing and testing has happened.
    happened: u64,
    /// Tests since something happened, and when that was.
    tests: Vec<(u64, u32)>,
}

impl ProgramClocks {
    pub(super) fn new(cells: usize) -> Self {
        let none = vec![0; cells];
        Self { until: none.clone(), busy: none, happened: 0, tests: vec![(0, 0); cells] }
    }

    /// Something else happens than computing and testing.
    pub(super) fn made_progress(&mut self) {
        self.happened += 1;
    }

    /// How often something else than computing and testing has happened.
    pub(super) fn happened(&self) -> u64 {
        self.happened
    }

    /// Counts a test; whether it may be time to look if anything goes on.
    pub(super) fn count_unsuccessful_test(&mut self, row: usize) -> bool {
        let tests = &mut self.tests[row];
        if tests.0 != self.happened {
            *tests = (self.happened, 0);
        }
        tests.1 = tests.1.saturating_add(1);
        tests.1.is_multiple_of(TESTS)
    }

    fn has_only_tested(&self, row: usize) -> bool {
        let (happened, tests) = self.tests[row];
        happened == self.happened && tests >= TESTS
    }
}

impl FabricDriver<'_> {
    /// A program computes.
    pub(super) fn compute(&mut self, row: usize, clocks: u64) {
        let now = self.now();
        let until = self.computation.busy[row].max(now).saturating_add(clocks);
        self.computation.until[row] = until;
        self.set_timer(until - now, to_u32(row));
    }

    /// The machine needs a cell's computation agent for so many clocks from now.
    pub(super) fn occupy(&mut self, row: usize, clocks: u64) {
        let now = self.now();
        let computes = matches!(self.states[row], CellState::Computing | CellState::Testing);
        if computes && self.computation.until[row] > now {
            self.computation.until[row] = self.computation.until[row].saturating_add(clocks);
        } else {
            let busy = &mut self.computation.busy[row];
            *busy = (*busy).max(now).saturating_add(clocks);
        }
    }

    /// Timers went off: programs go on whose work is done. The requests' own only had to stop the
    /// machine.
    pub(super) fn handle_timers(&mut self, keys: Vec<u32>) {
        let now = self.now();
        for key in keys {
            let row = index(key);
            match self.computation.until.get(row) {
                Some(&until) if until > now => self.set_timer(until - now, key),
                Some(_) => self.make_ready(row),
                None => {}
            }
        }
    }

    /// Sets a timer on the engine that is at work.
    pub(super) fn set_timer(&mut self, clocks: u64, key: u32) {
        if self.messages.active {
            self.messages.engine.set_timer(clocks, key);
        } else {
            self.engine.set_timer(clocks, key);
        }
    }

    /// The engine of connections takes the clock over from that of messages, while programs
    /// compute.
    pub(super) fn hand_timers_over(&mut self) {
        self.messages.engine.clear_timers();
        let now = self.now();
        for row in 0..self.states.len() {
            if matches!(self.states[row], CellState::Computing | CellState::Testing) {
                self.set_timer(self.computation.until[row].saturating_sub(now), to_u32(row));
            }
        }
    }

    /// Whether nothing is under way, and all cells wait or have tested enough.
    pub(super) fn is_quiescent(&self) -> bool {
        let moving = match self.messages.active {
            true => self.messages.engine.is_moving(),
            false => self.engine.is_moving(),
        };
        let rests = |(row, states): (usize, &CellState)| match states {
            CellState::Ready => false,
            CellState::Computing | CellState::Testing => self.computation.has_only_tested(row),
            _ => true,
        };
        !moving && !self.requests.is_switching() && self.states.iter().enumerate().all(rests)
    }
}
