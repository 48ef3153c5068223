//! Tables of numbers made into an image, through the constructors that check it.

use std::sync::Arc;

use conset_runtime::Image;
use conset_runtime::ir::{
    CellId, Connection, ConnectionId, ConnectionSet, Machine, NodeLists, SetImage, ShapeError,
};

/// A connection set with its plan.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    /// Source, target, words, least bandwidth and greatest latency (0: none).
    pub(crate) connections: &'static [[u32; 5]],
    /// The connections that have a name of their own.
    pub(crate) names: &'static [(u32, &'static str)],
    /// Before, after.
    pub(crate) order: &'static [[u32; 2]],
    /// The nodes behind each connection, one list after the other.
    pub(crate) nodes: Option<&'static [u32]>,
    pub(crate) plan: &'static Plan,
}

/// The image of some sets.
pub(crate) fn image(machine: Arc<Machine>, sets: &[&Set]) -> Result<Image, ShapeError> {
    let images = sets.iter().map(|set| set_image(&machine, connection_set(set)?, set.plan));
    let sets = images.collect::<Result<_, _>>()?;
    Image::new(machine, sets)
}

fn connection_set(set: &Set) -> Result<Arc<ConnectionSet>, ShapeError> {
    let required = |value: u32| (value > 0).then_some(value);
    let mut connections: Vec<Connection> = set
        .connections
        .iter()
        .map(|&[source, target, words, bandwidth, latency]| Connection {
            min_bandwidth: required(bandwidth),
            max_latency: required(latency),
            ..Connection::new(CellId(source), CellId(target), words)
        })
        .collect();
    for &(row, name) in set.names {
        connections[row as usize].name = Some(name.into());
    }
    let order = set.order.iter().map(|&[a, b]| (ConnectionId(a), ConnectionId(b))).collect();
    let mut built = ConnectionSet::new(set.name, connections)?.with_order(order)?;
    if let Some(mut nodes) = set.nodes {
        let lists: Vec<&[u32]> = set
            .connections
            .iter()
            .map(|connection| nodes.split_off(..connection[2] as usize).unwrap_or_default())
            .collect();
        built = built.with_nodes(NodeLists::from_lists(lists))?;
    }
    Ok(Arc::new(built))
}
