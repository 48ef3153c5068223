//! The items of a packing: which arrays the connections of a subgroup's representatives take, and
//! the streams of all cells for given places of the items.
//!
//! An item is a connection of a representative, or a pair of connections that are images of each
//! other if the plan is to be the same with coordinates and time reversed ([`Mirror`]). Its choices
//! are its routes. There is an array of each kind for every class of cells: channels, sources,
//! targets, and the links of each dimension and direction.

use conset_ir::convert::{index, to_u32};
use rand::RngExt;

use super::packing::{Choice, ItemPlacement, Items, Take};
use super::symmetry::{Leg, Relative, Subgroup};
use super::{Goal, TranslationSearch};
use crate::plan::Stream;

/// The items of a packing, the connections they represent, and their placements.
pub(super) struct TranslationPacking {
    subgroup: Subgroup,
    pub(super) items: Items,
    /// For each row of choices their routes.
    routes: Vec<Vec<Vec<Leg>>>,
    /// For each class the item of each connection of its representative, and whether it is the
    /// item's mirror image.
    items_of: Vec<Vec<(u32, bool)>>,
    mirror: Option<Mirror>,
    pub(super) places: Vec<ItemPlacement>,
}

/// A plan that is the same with coordinates and time reversed: cell `-c` at `sum - t` does what
/// cell `c` does at `t`.
pub(super) struct Mirror {
    /// For each array its image, and what the numbers of entries that are images of each other
    /// add up to.
    arrays: Vec<(u32, u32)>,
    /// For each class and connection of its representative the class and connection it is the
    /// image of.
    images: Vec<Vec<(u32, u32)>>,
}

/// The kinds of arrays.
const CHANNELS: u32 = 0;
const SOURCE: u32 = 1;
const TARGET: u32 = 2;

fn link(dimension: usize, forward: bool) -> u32 {
    3 + 2 * to_u32(dimension) + u32::from(forward)
}

