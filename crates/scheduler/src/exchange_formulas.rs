//! The CM-5 paper's formulas for a complete exchange by messages in steps.
//!
//! They are those of section 4 of R. Ponnusamy and others, Experimental Performance Evaluation of the
//! CM-5.
//!
//! A step in which pairs of processors exchange `L` bytes takes
//! `alpha + L max(beta_ex, f beta_sat)`, where `f` is the greatest number of messages on a link. The
//! formulas have the shape of the CM-5 built in: 16 processors exchange without contention, and beyond
//! that twice as many messages leave a group as there are links.
//!
//! They are the paper's word for word, but for the balanced exchange, whose closed form keeps the
//! summation index and is wrong: it is the sum here. The paper gives no numbers for the four costs;
//! [`ExchangeCosts::CM5`] has those that follow from its other measurements. Two of its counts are
//! not right: a linear exchange has p steps and the formula p - 1, and in step p/2 of a balanced
//! exchange all pairs cross (2^k and not 2^k - 2).

use conset_ir::{Machine, Protocol, Topology};

/// The costs in the formulas, in any unit of time. A record with public fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeCosts {
    /// The start-up of an exchange (alpha).
    pub startup: f64,
    /// A byte of a single message, without conflicts (beta_s).
    pub single: f64,
    /// A byte of an exchange, without conflicts (beta_ex).
    pub exchange: f64,
    /// A byte on a saturated link (beta_sat).
    pub saturated: f64,
}

impl ExchangeCosts {
    /// The CM-5 in microseconds. A message takes 73 + 0.112 L (section 3.2), and an exchange is two
    /// messages in turn; a link moves packets of 20 bytes with 16 of data at 20 MB/s (section 2).
    /// With these numbers `2 beta_sat` is below `beta_ex`, so the formulas have no contention, and
    /// the pairwise and the balanced exchange take the same time.
    pub const CM5: Self =
        Self { startup: 146.0, single: 0.112, exchange: 0.224, saturated: 0.0625 };

    /// The costs of a machine whose exchanges are like the CM-5's, in clocks: a fat-tree with messages
    /// by rendezvous. `None` for other machines, since the formulas have the CM-5's network built in.
    ///
    /// An exchange is two messages in turn, whose words move at the rate of agents.
    pub fn of_machine(machine: &Machine) -> Option<Self> {
        let p = machine.parameters();
        let is_fat_tree = matches!(machine.topology(), Topology::FatTree { .. });
        if !is_fat_tree || p.protocol != Protocol::Rendezvous {
            return None;
        }
        let per_byte = |clocks: u32| f64::from(clocks) / f64::from(p.word_bytes.max(1));
        let single = per_byte(p.access_clocks_per_word.max(p.link_clocks_per_word));
        Some(Self {
            startup: 2.0 * (f64::from(p.c_send) + f64::from(p.c_receive)),
            single,
            exchange: 2.0 * single,
            saturated: per_byte(p.link_clocks_per_word),
        })
    }

    /// Linear exchange, T_LEX: in each step all processors send `bytes` to one.
    pub fn linear(&self, processors: u32, bytes: f64) -> f64 {
        let others = f64::from(processors.saturating_sub(1));
        others * self.step(self.single, (others / 2.0).ceil(), bytes)
    }

    /// Pairwise exchange, T_PEX.
    pub fn pairwise(&self, processors: u32, bytes: f64) -> f64 {
        self.pairs(processors, bytes, |_| 2.0)
    }

    /// Balanced exchange, T_BEX: step i > 15 has 2^k - 2 messages on 2^(k-1) links, k = floor(lg i).
    pub fn balanced(&self, processors: u32, bytes: f64) -> f64 {
        self.pairs(processors, bytes, |step| {
            let messages = f64::from(1u32 << step.ilog2());
            (messages - 2.0) / (messages / 2.0)
        })
    }

    /// Recursive exchange, T_REX: lg p steps with messages of p/2 times `bytes`; `processors` is
    /// rounded down to a power of two.
    pub fn recursive(&self, processors: u32, bytes: f64) -> f64 {
        let steps = processors.checked_ilog2().unwrap_or(0);
        let bytes = bytes * f64::from(processors) / 2.0;
        let within = f64::from(steps.min(4)) * self.step(self.exchange, 0.0, bytes);
        within + f64::from(steps.saturating_sub(4)) * self.step(self.exchange, 2.0, bytes)
    }

    /// Exchanges in steps 1 to p - 1, the first 15 of them without contention.
    fn pairs(&self, processors: u32, bytes: f64, contention: impl Fn(u32) -> f64) -> f64 {
        let sharing = |step| if step < 16 { 0.0 } else { contention(step) };
        (1..processors).map(|step| self.step(self.exchange, sharing(step), bytes)).sum()
    }

    fn step(&self, per_byte: f64, sharing: f64, bytes: f64) -> f64 {
        self.startup + bytes * per_byte.max(sharing * self.saturated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_have_the_papers_closed_forms() {
        let costs = ExchangeCosts { startup: 5.0, single: 0.5, exchange: 0.8, saturated: 0.6 };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.max(1.0), "{a} {b}");
        for p in [32u32, 64, 256] {
            let (n, lg, bytes) = (f64::from(p), f64::from(p.ilog2()), 40.0);
            let shared = f64::max(0.8, 2.0 * 0.6);
            let linear = (n - 1.0) * (5.0 + bytes * f64::max(0.5, (n / 2.0) * 0.6));
            near(costs.linear(p, bytes), linear);
            let pairwise = (n - 1.0) * 5.0 + bytes * (15.0 * 0.8 + (n - 16.0) * shared);
            near(costs.pairwise(p, bytes), pairwise);
            let recursive = 5.0 * lg + bytes * n / 2.0 * (4.0 * 0.8 + (lg - 4.0) * shared);
            near(costs.recursive(p, bytes), recursive);
        }
        // 16 steps with 14 messages on 8 links.
        let balanced = 31.0 * 5.0 + 40.0 * (15.0 * 0.8 + 16.0 * 14.0 / 8.0 * 0.6);
        near(costs.balanced(32, 40.0), balanced);
    }

    #[test]
    fn the_preset_has_the_costs_that_follow_from_the_paper() {
        let of = |spec: &str| ExchangeCosts::of_machine(&Machine::from_spec(spec).unwrap());
        assert_eq!([of("t3d"), of("fat-tree:32"), of("delta")], [None; 3]);
        // Ticks of 10 ns.
        let (ours, paper) = (of("cm5:32").unwrap(), ExchangeCosts::CM5);
        for (ours, paper) in [
            (ours.startup, paper.startup),
            (ours.single, paper.single),
            (ours.exchange, paper.exchange),
            (ours.saturated, paper.saturated),
        ] {
            assert!((ours / (100.0 * paper) - 1.0).abs() < 0.015, "{ours} {paper}");
        }
    }

    #[test]
    fn sixteen_processors_have_no_contention_and_one_has_nothing_to_do() {
        let costs = ExchangeCosts { saturated: 9.0, ..ExchangeCosts::CM5 };
        assert_eq!(costs.pairwise(16, 100.0), costs.balanced(16, 100.0));
        assert_eq!(costs.pairwise(16, 100.0), ExchangeCosts::CM5.pairwise(16, 100.0));
        for p in [0, 1] {
            let all = [costs.linear(p, 9.0), costs.pairwise(p, 9.0), costs.recursive(p, 9.0)];
            assert_eq!(all, [0.0; 3]);
        }
    }
}
