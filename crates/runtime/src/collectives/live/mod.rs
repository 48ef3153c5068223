//! Collectives of the live cells of any image, without compiled trees: gather, scatter, broadcast, and
//! reductions with an operator of the program (seed 002, section 4, "Global Operations").
//!
//! They need no set of the image. Live cells are numbered by their *places*, 0 to P - 1, and exchange
//! direct messages ([`Cell::send_receive`]), which are not taken for those of the program. Broadcast,
//! gather and scatter go over a binomial tree: the place of a cell relative to the root, modulo P,
//! written in binary; a broadcast from the root first goes half the cells away, then a quarter, and so
//! on. Gather is that walk backwards: on the way to the root a cell collects the words of a stretch of
//! places.
//!
//! A reduction goes by a tree or by swap, whichever is cheaper for the machine and the length
//! ([`ReducePlan`]), and combines cells in the order of their ids.
//!
//! All cells make the same call with the same root and equally long arrays. A cell that gets another
//! number of words than it expects fails with [`CellError::MessageWords`]; if cells make different
//! calls, they wait for each other, which the run reports as it reports other deadlocks.
//!
//! If phases are active, all cells switch to messages ([`Cell::instantiate_messages`]).

mod plan;
mod reduce;

use std::sync::Arc;

use conset_ir::CellId;

use crate::cell::Cell;
use crate::error::CellError;
use crate::word::Word;
pub use plan::ReducePlan;

/// The live cells, as one of them and a root see them.
#[derive(Debug)]
struct Places {
    live: Arc<[CellId]>,
    /// The places of the cell and of the root.
    own: usize,
    root: usize,
}

impl Places {
    fn count(&self) -> usize {
        self.live.len()
    }

    /// The own place, counted from the root.
    fn distance_from_root(&self) -> usize {
        (self.own + self.count() - self.root) % self.count()
    }

    /// The place that is so many after the root.
    fn after_root(&self, distance: usize) -> CellId {
        self.live[(self.root + distance) % self.count()]
    }
}

/// The highest bit of a binomial tree over so many places.
fn highest(count: usize) -> usize {
    count.next_power_of_two() / 2
}

impl Cell<'_> {
    /// Starts a collective: the places, if the root is one.
    #[track_caller]
    fn places(&mut self, root: CellId) -> Result<Places, CellError> {
        self.switch_to_messages()?;
        let live = self.live();
        let own = live.binary_search(&self.id()).expect("a cell that runs is live");
        match live.binary_search(&root) {
            Ok(root) => Ok(Places { live, own, root }),
            Err(_) => self.fail(CellError::NoCell { cell: root }),
        }
    }

    /// Sends words as a part of a collective.
    fn send_part<W: Word>(&mut self, target: CellId, words: &[W]) -> Result<(), CellError> {
        self.pass(Some((target, words)), None::<(CellId, &mut [W])>, false)
    }

    /// Receives words as a part of a collective.
    fn receive_part<W: Word>(&mut self, source: CellId, words: &mut [W]) -> Result<(), CellError> {
        self.pass(None::<(CellId, &[W])>, Some((source, words)), false)
    }

    /// Gives all live cells the array of one, together with all of them.
    ///
    /// # Errors
    /// No such cell, or arrays of other lengths.
    #[track_caller]
    pub fn broadcast_from<W: Word>(
        &mut self,
        root: CellId,
        words: &mut [W],
    ) -> Result<(), CellError> {
        let places = self.places(root)?;
        let (count, own) = (places.count(), places.distance_from_root());
        let mut distance = highest(count);
        while distance > 0 {
            match own % (2 * distance) {
                0 if own + distance < count => {
                    self.send_part(places.after_root(own + distance), words)?;
                }
                rest if rest == distance => {
                    self.receive_part(places.after_root(own - distance), words)?;
                }
                _ => {}
            }
            distance /= 2;
        }
        Ok(())
    }

    /// Brings the words of all live cells to one, together with all of them. Every cell gives equally
    /// many words. At the root `all` is filled with those of all live cells in the order of their ids;
    /// at others it is not used and may be empty.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// let image = Image::new(Machine::from_spec("ring:3")?.into(), Vec::new())?;
    /// let (found, _report) = World::new(image).try_run(|cell| {
    ///     let (own, mut all) = ([cell.id().0, 7], [0; 6]);
    ///     cell.gather(CellId(1), &own, &mut all)?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(found[1], [0, 7, 1, 7, 2, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No such cell, cells with other numbers of words, or an array at the root that is not as long as
    /// the words of all.
    #[track_caller]
    pub fn gather<W: Word>(
        &mut self,
        root: CellId,
        own: &[W],
        all: &mut [W],
    ) -> Result<(), CellError> {
        let places = self.places(root)?;
        let (count, place, words) = (places.count(), places.distance_from_root(), own.len());
        if place == 0 {
            self.check_all(all.len(), (count, words))?;
        }
        let mut held = own.to_vec();
        let mut distance = 1;
        while distance < count {
            if place % (2 * distance) == distance {
                return self.send_part(places.after_root(place - distance), &held);
            }
            let places_there = distance.min(count.saturating_sub(place + distance));
            if places_there > 0 {
                let from = held.len();
                held.resize(from + places_there * words, W::from_bits(0));
                let source = places.after_root(place + distance);
                self.receive_part(source, &mut held[from..])?;
            }
            distance *= 2;
        }
        // They begin with the root's.
        let first = (count - places.root) * words;
        all[..places.root * words].copy_from_slice(&held[first..]);
        all[places.root * words..].copy_from_slice(&held[..first]);
        Ok(())
    }

    /// Gives each live cell its words of the array `all` of the root, together with all of them: the
    /// reverse of [`Cell::gather`].
    ///
    /// # Errors
    /// As [`Cell::gather`].
    #[track_caller]
    pub fn scatter<W: Word>(
        &mut self,
        root: CellId,
        all: &[W],
        own: &mut [W],
    ) -> Result<(), CellError> {
        let places = self.places(root)?;
        let (count, place, words) = (places.count(), places.distance_from_root(), own.len());
        let mut held = Vec::new();
        if place == 0 {
            self.check_all(all.len(), (count, words))?;
            held.extend_from_slice(&all[places.root * words..]);
            held.extend_from_slice(&all[..places.root * words]);
        }
        let mut distance = highest(count);
        while distance > 0 {
            let places_there = distance.min(count.saturating_sub(place + distance));
            match place % (2 * distance) {
                0 if places_there > 0 => {
                    let target = places.after_root(place + distance);
                    self.send_part(target, &held[distance * words..])?;
                    held.truncate(distance * words);
                }
                rest if rest == distance => {
                    held.resize(distance.min(count - place) * words, W::from_bits(0));
                    self.receive_part(places.after_root(place - distance), &mut held)?;
                }
                _ => {}
            }
            distance /= 2;
        }
        own.copy_from_slice(&held);
        Ok(())
    }

    /// Fails if the array of all cells has not as many words as so many cells have.
    fn check_all(&mut self, found: usize, (live, words): (usize, usize)) -> Result<(), CellError> {
        match live.checked_mul(words) {
            Some(expected) if expected == found => Ok(()),
            expected => {
                let expected = expected.unwrap_or(usize::MAX);
                self.fail(CellError::AllWords { found, expected, live, words })
            }
        }
    }
}
