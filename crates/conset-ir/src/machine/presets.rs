//! Machines by name: the parameters of known machines, and the specifications in which their sizes stand.

use super::{Duplex, Machine, Parameters, Protocol};
use crate::error::SpecError;
use crate::limits;
use crate::position::did_you_mean;
use crate::topology::Topology;

/// Help for an unknown word: the closest known word, and the list of all known words.
pub(super) fn suggestion(word: &str, known: &[&str], what: &str) -> String {
    let all = format!("{what}: {}", known.join(", "));
    let plain = word.to_ascii_lowercase().replace('-', "_");
    let close = |word: &str| did_you_mean(word, known.iter().copied());
    match close(word).or_else(|| close(&plain)) {
        Some(meant) => format!("did you mean `{meant}`? {all}"),
        None => all,
    }
}

impl Parameters {
    /// The paper's iWarp in streaming mode.
    pub const fn iwarp() -> Self {
        Self {
            channels_per_cell: 12,
            channels_reserved: 8,
            channel_depth: 8,
            link_clocks_per_word: 2,
            access_clocks_per_word: 2,
            duplex: Duplex::Full,
            streams: 1,
            stream_setup: 0,
            t_sync: 352,
            t_phase: 176,
            c_send: 400,
            c_receive: 400,
            message_extra_words: 4,
            clock_hz: 20_000_000,
            word_bytes: 4,
            timed_starts: 0,
            protocol: Protocol::Standing,
            copy_clocks_per_word: 0,
            combine_clocks_per_word: 0,
            control_barrier: 0,
            control_reduce: 0,
            control_broadcast: 0,
            control_clocks_per_word: 0,
            network_overhead: 0,
            network_clocks_per_word: 0,
            active_words: 0,
            c_active_send: 0,
            c_active_receive: 0,
            c_poll: 0,
        }
    }

    /// The paper's iWarp with agents that observe planned starts. This needs a register that counts
    /// from the context switch, and a comparison. The paper's agents have neither and start a
    /// stream when they are free, so this is a separate preset and `iwarp` remains the paper's
    /// machine.
    pub const fn iwarp_timed() -> Self {
        Self { timed_starts: 1, ..Self::iwarp() }
    }

    /// The paper's iWarp as Tables 1 to 3 measured it: streaming mode (section 5) with the cost of
    /// starting the loop of a stream.
    ///
    /// The paper does not state this cost. It is calibrated on one measurement of Table 1: a cell
    /// of the torus pattern starts 4 sends, and the shortest exchange took 1168 clocks where the
    /// paper's formula yields 776; (1168 - 776) / 4 = 98. All other values are those of
    /// [`Parameters::iwarp`]. (That preset has no set-up cost. Files refer to presets by name, so
    /// the values of a preset cannot change.)
    pub const fn iwarp_stream() -> Self {
        Self { stream_setup: 98, ..Self::iwarp() }
    }

    /// The paper's iWarp in spooling mode (section 5): words move in the background at link
    /// speed, once a spooling unit is set up. The 400 clocks of set-up are the overhead of a message
    /// (section 4.3.1), which includes route lookup and queues, so they are an upper limit.
    pub const fn iwarp_spool() -> Self {
        Self { stream_setup: 400, ..Self::iwarp() }
    }

    /// The paper's iWarp in the FEM loops (systolic mode, section 5): 10 clocks per word, and half
    /// duplex. An instruction of the computing loop sends or receives a word, which the 10 clocks
    /// include, so no stream is set up.
    pub const fn iwarp_fem() -> Self {
        Self { access_clocks_per_word: 10, duplex: Duplex::Half, ..Self::iwarp() }
    }

