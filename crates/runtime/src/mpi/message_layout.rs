//! The messages of an exchange: their places in buffers, their order and their tags, derived from
//! the image identically at both ends.
//!
//! An exchange has *stages*, each of which waits for everything that is sent and received in the one
//! before. Where cells pass on what they received, these are the stages of the step plan
//! ([`conset_ir::step_stages`]); in a set with an order, the phases; everything else is one stage, in
//! which the order of phases and messages is only that of posting. In a stage, everything that one
//! cell sends to another is one message: its connections ascending, each with its words in their
//! order. A message begins with a head of 8 bytes. All places are counted in words of the exchange,
//! which have a size of their own ([`ExchangePlan::new`]).
//!
//! If there is one stage, and all that a cell sends to one of another rank is one connection of many
//! words, the head is a message of its own and the words are another one, the *body*, which can be
//! passed without a copy ([`super::body_messages`]). It has a place in the buffers nevertheless, for
//! calls whose words are not in rows.
//!
//! Every set has its own tags for each size of words, and a run that fails leaves the communicator
//! ([`super::failure`]): messages of another exchange, or of an earlier run, are never mistaken.

use std::collections::BTreeMap;
use std::ops::Range;

use conset_ir::convert::index;
use conset_ir::{
    CellId, ChannelId, Connection, ConnectionId, ConnectionSet, Direction, Image, Lists, Operation,
    PhaseId, Piece, SetImage, Steps, step_stages,
};

use super::aligned_buffer::alignment;
use super::body_messages::Body;
use super::borrowed_request::COPIED_MOST;
use super::ffi::to_c_int;
use super::message_queue::Address;
use super::rank_map::RankMap;
use super::raw_requests::MessageSpec;
use crate::error::MpiError;
use crate::port::By;

/// A run of a connection's words in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WordRun {
    pub(super) connection: ConnectionId,
    pub(super) stage: usize,
    /// The connection's place among those of the cell that leave it, or that arrive at it; greater
    /// than any if it only passes through.
    pub(super) slot: usize,
    /// The run's words among the connection's.
    pub(super) words: Range<usize>,
    /// Its place in the buffer.
    pub(super) at: usize,
    /// For a run that arrives: the row of a source on the same rank, whose buffer it is in.
    pub(super) from: Option<usize>,
    /// It is a body.
    pub(super) is_body: bool,
}

impl WordRun {
    /// Its bytes among the connection's, of words of this size.
    #[inline]
    pub(super) fn bytes(&self, size: usize) -> Range<usize> {
        self.words.start * size..self.words.end * size
    }

    /// Its bytes in the buffer.
    #[inline]
    pub(super) fn place(&self, size: usize) -> Range<usize> {
        self.at * size..(self.at + self.words.len()) * size
    }
}

/// The other end of a message, for error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) direction: Direction,
    /// The cell at the other end.
    pub(super) cell: CellId,
    /// The first phase of which words are in the message.
    pub(super) phase: PhaseId,
    pub(super) stage: usize,
}

/// A source on the same rank, in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalSource {
    pub(super) row: usize,
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

    /// The tag of the next message to or from a rank.
    pub(super) fn next(&mut self, direction: Direction, rank: usize) -> Result<i32, MpiError> {
        let next = match direction {
            Direction::Send => self.sends.entry(rank).or_default(),
            Direction::Receive => self.receives.entry(rank).or_default(),
        };
        let tag = self.range.start + *next;
        *next += 1;
        let limit = self.range.end - self.range.start;
        if *next > limit {
            let what = "messages of a set between two ranks";
            return Err(MpiError::Limit { what, found: *next, limit });
        }
        Ok(to_c_int(tag))
    }
}

/// Bytes of the head of a message.
pub(super) const HEAD_BYTES: usize = size_of::<u64>();

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SendClass {
    /// As the next, and it is a body.
    Body,
    /// The exchange waits until it has left: it may need this rank's calls for that.
    Long,
    /// MPI has taken it over, as libraries do with some kilobytes at least, so nothing waits for it
    /// but the next exchange.
    Short,
    /// Short, and so few bytes that MPI copies them at once: it is not worth a persistent request.
    Immediate,
}

