//! Measuring what messages cost, as a machine file of a cluster.
//!
//! ```no_run
//! use conset_runtime::mpi::{Comm, tune};
//!
//! # fn main() -> Result<(), tune::TuneError> {
//! let measured = tune::measure(&Comm::world()?, None)?;
//! print!("{}", measured.machine_file());
//! # Ok(())
//! # }
//! ```
//!
//! Ranks that share memory are a node (`MPI_Comm_split_type`). Some pairs of ranks in a node and some
//! of two nodes measure one after the other, while all others sleep. Of repetitions the first decile
//! counts, as other programs only add to times, and of pairs the median. The machine of the file has a
//! clock of a quarter of a nanosecond, so that the rates of memory are not rounded much, and these
//! parameters:
//!
//! | parameter | what is measured |
//! |---|---|
//! | `c_send`, `c_receive` | the software of a message at each end: of 16 that are under way at a time |
//! | `stream_setup` | the greater of the two, as the connections of a phase are messages too |
//! | `link_clocks_per_word`, `access_clocks_per_word` | each further word of a long message in a node |
//! | `network_overhead` | by how much the software of both ends is more between two nodes, for each end |
//! | `network_clocks_per_word` | the words of all cells of a node that send to another at a time |
//! | `copy_clocks_per_word`, `combine_clocks_per_word` | a copy in memory |
//! | `t_sync` | a barrier of all ranks |
//!
//! The machine model has no latency of its own: the part of half a round trip that is not software is
//! stated in the comments of the file, and left out. As a plan pays it once for each level and the
//! software once for each message, to add it to the software would cost a plan with many messages
//! much more than they take.

use std::ffi::c_int;

use conset_ir::convert::{to_u32, to_usize, truncate};
use conset_ir::{Machine, Parameters, machine_file};

use super::comm::{Comm, call};
use super::ffi::{RawComm, to_c_int};
use crate::error::MpiError;

/// Clocks of a nanosecond on the machines that are written.
const CLOCKS: f64 = 4.0;
/// Pairs of ranks that measure in nodes, and between nodes.
const PAIRS: usize = 4;

unsafe extern "C" {
    fn conset_tune_nodes(comm: *mut RawComm, nodes: *mut c_int) -> c_int;
    fn conset_tune_pair(comm: *mut RawComm, a: c_int, b: c_int, out: *mut f64) -> c_int;
    fn conset_tune_streams(
        comm: *mut RawComm,
        peer: c_int,
        sends: c_int,
        ns: *mut f64,
        words: *mut f64,
    ) -> c_int;
    fn conset_tune_barrier(comm: *mut RawComm, ns: *mut f64) -> c_int;
    fn conset_tune_copy(comm: *mut RawComm, ns: *mut f64) -> c_int;
}

/// Why nothing was measured. The same on all ranks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// An error of MPI, or a rank that does not come.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// There is only one rank.
    #[error("one rank has nobody to exchange messages with; start several (mpirun -n RANKS ...)")]
    Alone,
    /// Cells of a cluster are numbered node by node, and every node has the same number.
    #[error(
        "expected ranks that are numbered node by node, as many on each: rank {rank} is on the node \
         of rank {found}, with {cells} ranks on a node it would be on that of rank {expected}; start \
         the same number of ranks on each node, in the order of the nodes (mpirun can map ranks by core)"
    )]
    Numbering {
        /// The first rank that is elsewhere.
        rank: usize,
        /// The lowest rank of its node.
        found: usize,
        /// What that would be.
        expected: usize,
        /// Ranks on the first node.
        cells: usize,
    },
    /// The number of ranks is no multiple of the cells of a node that was asked for.
    #[error("{ranks} ranks cannot be divided into nodes of {cells}")]
    Cells {
        /// All ranks.
        ranks: usize,
        /// Cells of a node.
        cells: usize,
    },
}

/// What a message costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageCost {
    /// Half of the round trip of a message of a word.
    pub half_round_trip: f64,
    /// Software of the sender for each of many messages.
    pub send: f64,
    /// Software of the receiver.
    pub receive: f64,
    /// Each further word of 8 bytes of a long message.
    pub word: f64,
}