    /// A CM-5 as measured by R. Ponnusamy and others (Experimental Performance Evaluation of the
    /// CM-5), in ticks of 10 ns, since the paper has no clock.
    ///
    /// | parameters | source |
    /// |---|---|
    /// | rendezvous, half duplex | CMMD's synchronous messages: an exchange of a pair is two messages in turn |
    /// | access 45 | 0.112 us a byte (section 3.2), 44.8 ticks a word of 4 bytes |
    /// | send 3602, receive 3603 | 73 us a message (section 3.2), less the first word's way over two links |
    /// | link 25 | 20 MB/s with packet headers of 4 bytes in 20, so 16 MB/s (section 2); a message takes one path, so this is a link's rate and not half of it |
    /// | reduction 4200, broadcast 14300 + 595 a word | Table 7: 42 us for a double; 143 us + 1.4886 us a byte |
    /// | barrier 600 | assumed: that of Table 7's reduction of an int, 6 us |
    pub const fn cm5() -> Self {
        Self {
            link_clocks_per_word: 25,
            access_clocks_per_word: 45,
            duplex: Duplex::Half,
            c_send: 3602,
            c_receive: 3603,
            message_extra_words: 0,
            clock_hz: 100_000_000,
            protocol: Protocol::Rendezvous,
            control_barrier: 600,
            control_reduce: 4200,
            control_broadcast: 14_300,
            control_clocks_per_word: 595,
            ..Self::iwarp()
        }
    }

    /// The same CM-5 with its active messages. ([`Parameters::cm5`] has none. Files refer to presets
    /// by name, so the values of a preset cannot change.)
    ///
    /// | parameters | source |
    /// |---|---|
    /// | packets of 4 words | section 2: 16 bytes of data in a packet |
    /// | send 200, receive 200 | no paper has them; 2 us at each end is one of three values that were tried with Figure 31 of Bae and Ranka in sight (docs/fidelity.md) |
    /// | poll 30 | assumed |
    /// | reduction 600 | the runtime reduces counts of one word: Table 7, 6 us for an int |
    pub const fn cm5_active() -> Self {
        Self {
            control_reduce: 600,
            active_words: 4,
            c_active_send: 200,
            c_active_receive: 200,
            c_poll: 30,
            ..Self::cm5()
        }
    }

    /// An Intel Touchstone Delta as described by S. Hambrusch and A. Khokhar (C3: an
    /// architecture-independent model for coarse-grained parallel machines).
    ///
    /// | parameters | source |
    /// |---|---|
    /// | 40 MHz, send 1400 | section 4.1: a set-up of 1400 processor cycles |
    /// | link 13, access 13 | section 4.1: 12.5 MB/s, 12.8 clocks a word of 4 bytes |
    /// | receive 0 | the paper has no number |
    pub const fn delta() -> Self {
        Self {
            link_clocks_per_word: 13,
            access_clocks_per_word: 13,
            c_send: 1400,
            c_receive: 0,
            message_extra_words: 0,
            clock_hz: 40_000_000,
            ..Self::iwarp()
        }
    }

    /// A Cray T3D with the message passing library ACL, whose paper is meant below.
    ///
    /// | parameters | source |
    /// |---|---|
    /// | send 357, receive 357, 3 extra words | 5 us and 24 bytes of protocol for each message |
    /// | access 12 | more than 100 MB/s, 8 bytes a word |
    /// | copy 7 | memory copies at 170 MB/s |
    /// | combine 20 | calibrated on the reduction of Table 2 |
    /// | 150 MHz, link 4 | not from the paper; none of its results depends on them |
    /// | rendezvous | the library's synchronous messages |
    pub const fn t3d() -> Self {
        Self {
            link_clocks_per_word: 4,
            access_clocks_per_word: 12,
            c_send: 357,
            c_receive: 357,
            message_extra_words: 3,
            clock_hz: 150_000_000,
            word_bytes: 8,
            protocol: Protocol::Rendezvous,
            copy_clocks_per_word: 7,
            combine_clocks_per_word: 20,
            ..Self::iwarp()
        }
    }

