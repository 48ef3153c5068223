//! The token model of [`crate::deadlock`]: operation lists, transfers, and a run over them.
//!
//! A run is a worklist algorithm: opening an item may enable its transfer, a transfer completes
//! items, and a completed item lets its list open the next one. Every item opens and completes once,
//! so a run is linear in the items and the ordering constraints between connections of the phase.

use conset_ir::convert::{index, to_u32};
use conset_ir::{
    CellId, ConnectionId, ConnectionSet, Direction, Duplex, Machine, Operation, PhaseImage,
};

use crate::waits::{BlockedOperation, WaitsFor};

const NONE: u32 = u32::MAX;

/// The capacity of the channels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buffering {
    Least,
    Most,
}

/// An operation in a list, or an adjacent send and receive of a cell to itself (a pair).
#[derive(Clone, Copy)]
struct ListItem {
    cell: CellId,
    /// Row of the cell's operation list; for a pair, that of the send.
    operation: u32,
    direction: Direction,
    list: u32,
    transfer: u32,
}

/// A send and the receive of the same words. Both are the same item for a pair, and a missing end
/// is `NONE`.
#[derive(Clone, Copy)]
struct Transfer {
    connection: ConnectionId,
    send: u32,
    receive: u32,
}

/// The operation lists and transfers of a phase.
pub(crate) struct TokenModel<'a> {
    set: &'a ConnectionSet,
    streams: u32,
    /// Items, list by list.
    items: Vec<ListItem>,
    /// Items of list `l` are `first[l]..first[l + 1]`.
    first: Vec<u32>,
    /// Sorted by connection.
    transfers: Vec<Transfer>,
}

/// The key of a transfer: connection, first word, words.
type TransferKey = (ConnectionId, u32, u32);

fn key(operation: &Operation) -> TransferKey {
    (operation.connection, operation.first_word, operation.words)
}

impl<'a> TokenModel<'a> {
    pub(crate) fn new(machine: &Machine, set: &'a ConnectionSet, phase: &PhaseImage) -> Self {
        let parameters = machine.parameters();
        let mut model = Self {
            set,
            streams: parameters.streams,
            items: Vec::new(),
            first: vec![0],
            transfers: Vec::new(),
        };
        let mut ends: Vec<(TransferKey, Direction, u32)> = Vec::new();
        let mut pairs: Vec<(TransferKey, u32)> = Vec::new();
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
        model.join_transfers(ends, pairs);
        model
    }

    fn add_list(
        &mut self,
        cell: CellId,
        direction: Direction,
        operations: &[Operation],
        ends: &mut Vec<(TransferKey, Direction, u32)>,
    ) {
        for (row, operation) in operations.iter().enumerate() {
            if operation.direction == direction {
                ends.push((key(operation), direction, to_u32(self.items.len())));
                self.add_item(cell, row, direction);
            }
        }
        self.first.push(to_u32(self.items.len()));
    }

