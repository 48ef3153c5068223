//! Transfers: when both ends of each stream or message were open, from a trace or the cost model.
//!
//! Clocks count from the end of the phase's context switch. For each end there are also the clocks
//! that follow from counts alone: those of set-up or software, and those in which words move.

use std::collections::HashMap;

use conset_fabric::messages::MessageRoutes;
use conset_fabric::trace::StreamSpan;
use conset_fabric::{PhaseReport, Trace};
use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ConnectionId, Direction, Duplex, LinkId, Machine, Parameters, PhaseId, Protocol, Steps,
    Timetable, step_suppliers,
};
use conset_scheduler::Prediction;
use conset_scheduler::predict::stream_times;
use conset_scheduler::steps::predict_times;

use super::{PortSide, side_of};

/// The rules by which words are transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Streams of a phase.
    Streams,
    /// Messages that leave at once.
    Standing,
    /// Messages that leave when their receiver asks for them; with half duplex a cell does one thing
    /// at a time.
    Rendezvous { half_duplex: bool },
}

impl Transport {
    pub(super) fn of_messages(parameters: &Parameters) -> Self {
        match parameters.protocol {
            Protocol::Standing => Self::Standing,
            Protocol::Rendezvous => {
                Self::Rendezvous { half_duplex: parameters.duplex == Duplex::Half }
            }
        }
    }
}

/// The ports of a machine: one or two for each cell with an agent.
#[derive(Clone, Debug)]
pub(super) struct PortLayout {
    cells: Vec<CellId>,
    /// The place of each cell in `cells`.
    places: Vec<u32>,
    both: bool,
}

impl PortLayout {
    pub(super) fn new(machine: &Machine, transport: Transport) -> Self {
        let both = match transport {
            Transport::Streams => machine.parameters().duplex == Duplex::Half,
            Transport::Standing => false,
            Transport::Rendezvous { half_duplex } => half_duplex,
        };
        let cells: Vec<CellId> = machine.endpoints().collect();
        let mut places = vec![0; machine.cell_count()];
        for (place, cell) in (0..).zip(&cells) {
            places[cell.index()] = place;
        }
        Self { cells, places, both }
    }

    /// Every port, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = (CellId, PortSide)> + '_ {
        let directions =
            if self.both { &[Direction::Send][..] } else { &[Direction::Send, Direction::Receive] };
        self.cells.iter().flat_map(move |&cell| {
            directions.iter().map(move |&direction| (cell, side_of(direction, self.both)))
        })
    }

    pub(super) fn count(&self) -> usize {
        self.cells.len() * if self.both { 1 } else { 2 }
    }

    /// The number of the port of a cell for one direction.
    pub(super) fn port(&self, cell: CellId, direction: Direction) -> usize {
        let place = index(self.places[cell.index()]);
        match (self.both, direction) {
            (true, _) => place,
            (false, Direction::Send) => 2 * place,
            (false, Direction::Receive) => 2 * place + 1,
        }
    }

    pub(super) fn side(&self, direction: Direction) -> PortSide {
        side_of(direction, self.both)
    }
}

/// One end of a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) cell: CellId,
    /// When it was opened.
    pub(super) open: u64,
    /// When its last word was sent or received.
    pub(super) close: u64,
    /// Clocks of set-up or software, from `open` on.
    pub(super) setup: u64,
    /// Clocks in which it moves words.
    pub(super) moving: u64,
    /// Clocks after `close` in which the port copies the words.
    pub(super) copying: u64,
    /// The clocks in which it waits for the other end.
    pub(super) waits: (u64, u64),
}

impl End {
    /// When the port is free of it.
    pub(super) fn free(&self) -> u64 {
        self.close.saturating_add(self.copying)
    }
}

/// A stream or a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) connection: ConnectionId,
    pub(super) first_word: u32,
    pub(super) words: u32,
    pub(super) send: End,
    pub(super) receive: End,
    /// Of a message that waits at its target: when it arrived.
    pub(super) arrived: Option<u64>,
}

impl Transfer {
    pub(super) fn end(&self, direction: Direction) -> &End {
        match direction {
            Direction::Send => &self.send,
            Direction::Receive => &self.receive,
        }
    }
}

