//! Executing a set: the phases of an image one after the other, by their operation lists.
//!
//! For each phase the fabric switches context, gives every agent its operation list, and lets the
//! machine run until nothing is under way. The time of an exchange is the sum over its phases of
//! the switch and the clocks until the last word arrived.
//!
//! The set's order holds across cells: the send of a connection is held back until every
//! connection ordered before it has been received completely, in this phase or an earlier one.
//! The runtime knows when that is; the token that would tell the sender is not priced, as a
//! synchronising message over the reserved channels would cost the same for every schedule.
//! Operations behind a held one in the same list wait with it, because lists are kept in order.

use std::sync::Arc;

use conset_ir::{CellId, ConnectionId, Direction, Image, PhaseId, SetImage};

use crate::coverage::Coverage;
use crate::engine::{Engine, OperationId, Payload, Stop, Submission};
use crate::fault::{Fault, FaultKind};
use crate::report::{ExchangeReport, PhaseReport};
use crate::trace::{StreamSpan, Trace};
use crate::waits::{Doing, Programs};

/// How a fabric runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keep a [`Trace`] of streams and switches.
    pub trace: bool,
    /// Count wrong words and words left over, and go on, instead of stopping at the first.
    pub count_errors: bool,
}

/// What went wrong in an exchange that went on ([`Options::count_errors`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Words delivered to operations they were not sent for.
    pub wrong: u64,
    /// Words that no operation received.
    pub missing: u64,
    /// Words received more than once, or left over in the channels.
    pub extra: u64,
}

/// A machine with an image loaded.
#[derive(Clone, Debug)]
pub struct Fabric {
    image: Arc<Image>,
    engine: Engine,
    options: Options,
    trace: Trace,
    errors: Errors,
}

impl Fabric {
    /// Loads an image into its machine; the clock is 0 and no context is active.
    pub fn load(image: impl Into<Arc<Image>>, options: Options) -> Self {
        let image = image.into();
        let trace = Trace {
            clock_hz: image.machine().parameters().clock_hz,
            sets: image.sets().iter().map(|s| s.set.name().to_owned()).collect(),
            ..Trace::default()
        };
        let engine = Engine::new(image.machine().clone());
        Self { image, engine, options, trace, errors: Errors::default() }
    }

    /// The image.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Clocks since the image was loaded.
    pub fn now(&self) -> u64 {
        self.engine.now()
    }

    /// What was traced so far; empty without [`Options::trace`].
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Takes the trace out.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    /// What was counted so far; nothing without [`Options::count_errors`].
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Executes set number `set` of the image: every phase, every operation, every word.
    ///
    /// # Errors
    /// A fault, with the place where it showed. The fabric must then not be used again.
    pub fn exchange(
        &mut self,
        set: usize,
        data: &mut dyn Payload,
    ) -> Result<ExchangeReport, Fault> {
        let image = self.image.clone();
        let Some(set_image) = image.sets().get(set) else {
            let kind = FaultKind::NoSet { index: set, sets: image.sets().len() };
            return Err(self.fault("<image>", None, kind));
        };
        let name = set_image.set.name();
        let mut run = SetRun::new(set, set_image);
        let mut phases = Vec::with_capacity(set_image.phases.len().min(1 << 16));
        for phase in 0..set_image.phases.len() {
            let phase = PhaseId::from_index(phase);
            let report = self
                .phase(&mut run, phase, data)
                .map_err(|kind| self.fault(name, Some(phase), kind))?;
            phases.push(report);
        }
        let gaps = run.coverage.gaps(&set_image.set);
        if let Some((connection, missing, extra)) = gaps.first
            && !self.options.count_errors
        {
            let connections = gaps.connections;
            let kind = FaultKind::Coverage { connection, missing, extra, connections };
            return Err(self.fault(name, None, kind));
        }
        self.errors.missing += gaps.missing;
        self.errors.extra += gaps.extra;
        self.errors.wrong = self.engine.wrong_words();
        Ok(ExchangeReport::new(name, phases))
    }

    fn fault(&self, set: &str, phase: Option<PhaseId>, kind: FaultKind) -> Fault {
        Fault { set: set.to_owned(), phase, clock: self.engine.now(), kind }
    }

    fn phase(
        &mut self,
        run: &mut SetRun<'_>,
        phase: PhaseId,
        data: &mut dyn Payload,
    ) -> Result<PhaseReport, FaultKind> {
        let before = (self.engine.now(), self.engine.delivered(), self.engine.word_hops());
        self.engine.switch(&run.image.phases[phase.index()])?;
        if self.options.trace {
            let p = self.image.machine().parameters();
            self.trace.switch(run.row, phase, before.0, p.t_sync, p.t_phase);
        }
        run.submit(&mut self.engine, phase)?;
        let start = self.engine.now();
        let last_word = self.run_phase(run, phase, data)?;
        if self.engine.unfinished() > 0 {
            let stuck = self.engine.explain(&*run);
            return Err(stuck.expect("operations are unfinished"));
        }
        if let Some(fault) = self.engine.undrained() {
            if !self.options.count_errors {
                return Err(fault);
            }
        }
        let (busiest_link, busiest_agent) = self.busiest();
        if self.engine.undrained().is_some() {
            self.errors.extra += self.engine.discard();
        }
        Ok(PhaseReport {
            phase,
            switch: start - before.0,
            clocks: last_word.unwrap_or(start) - start,
            words: self.engine.delivered() - before.1,
            word_hops: self.engine.word_hops() - before.2,
            busiest_link,
            busiest_agent,
        })
    }

