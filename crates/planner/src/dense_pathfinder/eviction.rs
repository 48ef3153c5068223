//! Eviction: members that leave their phases, so that no cell has too many routes, and no link or
//! agent is busy for long after the others.
//!
//! A phase lasts as long as its busiest link or agent, which carries a stream more than the others
//! if the negotiation has left a conflict. Such streams leave as long as the phase becomes shorter
//! by more than their channels cost in another phase, but not to make it shorter than it was meant
//! to be.

use std::cmp::Reverse;

use conset_ir::convert::{index, to_u64};

use super::block::{Block, LANES, Member, used_ports};
use super::negotiation::Context;

/// How long each link and agent of a phase is busy.
struct PhaseLoads<'a> {
    context: &'a Context<'a>,
    /// The streams that follow each other on a link that is busy for the whole phase.
    streams: u64,
    /// The part of the clocks at a port for which the first stream waits for no other.
    free: u64,
    /// Clocks of edges, and behind them of ports.
    loads: Vec<u64>,
}

impl PhaseLoads<'_> {
    /// The edges of a member, and behind them its ports, with the clocks for which it is on each.
    /// A stream that shares its links is at its ports for the whole phase.
    fn resources<'m>(&'m self, member: &'m Member) -> impl Iterator<Item = (usize, u64)> + 'm {
        let problem = self.context.problem;
        let x = index(member.connection);
        let clocks = self.context.clocks[x];
        let on_edge = move |&edge: &u32| {
            let edge = index(edge);
            (edge, clocks.div_ceil(problem.capacity[edge].max(1).into()))
        };
        let at_port = move |port: usize| (port, clocks * self.streams);
        member.edges.iter().map(on_edge).chain(used_ports(problem, x).map(at_port))
    }

    fn change(&mut self, member: &Member, add: bool) {
        let resources: Vec<(usize, u64)> = self.resources(member).collect();
        for (resource, clocks) in resources {
            let load = &mut self.loads[resource];
            *load = if add { *load + clocks } else { *load - clocks };
        }
    }

    /// How long a resource makes the phase last.
    fn clocks(&self, resource: usize) -> u64 {
        let load = self.loads[resource];
        if resource < self.context.problem.edge_count() {
            load
        } else {
            load.saturating_sub(self.free)
        }
    }

    /// The busiest resource and its clocks.
    fn busiest(&self) -> (usize, u64) {
        let clocks = (0..self.loads.len()).map(|resource| (self.clocks(resource), resource));
        clocks.max().map_or((0, 0), |(clocks, resource)| (resource, clocks))
    }

    /// How many of the busiest resources a member uses, per channel, in 2^16ths.
    fn relief(&self, member: &Member, greatest: u64) -> u64 {
        let least = greatest - greatest / 16;
        let busy = |&(resource, _): &(usize, u64)| self.clocks(resource) >= least;
        to_u64(self.resources(member).filter(busy).count() << 16) / to_u64(member.edges.len() + 1)
    }
}

impl Context<'_> {
    /// Members without which the phases of a block are shorter by more than their channels cost
    /// elsewhere, in 2^16ths of a clock. No cell has too many routes.
    pub(super) fn late(&self, block: &Block, channel_cost: u64) -> Late {
        let mut late = Late::default();
        for lane in 0..block.lanes() {
            self.add_late(block, lane, channel_cost, &mut late);
        }
        late
    }

    /// Removes members from cells with too many routes, long routes first, and returns them.
    pub(super) fn evict_crowded(&self, block: &mut Block) -> Vec<u32> {
        let problem = self.problem;
        let mut uses = vec![[0u32; LANES]; problem.cell_count()];
        for member in &block.members {
            member.cells(problem).for_each(|cell| uses[index(cell)][member.lane] += 1);
        }
        block.members.sort_by_key(|m| (Reverse(m.edges.len()), m.connection));
        let mut evicted = Vec::new();
        block.members.retain(|member| {
            let has_channels = |cell| uses[index(cell)][member.lane] <= problem.channels;
            let stays = member.cells(problem).all(has_channels);
            if !stays {
                member.cells(problem).for_each(|cell| uses[index(cell)][member.lane] -= 1);
                evicted.push(member.connection);
            }
            stays
        });
        evicted
    }

    /// Adds those of one phase.
    fn add_late(&self, block: &Block, lane: usize, cost: u64, late: &mut Late) {
        let problem = self.problem;
        let streams = block.streams(lane);
        let loads = vec![0; problem.edge_count() + problem.port_count];
        let free = block.longest(lane) * (streams - 1);
        let mut loads = PhaseLoads { context: self, streams, free, loads };
        let mut members: Vec<&Member> = block.members.iter().filter(|m| m.lane == lane).collect();
        members.iter().for_each(|member| loads.change(member, true));
        let start = loads.busiest().1;
        let (mut out, mut lost) = (Vec::new(), 0);
        let (mut best, mut least) = (0, start << 16);
        while members.len() > 1 {
            let (busiest, greatest) = loads.busiest();
            if greatest <= block.limit(lane) {
                break;
            }
            let uses = |m: &Member| loads.resources(m).any(|(resource, _)| resource == busiest);
            let on_it = members.iter().enumerate().filter(|(_, m)| uses(m));
            let relief = |&(row, m): &(usize, &&Member)| (loads.relief(m, greatest), Reverse(row));
            let Some((row, _)) = on_it.max_by_key(relief) else { break };
            let member = members.swap_remove(row);
            loads.change(member, false);
            lost += cost * to_u64(member.edges.len() + 1);
            out.push(member.connection);
            let total = (loads.busiest().1 << 16) + lost;
            if total < least {
                (best, least) = (out.len(), total);
            }
        }
        late.gain += start - (least >> 16);
        late.members.extend(out.into_iter().take(best));
    }
}

/// Members that make phases last long.
#[derive(Default)]
pub(super) struct Late {
    pub(super) members: Vec<u32>,
    /// The clocks that are gained if they leave, less what their channels cost elsewhere.
    pub(super) gain: u64,
}