impl TranslationSearch<'_> {
    /// The items of the representatives' connections; `None` where every way of one meets itself.
    pub(super) fn items(
        &self,
        period: u32,
        subgroup: Subgroup,
        goal: Goal,
        mirror: Option<Mirror>,
    ) -> Option<TranslationPacking> {
        let classes = index(subgroup.classes);
        let capacity = self.capacity(goal).iter().flat_map(|&c| vec![c; classes]).collect();
        let mut items = Items {
            period: index(period),
            capacity,
            choices: Vec::new(),
            row_of: Vec::new(),
            mirror: mirror.as_ref().map(|mirror| mirror.arrays.clone()),
            first_fit: goal == Goal::Phases,
        };
        let mut routes = Vec::new();
        let mut items_of: Vec<Vec<(u32, bool)>> = vec![Vec::new(); classes];
        for (class, &cell) in subgroup.cell_of.iter().enumerate() {
            let mut last = None;
            for (row, relative) in self.torus.lists[index(cell)].iter().enumerate() {
                let image = mirror.as_ref().map(|mirror| mirror.images[class][row]);
                if let Some((other, row)) = image.filter(|&at| at < (to_u32(class), to_u32(row))) {
                    let (item, _) = items_of[index(other)][index(row)];
                    items_of[class].push((item, true));
                    continue;
                }
                if last != Some(relative.offset) {
                    last = Some(relative.offset);
                    let mut choices = Vec::new();
                    let mut ways = Vec::new();
                    for legs in self.torus.routes(relative.offset) {
                        let takes = self.takes(cell, &legs, &subgroup, goal);
                        let fits = |take: &Take| take.count <= items.capacity[index(take.array)];
                        if takes.iter().all(fits) {
                            let beside = match goal {
                                Goal::Slots => self.beside(cell, &legs, &subgroup),
                                Goal::Phases => Vec::new(),
                            };
                            choices.push(Choice { takes, beside });
                            ways.push(legs);
                        }
                    }
                    if choices.is_empty() {
                        return None;
                    }
                    items.choices.push(choices);
                    routes.push(ways);
                }
                items_of[class].push((to_u32(items.row_of.len()), false));
                items.row_of.push(to_u32(items.choices.len()) - 1);
            }
        }
        Some(TranslationPacking { subgroup, items, routes, items_of, mirror, places: Vec::new() })
    }

    /// How a plan with these shifts may be its own mirror image; `None` where the set is not.
    pub(super) fn mirror(&mut self, period: u32, subgroup: &Subgroup) -> Option<Mirror> {
        let torus = &self.torus;
        let mut images = Vec::new();
        for &cell in &subgroup.cell_of {
            let opposite = subgroup.class_of[index(torus.opposite(cell))];
            let list = &torus.lists[index(cell)];
            let others = &torus.lists[index(subgroup.cell_of[index(opposite)])];
            let key = |row: usize| (torus.opposite(list[row].offset), list[row].words, row);
            let mut order: Vec<usize> = (0..list.len()).collect();
            order.sort_by_key(|&row| key(row));
            let is_same = |(&row, other): (&usize, &Relative)| {
                (key(row).0, key(row).1) == (other.offset, other.words)
            };
            if list.len() != others.len() || !order.iter().zip(others).all(is_same) {
                return None;
            }
            let mut of = vec![(opposite, 0); list.len()];
            order.iter().enumerate().for_each(|(image, &row)| of[row].1 = to_u32(image));
            images.push(of);
        }
        // An odd sum, so that an even period has no times that are their own images.
        let sum = 2 * self.rng.random_range(0..period) + 1;
        let kinds = 3 + 2 * to_u32(self.torus.sizes.len());
        let image = |kind: u32| if kind < 3 { kind } else { 3 + ((kind - 3) ^ 1) };
        let arrays = (0..kinds).flat_map(|kind| {
            subgroup.cell_of.iter().map(move |&cell| (image(kind), cell)).collect::<Vec<_>>()
        });
        let arrays = arrays.map(|(kind, cell)| {
            let opposite = index(self.torus.opposite(cell));
            let array = kind * subgroup.classes + subgroup.class_of[opposite];
            (array, (sum + period - subgroup.delay_of[opposite]) % period)
        });
        Some(Mirror { arrays: arrays.collect(), images })
    }

    /// The capacities of the kinds of arrays: channels; for slots also sources, targets (the same
    /// with half duplex), and links of each dimension and direction.
    fn capacity(&self, goal: Goal) -> Vec<u32> {
        let links = match goal {
            Goal::Slots => 2 * self.torus.sizes.len(),
            Goal::Phases => return vec![self.problem.channels],
        };
        [vec![self.problem.channels, 1, 1], vec![self.problem.share; links]].concat()
    }

    /// Whether what streams take of links may be more than the channels of a cell.
    pub(super) fn is_short_of_channels(&self) -> bool {
        let links = 2 * to_u32(self.torus.sizes.len());
        self.problem.channels <= links.saturating_mul(self.problem.share)
    }

    /// What a route takes, in slots or phases.
    fn takes(&self, source: u32, legs: &[Leg], subgroup: &Subgroup, goal: Goal) -> Vec<Take> {
        let take = |kind: u32, cell: u32| Take {
            array: kind * subgroup.classes + subgroup.class_of[index(cell)],
            // Relative to the source, whose delay is 0.
            delay: subgroup.delay_of[index(cell)],
            count: 1,
        };
        let cells = self.torus.cells(source, legs);
        let target = cells[cells.len() - 1];
        let mut takes = Vec::new();
        if goal == Goal::Phases || self.is_short_of_channels() {
            takes.extend(cells.iter().map(|&cell| take(CHANNELS, cell)));
        }
        if goal != Goal::Phases {
            takes.push(take(SOURCE, source));
            if !self.problem.half {
                takes.push(take(TARGET, target));
            } else if target != source {
                takes.push(take(SOURCE, target));
            }
            let mut tails = cells.iter();
            for &(dimension, forward, links) in legs {
                let kind = link(dimension, forward);
                takes.extend(tails.by_ref().take(index(links)).map(|&tail| take(kind, tail)));
            }
        }
        takes.sort_unstable();
        takes.dedup_by(|next, first| {
            let same = (next.array, next.delay) == (first.array, first.delay);
            first.count += if same { next.count } else { 0 };
            same
        });
        takes
    }

    /// The links just before and after each leg.
    fn beside(&self, source: u32, legs: &[Leg], subgroup: &Subgroup) -> Vec<Take> {
        let mut at = source;
        let mut beside = Vec::new();
        for &(dimension, forward, links) in legs {
            let before = self.torus.beyond(at, dimension, !forward, 1);
            at = self.torus.beyond(at, dimension, forward, links);
            beside.extend([before, at].map(|cell| Take {
                array: link(dimension, forward) * subgroup.classes + subgroup.class_of[index(cell)],
                delay: subgroup.delay_of[index(cell)],
                count: 1,
            }));
        }
        beside
    }

    /// The streams of all cells, in the slots or phases of their representatives, shifted.
    pub(super) fn streams(&self, packing: &TranslationPacking) -> Vec<Vec<Stream>> {
        let TranslationPacking { subgroup, items, routes, items_of, mirror, places } = packing;
        let mut streams = vec![Vec::new(); items.period];
        for (cell, list) in self.torus.lists.iter().enumerate() {
            let items_of = &items_of[index(subgroup.class_of[cell])];
            for (&Relative { connection, words, .. }, &(item, image)) in list.iter().zip(items_of) {
                let ItemPlacement { choice, mut time } = places[index(item)];
                let ways = &routes[index(items.row_of[index(item)])];
                let mut legs = ways[index(choice)].clone();
                if let Some(mirror) = mirror.as_ref().filter(|_| image) {
                    legs.iter_mut().for_each(|(_, forward, _)| *forward = !*forward);
                    // Sums are those of a class and its image.
                    let class = SOURCE * subgroup.classes + subgroup.class_of[cell];
                    let period = to_u32(items.period);
                    time = (mirror.arrays[index(class)].1 + period - time) % period;
                }
                let cells = self.torus.cells(to_u32(cell), &legs);
                let slot = index(time + subgroup.delay_of[cell]) % items.period;
                streams[slot].push(Stream { connection, words, start: 0, cells });
            }
        }
        streams
    }
}
