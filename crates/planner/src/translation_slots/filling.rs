//! Fills time slots one after the other by exact cover search.
//!
//! Slots that do not shift time are independent of each other, and each is an exact cover: its
//! items must take every *tight* array (one with so much load that it must be busy nearly all the
//! time) and none twice. At first almost any exact cover is found within some dozens of steps.
//! Items that take the arrays with the most remaining load go first, so that short items remain for
//! the end, where slots are hard to fill. A few idle arrays are allowed once a slot cannot be
//! filled. The caller packs the last items.
//!
//! The search is depth-first and always branches on the array with the fewest items left that could
//! take it (Knuth, Dancing Links, 2000). Sets of arrays are bit sets.

use conset_ir::convert::{index, to_u32, to_u64};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::packing::{ItemPlacement, Items};

/// The maximum number of items considered for a slot.
const SAMPLE: usize = 1 << 10;

/// The arrays examined for a slot before one more idle array is allowed, and those of a unit of
/// work.
const EXPANSION_BUDGET: u64 = 1 << 20;
const UNIT: u64 = 1 << 8;

/// The maximum number of idle tight arrays of a slot.
const HOLES: u32 = 4;

/// Items with each of their choices, and the arrays that these take.
struct Pieces {
    of: Vec<(u32, u32)>,
    /// The first piece of each item, and the number of pieces.
    items_first: Vec<u32>,
    first: Vec<u32>,
    arrays: Vec<u32>,
    /// The arrays once more, as `words` words of bits for each piece.
    masks: Vec<u64>,
    words: usize,
}

/// A slot that is being filled.
struct PartialSlot<'a> {
    pieces: &'a Pieces,
    tight: &'a [bool],
    /// The number of tight arrays that may stay idle.
    holes: u32,
    /// The number of arrays that may still be examined.
    left: u64,
    chosen: Vec<u32>,
    /// For each array the pieces that could take it.
    count: Vec<u32>,
    /// Unused lists, kept for their memory.
    spare: Vec<Vec<u32>>,
}

/// Fills slots with items that take single entries of arrays without delays. Returns the placements
/// of items and the number of slots.
pub(super) fn fill(
    items: &Items,
    tight: &[bool],
    budget: &mut u64,
    rng: &mut ChaCha8Rng,
) -> (Vec<Option<ItemPlacement>>, u32) {
    let pieces = Pieces::new(items);
    let mut live = LivePieces::new(&pieces);
    let mut places = vec![None; items.row_of.len()];
    let mut open = vec![0u64; tight.len()];
    pieces.arrays.iter().for_each(|&array| open[index(array)] += 1);
    let mut some: Vec<(u64, u32)> = Vec::with_capacity(SAMPLE);
    let mut sample = Vec::with_capacity(SAMPLE);
    let mut slot = PartialSlot {
        pieces: &pieces,
        tight,
        holes: 0,
        left: 0,
        chosen: Vec::new(),
        count: vec![0; tight.len()],
        spare: Vec::new(),
    };
    let mut slots = 0;
    while *budget > 0 && !live.pieces.is_empty() && slot.holes <= HOLES {
        some.clear();
        some.extend(live.draw(SAMPLE, rng).iter().map(|&piece| {
            let each = pieces.arrays(piece).iter().map(|&array| open[index(array)].pow(2));
            (u64::MAX - each.sum::<u64>(), piece)
        }));
        some.sort_unstable();
        sample.clear();
        sample.extend(some.iter().map(|&(_, piece)| piece));
        slot.left = EXPANSION_BUDGET;
        slot.chosen.clear();
        let is_filled = slot.fill(&sample, &vec![0; pieces.words]);
        *budget = budget.saturating_sub((EXPANSION_BUDGET - slot.left).div_ceil(UNIT));
        if !is_filled {
            slot.holes += 1;
            continue;
        }
        for &piece in &slot.chosen {
            let (item, choice) = pieces.of[index(piece)];
            places[index(item)] = Some(ItemPlacement { choice, time: slots });
            for piece in pieces.of_item(item) {
                live.remove(piece);
                pieces.arrays(piece).iter().for_each(|&array| open[index(array)] -= 1);
            }
        }
        slots += 1;
    }
    (places, slots)
}

/// The pieces of items without a place, in any order, and where each piece is among them.
struct LivePieces {
    pieces: Vec<u32>,
    at: Vec<u32>,
}

