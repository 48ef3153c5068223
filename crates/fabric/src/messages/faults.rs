//! Faults of the hardware ([`crate::injection`]) in message passing.
//!
//! Links stop and spoil words as in exchanges by connections. What a message adds:
//!
//! * The router of a cell connects a channel when a header arrives in it and frees it behind the tail. A word that
//!   arrives in a free channel without a header before it is noticed there at once ([`FaultKind::StrayWord`]): the
//!   words behind a lost header, a word that the next one or the tail has overtaken, a second tail.
//! * A header that is no word of data has a check of its own: if a bit is inverted, it is as lost. The other extra
//!   words carry nothing that this model knows, so an inverted bit in them changes nothing.
//! * A reception ends with the tail. The receiver knows the number of words from the header and notices if another
//!   number came ([`FaultKind::LostWords`], [`FaultKind::ExcessWords`]); a simulator also notices words in the places of
//!   others ([`FaultKind::MisplacedWord`]). With check words these tell what is wrong, and the driver compares them.
//!   Without the tail the receiver waits for ever, and the channels behind the lost tail are never free:
//!   [`MessageEngine::lost_words`].
//! * A stopped cell moves no word between agent and network and starts no software; its links and router work on. A
//!   cell that is slow rests after each word but the last one of a message.
//!
//! These rules are the same for sets, step plans, packets of active messages and the messages of programs: the engine
//! applies them. A message that did not arrive rightly is not reported as received.
//!
//! There are no context switches, so faults of these never act, except where a driver has them from elsewhere
//! ([`MessageEngine::take_switch_faults`]).

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use conset_ir::convert::{index, to_u32};
use conset_ir::{CellId, ConnectionId, Direction, LinkId};

use super::agents::{ReceiverState, SenderState};
use super::engine::{Message, MessageEngine};
use super::run::MessageData;
use crate::base::faults::{Ports, WordPlace};
use crate::detection::{CHECK_WORDS, Detection};
use crate::fault::{FaultKind, WaitCause, WaitEdge};
use crate::injection::{FaultPlan, FaultPlanError, HardwareFaults, Part, SwitchFaults};
use crate::network::{LinkTransfer, NONE};

/// The ports whose turn has come. A cell has two: `2 * cell` sends and `2 * cell + 1` receives.
struct WokenPorts(Vec<u32>);

impl Ports for WokenPorts {
    fn of_cell(&self, cell: CellId) -> RangeInclusive<u32> {
        2 * cell.0..=2 * cell.0 + 1
    }

    /// The agent itself knows whether it has a word to move.
    fn stop(&mut self, _port: u32) -> bool {
        true
    }

    fn resume(&mut self, port: u32) {
        self.0.push(port);
    }
}

impl MessageEngine {
    /// The engine with faults of the hardware. It does not skip periods.
    pub(crate) fn with_faults(mut self, plan: &FaultPlan) -> Result<Self, FaultPlanError> {
        self.base.add_faults(plan)?;
        Ok(self)
    }

    /// The engine with receivers that notice so much. Check words are at the end of each message, and the payload
    /// transfers them like data.
    pub(crate) fn with_detection(mut self, detection: Detection) -> Self {
        self.check_words = if detection == Detection::Checked { CHECK_WORDS } else { 0 };
        self.compares_words = detection == Detection::Simulator;
        self
    }

    /// Takes the faults, for another engine of the machine ([`crate::Engine::take_faults`]).
    pub fn take_faults(&mut self) -> Option<HardwareFaults> {
        self.base.take_faults()
    }

    /// Takes over the faults that another engine of the same machine had.
    pub fn give_faults(&mut self, faults: HardwareFaults) {
        let mut ports = WokenPorts(Vec::new());
        self.base.give_faults(faults, &mut ports);
        self.wake_all(&ports.0);
    }

    /// The faults of the next context switch ([`crate::Engine::take_switch_faults`]).
    pub fn take_switch_faults(&mut self) -> SwitchFaults {
        self.base.take_switch_faults()
    }

    /// The clock at which each fault of the plan acted first.
    pub(crate) fn faults_acted(&self) -> &[Option<u64>] {
        self.base.faults_acted()
    }

    #[inline]
    pub(crate) fn is_cell_stopped(&self, cell: u32) -> bool {
        self.base.injection.is_some() && self.base.is_stopped(Part::Agent(CellId(cell)))
    }

    /// Whether a cell has stopped, so that it moves its next word later.
    #[inline]
    pub(crate) fn holds_back(&mut self, cell: u32, direction: Direction) -> bool {
        let stopped = self.is_cell_stopped(cell);
        if stopped {
            self.agents[index(cell)].held_back[usize::from(direction == Direction::Receive)] = true;
        }
        stopped
    }

