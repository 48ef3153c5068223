//! Comparison of the emulated fabric with the second simulator, to the clock.
//!
//! Each function runs one program on both and returns the clocks, or describes the first difference.
//! A difference is an error in `docs/machine.md`, in `conset-fabric` or in
//! `conset-second-simulator`.

use std::fmt::Debug;
use std::sync::Arc;

use conset::fabric::messages::{
    self, ActiveMessages, MessageOptions, MessageOrder, MessageRoutes, MessagesReport, Put,
};
use conset::fabric::trace::StreamSpan;
use conset::fabric::{FabricOptions, Payload, PhaseReport, run_with};
use conset::ir::convert::{index, to_u32};
use conset::ir::{ConnectionId, ConnectionSet, Direction, Image, LinkId, Machine, Steps};
use conset_second_simulator::active;
use conset_second_simulator::messages::{MessagesRun, SendOrder, run_messages};
use conset_second_simulator::phases::{PhaseRun, run_set};
use conset_second_simulator::routes::Routes;
use conset_second_simulator::steps::run_steps;
use conset_second_simulator::wiring::Wiring;

/// Compares a value of the fabric with that of the second simulator.
#[allow(clippy::needless_pass_by_value, reason = "most values are made for the comparison")]
fn same<T: PartialEq + Debug>(what: &str, fabric: T, second: T) -> Result<(), String> {
    match fabric == second {
        true => Ok(()),
        false => Err(format!("{what}: fabric {fabric:?}, second simulator {second:?}")),
    }
}

/// The link or cell with the most words; the first one of equals.
fn busiest(words: &[u64]) -> Option<(usize, u64)> {
    let most = words.iter().copied().max().filter(|&most| most > 0)?;
    Some((words.iter().position(|&words| words == most)?, most))
}

fn link(busiest: Option<(LinkId, u64)>) -> Option<(usize, u64)> {
    busiest.map(|(link, words)| (link.index(), words))
}

/// The routes of messages between all cells with an agent that are alive.
///
/// # Errors
/// The difference.
pub fn routes(machine: &Machine) -> Result<(), String> {
    let wiring = Wiring::new(machine);
    let (mut fabric, second) = (MessageRoutes::new(machine), Routes::new(machine, &wiring));
    for source in machine.endpoints() {
        for target in machine.endpoints() {
            let mut links = Vec::new();
            let exists = fabric.links(source, target, &mut links);
            let links = links.iter().map(|link| link.index()).collect();
            let route = second.route(source.index(), target.index());
            let route = route.map(|route| route.into_iter().map(|(link, _)| link).collect());
            same(&format!("{source} -> {target}"), exists.then_some::<Vec<usize>>(links), route)?;
        }
    }
    Ok(())
}

/// The numbers of cells and links of a machine.
///
/// # Errors
/// The difference.
pub fn wiring(machine: &Machine) -> Result<(), String> {
    let second = Wiring::new(machine);
    same("cells with agents", machine.agent_count(), second.agents)?;
    let is_alive = machine.cells().map(|cell| machine.is_alive(cell)).collect();
    same("live cells", is_alive, second.live_cells)?;
    let ids = (0..machine.link_count()).map(LinkId::from_index);
    let ends = |id| (machine.link(id).source.index(), machine.link(id).target.index());
    same("links", ids.map(ends).collect(), second.links)?;
    let row = |cell| machine.outgoing(cell).iter().map(|link| link.index()).collect();
    same("live links", machine.cells().map(row).collect::<Vec<Vec<_>>>(), second.outgoing)
}

/// Every set of an image with phases: the clocks of every phase and switch, the open and close clock
/// and the slot of every stream, the word-hops, the busiest link and cell, and every delivered word.
/// Returns the clocks of all sets.
///
/// # Errors
/// The first difference.
pub fn phases(image: &Arc<Image>) -> Result<u64, String> {
    wiring(image.machine())?;
    let mut clocks = 0;
    for (row, set) in image.sets().iter().enumerate() {
        let options = FabricOptions::default().trace(true);
        let fabric = run_with(image.clone(), row, 1, options).map_err(|fault| fault.to_string())?;
        let second = run_set(image, row).map_err(|failure| failure.to_string())?;
        let name = set.set.name();
        if !fabric.payload_ok {
            return Err(format!("{name}: the fabric delivered wrong words: {fabric:?}"));
        }
        for (connection, delivered) in set.set.connections().iter().zip(&second.delivered) {
            let mut delivered = delivered.clone();
            delivered.sort_unstable();
            if !delivered.into_iter().eq(0..u64::from(connection.words)) {
                return Err(format!("{name}: the second simulator lost words: {connection:?}"));
            }
        }
        let trace = fabric.trace.expect("it was requested");
        same(&format!("{name}: phases"), fabric.report.phases.len(), second.phases.len())?;
        for (report, run) in fabric.report.phases.iter().zip(&second.phases) {
            let spans = trace.streams.iter().filter(|span| span.phase == report.phase);
            phase(report, &spans.copied().collect::<Vec<_>>(), run)
                .map_err(|difference| format!("{name}/{}: {difference}", report.phase))?;
        }
        same(&format!("{name}: clocks"), fabric.report.clocks, second.clocks)?;
        clocks += second.clocks;
    }
    Ok(clocks)
}

