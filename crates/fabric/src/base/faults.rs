//! What faults of the hardware ([`crate::injection`]) do to links and words: the part that is the same for both
//! machines. What stops a port, and what a port does when its stall is over, is each machine's own ([`Ports`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use conset_ir::{CellId, ConnectionId};

use super::Base;
use crate::injection::{
    FaultPlan, FaultPlanError, HardwareFaults, Injection, Part, SwitchFaults, WordEffect, keep_back,
};
use crate::network::{LinkTransfer, Network, Tag};
use crate::payload::Payload;

/// The ports of a machine's agents.
pub(crate) trait Ports {
    /// The ports of a cell.
    fn of_cell(&self, cell: CellId) -> RangeInclusive<u32>;
    /// Lets a port do nothing; returns whether it would have had a turn.
    fn stop(&mut self, port: u32) -> bool;
    /// Gives a port its turn.
    fn resume(&mut self, port: u32);
}

/// Where in its stream or message a word is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordPlace {
    /// The header of a message that is no word of data. A router does not follow it if a bit is inverted.
    pub(crate) is_header: bool,
    /// Nothing comes after it.
    pub(crate) is_last: bool,
}

/// Lets parts of a machine stop and go on so that exactly the ones in `stopped` are held back.
/// `held` says which are now, and whether each of them would have had a turn.
fn hold<P>(
    held: &mut BTreeMap<u32, bool>,
    stopped: BTreeSet<u32>,
    parts: &mut P,
    stop: fn(&mut P, u32) -> bool,
    resume: fn(&mut P, u32),
) {
    held.retain(|part, turn| {
        let stays = stopped.contains(part);
        if !stays && *turn {
            resume(parts, *part);
        }
        stays
    });
    for part in stopped {
        held.entry(part).or_insert_with(|| stop(parts, part));
    }
}

impl<T: Ord> Base<T> {
    /// Gives the machine the faults of a plan. It does not skip periods then.
    pub(crate) fn add_faults(&mut self, plan: &FaultPlan) -> Result<(), FaultPlanError> {
        self.injection = Some(Box::new(Injection::new(plan, &self.machine)?));
        self.detector.disable();
        Ok(())
    }

    /// Takes the faults from this engine, which is not run again before it gets them back. What they hold back stays.
    pub(crate) fn take_faults(&mut self) -> Option<HardwareFaults> {
        let mut injection = self.injection.take()?;
        self.held = std::mem::take(&mut injection.held);
        Some(HardwareFaults(injection))
    }

    /// Takes over faults of the same machine that another engine had. Parts stop and go on as they have meanwhile.
    pub(crate) fn give_faults(&mut self, faults: HardwareFaults, ports: &mut impl Ports) {
        let mut injection = faults.0;
        injection.held = std::mem::take(&mut self.held);
        let (mut links, mut stopped_ports) = (BTreeSet::new(), BTreeSet::new());
        for part in injection.stopped() {
            match part {
                Part::Link(link) => drop(links.insert(link)),
                Part::Agent(cell) => stopped_ports.extend(ports.of_cell(cell)),
            }
        }
        let (held, network) = (&mut injection.held, &mut self.network);
        hold(&mut held.links, links, network, Network::stop, Network::resume);
        hold(&mut held.ports, stopped_ports, ports, Ports::stop, Ports::resume);
        self.injection = Some(injection);
        self.detector.disable();
    }

    /// The faults of the next context switch, which the driver carries out.
    pub(crate) fn take_switch_faults(&mut self) -> SwitchFaults {
        let now = self.now;
        let injection = self.injection.as_mut();
        injection.map_or_else(SwitchFaults::default, |faults| faults.take_switch(now))
    }

    /// Whether the end of a stall or rest will set something in motion, if somebody waits.
    pub(crate) fn is_held_up(&self, is_waiting: bool) -> bool {
        let injection = self.injection.as_ref().filter(|_| is_waiting);
        injection.is_some_and(|injection| injection.next_end().is_some())
    }

    /// The clock at which each fault of the plan acted first, in the order of the plan; empty without a plan.
    pub(crate) fn faults_acted(&self) -> &[Option<u64>] {
        self.injection.as_ref().map_or(&[], |injection| injection.acted())
    }

    /// Whether a part of the machine has stopped by a fault.
    pub(crate) fn is_stopped(&self, part: Part) -> bool {
        self.injection.as_ref().is_some_and(|injection| injection.is_stopped(part))
    }

    /// The clock of the next action, if that without faults is `next`: the end of a stall or rest may come first, if
    /// somebody waits for it. Nobody waits for a fault that is still to come.
    pub(crate) fn next_with_faults(&self, next: Option<u64>, is_waiting: bool) -> Option<u64> {
        let Some(injection) = &self.injection else { return next };
        let end = injection.next_end().filter(|_| is_waiting);
        let next = next.into_iter().chain(end).min();
        next.map(|next| injection.next().map_or(next, |event| next.min(event)))
    }

