//! The five schemes of the paper as cost models: the time of each cell, cycle by cycle.
//!
//! A cell is at a time; a cycle adds what it does, and where it waits for others it takes the
//! latest of them. All times are in microseconds. Four numbers are given: the time of a site, which
//! is the paper's for its sequential program; a packet of two candidates, [`PACKET`], which costs
//! its sender and its receiver that; the check of a candidate from another cell, [`CHECK`]; a
//! global reduction, [`REDUCTION`]. Whatever else a cycle costs in a scheme is one constant of the
//! scheme, which stands for calls, handshakes, barriers, packets that carry counts, and polls. It
//! delays all cells alike in every cycle, so it adds itself times the number of cycles, and
//! [`price`] leaves it out.

use serde::Serialize;

use super::trace::{Load, Trace};

/// A packet of two candidates, at its sender and at its receiver.
pub const PACKET: f64 = 2.0;
/// The check of a candidate that another cell has sent.
pub const CHECK: f64 = 5.0;
/// A reduction of an integer by the control network, after which all cells go on at the same time.
pub const REDUCTION: f64 = 6.0;

/// How the candidates of a cycle are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// SSR-C-NO: after the expansion, two synchronous exchanges of all candidates with both
    /// neighbours.
    Ssr,
    /// AMP-C-NO: after the expansion, sizes and then candidates by PUT, between barriers.
    Amp,
    /// ASR-C-O: during the expansion, the candidates of the cycle before by asynchronous messages.
    Asr,
    /// AM-NC-O: active messages as soon as there are candidates; handlers check them.
    Am,
    /// ST-NC-O: the same with the Strata library, whose packets and polls cost less.
    St,
}

impl Scheme {
    /// All, in the order of the paper's tables.
    pub const ALL: [Self; 5] = [Self::Ssr, Self::Amp, Self::Asr, Self::Am, Self::St];

    /// The paper's abbreviation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssr => "SSR-C-NO",
            Self::Amp => "AMP-C-NO",
            Self::Asr => "ASR-C-O",
            Self::Am => "AM-NC-O",
            Self::St => "ST-NC-O",
        }
    }
}

/// How an application ends its cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Application {
    /// Microseconds of a site in the sequential program.
    pub site: f64,
    /// Cycles between two reductions.
    pub delta: usize,
    /// With active messages: whether a cycle ends with a barrier, before which candidates are only
    /// stored (Lee), or when both neighbours are done (Wolff).
    pub global: bool,
}

/// The time of a growth by a scheme, in microseconds, without the constant of the scheme.
#[must_use]
pub fn price(trace: &Trace, application: &Application, scheme: Scheme) -> f64 {
    let mut cells = Cells { times: vec![0.0; trace.cells()], application };
    let idle = vec![Load::default(); trace.cells()];
    let delta = application.delta.max(1);
    let mut count = 0;
    // The cycles go on until a reduction finds that nothing is left to do.
    let mut cycles = trace.cycles();
    loop {
        let loads = cycles.next();
        if loads.is_none() && count % delta == 0 {
            break;
        }
        cells.cycle(scheme, loads.unwrap_or(&idle));
        count += 1;
        if count % delta == 0 {
            cells.wait_for_all();
            cells.times.iter_mut().for_each(|time| *time += REDUCTION);
        }
    }
    cells.latest()
}

/// The times of all cells.
struct Cells<'a> {
    times: Vec<f64>,
    application: &'a Application,
}

/// Packets and candidates that a cell sends and receives in a cycle.
struct Traffic {
    sent: f64,
    received: f64,
    candidates: f64,
}