fn phase(report: &PhaseReport, spans: &[StreamSpan], run: &PhaseRun) -> Result<(), String> {
    type Row = ((usize, bool, usize, u64), (u64, usize, u64, u64));
    let row = |span: &StreamSpan| -> Row {
        let is_send = span.direction == Direction::Send;
        let key = (span.cell.index(), is_send, span.connection.index(), span.first_word.into());
        (key, (span.words.into(), index(span.slot), span.open, span.close))
    };
    let mut fabric: Vec<Row> = spans.iter().map(row).collect();
    let rows = run.operations.iter().map(|run| {
        let key = (run.cell, run.direction == Direction::Send, run.connection, run.first_word);
        (key, (run.words, run.slot, run.open, run.close))
    });
    let mut second: Vec<Row> = rows.collect();
    fabric.sort_unstable();
    second.sort_unstable();
    same("streams", fabric.len(), second.len())?;
    // The first difference is the first in time.
    let pairs = fabric.iter().zip(&second).filter(|(a, b)| a != b);
    if let Some((a, b)) = pairs.min_by_key(|(a, b)| (a.1.2.min(b.1.2), a.1.3.min(b.1.3))) {
        same("(cell, is send, connection, first word), (words, slot, open, close)", a, b)?;
    }
    same("switch", report.switch, run.switch)?;
    same("clocks", report.clocks, run.clocks)?;
    let received = run.operations.iter().filter(|run| run.direction == Direction::Receive);
    same("words", report.words, received.map(|run| run.words).sum())?;
    same("word-hops", report.word_hops, run.link_words.iter().sum())?;
    let mut agents = vec![0; run.operations.iter().map(|run| run.cell + 1).max().unwrap_or(0)];
    run.operations.iter().for_each(|run| agents[run.cell] += run.words);
    let agent = report.busiest_agent.map(|(cell, words)| (cell.index(), words));
    same("busiest cell", agent, busiest(&agents))?;
    same("busiest link", link(report.busiest_link), busiest(&run.link_words))
}

/// A set by messages in an order of sending; `seed` determines a random order. Compares the clocks,
/// those of both ends of every message, the word-hops and the busiest link. Returns the clocks;
/// `None` if both find that a message has no route.
///
/// # Errors
/// The first difference.
pub fn messages(
    machine: &Arc<Machine>,
    set: &ConnectionSet,
    order: MessageOrder,
    seed: u64,
) -> Result<Option<u64>, String> {
    wiring(machine)?;
    let second_order = match order {
        MessageOrder::Given => SendOrder::Given,
        MessageOrder::LongestFirst => SendOrder::LongestFirst,
        MessageOrder::Staggered => SendOrder::Staggered,
        MessageOrder::Random => SendOrder::Random(seed),
    };
    let options = MessageOptions::default().trace(true).with_order(order).seed(seed);
    let fabric = messages::run_checked(machine, set, &options);
    let second = run_messages(machine, set, second_order);
    let (fabric, second) = match (fabric, second) {
        (Err(_), Err(_)) => return Ok(None),
        (Err(fault), Ok(_)) => return Err(format!("only the fabric stops: {fault}")),
        (Ok(_), Err(failure)) => return Err(format!("only the second simulator stops: {failure}")),
        (Ok(fabric), Ok(second)) => (fabric, second),
    };
    message_times(&fabric, &second)?;
    Ok(Some(second.clocks))
}

/// A step plan, which the checker must have accepted; as [`messages()`].
///
/// # Errors
/// The first difference.
pub fn steps(steps: &Steps) -> Result<Option<u64>, String> {
    wiring(steps.machine())?;
    let fabric = messages::run_steps(steps, &MessageOptions::default().trace(true));
    let (fabric, second) = match (fabric, run_steps(steps)) {
        (Err(_), Err(_)) => return Ok(None),
        (Err(fault), Ok(_)) => return Err(format!("only the fabric stops: {fault}")),
        (Ok(_), Err(failure)) => return Err(format!("only the second simulator stops: {failure}")),
        (Ok(fabric), Ok(second)) => (fabric, second),
    };
    if !second.is_delivered {
        return Err("the second simulator lost words".to_owned());
    }
    message_times(&fabric, &second.run)?;
    Ok(Some(second.run.clocks))
}

