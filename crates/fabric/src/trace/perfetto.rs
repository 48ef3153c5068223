//! Traces in the trace event format, which Perfetto and Chrome read.
//!
//! The file is a JSON object whose `traceEvents` are:
//!
//! | events | meaning |
//! |---|---|
//! | slices of `SET agents` | one track per agent and direction (several if several of its streams are open at once): each stream or message, from its opening to its last word; a track with phases and context switches |
//! | slices of `SET links` | one track per link (several if several streams share it): each stream, from its opening at the source to its last word at the target |
//! | slices of `SET channels` | the same for each logical channel of a cell; not for messages |
//! | flows | an arrow from each send to its receive |
//! | counters of `SET agents` | words of open streams, and the channels (of messages: links) that they use |
//!
//! Viewers show microseconds; one microsecond is *one clock*, so all times are whole numbers, and
//! slices of a track never overlap by rounding. `otherData` has the clock frequency of the machine.
//! The arguments of slices are set, phase, connection, source, target, words and route.

use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};

use conset_ir::{CellId, ChannelId, Direction, LinkId, PhaseId};

use super::routes::TracedRoutes;
use super::{SWITCH_STEPS, StreamSpan, Trace, Transfer};

/// A trace, and the routes of its transfers.
#[derive(Clone, Debug)]
pub struct TraceSource<'a> {
    /// The trace of one or more sets.
    pub trace: &'a Trace,
    /// The routes on the machine of the trace.
    pub routes: TracedRoutes<'a>,
    /// Follows the names of the sets in the names of the tracks, to tell two runs of a set apart;
    /// may be empty.
    pub label: &'a str,
}

/// Writes traces as one JSON object. Each set is a group of processes; sets of different traces are
/// different processes.
///
/// # Errors
/// Those of `out`.
///
/// ```
/// use std::sync::Arc;
/// use conset_fabric::messages::{self, MessageOptions};
/// use conset_fabric::trace::routes::TracedRoutes;
/// use conset_fabric::{TraceSource, write_perfetto};
/// use conset_ir::{CellId, Connection, ConnectionSet, Machine};
///
/// let machine = Arc::new(Machine::from_spec("ring:4")?);
/// let set = ConnectionSet::new("s", vec![Connection::new(CellId(0), CellId(1), 9)])?;
/// let report = messages::run_checked(&machine, &set, &MessageOptions::default().trace(true))?;
/// let trace = report.trace.expect("it was requested");
/// let routes = TracedRoutes::of_messages(&machine);
/// let mut out = Vec::new();
/// write_perfetto(&mut out, &mut [TraceSource { trace: &trace, routes, label: "" }])?;
/// assert!(String::from_utf8(out)?.contains("\"route\":\"c0 -> c1\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_perfetto(out: &mut dyn Write, sources: &mut [TraceSource<'_>]) -> io::Result<()> {
    let hertz = sources.first().map_or(0, |source| source.trace.clock_hz);
    write!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"unit\":\"1 us is one clock\",\
         \"clock_hz\":{hertz}}},\n\"traceEvents\":["
    )?;
    let mut events = Events { out, first: true, process: 0, thread: 0, flow: 0 };
    for source in sources {
        events.trace(source)?;
    }
    writeln!(events.out, "\n]}}")
}

/// A transfer with its route.
struct Routed {
    transfer: Transfer,
    route: String,
    links: Vec<LinkId>,
    channels: Vec<(CellId, ChannelId)>,
}

impl Routed {
    /// The clocks in which its links and channels are in use.
    fn in_use(&self) -> (u64, u64) {
        (self.transfer.send.open, self.transfer.receive.close)
    }

    /// Its channels; of a message its links.
    fn channel_count(&self) -> usize {
        if self.channels.is_empty() { self.links.len() } else { self.channels.len() }
    }
}

/// The place of a slice or counter.
#[derive(Clone, Copy)]
struct Track {
    process: u64,
    thread: u64,
}

struct Events<'a> {
    out: &'a mut dyn Write,
    first: bool,
    /// The numbers used last. Process 0 and thread 0 have a meaning of their own for Perfetto.
    process: u64,
    thread: u64,
    flow: u64,
}

