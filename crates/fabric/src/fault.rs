//! Faults of the emulated machine: the broken rule, with the cell, channel, connection and clock.
//!
//! An image that the checker accepted causes none of these. A wrong image may, and the fabric then
//! reports where. It never hangs: channels that forward in a cycle are rejected when the context is
//! loaded, so every word has finitely many hops; and if nothing is in progress although operations
//! are unfinished, that is a deadlock, which is reported with its waits.

use std::fmt;

use conset_ir::{CellId, ChannelId, ConnectionId, Direction, LinkId, PhaseId};

use crate::detection::Damage;

mod message_labels;

/// A fault of the emulated machine: the image or the program asked for something impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the set.
    pub set: String,
    /// The phase, if one was active.
    pub phase: Option<PhaseId>,
    /// The time of detection, in clocks since the image was loaded.
    pub clock: u64,
    /// The kind of fault.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.set)?;
        if let Some(phase) = self.phase {
            write!(f, "/{phase}")?;
        }
        write!(f, ", clock {}: {}", self.clock, self.kind)
    }
}

impl std::error::Error for Fault {}

/// The kind of a fault, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// The image has no such set.
    #[error("no set number {index}: the image has {sets} sets")]
    NoSet {
        /// The requested number.
        index: usize,
        /// Number of sets.
        sets: usize,
    },
    /// The set has no such phase.
    #[error("no phase {phase}: the set has {phases} phases")]
    NoPhase {
        /// The requested phase.
        phase: PhaseId,
        /// Number of phases.
        phases: usize,
    },
    /// A row of a forwarding table that the machine cannot hold.
    #[error("{cell} {channel}: {problem}")]
    Table {
        /// The cell.
        cell: CellId,
        /// The channel of the row.
        channel: ChannelId,
        /// What is wrong with the row.
        problem: TableProblem,
    },
    /// An operation names a gate that the cell's forwarding table does not have.
    #[error("{cell} cannot {} {connection} through {channel}: {problem}", verb(.direction))]
    Gate {
        /// The cell.
        cell: CellId,
        /// The channel that the operation names.
        channel: ChannelId,
        /// The connection.
        connection: ConnectionId,
        /// Send or receive.
        direction: Direction,
        /// The reason.
        problem: GateProblem,
    },
    /// A word arrived at a channel for which the cell's table has no row.
    #[error(
        "word {word} of {connection} was misrouted: it arrived at {cell} {channel} over {link}, \
         but no table row accepts words from there"
    )]
    Misrouted {
        /// The cell where it arrived.
        cell: CellId,
        /// The channel where it arrived.
        channel: ChannelId,
        /// The link that carried it there.
        link: LinkId,
        /// The connection it was sent for.
        connection: ConnectionId,
        /// Its index in the connection.
        word: u32,
    },
    /// A receive operation got a word that it did not expect.
    #[error(
        "{cell} {channel}: expected word {expected_word} of {expected}, \
         received word {word} of {connection}"
    )]
    WrongWord {
        /// The cell.
        cell: CellId,
        /// The channel.
        channel: ChannelId,
        /// The connection that the operation receives.
        expected: ConnectionId,
        /// The index in that connection of the expected word.
        expected_word: u32,
        /// The connection of the word received.
        connection: ConnectionId,
        /// Its index in that connection.
        word: u32,
    },
    /// The channels hold words at a context switch, which requires them to be empty.
    #[error(
        "context switch before the channels are empty: {words} words left in {channels} channels, \
         the first one of {connection} at {cell} {channel}"
    )]
    Undrained {
        /// The cell of the first channel with words.
        cell: CellId,
        /// The first channel with words.
        channel: ChannelId,
        /// The connection of its first word.
        connection: ConnectionId,
        /// Number of words left in all channels.
        words: u64,
        /// Number of channels with words.
        channels: usize,
    },
    /// The operation lists do not deliver every word of the set exactly once.
    #[error(
        "{connection}: {missing} of its words missing and {extra} received more than once \
         ({connections} connections in total are not delivered exactly once)"
    )]
    Coverage {
        /// The first such connection.
        connection: ConnectionId,
        /// Its words that no operation receives.
        missing: u64,
        /// Its words received more than once.
        extra: u64,
        /// Number of such connections.
        connections: usize,
    },
    /// A cell does not take part in a context switch.
    #[error("context switch {switch} waits for {cell}, which does not take part")]
    Absent {
        /// The cell.
        cell: CellId,
        /// The number of the context switch since the image was loaded, from 0.
        switch: u64,
    },
    /// All words of a stream were sent and none is on its way, but its receiver waits for more.
    #[error(
        "{cell} received {received} of the {sent} words that {connection} sent from word {first_word} on{}; \
         none is on its way{}",
        at(.damage),
        route(.links)
    )]
    LostWords {
        /// The receiver.
        cell: CellId,
        /// The connection.
        connection: ConnectionId,
        /// The index in the connection of the first word of the stream.
        first_word: u32,
        /// Words sent, with check words.
        sent: u32,
        /// Words received, with check words.
        received: u32,
        /// What the check words say, if there are any.
        damage: Option<Damage>,
        /// The links of the route, the last one first.
        links: Vec<LinkId>,
    },
    /// The check words of a stream do not fit its words.
    #[error("{cell}: the check words of {connection} do not fit: {damage}{}", route(.links))]
    CheckFailed {
        /// The receiver.
        cell: CellId,
        /// The connection.
        connection: ConnectionId,
        /// What is wrong, as far as the check words tell.
        damage: Damage,
        /// The links of the route, the last one first.
        links: Vec<LinkId>,
    },
    /// More words of a message came than it has. Only faults of the hardware cause this.
    #[error("{cell} received {received} words of {message}, which has {sent}{}", route(.links))]
    ExcessWords {
        /// The receiver.
        cell: CellId,
        /// The message.
        message: ConnectionId,
        /// Words sent, with extra words.
        sent: u32,
        /// Words received, with extra words.
        received: u32,
        /// The links of the route, the last one first.
        links: Vec<LinkId>,
    },
    /// A word of a message came in the place of another one, and the number of words is right. Only faults of the hardware
    /// cause this, and only a simulator sees it.
    #[error(
        "{cell}: word {word} of {found} came in the place of word {expected} of {message}{}", route(.links)
    )]
    MisplacedWord {
        /// The receiver.
        cell: CellId,
        /// The message.
        message: ConnectionId,
        /// The place in the message, from 0, with extra words.
        expected: u32,
        /// The message of the word.
        found: ConnectionId,
        /// Its index there, from 0, with extra words.
        word: u32,
        /// The links of the route, the last one first.
        links: Vec<LinkId>,
    },
    /// A word of a message arrived in a channel without a header before it. Only faults of the hardware cause this.
    #[error("word {word} of {message} arrived at {cell} over {link} without a header before it")]
    StrayWord {
        /// The cell where it arrived.
        cell: CellId,
        /// The link that carried it there.
        link: LinkId,
        /// The message.
        message: ConnectionId,
        /// Its index in the message, from 0, the header.
        word: u32,
    },
    /// A message that cannot be sent.
    #[error("{message} cannot be sent from {source_cell} to {target}: {problem}")]
    Message {
        /// The message.
        message: ConnectionId,
        /// The cell that would send it.
        source_cell: CellId,
        /// The cell that would receive it.
        target: CellId,
        /// The reason.
        problem: MessageProblem,
    },
    /// Nothing is in progress, and operations are unfinished.
    #[error("deadlock, {unfinished} operations unfinished: {}", chain(.waits, *.closed))]
    Deadlock {
        /// The chain of waits; each waits for the next.
        waits: Vec<WaitEdge>,
        /// Whether the chain is a cycle. If not, the last one waits for something that no program or
        /// operation list does.
        closed: bool,
        /// Number of unfinished operations.
        unfinished: usize,
    },
}

