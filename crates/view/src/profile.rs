//! The profile of a set: where its clocks went, its critical path and the slack of its streams.
//!
//! All numbers are those of [`conset::profile`] by the cost model, which `conset show profile` prints;
//! nothing is computed here. What grows with the machine or the set is in blocks of its own:
//!
//! | block | rows |
//! |---|---|
//! | `profile` | the sums over the ports of a side, for each phase and side |
//! | `ports` | each port, all phases together |
//! | `phase-ports` | each port in each phase, phase by phase |
//! | `path` | the streams of the critical path, in the order of time |
//! | `slack` | all streams |
//!
//! The first three have a column for each part of [`PortClocks`]. Ports are in the order of cells; a
//! cell has as many as the profile has sides.

use std::collections::HashMap;

use conset::profile::{PathCause, PathSegment, PortClocks, PortSide, SetProfile};
use conset_ir::ConnectionId;
use conset_ir::convert::to_usize;

use crate::columns::Block;
use crate::head::ProfileHead;

/// Greatest number of rows of the block `phase-ports`, whose columns a browser must hold.
const PHASE_PORTS: usize = 1 << 22;

/// The rows of streams in the page, by connection and first word.
pub(crate) type StreamRows = HashMap<(ConnectionId, u32), u64>;

/// The head of a profile: its sums.
pub(crate) fn head(profile: &SetProfile) -> ProfileHead {
    ProfileHead {
        clocks: profile.clocks,
        sides: profile.sides.clone(),
        path: profile.critical_path.clocks,
        slack: profile.critical_path.slack,
    }
}

/// A column for each part of the clocks.
fn clocks<'a>(block: &mut Block, ports: &(impl Iterator<Item = &'a PortClocks> + Clone)) {
    for (part, name) in PortClocks::NAMES.into_iter().enumerate() {
        block.plain(name, ports.clone().map(move |clocks| clocks.parts()[part]));
    }
}

/// The block `profile`.
pub(crate) fn phases(profile: &SetProfile) -> Block {
    let sides = profile.phases.iter().flat_map(|phase| &phase.sides);
    let mut block = Block::default();
    clocks(&mut block, &sides.map(|side| &side.clocks));
    block
}

/// The block `ports`, with the cell of each.
pub(crate) fn ports(profile: &SetProfile) -> Block {
    let mut block = Block::default();
    block.delta("port_cell", profile.ports.iter().map(|port| port.cell.0.into()));
    clocks(&mut block, &profile.ports.iter().map(|port| &port.clocks));
    block
}

/// The block `phase-ports`; `None` if it has too many rows.
pub(crate) fn phase_ports(profile: &SetProfile) -> Option<Block> {
    let rows = profile.phases.len().checked_mul(profile.ports.len());
    rows.filter(|&rows| rows <= PHASE_PORTS)?;
    let ports = profile.phases.iter().flat_map(|phase| &phase.ports);
    let mut block = Block::default();
    clocks(&mut block, &ports.map(|port| &port.clocks));
    Some(block)
}

/// The numbers of causes in the column `path_cause`.
fn cause(after: PathCause) -> u64 {
    match after {
        PathCause::Port { side: PortSide::Send, .. } => 1,
        PathCause::Port { side: PortSide::Receive, .. } => 2,
        PathCause::Port { side: PortSide::Both, .. } => 3,
        PathCause::Order => 4,
        PathCause::Link => 5,
        _ => 0,
    }
}

/// The block `path`. Clocks count from the end of the phase's switch.
pub(crate) fn path(profile: &SetProfile, rows: &StreamRows) -> Block {
    let segments = &profile.critical_path.segments;
    let cell = |segment: &PathSegment| match segment.after {
        PathCause::Port { cell, .. } => cell.0.into(),
        _ => 0,
    };
    let row = |s: &PathSegment| rows.get(&(s.connection, s.first_word)).copied().unwrap_or(0);
    let mut block = Block::default();
    block
        .delta("path_stream", segments.iter().map(row))
        .plain("path_from", segments.iter().map(|segment| segment.from))
        .plain("path_to", segments.iter().map(|segment| segment.to))
        .plain("path_waited", segments.iter().map(|segment| segment.waited))
        .plain("path_cause", segments.iter().map(|segment| cause(segment.after)))
        .plain("path_cell", segments.iter().map(cell));
    block
}

/// The block `slack`, of `count` streams.
pub(crate) fn slack(profile: &SetProfile, rows: &StreamRows, count: usize) -> Block {
    let streams = &profile.critical_path.streams;
    let mut slack = vec![0; count];
    for stream in streams {
        let row = rows.get(&(stream.connection, stream.first_word));
        if let Some(place) = row.and_then(|&row| slack.get_mut(to_usize(row))) {
            *place = stream.slack;
        }
    }
    let mut block = Block::default();
    block.plain("stream_slack", slack.iter().copied());
    block
}
