//! Figures 1 to 4 and 6 of the C3 paper: units that the model charges, beside the paper's.
//!
//! The paper is S. Hambrusch and A. Khokhar, C3: an architecture-independent model for coarse-grained
//! parallel machines. The machine is its Intel Touchstone Delta of 256 processors.
//!
//! Figures 1 and 2 are formulas. Figure 1 is shown by what each protocol charges the regular
//! patterns. For Figure 2 the formulas of the paper are beside what the general model charges the
//! patterns' messages. Figure 3 has numbers, and Figures 4 and 6 are curves of which the text gives
//! none, so only ours are shown. Figures 5 and 7 were measured on the Delta.

use conset_ir::convert::to_f64;
use conset_scheduler::c3::levels::{
    LevelAlgorithm, LevelStep, RegularPattern, all_to_all, one_to_all,
};
use conset_scheduler::c3::{C3Machine, C3Protocol};

use super::beside::{Beside, Exhibit, PaperTable};

/// Bytes of the messages in Figures 1 and 2.
const BYTES: u64 = 5000;
/// Bytes of the messages in Figures 4 and 6.
const SIZES: [u64; 6] = [16, 64, 256, 1024, 4096, 16_384];
const PATTERNS: [(&str, RegularPattern); 4] = [
    ("one-to-one", RegularPattern::OneToOne),
    ("one-to-all", RegularPattern::OneToAll),
    ("all-to-one", RegularPattern::AllToOne),
    ("all-to-all", RegularPattern::AllToAll),
];
/// Figure 3: set-ups, units per byte, the part of L that computation is charged, set-ups in units.
/// The paper prints L/L for the second and the last row; 256 messages of L bytes that are scanned
/// once are L/2.
const FIGURE_3: [(&str, [Option<f64>; 4]); 5] = [
    ("1-lev-dir", [Some(256.0), Some(0.55), Some(512.0), Some(2048.0)]),
    ("1-lev-our-br", [Some(8.0), Some(27.0), None, Some(64.0)]),
    ("2-lev-rec", [Some(32.0), Some(1.23), Some(32.0), Some(256.0)]),
    ("3-lev-sq", [Some(24.0), Some(0.93), Some(25.0), Some(192.0)]),
    ("logp-lev-sq", [Some(8.0), Some(5.29), None, Some(64.0)]),
];

/// The figure of a number from 1 to 3, or all including the curves.
pub fn figures(number: Option<u8>) -> Vec<PaperTable> {
    match number {
        Some(1) => vec![figure_1()],
        Some(2) => vec![figure_2()],
        Some(3) => vec![figure_3()],
        Some(_) => Vec::new(),
        None => {
            let delta = C3Machine::DELTA;
            vec![
                figure_1(),
                figure_2(),
                figure_3(),
                curves(4, "one-to-all", &one_to_all(&delta)),
                curves(6, "all-to-all", &all_to_all(&delta)),
            ]
        }
    }
}

fn step(pattern: RegularPattern) -> LevelStep {
    let machine = C3Machine::DELTA;
    LevelStep { machine, pattern, members: machine.processors, combined: 1 }
}

fn figure_1() -> PaperTable {
    let names = PATTERNS.map(|row| row.0);
    let mut columns = vec!["protocol"];
    columns.extend(names);
    let title = format!("units of regular patterns by protocol, {BYTES} bytes, 256 processors");
    let mut table = PaperTable::new((Exhibit::Figure, 1), title, &columns);
    for (name, protocol) in C3Protocol::ALL {
        let units = PATTERNS.map(|(_, pattern)| step(pattern).units(protocol, BYTES).total());
        table.push(name, units.map(|units| Beside::new(units, None)).to_vec());
    }
    table
}

/// Sending and receiving of the costliest processor, link and processor congestion, as the paper's
/// Figure 2 has them for wormholes and nonblocking sends.
fn figure_2_formulas(pattern: RegularPattern) -> [f64; 3] {
    let C3Machine { processors, setup: s, latency: h, bisection: b, .. } = C3Machine::DELTA;
    let packets = to_f64(C3Machine::DELTA.packets(BYTES));
    let (p, n) = (f64::from(processors), f64::from(processors - 1));
    match pattern {
        RegularPattern::One | RegularPattern::OneToOne => {
            [s + packets + h + packets, packets * (p / b).ceil(), packets * h]
        }
        RegularPattern::OneToAll => [n * (s + packets) + h, packets * (n / b).ceil(), packets * h],
        RegularPattern::AllToOne => {
            [(n * packets).max(s + packets + h), packets * (n / b).ceil(), packets * h]
        }
        RegularPattern::AllToAll => {
            [n * (s + packets) + h + packets * n, packets * (p * n / b).ceil(), packets * h * n]
        }
    }
}

fn figure_2() -> PaperTable {
    let title = format!("units of regular patterns, wh-nbs, {BYTES} bytes: the model / formulas");
    let columns = ["pattern", "sending and receiving", "links", "processors"];
    let mut table = PaperTable::new((Exhibit::Figure, 2), title, &columns);
    for (name, pattern) in PATTERNS {
        let units = step(pattern).units(C3Protocol::WormholeNonblocking, BYTES);
        let ours = [units.processor, units.link_congestion, units.processor_congestion];
        let cells = ours.into_iter().zip(figure_2_formulas(pattern));
        table.push(name, cells.map(|(ours, paper)| Beside::new(ours, Some(paper))).collect());
    }
    table
}

fn figure_3() -> PaperTable {
    let columns =
        ["algorithm", "set-ups", "units per byte", "computation, L /", "set-ups with s = 8"];
    let title = "one-to-all on the Delta";
    let mut table = PaperTable::new((Exhibit::Figure, 3), title, &columns);
    for (algorithm, (name, paper)) in one_to_all(&C3Machine::DELTA).iter().zip(FIGURE_3) {
        let linear = algorithm.linear();
        let computation = 1.0 / algorithm.computation_per_byte(&C3Machine::DELTA);
        let units = C3Machine::DELTA.setup * linear.setups;
        let ours = [linear.setups, linear.per_byte, computation, units];
        let cells = ours.into_iter().zip(paper).map(|(ours, paper)| Beside::new(ours, paper));
        table.push(name, cells.collect());
    }
    table
}

/// Units with whole packets, which charge short messages more than Figure 3 does.
fn curves(number: u8, what: &str, algorithms: &[LevelAlgorithm]) -> PaperTable {
    let sizes: Vec<String> = SIZES.iter().map(|bytes| format!("{bytes} bytes")).collect();
    let mut columns = vec!["algorithm"];
    columns.extend(sizes.iter().map(String::as_str));
    let title = format!("units of {what} with whole packets, wh-nbs");
    let mut table = PaperTable::new((Exhibit::Figure, number), title, &columns);
    for algorithm in algorithms {
        let units = SIZES.map(|bytes| algorithm.units(C3Protocol::WormholeNonblocking, bytes));
        table.push(algorithm.name, units.map(|units| Beside::new(units, None)).to_vec());
    }
    table
}
