//! Faults of the hardware on purpose: parts that stop, words that links spoil, and wrong context switches.
//!
//! A [`FaultPlan`] is a text file of one fault a line, in which `#` begins a comment:
//!
//! ```text
//! link c0 -> c1 dead            # from the beginning
//! cell c3 dead at 700
//! cell c2 stalled 500 at 600
//! cell c2 slow 3                # 3 clocks of rest after each word
//! link c0 -> c1 drops word 17   # also duplicates, corrupts, reorders
//! link c0 -> c1 corrupts words from 17
//! cell c3 misses switch 2
//! cell c3 late 500 at switch 2
//! cell c3 keeps context at switch 2
//! cell c3 loads p4 at switch 2
//! ```
//!
//! | fault | what happens |
//! |---|---|
//! | `link A -> B` stops | all parallel links from the first cell to the second stop; a word on its way still arrives |
//! | `cell C dead` | the agent of the cell stops, and all links from and to it |
//! | `cell C stalled` | the agent of the cell stops; its links carry the words of others |
//! | `cell C slow` | the agent rests after each word and each opening of a stream |
//! | a link spoils a word | [`WordEffect`]; words are counted from 0 over all parallel links together, in the order in which they arrive |
//! | a cell switches wrongly | [`SwitchEffect`]; switches are counted from 0 |
//!
//! A dead part stops for ever, a stalled one for the given clocks. Clocks, words and switches are counted from the
//! loading of the image. A stop that falls into a context switch acts when the switch is over; dead cells take part
//! in switches unless the plan says that they miss them. If several faults hit the same word, the first one of the
//! plan acts. With a stall, a rest or a late cell everything arrives, later; without a part that it needs, an
//! exchange ends in a deadlock whose last wait names the part. [`crate::detection`] describes how the other faults
//! are noticed.
//!
//! Message passing has the same faults but those of switches ([`crate::messages::fault_run`]).
//!
//! A stopped link or port is one that is not idle and not on the ready list: nothing serves it, and the loops that
//! move words need not know about faults. Only its next turn has to be kept for the end of the stall. Words are
//! spoiled as they arrive, and data as it is delivered, on paths that only a machine with a plan takes. A machine
//! with a plan does not skip periods.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use conset_ir::convert::to_u32;
use conset_ir::{CellId, ConnectionId, LinkId, Machine, PhaseId, PhaseImage};

use crate::network::Tag;
use crate::payload::Payload;

mod draw;
mod plan;

pub use draw::FaultExtent;
pub use plan::{FaultPlan, FaultPlanError, FaultyPart, PlannedFault, SwitchEffect, WordEffect};

/// Something that stops by itself: a link, or the agent of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Link(u32),
    Agent(CellId),
}

/// A fault of words, and the words that its links have carried.
#[derive(Clone, Copy, Debug)]
struct WordFault {
    /// Its place in the plan.
    fault: usize,
    effect: WordEffect,
    word: u64,
    repeats: bool,
    carried: u64,
}

/// What faults hold back in an engine. It stays there while another engine of the machine has the faults.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldBack {
    /// Links and ports that stopped and would have had a turn.
    pub(crate) links: BTreeMap<u32, bool>,
    pub(crate) ports: BTreeMap<u32, bool>,
    /// Ports that rest, by the clock at which they go on.
    resting: BTreeMap<u64, Vec<u32>>,
    /// Inverted bits of words that are on their way, by their tags: those of a word that came twice are of both.
    corrupted: BTreeMap<(u32, u32), u32>,
    /// Words that wait for the next one of their channel.
    pub(crate) overtaken: BTreeMap<u32, Tag>,
}

/// The faults of a machine, and what of them has acted. They are in the engine that is at work: the clock, the words
/// that links have carried and the parts that are dead are those of the whole run.
///
/// ```
/// use std::sync::Arc;
///
/// use conset_fabric::messages::MessageEngine;
/// use conset_fabric::{Engine, HardwareFaults};
/// use conset_ir::Machine;
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let faults = HardwareFaults::new(&"link c0 -> c1 dead".parse()?, &machine)?;
/// let (mut messages, mut engine) = (MessageEngine::new(machine.clone(), true), Engine::new(machine));
/// messages.give_faults(faults);
/// // The machine goes on with connections.
/// engine.give_faults(messages.take_faults().expect("they were given"));
/// assert_eq!(engine.faults_acted(), [None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HardwareFaults(pub(crate) Box<Injection>);

impl HardwareFaults {
    /// The faults of a plan, none of which has acted.
    ///
    /// # Errors
    /// A part that the machine does not have.
    pub fn new(plan: &FaultPlan, machine: &Machine) -> Result<Self, FaultPlanError> {
        Ok(Self(Box::new(Injection::new(plan, machine)?)))
    }
}

