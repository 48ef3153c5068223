//! The machine with faults of the hardware ([`crate::injection`]): what a plan does to links, ports and words.

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, Feed, LinkId};

use super::{Engine, OperationId};
use crate::agents::OperationStage;
use crate::base::faults::{Ports as _, WordPlace};
use crate::fault::FaultKind;
use crate::injection::{
    CorruptedPayload, FaultPlan, FaultPlanError, HardwareFaults, Part, SwitchFaults, keep_back,
};
use crate::network::LinkTransfer;
use crate::payload::Payload;

/// An open receive operation whose words were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostWords {
    pub(crate) operation: OperationId,
    pub(crate) sent: u32,
    pub(crate) received: u32,
}

impl Engine {
    /// The engine with faults of the hardware. It does not skip periods.
    ///
    /// # Errors
    /// A part that the machine does not have.
    pub fn with_faults(mut self, plan: &FaultPlan) -> Result<Self, FaultPlanError> {
        self.base.add_faults(plan)?;
        Ok(self)
    }

    /// The clock at which each fault of the plan acted first, in the order of the plan; empty without a plan.
    pub fn faults_acted(&self) -> &[Option<u64>] {
        self.base.faults_acted()
    }

    /// The faults of the next context switch, which the driver carries out: the engine knows neither the other
    /// phases nor how the cells reach the switch. To be called once before each [`Engine::switch`] or
    /// [`Engine::load`].
    pub fn take_switch_faults(&mut self) -> SwitchFaults {
        self.base.take_switch_faults()
    }

    /// Takes the faults, for another engine of the machine. Nothing may be in progress, and this engine is not run
    /// again before it gets them back.
    pub fn take_faults(&mut self) -> Option<HardwareFaults> {
        self.base.take_faults()
    }

    /// Takes over the faults that another engine of the same machine had.
    pub fn give_faults(&mut self, faults: HardwareFaults) {
        self.base.give_faults(faults, &mut self.agents);
    }

    /// The agents and links that have stopped for ever, in order.
    pub(crate) fn dead_parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.base.injection.iter().flat_map(|injection| injection.dead())
    }

    /// Nobody waits for a cell at context switches any more.
    pub(crate) fn stop_using(&mut self, cell: CellId) {
        if let Some(injection) = &mut self.base.injection {
            injection.stop_using(cell);
        }
    }

    /// The connections of the words in channels, one for each channel.
    pub(crate) fn connections_in_channels(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let network = &self.base.network;
        let heads = network.occupied().filter_map(|(row, _)| network.head(row));
        heads.map(|head| ConnectionId(head.stream()))
    }

    /// Lets time pass up to a clock, if that is later. Nothing may be in progress, and no timer may expire before.
    pub fn pass_until(&mut self, clock: u64) {
        self.base.now = self.base.now.max(clock);
    }

    /// The links and ports of a new context are idle; those that are stopped have their turn later.
    #[cold]
    pub(super) fn keep_stopped(&mut self) {
        let Some(injection) = &mut self.base.injection else { return };
        injection.forget_words();
        for (&link, turn) in &mut injection.held.links {
            self.base.network.stop(link);
            *turn = true;
        }
        for (&port, turn) in &mut injection.held.ports {
            self.agents.stop(port);
            *turn = true;
        }
    }

    /// Lets faulty links spoil the words that arrive now ([`crate::base::Base::spoil`]).
    #[cold]
    pub(super) fn spoil(&mut self, transfers: &mut Vec<LinkTransfer>) -> Vec<LinkTransfer> {
        let operations = &self.agents.operations;
        self.base.spoil(transfers, |tag| {
            let has_next = operations.iter().any(|operation| {
                let place = tag.index().checked_sub(operation.first);
                operation.direction == Direction::Send
                    && operation.connection.0 == tag.stream()
                    && place.is_some_and(|place| place + 1 < operation.words)
            });
            WordPlace { is_header: false, is_last: !has_next }
        })
    }

    /// These ports have moved their words, some of which may have been corrupted.
    #[cold]
    pub(super) fn end_spoiled_words(&mut self, ports: &[u32], data: &mut dyn Payload) {
        let injection = self.base.injection.take();
        match injection.as_ref().and_then(|injection| injection.corrupted()) {
            Some(corrupted) => self.end_words(ports, &mut CorruptedPayload { data, corrupted }),
            None => self.end_words(ports, data),
        }
        self.base.injection = injection;
    }

    /// Removes the links and ports that are stopped, and the ports that have to rest, from those that are served.
    #[cold]
    pub(super) fn hold_back<'a>(
        &mut self,
        transfers: &mut Vec<LinkTransfer>,
        port_lists: impl Iterator<Item = &'a mut Vec<u32>>,
    ) {
        self.base.hold_links_back(transfers);
        for ports in port_lists {
            self.base.let_rest(ports, |port| self.agents.cell_of(port));
            let Some(injection) = &mut self.base.injection else { return };
            keep_back(&mut injection.held.ports, ports, |&port| port);
        }
    }

    /// The first open receive operation that waits for words although all have been sent and none is on its way,
    /// after [`Engine::run`] has returned [`super::Stop::Idle`].
    pub(crate) fn lost_words(&self) -> Option<LostWords> {
        let operations = self.agents.operations.iter().enumerate();
        operations.filter(|(_, o)| o.direction == Direction::Receive).find_map(|(number, o)| {
            if o.stage != OperationStage::Open {
                return None;
            }
            let is_sent = |other: &&crate::agents::SubmittedOperation| {
                let same = (other.connection, other.first) == (o.connection, o.first);
                same && other.direction == Direction::Send
                    && other.stage == OperationStage::Finished
            };
            let sent = self.agents.operations.iter().find(is_sent)?.words;
            let on_way = |row: u32| {
                self.base.network.head(row).is_some_and(|tag| tag.stream() == o.connection.0)
            };
            if self.base.network.occupied().any(|(row, _)| on_way(row)) {
                return None;
            }
            let received = o.words - self.agents.words_left(to_u32(number));
            Some(LostWords { operation: OperationId(to_u32(number)), sent, received })
        })
    }

    /// Words that a receive operation waits for although all have been sent and none is on its way, as a fault; after
    /// [`Engine::run`] has returned [`super::Stop::Idle`].
    pub fn lost_words_fault(&self) -> Option<FaultKind> {
        let LostWords { operation, sent, received } = self.lost_words()?;
        let state = self.operation(operation);
        Some(FaultKind::LostWords {
            cell: state.cell,
            connection: state.connection,
            first_word: state.first_word,
            sent,
            received,
            damage: None,
            links: self.links_to(operation),
        })
    }

    /// The links over which the words of a receive operation come, the last one first.
    pub(crate) fn links_to(&self, operation: OperationId) -> Vec<LinkId> {
        let mut row = self.agents.operations[index(operation.0)].row;
        let mut links = Vec::new();
        while let Feed::Link(link) = self.tables.rows[index(row)].feed {
            links.push(link);
            let channels = self.base.network.channels.iter();
            let Some(before) = channels.into_iter().position(|c| c.next() == Some(row)) else {
                break;
            };
            row = to_u32(before);
        }
        links
    }
}
