//! Starts at single clocks for streams of one word.
//!
//! A slot that holds all links of a route costs little if it is much longer than the route, and much
//! if it is one word: the word is on one link at a time, and the others are idle. So streams of one
//! word are planned without slots. Every cell does the same at the same clock; then the links of a
//! direction are all busy at the same clocks, and one row of bits stands for all of them. A word
//! takes a link's clocks of its direction's row for each link, one after the other without a pause: a
//! no-wait open shop, whose machines are the directions and the agents' sending side. Targets receive
//! in the order of starts, so a word may wait at its target, where it holds no link.
//!
//! The items are placed in order, each at the start where it arrives first, in gaps too, and the
//! order is improved by moving and exchanging single items. The longest routes go first: short ones
//! fill the gaps that are left.

use conset_ir::StreamClocks;
use conset_ir::convert::{index, to_u32, to_u64, to_usize};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::symmetry::{Leg, Torus};
use crate::problem::Problem;

/// The number of changes without a shorter plan, for each item, after which the search ends: eight times as
/// many make plans about 1 % shorter and take three times as long.
const PATIENCE: usize = 2;

/// Starts that are tried per unit of work.
const STARTS: u64 = 1 << 4;

/// The longest rows of bits, in clocks.
const LONGEST: u64 = 1 << 20;

/// Entries of a row that an item takes.
#[derive(Clone, Copy, Debug)]
struct Run {
    row: usize,
    /// Clocks from the start of the item.
    after: usize,
    clocks: usize,
}

/// One of the routes that an item may take.
struct Way {
    legs: Vec<Leg>,
    runs: Vec<Run>,
}

/// A connection of every cell.
struct Item {
    ways: Vec<Way>,
    /// Clocks from the start until the word is received, if it does not wait.
    clocks: usize,
    /// Clocks for which receiving keeps the target busy.
    receiving: usize,
}

/// The start of an item and its route.
pub(super) struct PipelinedPlace {
    pub(super) start: u64,
    pub(super) legs: Vec<Leg>,
}

/// Rows of bits: the clocks at which a resource of every cell is busy.
struct BusyRows {
    words: usize,
    bits: Vec<u64>,
}

impl BusyRows {
    fn new(rows: usize, clocks: usize) -> Self {
        let words = clocks.div_ceil(64);
        Self { words, bits: vec![0; rows * words] }
    }

    /// The words of bits that a run touches, each with the mask of its bits.
    fn masks(
        &self,
        run: Run,
        start: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, u64)> + use<> {
        let (from, until) = (start + run.after, start + run.after + run.clocks);
        let first = run.row * self.words;
        (from / 64..until.div_ceil(64)).map(move |word| {
            let low = u64::MAX << from.saturating_sub(64 * word);
            let high = u64::MAX >> (64 * (word + 1)).saturating_sub(until);
            (first + word, low & high)
        })
    }

    /// The clock after the last busy one of a run.
    fn free_after(&self, run: Run, start: usize) -> Option<usize> {
        self.masks(run, start).rev().find_map(|(word, mask)| {
            let busy = self.bits[word] & mask;
            let clock = 64 * (word % self.words + 1) - index(busy.leading_zeros());
            (busy != 0).then_some(clock)
        })
    }

    fn take(&mut self, run: Run, start: usize) {
        for (word, mask) in self.masks(run, start) {
            self.bits[word] |= mask;
        }
    }
}