/// What was measured, in nanoseconds and words of 8 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Nodes of the job.
    pub nodes: usize,
    /// Ranks of each.
    pub cells_per_node: usize,
    /// Messages in a node, if nodes have several ranks.
    pub inside: Option<MessageCost>,
    /// Messages between two nodes, if there are several.
    pub between: Option<MessageCost>,
    /// A word over the network link of a node, when all its ranks send at a time.
    pub network_word: Option<f64>,
    /// A barrier of all ranks.
    pub barrier: f64,
    /// The copy of a word in memory.
    pub copy_word: f64,
}

/// Measures what messages cost. Collective; all ranks get the same values. It takes about a second.
/// `cells_per_node` divides the ranks into nodes of so many instead of asking MPI, for example into the
/// sockets of a computer.
///
/// # Errors
/// One rank, ranks that are not numbered node by node, or an error of MPI.
pub fn measure(comm: &Comm, cells_per_node: Option<usize>) -> Result<Measured, TuneError> {
    let ranks = comm.size();
    if ranks == 1 {
        return Err(TuneError::Alone);
    }
    let cells = match cells_per_node {
        Some(cells) if cells == 0 || !ranks.is_multiple_of(cells) => {
            return Err(TuneError::Cells { ranks, cells });
        }
        Some(cells) => cells,
        None => cells_of_nodes(&nodes(comm)?)?,
    };
    let nodes = ranks / cells;
    // Spread over the nodes; a pair of two nodes is as far apart as their numbers allow.
    let some = (0..nodes.min(PAIRS)).map(|pair| pair * nodes / nodes.min(PAIRS));
    let inside = some.clone().map(|node| (node * cells, node * cells + 1));
    let between = some.map(|node| (node * cells, (node + nodes.div_ceil(2)) % nodes * cells));
    Ok(Measured {
        nodes,
        cells_per_node: cells,
        inside: if cells > 1 { Some(pairs(comm, inside)?) } else { None },
        between: if nodes > 1 { Some(pairs(comm, between)?) } else { None },
        network_word: if nodes > 1 { Some(network_word(comm, cells)?) } else { None },
        barrier: one(comm, conset_tune_barrier)?,
        copy_word: one(comm, conset_tune_copy)?,
    })
}

/// For each rank, the lowest rank of its node.
fn nodes(comm: &Comm) -> Result<Vec<usize>, MpiError> {
    let mut nodes: Vec<c_int> = vec![0; comm.size()];
    call("find the ranks of a node", || {
        // SAFETY: the shim writes a number for each rank.
        unsafe { conset_tune_nodes(comm.raw(), nodes.as_mut_ptr()) }
    })?;
    Ok(nodes.into_iter().map(to_usize).collect())
}

/// The ranks of each node, given the lowest rank of each rank's node.
fn cells_of_nodes(nodes: &[usize]) -> Result<usize, TuneError> {
    let cells = nodes.iter().take_while(|&&node| node == 0).count().max(1);
    let expected = |rank: usize| rank / cells * cells;
    let wrong = nodes.iter().enumerate().find(|&(rank, &found)| found != expected(rank));
    if let Some((rank, &found)) = wrong {
        return Err(TuneError::Numbering { rank, found, expected: expected(rank), cells });
    }
    if !nodes.len().is_multiple_of(cells) {
        let rank = nodes.len() - 1;
        let expected = expected(rank);
        return Err(TuneError::Numbering { rank, found: nodes[rank], expected, cells });
    }
    Ok(cells)
}

