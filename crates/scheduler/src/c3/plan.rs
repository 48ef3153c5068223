//! The units of step plans: stages of forwarding are supersteps.
//!
//! A message is in the superstep after the last of those that bring what it passes on, or that carry
//! connections ordered before its own ([`step_stages`]). So a direct plan is one superstep, whatever
//! its steps are: the model does not see the order of messages, and charges a flood like the same
//! messages in permutations. The words that a cell passes on are its computation between two
//! supersteps.

use conset_ir::convert::index;
use conset_ir::{Lists, Steps, step_stages};

use super::parts::C3Parts;
use super::{C3Message, C3Protocol, C3Units, computation};

/// The units of a plan: the sums over its supersteps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanUnits {
    /// Supersteps.
    pub supersteps: u32,
    /// Communication.
    pub communication: C3Units,
    /// Computation: packets that the busiest cell of each superstep copies, to pass them on.
    pub computation: u64,
}

/// The units of a step plan. O(pieces log pieces).
///
/// ```
/// use conset_ir::{CellId, Connection, ConnectionId, ConnectionSet, Machine, Piece};
/// use conset_ir::{StepMessages, Steps};
/// use conset_scheduler::c3::parts::C3Parts;
/// use conset_scheduler::c3::{C3Machine, C3Protocol, plan::plan_units};
///
/// // 128 words of 4 bytes go over cell 1, in two supersteps.
/// let machine = Machine::from_spec("delta:4x4")?;
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(2), 128)])?;
/// let whole = Piece::whole(&set, ConnectionId(0));
/// let mut messages = StepMessages::new();
/// for source in [0, 1] {
///     messages.push(CellId(source), CellId(source + 1), &[whole])?;
///     messages.end_step()?;
/// }
/// let c3 = C3Machine { processors: 16, ..C3Machine::DELTA };
/// let parts = C3Parts::new(&machine, c3);
/// let steps = Steps::new(machine.into(), set.into(), messages)?;
/// let units = plan_units(&steps, &parts, C3Protocol::default());
/// assert_eq!((units.supersteps, units.computation), (2, 1));
/// // Twice s + h + a packet, a packet on a link, and h.
/// assert_eq!(units.communication.total(), 2.0 * (8.0 + 10.0 + 1.0 + 1.0 + 10.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan_units(steps: &Steps, parts: &C3Parts, protocol: C3Protocol) -> PlanUnits {
    let word_bytes = u64::from(steps.machine().parameters().word_bytes);
    let stages = step_stages(steps);
    let supersteps = stages.iter().max().map_or(0, |last| last + 1);
    let rows = Lists::new(index(supersteps), stages.iter().copied().zip(0..));
    let mut units = PlanUnits { supersteps, ..PlanUnits::default() };
    let mut messages = Vec::new();
    let mut copied = vec![0u64; steps.machine().agent_count()];
    for superstep in 0..supersteps {
        messages.clear();
        copied.fill(0);
        for &row in rows.of(superstep) {
            let message = steps.messages().get(index(row));
            let bytes = message.words().saturating_mul(word_bytes);
            let (source, target) = (message.source, message.target);
            messages.push(C3Message { source, target, bytes });
            copied[target.index()] += steps.words_passed_on(index(row)).saturating_mul(word_bytes);
        }
        units.communication += parts.superstep(protocol, &messages);
        let most = copied.iter().max().copied().unwrap_or(0);
        units.computation += computation(parts.whole(), most);
    }
    units
}
