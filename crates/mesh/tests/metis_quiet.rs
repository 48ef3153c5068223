//! METIS must not print: a caller's standard output belongs to the caller. What C prints cannot be
//! caught in the process, so the test runs itself once more and looks at what came out.

use std::process::Command;

use conset_mesh::partition::{self, PartitionOptions};
use conset_mesh::{Graph, Source};

const CHILD: &str = "CONSET_METIS_QUIET_CHILD";

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// A star, a path, pieces, a random tree with more edges, or no edges, with no, small, lopsided
/// or mostly missing weights: what made METIS print.
fn awkward_graph(state: &mut u64, n: usize) -> Source {
    let kind = next(state) % 5;
    let mut rows = vec![Vec::new(); n];
    for v in 1..n {
        let other = match kind {
            0 => 0,
            1 => v - 1,
            2 if v % 10 != 0 => v - 1,
            3 => next(state) as usize % v,
            _ => continue,
        };
        rows[v].push(other as u32);
        rows[other].push(v as u32);
    }
    let mut first = vec![0];
    for row in &rows {
        first.push(first[first.len() - 1] + row.len() as u32);
    }
    let graph = Graph::new(first, rows.concat(), false).unwrap();
    let weights: Vec<u32> = match next(state) % 4 {
        0 => return Source::Graph(graph),
        1 => (0..n).map(|_| next(state) as u32 % 10).collect(),
        2 => (0..n).map(|_| if next(state).is_multiple_of(20) { 1_000_000 } else { 1 }).collect(),
        _ => (0..n).map(|_| u32::from(next(state).is_multiple_of(3))).collect(),
    };
    Source::Graph(graph.with_vertex_weights(weights, 1).unwrap())
}

#[test]
fn nothing_is_printed() {
    if std::env::var_os(CHILD).is_some() {
        let mut state = 1;
        for seed in 0..1500 {
            let n = 2 + next(&mut state) as usize % 200;
            let parts = 1 + next(&mut state) as usize % n;
            let source = awkward_graph(&mut state, n);
            partition::partition(&source, &PartitionOptions::new(parts).seed(seed), "f").unwrap();
        }
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_is_printed", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "the child ran the test: {text}");
    assert!(!text.contains("***"), "{text}");
}