/// The transfers of a phase.
#[derive(Clone, Debug)]
pub(super) struct PhaseTransfers {
    pub(super) phase: PhaseId,
    /// Clocks of its context switch.
    pub(super) switch: u64,
    /// Clocks from the end of the switch to the end of the phase.
    pub(super) clocks: u64,
    pub(super) transfers: Vec<Transfer>,
    /// The transfer that must be received before another one is sent, beside the set's order: it
    /// brings what the other one passes on.
    pub(super) suppliers: Vec<(u32, u32)>,
    /// With timed starts, the links of each transfer: the plan keeps streams apart on links.
    pub(super) links: Vec<Vec<LinkId>>,
}

/// The ends of a stream, with the clocks that follow from its words.
fn stream(
    machine: &Machine,
    ends: [(CellId, u64, u64); 2],
    connection: ConnectionId,
    (first_word, words): (u32, u32),
) -> Transfer {
    let parameters = machine.parameters();
    let overhead = machine.network_overhead(ends[0].0, ends[1].0);
    let setup = u64::from(parameters.stream_setup) + u64::from(overhead);
    let moving = u64::from(words) * u64::from(parameters.access_clocks_per_word);
    let opens = ends.map(|end| end.1);
    let end = |(cell, open, close): (CellId, u64, u64), other: u64| {
        // The other end can move words when it is open and set up.
        let waits = (open, other.saturating_add(setup).clamp(open, close));
        End { cell, open, close, setup, moving, copying: 0, waits }
    };
    let [send, receive] = ends;
    Transfer {
        connection,
        first_word,
        words,
        send: end(send, opens[1]),
        receive: end(receive, opens[0]),
        arrived: None,
    }
}

/// The streams of all phases of a traced run, which began at clock 0.
pub(super) fn of_streams(
    machine: &Machine,
    trace: &Trace,
    reports: &[PhaseReport],
) -> Vec<PhaseTransfers> {
    let mut start = 0;
    let mut starts = Vec::with_capacity(reports.len());
    let mut phases: Vec<PhaseTransfers> = reports
        .iter()
        .map(|report| {
            starts.push(start + report.switch);
            start += report.switch + report.clocks;
            let PhaseReport { phase, switch, clocks, .. } = *report;
            let (transfers, suppliers, links) = (Vec::new(), Vec::new(), Vec::new());
            PhaseTransfers { phase, switch, clocks, transfers, suppliers, links }
        })
        .collect();
    for transfer in trace.transfers() {
        let (send, receive) = (transfer.send, transfer.receive);
        let phase = send.phase.index();
        let ends = [send, receive]
            .map(|span| (span.cell, span.open - starts[phase], span.close - starts[phase]));
        let words = (send.first_word, send.words);
        phases[phase].transfers.push(stream(machine, ends, send.connection, words));
    }
    phases
}

/// The streams of all phases by the cost model, at whole clocks.
pub(super) fn of_model(timetable: &Timetable, prediction: &Prediction) -> Vec<PhaseTransfers> {
    let routing = timetable.routing();
    let (machine, set) = (routing.machine(), routing.set());
    let mut assigned = vec![0u32; set.len()];
    let times = stream_times(timetable);
    let phases = routing.iter().zip(&prediction.phases).zip(times);
    phases
        .map(|(((phase, routes), predicted), times)| {
            let transfers = routes.iter().zip(times).map(|(route, times)| {
                let connection = set.get(route.connection);
                let first = &mut assigned[route.connection.index()];
                let words = (*first, route.words);
                *first += route.words;
                let last = predicted.clocks;
                let clip = |open: u64, close: u64| (open.min(last), close.min(last));
                let (sent, received) =
                    (clip(times.send_open, times.sent), clip(times.receive_open, times.received));
                let ends = [
                    (connection.source, sent.0, sent.1),
                    (connection.target, received.0, received.1),
                ];
                stream(machine, ends, route.connection, words)
            });
            let (switch, clocks) = (predicted.switch, predicted.clocks);
            let (transfers, suppliers, links) = (transfers.collect(), Vec::new(), Vec::new());
            PhaseTransfers { phase, switch, clocks, transfers, suppliers, links }
        })
        .collect()
}

/// Adds the links of each stream on a machine with timed starts.
pub(super) fn with_links(
    timetable: &Timetable,
    mut phases: Vec<PhaseTransfers>,
) -> Vec<PhaseTransfers> {
    let routing = timetable.routing();
    if !routing.machine().parameters().has_timed_starts() {
        return phases;
    }
    let mut assigned = vec![0u32; routing.set().len()];
    for (phase, routes) in phases.iter_mut().zip(routing.phases()) {
        let mut places = HashMap::new();
        for (row, transfer) in phase.transfers.iter().enumerate() {
            places.insert((transfer.connection, transfer.first_word), row);
        }
        phase.links = vec![Vec::new(); phase.transfers.len()];
        for route in routes.iter() {
            let first = &mut assigned[route.connection.index()];
            if let Some(&row) = places.get(&(route.connection, *first)) {
                phase.links[row] = route.links().to_vec();
            }
            *first += route.words;
        }
    }
    phases
}