impl Cells<'_> {
    fn latest(&self) -> f64 {
        self.times.iter().copied().fold(0.0, f64::max)
    }

    fn wait_for_all(&mut self) {
        let latest = self.latest();
        self.times.fill(latest);
    }

    /// Each cell waits until its neighbours have come as far.
    fn wait_for_neighbours(&mut self) {
        let times = &self.times;
        let count = times.len();
        let next = |cell: usize| (cell + 1) % count;
        let before = |cell: usize| (cell + count - 1) % count;
        let latest = |cell: usize| times[cell].max(times[before(cell)]).max(times[next(cell)]);
        self.times = (0..count).map(latest).collect();
    }

    fn add(&mut self, of_cell: impl Fn(usize) -> f64) {
        self.times.iter_mut().enumerate().for_each(|(cell, time)| *time += of_cell(cell));
    }

    fn cycle(&mut self, scheme: Scheme, loads: &[Load]) {
        let site = self.application.site;
        let expansion = |cell: usize| site * f64::from(loads[cell].expanded);
        let packets = |cell| {
            let traffic = traffic(loads, cell);
            PACKET * (traffic.sent + traffic.received)
        };
        let checks = |cell| CHECK * traffic(loads, cell).candidates;
        match scheme {
            Scheme::Ssr => {
                self.add(expansion);
                // One exchange with the left, one with the right; both wait for both neighbours.
                for _ in 0..2 {
                    self.wait_for_neighbours();
                    self.add(|cell| 0.5 * packets(cell));
                }
                self.add(checks);
            }
            Scheme::Amp => {
                self.add(expansion);
                self.wait_for_all();
                self.add(|cell| packets(cell) + checks(cell));
            }
            Scheme::Asr => {
                // Messages are under way from when both ends have posted them, at the start.
                let own = self.times.clone();
                self.wait_for_neighbours();
                let late = |cell: usize| f64::from(loads[cell].from_others);
                let arrived = self.times.clone();
                let expanded = |cell: usize| own[cell] + expansion(cell) - site * late(cell);
                self.times = (0..own.len()).map(|cell| expanded(cell).max(arrived[cell])).collect();
                self.add(|cell| packets(cell) + checks(cell) + site * late(cell));
            }
            Scheme::Am | Scheme::St => self.active(loads, expansion),
        }
    }

    /// A cycle by active messages: whatever comes is handled while the cell expands or waits.
    fn active(&mut self, loads: &[Load], expansion: impl Fn(usize) -> f64) {
        let global = self.application.global;
        self.add(|cell| expansion(cell) + PACKET * traffic(loads, cell).sent);
        let own = self.times.clone();
        // The last packet of a neighbour comes when it has expanded all.
        self.wait_for_neighbours();
        let sent = std::mem::replace(&mut self.times, own);
        let check = if global { 0.0 } else { CHECK };
        self.add(|cell| {
            let Traffic { received, candidates, .. } = traffic(loads, cell);
            PACKET * received + check * candidates
        });
        self.times.iter_mut().zip(sent).for_each(|(time, sent)| *time = time.max(sent));
        if global {
            self.wait_for_all();
            self.add(|cell| CHECK * traffic(loads, cell).candidates);
        } else {
            self.wait_for_neighbours();
        }
    }
}

fn traffic(loads: &[Load], cell: usize) -> Traffic {
    let count = loads.len();
    let (own, left, right) =
        (&loads[cell], &loads[(cell + count - 1) % count], &loads[(cell + 1) % count]);
    let packets = |candidates: u32| f64::from(candidates.div_ceil(2));
    Traffic {
        sent: packets(own.left) + packets(own.right),
        received: packets(left.right) + packets(right.left),
        candidates: f64::from(left.right + right.left),
    }
}

/// The cycles that a growth takes, with those until the reduction that ends it.
#[must_use]
pub fn cycles(trace: &Trace, delta: usize) -> usize {
    trace.cycles().count().next_multiple_of(delta.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::wolff::Spins;
    use crate::growth::{Candidate, Heading, Stripes};

    const APPLICATION: Application = Application { site: 10.0, delta: 4, global: false };

    /// A trace on four cells in stripes of one column, side 8: one site, then its four neighbours.
    fn trace() -> Trace {
        let stripes = Stripes::new(8, 4, 1).unwrap();
        let at = |site, heading| Candidate { site, level: 0, heading, up: true };
        let mut trace = Trace::new::<Spins>(stripes);
        trace.add(&[at(8, Heading::North)]);
        trace.add(&[
            at(0, Heading::North),
            at(16, Heading::South),
            at(9, Heading::East),
            at(15, Heading::West),
        ]);
        trace
    }

    #[test]
    fn loads_are_those_of_the_owners() {
        let trace = trace();
        let cycles: Vec<&[Load]> = trace.cycles().collect();
        let load = |expanded, from_others, left, right| Load { expanded, from_others, left, right };
        let idle = Load::default();
        assert_eq!(cycles[0], [load(1, 0, 1, 1), idle, idle, idle]);
        assert_eq!(cycles[1], [load(2, 0, 2, 2), load(1, 1, 1, 1), idle, load(1, 1, 1, 1)]);
        assert_eq!(trace.packets(), [[2, 2], [1, 1], [0, 0], [1, 1]]);
        assert_eq!([1, 2, 4].map(|delta| super::cycles(&trace, delta)), [2, 2, 4]);
    }

    /// The times of three cycles with work and one without, worked out by hand for each scheme.
    #[test]
    fn times_are_those_worked_out_by_hand() {
        let mut trace = trace();
        trace.add(&[Candidate { site: 2, level: 2, heading: Heading::South, up: true }]);
        // Cell 0 is the last one up to the second cycle, cell 2 and then its neighbours in the
        // third.
        let price = |scheme| price(&trace, &APPLICATION, scheme);
        assert_eq!(price(Scheme::Ssr), 73.0);
        assert_eq!(price(Scheme::Amp), 71.0);
        assert_eq!(price(Scheme::Asr), 65.0);
        assert_eq!(price(Scheme::Am), 65.0);
        assert_eq!(price(Scheme::St), 65.0);
        let global = Application { global: true, ..APPLICATION };
        assert_eq!(super::price(&trace, &global, Scheme::Am), 77.0);
    }
}