/// Counts words that come as what they are not.
#[derive(Default)]
struct WordCheck {
    words: u64,
    wrong: u64,
}

impl Payload for WordCheck {
    fn transfer(&mut self, from: (ConnectionId, u32), to: (ConnectionId, u32)) {
        self.words += 1;
        self.wrong += u64::from(from != to);
    }
}

/// A round of active messages: its clocks, and those of both ends of every packet. Returns the clocks;
/// `None` if both find that a packet has no route.
///
/// # Errors
/// The first difference.
pub fn round(machine: &Arc<Machine>, puts: &[Put]) -> Result<Option<u64>, String> {
    let second_puts: Vec<active::Put> = puts
        .iter()
        .map(|put| active::Put {
            source: put.source.index(),
            target: put.target.index(),
            words: put.words.into(),
            item_words: put.item_words.into(),
        })
        .collect();
    let mut fabric = ActiveMessages::new(machine).expect("a machine with active messages");
    let (mut check, mut events) = (WordCheck::default(), Vec::new());
    let clocks = fabric.run(puts, &mut check, &mut |event| events.push(event));
    let (clocks, (packets, run, second)) = match (clocks, active::run_round(machine, &second_puts))
    {
        (Err(_), Err(_)) => return Ok(None),
        (Err(fault), Ok(_)) => return Err(format!("only the fabric stops: {fault}")),
        (Ok(_), Err(failure)) => return Err(format!("only the second simulator stops: {failure}")),
        (Ok(clocks), Ok(second)) => (clocks, second),
    };
    let words = puts.iter().map(|put| u64::from(put.words)).sum();
    same("words, wrong words", (check.words, check.wrong), (words, 0))?;
    let mut ends: Vec<_> = events
        .iter()
        .map(|event| {
            let packet = (event.put, u64::from(event.first_word), u64::from(event.words));
            (event.direction == Direction::Receive, packet, event.start, event.end)
        })
        .collect();
    let both = packets.iter().zip(&run.messages).flat_map(|(&packet, run)| {
        [(false, packet, run.launched, run.sent), (true, packet, run.accepted, run.received)]
    });
    let mut second_ends: Vec<_> = both.collect();
    ends.sort_unstable();
    second_ends.sort_unstable();
    same("ends of packets", ends.len(), second_ends.len())?;
    let pairs = ends.iter().zip(&second_ends).filter(|(a, b)| a != b);
    if let Some((a, b)) = pairs.min_by_key(|(a, b)| (a.2.min(b.2), a.3.min(b.3))) {
        same("is receive, (put, first word, words), start, end", a, b)?;
    }
    same("word-hops", fabric.word_hops(), run.link_words.iter().sum())?;
    same("clocks", clocks, second)?;
    Ok(Some(clocks))
}

/// The times of one end of a message: open, close, arrived.
type Times = (u64, u64, Option<u64>);

fn message_times(fabric: &MessagesReport, second: &MessagesRun) -> Result<(), String> {
    if !fabric.payload_ok {
        return Err(format!("the fabric delivered wrong words: {fabric:?}"));
    }
    let trace = fabric.trace.as_ref().expect("it was requested");
    let mut rows: Vec<(u32, bool, usize, u64, Times)> = trace
        .streams
        .iter()
        .map(|span| {
            let is_receive = span.direction == Direction::Receive;
            let times = (span.open, span.close, span.arrived);
            (span.connection.0, is_receive, span.cell.index(), span.words.into(), times)
        })
        .collect();
    rows.sort_unstable();
    let runs = second.messages.iter().enumerate().flat_map(|(number, run)| {
        let (sent, received) =
            ((run.launched, run.sent, None), (run.accepted, run.received, Some(run.arrived)));
        let number = to_u32(number);
        let send = (number, false, run.source, run.words, sent);
        [send, (number, true, run.target, run.words, received)]
    });
    let runs: Vec<_> = runs.collect();
    same("ends of messages", rows.len(), runs.len())?;
    let pairs = rows.iter().zip(&runs).filter(|(a, b)| a != b);
    if let Some((a, b)) = pairs.min_by_key(|(a, b)| (a.4.0.min(b.4.0), a.4.1.min(b.4.1))) {
        same("message, is receive, cell, words, (open, close, arrived)", a, b)?;
    }
    same("clocks", fabric.clocks, second.clocks)?;
    same("messages", fabric.messages, second.messages.len())?;
    same("words", fabric.words, second.messages.iter().map(|run| run.words).sum())?;
    same("word-hops", fabric.word_hops, second.link_words.iter().sum())?;
    same("busiest link", link(fabric.busiest_link), busiest(&second.link_words))
}