impl LivePieces {
    fn new(pieces: &Pieces) -> Self {
        let pieces: Vec<u32> = (0..to_u32(pieces.of.len())).collect();
        Self { at: pieces.clone(), pieces }
    }

    /// Draws up to `most` pieces, each as likely as the others.
    fn draw(&mut self, most: usize, rng: &mut ChaCha8Rng) -> &[u32] {
        let most = most.min(self.pieces.len());
        for place in 0..most {
            self.swap(place, rng.random_range(place..self.pieces.len()));
        }
        &self.pieces[..most]
    }

    fn remove(&mut self, piece: u32) {
        self.swap(index(self.at[index(piece)]), self.pieces.len() - 1);
        self.pieces.pop();
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.pieces.swap(a, b);
        for place in [a, b] {
            self.at[index(self.pieces[place])] = to_u32(place);
        }
    }
}

impl Pieces {
    fn new(items: &Items) -> Self {
        let words = items.capacity.len().div_ceil(64);
        let (of, arrays, masks) = (Vec::new(), Vec::new(), Vec::new());
        let items_first = Vec::with_capacity(items.row_of.len() + 1);
        let mut this = Self { of, items_first, first: vec![0], arrays, masks, words };
        for (item, &row) in items.row_of.iter().enumerate() {
            this.items_first.push(to_u32(this.of.len()));
            for (choice, way) in items.choices[index(row)].iter().enumerate() {
                let mask = this.masks.len();
                this.masks.resize(mask + words, 0);
                for take in &way.takes {
                    this.masks[mask + index(take.array) / 64] |= 1 << (take.array % 64);
                    this.arrays.push(take.array);
                }
                this.of.push((to_u32(item), to_u32(choice)));
                this.first.push(to_u32(this.arrays.len()));
            }
        }
        this.items_first.push(to_u32(this.of.len()));
        this
    }

    /// The pieces of an item: one for each of its choices.
    fn of_item(&self, item: u32) -> std::ops::Range<u32> {
        self.items_first[index(item)]..self.items_first[index(item) + 1]
    }

    fn arrays(&self, piece: u32) -> &[u32] {
        let piece = index(piece);
        &self.arrays[index(self.first[piece])..index(self.first[piece + 1])]
    }

    fn mask(&self, piece: u32) -> &[u64] {
        &self.masks[index(piece) * self.words..][..self.words]
    }
}

impl PartialSlot<'_> {
    /// Chooses some of the pieces that fit beside those chosen, which take the arrays of a mask;
    /// whether the slot is full then.
    fn fill(&mut self, live: &[u32], mask: &[u64]) -> bool {
        let pieces = self.pieces;
        let is_in = |mask: &[u64], array: usize| mask[array / 64] >> (array % 64) & 1 == 1;
        self.count.fill(0);
        let mut expanded = self.count.len();
        for &piece in live {
            let arrays = pieces.arrays(piece);
            arrays.iter().for_each(|&array| self.count[index(array)] += 1);
            expanded += arrays.len();
        }
        self.left = self.left.saturating_sub(to_u64(expanded));
        let open = self.count.iter().zip(0..).filter(|&(_, a)| self.tight[a] && !is_in(mask, a));
        let holes = open.clone().filter(|(count, _)| **count == 0).count();
        if holes > index(self.holes) || self.left == 0 {
            return false;
        }
        // Where all that is tight is busy any piece that still fits is taken.
        let next = open.filter(|(count, _)| **count > 0).min().map(|(_, array)| array);
        let mut rest = self.spare.pop().unwrap_or_default();
        let mut is_full = next.is_none();
        for &piece in live {
            let own = pieces.mask(piece);
            if next.is_some_and(|next| !is_in(own, next)) {
                continue;
            }
            let item = pieces.of[index(piece)].0;
            let fits = |other: &u32| {
                let beside = pieces.mask(*other).iter().zip(own).all(|(a, b)| a & b == 0);
                beside && pieces.of[index(*other)].0 != item
            };
            rest.clear();
            rest.extend(live.iter().copied().filter(fits));
            let mask: Vec<u64> = mask.iter().zip(own).map(|(a, b)| a | b).collect();
            self.chosen.push(piece);
            is_full = self.fill(&rest, &mask);
            if is_full {
                break;
            }
            self.chosen.pop();
            if self.left == 0 {
                break;
            }
        }
        self.spare.push(rest);
        is_full
    }
}
