//! How a reduction is performed: by a tree or by swap, and which of them is cheaper.
//!
//! By a *tree*, each cell sends the whole array once: in round i the places with bit i send to those
//! without, which combine. That takes ceil(log2 P) messages of n words one after the other, and as many
//! combinations of n words.
//!
//! By *swap* (binary swap of seed 002, radix-k for other numbers), every cell is busy in every round: a
//! group of r places splits its stretch of the array into r parts; each place gets one of them from
//! the r - 1 others, and combines r stretches of n / r words. After the last level every place has the
//! result of its own part, and the parts go to the root the same way back.
//!
//! The levels have radices r1, r2, ..., the first of neighbouring places. Their product is the number
//! of places that swap; if it is less than P, the first places are joined in pairs before, each pair
//! by one message.

use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Duplex, Parameters};

/// How [`Cell::reduce_by`](crate::Cell::reduce_by) performs a reduction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReducePlan {
    /// Over a binomial tree.
    Tree,
    /// By swap in levels of these radices, then gather.
    Swap {
        /// Each at least 2; their product is at most the number of live cells, and at least half of it.
        radices: Vec<usize>,
    },
}

impl ReducePlan {
    /// The plan of the fewest clocks by [`ReducePlan::clocks`] for so many cells and words: the tree,
    /// swap by the prime factors of the number of cells, or swap by the greatest power of two.
    ///
    /// ```
    /// use conset_runtime::ReducePlan;
    /// use conset_runtime::ir::Parameters;
    ///
    /// let t3d = Parameters::t3d();
    /// assert_eq!(ReducePlan::cheapest(&t3d, 8, 8), ReducePlan::Tree);
    /// let swap = ReducePlan::Swap { radices: vec![2, 2, 2] };
    /// assert_eq!(ReducePlan::cheapest(&t3d, 8, 1024), swap);
    /// ```
    pub fn cheapest(parameters: &Parameters, cells: usize, words: usize) -> Self {
        let powers = usize::try_from(cells.max(1).ilog2()).unwrap_or(0);
        let plans = [
            ReducePlan::Tree,
            ReducePlan::Swap { radices: vec![2; powers] },
            ReducePlan::Swap { radices: prime_factors(cells) },
        ];
        let clocks = |plan: &ReducePlan| plan.clocks(parameters, cells, words);
        plans.into_iter().min_by_key(clocks).unwrap_or(ReducePlan::Tree)
    }

    /// The plan for cells that share cores, of which more are to run than there are cores: the tree,
    /// if it combines the cells in the same grouping as the cheapest plan, so that the bits of the
    /// result are the same. Swap has less to do from end to end, and more in sum, which counts where
    /// cells wait for each other's cores.
    pub(super) fn of_shared_cores(self, cells: usize) -> Self {
        let ReducePlan::Swap { radices } = &self else { return self };
        // Pairs of pairs, and so on; and at last two or three of these from the first to the last.
        let pairs = radices.iter().take_while(|&&radix| radix == 2).count();
        let same =
            radices.iter().product::<usize>() == cells && matches!(radices[pairs..], [] | [3]);
        if same { ReducePlan::Tree } else { self }
    }

    /// Clocks that a reduction takes: those of the busiest cell, of which a message of w words takes
    /// `c_send + c_receive + (1 + e + w) * access`, and combining w words `w * combine`. (`e` are the
    /// extra words of a message; links are taken to be free. With half duplex a cell that exchanges
    /// takes twice as long.) The rule is that of the machine of the image, on every transport.
    pub fn clocks(&self, parameters: &Parameters, cells: usize, words: usize) -> u64 {
        let p = parameters;
        let access = u64::from(p.access_clocks_per_word);
        let software = u64::from(p.c_send) + u64::from(p.c_receive);
        let fixed = software + (1 + u64::from(p.message_extra_words)) * access;
        let message = |words: u64| words.saturating_mul(access).saturating_add(fixed);
        let combine = |words: u64| words.saturating_mul(u64::from(p.combine_clocks_per_word));
        let both = if p.duplex == Duplex::Half { 2 } else { 1 };
        let whole = to_u64(words);
        let joined = message(whole).saturating_add(combine(whole));
        match self {
            ReducePlan::Tree => {
                let rounds = u64::from(cells.max(1).next_power_of_two().ilog2());
                joined.saturating_mul(rounds)
            }
            ReducePlan::Swap { radices } => {
                let swapping = radices.iter().product::<usize>();
                let mut clocks = if swapping < cells { joined } else { 0 };
                let mut part = whole;
                for &radix in radices {
                    let radix = u64::from(to_u32(radix));
                    part = part.div_ceil(radix);
                    let one = message(part).saturating_mul(both + 1).saturating_add(combine(part));
                    clocks = clocks.saturating_add(one.saturating_mul(radix - 1));
                }
                clocks
            }
        }
    }

