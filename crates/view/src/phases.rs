//! The blocks of a set that is compiled to phases.
//!
//! A *stream* is a route of a phase. Streams are in the order of phases, and in each phase in the order
//! of its routes.

use conset::CompiledSet;
use conset::profile::{self, SetProfile};
use conset::report::{SetSummary, UncheckedSet};
use conset_ir::convert::to_u64;
use conset_ir::{ConnectionSet, LinkId, Machine, PhaseRoutes, RouteRef, SetSchedule, Slot};

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
    /// What follows from it; `None` if the checker refused it.
    compiled: Option<&'a CompiledSet>,
    profile: Option<SetProfile>,
}

impl<'a> PhaseSet<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        schedule: &'a SetSchedule,
        compiled: Option<&'a CompiledSet>,
    ) -> Self {
        let profile = compiled.map(|compiled| profile::of_model(schedule, &compiled.prediction));
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

    /// The clocks of each phase: predicted, or of a refused schedule as long as its slots.
    fn lengths(&self) -> Vec<PhaseLength> {
        if let Some(compiled) = self.compiled {
            let predicted = compiled.prediction.phases.iter();
            return predicted
                .map(|phase| PhaseLength {
                    switch: phase.switch,
                    clocks: phase.clocks,
                    sharing: phase.max_sharing.into(),
                })
                .collect();
        }
        let parameters = self.machine.parameters();
        let switch = u64::from(parameters.t_sync) + u64::from(parameters.t_phase);
        let phases = self.phases().iter().zip(self.schedule.timetable.phases());
        phases
            .map(|(routes, times)| {
                let mut on_link = vec![0u64; self.machine.link_count()];
                routes.iter().flat_map(links_of).for_each(|l| on_link[l.index()] += 1);
                PhaseLength {
                    switch,
                    clocks: times.slots.iter().map(Slot::end).max().unwrap_or(0),
                    sharing: on_link.into_iter().max().unwrap_or(0),
                }
            })
            .collect()
    }

    /// Whether no connection is split, so that the words of a stream are those of its connection.
    fn is_whole(&self) -> bool {
        let set = self.set();
        self.streams().all(|(route, _)| route.words == set.get(route.connection).words)
    }
}

/// The clocks of a phase, and the most routes on a link.
struct PhaseLength {
    switch: u64,
    clocks: u64,
    sharing: u64,
}

/// The links of a route; of a refused one without the steps that no link makes.
fn links_of(route: RouteRef<'_>) -> impl Iterator<Item = LinkId> + Clone {
    route.links().iter().copied().filter(|link| *link != LinkId::NONE)
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
        let bounds = self.compiled.map(|compiled| {
            let listed = BoundHead::all("phases", &compiled.bounds.phases);
            listed.chain(BoundHead::all("clocks", &compiled.bounds.clocks)).collect()
        });
        SetHead {
            summary: match self.compiled {
                Some(compiled) => {
                    SummaryHead::Phases(Box::new(SetSummary::new(self.schedule, compiled)))
                }
                None => SummaryHead::Unchecked(UncheckedSet::of_phases(self.schedule)),
            },
            bounds: bounds.unwrap_or_default(),
            profile: self.profile.as_ref().map(crate::profile::head),
            whole: self.is_whole(),
            groups: None,
        }
    }

    fn connections(&self) -> &ConnectionSet {
        self.set()
    }

    fn phases(&self) -> Block {
        let lengths = self.lengths();
        let mut links = vec![(0u64, 0u64); self.machine.link_count()];
        for (route, _) in self.streams() {
            for link in links_of(route) {
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
            .plain("phase_switch", lengths.iter().map(|length| length.switch))
            .plain("phase_clocks", lengths.iter().map(|length| length.clocks))
            .plain("phase_sharing", lengths.iter().map(|length| length.sharing))
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
        let links = PhaseSet::streams(self).flat_map(|(route, _)| links_of(route));
        let hops = PhaseSet::streams(self).map(|(route, _)| to_u64(links_of(route).count()));
        let mut block = Block::default();
        block.plain("stream_hops", hops);
        if self.compiled.is_some() {
            let choices = LinkChoices::new(self.machine);
            block.plain("link_choice", links.map(|link| choices.of(link)));
        } else {
            // The links of a refused route need not follow each other.
            block.delta("route_link", links.map(|link| link.0.into()));
        }
        block
    }

    fn loads(&self) -> Option<Block> {
        let links = self.machine.link_count();
        let entries = links.checked_mul(self.phases().len()).filter(|&count| count <= LOADS)?;
        let mut loads = vec![(0u64, 0u64); entries];
        for (phase, routes) in self.phases().iter().enumerate() {
            let loads = &mut loads[phase * links..][..links];
            for route in routes.iter() {
                for link in links_of(route) {
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
        if self.compiled.is_some() {
            block.plain("channel", channels.map(|channel| u64::from(channel.0)));
        }
        block
    }

    fn stream_count(&self) -> usize {
        self.phases().iter().map(PhaseRoutes::len).sum()
    }

    fn profile(&self) -> Option<&SetProfile> {
        self.profile.as_ref()
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
