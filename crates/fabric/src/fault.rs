//! What can go wrong on the fabric: which rule, at which cell, channel and connection, when.
//!
//! A schedule that the checker accepted never meets any of these. A wrong image does, and then
//! the fabric says where, and never hangs: channels that forward in a circle are refused when the
//! context is written, every word has finitely many hops, and when nothing is under way although
//! something is unfinished, that is a deadlock, which is reported with the waits that make it.

use std::fmt;

use conset_ir::{CellId, ChannelId, ConnectionId, Direction, LinkId, PhaseId};

/// The fabric could not do what the image or the program asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The set.
    pub set: String,
    /// The phase, where one was active.
    pub phase: Option<PhaseId>,
    /// When, in clocks since the fabric was loaded.
    pub clock: u64,
    /// What.
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

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// There is no such set.
    #[error("the image has {sets} sets, number {index} is not one of them")]
    NoSet {
        /// The number asked for.
        index: usize,
        /// Sets there are.
        sets: usize,
    },
    /// There is no such phase.
    #[error("the set has {phases} phases, {phase} is not one of them")]
    NoPhase {
        /// The phase asked for.
        phase: PhaseId,
        /// Phases there are.
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
        /// What is wrong.
        problem: GateProblem,
    },
    /// A word arrived where no forwarding table takes it on.
    #[error(
        "word {word} of {connection} went astray: it came to {cell} {channel} over {link}, \
         and no row of the table takes words from there"
    )]
    Stray {
        /// The cell it came to.
        cell: CellId,
        /// The channel it was sent to.
        channel: ChannelId,
        /// The link it came over.
        link: LinkId,
        /// The connection it was sent for.
        connection: ConnectionId,
        /// Its place in the connection.
        word: u32,
    },
    /// A receive operation took out a word that is not the one it is for.
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
        /// The place in it of the word expected next.
        expected_word: u32,
        /// The connection of the word that came.
        connection: ConnectionId,
        /// Its place in that connection.
        word: u32,
    },
    /// Words are left in the channels where a context switch needs them empty.
    #[error(
        "switch before drain: {words} words left in {channels} channels, \
         the first of them of {connection} at {cell} {channel}"
    )]
    Undrained {
        /// The first cell with words left.
        cell: CellId,
        /// The channel.
        channel: ChannelId,
        /// The connection of its first word.
        connection: ConnectionId,
        /// Words left in all.
        words: u64,
        /// Channels that hold them.
        channels: usize,
    },
    /// The operation lists do not deliver what the set asks for.
    #[error(
        "{connection}: {missing} of its words missing and {extra} received more than once \
         ({connections} connections in all are not delivered exactly once)"
    )]
    Coverage {
        /// The first such connection.
        connection: ConnectionId,
        /// Its words that no operation received.
        missing: u64,
        /// Its words received more than once.
        extra: u64,
        /// Number of such connections.
        connections: usize,
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
        /// What is wrong.
        problem: MessageProblem,
    },
    /// Nothing is under way, and something is unfinished.
    #[error("deadlock, {unfinished} operations unfinished: {}", chain(.waits, *.closed))]
    Deadlock {
        /// Who waits for what; each waits for the next.
        waits: Vec<Wait>,
        /// Whether the last waits for the first. If not, the last waits for what nobody does.
        closed: bool,
        /// Operations that are not finished.
        unfinished: usize,
    },
}

/// What is wrong with a row of a forwarding table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableProblem {
    /// Two rows for one channel.
    #[error("the table has two rows for this channel")]
    Twice,
    /// The link it forwards over does not start here, or is dead.
    #[error("it forwards over {0}, which is no live link out of this cell")]
    Link(LinkId),
    /// Following the tables from here comes back to here.
    #[error("following the tables from here leads round in a circle")]
    Circle,
}

/// What is wrong with the gate of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageProblem {
    /// One of its ends is dead or a switch.
    #[error("{0} has no live agent")]
    NoAgent(CellId),
    /// No route of the kind that cannot deadlock joins its ends.
    #[error("no route of live links goes up and then down between them")]
    NoRoute,
}

/// One wait of a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The cell where something waits.
    pub cell: CellId,
    /// What waits for what.
    pub waiting: Waiting,
}