    fn add_shared_list(
        &mut self,
        cell: CellId,
        operations: &[Operation],
        ends: &mut Vec<(TransferKey, Direction, u32)>,
        pairs: &mut Vec<(TransferKey, u32)>,
    ) {
        let mut row = 0;
        while row < operations.len() {
            let operation = &operations[row];
            let item = to_u32(self.items.len());
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
        self.first.push(to_u32(self.items.len()));
    }

    fn add_item(&mut self, cell: CellId, row: usize, direction: Direction) {
        let list = to_u32(self.first.len() - 1);
        self.items.push(ListItem { cell, operation: to_u32(row), direction, list, transfer: NONE });
    }

    /// Joins the k-th send of a key with its k-th receive; the remaining ones have no other end.
    fn join_transfers(
        &mut self,
        mut ends: Vec<(TransferKey, Direction, u32)>,
        pairs: Vec<(TransferKey, u32)>,
    ) {
        ends.sort_unstable();
        for (key, item) in pairs {
            self.transfers.push(Transfer { connection: key.0, send: item, receive: item });
        }
        for same in ends.chunk_by(|a, b| a.0 == b.0) {
            let (sends, receives) =
                same.split_at(same.partition_point(|end| end.1 == Direction::Send));
            for k in 0..sends.len().max(receives.len()) {
                let item =
                    |ends: &[(TransferKey, Direction, u32)]| ends.get(k).map_or(NONE, |end| end.2);
                let transfer = Transfer {
                    connection: same[0].0.0,
                    send: item(sends),
                    receive: item(receives),
                };
                self.transfers.push(transfer);
            }
        }
        self.transfers.sort_by_key(|transfer| transfer.connection);
        for (row, transfer) in self.transfers.iter().enumerate() {
            for item in [transfer.send, transfer.receive] {
                if item != NONE {
                    self.items[index(item)].transfer = to_u32(row);
                }
            }
        }
    }

    fn transfers_of(&self, connection: ConnectionId) -> std::ops::Range<usize> {
        let start = self.transfers.partition_point(|transfer| transfer.connection < connection);
        let end = self.transfers.partition_point(|transfer| transfer.connection <= connection);
        start..end
    }

    /// The cell and the connection of an item.
    fn busy(&self, item: usize) -> (CellId, ConnectionId) {
        let ListItem { cell, transfer, .. } = self.items[item];
        (cell, self.transfers[index(transfer)].connection)
    }

    fn after(&self, before: ConnectionId) -> impl Iterator<Item = ConnectionId> + use<'a> {
        let order = self.set.order();
        let start = order.partition_point(|pair| pair.0 < before);
        order[start..].iter().take_while(move |pair| pair.0 == before).map(|pair| pair.1)
    }
}

/// The state of a run of the model.
pub(crate) struct TokenRun {
    /// For each list, the next item to open and the number of open items.
    next: Vec<u32>,
    open: Vec<u32>,
    item_open: Vec<bool>,
    item_done: Vec<bool>,
    /// For each connection, its incomplete transfers, and the preceding connections that have such.
    remaining: Vec<u32>,
    waiting: Vec<u32>,
    lists: Vec<u32>,
    transfers: Vec<u32>,
}

