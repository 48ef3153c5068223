//! What the checker counted while it checked: how much was looked at and how full it was.
//!
//! The figures say that the check was not vacuous. They are the checker's own recount; nothing is
//! taken from the value's claims.

use std::fmt;

/// Figures of one check; those of several sets add up (the maxima are the largest of them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Connection sets checked.
    pub sets: u64,
    /// Phases checked.
    pub phases: u64,
    /// Connections whose words were accounted for.
    pub connections: u64,
    /// Words of these connections.
    pub words: u64,
    /// Routes followed from end to end.
    pub routes: u64,
    /// Links crossed by these routes together.
    pub hops: u64,
    /// Channel bookings checked for a single owner.
    pub channels_checked: u64,
    /// The most routes through one cell in one phase.
    pub max_occupancy: u32,
    /// Pairs of phase and cell in which every channel is taken.
    pub cells_at_limit: u64,
    /// The most routes over one link in one phase.
    pub max_sharing: u32,
    /// Slots checked against the machine's durations and the agents' streams.
    pub slots: u64,
    /// Ordering constraints checked.
    pub orders: u64,
    /// Operations run through the deadlock model.
    pub operations: u64,
    /// Phases on a machine with timed starts.
    pub timed_phases: u64,
    /// Phases whose length is proved: no stream is ever in the way of another.
    pub proved_phases: u64,
    /// The proved lengths together, in clocks without the switches.
    pub proved_clocks: u64,
}

impl Report {
    /// Adds what was proved of the phases of a set on a machine with timed starts.
    pub(crate) fn add_lengths(&mut self, lengths: &[Option<u64>]) {
        self.timed_phases += lengths.len() as u64;
        for length in lengths.iter().flatten() {
            self.proved_phases += 1;
            self.proved_clocks = self.proved_clocks.saturating_add(*length);
        }
    }

    /// Adds the figures of another check.
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