    /// Stops and starts the parts whose time has come; returns the ports to be woken.
    #[cold]
    pub(super) fn inject(&mut self) -> Vec<u32> {
        let mut ports = WokenPorts(Vec::new());
        self.base.inject(&mut ports);
        ports.0
    }

    /// The stall or rest of these ports is over.
    pub(super) fn wake_all(&mut self, ports: &[u32]) {
        for &port in ports {
            let (cell, side) = (port / 2, port % 2);
            if std::mem::take(&mut self.agents[index(cell)].held_back[index(side)]) {
                if side == 0 { self.send_word(cell) } else { self.receive_word(cell) }
            }
            self.start_software(cell);
        }
    }

    #[cold]
    pub(super) fn spoil(&mut self, transfers: &mut Vec<LinkTransfer>) -> Vec<LinkTransfer> {
        let extra = self.base.machine.parameters().message_extra_words;
        let worms = &self.worms;
        self.base.spoil(transfers, |tag| WordPlace {
            is_header: tag.index() == 0 && extra > 0,
            is_last: tag.index() + 1 == worms[index(tag.stream())].length,
        })
    }

    /// Removes stopped links and resting cells from those that are served.
    #[cold]
    pub(super) fn hold_back(
        &mut self,
        transfers: &mut Vec<LinkTransfer>,
        sends: &mut Vec<u32>,
        receives: &mut Vec<u32>,
    ) {
        self.base.hold_links_back(transfers);
        if !self.base.injection.as_ref().is_some_and(|injection| injection.has_slow_cells()) {
            return;
        }
        for (side, cells) in [(0, sends), (1, receives)] {
            let (mut ports, others): (Vec<u32>, Vec<u32>) =
                cells.iter().partition(|&&cell| self.has_another_word(cell, side == 0));
            ports.iter_mut().for_each(|port| *port = 2 * *port + side);
            let all = ports.clone();
            self.base.let_rest(&mut ports, |port| CellId(port / 2));
            for port in all.iter().filter(|port| !ports.contains(port)) {
                self.agents[index(port / 2)].held_back[index(side)] = true;
            }
            // In the order in which they began.
            cells.retain(|&cell| others.contains(&cell) || ports.contains(&(2 * cell + side)));
        }
    }

    /// Whether the sender or receiver of a cell has another word of the same message to move. If not, others may change
    /// its state while it rests.
    fn has_another_word(&self, cell: u32, sends: bool) -> bool {
        let agent = &self.agents[index(cell)];
        match sends {
            true => agent.send_next < self.worms[index(agent.sent)].length,
            // Behind the tail it is idle, or runs the software of another message.
            false => agent.receiving == ReceiverState::Word,
        }
    }

    /// How a run ended, after [`MessageEngine::run`] has returned [`crate::Stop::Idle`] or [`crate::Stop::Fault`].
    ///
    /// # Errors
    /// What was noticed, lost words, or the waits of messages that are unfinished.
    pub(super) fn outcome(&self) -> Result<(), FaultKind> {
        let lost = || self.base.injection.as_ref().and_then(|_| self.lost_words());
        let noticed = self.noticed.clone();
        noticed.or_else(lost).or_else(|| self.explain()).map_or(Ok(()), Err)
    }

    /// Goes on after what was noticed, if the driver does.
    pub(super) fn goes_on(&mut self, driver: &mut impl MessageData) -> bool {
        let Some(kind) = &self.noticed else { return false };
        let goes_on = driver.goes_on_after(self.base.now, kind);
        if goes_on {
            self.noticed = None;
        }
        goes_on
    }

    /// What faults of the hardware have done, after [`MessageEngine::run`] has returned: what a router or a receiver has
    /// noticed or, if nothing moves any more, lost words, or a chain of waits that ends at a part that has stopped.
    /// `None` without a plan, and if messages wait for something else or for nothing.
    pub fn hardware_fault(&self) -> Option<FaultKind> {
        self.base.injection.as_ref()?;
        let is_hardware = |kind: &FaultKind| match kind {
            FaultKind::Deadlock { waits, .. } => {
                waits.last().is_some_and(|last| last.cause.is_stopped_part())
            }
            _ => true,
        };
        self.outcome().err().filter(is_hardware)
    }

    /// A word has arrived in channel `row` that no header came before.
    #[cold]
    pub(super) fn notice_stray_word(&mut self, row: u32) {
        if self.noticed.is_some() {
            return;
        }
        let Some(tag) = self.base.network.head(row) else { return };
        let (message, word) = (self.worms[index(tag.stream())].message.label, tag.index());
        let link = LinkId(row / self.router.pools);
        let cell = CellId(self.cell_of(row));
        self.noticed = Some(FaultKind::StrayWord { cell, link, message, word });
    }

