//! Measuring messages: the machine that comes of it is one of the job's ranks.

use conset_runtime::ir::machine_file;
use conset_runtime::mpi::Comm;
use conset_runtime::mpi::tune::{TuneError, measure};

/// All ranks of the test share memory; halves of them are nodes only where that is said.
pub(super) fn measures(comm: &Comm) {
    let ranks = comm.size();
    for (cells, nodes) in [(None, 1), (Some(ranks / 2), 2), (Some(1), ranks)] {
        let measured = measure(comm, cells).expect("messages are measured");
        assert_eq!((measured.nodes, measured.cells_per_node), (nodes, ranks / nodes));
        assert_eq!(measured.between.is_some(), nodes > 1);
        assert_eq!(measured.inside.is_some(), nodes < ranks);
        for cost in measured.inside.iter().chain(&measured.between) {
            // Nanoseconds that nothing takes, and seconds, are both wrong.
            let all = [cost.half_round_trip, cost.send, cost.receive];
            assert!(all.iter().all(|ns| (1.0..1e9).contains(ns)), "{measured:?}");
        }
        let machine =
            machine_file::parse("tuned.toml", &measured.machine_file()).expect("a machine");
        assert_eq!(machine, measured.machine());
        assert_eq!(machine.agent_count(), ranks);
    }
    let odd = measure(comm, Some(ranks + 1));
    assert!(matches!(odd, Err(TuneError::Cells { .. })), "{odd:?}");
}