    /// A cluster of computers that pass messages, in clocks of a nanosecond and words of 8 bytes:
    /// values of the order of those measured on current machines.
    ///
    /// | parameters | reason |
    /// |---|---|
    /// | channels 2^24 | buffers and requests are in memory: no set needs several phases for them |
    /// | streams 1 | the software of a cell does one thing at a time |
    /// | stream set-up, send and receive 400 | 0.4 us of software for a message at each end in a node |
    /// | network overhead 800 | 0.8 us more at each end for one between nodes |
    /// | link 1, access 1 | 8 GB/s, of a core and of the network link of a node |
    /// | copy 1, combine 1 | 8 GB/s in memory |
    /// | depth 4096 | messages up to 32 KiB wait at their receiver and not in the network |
    /// | sync 2000, phase 0 | 2 us for a barrier between phases; there are no tables to load |
    pub const fn cluster() -> Self {
        Self {
            channels_per_cell: limits::CHANNELS_PER_CELL,
            channels_reserved: 0,
            channel_depth: 4096,
            link_clocks_per_word: 1,
            access_clocks_per_word: 1,
            stream_setup: 400,
            t_sync: 2000,
            t_phase: 0,
            message_extra_words: 0,
            clock_hz: 1_000_000_000,
            word_bytes: 8,
            copy_clocks_per_word: 1,
            combine_clocks_per_word: 1,
            network_overhead: 800,
            ..Self::iwarp()
        }
    }
}

impl Machine {
    /// The presets that [`Machine::from_spec`] knows, each with a one-line description.
    pub const PRESETS: [(&'static str, &'static str); 15] = [
        ("iwarp", "the paper's machine: 8x8 torus, streaming at 2 clocks a word (iwarp:16x16)"),
        ("iwarp-fem", "the same in the FEM loops: 10 clocks a word, half duplex"),
        ("iwarp-stream", "the same with 98 clocks to start a stream, as Tables 1 to 3 measured"),
        ("iwarp-spool", "the same with 400 clocks to start a spool, an upper limit"),
        ("iwarp-timed", "the same with agents that observe planned starts"),
        ("torus", "any torus with iWarp's parameters (torus:4x4x4)"),
        ("mesh", "any grid without wrap-around links (mesh:8x8)"),
        ("ring", "a torus of one dimension (ring:16)"),
        ("hypercube", "2^d cells (hypercube:6)"),
        ("fat-tree", "CM-5 style 4-ary fat-tree over n cells (fat-tree:64, fat-tree:32/2.2.2.4)"),
        ("cm5", "a CM-5: fat-tree with parents 2.2.2.4, synchronous messages (cm5:256)"),
        ("cm5-active", "the same with active messages, by which its cells send in epochs"),
        ("delta", "an Intel Delta: mesh, messages wait in the network (delta:16x16)"),
        (
            "cluster",
            "computers that pass messages: any cell to any other (cluster:64, cluster:16x4)",
        ),
        ("t3d", "a Cray T3D: torus of three dimensions, synchronous messages (t3d:4x4x2)"),
    ];