impl SendClass {
    /// The class of a message of so many bytes, its head included. That a library does otherwise costs
    /// time and nothing else.
    fn of(bytes: usize) -> Self {
        const SHORT: usize = 4 << 10;
        const IMMEDIATE: usize = 256;
        if bytes > SHORT {
            SendClass::Long
        } else if bytes > IMMEDIATE {
            SendClass::Short
        } else {
            SendClass::Immediate
        }
    }
}

/// All that a cell sends to another in a stage.
pub(super) struct Bundle {
    stage: usize,
    /// The first phase of its words.
    phase: usize,
    source: CellId,
    target: CellId,
    /// Its place in the posting order of its phase.
    place: u32,
    /// By connection and first word; no two of which one continues the other.
    operations: Vec<Operation>,
    /// Where the other end is: its rank, and its row there.
    rank: usize,
    row: usize,
    /// The tag of its message, if the other end is on another rank, and that of its body.
    tag: i32,
    body: Option<i32>,
}

impl Bundle {
    fn words(&self) -> usize {
        self.operations.iter().map(|operation| index(operation.words)).sum()
    }

    fn end(&self, direction: Direction) -> Peer {
        let cell = if direction == Direction::Send { self.target } else { self.source };
        Peer { direction, cell, phase: PhaseId::from_index(self.phase), stage: self.stage }
    }
}

/// What is exchanged, and by which plan.
pub(super) struct ExchangePlan<'a> {
    image: &'a SetImage,
    by: By,
    /// Bytes of a word, and words of a head.
    size: usize,
    head: usize,
    steps: Option<StepTables<'a>>,
}

/// What is looked up of a step plan.
struct StepTables<'a> {
    plan: &'a Steps,
    /// The messages of each cell, and the stage of each message.
    lists: Lists<u32>,
    stages: Vec<u32>,
    /// Connections of cells to themselves, which are in no message.
    within: Vec<ConnectionId>,
}

/// An operation, its ends, and its place in the posting order.
type EndedOperation = (CellId, CellId, u32, Operation);

impl<'a> ExchangePlan<'a> {
    /// The plan of a set with words of `size` bytes.
    pub(super) fn new(image: &'a SetImage, by: By, size: usize) -> Self {
        let steps = image.steps.as_ref().filter(|_| by == By::Phases);
        let steps = steps.map(|plan| {
            let within = image.set.iter().filter(|(_, c)| c.source == c.target).map(|(id, _)| id);
            let (lists, stages) = (plan.lists(), step_stages(plan));
            StepTables { plan, lists, stages, within: within.collect() }
        });
        Self { image, by, size, head: HEAD_BYTES.div_ceil(size), steps }
    }

