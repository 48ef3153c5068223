//! The blocks of a set that is compiled to phases.
//!
//! A *stream* is a route of a phase. Streams are in the order of phases, and in each phase in the order
//! of its routes.

use conset::CompiledSet;
use conset::profile::{self, SetProfile};
use conset::report::SetSummary;
use conset_ir::convert::to_u64;
use conset_ir::{ConnectionSet, Machine, PhaseRoutes, RouteRef, SetSchedule, Slot};

use crate::assemble::SetBlocks;
use crate::columns::{Block, texts};
use crate::head::{BoundHead, SetHead, SummaryHead};
use crate::machine::LinkChoices;
use crate::profile::StreamRows;

/// Number of groups of cells in each direction of the matrix that replaces connections.
const GROUPS: usize = 128;
/// Greatest number of entries of the loads of links that replace routes.
const LOADS: usize = 1 << 24;

/// A set of phases.
pub(crate) struct PhaseSet<'a> {
    machine: &'a Machine,
    schedule: &'a SetSchedule,
    compiled: &'a CompiledSet,
    profile: SetProfile,
}

impl<'a> PhaseSet<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        schedule: &'a SetSchedule,
        compiled: &'a CompiledSet,
    ) -> Self {
        let profile = profile::of_model(schedule, &compiled.prediction);
        Self { machine, schedule, compiled, profile }
    }

    fn set(&self) -> &ConnectionSet {
        self.schedule.timetable.routing().set()
    }

    fn phases(&self) -> &[PhaseRoutes] {
        self.schedule.timetable.routing().phases()
    }

    /// All streams with their slots.
    fn streams(&self) -> impl Iterator<Item = (RouteRef<'_>, Slot)> + Clone {
        let times = self.schedule.timetable.phases();
        let phases = self.phases().iter().zip(times);
        phases.flat_map(|(routes, times)| routes.iter().zip(times.slots.iter().copied()))
    }

    /// Whether no connection is split, so that the words of a stream are those of its connection.
    fn is_whole(&self) -> bool {
        let set = self.set();
        self.streams().all(|(route, _)| route.words == set.get(route.connection).words)
    }
}

/// The columns of a set's connections: `source`, `target`, `words`.
pub(crate) fn connections(set: &ConnectionSet) -> Block {
    let connections = set.connections();
    let mut block = Block::default();
    block
        .delta("source", connections.iter().map(|connection| connection.source.0.into()))
        .delta("target", connections.iter().map(|connection| connection.target.0.into()))
        .plain("words", connections.iter().map(|connection| connection.words.into()));
    block
}

/// The columns of the names of a set's connections, if any has a name.
pub(crate) fn names(set: &ConnectionSet) -> Option<Block> {
    let connections = set.connections();
    connections.iter().any(|connection| connection.name.is_some()).then(|| {
        let mut block = Block::default();
        let names = connections.iter().map(|connection| connection.name.as_deref().unwrap_or(""));
        texts(&mut block, "name_length", "name_bytes", names);
        block
    })
}

/// The words between groups of cells, by source and target (`pair_words`).
pub(crate) fn pairs(machine: &Machine, set: &ConnectionSet) -> (usize, Block) {
    let groups = GROUPS.min(machine.agent_count());
    let group = |cell: conset_ir::CellId| {
        cell.index().min(machine.agent_count() - 1) * groups / machine.agent_count()
    };
    let mut words = vec![0u64; groups * groups];
    for connection in set.connections() {
        words[group(connection.source) * groups + group(connection.target)] +=
            u64::from(connection.words);
    }
    let mut block = Block::default();
    block.plain("pair_words", words.iter().copied());
    (groups, block)
}