/// What happens at a context switch besides what should.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchFaults {
    /// The number of the context switch since the image was loaded, from 0.
    pub switch: u64,
    /// The first cell that does not take part.
    pub absent: Option<CellId>,
    /// The clocks for which the other cells wait for the last one.
    pub late: u64,
    /// The cells with other contexts than the phase's: those of another phase, or (`None`) the ones that they have.
    pub contexts: BTreeMap<CellId, Option<PhaseId>>,
}

impl SwitchFaults {
    /// The context that a switch to a phase loads: that of the phase, except at the cells that load another one. `before` is
    /// the context that the cells have.
    pub fn context<'a>(
        &self,
        machine: &Machine,
        phases: &'a [PhaseImage],
        phase: PhaseId,
        before: &PhaseImage,
    ) -> Cow<'a, PhaseImage> {
        let planned = &phases[phase.index()];
        if self.contexts.is_empty() {
            return Cow::Borrowed(planned);
        }
        let none = PhaseImage::from_listed(machine.cell_count(), []);
        let cells = machine.cells().map(|cell| {
            let other = match self.contexts.get(&cell) {
                None => Some(planned),
                Some(None) => Some(before),
                Some(Some(other)) => phases.get(other.index()),
            };
            (cell, other.unwrap_or(&none).cell(cell))
        });
        Cow::Owned(PhaseImage::from_listed(machine.cell_count(), cells))
    }
}

/// The plan of a machine, and what of it acts.
#[derive(Clone, Debug)]
pub(crate) struct Injection {
    /// What begins (`true`) and ends, by clock, with its place in the plan; the next one last.
    events: Vec<(u64, bool, Part, usize)>,
    /// How many faults stop each part at present.
    stopped: BTreeMap<Part, u32>,
    /// The parts that have stopped for ever.
    dead: BTreeSet<Part>,
    /// What these faults hold back in the engine that has them.
    pub(crate) held: HeldBack,
    /// Slow cells: from which clock, for how many clocks, and the place in the plan.
    slow: BTreeMap<CellId, Vec<(u64, u64, usize)>>,
    words: Vec<WordFault>,
    /// The places in `words` of each link's faults.
    words_of: BTreeMap<u32, Vec<usize>>,
    switches: Vec<(usize, CellId, SwitchEffect, u64)>,
    next_switch: u64,
    /// Cells that the program does not use any more, so that nobody waits for them at a switch.
    unused: BTreeSet<CellId>,
    /// The clock at which each fault of the plan acted first.
    acted: Vec<Option<u64>>,
    /// Whether each fault of the plan stops a part for ever.
    is_permanent: Vec<bool>,
}

impl Injection {
    /// The plan for a machine, if that has all of its parts.
    pub(crate) fn new(plan: &FaultPlan, machine: &Machine) -> Result<Self, FaultPlanError> {
        let mut this = Self {
            events: Vec::new(),
            stopped: BTreeMap::new(),
            dead: BTreeSet::new(),
            held: HeldBack::default(),
            slow: BTreeMap::new(),
            words: Vec::new(),
            words_of: BTreeMap::new(),
            switches: Vec::new(),
            next_switch: 0,
            unused: BTreeSet::new(),
            acted: vec![None; plan.faults.len()],
            is_permanent: plan.faults.iter().map(PlannedFault::is_permanent_stop).collect(),
        };
        for (place, &fault) in plan.faults.iter().enumerate() {
            this.add(place, fault, machine)?;
        }
        // At one clock, what begins comes first, so that no count falls below 0.
        this.events.sort_by_key(|&(clock, begins, part, _)| (clock, !begins, part));
        this.events.reverse();
        Ok(this)
    }

    fn add(
        &mut self,
        place: usize,
        fault: PlannedFault,
        machine: &Machine,
    ) -> Result<(), FaultPlanError> {
        match fault {
            PlannedFault::Stop { part, from, clocks } => {
                for stopped in parts(part, clocks.is_none(), machine)? {
                    let end = clocks.map(|clocks| from.saturating_add(clocks));
                    self.events.push((from, true, stopped, place));
                    self.events.extend(end.map(|end| (end, false, stopped, place)));
                }
            }
            PlannedFault::Slow { cell, clocks, from } => {
                check_agent(cell, machine)?;
                if clocks > 0 {
                    self.slow.entry(cell).or_default().push((from, clocks, place));
                }
            }
            PlannedFault::Words { source, target, effect, word, repeats } => {
                let number = self.words.len();
                self.words.push(WordFault { fault: place, effect, word, repeats, carried: 0 });
                for part in parts(FaultyPart::Link(source, target), true, machine)? {
                    if let Part::Link(link) = part {
                        self.words_of.entry(link).or_default().push(number);
                    }
                }
            }
            PlannedFault::Switch { cell, effect, switch } => {
                check_agent(cell, machine)?;
                self.switches.push((place, cell, effect, switch));
            }
        }
        Ok(())
    }