/// What waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A stream is open and cannot send: its channel is full.
    Room {
        /// The connection.
        connection: ConnectionId,
        /// The full channel.
        channel: ChannelId,
    },
    /// A stream is open and cannot receive: its channel is empty.
    Words {
        /// The connection.
        connection: ConnectionId,
        /// The empty channel.
        channel: ChannelId,
    },
    /// An operation is not open yet: the one before it in the list is not, or is not finished.
    Turn {
        /// Send or receive.
        direction: Direction,
        /// The connection.
        connection: ConnectionId,
    },
    /// An operation is not open yet: a connection ordered before it is not finished.
    Order {
        /// The connection that waits.
        connection: ConnectionId,
        /// The connection it waits for, where it is known.
        before: Option<ConnectionId>,
    },
    /// A channel with words cannot forward: the channel ahead is full.
    Ahead {
        /// The channel.
        channel: ChannelId,
        /// The link.
        link: LinkId,
    },
    /// A channel holds words for a gate through which the agent does not receive.
    Taken {
        /// The channel.
        channel: ChannelId,
        /// The connection of its first word.
        connection: ConnectionId,
    },
    /// A message's header waits for a channel that another message holds.
    Header {
        /// The message that waits.
        message: ConnectionId,
        /// The link that its route goes on over.
        link: LinkId,
        /// The pool of the channel it waits for.
        pool: u32,
        /// The message that holds that channel.
        holder: ConnectionId,
    },
    /// A message waits to be sent until its cell has sent another.
    Launch {
        /// The message that waits.
        message: ConnectionId,
        /// The one that is being sent, or is to be sent before it.
        before: ConnectionId,
    },
    /// A message has arrived and waits until its cell has received another.
    Reception {
        /// The message that waits.
        message: ConnectionId,
        /// The one that is being received, or is to be received before it.
        before: ConnectionId,
    },
    /// A message has arrived at a cell that does not ask for any.
    Unwanted {
        /// The message.
        message: ConnectionId,
    },
    /// The cell's program must send or receive a connection and does something else.
    Program {
        /// Send or receive.
        direction: Direction,
        /// The connection.
        connection: ConnectionId,
    },
    /// The cell's program waits for all cells at a context switch.
    Switch,
    /// The cell's program has ended.
    Ended,
    /// The cell's operation lists hold nothing else that would.
    Nothing,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = self.cell;
        match self.waiting {
            Waiting::Room { connection, channel } => {
                write!(f, "{cell} sends {connection} and waits for room in {channel}")
            }
            Waiting::Words { connection, channel } => {
                write!(f, "{cell} receives {connection} and waits for words in {channel}")
            }
            Waiting::Turn { direction, connection } => {
                write!(f, "{cell} does not yet {} {connection}", verb(&direction))
            }
            Waiting::Order { connection, before: Some(before) } => {
                write!(f, "{cell} holds {connection} back until {before} is finished")
            }
            Waiting::Order { connection, before: None } => {
                write!(f, "{cell} holds {connection} back for one ordered before it")
            }
            Waiting::Ahead { channel, link } => {
                write!(f, "{cell} {channel} waits for room beyond {link}")
            }
            Waiting::Taken { channel, connection } => {
                write!(f, "{cell} {channel} holds words of {connection} that wait to be received")
            }
            Waiting::Header { message, link, pool, holder } => write!(
                f,
                "the header of {message} is at {cell} and waits for pool {pool} of {link}, \
                 which {holder} holds"
            ),
            Waiting::Launch { message, before } => {
                write!(f, "{cell} does not send {message} before {before} has left")
            }
            Waiting::Reception { message, before } => {
                write!(f, "{message} has arrived at {cell}, which has {before} to receive first")
            }
            Waiting::Unwanted { message } => {
                write!(f, "{message} has arrived at {cell}, which does not receive it")
            }
            Waiting::Program { direction, connection } => {
                write!(f, "{cell} does not {} {connection}", verb(&direction))
            }
            Waiting::Switch => write!(f, "{cell} waits for all cells at a context switch"),
            Waiting::Ended => write!(f, "{cell} has ended"),
            Waiting::Nothing => write!(f, "{cell} has no such operation in its list"),
        }
    }
}

fn verb(direction: &Direction) -> &'static str {
    match direction {
        Direction::Send => "send",
        Direction::Receive => "receive",
    }
}

/// The waits as one sentence; long chains are cut in the middle.
fn chain(waits: &[Wait], closed: bool) -> String {
    const SHOWN: usize = 12;
    let mut parts: Vec<String> = waits.iter().take(SHOWN).map(Wait::to_string).collect();
    if waits.len() > SHOWN {
        parts.push(format!("({} more)", waits.len() - SHOWN));
    }
    if closed {
        parts.push("which is where this began".to_owned());
    }
    parts.join(" <- ")
}
