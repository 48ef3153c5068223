//! Sets with an order: what is predicted beside what the fabric takes, and what bounds say.
//!
//! In such a set one connection waits for the last word of another, so that what words take on
//! their way adds up, which streams that follow each other in an agent hide.

use std::sync::Arc;

use conset::{Algorithm, Compiler, run};
use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Duplex, Machine, Program};

/// Connections (source, target, words) and pairs of which the first comes before the second.
#[derive(Clone, Debug, Default)]
struct Ordered {
    rows: Vec<(u32, u32, u32)>,
    order: Vec<(u32, u32)>,
}

impl Ordered {
    fn add(&mut self, source: u32, target: u32, words: u32) -> u32 {
        self.rows.push((source, target, words));
        self.rows.len() as u32 - 1
    }

    fn set(&self) -> ConnectionSet {
        let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
        let set = ConnectionSet::new("ordered", self.rows.iter().map(row).collect()).unwrap();
        let pair = |&(a, b): &(u32, u32)| (ConnectionId(a), ConnectionId(b));
        set.with_order(self.order.iter().map(pair).collect()).unwrap()
    }

    /// What is predicted over what the fabric takes, less one. No bound is above either.
    fn error(&self, machine: &Arc<Machine>, algorithm: Algorithm) -> f64 {
        let program = Program::from(self.set());
        let compiled = Compiler::new(machine).algorithm(algorithm).compile(&program).unwrap();
        let runs = run::run(&compiled, 1, false, &mut |_| ()).unwrap();
        let summary = &runs[0].summary;
        assert!(summary.payload_ok, "{self:?}");
        assert!(summary.bound_clocks <= summary.measured_clocks, "{self:?} {summary:?}");
        assert!(summary.bound_clocks <= summary.predicted_clocks, "{self:?} {summary:?}");
        summary.predicted_clocks as f64 / summary.measured_clocks as f64 - 1.0
    }
}

/// Numbers below a limit, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }

    fn other(&mut self, cell: u32, cells: u32) -> u32 {
        (cell + 1 + self.below(cells - 1)) % cells
    }
}

/// Connections of which each begins where the one before it ends.
fn chain(numbers: &mut Numbers, cells: u32, length: u32, words: u32) -> Ordered {
    let (mut all, mut at) = (Ordered::default(), 0);
    for x in 0..length {
        let next = numbers.other(at, cells);
        all.add(at, next, words);
        all.order.extend((x > 0).then(|| (x - 1, x)));
        at = next;
    }
    all
}

/// Words from cell 0 to all: who has them sends them on.
fn tree(dimension: u32, words: u32) -> Ordered {
    let (mut all, mut came) = (Ordered::default(), vec![(0, None)]);
    for bit in (0..dimension).rev() {
        for (cell, by) in came.clone() {
            let x = all.add(cell, cell ^ 1 << bit, words);
            all.order.extend(by.map(|by| (by, x)));
            came.push((cell ^ 1 << bit, Some(x)));
        }
    }
    all
}

/// The same backwards.
fn reversed(tree: &Ordered) -> Ordered {
    let last = tree.rows.len() as u32 - 1;
    Ordered {
        rows: tree
            .rows
            .iter()
            .rev()
            .map(|&(source, target, words)| (target, source, words))
            .collect(),
        order: tree.order.iter().map(|&(a, b)| (last - b, last - a)).collect(),
    }
}

/// Stages in which all exchange: none sends before it has received what came in the stage before.
fn butterfly(dimension: u32, words: u32) -> Ordered {
    let (mut all, cells) = (Ordered::default(), 1 << dimension);
    for stage in 0..dimension {
        for cell in 0..cells {
            let x = all.add(cell, cell ^ 1 << stage, words);
            all.order
                .extend((stage > 0).then(|| ((stage - 1) * cells + (cell ^ 1 << (stage - 1)), x)));
        }
    }
    all
}

