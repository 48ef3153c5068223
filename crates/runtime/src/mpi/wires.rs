//! The wires of a set: what the cells of one rank send and receive in each phase of an exchange,
//! as persistent requests over buffers of their own.
//!
//! In a phase, all that one cell sends to another is one message, its connections ascending and
//! each connection's words in the order of the operation lists; both ends derive that from the
//! image. Between cells of the same rank there is no message: the target reads the source's
//! buffer.
//!
//! An exchange of a cell is a state machine that never waits: [`Wires::begin`] packs and starts
//! the sends of the first phase; [`Wires::poll`] starts the sends of the next
//! phase when everything of the one before has been sent and received at this cell;
//! [`Wires::end`] hands out what has arrived, in the order of connection ids, so that sums do not
//! depend on what came first, and starts the receives of the next exchange at once: so nearly
//! every message finds its buffer, and MPI needs not keep it. Waiting in between is the caller's.
//!
//! A source packs its next exchange only after the targets on its own rank have read the last
//! ([`Wires::is_ready`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, Direction, Image, Operation, PhaseId,
};

use super::comm::Comm;
use super::error::MpiError;
use super::place::Placement;
use super::requests::{Message, Persistent};
use crate::port::By;

/// A run of a connection's words in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The connection's place among those of the cell that leave it, or that arrive at it.
    pub(super) slot: usize,
    /// The run's words among the connection's.
    pub(super) words: Range<usize>,
    /// Its place in the buffer.
    at: usize,
    /// For a run that arrives: the row of a source on the same rank, whose buffer it is in.
    from: Option<usize>,
}

/// Who sends or receives a message, for error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) direction: Direction,
    /// The cell at the other end.
    pub(super) cell: CellId,
    pub(super) phase: PhaseId,
}

/// The wires of one cell.
struct CellWires {
    /// By phase: where its receives and its sends lie among the requests.
    receives: Vec<Range<usize>>,
    sends: Vec<Range<usize>>,
    /// What each request is for.
    ends: Vec<Awaited>,
    /// By phase: rows of the sources on this rank.
    sources: Vec<Vec<usize>>,
    /// Rows of the targets on this rank.
    targets: Vec<usize>,
    /// In buffer order, and by connection and first word.
    departures: Vec<Run>,
    arrivals: Vec<Run>,
}

/// How far a cell is.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Exchanges begun, and exchanges ended.
    begun: u64,
    ended: u64,
    /// By phase: exchanges whose words of that phase were sent.
    sent: Vec<u64>,
    /// The phase under way; number of phases if all are done.
    phase: usize,
}

/// The wires of a set, for the cells of one rank.
pub(super) struct Wires {
    cells: Vec<CellWires>,
    requests: Vec<RefCell<Persistent>>,
    progress: RefCell<Vec<Progress>>,
}

/// Tags of persistent messages, handed out alike at both ends of every pair of ranks.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    /// Messages to and from each rank so far.
    sends: BTreeMap<usize, u64>,
    receives: BTreeMap<usize, u64>,
    first: u64,
    limit: u64,
}

impl Tags {
    pub(super) fn new(first: u64, limit: i32) -> Self {
        Self { sends: BTreeMap::new(), receives: BTreeMap::new(), first, limit: limit as u64 }
    }

    /// The first of some tags for messages to or from a rank.
    fn next(&mut self, direction: Direction, rank: usize, count: u64) -> Result<i32, MpiError> {
        let next = match direction {
            Direction::Send => self.sends.entry(rank).or_default(),
            Direction::Receive => self.receives.entry(rank).or_default(),
        };
        let first = self.first + *next;
        *next += count;
        let last = first + count;
        if last > self.limit {
            let what = "tags of messages between two ranks";
            return Err(MpiError::Limit { what, found: last, limit: self.limit });
        }
        Ok(first as i32)
    }
}

/// All that a cell sends to another in a phase.
struct Bundle {
    phase: usize,
    source: CellId,
    target: CellId,
    /// By connection, in the order of the operation list.
    operations: Vec<Operation>,
    /// Where the other end is: its rank, and its row there.
    rank: usize,
    row: usize,
    /// The tag of its first message, if the other end is on another rank.
    tag: i32,
}

impl Bundle {
    fn words(&self) -> usize {
        self.operations.iter().map(|operation| operation.words as usize).sum()
    }

    /// Words of each message but the last. Up to about 4 KB MPI libraries send at once; above they
    /// ask the target first, which takes longer than some more messages do.
    fn piece(&self) -> usize {
        const PIECE: usize = 480;
        const PIECES: usize = 8;
        if self.words() <= PIECES * PIECE { PIECE } else { self.words() }
    }

    fn end(&self, direction: Direction) -> Awaited {
        let cell = if direction == Direction::Send { self.target } else { self.source };
        Awaited { direction, cell, phase: PhaseId::from_index(self.phase) }
    }
}