    /// Runs until nothing is under way; returns when the last operation was finished.
    fn run_phase(
        &mut self,
        run: &mut SetRun<'_>,
        phase: PhaseId,
        data: &mut dyn Payload,
    ) -> Result<Option<u64>, FaultKind> {
        let mut last_word = None;
        let mut finished = Vec::new();
        loop {
            match self.engine.run(data) {
                Stop::Finished => {
                    last_word = Some(self.engine.now());
                    self.engine.take_finished(&mut finished);
                    for &id in &finished {
                        self.finish(run, phase, id);
                    }
                }
                Stop::Fault => {
                    let fault = self.engine.take_fault().expect("the engine stopped for it");
                    let countable = matches!(fault, FaultKind::WrongWord { .. });
                    if !(self.options.count_errors && countable) {
                        return Err(fault);
                    }
                }
                Stop::Timer => {}
                Stop::Idle => return Ok(last_word),
            }
        }
    }

    fn finish(&mut self, run: &mut SetRun<'_>, phase: PhaseId, id: OperationId) {
        let done = self.engine.operation(id);
        if self.options.trace {
            self.trace.streams.push(StreamSpan {
                set: run.row,
                phase,
                cell: done.cell,
                direction: done.direction,
                connection: done.connection,
                words: done.words,
                slot: done.slot,
                open: done.opened,
                close: self.engine.now(),
            });
        }
        if done.direction == Direction::Receive {
            run.coverage.add(done.connection, done.first_word, done.words);
            run.received(&mut self.engine, done.connection, done.words);
        }
    }

    fn busiest(&self) -> (Option<(conset_ir::LinkId, u64)>, Option<(CellId, u64)>) {
        let machine = self.image.machine();
        let links = (0..machine.link_count() as u32).map(conset_ir::LinkId);
        let agents = (0..machine.agent_count() as u32).map(CellId);
        // The first of the busiest, so that the answer does not depend on anything else.
        let link = links.map(|l| (l, self.engine.link_words(l))).rev().max_by_key(|l| l.1);
        let agent = agents.map(|c| (c, self.engine.agent_words(c))).rev().max_by_key(|c| c.1);
        (link.filter(|l| l.1 > 0), agent.filter(|a| a.1 > 0))
    }
}

/// A set being executed: what of its order is still open, what was received.
struct SetRun<'a> {
    row: u32,
    image: &'a SetImage,
    coverage: Coverage,
    /// Per connection, where the set has an order: words to receive yet, and connections before
    /// it that are not finished.
    to_receive: Vec<u64>,
    before: Vec<u32>,
    /// Held operations of the phase, by connection.
    held: Vec<(ConnectionId, OperationId)>,
}

impl<'a> SetRun<'a> {
    fn new(row: usize, image: &'a SetImage) -> Self {
        let set = &image.set;
        let (mut to_receive, mut before) = (Vec::new(), Vec::new());
        if !set.order().is_empty() {
            to_receive = set.connections().iter().map(|c| u64::from(c.words)).collect();
            before = vec![0; set.len()];
            for (_, after) in set.order() {
                before[after.index()] += 1;
            }
        }
        let coverage = Coverage::default();
        Self { row: row as u32, image, coverage, to_receive, before, held: Vec::new() }
    }

    fn submit(&mut self, engine: &mut Engine, phase: PhaseId) -> Result<(), FaultKind> {
        self.held.clear();
        for (cell, context) in self.image.phases[phase.index()].cells() {
            for operation in context.operations {
                let waits = self.before.get(operation.connection.index()).is_some_and(|&n| n > 0);
                let held = waits && operation.direction == Direction::Send;
                let how = Submission { held, ..Submission::LISTED };
                let id = engine.submit(&self.image.set, cell, operation, how)?;
                if held {
                    self.held.push((operation.connection, id));
                }
            }
        }
        self.held.sort_unstable();
        Ok(())
    }

    /// Words of a connection were received; releases what waited for the last of them.
    fn received(&mut self, engine: &mut Engine, connection: ConnectionId, words: u32) {
        let Some(left) = self.to_receive.get_mut(connection.index()) else { return };
        if *left == 0 {
            return;
        }
        *left = left.saturating_sub(u64::from(words));
        if *left > 0 {
            return;
        }
        let order = self.image.set.order();
        let from = order.partition_point(|pair| pair.0 < connection);
        for &(_, after) in order[from..].iter().take_while(|pair| pair.0 == connection) {
            self.before[after.index()] -= 1;
            if self.before[after.index()] == 0 {
                let from = self.held.partition_point(|held| held.0 < after);
                for held in self.held[from..].iter().take_while(|held| held.0 == after) {
                    engine.release(held.1);
                }
            }
        }
    }
}

impl Programs for SetRun<'_> {
    fn doing(&self, _: CellId) -> Doing {
        Doing::Listed
    }

    fn waiting_cell(&self) -> Option<CellId> {
        None
    }

    fn absent_cell(&self) -> Option<CellId> {
        None
    }

    fn unfinished_before(&self, connection: ConnectionId) -> Option<ConnectionId> {
        let pairs = self.image.set.order().iter();
        let mut before = pairs.filter(|pair| pair.1 == connection).map(|pair| pair.0);
        before.find(|x| self.to_receive[x.index()] > 0)
    }
}