/// Anything, each after one or two of the last few, or after none.
fn any(numbers: &mut Numbers, cells: u32) -> Ordered {
    let mut all = Ordered::default();
    let (most, near) = ([4, 16, 64, 200][numbers.below(4) as usize], 1 + numbers.below(40));
    for x in 0..20 + numbers.below(120) {
        let source = numbers.below(cells);
        let target = numbers.other(source, cells);
        all.add(source, target, 1 + numbers.below(most));
        let before: Vec<u32> =
            (0..numbers.below(3)).map(|_| x.saturating_sub(1 + numbers.below(near))).collect();
        all.order.extend(before.into_iter().filter(|&before| before < x).map(|before| (before, x)));
    }
    all
}

#[test]
fn chains_trees_and_butterflies_take_what_is_predicted() {
    let mut numbers = Numbers(3);
    let machine = Arc::new(Machine::from_spec("iwarp").unwrap());
    let mut cases = Vec::new();
    for words in [1, 8, 64] {
        cases.push((chain(&mut numbers, 64, 20, words), 0.01));
        cases.push((chain(&mut numbers, 64, 300, words), 0.01));
        cases.push((tree(6, words), 0.01));
        cases.push((reversed(&tree(6, words)), 0.01));
        cases.push((butterfly(6, words), 0.03));
    }
    for (case, tolerance) in cases {
        for algorithm in [Algorithm::Paper, Algorithm::Auto] {
            let error = case.error(&machine, algorithm);
            assert!(error.abs() <= tolerance, "{error:.4} {algorithm:?} {case:?}");
        }
    }
}

/// What is left is the depth of queues: a sender is done sooner than the model thinks where its
/// words can wait on their way.
#[test]
fn any_order_is_predicted_nearly() {
    let mut numbers = Numbers(5);
    let (mut sum, mut count) = (0.0, 0);
    for case in 0..30 {
        let spec = ["iwarp", "ring:8", "mesh:4x4", "hypercube:4", "torus:4x4x4"][case % 5];
        let machine = Arc::new(Machine::from_spec(spec).unwrap());
        let all = any(&mut numbers, machine.agent_count() as u32);
        let error = all.error(&machine, Algorithm::Paper);
        assert!((-0.05..=0.08).contains(&error), "{error:.4} {spec} {all:?}");
        sum += error.abs();
        count += 1;
    }
    assert!(sum / f64::from(count) <= 0.02, "{}", sum / f64::from(count));
}

#[test]
fn bounds_of_order_hold_whatever_the_machine() {
    let mut numbers = Numbers(7);
    for case in 0..60 {
        let spec = ["iwarp", "ring:6", "mesh:4x4", "hypercube:3", "fat-tree:8"][case % 5];
        let machine = Machine::from_spec(spec).unwrap();
        let mut parameters = machine.parameters().clone();
        parameters.link_clocks_per_word = 1 + numbers.below(6);
        parameters.access_clocks_per_word = 1 + numbers.below(6);
        parameters.channel_depth = 1 + numbers.below(8);
        parameters.stream_setup = numbers.below(30);
        parameters.streams = 1 + numbers.below(3);
        parameters.duplex = if numbers.below(2) == 0 { Duplex::Full } else { Duplex::Half };
        let machine = Arc::new(machine.with_parameters(parameters).unwrap());
        let cells: Vec<u32> = machine.endpoints().map(|cell| cell.0).collect();
        let mut all = match case % 3 {
            0 => chain(&mut numbers, cells.len() as u32, 12, 1 + case as u32 % 9),
            _ => any(&mut numbers, cells.len() as u32),
        };
        for row in &mut all.rows {
            (row.0, row.1) = (cells[row.0 as usize], cells[row.1 as usize]);
        }
        all.error(&machine, if case % 4 == 0 { Algorithm::Auto } else { Algorithm::Paper });
    }
}
