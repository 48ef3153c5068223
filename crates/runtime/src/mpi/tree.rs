//! One node of a tree over the ranks of a communicator: reductions to the root, broadcasts from it,
//! and both, by one message over each edge.
//!
//! A node knows its parent, its children in the order in which their values are combined, and
//! nothing else: it needs no world, no image and no coroutine. A *walk* is one traversal of the tree
//! with an array of bytes. [`TreeNode::start`] starts it, and [`TreeNode::poll`] goes on as far as it
//! can without waiting; when it is done, the array is the result. Waiting in between is up to the
//! caller.
//!
//! Arrays that are longer than [`PIECE`] travel in pieces, one message each: a node passes a piece on
//! while the next ones arrive. Every edge has requests for [`RING`] pieces in each direction, so the
//! memory of a node is one array and a few pieces for each child. A piece from the parent is received
//! where the own piece has left. A piece of the array is copied to the memory that MPI uses just before
//! it is combined or sent, and back just after it was passed on, while it is in the caches. A walk ends
//! when all its sends are done: short ones are with the call that starts them.
//!
//! *No circular wait.* The requests of a node complete in any order, and every poll goes on in both
//! directions. Upwards a node waits only for its children, and for its parent to have received
//! [`RING`] pieces less. Downwards a receive is posted as soon as the own piece has left, which the
//! parent has received if it sends that piece down.
//!
//! A walk begins with a header of two words: what the caller says of the call, and the length of the
//! array. Both must be those of this node's own walk, or [`WalkFault`] says which neighbour makes
//! another.
//!
//! Nodes on the same rank, which take turns on one thread, are connected by a [`LocalEdge`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use conset_ir::binomial;
use conset_ir::convert::to_u64;

use super::byte_requests::{ByteRequests, Part, Remote};
use super::comm::{Comm, is_truncation};
use crate::collectives::WalkDirection;
use crate::error::MpiError;
use crate::word::copy_bytes;

/// Bytes of the header.
const HEADER: usize = 16;
/// Bytes of each message of a long array but the last. Long enough that the time of a message is
/// that of its bytes, and short enough that a node passes on a piece while others travel.
const PIECE: usize = 1 << 18;
/// Pieces of an edge that are under way at a time, in each direction.
const RING: usize = 4;

/// The least bytes that a receive has room for.
const LEAST: usize = 1 << 10;

/// The buffer of a node's own array; those of the children follow it.
const OWN: usize = 0;

/// An edge, as one of its nodes has it.
#[derive(Clone, Debug)]
pub(super) enum Edge {
    /// The other node is on another rank. The messages to the root and from it have a tag each, which
    /// no other messages between the two ranks have.
    Remote {
        /// The other rank.
        rank: usize,
        /// The tag of what goes to the root.
        up: i32,
        /// The tag of what comes from it.
        down: i32,
    },
    /// The other node is on the same rank.
    Local(Rc<LocalEdge>),
}

/// An edge between two nodes of a rank.
#[derive(Debug, Default)]
pub(super) struct LocalEdge {
    up: LocalQueue,
    down: LocalQueue,
}

/// The pieces in one direction.
#[derive(Debug, Default)]
struct LocalQueue {
    /// Those that were not received: 64-bit words, for their alignment, and the length in bytes.
    pieces: RefCell<VecDeque<(Vec<u64>, usize)>>,
    /// Memory of those that were.
    spare: RefCell<Vec<Vec<u64>>>,
}

impl LocalQueue {
    fn push(&self, bytes: &[u8]) {
        let mut piece = self.spare.borrow_mut().pop().unwrap_or_default();
        piece.clear();
        piece.extend(bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        }));
        self.pieces.borrow_mut().push_back((piece, bytes.len()));
    }

    /// Hands the next piece to `read`, if it has come.
    fn pop<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let (piece, bytes) = self.pieces.borrow_mut().pop_front()?;
        let start = piece.as_ptr().cast::<u8>();
        // SAFETY: the piece has at least so many bytes, which are initialised, and is not written
        // while it is read.
        let result = read(unsafe { std::slice::from_raw_parts(start, bytes) });
        self.spare.borrow_mut().push(piece);
        Some(result)
    }
}

