//! The machinery of the deadlock model: lists, parts, and a run over them (see
//! [`crate::deadlock`] for the rules).
//!
//! A run is a worklist: opening an item may let its part move, a part that moves finishes items,
//! a finished item lets its list open the next. Every item opens and finishes once, so a run is
//! linear in the items and the ordering constraints between connections of the phase.

use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Direction, Duplex, Machine, Operation, PhaseImage,
};

use crate::deadlock::{Wait, WaitsFor};

const NONE: u32 = u32::MAX;

/// How much the channels hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buffering {
    Least,
    Most,
}

/// An operation in a list, or a neighbouring send and receive of one cell to itself.
#[derive(Clone, Copy)]
struct Item {
    cell: CellId,
    /// Row of the cell's operation list; of the send where it is a pair.
    operation: u32,
    direction: Direction,
    list: u32,
    part: u32,
}

/// A send and the receive of the same words; the same item twice where the agent alternates,
/// `NONE` where an end is missing.
#[derive(Clone, Copy)]
struct Part {
    connection: ConnectionId,
    send: u32,
    receive: u32,
}

/// The lists of a phase.
pub(crate) struct Model<'a> {
    set: &'a ConnectionSet,
    streams: u32,
    /// Items, list by list.
    items: Vec<Item>,
    /// Items of list `l` are `first[l]..first[l + 1]`.
    first: Vec<u32>,
    /// Sorted by connection.
    parts: Vec<Part>,
}

/// What identifies a part: connection, first word, words.
type Key = (ConnectionId, u32, u32);

fn key(operation: &Operation) -> Key {
    (operation.connection, operation.first_word, operation.words)
}

impl<'a> Model<'a> {
    pub(crate) fn new(machine: &Machine, set: &'a ConnectionSet, phase: &PhaseImage) -> Self {
        let parameters = machine.parameters();
        let mut model = Self {
            set,
            streams: parameters.streams,
            items: Vec::new(),
            first: vec![0],
            parts: Vec::new(),
        };
        let mut ends: Vec<(Key, Direction, u32)> = Vec::new();
        let mut pairs: Vec<(Key, u32)> = Vec::new();
        for (cell, context) in phase.cells() {
            match parameters.duplex {
                Duplex::Half => {
                    model.add_shared_list(cell, context.operations, &mut ends, &mut pairs);
                }
                Duplex::Full => {
                    for direction in [Direction::Send, Direction::Receive] {
                        model.add_list(cell, direction, context.operations, &mut ends);
                    }
                }
            }
        }
        model.join_parts(ends, pairs);
        model
    }

    fn add_list(
        &mut self,
        cell: CellId,
        direction: Direction,
        operations: &[Operation],
        ends: &mut Vec<(Key, Direction, u32)>,
    ) {
        for (row, operation) in operations.iter().enumerate() {
            if operation.direction == direction {
                ends.push((key(operation), direction, self.items.len() as u32));
                self.add_item(cell, row, direction);
            }
        }
        self.first.push(self.items.len() as u32);
    }

    fn add_shared_list(
        &mut self,
        cell: CellId,
        operations: &[Operation],
        ends: &mut Vec<(Key, Direction, u32)>,
        pairs: &mut Vec<(Key, u32)>,
    ) {
        let mut row = 0;
        while row < operations.len() {
            let operation = &operations[row];
            let item = self.items.len() as u32;
            self.add_item(cell, row, operation.direction);
            let alternates = operation.direction == Direction::Send
                && operations.get(row + 1).is_some_and(|next| {
                    next.direction == Direction::Receive && key(next) == key(operation)
                });
            if alternates {
                pairs.push((key(operation), item));
                row += 2;
            } else {
                ends.push((key(operation), operation.direction, item));
                row += 1;
            }
        }
        self.first.push(self.items.len() as u32);
    }

    fn add_item(&mut self, cell: CellId, row: usize, direction: Direction) {
        let list = (self.first.len() - 1) as u32;
        self.items.push(Item { cell, operation: row as u32, direction, list, part: NONE });
    }

