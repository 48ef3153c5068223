//! Structs with the keys of the JSON objects, borrowed for writing and owned after reading.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::ShapeError;
use crate::ids::{CellId, ConnectionId};
use crate::machine::{Duplex, Machine, Parameters, Protocol};
use crate::schedule::{Binding, Bounds};
use crate::set::Connection;
use crate::topology::Topology;
use crate::witness::{Proof, Witness};

/// `machine` as an object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineJson<'a> {
    name: Cow<'a, str>,
    topology: Cow<'a, Topology>,
    channels_per_cell: u32,
    clocks: ClocksJson,
    channels_reserved: Option<u32>,
    channel_depth: Option<u32>,
    duplex: Option<Duplex>,
    streams: Option<u32>,
    message_extra_words: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_words: Option<u32>,
    clock_hz: Option<u32>,
    word_bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_starts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<Protocol>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    dead_cells: Cow<'a, [CellId]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    dead_links: Cow<'a, [(CellId, CellId)]>,
}

/// `machine.clocks`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClocksJson {
    link_per_word: u32,
    access_per_word: u32,
    sync: u32,
    phase: u32,
    stream_setup: Option<u32>,
    send: Option<u32>,
    receive: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_per_word: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine_per_word: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_barrier: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_reduce: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_broadcast: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_per_word: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_overhead: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_per_word: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_send: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_receive: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll: Option<u32>,
}

/// A value that is written only if it is not the default.
fn stated<T: PartialEq + Copy>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

impl<'a> MachineJson<'a> {
    pub(super) fn new(machine: &'a Machine) -> Self {
        let (p, iwarp) = (machine.parameters(), Parameters::iwarp());
        Self {
            name: machine.name().into(),
            topology: Cow::Borrowed(machine.topology()),
            channels_per_cell: p.channels_per_cell,
            clocks: ClocksJson {
                link_per_word: p.link_clocks_per_word,
                access_per_word: p.access_clocks_per_word,
                sync: p.t_sync,
                phase: p.t_phase,
                stream_setup: Some(p.stream_setup),
                send: Some(p.c_send),
                receive: Some(p.c_receive),
                copy_per_word: stated(p.copy_clocks_per_word, iwarp.copy_clocks_per_word),
                combine_per_word: stated(p.combine_clocks_per_word, iwarp.combine_clocks_per_word),
                control_barrier: stated(p.control_barrier, iwarp.control_barrier),
                control_reduce: stated(p.control_reduce, iwarp.control_reduce),
                control_broadcast: stated(p.control_broadcast, iwarp.control_broadcast),
                control_per_word: stated(p.control_clocks_per_word, iwarp.control_clocks_per_word),
                network_overhead: stated(p.network_overhead, iwarp.network_overhead),
                network_per_word: stated(p.network_clocks_per_word, iwarp.network_clocks_per_word),
                active_send: stated(p.c_active_send, iwarp.c_active_send),
                active_receive: stated(p.c_active_receive, iwarp.c_active_receive),
                poll: stated(p.c_poll, iwarp.c_poll),
            },
            channels_reserved: Some(p.channels_reserved),
            channel_depth: Some(p.channel_depth),
            duplex: Some(p.duplex),
            streams: Some(p.streams),
            message_extra_words: Some(p.message_extra_words),
            active_words: stated(p.active_words, iwarp.active_words),
            clock_hz: Some(p.clock_hz),
            word_bytes: Some(p.word_bytes),
            timed_starts: p.has_timed_starts().then_some(p.timed_starts),
            protocol: stated(p.protocol, iwarp.protocol),
            dead_cells: machine.dead_cells().into(),
            dead_links: machine.dead_links().into(),
        }
    }