/// Starts and routes of the connections of each cell, in the order of the cells' lists, which are
/// all the same, and the clock at which the last word is received; `None` if a connection has more
/// than one word, with half duplex, or if one phase has too few channels. Subtracts the work done from
/// `budget`.
pub(super) fn plan(
    problem: &Problem<'_>,
    torus: &Torus,
    budget: &mut u64,
    rng: &mut ChaCha8Rng,
) -> Option<(Vec<PipelinedPlace>, u64)> {
    let list = &torus.lists[0];
    if problem.half || list.is_empty() || list.iter().any(|relative| relative.words != 1) {
        return None;
    }
    let routes: Vec<_> = list.iter().map(|relative| torus.routes(relative.offset)).collect();
    // Every cell has as many channels as a cell's own connections take of all others.
    if routes.iter().map(|routes| 1 + hops(&routes[0])).sum::<u32>() > problem.channels {
        return None;
    }
    let clocks = list.iter().map(|relative| problem.clocks(index(relative.connection)));
    let items = clocks.zip(routes).map(|(clocks, routes)| item(problem, &clocks, routes));
    let items: Vec<Item> = items.collect();
    let rows = 1 + 2 * torus.sizes.len();
    let mut order: Vec<u32> = (0..to_u32(items.len())).collect();
    order.shuffle(rng);
    order.sort_by_key(|&item| std::cmp::Reverse(items[index(item)].clocks));
    // One after the other they need no more than this.
    let mut longest: usize = items.iter().map(|item| item.clocks + item.receiving).sum();
    if to_u64(longest) > LONGEST {
        return None;
    }
    let mut best = None;
    let (mut stalled, patience) = (0, PATIENCE * items.len());
    while stalled < patience && *budget > 0 && !problem.interrupt.is_requested() {
        let mut changed = order.clone();
        if best.is_some() {
            let [from, to] = [(); 2].map(|()| rng.random_range(0..changed.len()));
            if rng.random() {
                changed.swap(from, to);
            } else {
                let item = changed.remove(from);
                changed.insert(to, item);
            }
        }
        stalled += 1;
        let Some((places, clocks)) = place(&items, &changed, (rows, longest), budget) else {
            continue;
        };
        // A plan as long as the best one is a new place to search from.
        if best.is_none() || clocks < longest {
            stalled = 0;
        }
        (order, longest, best) = (changed, clocks, Some(places));
    }
    let places = best?.into_iter().zip(&items);
    let place = |((start, way), item): ((usize, usize), &Item)| PipelinedPlace {
        start: to_u64(start),
        legs: item.ways[way].legs.clone(),
    };
    Some((places.map(place).collect(), to_u64(longest)))
}

/// Links of a route.
fn hops(legs: &[Leg]) -> u32 {
    legs.iter().map(|&(_, _, links)| links).sum()
}

/// What a word takes on each of its routes.
fn item(problem: &Problem<'_>, clocks: &StreamClocks, routes: Vec<Vec<Leg>>) -> Item {
    let [agent, link] = [clocks.of(1), problem.link_clocks].map(to_usize);
    // All routes are shortest.
    let received = to_usize(clocks.until_received(1, index(hops(&routes[0]))));
    // The last part of the way is through the agent of the target.
    let sent = received - to_usize(clocks.pipeline_latency(0)) - index(hops(&routes[0])) * link;
    let way = |legs: Vec<Leg>| {
        let mut runs = vec![Run { row: 0, after: 0, clocks: agent }];
        let mut after = sent;
        for &(dimension, forward, links) in &legs {
            let row = 1 + 2 * dimension + usize::from(forward);
            runs.push(Run { row, after, clocks: index(links) * link });
            after += index(links) * link;
        }
        Way { legs, runs }
    };
    let ways = routes.into_iter().map(way).collect();
    Item { ways, clocks: received, receiving: agent }
}

/// Places items in order. Returns the start and the way of each, and the clock at which the last
/// word is received; `None` if that is later than `longest`.
fn place(
    items: &[Item],
    order: &[u32],
    (rows, longest): (usize, usize),
    budget: &mut u64,
) -> Option<(Vec<(usize, usize)>, usize)> {
    let mut busy = BusyRows::new(rows, longest + 64);
    let mut places = vec![(0, 0); items.len()];
    let mut tried = 0;
    for &item in order {
        let Item { ways, clocks, .. } = &items[index(item)];
        let latest = longest.checked_sub(*clocks)?;
        let mut first: Option<(usize, usize)> = None;
        for (row, way) in ways.iter().enumerate() {
            let before = first.map_or(latest, |(start, _)| start.saturating_sub(1));
            let mut start = 0;
            while start <= before {
                tried += 1;
                let next =
                    way.runs.iter().find_map(|&run| Some(busy.free_after(run, start)? - run.after));
                match next {
                    Some(next) => start = next,
                    None => break,
                }
            }
            if start <= before && first.is_none_or(|(first, _)| start < first) {
                first = Some((start, row));
            }
        }
        let (start, row) = first?;
        ways[row].runs.iter().for_each(|&run| busy.take(run, start));
        places[index(item)] = (start, row);
    }
    *budget = budget.saturating_sub(tried / STARTS + 1);
    // Targets receive in the order of starts.
    let mut by_start: Vec<usize> = (0..items.len()).collect();
    by_start.sort_unstable_by_key(|&item| places[item].0);
    let received = by_start.into_iter().fold(0, |received, item| {
        let Item { clocks, receiving, .. } = items[item];
        (places[item].0 + clocks).max(received + receiving)
    });
    (received <= longest).then_some((places, received))
}
