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
}

impl Report {
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
        Ok(())
    }
}
