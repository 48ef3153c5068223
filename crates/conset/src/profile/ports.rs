//! The clocks of each port in a phase, from the intervals in which its streams were open.
//!
//! The events of a port are swept in the order of time. What is counted: the union of the open
//! intervals, and in it the clocks in which all open streams wait for their other ends and nothing is
//! being set up ([`super`] has the definitions).

use conset_ir::Direction;

use super::transfers::{End, PhaseTransfers, PortLayout, Transport};
use super::{ClocksOf, PortClocks, PortProfile};

/// The clocks of every port in a phase.
pub(super) fn of_phase(
    phase: &PhaseTransfers,
    transport: Transport,
    layout: &PortLayout,
    clocks_of: ClocksOf,
) -> Vec<PortProfile> {
    let mut ends: Vec<Vec<(Direction, &End)>> = vec![Vec::new(); layout.count()];
    for transfer in &phase.transfers {
        for direction in [Direction::Send, Direction::Receive] {
            let end = transfer.end(direction);
            ends[layout.port(end.cell, direction)].push((direction, end));
        }
    }
    let ports = layout.ports().zip(&ends);
    ports
        .map(|((cell, side), ends)| {
            let clocks = of_port(ends, phase.clocks, transport, clocks_of);
            PortProfile { cell, side, clocks: PortClocks { switch: phase.switch, ..clocks } }
        })
        .collect()
}

/// What changes at an event of a port.
#[derive(Clone, Copy)]
enum Count {
    Open,
    Waiting,
    SettingUp,
}

/// The clocks of a port that has these ends in a phase of `clocks` clocks.
fn of_port(
    ends: &[(Direction, &End)],
    clocks: u64,
    transport: Transport,
    clocks_of: ClocksOf,
) -> PortClocks {
    let mut port = PortClocks::default();
    let mut events = Vec::with_capacity(6 * ends.len());
    let mut setup = 0;
    for (direction, end) in ends {
        setup += end.setup;
        port.copying += end.copying;
        match direction {
            Direction::Send => port.sending += end.moving,
            Direction::Receive => port.receiving += end.moving,
        }
        let opening = end.open.saturating_add(end.setup).min(end.close);
        let intervals = [
            (Count::Open, end.open, end.free()),
            (Count::Waiting, end.waits.0, end.waits.1),
            (Count::SettingUp, end.open, opening),
        ];
        for (count, from, to) in intervals.into_iter().filter(|(_, from, to)| from < to) {
            events.push((from, 1i64, count));
            events.push((to, -1, count));
        }
    }
    match transport {
        Transport::Streams => port.setup = setup,
        _ => port.software = setup,
    }
    events.sort_unstable_by_key(|event| event.0);

    let (mut open, mut waiting, mut last) = (0u64, 0u64, 0u64);
    let mut counts = [0i64; 3];
    let mut now = 0;
    for (clock, change, count) in events {
        let [streams, waits, opening] = counts;
        if streams > 0 {
            open += clock - now;
            if waits == streams && opening == 0 {
                waiting += clock - now;
            }
        }
        let row = match count {
            Count::Open => 0,
            Count::Waiting => 1,
            Count::SettingUp => 2,
        };
        counts[row] += change;
        now = clock;
        last = last.max(clock);
    }
    let busy = setup + port.copying + port.sending + port.receiving;
    let stalled = open.saturating_sub(busy);
    port.partner = waiting.min(stalled);
    port.link = stalled - port.partner;
    let mut gaps = last - open;
    port.end = clocks.saturating_sub(last);
    if clocks_of == ClocksOf::Model {
        // These times are rounded: a port may be busy a clock longer than its streams are open.
        let missing = busy.saturating_sub(open);
        let from_gaps = missing.min(gaps);
        gaps -= from_gaps;
        port.end = port.end.saturating_sub(missing - from_gaps);
    }
    match (transport, ends.iter().all(|(direction, _)| *direction == Direction::Receive)) {
        // It waits for the other cell to be free, or for a message to arrive.
        (Transport::Rendezvous { .. }, _) | (Transport::Standing, true) => {
            port.partner += gaps;
        }
        _ => port.start = gaps,
    }
    port
}