    pub(super) fn set(&self) -> &'a ConnectionSet {
        &self.image.set
    }

    /// Number of stages.
    pub(super) fn stages(&self) -> usize {
        if self.is_strict() { self.phases() } else { 1 }
    }

    /// Number of phases, or of stages of a step plan.
    fn phases(&self) -> usize {
        match (&self.steps, self.by) {
            (Some(steps), _) => steps.stages.iter().max().map_or(1, |&last| index(last) + 1),
            (None, By::Phases) => self.image.phases.len(),
            (None, By::Messages) => 1,
        }
    }

    /// The class of the message of a bundle; without its body, if it has one.
    fn class(&self, bundle: &Bundle) -> SendClass {
        let words = if self.has_body(bundle) { 0 } else { bundle.words() };
        SendClass::of((self.head + words) * self.size)
    }

    /// Whether a bundle has a body if its ends are on two ranks: it is a whole connection, and long.
    fn has_body(&self, bundle: &Bundle) -> bool {
        let [only] = &bundle.operations[..] else { return false };
        let is_whole = only.words == self.set().get(only.connection).words;
        is_whole && !self.is_strict() && index(only.words) * self.size > COPIED_MOST
    }

    /// Whether cells pass on what they have received.
    pub(super) fn passes_on(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| !steps.plan.is_direct())
    }

    /// Whether a phase waits for all that is sent and received in the one before.
    pub(super) fn is_strict(&self) -> bool {
        self.by == By::Phases && !self.set().order().is_empty() || self.passes_on()
    }

    /// The operations of a cell in each phase; by messages there is one phase, and an operation for
    /// each connection.
    fn operations(&self, cell: CellId, direction: Direction) -> Vec<Vec<EndedOperation>> {
        if let Some(steps) = &self.steps {
            return self.step_operations(steps, cell, direction);
        }
        if self.by == By::Messages {
            return vec![self.whole(cell, direction)];
        }
        let ended = |operation: &Operation| {
            let ends = self.set().get(operation.connection);
            (ends.source, ends.target, 0, *operation)
        };
        let phases = self.image.phases.iter();
        phases.map(|phase| phase.cell(cell).operations.iter().map(ended).collect()).collect()
    }

    /// An operation for each connection of a cell.
    fn whole(&self, cell: CellId, direction: Direction) -> Vec<EndedOperation> {
        let end = |connection: &Connection| match direction {
            Direction::Send => connection.source,
            Direction::Receive => connection.target,
        };
        let own = self.set().iter().filter(|(_, connection)| end(connection) == cell);
        own.map(|(id, _)| self.whole_of(id, direction)).collect()
    }

    fn whole_of(&self, id: ConnectionId, direction: Direction) -> EndedOperation {
        let ends = self.set().get(id);
        (ends.source, ends.target, 0, operation(direction, Piece::whole(self.set(), id)))
    }

    fn step_operations(
        &self,
        steps: &StepTables<'_>,
        cell: CellId,
        direction: Direction,
    ) -> Vec<Vec<EndedOperation>> {
        let mut operations = vec![Vec::new(); self.phases()];
        for &row in steps.lists.of(cell.0) {
            let message = steps.plan.messages().get(index(row));
            let (source, target) = (message.source, message.target);
            if cell == if direction == Direction::Send { source } else { target } {
                let pieces = message.pieces.iter();
                let pieces =
                    pieces.map(|&piece| (source, target, row, operation(direction, piece)));
                operations[index(steps.stages[index(row)])].extend(pieces);
            }
        }
        let within = steps.within.iter().filter(|&&id| self.set().get(id).source == cell);
        operations[0].extend(within.map(|&id| self.whole_of(id, direction)));
        operations
    }
}

fn operation(direction: Direction, piece: Piece) -> Operation {
    let Piece { connection, first_word, words } = piece;
    Operation { direction, connection, channel: ChannelId(0), words, first_word, start: 0 }
}

/// What a cell sends or receives in a set, by stage, source and target.
fn bundles(
    plan: &ExchangePlan<'_>,
    rank_map: &RankMap,
    cell: CellId,
    direction: Direction,
) -> Vec<Bundle> {
    let mut bundles: BTreeMap<(usize, CellId, CellId), Bundle> = BTreeMap::new();
    let strict = plan.is_strict();
    for (phase, operations) in plan.operations(cell, direction).into_iter().enumerate() {
        let stage = if strict { phase } else { 0 };
        for (source, target, place, operation) in operations {
            if operation.direction != direction || operation.words == 0 {
                continue;
            }
            let bundle = bundles.entry((stage, source, target)).or_insert_with(|| {
                let other = if direction == Direction::Send { target } else { source };
                let (rank, row) = rank_map.find(other).expect("ends of connections are live");
                let (operations, tag, body) = (Vec::new(), -1, None);
                Bundle { stage, phase, source, target, place, operations, rank, row, tag, body }
            });
            bundle.operations.push(operation);
        }
    }
    let mut bundles: Vec<Bundle> = bundles.into_values().collect();
    for bundle in &mut bundles {
        bundle.operations.sort_by_key(|operation| (operation.connection, operation.first_word));
        bundle.operations.dedup_by(|next, last| {
            let continues = next.connection == last.connection
                && last.first_word.checked_add(last.words) == Some(next.first_word);
            if continues {
                last.words += next.words;
            }
            continues
        });
    }
    // Long ones first, because other cells may wait for them.
    bundles.sort_by_key(|bundle| (bundle.stage, plan.class(bundle), bundle.phase, bundle.place));
    bundles
}

