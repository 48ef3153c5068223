//! Reductions with an operator of the program, by a tree or by swap ([`ReducePlan`]).
//!
//! The operator need not commute: it always combines the array of a stretch of places with that of the
//! stretch right after it. In a tree the places with bit i send to the place 2^i before them; in a level
//! of a swap a place keeps what it gets of the others of its group until all is there, and combines
//! it in their order.
//!
//! Within a level each place exchanges with one other at a time: in round t the members d and e of a
//! group with d + e = t modulo the radix. Every member has one partner in a round, or none, so each can
//! do its rounds in order without waiting in a circle.

use std::ops::Range;

use conset_ir::CellId;
use conset_ir::convert::{to_u64, to_usize};

use super::Places;
use super::plan::ReducePlan;
use crate::cell::Cell;
use crate::collectives::fold::{bytes_of_mut, words_of, words_of_mut};
use crate::error::{CellError, EpochUse};
use crate::port::{OtherArray, ShortReduction};
use crate::word::Word;

/// An operator: combines words with those of later cells, into the first.
type Combine<'a, W> = dyn FnMut(&mut [W], &[W]) + 'a;

/// A level of a swap, as one place sees it.
#[derive(Debug)]
struct Level {
    radix: usize,
    /// The own member, and the distance of neighbouring members.
    digit: usize,
    stride: usize,
    /// The stretch of the array that the group has, in blocks.
    stretch: Range<usize>,
}

impl Level {
    /// The part of a member, in blocks.
    fn part(&self, member: usize) -> Range<usize> {
        let length = self.stretch.len();
        let at = |member: usize| {
            let (each, more) = (length / self.radix, length % self.radix);
            self.stretch.start + each * member + more.min(member)
        };
        at(member)..at(member + 1)
    }
}

/// The places that swap, after the first ones were joined in pairs.
#[derive(Debug)]
struct Swap {
    /// Pairs that were joined.
    pairs: usize,
    /// The own number among those that swap, and that of the root or of its partner.
    own: usize,
    root: usize,
}

impl Swap {
    fn new(places: &Places, swapping: usize) -> Self {
        let pairs = places.count() - swapping;
        let number = |place: usize| if place < 2 * pairs { place / 2 } else { place - pairs };
        Self { pairs, own: number(places.own), root: number(places.root) }
    }

    /// The place of a number.
    fn place(&self, number: usize) -> usize {
        if number < self.pairs { 2 * number } else { number + self.pairs }
    }
}

/// Words of blocks.
fn words(blocks: &Range<usize>, block: usize) -> Range<usize> {
    blocks.start * block..blocks.end * block
}

/// The error that another cell has another array.
fn other_array<W: Word>(other: &OtherArray, expected: usize) -> CellError {
    let OtherArray { source, word_bytes, bytes } = *other;
    if word_bytes == to_u64(size_of::<W>()) {
        let found = to_usize(bytes / word_bytes);
        return CellError::MessageWords { source_cell: source, expected, found };
    }
    let (other, found) = (source, word_bytes);
    CellError::Epoch(EpochUse::WordBytes { other, found, bytes: size_of::<W>() })
}

