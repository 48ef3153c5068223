//! The channel rules: the number of routes through each cell, and the routes that use each channel
//! (machine model, rule 2).
//!
//! A route uses one channel on each of its cells, so a phase has one booking per hop. Bookings are
//! sorted into buckets by cell (counting sort), and each bucket by channel, which is the order in
//! which it usually is. Cells without routes cost nothing, and no array has a size that depends on
//! the number of channels, which a malicious file can choose.
//!
//! For a cell over capacity only that is reported. By the pigeonhole principle two of its bookings
//! share a channel or one is out of range, which would repeat the violation.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ChannelId, PhaseId, PhaseRoutes};

use crate::facts::Report;
use crate::rejection::{Findings, Location, Rule};

/// The bookings of a phase on a cell.
#[derive(Clone, Copy, Default)]
struct CellBookings {
    /// Routes through the cell.
    count: u32,
    /// The last route through the cell plus 1; 0 for none.
    last_route: u32,
    /// The next free position in the bucket of the cell.
    next: u32,
}

#[derive(Clone, Copy, Default)]
struct Booking {
    channel: ChannelId,
    route: u32,
}

/// The bookings of one phase. It reuses its memory for all phases.
pub(crate) struct Ledger {
    cells: Vec<CellBookings>,
    touched: Vec<CellId>,
    bookings: Vec<Booking>,
    channels: u32,
    channels_reserved: u32,
}

impl Ledger {
    pub(crate) fn new(cells: usize, channels: u32, channels_reserved: u32) -> Self {
        Self {
            cells: vec![CellBookings::default(); cells],
            touched: Vec::new(),
            bookings: Vec::new(),
            channels,
            channels_reserved,
        }
    }

    /// Books a cell for route number `route` of the phase. Returns whether the same route has
    /// booked it before. Routes must be in order.
    pub(crate) fn book(&mut self, cell: CellId, route: usize) -> bool {
        let row = &mut self.cells[cell.index()];
        let mark = to_u32(route) + 1;
        let again = row.last_route == mark;
        row.last_route = mark;
        if row.count == 0 {
            self.touched.push(cell);
        }
        row.count += 1;
        again
    }

    /// Checks the bookings since the last call and clears them. `is_booked` tells which routes of
    /// the phase were booked.
    pub(crate) fn close(
        &mut self,
        phase: PhaseId,
        routes: &PhaseRoutes,
        is_booked: impl Fn(usize) -> bool,
        findings: &mut Findings,
        report: &mut Report,
    ) {
        self.sort_into_buckets(routes, is_booked);
        for row in 0..self.touched.len() {
            let cell = self.touched[row];
            self.check_cell(phase, cell, routes, findings, report);
            self.cells[cell.index()] = CellBookings::default();
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
        self.bookings.resize(index(first), Booking::default());
        for (row, route) in routes.iter().enumerate().filter(|(row, _)| is_booked(*row)) {
            for (cell, &channel) in route.cells.iter().zip(route.channels) {
                let slot = &mut self.cells[cell.index()].next;
                self.bookings[index(*slot)] = Booking { channel, route: to_u32(row) };
                *slot += 1;
            }
        }
    }

    fn check_cell(
        &mut self,
        phase: PhaseId,
        cell: CellId,
        routes: &PhaseRoutes,
        findings: &mut Findings,
        report: &mut Report,
    ) {
        let CellBookings { count, next, .. } = self.cells[cell.index()];
        let (channels, reserved) = (index(self.channels), self.channels_reserved);
        report.max_occupancy = report.max_occupancy.max(count);
        report.channels_checked += u64::from(count);
        let location = Location::phase(phase).cell(cell);
        if index(count) > channels {
            findings.add(Rule::Capacity, location, || {
                format!("{count} routes through a cell of {channels} channels")
            });
            return;
        }
        report.cells_at_limit += u64::from(index(count) == channels);
        let bookings = &mut self.bookings[index(next - count)..index(next)];
        bookings.sort_unstable_by_key(|booking| (booking.channel, booking.route));
        let mut last: Option<Booking> = None;
        for &Booking { channel, route } in &*bookings {
            let location = location.connection(routes.get(index(route)).connection);
            if channel.index() >= channels {
                let message = || out_of_range(channel, channels, reserved);
                findings.add(Rule::ChannelRange, location, message);
            } else if let Some(owner) = last.filter(|last| last.channel == channel) {
                let other = routes.get(index(owner.route)).connection;
                findings.add(Rule::DoubleBooking, location, || {
                    format!("{other} also uses {channel} (routes {} and {route})", owner.route)
                });
            }
            last = Some(Booking { channel, route });
        }
    }
}

fn out_of_range(channel: ChannelId, channels: usize, reserved: u32) -> String {
    let usable = channels - 1;
    if channel.index() < channels + index(reserved) {
        format!("{channel} is reserved for the system; connections have ch0 to ch{usable}")
    } else {
        format!("{channel} is not a channel of the cell; connections have ch0 to ch{usable}")
    }
}