    /// Whether so many cells can reduce in this way.
    pub(super) fn fits(&self, cells: usize) -> bool {
        let ReducePlan::Swap { radices } = self else { return true };
        let product = radices.iter().try_fold(1usize, |product, &r| product.checked_mul(r));
        radices.iter().all(|&radix| radix > 1)
            && product.is_some_and(|product| product <= cells && cells - product <= product)
    }
}

/// The prime factors of a number, in increasing order; none of 1.
fn prime_factors(number: usize) -> Vec<usize> {
    let (mut rest, mut factors) = (number.max(1), Vec::new());
    let mut factor = 2;
    while factor * factor <= rest {
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    if rest > 1 {
        factors.push(rest);
    }
    factors
}

#[cfg(all(test, not(loom)))]
mod tests {
    use conset_ir::convert::to_usize;

    use super::*;

    /// How a plan groups cells, as text.
    fn grouping(plan: &ReducePlan, cells: usize) -> String {
        let mut groups: Vec<String> = (0..cells).map(|cell| cell.to_string()).collect();
        let join = |part: &[String]| {
            let fold = |all: String, next: &String| format!("({all} {next})");
            part[1..].iter().fold(part[0].clone(), fold)
        };
        let radices = match plan {
            ReducePlan::Tree => vec![2; to_usize(u64::from(cells.next_power_of_two().ilog2()))],
            ReducePlan::Swap { radices } => {
                let pairs = cells - radices.iter().product::<usize>();
                let rest = groups.split_off(2 * pairs);
                groups = groups.chunks(2).map(join).chain(rest).collect();
                radices.clone()
            }
        };
        for radix in radices {
            groups = groups.chunks(radix).map(join).collect();
        }
        groups.remove(0)
    }

    #[test]
    fn cells_that_share_cores_get_the_tree_if_its_bits_are_the_same() {
        let t3d = Parameters::t3d();
        let mut trees = 0;
        for cells in 1..=130 {
            let plan = ReducePlan::cheapest(&t3d, cells, 1 << 20);
            let shared = plan.clone().of_shared_cores(cells);
            assert_eq!(grouping(&plan, cells), grouping(&shared, cells), "{cells}: {plan:?}");
            trees += usize::from(shared == ReducePlan::Tree);
            if cells.is_power_of_two() || cells.is_multiple_of(3) && (cells / 3).is_power_of_two() {
                assert_eq!(shared, ReducePlan::Tree, "{cells}: {plan:?}");
            }
        }
        // 1, 2, 4, .., 128, and 3, 6, .., 96.
        assert_eq!(trees, 14);
    }

    #[test]
    fn plans_fit_the_cells_and_swap_pays_for_long_arrays() {
        let t3d = Parameters::t3d();
        for cells in 1..=130 {
            assert_eq!(prime_factors(cells).iter().product::<usize>(), cells);
            for words in [0, 1, 100, 1 << 20] {
                assert!(ReducePlan::cheapest(&t3d, cells, words).fits(cells), "{cells} {words}");
            }
            let long = ReducePlan::cheapest(&t3d, cells, 1 << 20);
            assert_eq!(matches!(long, ReducePlan::Swap { .. }), cells > 1, "{cells}: {long:?}");
        }
        for (cells, radices) in [(4, vec![2, 1, 2]), (7, vec![8]), (7, vec![3]), (9, vec![])] {
            assert!(!ReducePlan::Swap { radices: radices.clone() }.fits(cells), "{radices:?}");
        }
        assert!(ReducePlan::Swap { radices: vec![2, 2] }.fits(7));
    }
}
