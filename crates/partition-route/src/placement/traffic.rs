//! Who sends what to whom: the connections as the local search books them, source to target.
//!
//! Connections with the same ends are one entry, because they take the same routes here; it
//! remembers how many they are (each takes channels) and their words (which load links).

use conset_ir::{ConnectionSet, Duplex, Machine};

/// Connections between two parts, one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) source: u32,
    pub(super) target: u32,
    /// Connections.
    pub(super) count: u32,
    /// Words of all of them.
    pub(super) words: u64,
}

/// The flows of a set, and those of each part.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) flows: Vec<Flow>,
    /// Flows of part `p` are `ids[first[p]..first[p + 1]]`; a flow is listed at both its ends.
    first: Vec<u32>,
    ids: Vec<u32>,
    /// Connections of each part to itself: a channel each, wherever it lives.
    pub(super) own: Vec<u32>,
    /// Clocks of the busiest agent, which no placement changes.
    pub(super) agent_clocks: u64,
    /// Phases that the ends of connections alone ask for, which no placement changes either.
    pub(super) phases: u64,
}

impl Traffic {
    /// The flows of a set whose cells are part numbers below `parts`.
    pub(super) fn new(machine: &Machine, set: &ConnectionSet, parts: usize) -> Self {
        let mut flows: Vec<Flow> = set
            .connections()
            .iter()
            .map(|c| Flow {
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
        let (agent_clocks, phases) = ends(machine, &flows, parts);
        let mut own = vec![0; parts];
        for flow in flows.iter().filter(|flow| flow.source == flow.target) {
            own[flow.source as usize] += flow.count;
        }
        flows.retain(|flow| flow.source != flow.target);
        let (first, ids) = incidence(&flows, parts);
        Self { flows, first, ids, own, agent_clocks, phases }
    }

    /// The flows from and to a part.
    pub(super) fn of(&self, part: u32) -> &[u32] {
        let part = part as usize;
        &self.ids[self.first[part] as usize..self.first[part + 1] as usize]
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.own.len()
    }
}

fn incidence(flows: &[Flow], parts: usize) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; parts + 1];
    for flow in flows {
        first[flow.source as usize + 1] += 1;
        first[flow.target as usize + 1] += 1;
    }
    for part in 0..parts {
        first[part + 1] += first[part];
    }
    let mut next = first.clone();
    let mut ids = vec![0; 2 * flows.len()];
    for (id, flow) in flows.iter().enumerate() {
        for part in [flow.source, flow.target] {
            let at = &mut next[part as usize];
            ids[*at as usize] = id as u32;
            *at += 1;
        }
    }
    (first, ids)
}

/// The load of the busiest agent, and the phases that the ends need.
fn ends(machine: &Machine, flows: &[Flow], parts: usize) -> (u64, u64) {
    let parameters = machine.parameters();
    let mut load = vec![[0u64; 2]; parts];
    let mut taken = vec![0u64; parts];
    for flow in flows {
        let words = flow.words.saturating_mul(u64::from(parameters.access_clocks_per_word));
        let clocks =
            words.saturating_add(u64::from(flow.count) * u64::from(parameters.stream_setup));
        for (side, part) in [flow.source, flow.target].into_iter().enumerate() {
            let load = &mut load[part as usize][side];
            *load = load.saturating_add(clocks);
        }
        taken[flow.source as usize] += u64::from(flow.count);
        if flow.source != flow.target {
            taken[flow.target as usize] += u64::from(flow.count);
        }
    }
    let busy = |sides: &[u64; 2]| match parameters.duplex {
        Duplex::Full => sides[0].max(sides[1]),
        Duplex::Half => sides[0].saturating_add(sides[1]),
    };
    let channels = u64::from(parameters.channels_per_cell.max(1));
    let phases = taken.iter().map(|taken| taken.div_ceil(channels)).max().unwrap_or(0);
    (load.iter().map(busy).max().unwrap_or(0), phases)
}
