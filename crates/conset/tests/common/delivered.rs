//! What has become of each word of a run with recovery.

use std::collections::BTreeSet;
use std::sync::Arc;

use conset::fabric::{FaultPlan, Outcome};
use conset::recovery::{ProgramWords, Recovery};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, Program};

/// The words of a program, with the number of times that each was received.
pub(crate) struct Words {
    received: Vec<Vec<Vec<u32>>>,
    plan: FaultPlan,
}

impl Words {
    pub(crate) fn new(program: &Program, plan: &FaultPlan) -> Self {
        let counts = |set: &Arc<ConnectionSet>| {
            set.connections().iter().map(|c| vec![0; c.words as usize]).collect()
        };
        Self { received: program.sets().iter().map(counts).collect(), plan: plan.clone() }
    }
}

impl ProgramWords for Words {
    fn sent(&self, set: usize, connection: ConnectionId, word: u32) -> u64 {
        (set as u64) << 56 | u64::from(connection.0) << 32 | u64::from(word)
    }

    fn received(&mut self, set: usize, connection: ConnectionId, word: u32, value: u64) {
        let sent = self.sent(set, connection, word);
        assert_eq!(value, sent, "set {set}, {connection}, word {word}\n{}", self.plan);
        self.received[set][connection.index()][word as usize] += 1;
    }
}

/// Every word was received once, unless the recovery names its connection as lost or left.
pub(crate) fn check(recovery: &Recovery, program: &Program, words: &Words) {
    let plan = &words.plan;
    let is_dead = |cell| !recovery.machine.is_alive(cell);
    let mut lost: BTreeSet<(String, String)> = BTreeSet::new();
    for connection in recovery.lost() {
        assert!(is_dead(connection.source) || is_dead(connection.target), "{connection}");
        assert!(lost.insert((connection.set.clone(), connection.name.clone())), "{connection}");
    }
    let mut left: BTreeSet<(String, String)> = BTreeSet::new();
    left.extend(recovery.undelivered.iter().map(|c| (c.set.clone(), c.name.clone())));
    let mut delivered = 0;
    for (set, counts) in program.sets().iter().zip(&words.received) {
        for ((id, connection), counts) in set.iter().zip(counts) {
            assert!(counts.iter().all(|&count| count <= 1), "{id} of {plan}: {counts:?}");
            let all = counts.iter().all(|&count| count == 1);
            delivered += counts.iter().filter(|&&count| count == 1).count() as u64;
            let name = connection.name.as_deref().map_or_else(|| id.to_string(), str::to_owned);
            let key = (set.name().to_owned(), name);
            let is_excused = lost.contains(&key) || recovery.outcome != Outcome::Delivered;
            assert!(all || is_excused, "{id} of {plan}: {counts:?}\n{:?}", recovery.attempts);
            assert!(!(all && (lost.contains(&key) || left.contains(&key))), "{id} of {plan}");
        }
    }
    assert_eq!(recovery.words(), delivered);
    assert_eq!(recovery.outcome == Outcome::Delivered, left.is_empty());
}

/// A plan of dead links and cells, and of other faults, drawn from numbers.
pub(crate) fn plan(machine: &Machine, clocks: u64, numbers: &[(u8, u16, u64)]) -> String {
    let cells: Vec<CellId> = machine.endpoints().collect();
    let links: Vec<_> = machine.cells().flat_map(|c| machine.outgoing(c)).copied().collect();
    let mut plan = String::new();
    for &(kind, part, number) in numbers {
        let cell = cells[usize::from(part) % cells.len()];
        let clock = number % clocks.max(1);
        let link = usize::from(part).checked_rem(links.len()).map(|row| machine.link(links[row]));
        let (kind, link) = match link {
            Some(link) => (kind % 8, format!("link {} -> {}", link.source, link.target)),
            None => (6 + kind % 2, String::new()),
        };
        plan += &match kind {
            0..=2 => format!("{link} dead at {clock}\n"),
            3 => format!("{link} drops word {}\n", number % 40),
            4 => format!("{link} corrupts words from {}\n", number % 40),
            5 => format!("cell {cell} keeps context at switch {}\n", number % 4),
            6 => format!("cell {cell} dead at {clock}\n"),
            _ => format!("cell {cell} misses switch {}\n", number % 4),
        };
    }
    plan
}

/// Four cells in a row, and connections of which two cross the middle.
pub(crate) fn row_of_cells() -> (Arc<Machine>, Program) {
    let machine = Arc::new(Machine::from_spec("mesh:4").unwrap());
    let row = |name: &str, source, target| Connection {
        name: Some(name.into()),
        ..Connection::new(CellId(source), CellId(target), 300)
    };
    let rows = vec![row("near", 0, 1), row("far", 0, 3), row("back", 3, 0), row("end", 2, 3)];
    (machine, Program::from(ConnectionSet::new("s", rows).unwrap()))
}
