//! The methods to exchange a set: planners of steps, phases, and plain messages.

use conset_fabric::messages::MessageOrder;
use conset_ir::Machine;
use conset_ir::convert::{to_u32, to_u64};
use conset_scheduler::steps::{StepOrder, factorisations};

use crate::steps::{LEVELS, StepAlgorithm};

/// A way to exchange a set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Messages in steps, by one planner.
    Steps(StepAlgorithm),
    /// Phases, by the search for the best plan.
    Phases,
    /// A message for each connection, in an order of sending.
    Messages(MessageOrder),
}

impl Method {
    /// All methods on a machine: direct messages in every order, levels of every factorisation of the
    /// number of cells into few factors and of the machine's dimensions, phases, and plain messages.
    pub fn all(machine: &Machine) -> Vec<Self> {
        let mut steps: Vec<StepAlgorithm> =
            StepOrder::ALL.into_iter().rev().map(StepAlgorithm::Direct).collect();
        steps.push(StepAlgorithm::Recursive);
        let cells = to_u32(machine.endpoints().count());
        let mut levels = factorisations(cells, LEVELS);
        // The first dimension varies fastest, so that of the most significant digit is the last one.
        let dims = machine.topology().dims().unwrap_or_default();
        let dims: Vec<u32> = dims.into_iter().rev().filter(|&size| size > 1).collect();
        if dims.iter().map(|&size| u64::from(size)).product::<u64>() == u64::from(cells)
            && !levels.contains(&dims)
        {
            levels.push(dims);
        }
        levels.retain(|radices| radices.len() > 1);
        steps.extend(levels.into_iter().map(StepAlgorithm::Levels));
        let steps = steps.into_iter().map(Self::Steps);
        let messages = MessageOrder::ALL.into_iter().map(Self::Messages);
        steps.chain([Self::Phases]).chain(messages).collect()
    }

    /// Parses the name of a planner of steps, `phases`, `messages` or `messages:ORDER`.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "phases" {
            return Some(Self::Phases);
        }
        if name == "messages" {
            return Some(Self::Messages(MessageOrder::Given));
        }
        if let Some(order) = name.strip_prefix("messages:") {
            let order = MessageOrder::ALL.into_iter().find(|o| o.name() == order);
            return order.map(Self::Messages);
        }
        let steps = StepAlgorithm::parse(name).filter(|a| *a != StepAlgorithm::Best);
        steps.map(Self::Steps)
    }

    /// The spelling that [`Method::parse`] reads.
    pub fn name(&self) -> String {
        match self {
            Self::Steps(algorithm) => algorithm.name(),
            Self::Phases => "phases".to_owned(),
            Self::Messages(order) => format!("messages:{}", order.name()),
        }
    }

    /// What it consists of: `steps`, `phases` or `messages`.
    pub fn by(&self) -> &'static str {
        match self {
            Self::Steps(_) => "steps",
            Self::Phases => "phases",
            Self::Messages(_) => "messages",
        }
    }

    /// How often the words of a connection travel at most, a measure of work.
    pub(super) fn levels(&self, machine: &Machine) -> u64 {
        match self {
            Self::Steps(StepAlgorithm::Levels(radices)) => to_u64(radices.len()),
            Self::Steps(StepAlgorithm::Recursive) => {
                let cells = machine.endpoints().count().max(2);
                u64::from(cells.next_power_of_two().ilog2())
            }
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_name_that_is_read_back() {
        for spec in ["cm5:32", "mesh:3x2x2x2x2x2", "ring:1", "torus:6x10"] {
            let machine = Machine::from_spec(spec).unwrap();
            let all = Method::all(&machine);
            let names: Vec<String> = all.iter().map(Method::name).collect();
            for (method, name) in all.iter().zip(&names) {
                assert_eq!(Method::parse(name).as_ref(), Some(method), "{name}");
                assert_eq!(names.iter().filter(|&other| other == name).count(), 1, "{name}");
            }
            for wanted in ["linear", "loaded", "recursive", "phases", "messages:random"] {
                assert!(names.iter().any(|name| name == wanted), "{wanted}");
            }
        }
        let of = |spec: &str| Method::all(&Machine::from_spec(spec).unwrap());
        let has = |methods: &[Method], name: &str| methods.iter().any(|m| m.name() == name);
        assert!(has(&of("torus:6x10"), "levels:10x6"));
        assert!(has(&of("mesh:3x2x2x2x2x2"), "levels:2x2x2x2x2x3"));
        for wrong in ["best", "auto", "messages:best", "levels:", ""] {
            assert_eq!(Method::parse(wrong), None, "{wrong}");
        }
    }
}
