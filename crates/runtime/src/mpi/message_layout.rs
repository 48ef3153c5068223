//! The messages of an exchange: their places in buffers, their order and their tags, derived from
//! the image identically at both ends.
//!
//! In a phase, everything that one cell sends to another is one message: its connections ascending,
//! and the words of each connection in the order of the operation lists. Some messages of medium
//! length are sent in pieces. A message begins with a head of one word. Every set has its own tags,
//! and so has each of a few consecutive runs: messages of another set, or of a run that failed, are
//! never mistaken.

use std::collections::BTreeMap;
use std::ops::Range;

use conset_ir::convert::{index, to_u64};
use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, Direction, Image, Operation, PhaseId,
};

use super::ffi::to_c_int;
use super::rank_map::RankMap;
use super::raw_requests::MessageSpec;
use crate::error::MpiError;
use crate::port::By;

/// A run of a connection's words in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordRun {
    /// The connection's place among those of the cell that leave it, or that arrive at it.
    pub(super) slot: usize,
    /// The run's words among the connection's.
    pub(super) words: Range<usize>,
    /// Its place in the buffer.
    pub(super) at: usize,
    /// For a run that arrives: the row of a source on the same rank, whose buffer it is in.
    pub(super) from: Option<usize>,
}

/// The other end of a message, for error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) direction: Direction,
    /// The cell at the other end.
    pub(super) cell: CellId,
    pub(super) phase: PhaseId,
}

/// TagAllocator of a set's messages, handed out alike at both ends of every pair of ranks.
#[derive(Clone, Debug)]
pub(super) struct TagAllocator {
    /// Messages to and from each rank so far.
    sends: BTreeMap<usize, u64>,
    receives: BTreeMap<usize, u64>,
    range: Range<u64>,
}

impl TagAllocator {
    /// The tags of a part of all there are from `first` on to `limit`: of the `part`-th of `parts`.
    pub(super) fn new((first, limit): (u64, u64), part: u64, parts: u64) -> Self {
        let count = (limit - first) / parts;
        let first = first + part * count;
        let range = first..first + count;
        Self { sends: BTreeMap::new(), receives: BTreeMap::new(), range }
    }

    /// The first of some tags for messages to or from a rank.
    fn next(&mut self, direction: Direction, rank: usize, count: u64) -> Result<i32, MpiError> {
        let next = match direction {
            Direction::Send => self.sends.entry(rank).or_default(),
            Direction::Receive => self.receives.entry(rank).or_default(),
        };
        let first = self.range.start + *next;
        *next += count;
        let limit = self.range.end - self.range.start;
        if *next > limit {
            let what = "messages of a set between two ranks";
            return Err(MpiError::Limit { what, found: *next, limit });
        }
        Ok(to_c_int(first))
    }
}

/// Words of a message that MPI libraries send at once, whatever the target does: about 4 KB. One of
/// them is the head.
const SHORT: usize = 481;

/// All that a cell sends to another in a phase.
pub(super) struct Bundle {
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
        self.operations.iter().map(|operation| index(operation.words)).sum()
    }

    /// Words of its messages together: a head comes first, which says of which call of the source
    /// they are ([`super::persistent_requests`]).
    fn length(&self) -> usize {
        self.words() + 1
    }

    /// Words of each message but the last. Short ones libraries send at once; before long ones they
    /// ask the target, which takes longer than some more messages do.
    fn piece(&self) -> usize {
        const PIECES: usize = 8;
        if self.length() <= PIECES * SHORT { SHORT } else { self.length() }
    }

    fn end(&self, direction: Direction) -> Peer {
        let cell = if direction == Direction::Send { self.target } else { self.source };
        Peer { direction, cell, phase: PhaseId::from_index(self.phase) }
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
    rank_map: &RankMap,
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
            let (rank, row) = rank_map.find(other).expect("ends of connections are live");
            bundles.push(Bundle { phase, source, target, operations, rank, row, tag: -1 });
        }
    }
    // Long ones first, because other cells may wait for them.
    bundles.sort_by_key(|bundle| (bundle.phase, bundle.piece() == SHORT));
    bundles
}

