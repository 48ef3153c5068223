//! The channel rule, recounted: how many routes of a phase pass each cell, and who holds which of
//! its channels (machine model, rule 2).
//!
//! A route takes one channel on each of its cells, so a phase's bookings are its hops. They are
//! sorted into buckets by cell (counted, then placed), and each bucket is gone through once with
//! an array of owners per channel number. Everything is linear in the hops; cells that a phase
//! does not touch cost nothing, and no array has the size cells x channels, which a hostile
//! machine can make 2^32.
//!
//! A cell over capacity is reported as that. Its bookings are not looked at further: by pigeonhole
//! two of them share a channel or one is out of range, which would say the same thing again.

use conset_ir::{CellId, ChannelId, PhaseId, PhaseRoutes};

use crate::facts::Report;
use crate::rejection::{Findings, Place, Rule};

/// What a phase has booked on one cell.
#[derive(Clone, Copy, Default)]
struct CellRow {
    /// Routes through the cell.
    count: u32,
    /// One more than the last route that came through; 0 for none.
    last_route: u32,
    /// Where the cell's bucket is filled next.
    next: u32,
}

#[derive(Clone, Copy, Default)]
struct Booking {
    channel: ChannelId,
    route: u32,
}

/// A channel number's owner on the cell that carries the stamp.
#[derive(Clone, Copy, Default)]
struct Owner {
    stamp: u64,
    route: u32,
}

/// The bookings of one phase; the memory is kept from phase to phase.
pub(crate) struct Ledger {
    cells: Vec<CellRow>,
    touched: Vec<CellId>,
    bookings: Vec<Booking>,
    owners: Vec<Owner>,
    stamp: u64,
    channels_reserved: u32,
}

impl Ledger {
    pub(crate) fn new(cells: usize, channels: u32, channels_reserved: u32) -> Self {
        Self {
            cells: vec![CellRow::default(); cells],
            touched: Vec::new(),
            bookings: Vec::new(),
            owners: vec![Owner::default(); channels as usize],
            stamp: 0,
            channels_reserved,
        }
    }

    /// Books a cell for the phase's route number `route`. Returns whether the same route has
    /// booked it before. Routes come in order.
    pub(crate) fn book(&mut self, cell: CellId, route: usize) -> bool {
        let row = &mut self.cells[cell.index()];
        let mark = route as u32 + 1;
        let again = row.last_route == mark;
        row.last_route = mark;
        if row.count == 0 {
            self.touched.push(cell);
        }
        row.count += 1;
        again
    }

    /// Judges what was booked since the last call and forgets it. `is_booked` says of which rows
    /// of the phase.
    pub(crate) fn close(
        &mut self,
        phase: PhaseId,
        routes: &PhaseRoutes,
        is_booked: impl Fn(usize) -> bool,
        findings: &mut Findings,
        report: &mut Report,
    ) {
        self.sort_into_buckets(routes, is_booked);
        for index in 0..self.touched.len() {
            let cell = self.touched[index];
            self.judge_cell(phase, cell, routes, findings, report);
            self.cells[cell.index()] = CellRow::default();
        }
        self.touched.clear();
    }

    fn sort_into_buckets(&mut self, routes: &PhaseRoutes, is_booked: impl Fn(usize) -> bool) {
        let mut first = 0;
        for cell in &self.touched {
            let row = &mut self.cells[cell.index()];
            row.next = first;
            first += row.count;
        }
        self.bookings.clear();
        self.bookings.resize(first as usize, Booking::default());
        for (row, route) in routes.iter().enumerate().filter(|(row, _)| is_booked(*row)) {
            for (cell, &channel) in route.cells.iter().zip(route.channels) {
                let slot = &mut self.cells[cell.index()].next;
                self.bookings[*slot as usize] = Booking { channel, route: row as u32 };
                *slot += 1;
            }
        }
    }

    fn judge_cell(
        &mut self,
        phase: PhaseId,
        cell: CellId,
        routes: &PhaseRoutes,
        findings: &mut Findings,
        report: &mut Report,
    ) {
        let CellRow { count, next, .. } = self.cells[cell.index()];
        let channels = self.owners.len();
        let reserved = self.channels_reserved;
        report.max_occupancy = report.max_occupancy.max(count);
        report.channels_checked += u64::from(count);
        let place = Place::phase(phase).cell(cell);
        if count as usize > channels {
            findings.add(Rule::Capacity, place, || {
                format!("{count} routes through a cell of {channels} channels")
            });
            return;
        }
        report.cells_at_limit += u64::from(count as usize == channels);
        self.stamp += 1;
        for &Booking { channel, route } in &self.bookings[(next - count) as usize..next as usize] {
            let place = place.connection(routes.get(route as usize).connection);
            let Some(owner) = self.owners.get_mut(channel.index()) else {
                findings
                    .add(Rule::ChannelRange, place, || out_of_range(channel, channels, reserved));
                continue;
            };
            if owner.stamp == self.stamp {
                let other = routes.get(owner.route as usize).connection;
                findings.add(Rule::DoubleBooking, place, || {
                    format!(
                        "{channel} is also held by {other} (routes {} and {route})",
                        owner.route
                    )
                });
            }
            *owner = Owner { stamp: self.stamp, route };
        }
    }
}

fn out_of_range(channel: ChannelId, channels: usize, reserved: u32) -> String {
    let usable = channels - 1;
    if channel.index() < channels + reserved as usize {
        format!("{channel} is in the system's reserve; connections have ch0 to ch{usable}")
    } else {
        format!("{channel} is not one of the cell's; connections have ch0 to ch{usable}")
    }
}