impl Cell<'_> {
    /// Combines the arrays of all live cells into that of the root by an operator of the program,
    /// together with all of them. `combine` changes its first words to their combination with the
    /// second; these come from cells with higher ids. It gets stretches of any whole number of blocks of
    /// `block` words, so an entry may have several words (a pixel, a complex number). It has to be
    /// associative, and need not commute: then the result is that of combining cell after cell. (If
    /// it is only nearly associative, as the addition of floating-point numbers, the result depends on
    /// the number of cells and on the length of the array, and not on the transport or on time.)
    ///
    /// Performed by [`ReducePlan::cheapest`] for the machine of the image; over MPI by the tree instead,
    /// if there are more cells than cores on a node and it gives the same bits. The arrays of cells other than
    /// the root are used up: what they contain afterwards is not specified.
    ///
    /// ```
    /// use conset_runtime::ir::{CellId, Image, Machine};
    /// use conset_runtime::World;
    ///
    /// // Every cell has a function x -> a x + b; the root gets the composition, c0's outermost.
    /// let image = Image::new(Machine::from_spec("ring:3")?.into(), Vec::new())?;
    /// let (found, _report) = World::new(image).try_run(|cell| {
    ///     let mut function = [2u64, u64::from(cell.id().0)];
    ///     cell.reduce_with(CellId(0), 2, &mut function, |outer, inner| {
    ///         for (outer, inner) in outer.chunks_exact_mut(2).zip(inner.chunks_exact(2)) {
    ///             outer[1] += outer[0] * inner[1];
    ///             outer[0] *= inner[0];
    ///         }
    ///     })?;
    ///     Ok(function)
    /// })?;
    /// assert_eq!(found[0], [8, 0 + 2 * (1 + 2 * 2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No such cell, an array that is no whole number of blocks, or arrays of other lengths.
    #[track_caller]
    pub fn reduce_with<W: Word>(
        &mut self,
        root: CellId,
        block: usize,
        array: &mut [W],
        combine: impl FnMut(&mut [W], &[W]),
    ) -> Result<(), CellError> {
        let parameters = self.image().machine().parameters();
        let cells = self.live().len();
        let mut plan = ReducePlan::cheapest(parameters, cells, array.len());
        if self.port.shares_cores() {
            plan = plan.of_shared_cores(cells);
        }
        self.reduce_by(&plan, root, block, array, combine)
    }

    /// [`Cell::reduce_with`] by a plan of the program, the same one on all cells.
    ///
    /// # Errors
    /// As there, and a plan that does not fit the number of live cells.
    #[track_caller]
    pub fn reduce_by<W: Word>(
        &mut self,
        plan: &ReducePlan,
        root: CellId,
        block: usize,
        array: &mut [W],
        mut combine: impl FnMut(&mut [W], &[W]),
    ) -> Result<(), CellError> {
        let places = self.places(root)?;
        if block == 0 || !array.len().is_multiple_of(block) {
            return self.fail(CellError::Block { words: array.len(), block });
        }
        match plan {
            _ if !plan.fits(places.count()) => {
                let (plan, live) = (format!("{plan:?}"), places.count());
                self.fail(CellError::ReducePlan { plan, live })
            }
            ReducePlan::Tree => self.reduce_by_tree(&places, array, &mut combine),
            ReducePlan::Swap { radices } => {
                self.reduce_by_swap(&places, radices, (block, array), &mut combine)
            }
        }
    }

    /// Combines words of this cell, or of cells before, with words of later ones. On the emulated machine
    /// that takes time.
    fn combine<W: Word>(
        &mut self,
        combine: &mut Combine<'_, W>,
        lower: &mut [W],
        upper: &[W],
    ) -> Result<(), CellError> {
        combine(lower, upper);
        let clocks = self.image().machine().parameters().combine_clocks_per_word;
        match u64::from(clocks).saturating_mul(to_u64(upper.len())) {
            0 => Ok(()),
            clocks => self.compute(clocks),
        }
    }

    fn reduce_by_tree<W: Word>(
        &mut self,
        places: &Places,
        array: &mut [W],
        combine: &mut Combine<'_, W>,
    ) -> Result<(), CellError> {
        let (count, own) = (places.count(), places.own);
        let reduction = ShortReduction {
            live: &places.live,
            own,
            word_bytes: size_of::<W>(),
            array: bytes_of_mut(array),
            combine: &mut |lower, upper| combine(words_of_mut(lower), words_of(upper)),
        };
        match self.ask(|port| port.reduce_short(reduction))? {
            None => {}
            Some(Ok(())) => return self.move_to_root(places, 0, array),
            Some(Err(other)) => return self.fail(other_array::<W>(&other, array.len())),
        }
        let mut received = Vec::new();
        let mut distance = 1;
        while distance < count && own.is_multiple_of(distance) {
            if own % (2 * distance) == distance {
                self.send_part(places.live[own - distance], array)?;
            } else if own + distance < count {
                received.resize(array.len(), W::from_bits(0));
                self.receive_part(places.live[own + distance], &mut received)?;
                self.combine(combine, array, &received)?;
            }
            distance *= 2;
        }
        self.move_to_root(places, 0, array)
    }

    /// Brings the array of a place to the root.
    fn move_to_root<W: Word>(
        &mut self,
        places: &Places,
        from: usize,
        array: &mut [W],
    ) -> Result<(), CellError> {
        match places.own {
            _ if from == places.root => Ok(()),
            own if own == from => self.send_part(places.live[places.root], array),
            own if own == places.root => self.receive_part(places.live[from], array),
            _ => Ok(()),
        }
    }

    fn reduce_by_swap<W: Word>(
        &mut self,
        places: &Places,
        radices: &[usize],
        (block, array): (usize, &mut [W]),
        combine: &mut Combine<'_, W>,
    ) -> Result<(), CellError> {
        let swap = Swap::new(places, radices.iter().product());
        if places.own < 2 * swap.pairs {
            let partner = places.live[places.own ^ 1];
            if places.own % 2 == 1 {
                self.send_part(partner, array)?;
                return self.move_to_root(places, swap.place(swap.root), array);
            }
            let mut upper = vec![W::from_bits(0); array.len()];
            self.receive_part(partner, &mut upper)?;
            self.combine(combine, array, &upper)?;
        }
        let mut levels = Vec::with_capacity(radices.len());
        let (mut stretch, mut stride) = (0..array.len() / block, 1);
        let mut received = Vec::new();
        for &radix in radices {
            let level = Level { radix, digit: swap.own / stride % radix, stride, stretch };
            self.swap_level(places, &swap, &level, (block, array, &mut received), combine)?;
            stretch = level.part(level.digit);
            stride *= radix;
            levels.push(level);
        }
        self.gather_parts(places, &swap, &levels, (block, array))?;
        self.move_to_root(places, swap.place(swap.root), array)
    }

    /// One level of a swap: this place ends with the combination of the whole group in its part.
    fn swap_level<W: Word>(
        &mut self,
        places: &Places,
        swap: &Swap,
        level: &Level,
        (block, array, received): (usize, &mut [W], &mut Vec<W>),
        combine: &mut Combine<'_, W>,
    ) -> Result<(), CellError> {
        let Level { radix, digit, stride, .. } = *level;
        let own = words(&level.part(digit), block);
        let length = own.len();
        received.resize(received.len().max(length * (radix - 1)), W::from_bits(0));
        // What member `e` sent.
        let slot = |member: usize| {
            let at = (if member < digit { member } else { member - 1 }) * length;
            at..at + length
        };
        for round in 0..radix {
            let member = (round + radix - digit) % radix;
            if member == digit {
                continue;
            }
            let other = places.live[swap.place(swap.own - digit * stride + member * stride)];
            let out = &array[words(&level.part(member), block)];
            let into = &mut received[slot(member)];
            let outgoing = (!out.is_empty()).then_some((other, out));
            let incoming = (length > 0).then_some((other, into));
            if outgoing.is_some() || incoming.is_some() {
                self.pass(outgoing, incoming, false)?;
            }
        }
        let own = &mut array[own];
        if digit > 0 {
            let (first, rest) = received.split_at_mut(length);
            for member in 1..digit {
                let slot = slot(member);
                self.combine(combine, first, &rest[slot.start - length..slot.end - length])?;
            }
            self.combine(combine, first, own)?;
            own.copy_from_slice(first);
        }
        for member in digit + 1..radix {
            self.combine(combine, own, &received[slot(member)])?;
        }
        Ok(())
    }

    /// Brings the parts of all places that have swapped to the root or its partner: the levels
    /// backwards.
    fn gather_parts<W: Word>(
        &mut self,
        places: &Places,
        swap: &Swap,
        levels: &[Level],
        (block, array): (usize, &mut [W]),
    ) -> Result<(), CellError> {
        for level in levels.iter().rev() {
            let Level { radix, digit, stride, .. } = *level;
            let collects = swap.root / stride % radix;
            let cell = |member: usize| {
                places.live[swap.place(swap.own - digit * stride + member * stride)]
            };
            if digit != collects {
                let own = &array[words(&level.part(digit), block)];
                if !own.is_empty() {
                    self.send_part(cell(collects), own)?;
                }
                return Ok(());
            }
            for member in (0..radix).filter(|&member| member != digit) {
                let part = &mut array[words(&level.part(member), block)];
                if !part.is_empty() {
                    self.receive_part(cell(member), part)?;
                }
            }
        }
        Ok(())
    }
}