/// A neighbour of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The parent.
    Parent,
    /// A child, by its place among them.
    Child(usize),
}

/// Parent and children of a place in the binomial tree over so many.
pub(super) fn binomial_neighbours(place: usize, places: usize) -> (Option<usize>, Vec<usize>) {
    (binomial::parent(place), binomial::children(place, places).collect())
}

/// Why a walk cannot go on.
#[derive(Debug)]
pub(super) enum WalkFault {
    /// MPI failed.
    Mpi(MpiError),
    /// A neighbour is in another call, or has an array of another length.
    Header {
        /// The neighbour.
        from: Neighbour,
        /// What it says of its call.
        call: u64,
        /// The length of its array in bytes.
        bytes: u64,
    },
    /// A neighbour has an array that is longer than this node has room for.
    TooLong {
        /// The neighbour.
        from: Neighbour,
        /// What MPI says.
        error: MpiError,
    },
}

impl From<MpiError> for WalkFault {
    fn from(error: MpiError) -> Self {
        WalkFault::Mpi(error)
    }
}

/// Combines a part of the node's own array with the same part of a child's; called for the children
/// in their order. A part begins at a multiple of 16 bytes and is aligned to 8.
pub(super) type Combine<'a> = dyn FnMut(usize, &mut [u8], &[u8]) + 'a;

/// One node of a tree, and its walk.
pub(super) struct TreeNode {
    parent: Option<Edge>,
    children: Vec<Edge>,
    requests: ByteRequests,
    walk: Walk,
}

/// A node whose neighbours are all on other ranks.
pub(super) struct RemoteNode(TreeNode);

// SAFETY: no edge is local, so there are no `Rc`; the requests and their buffers belong to the node
// alone, and every call of MPI is made under the lock of `call`.
unsafe impl Send for RemoteNode {}

impl RemoteNode {
    /// A node of a rank: the ranks of its neighbours, and the tags of messages to the root and from
    /// it.
    pub(super) fn new(
        comm: &Comm,
        parent: Option<usize>,
        children: &[usize],
        [up, down]: [i32; 2],
    ) -> Result<Self, MpiError> {
        let edge = |rank: usize| Edge::Remote { rank, up, down };
        let children = children.iter().map(|&child| edge(child)).collect();
        Ok(Self(TreeNode::new(comm, parent.map(edge), children)?))
    }

    /// The node.
    pub(super) fn get(&mut self) -> &mut TreeNode {
        &mut self.0
    }

    /// For whom its walk waits.
    pub(super) fn awaited(&self) -> Neighbour {
        self.0.awaited()
    }
}

/// How far a walk is. Pieces are counted from 0.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    way: WalkDirection,
    call: u64,
    /// Bytes of the array with its header, those of a piece, and the number of pieces.
    bytes: usize,
    piece: usize,
    pieces: usize,
    /// Pieces that were copied from the array.
    loaded: usize,
    /// Pieces that were combined and sent to the parent; and of the next one, the children that were
    /// combined.
    up: usize,
    combined: usize,
    /// Pieces whose receives from the parent were posted, and those that were passed on to the
    /// children.
    posted: usize,
    down: usize,
}

impl Walk {
    fn range(&self, piece: usize) -> Range<usize> {
        let start = piece * self.piece;
        start..(start + self.piece).min(self.bytes)
    }

    /// A piece of the own array.
    fn own(&self, piece: usize) -> Part {
        (OWN, self.range(piece))
    }

    /// Where a piece of a child is received.
    fn received(&self, child: usize, piece: usize) -> Part {
        let start = piece % RING * self.piece;
        (child + 1, start..start + self.range(piece).len())
    }

    /// Where a message for a part is received: there is room for more, so that a short array of
    /// another length is found by its header.
    fn with_room(&self, (buffer, bytes): Part) -> Part {
        let end = if self.pieces == 1 { bytes.end.max(LEAST) } else { bytes.end };
        (buffer, bytes.start..end)
    }

