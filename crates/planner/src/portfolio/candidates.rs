//! Candidates from what planners return: rounds that are packed into phases, the members of phases,
//! or parts of connections in rounds. Here their channels get numbers.

use std::cmp::Reverse;
use std::sync::Arc;

use conset_ir::convert::{index, to_u32};
use conset_ir::{ConnectionSet, Infeasible, Machine, Routing};
use conset_partition_route::apr::requirements::Requirements;
use conset_partition_route::network::Network;
use conset_partition_route::{channels, explain, routing_of_paths};

use super::Routed;
use crate::paths::Paths;
use crate::phase_packing::{self, PackingRule};
use crate::problem::ports;

/// A route with its round, not yet part of a routing.
pub(crate) struct Part {
    pub(crate) connection: u32,
    pub(crate) words: u32,
    pub(crate) round: u32,
    pub(crate) path: Vec<u32>,
}

/// Numbers the channels of each phase, in the order of connections and rounds.
pub(crate) fn plan_of_parts(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    mut phases: Vec<Vec<Part>>,
) -> Result<Routed, Infeasible> {
    for parts in &mut phases {
        parts.sort_by_key(|part| (part.connection, part.round));
    }
    let routing = routing_of_paths(machine, set, to_u32(phases.len()), |phase| {
        let parts = phases[index(phase)].iter();
        parts.map(|part| (part.connection, part.words, part.path.as_slice()))
    })
    .map_err(|error| explain::misshapen(set, &error))?;
    let rounds = phases.iter().map(|parts| parts.iter().map(|part| part.round).collect());
    Ok(Routed { routing, rounds: Some(rounds.collect()), starts: None })
}

/// The maximum number of connections for which rounds are packed by both rules.
const MAX_TWICE_PACKED: usize = 1 << 15;

/// The candidates for rounds: packs rounds into phases and numbers the channels.
pub(super) fn pack_and_number(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
    requirements: Option<&Requirements>,
) -> Result<Vec<Routed>, Infeasible> {
    let packings = packings(machine, set, count, round_of, paths, requirements);
    let plan = |packed: &phase_packing::PhaseAssignment| {
        let members = by_phase(packed.phases, &packed.phase_of);
        let routing = number(machine, set, &members, paths)?;
        let rounds = members
            .iter()
            .map(|members| members.iter().map(|&x| round_of[index(x)]).collect())
            .collect();
        Ok(Routed { routing, rounds: Some(rounds), starts: None })
    };
    packings.iter().map(plan).collect()
}

/// Packs rounds into phases by each rule.
fn packings(
    machine: &Machine,
    set: &ConnectionSet,
    count: u32,
    round_of: &[u32],
    paths: &Paths,
    requirements: Option<&Requirements>,
) -> Vec<phase_packing::PhaseAssignment> {
    let channels = machine.parameters().channels_per_cell;
    let network = Network::new(machine);
    let ports = ports(machine, set);
    let ordered = !set.order().is_empty();
    let rounds =
        phase_packing::Rounds { count, round_of, paths, ports: &ports, ordered, requirements };
    let mut packings = vec![phase_packing::pack(&network, channels, rounds, PackingRule::Dense)];
    if set.len() <= MAX_TWICE_PACKED {
        let other = phase_packing::pack(&network, channels, rounds, PackingRule::InStep);
        packings.extend((other.phases > packings[0].phases).then_some(other));
    }
    if !ordered {
        let round_of = &by_channels(count, round_of, paths);
        let rounds = phase_packing::Rounds { round_of, ..rounds };
        let other = phase_packing::pack(&network, channels, rounds, PackingRule::Dense);
        if other.phases < packings[0].phases {
            packings[0] = other;
        }
    }
    packings
}

/// The round of each connection, with rounds renumbered such that those that take the most channels
/// come first: first fit then needs fewer phases.
fn by_channels(count: u32, round_of: &[u32], paths: &Paths) -> Vec<u32> {
    let mut channels = vec![0; index(count)];
    for (x, &round) in round_of.iter().enumerate() {
        channels[index(round)] += paths.of(x).len();
    }
    let mut rounds: Vec<usize> = (0..index(count)).collect();
    rounds.sort_by_key(|&round| Reverse(channels[round]));
    let mut number = vec![0; index(count)];
    (0..).zip(rounds).for_each(|(place, round)| number[round] = place);
    round_of.iter().map(|&round| number[index(round)]).collect()
}

/// The connections of each phase, in ascending order.
pub(super) fn by_phase(phases: u32, phase_of: &[u32]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); index(phases)];
    for (x, &phase) in phase_of.iter().enumerate() {
        members[index(phase)].push(to_u32(x));
    }
    members
}

/// The routing with these members of each phase on their paths.
pub(super) fn number(
    machine: &Arc<Machine>,
    set: &Arc<ConnectionSet>,
    members: &[Vec<u32>],
    paths: &Paths,
) -> Result<Routing, Infeasible> {
    let network = Network::new(machine);
    channels::number(machine, set, &network, to_u32(members.len()), |phase| {
        members[index(phase)].iter().map(|&x| (x, paths.of(index(x))))
    })
    .map_err(|error| explain::misshapen(set, &error))
}