    /// Pairs the k-th send of a key with its k-th receive; what remains has no other end.
    fn join_parts(&mut self, mut ends: Vec<(Key, Direction, u32)>, pairs: Vec<(Key, u32)>) {
        ends.sort_unstable();
        for (key, item) in pairs {
            self.parts.push(Part { connection: key.0, send: item, receive: item });
        }
        for same in ends.chunk_by(|a, b| a.0 == b.0) {
            let (sends, receives) =
                same.split_at(same.partition_point(|end| end.1 == Direction::Send));
            for k in 0..sends.len().max(receives.len()) {
                let item = |ends: &[(Key, Direction, u32)]| ends.get(k).map_or(NONE, |end| end.2);
                let part =
                    Part { connection: same[0].0.0, send: item(sends), receive: item(receives) };
                self.parts.push(part);
            }
        }
        self.parts.sort_by_key(|part| part.connection);
        for (row, part) in self.parts.iter().enumerate() {
            for item in [part.send, part.receive] {
                if item != NONE {
                    self.items[item as usize].part = row as u32;
                }
            }
        }
    }

    fn parts_of(&self, connection: ConnectionId) -> std::ops::Range<usize> {
        let start = self.parts.partition_point(|part| part.connection < connection);
        let end = self.parts.partition_point(|part| part.connection <= connection);
        start..end
    }

    /// Where an item is and what it moves.
    fn busy(&self, item: usize) -> (CellId, ConnectionId) {
        let Item { cell, part, .. } = self.items[item];
        (cell, self.parts[part as usize].connection)
    }

    fn after(&self, before: ConnectionId) -> impl Iterator<Item = ConnectionId> + use<'a> {
        let order = self.set.order();
        let start = order.partition_point(|pair| pair.0 < before);
        order[start..].iter().take_while(move |pair| pair.0 == before).map(|pair| pair.1)
    }
}

/// The state of a run.
pub(crate) struct Run {
    /// The next item each list will open, and how many it has open.
    next: Vec<u32>,
    open: Vec<u32>,
    item_open: Vec<bool>,
    item_done: Vec<bool>,
    /// By connection: parts not yet done, and connections before it that have such parts.
    remaining: Vec<u32>,
    waiting: Vec<u32>,
    lists: Vec<u32>,
    parts: Vec<u32>,
}

impl Run {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            next: Vec::new(),
            open: Vec::new(),
            item_open: Vec::new(),
            item_done: Vec::new(),
            remaining: vec![0; connections],
            waiting: vec![0; connections],
            lists: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Runs the model; `None` if everything is done in the end, otherwise a chain of waits.
    pub(crate) fn witness(&mut self, model: &Model<'_>, buffering: Buffering) -> Option<Vec<Wait>> {
        self.start(model);
        while let Some(list) = self.lists.pop() {
            self.refill(model, list as usize);
            while let Some(part) = self.parts.pop() {
                self.advance(model, part as usize, buffering);
            }
        }
        let stuck = (0..model.items.len()).find(|&i| self.item_open[i] && !self.item_done[i]);
        let waits = stuck.map(|item| self.explain(model, item));
        for part in &model.parts {
            self.remaining[part.connection.index()] = 0;
            self.waiting[part.connection.index()] = 0;
        }
        waits
    }

    fn start(&mut self, model: &Model<'_>) {
        let lists = model.first.len() - 1;
        self.next.clear();
        self.next.extend_from_slice(&model.first[..lists]);
        self.open.clear();
        self.open.resize(lists, 0);
        for flags in [&mut self.item_open, &mut self.item_done] {
            flags.clear();
            flags.resize(model.items.len(), false);
        }
        self.lists.clear();
        self.lists.extend((0..lists as u32).rev());
        self.parts.clear();
        for part in &model.parts {
            self.remaining[part.connection.index()] += 1;
        }
        if model.set.order().is_empty() {
            return;
        }
        for same in model.parts.chunk_by(|a, b| a.connection == b.connection) {
            for after in model.after(same[0].connection) {
                if self.remaining[after.index()] > 0 {
                    self.waiting[after.index()] += 1;
                }
            }
        }
    }

    /// Opens items until the list has `streams` of them open.
    fn refill(&mut self, model: &Model<'_>, list: usize) {
        while self.open[list] < model.streams && self.next[list] < model.first[list + 1] {
            let item = self.next[list] as usize;
            self.next[list] += 1;
            self.open[list] += 1;
            self.item_open[item] = true;
            self.parts.push(model.items[item].part);
        }
    }