impl Events<'_> {
    fn trace(&mut self, source: &mut TraceSource<'_>) -> io::Result<()> {
        let transfers = source.trace.transfers();
        for (set, name) in (0..).zip(&source.trace.sets) {
            let transfers: Vec<Routed> = transfers
                .iter()
                .filter(|transfer| transfer.send.set == set)
                .map(|transfer| {
                    let route = source.routes.route(transfer);
                    let channels = route.cells.iter().copied().zip(route.channels.iter().copied());
                    Routed {
                        transfer: *transfer,
                        route: route.to_string(),
                        channels: channels.collect(),
                        links: route.links,
                    }
                })
                .collect();
            let switched = source.trace.switches.iter().any(|step| step.set == set);
            if transfers.is_empty() && !switched {
                continue;
            }
            let name = format!("{name}{}", source.label);
            self.agents(source.trace, set, &name, &transfers)?;
            self.links(&name, source.routes.machine(), &transfers)?;
            self.channels(&name, &transfers)?;
        }
        Ok(())
    }

    /// Phases, switches, streams at the agents, arrows and counters.
    fn agents(
        &mut self,
        trace: &Trace,
        set: u32,
        name: &str,
        transfers: &[Routed],
    ) -> io::Result<()> {
        let process = self.process(&format!("{name} agents"))?;
        self.phases(trace, set, process)?;
        let spans = || {
            let ends = |routed: &Routed| [routed.transfer.send, routed.transfer.receive];
            transfers.iter().flat_map(ends)
        };
        let place = |span: &StreamSpan| (span.cell, span.direction, span.slot);
        let mut tracks: BTreeMap<_, _> = spans().map(|span| (place(&span), 0)).collect();
        for ((cell, direction, _), thread) in &mut tracks {
            *thread = self.thread(process, &format!("{cell} {}", side_name(*direction)))?;
        }
        let track = |span: &StreamSpan| Track { process, thread: tracks[&place(span)] };
        for routed in transfers {
            let Transfer { send, receive } = &routed.transfer;
            for span in [send, receive] {
                let title = format!("{} {}", side_name(span.direction), span.connection);
                self.slice(track(span), &title, (span.open, span.close), Some(routed))?;
            }
            // Each end of an arrow is inside the slice that it belongs to.
            self.flow += 1;
            let flow = self.flow;
            let start = (send.open, "\"ph\":\"s\"");
            let end = (receive.close - 1, "\"ph\":\"f\",\"bp\":\"e\"");
            for ((clock, kind), span) in [(start, send), (end, receive)] {
                self.event()?;
                let Track { process, thread } = track(span);
                write!(
                    self.out,
                    "{{{kind},\"id\":{flow},\"cat\":\"words\",\"name\":\"{}\",\"ts\":{clock},\
                     \"pid\":{process},\"tid\":{thread}}}",
                    send.connection
                )?;
            }
        }
        self.counters(process, transfers)
    }

    /// The track with context switches, their steps and phases. Steps that take no time are instants.
    fn phases(&mut self, trace: &Trace, set: u32, process: u64) -> io::Result<()> {
        let steps = || trace.switches.iter().filter(|step| step.set == set);
        if steps().next().is_none() {
            return Ok(());
        }
        let thread = self.thread(process, "phases")?;
        let track = Track { process, thread };
        let starts: Vec<(PhaseId, u64)> =
            steps().filter(|step| step.step == 0).map(|step| (step.phase, step.start)).collect();
        for step in steps() {
            let title = format!("{} to {}", SWITCH_STEPS[step.step], step.phase);
            if step.clocks > 0 {
                self.slice(track, &title, (step.start, step.start + step.clocks), None)?;
                continue;
            }
            self.event()?;
            write!(
                self.out,
                "{{\"ph\":\"i\",\"s\":\"t\",\"name\":\"{title}\",\"ts\":{},\"pid\":{process},\
                 \"tid\":{thread}}}",
                step.start
            )?;
        }
        let last = trace.streams.iter().filter(|span| span.set == set).map(|span| span.close).max();
        let resumed = steps().filter(|step| step.step + 1 == SWITCH_STEPS.len());
        for (row, step) in resumed.enumerate() {
            let from = step.start + step.clocks;
            let next = starts.get(row + 1).map(|start| start.1).or(last);
            if let Some(to) = next.filter(|&to| to > from) {
                self.slice(track, &step.phase.to_string(), (from, to), None)?;
            }
        }
        Ok(())
    }

    fn counters(&mut self, process: u64, transfers: &[Routed]) -> io::Result<()> {
        let has_channels = transfers.iter().any(|routed| !routed.channels.is_empty());
        let used = if has_channels { "channels in use" } else { "links in use" };
        let mut changes: BTreeMap<u64, [i64; 2]> = BTreeMap::new();
        for routed in transfers {
            let words = i64::from(routed.transfer.send.words);
            let channels = i64::try_from(routed.channel_count()).unwrap_or(i64::MAX);
            let (open, close) = routed.in_use();
            for (clock, sign) in [(open, 1), (close, -1)] {
                let change = changes.entry(clock).or_default();
                change[0] += sign * words;
                change[1] += sign * channels;
            }
        }
        let mut now = [0, 0];
        for (clock, change) in changes {
            for (row, (name, key)) in
                [("words of open streams", "words"), (used, "count")].into_iter().enumerate()
            {
                now[row] += change[row];
                self.event()?;
                write!(
                    self.out,
                    "{{\"ph\":\"C\",\"name\":\"{name}\",\"ts\":{clock},\"pid\":{process},\
                     \"args\":{{\"{key}\":{}}}}}",
                    now[row]
                )?;
            }
        }
        Ok(())
    }

    fn links(
        &mut self,
        name: &str,
        machine: &conset_ir::Machine,
        transfers: &[Routed],
    ) -> io::Result<()> {
        let mut users: BTreeMap<LinkId, Vec<&Routed>> = BTreeMap::new();
        for routed in transfers {
            for &link in &routed.links {
                users.entry(link).or_default().push(routed);
            }
        }
        let named = users.into_iter().map(|(link, users)| {
            let ends = machine.link(link);
            (format!("{link} {} -> {}", ends.source, ends.target), users)
        });
        self.resources(&format!("{name} links"), named)
    }

    fn channels(&mut self, name: &str, transfers: &[Routed]) -> io::Result<()> {
        let mut users: BTreeMap<(CellId, ChannelId), Vec<&Routed>> = BTreeMap::new();
        for routed in transfers {
            for &place in &routed.channels {
                users.entry(place).or_default().push(routed);
            }
        }
        let named =
            users.into_iter().map(|((cell, channel), users)| (format!("{cell}/{channel}"), users));
        self.resources(&format!("{name} channels"), named)
    }

    /// Tracks of resources and the transfers that use them, each in as many tracks as it has users
    /// at the same time.
    fn resources<'b>(
        &mut self,
        name: &str,
        users: impl Iterator<Item = (String, Vec<&'b Routed>)>,
    ) -> io::Result<()> {
        let mut process = None;
        for (name_of, mut users) in users {
            let process = match process {
                Some(process) => process,
                None => *process.insert(self.process(name)?),
            };
            users.sort_by_key(|routed| routed.in_use());
            // The end of the last slice of each track, and the track, the earliest end first.
            let mut free: BinaryHeap<std::cmp::Reverse<(u64, u64)>> = BinaryHeap::new();
            for routed in users {
                let (open, close) = routed.in_use();
                let thread = match free.peek() {
                    Some(&std::cmp::Reverse((end, thread))) if end <= open => {
                        free.pop();
                        thread
                    }
                    _ => self.thread(process, &name_of)?,
                };
                free.push(std::cmp::Reverse((close, thread)));
                let title = routed.transfer.send.connection.to_string();
                self.slice(Track { process, thread }, &title, (open, close), Some(routed))?;
            }
        }
        Ok(())
    }

    fn slice(
        &mut self,
        track: Track,
        name: &str,
        (open, close): (u64, u64),
        routed: Option<&Routed>,
    ) -> io::Result<()> {
        self.event()?;
        let Track { process, thread } = track;
        write!(
            self.out,
            "{{\"ph\":\"X\",\"name\":\"{name}\",\"ts\":{open},\"dur\":{},\"pid\":{process},\
             \"tid\":{thread}",
            close - open
        )?;
        if let Some(Routed { transfer: Transfer { send, receive }, route, .. }) = routed {
            write!(
                self.out,
                ",\"args\":{{\"connection\":\"{}\",\"source\":\"{}\",\"target\":\"{}\",\
                 \"words\":{},\"phase\":\"{}\",\"route\":\"{route}\"}}",
                send.connection, send.cell, receive.cell, send.words, send.phase
            )?;
        }
        write!(self.out, "}}")
    }

    /// A new process. Names are set names, ids and fixed words; none of them needs escaping in JSON.
    fn process(&mut self, name: &str) -> io::Result<u64> {
        self.process += 1;
        let process = self.process;
        self.metadata("process_name", process, None, &format!("\"name\":\"{name}\""))?;
        let order = format!("\"sort_index\":{process}");
        self.metadata("process_sort_index", process, None, &order)?;
        Ok(process)
    }

    /// A new thread. Its number is not used by any other process.
    fn thread(&mut self, process: u64, name: &str) -> io::Result<u64> {
        self.thread += 1;
        let thread = self.thread;
        self.metadata("thread_name", process, Some(thread), &format!("\"name\":\"{name}\""))?;
        let order = format!("\"sort_index\":{thread}");
        self.metadata("thread_sort_index", process, Some(thread), &order)?;
        Ok(thread)
    }

    fn metadata(
        &mut self,
        what: &str,
        process: u64,
        thread: Option<u64>,
        args: &str,
    ) -> io::Result<()> {
        self.event()?;
        write!(self.out, "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process}")?;
        if let Some(thread) = thread {
            write!(self.out, ",\"tid\":{thread}")?;
        }
        write!(self.out, ",\"args\":{{{args}}}}}")
    }

    fn event(&mut self) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        Ok(())
    }
}

fn side_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    }
}