/// The reason why a table row was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// The table has two rows for one channel.
    #[error("the table has two rows for this channel")]
    Twice,
    /// The link that it forwards over is dead or does not start at the cell.
    #[error("it forwards over {0}, which is not a live link out of this cell")]
    Link(LinkId),
    /// The channel forwards in a cycle.
    #[error("the tables forward from this channel in a cycle")]
    Cycle,
}

/// The reason why an operation cannot use its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateProblem {
    /// The cell is dead or a switch.
    #[error("the cell has no live agent")]
    NoAgent,
    /// The cell is not that end of the connection.
    #[error("the cell is not that end of the connection")]
    WrongEnd,
    /// The table has no row for the channel.
    #[error("the table has no row for the channel")]
    NoEntry,
    /// The channel is fed by, or forwards over, a link.
    #[error("the channel has no gate on that side")]
    NoGate,
    /// The gate belongs to another connection.
    #[error("the gate belongs to {0}")]
    Other(ConnectionId),
}

/// The reason why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageProblem {
    /// One of its ends is dead or a switch.
    #[error("{0} has no live agent")]
    NoAgent(CellId),
    /// No deadlock-free (up*/down*) route connects its ends.
    #[error("no up*/down* route of live links connects them")]
    NoRoute,
}

/// An edge of the wait-for graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEdge {
    /// The cell of the waiting operation, channel, message or program.
    pub cell: CellId,
    /// What waits, and for what.
    pub cause: WaitCause,
}

