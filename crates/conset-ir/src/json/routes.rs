//! The reader of `routes` in JSON, which fills flat arrays.
//!
//! A schedule may have a million routes, and a struct with several small vectors for each would
//! take more memory than the file. The default links of a route depend on the machine, which may
//! follow later in the file, so [`RoutesIn::build`] determines them at the end.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::error::ShapeError;
use crate::ids::{CellId, ChannelId, ConnectionId, LinkId};
use crate::limits;
use crate::links::LinkFinder;
use crate::machine::Machine;
use crate::routing::PhaseRoutes;
use crate::set::ConnectionSet;

/// The routes of a phase as in the file, in flat arrays and not checked.
#[derive(Default)]
pub(super) struct RoutesIn {
    heads: Vec<RouteIn>,
    cells: Vec<CellId>,
    channels: Vec<ChannelId>,
    links: Vec<LinkId>,
}

/// A route: its connection, and the lengths of its lists.
struct RouteIn {
    connection: ConnectionId,
    words: Option<u32>,
    cells: usize,
    channels: usize,
    links: Option<usize>,
}

impl RoutesIn {
    /// The connections in the order of the routes.
    pub(super) fn connections(&self) -> impl ExactSizeIterator<Item = ConnectionId> + '_ {
        self.heads.iter().map(|head| head.connection)
    }

    /// Checks ids and adds what the file leaves out: the words of a route that carries its whole
    /// connection, and default links.
    pub(super) fn build(
        self,
        set: &ConnectionSet,
        machine: &Machine,
        finder: &LinkFinder<'_>,
    ) -> Result<PhaseRoutes, ShapeError> {
        let mut phase = PhaseRoutes::new();
        let (mut cells, mut channels, mut links) =
            (&self.cells[..], &self.channels[..], &self.links[..]);
        let mut default_links = Vec::new();
        for (row, head) in self.heads.iter().enumerate() {
            let route = take(&mut cells, head.cells);
            let stated = take(&mut links, head.links.unwrap_or(0));
            let place = |part: &str| format!("routes[{row}].{part}");
            if head.connection.index() >= set.len() {
                let message = format!(
                    "{} is not one of the set's {} connections",
                    head.connection,
                    set.len()
                );
                return Err(ShapeError::new(place("connection"), message));
            }
            if let Some(cell) = route.iter().find(|c| c.index() >= machine.cell_count()) {
                let message =
                    format!("{cell} is not one of the machine's {} cells", machine.cell_count());
                return Err(ShapeError::new(place("cells"), message));
            }
            default_links.clear();
            if head.links.is_none() {
                default_links.extend(finder.along(route));
            }
            phase.push(
                head.connection,
                head.words.unwrap_or_else(|| set.get(head.connection).words),
                route,
                if head.links.is_some() { stated } else { &default_links },
                take(&mut channels, head.channels),
            )?;
        }
        Ok(phase)
    }
}

fn take<'a, T>(from: &mut &'a [T], count: usize) -> &'a [T] {
    let (head, tail) = from.split_at(count);
    *from = tail;
    head
}

impl<'de> Deserialize<'de> for RoutesIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RoutesVisitor;
        impl<'de> Visitor<'de> for RoutesVisitor {
            type Value = RoutesIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of routes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<RoutesIn, A::Error> {
                let mut routes = RoutesIn::default();
                while rows.next_element_seed(RouteSeed(&mut routes))?.is_some() {}
                Ok(routes)
            }
        }
        deserializer.deserialize_seq(RoutesVisitor)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum RouteKey {
    Connection,
    Cells,
    Channels,
    Words,
    Links,
}

/// Appends one route to the arrays.
struct RouteSeed<'a>(&'a mut RoutesIn);

impl<'de> DeserializeSeed<'de> for RouteSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RouteSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a route: connection, cells, channels, and optionally words and links")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let routes = self.0;
        let (mut connection, mut cells, mut channels) = (None, None, None);
        let (mut words, mut links) = (None, None);
        while let Some(key) = map.next_key()? {
            match key {
                RouteKey::Connection => once(&mut connection, "connection", map.next_value()?)?,
                RouteKey::Cells => {
                    let seed = AppendSeed { out: &mut routes.cells, none: None };
                    once(&mut cells, "cells", map.next_value_seed(seed)?)?;
                }
                RouteKey::Channels => {
                    let seed = AppendSeed { out: &mut routes.channels, none: None };
                    once(&mut channels, "channels", map.next_value_seed(seed)?)?;
                }
                RouteKey::Words => once(&mut words, "words", map.next_value()?)?,
                RouteKey::Links => {
                    let seed = AppendSeed { out: &mut routes.links, none: Some(LinkId::NONE) };
                    once(&mut links, "links", map.next_value_seed(seed)?)?;
                }
            }
        }
        if routes.cells.len() > limits::HOPS {
            return Err(A::Error::custom(format!("more than {} hops in a phase", limits::HOPS)));
        }
        routes.heads.push(RouteIn {
            connection: connection.ok_or_else(|| A::Error::missing_field("connection"))?,
            words,
            cells: cells.ok_or_else(|| A::Error::missing_field("cells"))?,
            channels: channels.ok_or_else(|| A::Error::missing_field("channels"))?,
            links,
        });
        Ok(())
    }
}

fn once<T, E: Error>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(key)),
    }
}

/// Appends a list of ids to a vector and returns its length. A `null` becomes `none`, if that is
/// given.
struct AppendSeed<'a, T> {
    out: &'a mut Vec<T>,
    none: Option<T>,
}

impl<'de, T: Copy + Deserialize<'de>> DeserializeSeed<'de> for AppendSeed<'_, T> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Copy + Deserialize<'de>> Visitor<'de> for AppendSeed<'_, T> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let before = self.out.len();
        while let Some(element) = list.next_element::<Option<T>>()? {
            let id = element.or(self.none);
            self.out.push(id.ok_or_else(|| A::Error::custom("expected a number, found null"))?);
        }
        Ok(self.out.len() - before)
    }
}
