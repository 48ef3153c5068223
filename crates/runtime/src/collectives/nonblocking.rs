//! Reductions that are started by one call and completed by another.
//!
//! [`Cell::start_allreduce`] copies the array, and the transport goes on with it while the program
//! does something else; [`Cell::wait_allreduce`] gives the result. The bits are those of
//! [`Cell::allreduce`].
//!
//! | transport | what happens in between |
//! |---|---|
//! | threads | the array is left in the tree at the start, and whoever comes last combines a branch; only reading the result is left for the end |
//! | MPI | arrays are passed on whenever a cell of the rank calls the runtime. A second reduction over the same trees begins when the first is done |
//! | emulated machine | nothing: its cells combine words in their programs. The reduction is *deferred*: performed at the next call of the cell that communicates, as if it were called there |
//!
//! The rules are those of nonblocking exchanges ([`crate::plan`]): all cells start them and make
//! collective calls in the same order, they are completed in any order, and every other call that
//! waits for cells first waits for those that were started. A token is a [`Pending`].

use super::fold::{ArrayOp, words_of, words_of_mut};
use super::tree::{TreeSets, WalkDirection};
use super::walk::Fold;
use super::{Collectives, array_of, combine_words, name_of};
use crate::call::CallArray;
use crate::cell::{CallContext, Cell};
use crate::error::{CellError, PlanUse};
use crate::lists::{Number, Op};
use crate::port::TreeWalk;
use crate::requests::{MAX_REQUESTS, Pending};
use crate::word::{bytes, bytes_mut};

/// Reductions and exchanges are numbered apart; this bit tells their tokens apart.
const REDUCTION: u64 = 1 << 63;

/// An array that is combined over a tree, in the memory of the runtime.
#[derive(Debug)]
pub(crate) struct StartedArray {
    /// 64-bit words, for their alignment.
    words: Vec<u64>,
    length: usize,
    pub(crate) op: ArrayOp,
}

impl StartedArray {
    /// A copy of an array.
    pub(crate) fn new<W: Number>(op: Op, array: &[W]) -> Self {
        let length = size_of_val(array);
        let mut words = vec![0; length.div_ceil(8)];
        words_of_mut(&mut bytes_mut(&mut words)[..length]).copy_from_slice(array);
        Self { words, length, op: ArrayOp::new::<W>(op) }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytes(&self.words)[..self.length]
    }

    /// Its bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytes_mut(&mut self.words)[..self.length]
    }

    /// Its bytes, to be written, and the operation.
    pub(crate) fn parts(&mut self) -> (&mut [u8], ArrayOp) {
        let op = self.op;
        (self.bytes_mut(), op)
    }

    /// Copies the result to an array of the type and length that it was made of; whether it is one.
    pub(crate) fn copy_to<W: Number>(&self, array: &mut [W]) -> bool {
        let fits = self.is_like(array);
        if fits {
            array.copy_from_slice(words_of(self.bytes()));
        }
        fits
    }

    /// Whether an array has the type and the length.
    pub(crate) fn is_like<W: Number>(&self, array: &[W]) -> bool {
        self.op.is_of::<W>() && self.length == size_of_val(array)
    }
}

/// A reduction that the program performs itself, at its next call.
#[derive(Debug)]
struct Deferred {
    trees: Collectives,
    context: CallContext,
    array: CallArray,
    perform: fn(&mut Cell<'_>, &Collectives, Op, &mut [u8]) -> Result<(), CellError>,
}

/// How far a reduction is.
#[derive(Debug)]
enum Stage {
    /// The transport has the array.
    Started,
    Deferred(Box<Deferred>, StartedArray),
    /// The program performs it.
    Performed,
    Done(StartedArray),
}

/// A reduction that was not completed.
#[derive(Debug)]
pub(crate) struct StartedReduction {
    number: u64,
    /// The name of the tree, and what it was started with.
    set: String,
    words: usize,
    number_type: &'static str,
    stage: Stage,
}

/// The reductions of a cell, in the order in which they were started.
#[derive(Debug, Default)]
pub(crate) struct StartedReductions {
    count: u64,
    active: Vec<StartedReduction>,
}

impl StartedReductions {
    /// How many were not completed, and the tree of the first.
    pub(crate) fn open(&self) -> Option<(usize, String)> {
        self.active.first().map(|first| (self.active.len(), first.set.clone()))
    }
}

impl Cell<'_> {
    /// Starts [`Cell::allreduce`]: the values are combined that the array has now, and it may be
    /// changed immediately. Complete it with [`Cell::wait_allreduce`]; [`Cell::test`] polls. Reduce
    /// several dot products in one array: they take as long as one.
    ///
    /// On threads the call waits if a reduction over the same trees is under way that some cell has
    /// not started.
    ///
    /// # Errors
    /// As [`Cell::allreduce`]; too many reductions that were not completed.
    #[track_caller]
    pub fn start_allreduce<W: Number>(
        &mut self,
        trees: &Collectives,
        op: Op,
        x: &[W],
    ) -> Result<Pending, CellError> {
        self.check_trees(trees)?;
        self.perform_deferred()?;
        if self.reductions.active.len() >= MAX_REQUESTS {
            let (count, set) = self.reductions.open().unwrap_or_default();
            return self.fail(CellError::Plan(PlanUse::InFlight { count, set }));
        }
        let number = self.reductions.count;
        let set = trees.tree.names[2].clone();
        let started = StartedArray::new(op, x);
        let array = array_of::<W>(name_of(op), None, x.len());
        let stage = match trees.tree.sets {
            None => Stage::Done(started),
            Some(TreeSets { both: Some(both), .. }) => {
                self.array = Some(array);
                self.at_call(0);
                self.array = None;
                let (tree, way) = (&*trees.tree, WalkDirection::Both);
                let walk = TreeWalk { tree, set: both, way, word_bytes: size_of::<W>() };
                match self.ask(|port| port.start_walk(number, &walk, started))? {
                    None => {
                        self.activate_last(both);
                        Stage::Started
                    }
                    Some(started) => self.defer::<W>(trees, array, started),
                }
            }
            Some(TreeSets { up: Some(_), down: Some(_), .. }) => {
                self.defer::<W>(trees, array, started)
            }
            Some(_) => return self.no_tree("start_allreduce", format!("`{set}`")),
        };
        self.reductions.count += 1;
        self.reductions.active.push(StartedReduction {
            number,
            set,
            words: x.len(),
            number_type: std::any::type_name::<W>(),
            stage,
        });
        Ok(Pending { cell: self.id(), run: self.requests.run, number: number | REDUCTION })
    }