    /// Stops the parts whose fault begins now and lets those go on whose stall or rest ends.
    #[cold]
    pub(crate) fn inject(&mut self, ports: &mut impl Ports) {
        let Some(injection) = &mut self.injection else { return };
        let network = &mut self.network;
        for port in injection.end_rests(self.now) {
            match injection.held.ports.get_mut(&port) {
                Some(turn) => *turn = true,
                None => ports.resume(port),
            }
        }
        while let Some((part, stops)) = injection.take(self.now) {
            match part {
                Part::Link(link) if stops => {
                    injection.held.links.insert(link, network.stop(link));
                }
                Part::Link(link) => {
                    if injection.held.links.remove(&link) == Some(true) {
                        network.resume(link);
                    }
                }
                Part::Agent(cell) => {
                    for port in ports.of_cell(cell) {
                        if stops {
                            injection.held.ports.insert(port, ports.stop(port));
                        } else if injection.held.ports.remove(&port) == Some(true) {
                            ports.resume(port);
                        }
                    }
                }
            }
        }
    }

    /// Lets faulty links spoil the words that arrive now. Moves the words that need nothing else to be done for
    /// their arrival from `transfers` into the result. `place` is that of a word in its stream.
    #[cold]
    pub(crate) fn spoil(
        &mut self,
        transfers: &mut Vec<LinkTransfer>,
        place: impl Fn(Tag) -> WordPlace,
    ) -> Vec<LinkTransfer> {
        let mut spoiled = Vec::new();
        if self.injection.as_ref().is_some_and(|injection| injection.has_word_faults()) {
            transfers.retain(|&transfer| {
                let arrives = !self.spoil_word(transfer, &place);
                if !arrives {
                    spoiled.push(transfer);
                }
                arrives
            });
        }
        spoiled
    }

    /// Handles a word that is spoiled, or that another one waits for; returns whether it did.
    fn spoil_word(&mut self, transfer: LinkTransfer, place: &impl Fn(Tag) -> WordPlace) -> bool {
        let Some(injection) = &mut self.injection else { return false };
        let to = transfer.to();
        let hit = injection.hit(transfer.link());
        let overtaken = injection.held.overtaken.remove(&to);
        if hit.is_none() && overtaken.is_none() {
            return false;
        }
        let tag = self.network.last_word(to);
        let WordPlace { is_header, is_last } = place(tag);
        let effect = hit.map(|hit| match hit.0 {
            WordEffect::Corrupt if is_header => WordEffect::Drop,
            effect => effect,
        });
        let acts = effect != Some(WordEffect::Reorder) || overtaken.is_none() && !is_last;
        if let Some((_, number)) = hit.filter(|_| acts) {
            injection.note_hit(number, self.now);
        }
        let network = &mut self.network;
        match effect.filter(|_| acts) {
            Some(WordEffect::Drop) => {
                network.lose(to);
            }
            Some(WordEffect::Reorder) => {
                injection.held.overtaken.insert(to, network.lose(to));
            }
            Some(WordEffect::Duplicate) => {
                network.arrive_all(&[transfer]);
                network.insert(to, tag);
            }
            Some(WordEffect::Corrupt) => {
                injection.corrupt(tag, transfer.link());
                network.arrive_all(&[transfer]);
            }
            None => network.arrive_all(&[transfer]),
        }
        if let Some(earlier) = overtaken {
            network.insert(to, earlier);
        }
        true
    }

    /// Inverts the bits of a word that was delivered to `place`, if a link has corrupted it.
    #[inline]
    pub(crate) fn invert_corrupted(
        &mut self,
        word: (u32, u32),
        place: (ConnectionId, u32),
        data: &mut dyn Payload,
    ) {
        if let Some(injection) = &mut self.injection
            && let Some(bits) = injection.take_corrupted(word)
        {
            data.invert(place, bits);
        }
    }

    /// Removes the links that are stopped from those that are served.
    pub(crate) fn hold_links_back(&mut self, transfers: &mut Vec<LinkTransfer>) {
        let Some(injection) = &mut self.injection else { return };
        keep_back(&mut injection.held.links, transfers, |transfer| transfer.link());
    }

    /// Removes the ports of slow cells from those that are served, and lets them rest.
    pub(crate) fn let_rest(&mut self, ports: &mut Vec<u32>, cell_of: impl Fn(u32) -> CellId) {
        let Some(injection) = &mut self.injection else { return };
        if !injection.has_slow_cells() {
            return;
        }
        let now = self.now;
        ports.retain(|&port| {
            let clocks = injection.rest(cell_of(port), now);
            if clocks > 0 {
                injection.begin_rest(port, now.saturating_add(clocks));
            }
            clocks == 0
        });
    }
}
