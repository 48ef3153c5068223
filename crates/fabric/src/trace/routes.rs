//! The routes of traced transfers: the cells, channels and links that their words passed.
//!
//! The route of a stream follows from the forwarding tables of its phase, from the gate of its source
//! on. Messages have routes of their own ([`MessageRoutes`]), which depend only on their ends.

use conset_ir::{CellId, ChannelId, Direction, Feed, Image, LinkId, Machine, PhaseImage, Sink};

use super::Transfer;
use crate::messages::MessageRoutes;

/// The way of the words of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedRoute {
    /// The cells in order, at least the source.
    pub cells: Vec<CellId>,
    /// The channel on each cell; empty for messages, whose channels are not those of connections.
    pub channels: Vec<ChannelId>,
    /// The links in order, one fewer than cells.
    pub links: Vec<LinkId>,
}

impl std::fmt::Display for TracedRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, cell) in self.cells.iter().enumerate() {
            let arrow = if at == 0 { "" } else { " -> " };
            write!(f, "{arrow}{cell}")?;
            if let Some(channel) = self.channels.get(at) {
                write!(f, "/{channel}")?;
            }
        }
        Ok(())
    }
}

/// Finds the routes of transfers.
#[derive(Clone, Debug)]
pub struct TracedRoutes<'a> {
    machine: &'a Machine,
    image: Option<&'a Image>,
    messages: MessageRoutes<'a>,
}

impl<'a> TracedRoutes<'a> {
    /// The routes of the sets of an image: by its tables, or of the messages of its step plans.
    pub fn of_image(image: &'a Image) -> Self {
        let image_with_tables = (!image.is_steps()).then_some(image);
        Self { image: image_with_tables, ..Self::of_messages(image.machine()) }
    }

    /// The routes of messages.
    pub fn of_messages(machine: &'a Machine) -> Self {
        Self { machine, image: None, messages: MessageRoutes::new(machine) }
    }

    /// The machine.
    pub fn machine(&self) -> &'a Machine {
        self.machine
    }

    /// The route of a transfer. It ends early where tables lead nowhere.
    pub fn route(&mut self, transfer: &Transfer) -> TracedRoute {
        let send = &transfer.send;
        // A program can exchange a set by messages, too.
        let image = self.image.filter(|_| transfer.receive.arrived.is_none());
        let phase = image.and_then(|image| {
            image.sets().get(conset_ir::convert::index(send.set))?.phases.get(send.phase.index())
        });
        let mut route = TracedRoute { cells: vec![send.cell], ..TracedRoute::default() };
        match phase {
            Some(phase) => self.follow(phase, transfer, &mut route),
            None => {
                self.messages.links(send.cell, transfer.receive.cell, &mut route.links);
                let targets = route.links.iter().map(|&link| self.machine.link(link).target);
                route.cells.extend(targets);
            }
        }
        route
    }

    fn follow(&self, phase: &PhaseImage, transfer: &Transfer, route: &mut TracedRoute) {
        let send = &transfer.send;
        let first = phase.cell(send.cell).operations.iter().find(|operation| {
            operation.direction == Direction::Send
                && operation.connection == send.connection
                && operation.first_word == send.first_word
        });
        let Some(first) = first else { return };
        let (mut cell, mut channel) = (send.cell, first.channel);
        route.channels.push(channel);
        // A route passes no cell twice, so longer ones are wrong tables.
        while route.cells.len() <= self.machine.cell_count() {
            let entries = phase.cell(cell).entries;
            let entered_by = route.links.last();
            let entry = entries.iter().find(|entry| {
                entry.channel == channel
                    && match entry.feed {
                        Feed::Gate(x) => entered_by.is_none() && x == send.connection,
                        Feed::Link(link) => entered_by == Some(&link),
                    }
            });
            let Some(Sink::Forward { link, channel: next }) = entry.map(|entry| entry.sink) else {
                return;
            };
            (cell, channel) = (self.machine.link(link).target, next);
            route.cells.push(cell);
            route.channels.push(channel);
            route.links.push(link);
        }
    }
}