/// What waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitCause {
    /// An open stream cannot send, because its channel is full.
    Space {
        /// The connection.
        connection: ConnectionId,
        /// The full channel.
        channel: ChannelId,
    },
    /// An open stream cannot receive, because its channel is empty.
    Words {
        /// The connection.
        connection: ConnectionId,
        /// The empty channel.
        channel: ChannelId,
    },
    /// An operation cannot open before another one of its list opens or finishes.
    Turn {
        /// Send or receive.
        direction: Direction,
        /// The connection.
        connection: ConnectionId,
    },
    /// An operation cannot open before a connection that the set's order puts first is complete.
    Order {
        /// The connection that waits.
        connection: ConnectionId,
        /// The connection it waits for, if known.
        before: Option<ConnectionId>,
    },
    /// A channel cannot forward its words, because the next channel is full.
    Ahead {
        /// The channel.
        channel: ChannelId,
        /// The link.
        link: LinkId,
    },
    /// A channel cannot forward its words, because the link is dead.
    DeadLink {
        /// The channel.
        channel: ChannelId,
        /// The link.
        link: LinkId,
    },
    /// A message cannot go on, because the next link of its route is dead.
    StoppedLink {
        /// The message.
        message: ConnectionId,
        /// The link.
        link: LinkId,
    },
    /// An operation cannot go on, because the agent of its cell is dead.
    DeadCell {
        /// Send or receive.
        direction: Direction,
        /// The connection.
        connection: ConnectionId,
    },
    /// A channel holds words that the agent does not receive.
    Unreceived {
        /// The channel.
        channel: ChannelId,
        /// The connection of its first word.
        connection: ConnectionId,
    },
    /// The header of a message waits for a channel that another message holds.
    Header {
        /// The message that waits.
        message: ConnectionId,
        /// The next link of its route.
        link: LinkId,
        /// The pool of the channel it waits for.
        pool: u32,
        /// The message that holds that channel.
        holder: ConnectionId,
    },
    /// A message cannot be launched before its cell has sent another one.
    Launch {
        /// The message that waits.
        message: ConnectionId,
        /// The message that is sent before it.
        before: ConnectionId,
    },
    /// A message has arrived at a cell that receives another one first.
    Reception {
        /// The message that waits.
        message: ConnectionId,
        /// The message that is received before it.
        before: ConnectionId,
    },
    /// A message has arrived at a cell that does not receive any.
    Unwanted {
        /// The message.
        message: ConnectionId,
    },
    /// A message waits at its source until its target asks for it.
    Rendezvous {
        /// The message.
        message: ConnectionId,
    },
    /// The cell's program does not send or receive the connection, although others wait for it.
    Program {
        /// Send or receive.
        direction: Direction,
        /// The connection.
        connection: ConnectionId,
    },
    /// The cell's program waits at a context switch for all other cells.
    Switch,
    /// The cell's program has ended.
    Ended,
    /// The cell's operation list has no such operation.
    NotListed,
}