    /// Whether the message that a cell has received up to its tail has arrived rightly, as far as the receiver sees.
    #[cold]
    pub(super) fn is_right(&mut self, cell: u32, number: u32) -> bool {
        let agent = &mut self.agents[index(cell)];
        let (received, misplaced) = (agent.receive_next, agent.misplaced.take());
        if self.check_words > 0 {
            return true;
        }
        let (sent, message) = (self.worms[index(number)].length, self.label(number));
        let misplaced = misplaced.filter(|_| self.compares_words);
        let (cell, links) = (CellId(cell), self.route_links(number));
        let kind = match (received.cmp(&sent), misplaced) {
            (Ordering::Equal, None) => return true,
            (Ordering::Equal, Some((expected, from, word))) => {
                let found = self.label(from);
                FaultKind::MisplacedWord { cell, message, expected, found, word, links }
            }
            (Ordering::Less, _) => {
                let (connection, first_word, damage) = (message, 0, None);
                FaultKind::LostWords { cell, connection, first_word, sent, received, damage, links }
            }
            (Ordering::Greater, _) => {
                FaultKind::ExcessWords { cell, message, sent, received, links }
            }
        };
        self.noticed.get_or_insert(kind);
        false
    }

    /// The first message whose receiver waits although its source has sent all of its words and none is on its
    /// way, after [`MessageEngine::run`] has returned [`crate::Stop::Idle`].
    fn lost_words(&self) -> Option<FaultKind> {
        let is_on_way = |number: u32| {
            let heads =
                self.base.network.occupied().filter_map(|(row, _)| self.base.network.head(row));
            heads.into_iter().any(|tag| tag.stream() == number)
        };
        let (number, worm) = (0..).zip(&self.worms).find(|&(number, worm)| {
            let notices = !self.is_cell_stopped(worm.message.target.0);
            worm.live && notices && !self.has_words_to_send(number) && !is_on_way(number)
        })?;
        let Message { target, label, .. } = worm.message;
        let received = self.agents[target.index()].receive_next;
        Some(FaultKind::LostWords {
            cell: target,
            connection: label,
            first_word: 0,
            sent: worm.length,
            received: if self.is_received(number) { received } else { 0 },
            damage: None,
            links: self.route_links(number),
        })
    }

    /// Whether the source of a message has not handed all of its words to the network.
    fn has_words_to_send(&self, number: u32) -> bool {
        let source = &self.agents[self.worms[index(number)].message.source.index()];
        let is_busy =
            matches!(source.sending, SenderState::Software | SenderState::Word | SenderState::Full);
        source.pending.contains(&number) || is_busy && source.sent == number
    }

    /// Whether the target of a message is receiving it.
    fn is_received(&self, number: u32) -> bool {
        let target = &self.agents[self.worms[index(number)].message.target.index()];
        target.received == number && target.receiving != ReceiverState::Idle
    }

    /// The links of the route of the last message with a label, the last one first.
    pub(crate) fn links_of(&self, label: ConnectionId) -> Vec<LinkId> {
        let worm = self.worms.iter().rposition(|worm| worm.message.label == label);
        worm.map_or_else(Vec::new, |number| self.route_links(to_u32(number)))
    }

    /// The links of the route of a message, the last one first.
    fn route_links(&self, number: u32) -> Vec<LinkId> {
        let route = self.worms[index(number)].route.iter().rev();
        route.map(|row| LinkId(row / self.router.pools)).collect()
    }

    /// The stopped link or cell that a message waits for.
    pub(super) fn stopped_part(&self, number: u32) -> Option<WaitEdge> {
        let worm = &self.worms[index(number)];
        let Message { source, target, label: message, .. } = worm.message;
        let launched = self.launch + source.0;
        for &row in worm.route[..worm.hops.min(worm.route.len())].iter().chain([&launched]) {
            let holds = self.base.network.head(row).is_some_and(|tag| tag.stream() == number);
            if let Some((_, link)) = self.base.network.ahead(row)
                && holds
                && self.base.is_stopped(Part::Link(link))
            {
                let cause = WaitCause::StoppedLink { message, link: LinkId(link) };
                return Some(WaitEdge { cell: CellId(self.cell_of(row)), cause });
            }
        }
        let has_arrived = worm.head != NONE && worm.hops == worm.route.len();
        let is_announced = self.agents[target.index()].announcements.contains(&number);
        let dead = |cell: CellId, direction| {
            let cause = WaitCause::DeadCell { direction, connection: message };
            self.is_cell_stopped(cell.0).then_some(WaitEdge { cell, cause })
        };
        let sends = self.has_words_to_send(number).then(|| dead(source, Direction::Send)).flatten();
        let awaits = has_arrived || is_announced || self.is_received(number);
        sends.or_else(|| awaits.then(|| dead(target, Direction::Receive)).flatten())
    }
}