/// The operations of a cell in each phase of a set; by messages there is one phase, and an
/// operation for each connection.
fn operations(
    (image, set, by): (&Image, usize, By),
    cell: CellId,
    direction: Direction,
) -> Vec<Vec<Operation>> {
    let set = &image.sets()[set];
    if by == By::Phases {
        return set.phases.iter().map(|phase| phase.cell(cell).operations.to_vec()).collect();
    }
    let end = |connection: &Connection| match direction {
        Direction::Send => connection.source,
        Direction::Receive => connection.target,
    };
    let own = set.set.iter().filter(|(_, connection)| end(connection) == cell);
    let whole = own.map(|(id, connection)| Operation {
        direction,
        connection: id,
        channel: ChannelId(0),
        words: connection.words,
        first_word: 0,
        start: 0,
    });
    vec![whole.collect()]
}

/// What a cell sends or receives in a set, by phase, source and target.
fn bundles(
    what: (&Image, usize, By),
    placement: &Placement,
    cell: CellId,
    direction: Direction,
) -> Vec<Bundle> {
    let set = &what.0.sets()[what.1];
    let mut bundles = Vec::new();
    for (phase, operations) in operations(what, cell, direction).iter().enumerate() {
        let mut by_pair: BTreeMap<(CellId, CellId), Vec<Operation>> = BTreeMap::new();
        for operation in operations {
            if operation.direction == direction && operation.words > 0 {
                let connection = set.set.get(operation.connection);
                let pair = (connection.source, connection.target);
                by_pair.entry(pair).or_default().push(*operation);
            }
        }
        for ((source, target), mut operations) in by_pair {
            operations.sort_by_key(|operation| operation.connection);
            let other = if direction == Direction::Send { target } else { source };
            let (rank, row) = placement.find(other).expect("ends of connections are live");
            bundles.push(Bundle { phase, source, target, operations, rank, row, tag: -1 });
        }
    }
    bundles
}

/// The bundles of all cells of this rank, with tags given in an order that both ends know.
fn tagged_bundles(
    what: (&Image, usize, By),
    placement: &Placement,
    (own, tags): (usize, &mut Tags),
    direction: Direction,
) -> Result<Vec<Vec<Bundle>>, MpiError> {
    let cells = placement.of_rank(own).iter();
    let mut all: Vec<Vec<Bundle>> =
        cells.map(|&cell| bundles(what, placement, cell, direction)).collect();
    let mut order: Vec<&mut Bundle> = all.iter_mut().flatten().collect();
    order.sort_by_key(|bundle| (bundle.phase, bundle.source, bundle.target));
    for bundle in order {
        if bundle.rank != own {
            let pieces = bundle.words().div_ceil(bundle.piece());
            bundle.tag = tags.next(direction, bundle.rank, pieces as u64)?;
        }
    }
    Ok(all)
}

/// Messages while wires are laid, and what each is for.
#[derive(Default)]
struct Messages {
    messages: Vec<Message>,
    ends: Vec<Awaited>,
    /// By phase: where its messages lie. Empty and at 0 for a phase without any.
    ranges: Vec<Range<usize>>,
    /// Words of the buffer.
    room: usize,
}

impl Messages {
    fn push(&mut self, bundle: &Bundle, direction: Direction) {
        let (begin, end) = (self.room, self.room + bundle.words());
        let pieces = (begin..end).step_by(bundle.piece()).zip(bundle.tag..);
        for (from, tag) in pieces {
            let at = self.messages.len();
            let range = &mut self.ranges[bundle.phase];
            *range = if *range == (0..0) { at..at + 1 } else { range.start..at + 1 };
            let words = from..(from + bundle.piece()).min(end);
            self.messages.push(Message { words, rank: bundle.rank, tag });
            self.ends.push(bundle.end(direction));
        }
    }
}

/// Where the words of a phase and connection begin in the buffer of their source, for sources on
/// this rank.
type Local = BTreeMap<(usize, ConnectionId), usize>;

/// What leaves a cell: messages, runs in buffer order, and rows of targets on this rank.
fn lay_sends(
    own: usize,
    phases: usize,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &mut Local,
) -> (Messages, Vec<Run>, Vec<usize>) {
    let mut messages = Messages { ranges: vec![0..0; phases], ..Messages::default() };
    let (mut runs, mut targets) = (Vec::new(), Vec::new());
    for bundle in bundles {
        if bundle.rank == own {
            targets.push(bundle.row);
        } else {
            messages.push(bundle, Direction::Send);
        }
        for operation in &bundle.operations {
            if bundle.rank == own {
                local.entry((bundle.phase, operation.connection)).or_insert(messages.room);
            }
            runs.push(run(operation, connections, messages.room, None));
            messages.room += operation.words as usize;
        }
    }
    targets.sort_unstable();
    targets.dedup();
    (messages, runs, targets)
}

