//! Compiling a large set in batches, one after the other.
//!
//! The routes, tables and checks of a set are in memory together. A set that is too large for this
//! ([`conset_partition_route::bounds::memory_budget`]) is divided into batches, each a set of its
//! own, which are compiled, checked, and executed or written before the next one. A program that
//! exchanges all batches, in any order, has exchanged the set. Its clocks are the sum of theirs,
//! because every phase starts with a context switch on an idle machine. They are compared with the
//! bounds of the *whole* set, which take no more memory than the set.
//!
//! ```
//! use std::sync::Arc;
//!
//! use conset::batches::Batches;
//! use conset::ir::Machine;
//! use conset::{Compiler, mesh, run};
//!
//! let machine = Arc::new(Machine::from_spec("torus:4x4")?);
//! let set = Arc::new(mesh::patterns::generate("all-to-all", &machine, 64)?);
//! let batches = Batches::new(&machine, &set, 4, 1)?;
//! let mut total = batches.summary();
//! for batch in 0..batches.count() {
//!     let compiled = Compiler::new(&machine).compile(&batches.set(batch).into())?;
//!     batches.add(&mut total, &run::run(&compiled, 1, false, &mut |_| ())?[0].summary);
//! }
//! assert!(total.payload_ok && total.words == set.words());
//! assert!(total.measured_clocks >= total.bound_clocks);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use conset_ir::convert::index;
use conset_ir::{At, Bounds, ConnectionId, ConnectionSet, InputError, Lists, Machine, NodeLists};
use conset_partition_route::bounds;

use crate::bounds::endpoint_error;
use crate::report::{BoundOf, RunSummary, megabytes_per_second};
use crate::run::model_error_percent;
use crate::{CompileError, bound_ratio};

/// A set that is divided into batches.
#[derive(Clone, Debug)]
pub struct Batches {
    machine: Arc<Machine>,
    set: Arc<ConnectionSet>,
    bounds: Bounds,
    /// The connections of each batch.
    rows: Lists,
}

impl Batches {
    /// Divides a set for a machine into at most `count` batches; `seed` determines random choices.
    ///
    /// # Errors
    /// Connections that do not fit the machine or have no path, and a set with an order, because its
    /// connections could then not be divided freely.
    pub fn new(
        machine: &Arc<Machine>,
        set: &Arc<ConnectionSet>,
        count: u32,
        seed: u64,
    ) -> Result<Self, CompileError> {
        if !set.order().is_empty() {
            let file = format!("set `{}`", set.name());
            let message = "a set with an order between connections cannot be divided into batches";
            let error = InputError::new(file, At::Path("order".to_owned()), message);
            return Err(error.help("compile it in one piece, or leave out the order").into());
        }
        set.check_machine(machine).map_err(|error| endpoint_error(machine, set, error))?;
        let bounds = bounds::bounds(machine, set)?.summary();
        let rows = conset_planner::batches(machine, set, count, seed);
        Ok(Self { machine: machine.clone(), set: set.clone(), bounds, rows })
    }

    /// The number of batches.
    pub fn count(&self) -> u32 {
        self.rows.rows()
    }

    /// The bounds of the whole set.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// A batch as a set of its own, with the name of the whole set and the number of the batch. Its
    /// connections are in the order of the whole set ([`Batches::connections`]).
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn set(&self, batch: u32) -> ConnectionSet {
        let own = self.connections(batch);
        let connections = own.iter().map(|&x| self.set.get(ConnectionId(x)).clone()).collect();
        let name = batch_name(self.set.name(), batch);
        let set = ConnectionSet::new(name, connections).expect("part of a valid set");
        match self.set.nodes() {
            None => set,
            Some(nodes) => {
                let lists = own.iter().map(|&x| nodes.of(ConnectionId(x)));
                set.with_nodes(NodeLists::from_lists(lists)).expect("part of a valid set")
            }
        }
    }