/// The trace that a step plan has by the cost model; `None` if a message has no route.
pub(super) fn predicted_trace(steps: &Steps) -> Option<Trace> {
    let machine = steps.machine();
    let mut routes = MessageRoutes::new(machine);
    let mut missing = false;
    let mut route = |source: CellId, target: CellId, links: &mut Vec<LinkId>| {
        missing |= !routes.links(source, target, links);
    };
    let times = predict_times(steps, machine.parameters().protocol, &mut route);
    let messages = steps.messages().iter().zip(times).enumerate();
    let spans = messages.flat_map(|(row, (message, times))| {
        let span = |cell, direction, (open, close), arrived| StreamSpan {
            set: 0,
            phase: PhaseId(0),
            cell,
            direction,
            connection: ConnectionId(to_u32(row)),
            first_word: 0,
            words: to_u32(message.words()),
            slot: 0,
            open,
            close,
            arrived,
        };
        let (sent, received) =
            ((times.send_open, times.sent), (times.receive_open, times.received));
        [
            span(message.source, Direction::Send, sent, None),
            span(message.target, Direction::Receive, received, Some(times.arrived)),
        ]
    });
    let streams = spans.collect();
    (!missing).then(|| Trace { streams, ..Trace::default() })
}

/// The messages of a traced run, with the words that a plan passes on.
pub(super) fn of_messages(
    machine: &Machine,
    trace: &Trace,
    clocks: u64,
    steps: Option<&Steps>,
) -> PhaseTransfers {
    let p = machine.parameters();
    let transport = Transport::of_messages(p);
    let [access, link] = [p.access_clocks_per_word, p.link_clocks_per_word].map(u64::from);
    let buffered = transport == Transport::Standing && p.duplex == Duplex::Half;
    let mut rows = HashMap::new();
    let mut transfers = Vec::new();
    for pair in trace.transfers() {
        let words = pair.send.words;
        // A message has at least its header.
        let length = u64::from(words.saturating_add(p.message_extra_words).max(1));
        let (sent, received) = (pair.send, pair.receive);
        let row = sent.connection;
        let overhead = u64::from(machine.network_overhead(sent.cell, received.cell));
        let [send, receive] = [p.c_send, p.c_receive].map(|clocks| u64::from(clocks) + overhead);
        let copying = match (steps, transport) {
            (Some(steps), Transport::Rendezvous { .. }) => steps.copy_clocks(row.index()),
            _ => 0,
        };
        let (software, rates, waits) = match transport {
            Transport::Rendezvous { .. } => ([send + receive; 2], [access; 2], (0, 0)),
            _ => {
                let copies = if buffered { u64::from(words) * link } else { 0 };
                // It stands at its target until the receiver's software has run.
                let waits = (received.arrived.unwrap_or(received.open), received.open + receive);
                ([send + copies, receive], [if buffered { link } else { access }, access], waits)
            }
        };
        let end = |span: StreamSpan, side: usize, waits: (u64, u64)| End {
            cell: span.cell,
            open: span.open,
            close: span.close,
            setup: software[side],
            moving: length * rates[side],
            copying: if side == 1 { copying } else { 0 },
            waits: (waits.0.clamp(span.open, span.close), waits.1.clamp(span.open, span.close)),
        };
        rows.insert(row, to_u32(transfers.len()));
        transfers.push(Transfer {
            connection: row,
            first_word: 0,
            words,
            send: end(sent, 0, waits),
            receive: end(received, 1, (received.open, received.open)),
            arrived: match transport {
                Transport::Standing => received.arrived,
                _ => None,
            },
        });
    }
    let suppliers = steps.map(step_suppliers).unwrap_or_default();
    let place = |row: u32| rows.get(&ConnectionId(row)).copied();
    let suppliers = suppliers
        .into_iter()
        .filter_map(|(supplier, message)| Some((place(supplier)?, place(message)?)))
        .collect();
    PhaseTransfers { phase: PhaseId(0), switch: 0, clocks, transfers, suppliers, links: Vec::new() }
}