    #[track_caller]
    fn defer<W: Number>(
        &mut self,
        trees: &Collectives,
        array: CallArray,
        started: StartedArray,
    ) -> Stage {
        let context = self.call_context();
        let perform = |cell: &mut Cell<'_>, trees: &Collectives, op: Op, bytes: &mut [u8]| {
            let fold: Fold<'_, W> = &|_, _, own, child| combine_words(op, own, child);
            cell.walk_pieces(trees, "start_allreduce", None, words_of_mut::<W>(bytes), fold)
        };
        let deferred = Deferred { trees: trees.share(), context, array, perform };
        Stage::Deferred(Box::new(deferred), started)
    }

    /// Completes a reduction: the array becomes its result, whatever it was.
    ///
    /// # Errors
    /// A token that is not of this cell or was completed already, or an array of another type or
    /// length than at the start; as [`Cell::allreduce`].
    pub fn wait_allreduce<W: Number>(
        &mut self,
        pending: Pending,
        x: &mut [W],
    ) -> Result<(), CellError> {
        let row = self.reduction(&pending)?;
        let StartedReduction { set, words, number_type, .. } = &self.reductions.active[row];
        let (set, begun, found) = (set.clone(), *number_type, std::any::type_name::<W>());
        if begun != found {
            return self.fail(CellError::Plan(PlanUse::Type { set, begun, found }));
        }
        if *words != x.len() {
            let (begun, found) = (*words, x.len());
            return self.fail(CellError::Plan(PlanUse::Length { set, begun, found }));
        }
        self.perform_deferred()?;
        let number = pending.number & !REDUCTION;
        if matches!(self.reductions.active[row].stage, Stage::Started) {
            self.ask(|port| port.wait_walk(number))?;
            let array = self.port.take_walk(number);
            self.reductions.active[row].stage = Stage::Done(array);
        }
        if let Stage::Done(array) = self.reductions.active.remove(row).stage {
            array.copy_to(x);
        }
        Ok(())
    }

    /// [`Cell::test`] of a token of a reduction; nothing if it is one of an exchange.
    pub(crate) fn test_reduction(&mut self, pending: &Pending) -> Result<Option<bool>, CellError> {
        if pending.number & REDUCTION == 0 {
            return Ok(None);
        }
        let row = self.reduction(pending)?;
        if matches!(self.reductions.active[row].stage, Stage::Started) {
            return self.ask(|port| port.test_walk(pending.number & !REDUCTION)).map(Some);
        }
        Ok(Some(true))
    }

    /// The row of the reduction that a token names.
    fn reduction(&mut self, pending: &Pending) -> Result<usize, CellError> {
        self.check_running()?;
        let problem = if (pending.cell, pending.run) != (self.id(), self.requests.run) {
            PlanUse::OtherCell { begun: pending.cell }
        } else {
            let number = pending.number ^ REDUCTION;
            let active = &self.reductions.active;
            match active.binary_search_by_key(&number, |reduction| reduction.number) {
                Ok(row) => return Ok(row),
                Err(_) => PlanUse::Ended { set: "a reduction".to_owned() },
            }
        };
        self.fail(CellError::Plan(problem))
    }

    /// Waits for all reductions that the cell has started.
    pub(crate) fn wait_for_reductions(&mut self) -> Result<(), CellError> {
        self.perform_deferred()?;
        let started = |reduction: &&StartedReduction| matches!(reduction.stage, Stage::Started);
        match self.reductions.active.iter().rfind(started).map(|reduction| reduction.number) {
            Some(last) => self.ask(|port| port.wait_walk(last)),
            None => Ok(()),
        }
    }

    /// Performs the reduction that was deferred. There is at most one, as every call that
    /// communicates begins with this.
    pub(crate) fn perform_deferred(&mut self) -> Result<(), CellError> {
        let Some(last) = self.reductions.active.last_mut() else { return Ok(()) };
        let (deferred, mut started) = match std::mem::replace(&mut last.stage, Stage::Performed) {
            Stage::Deferred(deferred, started) => (deferred, started),
            stage => {
                last.stage = stage;
                return Ok(());
            }
        };
        let own = self.array.replace(deferred.array);
        let result = self.in_context(deferred.context, |cell| {
            let (bytes, op) = started.parts();
            (deferred.perform)(cell, &deferred.trees, op.op(), bytes)
        });
        self.array = own;
        result?;
        if let Some(last) = self.reductions.active.last_mut() {
            last.stage = Stage::Done(started);
        }
        Ok(())
    }
}
