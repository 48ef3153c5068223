//! The traffic between parts: the connections of a set, merged by source and target.
//!
//! Connections with the same endpoints are one flow, because their expected routes are the same. A
//! flow has the number of its connections (each takes channels) and their words (which load links).

use conset_ir::convert::index;
use conset_ir::{CellId, ConnectionSet, Lists, Machine};

/// The connections from one part to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrafficFlow {
    pub(super) source: u32,
    pub(super) target: u32,
    /// Number of connections.
    pub(super) count: u32,
    /// Words of all connections.
    pub(super) words: u64,
}

/// The flows of a set, and those of each part.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) flows: Vec<TrafficFlow>,
    /// The flows of each part; a flow is listed at both its ends.
    of_part: Lists,
    /// The number of connections of each part to itself: one channel each, on any cell.
    pub(super) own: Vec<u32>,
    /// Clocks of the busiest agent, which do not depend on the placement.
    pub(super) agent_clocks: u64,
    /// Phases that the endpoints require, which do not depend on the placement either.
    pub(super) phases: u64,
}

impl Traffic {
    /// The flows of a set whose cells are part numbers below `parts`.
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, parts: usize) -> Self {
        let mut flows: Vec<TrafficFlow> = set
            .connections()
            .iter()
            .map(|c| TrafficFlow {
                source: c.source.0,
                target: c.target.0,
                count: 1,
                words: u64::from(c.words),
            })
            .collect();
        flows.sort_unstable_by_key(|flow| (flow.source, flow.target));
        flows.dedup_by(|later, kept| {
            let same = (later.source, later.target) == (kept.source, kept.target);
            if same {
                kept.count += later.count;
                kept.words = kept.words.saturating_add(later.words);
            }
            same
        });
        let (agent_clocks, phases) = endpoint_loads(machine, &flows, parts);
        let mut own = vec![0; parts];
        for flow in flows.iter().filter(|flow| flow.source == flow.target) {
            own[index(flow.source)] += flow.count;
        }
        flows.retain(|flow| flow.source != flow.target);
        let rows = flows.iter().zip(0..);
        let of_part = rows.flat_map(|(flow, id)| [(flow.source, id), (flow.target, id)]);
        let of_part = Lists::new(parts, of_part);
        Self { flows, of_part, own, agent_clocks, phases }
    }

    /// The flows from and to a part.
    pub(super) fn of(&self, part: u32) -> &[u32] {
        self.of_part.of(part)
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.own.len()
    }
}

/// The load of the busiest agent, and the phases that the endpoints need.
fn endpoint_loads(machine: &Machine, flows: &[TrafficFlow], parts: usize) -> (u64, u64) {
    let parameters = machine.parameters();
    let mut load = vec![0u64; parameters.duplex.port_count(parts)];
    let mut taken = vec![0u64; parts];
    for flow in flows {
        let words = flow.words.saturating_mul(u64::from(parameters.access_clocks_per_word));
        let clocks =
            words.saturating_add(u64::from(flow.count) * u64::from(parameters.stream_setup));
        for port in parameters.duplex.ports(CellId(flow.source), CellId(flow.target)) {
            load[index(port)] = load[index(port)].saturating_add(clocks);
        }
        taken[index(flow.source)] += u64::from(flow.count);
        if flow.source != flow.target {
            taken[index(flow.target)] += u64::from(flow.count);
        }
    }
    let channels = u64::from(parameters.channels_per_cell.max(1));
    let phases = taken.iter().map(|taken| taken.div_ceil(channels)).max().unwrap_or(0);
    (load.iter().copied().max().unwrap_or(0), phases)
}