impl WaitCause {
    /// Whether something waits for a part of the machine that has stopped by a fault.
    pub fn is_stopped_part(&self) -> bool {
        matches!(self, Self::DeadLink { .. } | Self::StoppedLink { .. } | Self::DeadCell { .. })
    }
}

impl fmt::Display for WaitEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = self.cell;
        match self.cause {
            WaitCause::Space { connection, channel } => {
                write!(f, "{cell} sends {connection} and waits for space in {channel}")
            }
            WaitCause::Words { connection, channel } => {
                write!(f, "{cell} receives {connection} and waits for words in {channel}")
            }
            WaitCause::Turn { direction, connection } => {
                write!(f, "{cell} cannot {} {connection} yet", verb(&direction))
            }
            WaitCause::Order { connection, before: Some(before) } => {
                write!(f, "{cell} holds {connection} back until {before} is finished")
            }
            WaitCause::Order { connection, before: None } => {
                write!(f, "{cell} holds {connection} back for a connection ordered before it")
            }
            WaitCause::Ahead { channel, link } => {
                write!(f, "{cell} {channel} waits for space beyond {link}")
            }
            WaitCause::DeadLink { channel, link } => {
                write!(f, "{cell} {channel} cannot forward, because {link} is dead")
            }
            WaitCause::StoppedLink { message, link } => {
                write!(f, "{message} is at {cell} and cannot go on, because {link} is dead")
            }
            WaitCause::DeadCell { direction, connection } => {
                write!(f, "{cell} is dead and does not {} {connection}", verb(&direction))
            }
            WaitCause::Unreceived { channel, connection } => {
                write!(
                    f,
                    "{cell} {channel} holds words of {connection} that the cell does not receive"
                )
            }
            WaitCause::Header { message, link, pool, holder } => write!(
                f,
                "the header of {message} is at {cell} and waits for pool {pool} of {link}, \
                 which {holder} holds"
            ),
            WaitCause::Launch { message, before } => {
                write!(f, "{cell} sends {message} only after {before}")
            }
            WaitCause::Reception { message, before } => {
                write!(f, "{message} has arrived at {cell}, which receives {before} first")
            }
            WaitCause::Unwanted { message } => {
                write!(f, "{message} has arrived at {cell}, which does not receive it")
            }
            WaitCause::Rendezvous { message } => {
                write!(f, "{message} waits at its source until {cell} asks for it")
            }
            WaitCause::Program { direction, connection } => {
                write!(f, "{cell} does not {} {connection}", verb(&direction))
            }
            WaitCause::Switch => write!(f, "{cell} waits for all cells at a context switch"),
            WaitCause::Ended => write!(f, "{cell} has ended"),
            WaitCause::NotListed => write!(f, "{cell} has no such operation in its list"),
        }
    }
}

fn verb(direction: &Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    }
}

fn at(damage: &Option<Damage>) -> String {
    damage.map_or_else(String::new, |damage| format!(" ({damage})"))
}

/// The links on which something may have happened.
fn route(links: &[LinkId]) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<String> = links.iter().rev().take(SHOWN).map(LinkId::to_string).collect();
    if links.len() > SHOWN {
        names.push(format!("{} more links", links.len() - SHOWN));
    }
    if names.is_empty() { String::new() } else { format!(" (route over {})", names.join(", ")) }
}

/// The waits as one sentence; only the first ones of a long chain.
fn chain(waits: &[WaitEdge], closed: bool) -> String {
    const SHOWN: usize = 12;
    let mut parts: Vec<String> = waits.iter().take(SHOWN).map(WaitEdge::to_string).collect();
    if waits.len() > SHOWN {
        parts.push(format!("({} more)", waits.len() - SHOWN));
    }
    if closed {
        parts.push("back to the start of the cycle".to_owned());
    }
    parts.join(" <- ")
}
