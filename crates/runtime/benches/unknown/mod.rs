//! The pattern of the benches of exchanges with unknown partners, and the image of what was recorded of
//! it.

use std::sync::Arc;

use conset_fabric::messages::MessageRoutes;
use conset_runtime::ir::{CellId, ConnectionSet, Image, LinkId, Machine, SetImage, Steps};
use conset_runtime::recorded_set;
use conset_scheduler::steps::{Levels, StepOrder};

/// The targets of a rank or cell: 3 others, or 1 of 2.
pub(crate) fn targets(rank: usize, ranks: usize) -> Vec<usize> {
    let mut targets: Vec<usize> =
        [1, 2, 4].iter().filter(|&&step| step < ranks).map(|step| (rank + step) % ranks).collect();
    if ranks == 4 {
        targets.push((rank + 3) % ranks);
    }
    targets.sort_unstable();
    targets
}

fn planned(set: ConnectionSet, ranks: usize) -> Steps {
    let machine = Arc::new(Machine::from_spec(&format!("cm5:{ranks}")).expect("a preset"));
    let mut routes = MessageRoutes::new(&machine);
    let mut route = |from, to, links: &mut Vec<LinkId>| assert!(routes.links(from, to, links));
    let protocol = machine.parameters().protocol;
    Levels::direct(&machine, StepOrder::Loaded)
        .plan(&machine, &set.into(), protocol, &mut route)
        .expect("a plan")
}

/// The image of the recorded pattern with so many words a message.
pub(crate) fn compiled(ranks: usize, words: usize) -> Image {
    // As `Cell::take_record` gives it.
    let sent = |rank| targets(rank, ranks).into_iter().map(CellId::from_index);
    let records: Vec<Vec<_>> =
        (0..ranks).map(|rank| sent(rank).map(|cell| (cell, words as u64)).collect()).collect();
    let steps = planned(recorded_set("recorded", &records).expect("a set"), ranks);
    Image::new(steps.machine().clone(), vec![SetImage::of_steps(steps.clone())]).expect("an image")
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
