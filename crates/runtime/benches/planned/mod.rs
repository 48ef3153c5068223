//! The image of a set that is exchanged by steps.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_runtime::ir::{ConnectionSet, Image, LinkId, Machine, SetImage};
use conset_scheduler::steps::{Levels, StepOrder};

/// The image of a set between so many cells: one message for each pair, in the order `loaded`.
pub(crate) fn planned(set: ConnectionSet, cells: usize) -> Image {
    let machine = Arc::new(Machine::from_spec(&format!("cm5:{cells}")).expect("a preset"));
    let mut routes = MessageRoutes::new(&machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let protocol = machine.parameters().protocol;
    let steps = Levels::direct(&machine, StepOrder::Loaded)
        .plan(&machine, &set.into(), protocol, &mut route)
        .expect("a plan");
    Image::new(machine, vec![SetImage::of_steps(steps)]).expect("an image")
}