    /// Moves a part as far as it goes.
    fn advance(&mut self, model: &Model<'_>, row: usize, buffering: Buffering) {
        let part = model.parts[row];
        let is = |flags: &[bool], item: u32| item != NONE && flags[item as usize];
        let may_start =
            is(&self.item_open, part.send) && self.waiting[part.connection.index()] == 0;
        let receives = is(&self.item_open, part.receive);
        // Words that nobody takes out are left over, however much the channels hold.
        let has_room = buffering == Buffering::Most && part.receive != NONE;
        let moves = may_start && (receives || has_room);
        // A pair's only item is done when the receive is.
        if moves && part.send != part.receive && !self.item_done[part.send as usize] {
            self.finish(model, part.send);
        }
        if moves && receives && !self.item_done[part.receive as usize] {
            self.finish(model, part.receive);
            self.complete(model, part.connection);
        }
    }

    fn finish(&mut self, model: &Model<'_>, item: u32) {
        let list = model.items[item as usize].list;
        self.item_done[item as usize] = true;
        self.open[list as usize] -= 1;
        self.lists.push(list);
    }

    /// A part of the connection is done; those that come after it may start if it was the last.
    fn complete(&mut self, model: &Model<'_>, connection: ConnectionId) {
        self.remaining[connection.index()] -= 1;
        if self.remaining[connection.index()] > 0 {
            return;
        }
        for after in model.after(connection) {
            let waiting = &mut self.waiting[after.index()];
            if *waiting == 0 {
                continue; // Not in this phase.
            }
            *waiting -= 1;
            if *waiting == 0 {
                self.parts.extend(model.parts_of(after).map(|row| row as u32));
            }
        }
    }

    /// The waits from a stuck item on, cut to the cycle they end in.
    fn explain(&self, model: &Model<'_>, start: usize) -> Vec<Wait> {
        let before = self.unfinished_before(model);
        let mut seen_at = vec![NONE; model.items.len()];
        let mut waits = Vec::new();
        let mut at = start;
        while seen_at[at] == NONE {
            seen_at[at] = waits.len() as u32;
            let (waits_for, next) = self.waits_for(model, at, &before);
            let Item { cell, operation, direction, part, .. } = model.items[at];
            let connection = model.parts[part as usize].connection;
            waits.push(Wait { cell, operation, direction, connection, waits_for });
            match next {
                Some(next) => at = next,
                None => return waits,
            }
        }
        waits.split_off(seen_at[at] as usize)
    }

    /// Pairs (after, before) of which neither is done, sorted.
    fn unfinished_before(&self, model: &Model<'_>) -> Vec<(ConnectionId, ConnectionId)> {
        let mut pairs = Vec::new();
        for same in model.parts.chunk_by(|a, b| a.connection == b.connection) {
            let before = same[0].connection;
            if self.remaining[before.index()] > 0 {
                pairs.extend(model.after(before).map(|after| (after, before)));
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// Why an open item is not done, and the item to ask next.
    fn waits_for(
        &self,
        model: &Model<'_>,
        item: usize,
        before: &[(ConnectionId, ConnectionId)],
    ) -> (WaitsFor, Option<usize>) {
        let part = model.parts[model.items[item].part as usize];
        let other = if part.send as usize == item { part.receive } else { part.send };
        if other == NONE {
            return (WaitsFor::Nobody, None);
        }
        if self.waiting[part.connection.index()] > 0 && self.item_open[part.send as usize] {
            let found = before.partition_point(|pair| pair.0 < part.connection);
            if let Some(&(_, before)) = before.get(found)
                && let Some(stuck) = self.stuck_item_of(model, before)
            {
                let (cell, busy_with) = model.busy(stuck);
                return (WaitsFor::Order { before, cell, busy_with }, Some(stuck));
            }
        }
        let ahead = self.ahead_of(model, other);
        let (cell, busy_with) = model.busy(ahead);
        (WaitsFor::Other { cell, busy_with }, Some(ahead))
    }

    /// An item of an unfinished connection that can say why it is stuck.
    fn stuck_item_of(&self, model: &Model<'_>, connection: ConnectionId) -> Option<usize> {
        let parts = &model.parts[model.parts_of(connection)];
        let ends = parts.iter().flat_map(|part| [part.send, part.receive]);
        let stuck = ends.into_iter().find(|&end| end != NONE && !self.item_done[end as usize])?;
        Some(if self.item_open[stuck as usize] {
            stuck as usize
        } else {
            self.ahead_of(model, stuck)
        })
    }

    /// The first open item of the list that keeps this one from opening. A list that does not
    /// open its next item has `streams` open, so there is one.
    fn ahead_of(&self, model: &Model<'_>, item: u32) -> usize {
        let list = model.items[item as usize].list as usize;
        (model.first[list] as usize..item as usize)
            .find(|&i| self.item_open[i] && !self.item_done[i])
            .unwrap_or(item as usize)
    }
}