/// What arrives at a cell: messages; runs by connection and first word; and by phase the rows of
/// sources on this rank.
fn lay_receives(
    own: usize,
    phases: usize,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &Local,
) -> (Messages, Vec<Run>, Vec<Vec<usize>>) {
    let mut messages = Messages { ranges: vec![0..0; phases], ..Messages::default() };
    let (mut runs, mut sources) = (Vec::new(), vec![Vec::new(); phases]);
    for bundle in bundles {
        if bundle.rank != own {
            messages.push(bundle, Direction::Receive);
            for operation in &bundle.operations {
                runs.push(run(operation, connections, messages.room, None));
                messages.room += operation.words as usize;
            }
            continue;
        }
        sources[bundle.phase].push(bundle.row);
        let mut next: BTreeMap<ConnectionId, usize> = BTreeMap::new();
        for operation in &bundle.operations {
            let begin = || local[&(bundle.phase, operation.connection)];
            let at = next.entry(operation.connection).or_insert_with(begin);
            runs.push(run(operation, connections, *at, Some(bundle.row)));
            *at += operation.words as usize;
        }
    }
    runs.sort_by_key(|run| (run.slot, run.words.start));
    (messages, runs, sources)
}

fn run(operation: &Operation, connections: &[ConnectionId], at: usize, from: Option<usize>) -> Run {
    let slot = connections.binary_search(&operation.connection);
    let first = operation.first_word as usize;
    let words = first..first + operation.words as usize;
    Run { slot: slot.expect("the operation is of an end of the connection"), words, at, from }
}

/// The connections of a cell, ascending.
pub(super) type Connections<'a> = &'a dyn Fn(CellId) -> &'a [ConnectionId];

impl Wires {
    /// Lays the wires of a set for the cells of this rank, given the connections that leave a
    /// cell and those that arrive at it. The image must have been checked: in every phase as many
    /// words of a connection are sent as received ([`unsound`]).
    pub(super) fn new(
        comm: &Comm,
        placement: &Placement,
        tags: &mut Tags,
        what: (&Image, usize, By),
        (out, inn): (Connections<'_>, Connections<'_>),
    ) -> Result<Self, MpiError> {
        let own = comm.rank();
        let cells = placement.of_rank(own);
        let phases = match what.2 {
            By::Phases => what.0.sets()[what.1].phases.len(),
            By::Messages => 1,
        };
        let leaving = tagged_bundles(what, placement, (own, tags), Direction::Send)?;
        let arriving = tagged_bundles(what, placement, (own, tags), Direction::Receive)?;
        let mut local = Local::new();
        let sends: Vec<_> = cells
            .iter()
            .zip(&leaving)
            .map(|(&cell, bundles)| lay_sends(own, phases, bundles, out(cell), &mut local))
            .collect();
        let mut wires = Self { cells: vec![], requests: vec![], progress: RefCell::default() };
        for ((&cell, bundles), (sends, departures, targets)) in
            cells.iter().zip(&arriving).zip(sends)
        {
            let (receives, arrivals, sources) =
                lay_receives(own, phases, bundles, inn(cell), &local);
            let requests = Persistent::new(
                comm,
                (&receives.messages, receives.room),
                (&sends.messages, sends.room),
            )?;
            let first = requests.receives();
            let shift = |range: &Range<usize>| range.start + first..range.end + first;
            wires.requests.push(RefCell::new(requests));
            wires.cells.push(CellWires {
                receives: receives.ranges,
                sends: sends.ranges.iter().map(shift).collect(),
                ends: receives.ends.into_iter().chain(sends.ends).collect(),
                sources,
                targets,
                departures,
                arrivals,
            });
            let progress = Progress { sent: vec![0; phases], ..Progress::default() };
            wires.progress.get_mut().push(progress);
        }
        Ok(wires)
    }

    /// Whether a cell can begin: it has ended its last exchange, and the targets on its rank have
    /// read what it sent them.
    pub(super) fn is_ready(&self, row: usize) -> bool {
        let progress = self.progress.borrow();
        let Progress { begun, ended, .. } = progress[row];
        let read = |&target: &usize| progress[target].ended >= begun;
        ended == begun && self.cells[row].targets.iter().all(read)
    }