/// The bundles of all cells of this rank, with tags given in an order that both ends know.
pub(super) fn tagged_bundles(
    plan: &ExchangePlan<'_>,
    rank_map: &RankMap,
    (own, tags): (usize, &mut TagAllocator),
    direction: Direction,
) -> Result<Vec<Vec<Bundle>>, MpiError> {
    let cells = rank_map.cells_of(own).iter();
    let mut all: Vec<Vec<Bundle>> =
        cells.map(|&cell| bundles(plan, rank_map, cell, direction)).collect();
    let mut order: Vec<&mut Bundle> = all.iter_mut().flatten().collect();
    order.sort_by_key(|bundle| (bundle.stage, bundle.source, bundle.target));
    for bundle in order {
        if bundle.rank != own {
            bundle.tag = tags.next(direction, bundle.rank)?;
            if plan.has_body(bundle) {
                bundle.body = Some(tags.next(direction, bundle.rank)?);
            }
        }
    }
    Ok(all)
}

/// Messages while an exchange is laid out, and what each is for.
#[derive(Default)]
pub(super) struct Messages {
    /// Stage by stage.
    pub(super) messages: Vec<MessageSpec>,
    pub(super) ends: Vec<Peer>,
    pub(super) classes: Vec<SendClass>,
    /// Where heads are in the buffer, and the cell at the other end.
    pub(super) heads: Vec<(usize, CellId)>,
    /// The bodies among the messages, of which they are the first to be sent and the last to be
    /// received.
    pub(super) bodies: Vec<Body>,
    /// Words of the buffer.
    pub(super) room: usize,
}

impl Messages {
    /// The message of a bundle, which begins where it is fast ([`super::aligned_buffer`]); the buffer
    /// then has room for its head.
    fn push(&mut self, plan: &ExchangePlan<'_>, bundle: &Bundle, direction: Direction) {
        let head = plan.head;
        let count = head + if bundle.body.is_some() { 0 } else { bundle.words() };
        let words = self.place(plan, count);
        self.heads.push((words.start, bundle.end(direction).cell));
        self.room += head;
        self.messages.push(MessageSpec { words, rank: bundle.rank, tag: bundle.tag });
        self.ends.push(bundle.end(direction));
        self.classes.push(plan.class(bundle));
    }

    /// The bodies of bundles, with their runs.
    fn push_bodies(
        &mut self,
        plan: &ExchangePlan<'_>,
        bundles: &[Bundle],
        (connections, direction): (&[ConnectionId], Direction),
        runs: &mut Vec<WordRun>,
    ) {
        for bundle in bundles {
            let Some(tag) = bundle.body else { continue };
            let words = self.place(plan, bundle.words());
            let run = run(bundle.stage, &bundle.operations[0], connections, words.start, None);
            let address = Address { rank: bundle.rank, tag };
            self.bodies.push(Body { slot: run.slot, address, end: bundle.end(direction) });
            self.room = words.end;
            self.messages.push(MessageSpec { words, rank: bundle.rank, tag });
            self.ends.push(bundle.end(direction));
            self.classes.push(SendClass::Body);
            runs.push(WordRun { is_body: true, ..run });
        }
    }

    /// Where the next message of so many words is.
    fn place(&mut self, plan: &ExchangePlan<'_>, count: usize) -> Range<usize> {
        self.room = self.room.next_multiple_of((alignment(count * plan.size) / plan.size).max(1));
        self.room..self.room + count
    }