impl SetBlocks for PhaseSet<'_> {
    fn head(&self) -> SetHead {
        let bounds = &self.compiled.bounds;
        let listed = BoundHead::all("phases", &bounds.phases);
        SetHead {
            summary: SummaryHead::Phases(Box::new(SetSummary::new(self.schedule, self.compiled))),
            bounds: listed.chain(BoundHead::all("clocks", &bounds.clocks)).collect(),
            profile: Some(crate::profile::head(&self.profile)),
            whole: self.is_whole(),
            groups: None,
        }
    }

    fn connections(&self) -> &ConnectionSet {
        self.set()
    }

    fn phases(&self) -> Block {
        let predicted = &self.compiled.prediction.phases;
        let mut links = vec![(0u64, 0u64); self.machine.link_count()];
        for (route, _) in self.streams() {
            for link in route.links() {
                links[link.index()].0 += 1;
                links[link.index()].1 += u64::from(route.words);
            }
        }
        let words = |phase: &PhaseRoutes| phase.iter().map(|r| u64::from(r.words)).sum();
        let hops = |phase: &PhaseRoutes| phase.iter().map(|r| to_u64(r.hops())).sum();
        let times = self.schedule.timetable.phases();
        let mut block = Block::default();
        block
            .plain("phase_streams", self.phases().iter().map(|phase| to_u64(phase.len())))
            .plain("phase_words", self.phases().iter().map(words))
            .plain("phase_hops", self.phases().iter().map(hops))
            .plain("phase_makespan", times.iter().map(|times| times.makespan))
            .plain("phase_switch", predicted.iter().map(|phase| phase.switch))
            .plain("phase_clocks", predicted.iter().map(|phase| phase.clocks))
            .plain("phase_sharing", predicted.iter().map(|phase| phase.max_sharing.into()))
            .plain("link_routes", links.iter().map(|link| link.0))
            .plain("link_words", links.iter().map(|link| link.1));
        block
    }

    fn streams(&self) -> Block {
        let mut block = Block::default();
        block
            .plain("stream_connection", PhaseSet::streams(self).map(|(r, _)| r.connection.0.into()))
            .plain("stream_start", PhaseSet::streams(self).map(|(_, slot)| slot.start))
            .plain("stream_duration", PhaseSet::streams(self).map(|(_, slot)| slot.duration));
        if !self.is_whole() {
            block.plain("stream_words", PhaseSet::streams(self).map(|(r, _)| r.words.into()));
        }
        block
    }

    fn routes(&self) -> Block {
        let choices = LinkChoices::new(self.machine);
        let links = PhaseSet::streams(self).flat_map(|(route, _)| route.links());
        let mut block = Block::default();
        block
            .plain("stream_hops", PhaseSet::streams(self).map(|(r, _)| to_u64(r.hops())))
            .plain("link_choice", links.map(|&link| choices.of(link)));
        block
    }

    fn loads(&self) -> Option<Block> {
        let links = self.machine.link_count();
        let entries = links.checked_mul(self.phases().len()).filter(|&count| count <= LOADS)?;
        let mut loads = vec![(0u64, 0u64); entries];
        for (phase, routes) in self.phases().iter().enumerate() {
            let loads = &mut loads[phase * links..][..links];
            for route in routes.iter() {
                for link in route.links() {
                    loads[link.index()].0 += 1;
                    loads[link.index()].1 += u64::from(route.words);
                }
            }
        }
        let mut block = Block::default();
        block
            .plain("load_routes", loads.iter().map(|load| load.0))
            .plain("load_words", loads.iter().map(|load| load.1));
        Some(block)
    }

    fn details(&self) -> Block {
        let channels = PhaseSet::streams(self).flat_map(|(route, _)| route.channels);
        let mut block = Block::default();
        block.plain("channel", channels.map(|channel| u64::from(channel.0)));
        block
    }

    fn stream_count(&self) -> usize {
        self.phases().iter().map(PhaseRoutes::len).sum()
    }

    fn profile(&self) -> Option<&SetProfile> {
        Some(&self.profile)
    }

    fn stream_rows(&self) -> StreamRows {
        // The parts of a connection carry its words in the order of phases and routes.
        let mut assigned = vec![0u32; self.set().len()];
        let rows = (0u64..).zip(PhaseSet::streams(self)).map(|(row, (route, _))| {
            let first = &mut assigned[route.connection.index()];
            let key = (route.connection, *first);
            *first = first.saturating_add(route.words);
            (key, row)
        });
        rows.collect()
    }
}