    /// Begins an exchange of a cell that is ready. `fill` is called for every run that leaves, in
    /// buffer order.
    pub(super) fn begin(
        &self,
        row: usize,
        mut fill: impl FnMut(&Run, &mut [u64]),
    ) -> Result<(), MpiError> {
        let wires = &self.cells[row];
        let requests = &mut *self.requests[row].borrow_mut();
        if !requests.is_receiving() {
            requests.start(0..requests.receives())?;
        }
        let buffer = requests.outgoing();
        for run in &wires.departures {
            fill(run, &mut buffer[run.at..run.at + run.words.len()]);
        }
        let progress = &mut self.progress.borrow_mut()[row];
        progress.begun += 1;
        progress.phase = 0;
        if let Some(sends) = wires.sends.first() {
            requests.start(sends.clone())?;
        }
        if let Some(sent) = progress.sent.first_mut() {
            *sent = progress.begun;
        }
        Ok(())
    }

    /// Goes on with a cell's exchange as far as it can at once; whether everything was sent and
    /// received.
    pub(super) fn poll(&self, row: usize, tries: u32) -> Result<bool, MpiError> {
        let wires = &self.cells[row];
        let requests = &mut *self.requests[row].borrow_mut();
        let progress = &mut *self.progress.borrow_mut();
        loop {
            let phase = progress[row].phase;
            if phase == wires.sends.len() {
                requests.rest();
                return Ok(true);
            }
            let begun = progress[row].begun;
            let local = |&source: &usize| progress[source].sent[phase] >= begun;
            let (receives, sends) = (&wires.receives[phase], &wires.sends[phase]);
            let done =
                requests.test(receives.clone(), tries)? && requests.test(sends.clone(), tries)?;
            if !done || !wires.sources[phase].iter().all(local) {
                return Ok(false);
            }
            progress[row].phase = phase + 1;
            if let Some(sends) = wires.sends.get(phase + 1) {
                requests.start(sends.clone())?;
                progress[row].sent[phase + 1] = begun;
            }
        }
    }

    /// Ends an exchange of a cell whose [`Wires::poll`] is done: `read` is called for every run
    /// that has arrived, by connection and first word.
    pub(super) fn end(
        &self,
        row: usize,
        mut read: impl FnMut(&Run, &[u64]),
    ) -> Result<(), MpiError> {
        let own = self.requests[row].borrow();
        let arrived = own.incoming();
        for run in &self.cells[row].arrivals {
            let words = run.at..run.at + run.words.len();
            match run.from {
                None => read(run, &arrived[words]),
                Some(source) => read(run, &self.requests[source].borrow().sent()[words]),
            }
        }
        drop(own);
        let progress = &mut self.progress.borrow_mut()[row];
        progress.ended = progress.begun;
        let requests = &mut *self.requests[row].borrow_mut();
        requests.start(0..requests.receives())
    }

    /// Nothing will be exchanged any more: gives up the receives that wait for it.
    pub(super) fn close(&self) -> Result<(), MpiError> {
        self.requests.iter().try_for_each(|requests| requests.borrow_mut().cancel())
    }

    /// Rows of the cells on this rank that have not read what a cell sent them last.
    pub(super) fn readers(&self, row: usize) -> Vec<usize> {
        let progress = self.progress.borrow();
        let begun = progress[row].begun;
        let targets = self.cells[row].targets.iter().copied();
        targets.filter(|&target| progress[target].ended < begun).collect()
    }

    /// Whom a cell waits for.
    pub(super) fn awaited(&self, row: usize, cells: &[CellId]) -> Vec<Awaited> {
        let wires = &self.cells[row];
        let progress = self.progress.borrow();
        let Progress { begun, phase, .. } = progress[row];
        if phase == wires.sends.len() {
            return Vec::new();
        }
        let requests = self.requests[row].borrow();
        let mut at = requests.unfinished(wires.receives[phase].clone());
        at.extend(requests.unfinished(wires.sends[phase].clone()));
        let mut awaited: Vec<Awaited> = at.into_iter().map(|at| wires.ends[at]).collect();
        for &source in &wires.sources[phase] {
            if progress[source].sent[phase] < begun {
                awaited.push(Awaited {
                    direction: Direction::Receive,
                    cell: cells[source],
                    phase: PhaseId::from_index(phase),
                });
            }
        }
        awaited
    }
}

/// A phase and connection of which a set's image sends other words than it receives, with their
/// numbers.
pub(super) fn unsound(image: &Image, set: usize) -> Option<(PhaseId, ConnectionId, u64, u64)> {
    for (phase, tables) in image.sets()[set].phases.iter().enumerate() {
        let mut moved: BTreeMap<ConnectionId, (u64, u64)> = BTreeMap::new();
        for operation in tables.cells().flat_map(|(_, context)| context.operations) {
            let (sent, received) = moved.entry(operation.connection).or_default();
            match operation.direction {
                Direction::Send => *sent += u64::from(operation.words),
                Direction::Receive => *received += u64::from(operation.words),
            }
        }
        let wrong = moved.into_iter().find(|(_, (sent, received))| sent != received);
        if let Some((connection, (sent, received))) = wrong {
            return Some((PhaseId::from_index(phase), connection, sent, received));
        }
    }
    None
}