    fn goes_up(&self) -> bool {
        self.way != WalkDirection::Down
    }
}

/// The request of a piece: the place of the edge (0 is the parent's), and whether it is received.
fn request(edge: usize, receives: bool, piece: usize) -> usize {
    (2 * edge + usize::from(receives)) * RING + piece % RING
}

/// A part without its header, if it is the first piece.
fn payload((buffer, bytes): Part, piece: usize) -> Part {
    let header = if piece == 0 { HEADER } else { 0 };
    (buffer, bytes.start + header..bytes.end)
}

impl TreeNode {
    /// A node with its neighbours; at the root without a parent.
    pub(super) fn new(
        comm: &Comm,
        parent: Option<Edge>,
        children: Vec<Edge>,
    ) -> Result<Self, MpiError> {
        let edges = children.len() + 1;
        let requests = ByteRequests::new(comm, 2 * edges * RING, edges)?;
        Ok(Self { parent, children, requests, walk: Walk::default() })
    }

    /// Starts a walk with an array of so many bytes. `call` must be the same at all nodes. The walk
    /// before must be done.
    pub(super) fn start(
        &mut self,
        way: WalkDirection,
        call: u64,
        length: usize,
    ) -> Result<(), MpiError> {
        assert!(self.requests.is_idle(), "the last walk is under way");
        let bytes = HEADER + length;
        let piece = PIECE.min(bytes.next_multiple_of(HEADER));
        let pieces = bytes.div_ceil(piece);
        self.walk = Walk { way, call, bytes, piece, pieces, ..Walk::default() };
        self.requests.reserve(OWN, bytes.max(LEAST));
        let header = self.requests.write(&(OWN, 0..HEADER));
        header[..8].copy_from_slice(&call.to_ne_bytes());
        header[8..].copy_from_slice(&to_u64(length).to_ne_bytes());
        if self.walk.goes_up() {
            for child in 0..self.children.len() {
                self.requests.reserve(child + 1, LEAST.max(pieces.min(RING) * piece));
                (0..pieces.min(RING)).try_for_each(|piece| self.post_from_child(child, piece))?;
            }
        }
        Ok(())
    }

