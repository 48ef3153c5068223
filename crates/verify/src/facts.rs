//! Figures of a check: the number of objects checked, and the greatest loads found.
//!
//! The figures show how much was checked. The checker counts them itself; none is taken from the
//! claims of the value.

use std::fmt;

use conset_ir::convert::to_u64;

/// Figures of a check. For several sets, counts are added up and maxima combined.
///
/// A record with public fields to read. It is `#[non_exhaustive]`: only the checker makes one, and
/// new figures break no caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Connection sets.
    pub sets: u64,
    /// Phases.
    pub phases: u64,
    /// Connections.
    pub connections: u64,
    /// Words of these connections.
    pub words: u64,
    /// Routes.
    pub routes: u64,
    /// Links of these routes.
    pub hops: u64,
    /// Channels booked by these routes.
    pub channels_checked: u64,
    /// The greatest number of routes through a cell in a phase.
    pub max_occupancy: u32,
    /// Pairs of a phase and a cell in which every channel is used.
    pub cells_at_limit: u64,
    /// The greatest number of routes over a link in a phase.
    pub max_sharing: u32,
    /// Steps.
    pub steps: u64,
    /// Messages of these steps.
    pub messages: u64,
    /// Pieces of these messages.
    pub pieces: u64,
    /// Slots.
    pub slots: u64,
    /// Ordering constraints.
    pub orders: u64,
    /// Operations in the deadlock model.
    pub operations: u64,
    /// Phases on a machine with timed starts.
    pub timed_phases: u64,
    /// Phases whose length is proved, because no two streams meet.
    pub proved_phases: u64,
    /// The sum of the proved lengths, in clocks without switches.
    pub proved_clocks: u64,
}

impl Report {
    /// Adds the proved lengths of the phases of a set on a machine with timed starts.
    pub(crate) fn add_lengths(&mut self, lengths: &[Option<u64>]) {
        self.timed_phases += to_u64(lengths.len());
        for length in lengths.iter().flatten() {
            self.proved_phases += 1;
            self.proved_clocks = self.proved_clocks.saturating_add(*length);
        }
    }

    /// The combined figures of two checks.
    #[must_use]
    pub fn and(self, other: Report) -> Report {
        Report {
            sets: self.sets + other.sets,
            phases: self.phases + other.phases,
            connections: self.connections + other.connections,
            words: self.words + other.words,
            routes: self.routes + other.routes,
            hops: self.hops + other.hops,
            channels_checked: self.channels_checked + other.channels_checked,
            max_occupancy: self.max_occupancy.max(other.max_occupancy),
            cells_at_limit: self.cells_at_limit + other.cells_at_limit,
            max_sharing: self.max_sharing.max(other.max_sharing),
            steps: self.steps + other.steps,
            messages: self.messages + other.messages,
            pieces: self.pieces + other.pieces,
            slots: self.slots + other.slots,
            orders: self.orders + other.orders,
            operations: self.operations + other.operations,
            timed_phases: self.timed_phases + other.timed_phases,
            proved_phases: self.proved_phases + other.proved_phases,
            proved_clocks: self.proved_clocks.saturating_add(other.proved_clocks),
        }
    }
}

impl fmt::Display for Report {
    /// `verified: 4032 routes over 16384 hops in 22 phases, ...`, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps > 0 {
            write!(
                f,
                "verified: {} connections of {} words as {} pieces of {} messages in {} steps",
                self.connections, self.words, self.pieces, self.messages, self.steps,
            )?;
            if self.orders > 0 {
                write!(f, ", {} ordering constraints", self.orders)?;
            }
            return Ok(());
        }
        write!(
            f,
            "verified: {} connections of {} words on {} routes over {} hops in {} phases, {} channel \
             bookings, at most {} routes on a cell ({} at the limit) and {} on a link",
            self.connections,
            self.words,
            self.routes,
            self.hops,
            self.phases,
            self.channels_checked,
            self.max_occupancy,
            self.cells_at_limit,
            self.max_sharing,
        )?;
        for (count, what) in [
            (self.slots, "slots"),
            (self.orders, "ordering constraints"),
            (self.operations, "operations"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.timed_phases > 0 {
            let (proved, timed) = (self.proved_phases, self.timed_phases);
            write!(f, ", length proved of {proved} of {timed} phases")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every figure is different, so that none can be taken for another.
    fn figures() -> Report {
        Report {
            sets: 1,
            phases: 2,
            connections: 3,
            words: 5,
            routes: 7,
            hops: 11,
            channels_checked: 13,
            max_occupancy: 17,
            cells_at_limit: 19,
            max_sharing: 23,
            steps: 0,
            messages: 29,
            pieces: 31,
            slots: 37,
            orders: 41,
            operations: 43,
            timed_phases: 47,
            proved_phases: 53,
            proved_clocks: 59,
        }
    }

    #[test]
    fn counts_are_added_and_maxima_combined() {
        let twice = figures().and(figures());
        let expected = Report {
            sets: 2,
            phases: 4,
            connections: 6,
            words: 10,
            routes: 14,
            hops: 22,
            channels_checked: 26,
            max_occupancy: 17,
            cells_at_limit: 38,
            max_sharing: 23,
            steps: 0,
            messages: 58,
            pieces: 62,
            slots: 74,
            orders: 82,
            operations: 86,
            timed_phases: 94,
            proved_phases: 106,
            proved_clocks: 118,
        };
        assert_eq!(twice, expected);
        let steps = |steps| Report { steps, ..Report::default() };
        assert_eq!(steps(2).and(steps(3)), steps(5));
    }

    #[test]
    fn only_known_lengths_are_proved() {
        let mut report = Report::default();
        report.add_lengths(&[Some(10), None, Some(7)]);
        report.add_lengths(&[None]);
        let proved = (report.timed_phases, report.proved_phases, report.proved_clocks);
        assert_eq!(proved, (4, 2, 17));
    }

    #[test]
    fn a_report_prints_the_figures_that_there_are() {
        let routes = "verified: 3 connections of 5 words on 7 routes over 11 hops in 2 phases, 13 channel \
                      bookings, at most 17 routes on a cell (19 at the limit) and 23 on a link";
        let all =
            ", 37 slots, 41 ordering constraints, 43 operations, length proved of 53 of 47 phases";
        assert_eq!(figures().to_string(), format!("{routes}{all}"));
        let untimed = Report { slots: 0, orders: 0, operations: 0, timed_phases: 0, ..figures() };
        assert_eq!(untimed.to_string(), routes);
        let steps = Report { steps: 4, ..figures() };
        let pieces = "verified: 3 connections of 5 words as 31 pieces of 29 messages in 4 steps";
        assert_eq!(steps.to_string(), format!("{pieces}, 41 ordering constraints"));
        assert_eq!(Report { orders: 0, ..steps }.to_string(), pieces);
    }
}