/// The median over some pairs of ranks, one by one.
fn pairs(
    comm: &Comm,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> Result<MessageCost, MpiError> {
    let mut values: [Vec<f64>; 4] = Default::default();
    for (a, b) in pairs {
        let mut out = [0.0; 4];
        call("measure messages", || {
            // SAFETY: the shim writes four numbers; both ranks exist.
            unsafe { conset_tune_pair(comm.raw(), to_c_int(a), to_c_int(b), out.as_mut_ptr()) }
        })?;
        values.iter_mut().zip(out).for_each(|(values, value)| values.push(value.max(0.0)));
    }
    let [half_round_trip, send, receive, word] = values.map(median);
    Ok(MessageCost { half_round_trip, send, receive, word })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A word over the network link of a node: all cells of the first node send to those of another.
fn network_word(comm: &Comm, cells: usize) -> Result<f64, MpiError> {
    let other = (comm.size() / cells).div_ceil(2) * cells;
    let rank = comm.rank();
    let (peer, sends) = if rank < cells {
        (to_c_int(other + rank), 1)
    } else if (other..other + cells).contains(&rank) {
        (to_c_int(rank - other), 0)
    } else {
        (-1, 0)
    };
    let (mut time, mut words) = (0.0, 0.0);
    call("measure the links of nodes", || {
        // SAFETY: the shim writes two numbers; the peer exists, and does the opposite.
        unsafe { conset_tune_streams(comm.raw(), peer, sends, &raw mut time, &raw mut words) }
    })?;
    let all: f64 = std::iter::repeat_n(words, cells).sum();
    Ok(time / all)
}

/// What a function of the shim measures.
fn one(
    comm: &Comm,
    function: unsafe extern "C" fn(*mut RawComm, *mut f64) -> c_int,
) -> Result<f64, MpiError> {
    let mut value = 0.0;
    call("measure", || {
        // SAFETY: the functions that have this type write one number.
        unsafe { function(comm.raw(), &raw mut value) }
    })?;
    Ok(value)
}

/// Nanoseconds in clocks, at least `least`, and at most what a parameter can be.
fn clocks(nanoseconds: f64, least: u32) -> u32 {
    // Not a number is 0.
    let clocks = (nanoseconds.max(0.0) * CLOCKS).round().min(1e9);
    to_u32(truncate(clocks)).max(least)
}

impl Measured {
    /// The machine: `cluster:NODESxCELLS` with what was measured.
    pub fn machine(&self) -> Machine {
        let spec = format!("cluster:{}x{}", self.nodes, self.cells_per_node);
        let machine = Machine::from_spec(&spec).expect("a cluster of the ranks of a job");
        let unmeasured = f64::from(machine.parameters().network_overhead);
        let (near, far) = match (self.inside, self.between) {
            (Some(near), far) => (near, far),
            (None, Some(far)) => (far, Some(far)),
            (None, None) => unreachable!("a job of several ranks has pairs"),
        };
        let software = |cost: MessageCost| cost.send + cost.receive;
        let overhead = far.map_or(unmeasured, |far| (software(far) - software(near)) / 2.0);
        let word = clocks(near.word, 1);
        let parameters = Parameters {
            clock_hz: 4_000_000_000,
            c_send: clocks(near.send, 0),
            c_receive: clocks(near.receive, 0),
            stream_setup: clocks(near.send.max(near.receive), 0),
            link_clocks_per_word: word,
            access_clocks_per_word: word,
            network_overhead: clocks(overhead, 0),
            network_clocks_per_word: self.network_word.map_or(0, |word| clocks(word, 1)),
            copy_clocks_per_word: clocks(self.copy_word, 1),
            combine_clocks_per_word: clocks(self.copy_word, 1),
            t_sync: clocks(self.barrier, 0),
            ..machine.parameters().clone()
        };
        machine.with_parameters(parameters).expect("values in the ranges of parameters")
    }

    /// What was measured, in a line for each kind of messages.
    pub fn lines(&self) -> Vec<String> {
        let of = |place: &str, cost: MessageCost| {
            let MessageCost { half_round_trip, send, receive, word } = cost;
            let rest = (half_round_trip - send - receive).max(0.0);
            format!(
                "{place}: half a round trip of a word {half_round_trip:.0} ns; software {send:.0} ns to \
                 send and {receive:.0} ns to receive; latency beyond it, which the model does not \
                 have, {rest:.0} ns; each word of long messages {word:.2} ns"
            )
        };
        let mut lines = Vec::new();
        match self.inside {
            Some(cost) => lines.push(of("in a node", cost)),
            None => lines.push("in a node: not measured, as nodes have one rank".to_owned()),
        }
        match (self.between, self.network_word) {
            (Some(cost), Some(word)) => lines.push(format!(
                "{}; each word of all cells of a node together {word:.2} ns",
                of("between nodes", cost)
            )),
            _ => lines.push(
                "between nodes: not measured, as all ranks are on one node; network_overhead is the preset's"
                    .to_owned(),
            ),
        }
        lines.push(format!(
            "a barrier of all ranks {:.0} ns; a copy {:.2} ns a word",
            self.barrier, self.copy_word
        ));
        lines
    }

    /// The machine file, with [`Measured::lines`] as comments.
    pub fn machine_file(&self) -> String {
        let head = format!(
            "# Measured by conset_runtime::mpi::tune on {} x {} ranks (nodes x ranks of each). A clock is 0.25 ns, a word 8 bytes.\n",
            self.nodes, self.cells_per_node
        );
        let lines = self.lines().into_iter().map(|line| format!("# {line}\n"));
        head + &lines.collect::<String>() + &machine_file::write(&self.machine())
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, MessageCost, TuneError, cells_of_nodes, machine_file};

    const NEAR: MessageCost =
        MessageCost { half_round_trip: 500.0, send: 120.0, receive: 80.0, word: 0.9 };
    const FAR: MessageCost =
        MessageCost { half_round_trip: 1900.0, send: 320.0, receive: 480.0, word: 1.1 };

    fn measured() -> Measured {
        Measured {
            nodes: 6,
            cells_per_node: 4,
            inside: Some(NEAR),
            between: Some(FAR),
            network_word: Some(0.66),
            barrier: 3000.0,
            copy_word: 0.5,
        }
    }

    #[test]
    fn a_machine_file_has_what_was_measured() {
        let text = measured().machine_file();
        let machine = machine_file::parse("tuned.toml", &text).unwrap();
        assert_eq!(machine, measured().machine());
        let p = machine.parameters();
        assert_eq!((machine.agent_count(), p.clock_hz), (24, 4_000_000_000));
        assert_eq!((p.c_send, p.c_receive, p.stream_setup), (480, 320, 480));
        assert_eq!((p.link_clocks_per_word, p.access_clocks_per_word), (4, 4));
        // (800 - 200) / 2 ns more at each end.
        assert_eq!((p.network_overhead, p.network_clocks_per_word), (1200, 3));
        assert_eq!((p.copy_clocks_per_word, p.combine_clocks_per_word, p.t_sync), (2, 2, 12_000));
        assert!(text.contains("latency beyond it, which the model does not have, 1100 ns"));
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let one_node = Measured { nodes: 1, between: None, network_word: None, ..measured() };
        let p = one_node.machine().parameters().clone();
        assert_eq!((p.network_overhead, p.network_clocks_per_word), (3200, 0));
        assert!(one_node.machine_file().contains("between nodes: not measured"));
        // One rank on each node: all messages are between nodes, and nothing is added to them.
        let single = Measured { cells_per_node: 1, inside: None, ..measured() };
        let p = single.machine().parameters().clone();
        assert_eq!((p.c_send, p.c_receive, p.network_overhead), (1280, 1920, 0));
    }

    #[test]
    fn noise_does_not_make_impossible_machines() {
        let odd = MessageCost { half_round_trip: 0.0, send: 1e300, receive: -5.0, word: f64::NAN };
        let odd = Measured { inside: Some(odd), between: Some(NEAR), ..measured() };
        machine_file::parse("odd.toml", &odd.machine_file()).unwrap();
    }

    #[test]
    fn cells_are_numbered_node_by_node() {
        assert_eq!(cells_of_nodes(&[0, 0, 2, 2]).unwrap(), 2);
        assert_eq!(cells_of_nodes(&[0, 0, 0]).unwrap(), 3);
        assert_eq!(cells_of_nodes(&[0, 1, 2]).unwrap(), 1);
        for (nodes, wrong) in [(&[0, 1, 0, 1][..], 2), (&[0, 0, 2], 2), (&[0, 1, 1], 2)] {
            let error = cells_of_nodes(nodes).unwrap_err();
            assert!(matches!(error, TuneError::Numbering { rank, .. } if rank == wrong), "{error}");
        }
    }
}