    /// The machine of a specification: a preset, optionally followed by a colon and sizes
    /// (`torus:4x4x4`); after the leaves of a fat-tree, optionally the parents of each level
    /// (`fat-tree:32/2.2.2.4`). A cluster is given by its nodes, or nodes and cells of each
    /// (`cluster:16x4`).
    ///
    /// # Errors
    /// An unknown preset (the error lists the known ones) or sizes that do not fit it.
    pub fn from_spec(spec: &str) -> Result<Self, SpecError> {
        let (preset, sizes) = match spec.split_once(':') {
            Some((preset, sizes)) => (preset, Some(sizes)),
            None => (spec, None),
        };
        let number = |text: &str| -> Result<u32, SpecError> {
            text.parse::<u32>().map_err(|_| {
                let example = match preset {
                    "ring" | "fat-tree" => "16",
                    "cm5" | "cm5-active" => "32",
                    "cluster" => "16x4",
                    "hypercube" => "6",
                    _ => "8x8",
                };
                SpecError::Size {
                    spec: spec.to_owned(),
                    size: text.to_owned(),
                    example: format!("{preset}:{example}"),
                }
            })
        };
        let dims = |default: &[u32]| -> Result<Vec<u32>, SpecError> {
            match sizes {
                None => Ok(default.to_vec()),
                Some(sizes) => sizes.split('x').map(number).collect(),
            }
        };
        let one = |default: u32| sizes.map_or(Ok(default), number);
        let topology = match preset {
            "iwarp" | "iwarp-fem" | "iwarp-stream" | "iwarp-spool" | "iwarp-timed" | "torus" => {
                Topology::Torus { dims: dims(&[8, 8])? }
            }
            "mesh" => Topology::Mesh { dims: dims(&[8, 8])? },
            "delta" => Topology::Mesh { dims: dims(&[16, 16])? },
            "t3d" => Topology::Torus { dims: dims(&[4, 4, 2])? },
            "cm5" | "cm5-active" => {
                Topology::FatTree { leaves: one(32)?, parents: vec![2, 2, 2, 4] }
            }
            "ring" => Topology::Ring { cells: one(16)? },
            "hypercube" => Topology::Hypercube { dimension: one(6)? },
            "cluster" => match dims(&[64])?[..] {
                [nodes] => Topology::Cluster { nodes, cells_per_node: 1 },
                [nodes, cells_per_node] => Topology::Cluster { nodes, cells_per_node },
                // More sizes are no number.
                _ => Topology::Cluster { nodes: one(64)?, cells_per_node: 1 },
            },
            "fat-tree" => {
                let (leaves, parents) = match sizes.and_then(|sizes| sizes.split_once('/')) {
                    Some((leaves, parents)) => (Some(leaves), Some(parents)),
                    None => (sizes, None),
                };
                let parents = match parents {
                    Some(parents) => parents.split('.').map(number).collect::<Result<_, _>>()?,
                    None => Topology::DEFAULT_PARENTS.to_vec(),
                };
                Topology::FatTree { leaves: leaves.map_or(Ok(64), number)?, parents }
            }
            _ => {
                let known: Vec<&str> = Self::PRESETS.iter().map(|p| p.0).collect();
                return Err(SpecError::UnknownPreset {
                    spec: spec.to_owned(),
                    preset: preset.to_owned(),
                    help: suggestion(preset, &known, "presets"),
                });
            }
        };
        let parameters = match preset {
            "iwarp-fem" => Parameters::iwarp_fem(),
            "iwarp-stream" => Parameters::iwarp_stream(),
            "iwarp-spool" => Parameters::iwarp_spool(),
            "iwarp-timed" => Parameters::iwarp_timed(),
            "cm5" => Parameters::cm5(),
            "cm5-active" => Parameters::cm5_active(),
            "delta" => Parameters::delta(),
            "t3d" => Parameters::t3d(),
            "cluster" => Parameters::cluster(),
            _ => Parameters::iwarp(),
        };
        Self::new(preset, topology, parameters, Vec::new(), Vec::new())
            .map_err(|error| SpecError::Shape { spec: spec.to_owned(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::InputError;

    #[test]
    fn wrong_specifications_say_what_is_known() {
        assert!(Machine::from_spec("torus:0x8").is_err());
        assert!(Machine::from_spec("torus:8x").is_err());
        assert!(Machine::from_spec("torus:70000x70000").is_err());
        let error = InputError::from(Machine::from_spec("cray").unwrap_err());
        assert!(error.help.unwrap().starts_with("presets: iwarp"));
        for (wrong, help) in [
            ("tours:3x3", "did you mean `torus`?"),
            ("IWARP", "did you mean `iwarp`?"),
            ("torus:3X3", "write torus:8x8"),
            ("ring:8x8", "write ring:16"),
            ("hypercube:8x8", "write hypercube:6"),
        ] {
            let error = Machine::from_spec(wrong).unwrap_err();
            let with_file = error.clone().with_alternative("give a file").help.unwrap();
            assert_eq!(
                with_file.ends_with("; or give a file"),
                matches!(error, SpecError::UnknownPreset { .. })
            );
            let error = InputError::from(error);
            assert!(error.help.as_ref().unwrap().starts_with(help), "{error}");
        }
    }
}
