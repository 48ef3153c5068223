//! The methods to exchange a set: planners of steps, phases, and plain messages.

use conset_fabric::messages::MessageOrder;
use conset_ir::convert::{to_u32, to_u64};
use conset_ir::{Machine, ShapeError};
use conset_scheduler::steps::{LevelsSpec, Numbering, PieceRoute, StepOrder, factorisations};

use crate::steps::{LEVELS, StepAlgorithm, has_nodes};

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
    /// number of cells into few factors and of the machine's dimensions from the last or from the
    /// first on, nodes, halves, phases, and plain messages.
    pub fn all(machine: &Machine) -> Vec<Self> {
        let mut steps: Vec<StepAlgorithm> =
            StepOrder::ALL.into_iter().rev().map(StepAlgorithm::Direct).collect();
        steps.push(StepAlgorithm::Recursive);
        let cells = to_u32(machine.endpoints().count());
        let mut levels = factorisations(cells, LEVELS);
        // The first dimension varies fastest, so that of the most significant digit is the last one.
        let dims = machine.topology().dims().unwrap_or_default();
        let mut dims: Vec<u32> = dims.into_iter().rev().filter(|&size| size > 1).collect();
        let is_whole = dims.iter().map(|&d| u64::from(d)).product::<u64>() == u64::from(cells);
        if is_whole && !levels.contains(&dims) {
            levels.push(dims.clone());
        }
        levels.retain(|radices| radices.len() > 1);
        let spec = |radices: &[u32]| LevelsSpec::digits(radices, StepOrder::Loaded);
        let mut specs: Vec<LevelsSpec> =
            levels.iter().filter_map(|radices| spec(radices).ok()).collect();
        if is_whole && dims.len() > 1 {
            dims.reverse();
            let columns = spec(&dims).map(|s| LevelsSpec { numbering: Numbering::Columns, ..s });
            specs.extend(columns);
        }
        let halves = LevelsSpec::new(StepOrder::Loaded);
        if has_nodes(machine) {
            specs.push(LevelsSpec { route: PieceRoute::Nodes, ..halves });
        }
        specs.push(halves);
        steps.extend(specs.into_iter().map(StepAlgorithm::Levels));
        let steps = steps.into_iter().map(Self::Steps);
        let messages = MessageOrder::ALL.into_iter().map(Self::Messages);
        steps.chain([Self::Phases]).chain(messages).collect()
    }

    /// Parses the name of a planner of steps, `phases`, `messages` or `messages:ORDER`.
    ///
    /// # Errors
    /// What of it is not known, and what was expected.
    pub fn parse(name: &str) -> Result<Self, ShapeError> {
        if name == "phases" {
            return Ok(Self::Phases);
        }
        if let Some(order) = name.strip_prefix("messages") {
            let order = order.strip_prefix(':').unwrap_or(order);
            let order = if order.is_empty() { MessageOrder::Given.name() } else { order };
            let found = MessageOrder::ALL.into_iter().find(|o| o.name() == order);
            return found.map(Self::Messages).ok_or_else(|| {
                let orders = MessageOrder::ALL.map(MessageOrder::name).join(", ");
                let message = format!("unknown order `{order}`; expected one of {orders}");
                ShapeError::new("messages", message)
            });
        }
        match StepAlgorithm::parse(name)? {
            StepAlgorithm::Best => {
                let message = format!("`{name}` is no single planner; all are predicted anyway");
                Err(ShapeError::new("algorithm", message))
            }
            algorithm => Ok(Self::Steps(algorithm)),
        }
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

    /// How often the words of a connection travel at most, a measure of work; of uneven halves more.
    pub(super) fn levels(&self, machine: &Machine) -> u64 {
        let halves = || u64::from(machine.endpoints().count().max(2).next_power_of_two().ilog2());
        match self {
            Self::Steps(StepAlgorithm::Recursive) => halves(),
            Self::Steps(StepAlgorithm::Levels(spec)) => match &spec.route {
                PieceRoute::Digits { places, .. } => to_u64(places.len()) + 1,
                PieceRoute::Halves(_) => halves(),
                PieceRoute::Nodes => 3,
            },
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
                assert_eq!(Method::parse(name).as_ref(), Ok(method), "{name}");
                assert_eq!(names.iter().filter(|&other| other == name).count(), 1, "{name}");
            }
            for wanted in ["linear", "loaded", "recursive", "halves", "phases", "messages:random"] {
                assert!(names.iter().any(|name| name == wanted), "{wanted}");
            }
        }
        let of = |spec: &str| Method::all(&Machine::from_spec(spec).unwrap());
        let has = |methods: &[Method], name: &str| methods.iter().any(|m| m.name() == name);
        assert!(has(&of("torus:6x10"), "levels:10x6"));
        assert!(has(&of("torus:6x10"), "levels:6x10/columns"));
        assert!(has(&of("mesh:3x2x2x2x2x2"), "levels:2x2x2x2x2x3"));
        for wrong in ["best", "auto", "messages:best", "levels:", ""] {
            assert!(Method::parse(wrong).is_err(), "{wrong}");
        }
    }
}