impl TokenRun {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            next: Vec::new(),
            open: Vec::new(),
            item_open: Vec::new(),
            item_done: Vec::new(),
            remaining: vec![0; connections],
            waiting: vec![0; connections],
            lists: Vec::new(),
            transfers: Vec::new(),
        }
    }

    /// Runs the model. Returns `None` if all items complete, otherwise a chain of blocked operations.
    pub(crate) fn witness(
        &mut self,
        model: &TokenModel<'_>,
        buffering: Buffering,
    ) -> Option<Vec<BlockedOperation>> {
        self.start(model);
        while let Some(list) = self.lists.pop() {
            self.refill(model, index(list));
            while let Some(transfer) = self.transfers.pop() {
                self.advance(model, index(transfer), buffering);
            }
        }
        let stuck = (0..model.items.len()).find(|&i| self.item_open[i] && !self.item_done[i]);
        let waits = stuck.map(|item| self.explain(model, item));
        for transfer in &model.transfers {
            self.remaining[transfer.connection.index()] = 0;
            self.waiting[transfer.connection.index()] = 0;
        }
        waits
    }

    fn start(&mut self, model: &TokenModel<'_>) {
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
        self.lists.extend((0..to_u32(lists)).rev());
        self.transfers.clear();
        for transfer in &model.transfers {
            self.remaining[transfer.connection.index()] += 1;
        }
        if model.set.order().is_empty() {
            return;
        }
        for same in model.transfers.chunk_by(|a, b| a.connection == b.connection) {
            for after in model.after(same[0].connection) {
                if self.remaining[after.index()] > 0 {
                    self.waiting[after.index()] += 1;
                }
            }
        }
    }

    /// Opens items until the list has `streams` of them open.
    fn refill(&mut self, model: &TokenModel<'_>, list: usize) {
        while self.open[list] < model.streams && self.next[list] < model.first[list + 1] {
            let item = index(self.next[list]);
            self.next[list] += 1;
            self.open[list] += 1;
            self.item_open[item] = true;
            self.transfers.push(model.items[item].transfer);
        }
    }

    /// Performs a transfer as far as possible.
    fn advance(&mut self, model: &TokenModel<'_>, row: usize, buffering: Buffering) {
        let transfer = model.transfers[row];
        let is = |flags: &[bool], item: u32| item != NONE && flags[index(item)];
        let may_start =
            is(&self.item_open, transfer.send) && self.waiting[transfer.connection.index()] == 0;
        let receives = is(&self.item_open, transfer.receive);
        // Words without a receive never complete, whatever the capacity of the channels.
        let is_buffered = buffering == Buffering::Most && transfer.receive != NONE;
        let moves = may_start && (receives || is_buffered);
        // The single item of a pair completes with the receive.
        if moves && transfer.send != transfer.receive && !self.item_done[index(transfer.send)] {
            self.finish(model, transfer.send);
        }
        if moves && receives && !self.item_done[index(transfer.receive)] {
            self.finish(model, transfer.receive);
            self.complete(model, transfer.connection);
        }
    }

    fn finish(&mut self, model: &TokenModel<'_>, item: u32) {
        let list = model.items[index(item)].list;
        self.item_done[index(item)] = true;
        self.open[index(list)] -= 1;
        self.lists.push(list);
    }

    /// Records a complete transfer of the connection. If it was the last, following connections may
    /// start.
    fn complete(&mut self, model: &TokenModel<'_>, connection: ConnectionId) {
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
                self.transfers.extend(model.transfers_of(after).map(to_u32));
            }
        }
    }

    /// The chain of waits from a blocked item, reduced to the cycle in which it ends.
    fn explain(&self, model: &TokenModel<'_>, start: usize) -> Vec<BlockedOperation> {
        let before = self.unfinished_before(model);
        let mut seen_at = vec![NONE; model.items.len()];
        let mut waits = Vec::new();
        let mut at = start;
        while seen_at[at] == NONE {
            seen_at[at] = to_u32(waits.len());
            let (waits_for, next) = self.waits_for(model, at, &before);
            let ListItem { cell, operation, direction, transfer, .. } = model.items[at];
            let connection = model.transfers[index(transfer)].connection;
            waits.push(BlockedOperation { cell, operation, direction, connection, waits_for });
            match next {
                Some(next) => at = next,
                None => return waits,
            }
        }
        waits.split_off(index(seen_at[at]))
    }

    /// The ordered pairs `(after, before)` of incomplete connections, sorted.
    fn unfinished_before(&self, model: &TokenModel<'_>) -> Vec<(ConnectionId, ConnectionId)> {
        let mut pairs = Vec::new();
        for same in model.transfers.chunk_by(|a, b| a.connection == b.connection) {
            let before = same[0].connection;
            if self.remaining[before.index()] > 0 {
                pairs.extend(model.after(before).map(|after| (after, before)));
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// What an open item waits for, and the item that blocks it.
    fn waits_for(
        &self,
        model: &TokenModel<'_>,
        item: usize,
        before: &[(ConnectionId, ConnectionId)],
    ) -> (WaitsFor, Option<usize>) {
        let transfer = model.transfers[index(model.items[item].transfer)];
        let other = if index(transfer.send) == item { transfer.receive } else { transfer.send };
        if other == NONE {
            return (WaitsFor::Nobody, None);
        }
        if self.waiting[transfer.connection.index()] > 0 && self.item_open[index(transfer.send)] {
            let found = before.partition_point(|pair| pair.0 < transfer.connection);
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

    /// An open item that blocks an incomplete connection.
    fn stuck_item_of(&self, model: &TokenModel<'_>, connection: ConnectionId) -> Option<usize> {
        let transfers = &model.transfers[model.transfers_of(connection)];
        let ends = transfers.iter().flat_map(|transfer| [transfer.send, transfer.receive]);
        let stuck = ends.into_iter().find(|&end| end != NONE && !self.item_done[index(end)])?;
        Some(if self.item_open[index(stuck)] { index(stuck) } else { self.ahead_of(model, stuck) })
    }

    /// The first open item of the list, which prevents this one from opening. A list that does not
    /// open its next item has `streams` open, so there is one.
    fn ahead_of(&self, model: &TokenModel<'_>, item: u32) -> usize {
        let list = index(model.items[index(item)].list);
        (index(model.first[list])..index(item))
            .find(|&i| self.item_open[i] && !self.item_done[i])
            .unwrap_or(index(item))
    }
}