    /// Where the messages of a stage end that are of a class, or of one before it.
    pub(super) fn end_of(&self, stage: usize, class: SendClass) -> usize {
        let range = self.of_stage(stage);
        range.start + self.classes[range].partition_point(|&other| other <= class)
    }

    /// Where the messages of a stage lie.
    pub(super) fn of_stage(&self, stage: usize) -> Range<usize> {
        let before = |stage| self.ends.partition_point(|end| end.stage < stage);
        before(stage)..before(stage + 1)
    }
}

/// Where the words of a stage, connection, source and target begin in the buffer of the source,
/// for sources on this rank.
pub(super) type LocalOffsets = BTreeMap<(usize, ConnectionId, CellId, CellId), usize>;

/// What leaves a cell: messages, runs in buffer order, and rows of targets on this rank.
pub(super) fn layout_sends(
    own: usize,
    plan: &ExchangePlan<'_>,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &mut LocalOffsets,
) -> (Messages, Vec<WordRun>, Vec<usize>) {
    let mut messages = Messages::default();
    let (mut runs, mut targets) = (Vec::new(), Vec::new());
    messages.push_bodies(plan, bundles, (connections, Direction::Send), &mut runs);
    for bundle in bundles {
        if bundle.rank == own {
            targets.push(bundle.row);
        } else {
            messages.push(plan, bundle, Direction::Send);
        }
        if bundle.body.is_some() {
            continue;
        }
        for operation in &bundle.operations {
            if bundle.rank == own {
                let key = (bundle.stage, operation.connection, bundle.source, bundle.target);
                local.entry(key).or_insert(messages.room);
            }
            runs.push(run(bundle.stage, operation, connections, messages.room, None));
            messages.room += index(operation.words);
        }
    }
    targets.sort_unstable();
    targets.dedup();
    (messages, runs, targets)
}

/// What arrives at a cell: messages; runs by connection and first word; and by stage the sources on
/// this rank.
pub(super) fn layout_receives(
    own: usize,
    plan: &ExchangePlan<'_>,
    bundles: &[Bundle],
    connections: &[ConnectionId],
    local: &LocalOffsets,
) -> (Messages, Vec<WordRun>, Vec<Vec<LocalSource>>) {
    let mut messages = Messages::default();
    let (mut runs, mut sources) = (Vec::new(), vec![Vec::new(); plan.stages()]);
    for bundle in bundles {
        if bundle.rank != own {
            messages.push(plan, bundle, Direction::Receive);
            let packed = if bundle.body.is_some() { &[] } else { &bundle.operations[..] };
            for operation in packed {
                runs.push(run(bundle.stage, operation, connections, messages.room, None));
                messages.room += index(operation.words);
            }
            continue;
        }
        let phase = PhaseId::from_index(bundle.phase);
        sources[bundle.stage].push(LocalSource { row: bundle.row, phase });
        let mut next: BTreeMap<ConnectionId, usize> = BTreeMap::new();
        for operation in &bundle.operations {
            let key = (bundle.stage, operation.connection, bundle.source, bundle.target);
            let begin = || local[&key];
            let at = next.entry(operation.connection).or_insert_with(begin);
            runs.push(run(bundle.stage, operation, connections, *at, Some(bundle.row)));
            *at += index(operation.words);
        }
    }
    messages.push_bodies(plan, bundles, (connections, Direction::Receive), &mut runs);
    runs.sort_by_key(|run| (run.slot, run.words.start));
    (messages, runs, sources)
}

fn run(
    stage: usize,
    operation: &Operation,
    connections: &[ConnectionId],
    at: usize,
    from: Option<usize>,
) -> WordRun {
    let connection = operation.connection;
    let slot = connections.binary_search(&connection).unwrap_or(usize::MAX);
    let first = index(operation.first_word);
    let words = first..first + index(operation.words);
    WordRun { connection, stage, slot, words, at, from, is_body: false }
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

#[cfg(test)]
mod tests;