/// The bundles of all cells of this rank, with tags given in an order that both ends know.
pub(super) fn tagged_bundles(
    what: (&Image, usize, By),
    rank_map: &RankMap,
    (own, tags): (usize, &mut TagAllocator),
    direction: Direction,
) -> Result<Vec<Vec<Bundle>>, MpiError> {
    let cells = rank_map.cells_of(own).iter();
    let mut all: Vec<Vec<Bundle>> =
        cells.map(|&cell| bundles(what, rank_map, cell, direction)).collect();
    let mut order: Vec<&mut Bundle> = all.iter_mut().flatten().collect();
    order.sort_by_key(|bundle| (bundle.phase, bundle.source, bundle.target));
    for bundle in order {
        if bundle.rank != own {
            let pieces = bundle.length().div_ceil(bundle.piece());
            bundle.tag = tags.next(direction, bundle.rank, to_u64(pieces))?;
        }
    }
    Ok(all)
}

/// Messages while wires are laid, and what each is for.
#[derive(Default)]
pub(super) struct Messages {
    /// Phase by phase.
    pub(super) messages: Vec<MessageSpec>,
    pub(super) ends: Vec<Peer>,
    /// Where heads are in the buffer, and the cell at the other end.
    pub(super) heads: Vec<(usize, CellId)>,
    /// Words of the buffer.
    pub(super) room: usize,
}

impl Messages {
    /// The messages of a bundle; the buffer then has room for their head.
    fn push(&mut self, bundle: &Bundle, direction: Direction) {
        let (begin, end) = (self.room, self.room + bundle.length());
        let pieces = (begin..end).step_by(bundle.piece()).zip(bundle.tag..);
        for (from, tag) in pieces {
            let words = from..(from + bundle.piece()).min(end);
            self.messages.push(MessageSpec { words, rank: bundle.rank, tag });
            self.ends.push(bundle.end(direction));
        }
        self.heads.push((begin, bundle.end(direction).cell));
        self.room += 1;
    }

    /// Where the messages of a phase lie.
    pub(super) fn of_phase(&self, phase: usize) -> Range<usize> {
        let before = |phase| self.ends.partition_point(|end| end.phase.index() < phase);
        before(phase)..before(phase + 1)
    }

    /// Where the long ones of a phase end, which come first.
    pub(super) fn long_of_phase(&self, phase: usize) -> usize {
        let range = self.of_phase(phase);
        let long = |message: &MessageSpec| message.words.len() > SHORT;
        range.start + self.messages[range].partition_point(long)
    }
}

/// Where the words of a phase and connection begin in the buffer of their source, for sources on
/// this rank.
pub(super) type LocalOffsets = BTreeMap<(usize, ConnectionId), usize>;

/// What leaves a cell: messages, runs in buffer order, and rows of targets on this rank.
pub(super) fn layout_sends(
    own: usize,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &mut LocalOffsets,
) -> (Messages, Vec<WordRun>, Vec<usize>) {
    let mut messages = Messages::default();
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
            messages.room += index(operation.words);
        }
    }
    targets.sort_unstable();
    targets.dedup();
    (messages, runs, targets)
}

/// What arrives at a cell: messages; runs by connection and first word; and by phase the rows of
/// sources on this rank.
pub(super) fn layout_receives(
    own: usize,
    phases: usize,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &LocalOffsets,
) -> (Messages, Vec<WordRun>, Vec<Vec<usize>>) {
    let mut messages = Messages::default();
    let (mut runs, mut sources) = (Vec::new(), vec![Vec::new(); phases]);
    for bundle in bundles {
        if bundle.rank != own {
            messages.push(bundle, Direction::Receive);
            for operation in &bundle.operations {
                runs.push(run(operation, connections, messages.room, None));
                messages.room += index(operation.words);
            }
            continue;
        }
        sources[bundle.phase].push(bundle.row);
        let mut next: BTreeMap<ConnectionId, usize> = BTreeMap::new();
        for operation in &bundle.operations {
            let begin = || local[&(bundle.phase, operation.connection)];
            let at = next.entry(operation.connection).or_insert_with(begin);
            runs.push(run(operation, connections, *at, Some(bundle.row)));
            *at += index(operation.words);
        }
    }
    runs.sort_by_key(|run| (run.slot, run.words.start));
    (messages, runs, sources)
}

fn run(
    operation: &Operation,
    connections: &[ConnectionId],
    at: usize,
    from: Option<usize>,
) -> WordRun {
    let slot = connections.binary_search(&operation.connection);
    let first = index(operation.first_word);
    let words = first..first + index(operation.words);
    WordRun { slot: slot.expect("the operation is of an end of the connection"), words, at, from }
}

/// A phase and connection of which a set's image sends other words than it receives, with their
/// numbers.
pub(super) fn find_unbalanced(
    image: &Image,
    set: usize,
) -> Option<(PhaseId, ConnectionId, u64, u64)> {
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