    pub(super) fn build(self) -> Result<Machine, ShapeError> {
        let (iwarp, clocks) = (Parameters::iwarp(), self.clocks);
        let parameters = Parameters {
            channels_per_cell: self.channels_per_cell,
            channels_reserved: self.channels_reserved.unwrap_or(iwarp.channels_reserved),
            channel_depth: self.channel_depth.unwrap_or(iwarp.channel_depth),
            link_clocks_per_word: clocks.link_per_word,
            access_clocks_per_word: clocks.access_per_word,
            duplex: self.duplex.unwrap_or(iwarp.duplex),
            streams: self.streams.unwrap_or(iwarp.streams),
            stream_setup: clocks.stream_setup.unwrap_or(iwarp.stream_setup),
            t_sync: clocks.sync,
            t_phase: clocks.phase,
            c_send: clocks.send.unwrap_or(iwarp.c_send),
            c_receive: clocks.receive.unwrap_or(iwarp.c_receive),
            message_extra_words: self.message_extra_words.unwrap_or(iwarp.message_extra_words),
            clock_hz: self.clock_hz.unwrap_or(iwarp.clock_hz),
            word_bytes: self.word_bytes.unwrap_or(iwarp.word_bytes),
            timed_starts: self.timed_starts.unwrap_or(iwarp.timed_starts),
            protocol: self.protocol.unwrap_or(iwarp.protocol),
            copy_clocks_per_word: clocks.copy_per_word.unwrap_or(iwarp.copy_clocks_per_word),
            combine_clocks_per_word: clocks
                .combine_per_word
                .unwrap_or(iwarp.combine_clocks_per_word),
            control_barrier: clocks.control_barrier.unwrap_or(iwarp.control_barrier),
            control_reduce: clocks.control_reduce.unwrap_or(iwarp.control_reduce),
            control_broadcast: clocks.control_broadcast.unwrap_or(iwarp.control_broadcast),
            control_clocks_per_word: clocks
                .control_per_word
                .unwrap_or(iwarp.control_clocks_per_word),
            network_overhead: clocks.network_overhead.unwrap_or(iwarp.network_overhead),
            network_clocks_per_word: clocks
                .network_per_word
                .unwrap_or(iwarp.network_clocks_per_word),
            active_words: self.active_words.unwrap_or(iwarp.active_words),
            c_active_send: clocks.active_send.unwrap_or(iwarp.c_active_send),
            c_active_receive: clocks.active_receive.unwrap_or(iwarp.c_active_receive),
            c_poll: clocks.poll.unwrap_or(iwarp.c_poll),
        };
        Machine::new(
            self.name,
            self.topology.into_owned(),
            parameters,
            self.dead_cells.into_owned(),
            self.dead_links.into_owned(),
        )
    }
}

/// An element of `connections`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionJson<'a> {
    pub(super) id: Option<ConnectionId>,
    source: CellId,
    target: CellId,
    words: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_bandwidth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_latency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nodes: Option<Cow<'a, [u32]>>,
}

impl<'a> ConnectionJson<'a> {
    pub(super) fn new(id: ConnectionId, c: &'a Connection, nodes: Option<&'a [u32]>) -> Self {
        Self {
            id: Some(id),
            source: c.source,
            target: c.target,
            words: c.words,
            name: c.name.as_deref().map(Into::into),
            min_bandwidth: c.min_bandwidth,
            max_latency: c.max_latency,
            nodes: nodes.map(Into::into),
        }
    }

    /// The connection, without its id and nodes.
    pub(super) fn build(&self) -> Connection {
        Connection {
            source: self.source,
            target: self.target,
            words: self.words,
            min_bandwidth: self.min_bandwidth,
            max_latency: self.max_latency,
            name: self.name.as_deref().map(Into::into),
        }
    }
}

/// `bounds`. The default of `phases_by` and `clocks_by` is `nothing`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoundsJson<'a> {
    phases: u32,
    #[serde(default = "nothing")]
    phases_by: Binding,
    #[serde(skip_serializing_if = "Option::is_none")]
    phases_witness: Option<Cow<'a, Witness>>,
    clocks: u64,
    #[serde(default = "nothing")]
    clocks_by: Binding,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks_witness: Option<Cow<'a, Witness>>,
}

fn nothing() -> Binding {
    Binding::Nothing
}

impl<'a> BoundsJson<'a> {
    pub(super) fn new(bounds: Bounds, proof: &'a Proof) -> Self {
        let Bounds { phases, phases_by, clocks, clocks_by } = bounds;
        Self {
            phases,
            phases_by,
            phases_witness: proof.phases.as_ref().map(Cow::Borrowed),
            clocks,
            clocks_by,
            clocks_witness: proof.clocks.as_ref().map(Cow::Borrowed),
        }
    }

    pub(super) fn build(self) -> (Bounds, Proof) {
        let Self { phases, phases_by, clocks, clocks_by, .. } = self;
        let proof = Proof {
            phases: self.phases_witness.map(Cow::into_owned),
            clocks: self.clocks_witness.map(Cow::into_owned),
        };
        (Bounds { phases, phases_by, clocks, clocks_by }, proof)
    }
}

/// An element of `timetable`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotJson {
    pub(super) connection: ConnectionId,
    pub(super) start: u64,
    pub(super) duration: u64,
}

/// `node_numbers` of a schedule.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeNumbersJson<'a> {
    pub(super) from: u64,
    #[serde(default, skip_serializing_if = "no_rows")]
    pub(super) listed: Cow<'a, [(u32, u64)]>,
}

fn no_rows(rows: &[(u32, u64)]) -> bool {
    rows.is_empty()
}