    /// The clock of the next event of stops.
    pub(crate) fn next(&self) -> Option<u64> {
        self.events.last().map(|event| event.0)
    }

    /// The clock at which the next stall of the parts that are stopped now, or the next rest, ends.
    pub(crate) fn next_end(&self) -> Option<u64> {
        let is_end = |event: &&(u64, bool, Part, usize)| !event.1 && self.is_stopped(event.2);
        let end = self.events.iter().rev().find(is_end).map(|event| event.0);
        end.into_iter().chain(self.held.resting.keys().next().copied()).min()
    }

    /// Takes the next event until clock `now` that changes whether a part works: the part, and whether it stops.
    pub(crate) fn take(&mut self, now: u64) -> Option<(Part, bool)> {
        while self.next().is_some_and(|clock| clock <= now) {
            let (clock, begins, part, fault) = self.events.pop()?;
            self.acted[fault].get_or_insert(clock);
            if self.is_permanent[fault] {
                self.dead.insert(part);
            }
            let count = self.stopped.entry(part).or_default();
            *count = if begins { *count + 1 } else { *count - 1 };
            let changes = *count == u32::from(begins);
            if *count == 0 {
                self.stopped.remove(&part);
            }
            if changes {
                return Some((part, begins));
            }
        }
        None
    }

    pub(crate) fn is_stopped(&self, part: Part) -> bool {
        self.stopped.contains_key(&part)
    }

    /// The parts that are stopped at present, in order.
    pub(crate) fn stopped(&self) -> impl Iterator<Item = Part> + '_ {
        self.stopped.keys().copied()
    }

    /// The parts that have stopped for ever, in order.
    pub(crate) fn dead(&self) -> impl Iterator<Item = Part> + '_ {
        self.dead.iter().copied()
    }

    /// From now on the program does without a cell.
    pub(crate) fn stop_using(&mut self, cell: CellId) {
        self.unused.insert(cell);
    }

    /// The clock at which each fault of the plan acted first.
    pub(crate) fn acted(&self) -> &[Option<u64>] {
        &self.acted
    }

    /// The clocks for which a cell rests after an action that ends at `now`.
    pub(crate) fn rest(&mut self, cell: CellId, now: u64) -> u64 {
        let mut clocks = 0u64;
        for &(from, rest, fault) in self.slow.get(&cell).into_iter().flatten() {
            if from <= now {
                clocks = clocks.saturating_add(rest);
                self.acted[fault].get_or_insert(now);
            }
        }
        clocks
    }

    /// Whether cells are slow.
    pub(crate) fn has_slow_cells(&self) -> bool {
        !self.slow.is_empty()
    }

    /// Lets a port rest until a clock; the largest clock never comes.
    pub(crate) fn begin_rest(&mut self, port: u32, until: u64) {
        if until == u64::MAX {
            return;
        }
        self.held.resting.entry(until).or_default().push(port);
    }

    /// The ports whose rest is over.
    pub(crate) fn end_rests(&mut self, now: u64) -> Vec<u32> {
        let later = self.held.resting.split_off(&now.saturating_add(1));
        std::mem::replace(&mut self.held.resting, later).into_values().flatten().collect()
    }

    /// What was on its way in the last context is gone.
    pub(crate) fn forget_words(&mut self) {
        self.held.corrupted.clear();
        self.held.overtaken.clear();
        self.held.resting.clear();
    }

    /// Whether links have faults of words, or hold words back.
    pub(crate) fn has_word_faults(&self) -> bool {
        !self.words.is_empty()
    }

    /// Counts a word that arrives over a link; returns the fault that hits it, and the number of that fault.
    pub(crate) fn hit(&mut self, link: u32) -> Option<(WordEffect, usize)> {
        let mut hit = None;
        for &number in self.words_of.get(&link)? {
            let WordFault { effect, word, repeats, carried, .. } = self.words[number];
            self.words[number].carried += 1;
            if hit.is_none() && (carried == word || repeats && carried > word) {
                hit = Some((effect, number));
            }
        }
        hit
    }

    /// Notes that a fault of words acted.
    pub(crate) fn note_hit(&mut self, number: usize, now: u64) {
        self.acted[self.words[number].fault].get_or_insert(now);
    }

    /// Inverts a bit of a word that is on its way, another one for each word.
    pub(crate) fn corrupt(&mut self, tag: Tag, link: u32) {
        let bit = tag.index().wrapping_add(link.wrapping_mul(7)) % 32;
        *self.held.corrupted.entry((tag.stream(), tag.index())).or_default() ^= 1 << bit;
    }

    /// The inverted bits of words that are on their way, if there are any.
    pub(crate) fn corrupted(&self) -> Option<&BTreeMap<(u32, u32), u32>> {
        (!self.held.corrupted.is_empty()).then_some(&self.held.corrupted)
    }

    /// The inverted bits of a word that has arrived.
    pub(crate) fn take_corrupted(&mut self, word: (u32, u32)) -> Option<u32> {
        self.held.corrupted.remove(&word)
    }

    /// The faults of the next context switch.
    pub(crate) fn take_switch(&mut self, now: u64) -> SwitchFaults {
        let mut faults = SwitchFaults { switch: self.next_switch, ..SwitchFaults::default() };
        self.next_switch += 1;
        for &(fault, cell, effect, switch) in &self.switches {
            if switch != faults.switch || self.unused.contains(&cell) {
                continue;
            }
            self.acted[fault].get_or_insert(now);
            let context = match effect {
                SwitchEffect::Miss => {
                    faults.absent.get_or_insert(cell);
                    continue;
                }
                SwitchEffect::Late(clocks) => {
                    faults.late = faults.late.max(clocks);
                    continue;
                }
                SwitchEffect::Keep => None,
                SwitchEffect::Load(phase) => Some(phase),
            };
            faults.contexts.insert(cell, context);
        }
        faults
    }
}