    /// Goes on as far as it can; with some tries for the message that the node needs first. Whether
    /// the walk is done. The array is as long as was said at the start.
    pub(super) fn poll(
        &mut self,
        tries: u32,
        array: &mut [u8],
        combine: &mut Combine<'_>,
    ) -> Result<bool, WalkFault> {
        assert_eq!(HEADER + array.len(), self.walk.bytes, "the array of the walk");
        let up = !self.walk.goes_up() || self.poll_up(tries, array, combine)?;
        let tries_down = if up { tries } else { 1 };
        let down = self.walk.way == WalkDirection::Up || self.poll_down(tries_down, array)?;
        if !up || !down {
            return Ok(false);
        }
        if self.requests.is_idle() {
            return Ok(true);
        }
        for edge in 0..=self.children.len() {
            for piece in 0..RING.min(self.walk.pieces) {
                if !self.requests.test(request(edge, false, piece), tries)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Copies a piece of the array to where MPI sends it from, unless that was done.
    fn load(&mut self, piece: usize, array: &[u8]) {
        if self.walk.loaded == piece {
            let part = payload(self.walk.own(piece), piece);
            let from = &array[part.1.start - HEADER..part.1.end - HEADER];
            copy_bytes(self.requests.write(&part), from);
            self.walk.loaded += 1;
        }
    }

    /// Copies a piece of the result to the array.
    fn unload(&self, piece: usize, array: &mut [u8]) {
        let part = payload(self.walk.own(piece), piece);
        let to = &mut array[part.1.start - HEADER..part.1.end - HEADER];
        copy_bytes(to, self.requests.read(&part));
    }

    /// For whom the walk waits.
    pub(super) fn awaited(&self) -> Neighbour {
        let goes_up = self.walk.goes_up() && self.walk.up < self.walk.pieces;
        match self.parent {
            _ if goes_up && self.walk.combined < self.children.len() => {
                Neighbour::Child(self.walk.combined)
            }
            Some(_) => Neighbour::Parent,
            None => Neighbour::Child(0),
        }
    }

    /// Cancels what an abandoned walk would still receive.
    pub(super) fn close(&mut self) -> Result<(), MpiError> {
        self.requests.cancel_receives()
    }

    /// Combines the pieces of the children and sends the result to the parent; whether all are sent.
    fn poll_up(
        &mut self,
        tries: u32,
        array: &mut [u8],
        combine: &mut Combine<'_>,
    ) -> Result<bool, WalkFault> {
        while self.walk.up < self.walk.pieces {
            let piece = self.walk.up;
            self.load(piece, array);
            while self.walk.combined < self.children.len() {
                if !self.combine_child(self.walk.combined, piece, tries, combine)? {
                    return Ok(false);
                }
                self.walk.combined += 1;
            }
            if let Some(parent) = &self.parent {
                let place = request(0, false, piece);
                if !self.requests.test(place, tries)? {
                    return Ok(false);
                }
                let part = self.walk.own(piece);
                match parent {
                    Edge::Local(edge) => edge.up.push(self.requests.read(&part)),
                    Edge::Remote { rank, up, .. } => {
                        self.requests.send(place, part, Remote { rank: *rank, tag: *up })?;
                    }
                }
            }
            if self.walk.way == WalkDirection::Up && !self.children.is_empty() {
                self.unload(piece, array);
            }
            self.walk.combined = 0;
            self.walk.up += 1;
        }
        Ok(true)
    }

    /// Combines a piece of a child with the own one, if it has come.
    fn combine_child(
        &mut self,
        child: usize,
        piece: usize,
        tries: u32,
        combine: &mut Combine<'_>,
    ) -> Result<bool, WalkFault> {
        let (walk, own) = (self.walk, payload(self.walk.own(piece), piece));
        let from = Neighbour::Child(child);
        if let Edge::Local(edge) = &self.children[child] {
            let requests = &mut self.requests;
            let popped = edge.up.pop(|bytes| {
                let bytes = open(&walk, from, piece, bytes)?;
                combine(child, requests.write(&own), bytes);
                Ok(())
            });
            return popped.transpose().map(|popped| popped.is_some());
        }
        if !self.has_arrived(from, request(child + 1, true, piece), tries)? {
            return Ok(false);
        }
        let (own, bytes) = self.requests.write_and_read(&own, &walk.received(child, piece));
        combine(child, own, open(&walk, from, piece, bytes)?);
        if piece + RING < walk.pieces {
            self.post_from_child(child, piece + RING)?;
        }
        Ok(true)
    }

    fn post_from_child(&mut self, child: usize, piece: usize) -> Result<(), MpiError> {
        let Edge::Remote { rank, up, .. } = self.children[child] else { return Ok(()) };
        let place = request(child + 1, true, piece);
        let part = self.walk.with_room(self.walk.received(child, piece));
        self.requests.receive(place, part, Remote { rank, tag: up })
    }

    /// Passes on to the children what comes from the parent, or at the root what was combined;
    /// whether all was passed on.
    fn poll_down(&mut self, tries: u32, array: &mut [u8]) -> Result<bool, WalkFault> {
        while self.walk.down < self.walk.pieces {
            let piece = self.walk.down;
            let is_source = self.parent.is_none() && self.walk.way == WalkDirection::Down;
            if is_source {
                self.load(piece, array);
            }
            let here = match self.parent {
                None => is_source || piece < self.walk.up,
                Some(_) => self.receive_from_parent(piece, tries)?,
            };
            if !here || !self.pass_on(piece)? {
                return Ok(false);
            }
            if !is_source {
                self.unload(piece, array);
            }
            self.walk.down += 1;
        }
        Ok(true)
    }

    /// Whether a message of a neighbour has come.
    fn has_arrived(
        &mut self,
        from: Neighbour,
        request: usize,
        tries: u32,
    ) -> Result<bool, WalkFault> {
        self.requests.test(request, tries).map_err(|error| match is_truncation(&error) {
            true => WalkFault::TooLong { from, error },
            false => WalkFault::Mpi(error),
        })
    }

    /// Whether a piece has come from the parent. Posts receives for as many as there can be.
    fn receive_from_parent(&mut self, piece: usize, tries: u32) -> Result<bool, WalkFault> {
        let walk = self.walk;
        let sent = if walk.way == WalkDirection::Down { walk.pieces } else { walk.up };
        match &self.parent {
            Some(Edge::Remote { rank, down, .. }) => {
                let from = Remote { rank: *rank, tag: *down };
                while self.walk.posted < sent.min(piece + RING) {
                    let next = self.walk.posted;
                    // It is received where the own piece is.
                    if !self.requests.test(request(0, false, next), 1)? {
                        break;
                    }
                    let part = walk.with_room(walk.own(next));
                    self.requests.receive(request(0, true, next), part, from)?;
                    self.walk.posted += 1;
                }
                if self.walk.posted <= piece
                    || !self.has_arrived(Neighbour::Parent, request(0, true, piece), tries)?
                {
                    return Ok(false);
                }
            }
            Some(Edge::Local(edge)) if self.walk.posted <= piece && piece < sent => {
                let (own, requests) = (walk.own(piece), &mut self.requests);
                let popped: Option<Result<(), WalkFault>> = edge.down.pop(|bytes| {
                    open(&walk, Neighbour::Parent, piece, bytes)?;
                    requests.write(&own).copy_from_slice(bytes);
                    Ok(())
                });
                if popped.transpose()?.is_none() {
                    return Ok(false);
                }
                self.walk.posted += 1;
            }
            _ => return Ok(self.walk.posted > piece),
        }
        open(&walk, Neighbour::Parent, piece, self.requests.read(&walk.own(piece)))?;
        Ok(true)
    }

    /// Sends a piece to the children, if all of them can be sent one more.
    fn pass_on(&mut self, piece: usize) -> Result<bool, MpiError> {
        for child in 0..self.children.len() {
            if !self.requests.test(request(child + 1, false, piece), 1)? {
                return Ok(false);
            }
        }
        // The last child has the deepest branch of a binomial tree.
        for (child, edge) in self.children.iter().enumerate().rev() {
            let part = self.walk.own(piece);
            match edge {
                Edge::Local(edge) => edge.down.push(self.requests.read(&part)),
                Edge::Remote { rank, down, .. } => {
                    let to = Remote { rank: *rank, tag: *down };
                    self.requests.send(request(child + 1, false, piece), part, to)?;
                }
            }
        }
        Ok(true)
    }
}

/// What a piece holds of the array, if it is of the same walk.
fn open<'a>(
    walk: &Walk,
    from: Neighbour,
    piece: usize,
    bytes: &'a [u8],
) -> Result<&'a [u8], WalkFault> {
    if piece > 0 {
        return Ok(bytes);
    }
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    let (call, length) = (word(0), word(8));
    if (call, length) != (walk.call, to_u64(walk.bytes - HEADER)) {
        return Err(WalkFault::Header { from, call, bytes: length });
    }
    Ok(&bytes[HEADER..])
}

#[cfg(test)]
mod tests {
    use super::binomial_neighbours;

    #[test]
    fn parents_and_children_agree() {
        for ranks in 1..70 {
            let trees: Vec<_> = (0..ranks).map(|rank| binomial_neighbours(rank, ranks)).collect();
            assert_eq!(trees[0].0, None);
            for (rank, (parent, children)) in trees.iter().enumerate() {
                assert!(children.is_sorted());
                assert!(children.iter().all(|&child| trees[child].0 == Some(rank)));
                let parent = parent.map(|parent| &trees[parent]);
                assert!(parent.is_none_or(|(_, children)| children.contains(&rank)));
            }
            let children: usize = trees.iter().map(|(_, children)| children.len()).sum();
            assert_eq!(children, ranks - 1);
        }
    }
}
