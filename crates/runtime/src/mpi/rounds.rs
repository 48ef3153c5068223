//! Rounds of epochs, and sized exchanges, by messages between cells.
//!
//! Up to [`DIRECT`] cells a round is direct ([`super::direct_rounds`]): a message of each cell to each
//! other one, which says by itself what it carries. A way that first exchanges counts (`MPI_Alltoall`)
//! sends as many, and then the words; one that waits until nobody sends any more (NBX: synchronous
//! sends and a nonblocking barrier) waits for two more hops to and fro. Above, where that many messages
//! would cost more than passing words on, rounds are routed ([`Round::route`]).

use conset_ir::convert::{to_u64, to_usize};
use conset_ir::{CellId, Direction};

use super::mismatch::CollectiveStep;
use super::port::MpiPort;
use super::run::{MessageClass, WaitState};
use crate::Routing;
use crate::epochs::routing::{PacketPort, Packing, Round, RoundResult, TakeLists, pack, unpack};
use crate::error::{CellError, EpochUse};
use crate::port::{CellPort, RawWords, Stopped, UnpackFn};

/// The most cells whose rounds are direct. A direct round costs each cell two calls of MPI for each
/// other cell, a routed one a hop after the other and a copy of each word in half of the hops.
const DIRECT: usize = 32;

/// The first word of a message of a sized exchange: a signalling NaN that no calculation gives.
const SIZED: u64 = 0x7ff4_73ed_2d73_697a;

impl MpiPort<'_> {
    pub(super) fn deliver_round(
        &mut self,
        round: Round<'_>,
        arrived: &mut dyn TakeLists,
    ) -> RoundResult {
        self.rank.count_step(self.row, CollectiveStep::Round, self.call);
        let direct = match round.routing {
            Routing::Auto => round.live.len() <= DIRECT,
            Routing::Direct => true,
            Routing::Routed => false,
        };
        match direct {
            true => self.deliver_directly(round, arrived),
            false => round.route(self, Packing::Dense, arrived),
        }
    }

    /// # Safety
    /// The rows can be read until the call returns or unwinds.
    pub(super) unsafe fn exchange_rows_sized(
        &mut self,
        set: usize,
        outgoing: &[RawWords],
        read: &mut UnpackFn<'_>,
    ) -> Result<(), Stopped> {
        self.rank.count_step(self.row, CollectiveStep::SizedExchange(set), self.call);
        let (loaded, size) = (self.rank.loaded, self.call.word_bytes());
        let (ends, connections) = (&loaded.sets[set], loaded.set(set));
        for (&connection, row) in ends.outgoing.of(self.id).iter().zip(outgoing) {
            let target = connections.get(connection).target;
            // SAFETY: the caller says that the row can be read.
            let bytes = unsafe { row.bytes(&(0..row.words)) };
            let mut packet = vec![SIZED, to_u64(size), to_u64(bytes.len())];
            pack(bytes, size_of::<u64>(), &mut packet);
            self.send_packet(target, packet)?;
        }
        for (place, &connection) in ends.incoming.of(self.id).iter().enumerate() {
            let source = connections.get(connection).source;
            match self.receive_packet(source, |packet| open_sized(packet, source, size))? {
                Ok(bytes) => read((place, 0), &bytes),
                Err(wrong) => {
                    self.fail(&CellError::Epoch(wrong));
                    return Err(Stopped);
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a message of a sized exchange.
fn open_sized(packet: &[u64], source_cell: CellId, size: usize) -> Result<Vec<u8>, EpochUse> {
    let foreign = || EpochUse::Message { source_cell, words: packet.len() };
    let &[SIZED, found, length, ref words @ ..] = packet else { return Err(foreign()) };
    if found != to_u64(size) {
        return Err(EpochUse::WordBytes { other: source_cell, found, bytes: size });
    }
    if length.div_ceil(8) != to_u64(words.len()) {
        return Err(foreign());
    }
    Ok(unpack(words, size_of::<u64>(), to_usize(length)))
}

impl MpiPort<'_> {
    /// Sends a packet to another live cell.
    fn send_packet(&mut self, target: CellId, packet: Vec<u64>) -> Result<(), Stopped> {
        let to = self.rank.message_of(MessageClass::Packet, (self.id, target), Direction::Send);
        self.noted(self.rank.messages.send(to, packet))
    }

    /// Hands the next packet of another live cell, of any length, to a function.
    fn receive_packet<T>(
        &mut self,
        source: CellId,
        open: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        let from =
            self.rank.message_of(MessageClass::Packet, (source, self.id), Direction::Receive);
        let what = WaitState::MessageSpec(source);
        let words = self.next_envelope(from, what)?;
        self.open(from, words, what, open)
    }
}

impl PacketPort for MpiPort<'_> {
    fn pass_packet<T>(
        &mut self,
        (target, packet): (CellId, Vec<u64>),
        source: CellId,
        _: bool,
        open: impl Fn(&[u64]) -> T,
    ) -> Result<T, Stopped> {
        self.send_packet(target, packet)?;
        self.receive_packet(source, open)
    }
}