/// Data whose words arrive with inverted bits.
pub(crate) struct CorruptedPayload<'a> {
    pub(crate) data: &'a mut dyn Payload,
    pub(crate) corrupted: &'a BTreeMap<(u32, u32), u32>,
}

impl Payload for CorruptedPayload<'_> {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        self.data.transfer(from, to);
        if let Some(&bits) = self.corrupted.get(&(from.0.0, from.1)) {
            self.data.invert(to, bits);
        }
    }

    fn invert(&mut self, to: (ConnectionId, u32), bits: u32) {
        self.data.invert(to, bits);
    }
}

/// Removes stopped numbers from those that would be served now, and notes that they have a turn.
pub(crate) fn keep_back<T>(
    stopped: &mut BTreeMap<u32, bool>,
    served: &mut Vec<T>,
    number: impl Fn(&T) -> u32,
) {
    served.retain(|one| match stopped.get_mut(&number(one)) {
        Some(turn) => {
            *turn = true;
            false
        }
        None => true,
    });
}

fn is_cell(cell: CellId, machine: &Machine) -> bool {
    cell.index() < machine.cell_count() && machine.is_alive(cell)
}

fn check_agent(cell: CellId, machine: &Machine) -> Result<(), FaultPlanError> {
    let part = FaultyPart::Cell(cell);
    if !is_cell(cell, machine) {
        return Err(FaultPlanError::NoCell(part));
    }
    if machine.is_endpoint(cell) { Ok(()) } else { Err(FaultPlanError::NoAgent(part)) }
}

/// The parts of the machine that a fault stops.
fn parts(part: FaultyPart, dead: bool, machine: &Machine) -> Result<Vec<Part>, FaultPlanError> {
    let link = |id: LinkId| Part::Link(to_u32(id.index()));
    match part {
        FaultyPart::Link(source, target) => {
            if !is_cell(source, machine) || !is_cell(target, machine) {
                return Err(FaultPlanError::NoLink(part));
            }
            let links: Vec<Part> = machine.links_between(source, target).map(link).collect();
            if links.is_empty() { Err(FaultPlanError::NoLink(part)) } else { Ok(links) }
        }
        FaultyPart::Cell(cell) if !is_cell(cell, machine) => Err(FaultPlanError::NoCell(part)),
        FaultyPart::Cell(cell) => {
            let agent = machine.is_endpoint(cell).then_some(Part::Agent(cell));
            if !dead {
                return agent.map(|agent| vec![agent]).ok_or(FaultPlanError::NoAgent(part));
            }
            let all = machine.cells().flat_map(|from| machine.outgoing(from)).copied();
            let ends = |id| (machine.link(id).source, machine.link(id).target);
            let links = all.filter(|&id| ends(id).0 == cell || ends(id).1 == cell).map(link);
            Ok(agent.into_iter().chain(links).collect())
        }
    }
}