    /// The numbers of a batch's connections in the whole set, ascending.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn connections(&self, batch: u32) -> &[u32] {
        self.rows.of(batch)
    }

    /// A summary without batches, to which executed ones are added ([`Batches::add`]). Its bounds are
    /// those of the whole set.
    pub fn summary(&self) -> RunSummary {
        RunSummary {
            set: self.set.name().to_owned(),
            batches: Some(0),
            phases: 0,
            bound_phases: self.bounds.phases,
            bound_phases_by: self.bounds.phases_by,
            fewest_phases: false,
            measured_clocks: 0,
            predicted_clocks: 0,
            bound_clocks: self.bounds.clocks,
            bound_clocks_by: self.bounds.clocks_by,
            clocks_over_bound: 0.0,
            bound_of: BoundOf::of(&self.set),
            model_error_percent: 0.0,
            connections: 0,
            words: 0,
            word_hops: 0,
            payload_ok: true,
            megabytes_per_second: 0.0,
            messages: None,
            steps: None,
        }
    }

    /// Adds a batch that was executed to a summary of this set.
    pub fn add(&self, total: &mut RunSummary, run: &RunSummary) {
        total.batches = total.batches.map(|count| count + 1);
        total.connections += run.connections;
        total.phases += run.phases;
        total.fewest_phases = total.phases == index(self.bounds.phases);
        total.measured_clocks = total.measured_clocks.saturating_add(run.measured_clocks);
        total.predicted_clocks = total.predicted_clocks.saturating_add(run.predicted_clocks);
        total.clocks_over_bound = bound_ratio(total.measured_clocks, total.bound_clocks);
        total.model_error_percent =
            model_error_percent(total.predicted_clocks, total.measured_clocks);
        total.words += run.words;
        total.word_hops += run.word_hops;
        total.payload_ok &= run.payload_ok;
        total.megabytes_per_second =
            megabytes_per_second(total.words, total.measured_clocks, self.machine.parameters());
    }
}

/// The name of a batch; that of the set is shortened if both together are too long.
fn batch_name(set: &str, batch: u32) -> String {
    let suffix = format!(".{batch}");
    let most = conset_ir::limits::NAME - suffix.len();
    // Names are ASCII.
    format!("{}{suffix}", set.get(..most.min(set.len())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, run};
    use conset_ir::{CellId, Connection};

    fn halo() -> (Arc<Machine>, Arc<ConnectionSet>) {
        let machine = Arc::new(Machine::from_spec("mesh:4x4").unwrap());
        let pairs = (0..16).flat_map(|s| (0..16).map(move |t| (s, t))).filter(|(s, t)| s != t);
        let connections: Vec<_> =
            pairs.map(|(s, t)| Connection::new(CellId(s), CellId(t), 1 + (s + t) % 3)).collect();
        let lists: Vec<Vec<u32>> =
            (0u32..).zip(&connections).map(|(x, c)| vec![x; c.words as usize]).collect();
        let nodes = NodeLists::from_lists(lists.iter().map(Vec::as_slice));
        let set = ConnectionSet::new("a".repeat(conset_ir::limits::NAME), connections).unwrap();
        (machine, Arc::new(set.with_nodes(nodes).unwrap()))
    }

    /// Every connection is in one batch with its words and nodes, and the sums are those of the set.
    #[test]
    fn batches_together_are_the_set() {
        let (machine, set) = halo();
        let batches = Batches::new(&machine, &set, 3, 1).unwrap();
        let mut seen = vec![0; set.len()];
        let mut total = batches.summary();
        for batch in 0..batches.count() {
            let own = batches.set(batch);
            for (&x, (id, connection)) in batches.connections(batch).iter().zip(own.iter()) {
                seen[x as usize] += 1;
                assert_eq!(connection, set.get(ConnectionId(x)));
                let nodes = [&own, &set].map(|set| set.nodes().unwrap());
                assert_eq!(nodes[0].of(id), nodes[1].of(ConnectionId(x)));
            }
            let compiled = Compiler::new(&machine).compile(&own.into()).unwrap();
            let run = run::run(&compiled, 1, false, &mut |_| ()).unwrap();
            batches.add(&mut total, &run[0].summary);
        }
        assert_eq!(seen, vec![1; set.len()]);
        assert_eq!((total.batches, total.connections), (Some(3), set.len()));
        assert_eq!((total.words, total.payload_ok), (set.words(), true));
        assert!(total.clocks_over_bound >= 1.0);
    }

    #[test]
    fn a_set_with_an_order_is_refused() {
        let machine = Arc::new(Machine::from_spec("ring:3").unwrap());
        let connections = [(0, 1), (1, 2)].map(|(s, t)| Connection::new(CellId(s), CellId(t), 1));
        let set = ConnectionSet::new("s", connections.to_vec()).unwrap();
        let set = set.with_order(vec![(ConnectionId(0), ConnectionId(1))]).unwrap();
        let error = Batches::new(&machine, &Arc::new(set), 2, 1).unwrap_err().to_string();
        assert!(error.contains("an order"), "{error}");
    }
}
