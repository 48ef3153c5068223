//! The errors of runs: invalid calls of a cell, calls of cells that do not match, faults of the
//! transport.

use std::fmt;
use std::time::Duration;

use conset_fabric::{Fault, FaultKind, FaultPlanError};
use conset_ir::{CellId, ConnectionId, Direction};

mod epoch;
mod mpi;
mod plan;

pub use epoch::EpochUse;
pub use mpi::MpiError;
pub use plan::{PlanError, PlanUse};

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A call of a cell failed.
    #[error("{cell}: {error}")]
    Cell {
        /// The cell.
        cell: CellId,
        /// The error.
        error: CellError,
    },
    /// A cell's program panicked.
    #[error("{cell} panicked: {message}")]
    Panic {
        /// The cell.
        cell: CellId,
        /// The panic's message.
        message: String,
    },
    /// Two cells asked for different phases in the same context switch.
    #[error("{first} switches to {phase} while {second} switches to {other}")]
    Disagree {
        /// The first cell that asked.
        first: CellId,
        /// The phase it asked for.
        phase: String,
        /// A cell that asked for another.
        second: CellId,
        /// That other phase.
        other: String,
    },
    /// Two cells make the same collective call at different source locations or in different rounds,
    /// or with different numbers: one has skipped a call or repeated one.
    #[error("{}", unlike(.calls))]
    Mismatch {
        /// The calls.
        calls: Box<[CellCall; 2]>,
    },
    /// The program of a cell has ended while others wait for it.
    #[error("{ended} has ended while {waiting} waits for all cells to switch to {phase}")]
    Ended {
        /// The cell whose program has ended.
        ended: CellId,
        /// The first cell that waits.
        waiting: CellId,
        /// The phase it switches to.
        phase: String,
    },
    /// Words were sent that their target did not receive before a switch or its end.
    #[error("{cell} has not received {words} words of {connection} of {set}")]
    Unreceived {
        /// The target.
        cell: CellId,
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
        /// Words sent and not received.
        words: u64,
    },
    /// A message was sent that its target did not receive before a switch or its end.
    #[error("{cell} has not received a message of {words} words from {from}")]
    UnreceivedMessage {
        /// The target.
        cell: CellId,
        /// The cell that sent it.
        from: CellId,
        /// Its words.
        words: usize,
    },
    /// No cell can continue: each waits for the next.
    #[error("deadlock: {}", chain(.waits, *.closed))]
    Deadlock {
        /// Who waits for what.
        waits: Vec<CellWait>,
        /// Whether the last waits for the first.
        closed: bool,
    },
    /// A cell made no call for longer than the time-out ([`crate::ThreadOptions::time_out`]).
    #[error("{cell} has been in its own code for more than {time_out:?}")]
    TimeOut {
        /// The cell.
        cell: CellId,
        /// The time it had.
        time_out: Duration,
    },
    /// The environment variable `CONSET_TIMEOUT` is not a time.
    #[error("CONSET_TIMEOUT is `{value}`: expected a number of seconds, or 0 for no time-out")]
    TimeOutSetting {
        /// What it is.
        value: String,
    },
    /// The fabric found a fault; a deadlock is one.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// An error of MPI or between the ranks of a job.
    #[error(transparent)]
    Mpi(MpiError),
    /// The plan of faults names a part that the machine does not have.
    #[error("the plan of faults: {0}")]
    FaultPlan(#[from] FaultPlanError),
    /// There is a plan of faults, and the transport is not the emulated machine.
    #[error("faults of the hardware are for the emulated machine, not for threads or MPI")]
    FaultsElsewhere,
    /// The system could not create a thread for a worker.
    #[error("no thread for the worker of {cell}: {message}; use fewer workers")]
    Thread {
        /// The worker's first cell.
        cell: CellId,
        /// What the system said.
        message: String,
    },
    /// There is no memory for the stack of a cell.
    #[error("no stack of {bytes} bytes for {cell}: {message}")]
    Stack {
        /// The cell.
        cell: CellId,
        /// The size asked for.
        bytes: usize,
        /// What the system said.
        message: String,
    },
}

impl From<MpiError> for RunError {
    fn from(error: MpiError) -> Self {
        match error {
            MpiError::Mismatch { calls } => RunError::Mismatch { calls },
            other => RunError::Mpi(other),
        }
    }
}

/// A collective call of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellCall {
    /// The cell.
    pub cell: CellId,
    /// The number of the call among the collective calls of the cell, from 1.
    pub number: u64,
    /// What is called.
    pub what: String,
    /// Where in the program's source; file and line, or what is known.
    pub place: Option<String>,
    /// The round that the program said it is in; 0 if it said none.
    pub round: u64,
    /// Bytes of each word that it exchanges; 0 if it exchanges none.
    pub word_bytes: usize,
}

impl fmt::Display for CellCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, number, what, place, round, word_bytes: _ } = self;
        let ending = match (number % 10, number % 100) {
            (1, n) if n != 11 => "st",
            (2, n) if n != 12 => "nd",
            (3, n) if n != 13 => "rd",
            _ => "th",
        };
        write!(f, "{cell} is in its {number}{ending} collective call, {what}")?;
        if let Some(place) = place {
            write!(f, " at {place}")?;
        }
        if *round > 0 {
            write!(f, " in round {round}")?;
        }
        Ok(())
    }
}

/// Two calls that do not match, and why.
fn unlike([one, two]: &[CellCall; 2]) -> String {
    if one.number == two.number && one.word_bytes != two.word_bytes {
        let [first, second] =
            [one, two].map(|call| format!("{call} in words of {} bytes", call.word_bytes));
        return format!("{first}; {second}: all cells have to exchange numbers of the same size");
    }
    format!("{one}; {two}: one of them has skipped a call or made one twice")
}

/// One wait of a deadlock of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellWait {
    /// The cell.
    pub cell: CellId,
    /// What it waits for.
    pub awaiting: Awaiting,
}

/// What a cell waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaiting {
    /// All cells are to ask for a phase.
    Switch {
        /// The phase.
        phase: String,
    },
    /// The source of a connection is to take part in an exchange.
    Exchange {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
    },
    /// The target of a connection is to take part in an exchange.
    Readers {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
    },
    /// The source of a connection is to send a word.
    Word {
        /// The set.
        set: String,
        /// The connection.
        connection: ConnectionId,
    },
    /// A connection is to be received before another may be sent.
    Order {
        /// The set.
        set: String,
        /// The connection to be sent.
        connection: ConnectionId,
        /// The one ordered before it.
        before: ConnectionId,
    },
    /// The array of a neighbour in a tree.
    Edge {
        /// The set of the tree.
        set: String,
        /// The connection from the neighbour.
        connection: ConnectionId,
    },
    /// A message.
    Message {
        /// The cell that is to send it.
        source: CellId,
    },
    /// A message of any cell.
    AnyMessage,
    /// All cells are to come to a round of an epoch.
    Round,
    /// A message of its own is to leave.
    Departure {
        /// The cell that is to receive it.
        target: CellId,
    },
    /// Nothing: it is in its own code.
    Running,
    /// Nothing: its program has ended.
    Ended,
}

impl fmt::Display for CellWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = self.cell;
        match &self.awaiting {
            Awaiting::Switch { phase } => {
                write!(f, "{cell} waits for all cells to switch to {phase}")
            }
            Awaiting::Exchange { set, connection } => {
                write!(f, "{cell} waits for the source of {connection} to exchange {set}")
            }
            Awaiting::Readers { set, connection } => {
                write!(f, "{cell} waits for the target of {connection} to exchange {set}")
            }
            Awaiting::Word { set, connection } => {
                write!(f, "{cell} receives {connection} of {set} and waits for a word")
            }
            Awaiting::Order { set, connection, before } => {
                write!(f, "{cell} holds {connection} of {set} back until {before} is received")
            }
            Awaiting::Edge { set, connection } => {
                write!(f, "{cell} waits for {connection} of {set}, the edge of a tree")
            }
            Awaiting::Message { source } => write!(f, "{cell} waits for a message from {source}"),
            Awaiting::AnyMessage => write!(f, "{cell} waits for a message from any cell"),
            Awaiting::Round => write!(f, "{cell} waits for all cells in a round of an epoch"),
            Awaiting::Departure { target } => {
                write!(f, "{cell} waits for {target} to receive its message")
            }
            Awaiting::Running => write!(f, "{cell} is in its own code"),
            Awaiting::Ended => write!(f, "{cell} has ended"),
        }
    }
}

/// The waits as one sentence; long chains are cut.
fn chain(waits: &[CellWait], closed: bool) -> String {
    const SHOWN: usize = 12;
    let mut parts: Vec<String> = waits.iter().take(SHOWN).map(CellWait::to_string).collect();
    if waits.len() > SHOWN {
        parts.push(format!("({} more)", waits.len() - SHOWN));
    }
    if closed {
        parts.push("which is where this began".to_owned());
    }
    parts.join(" <- ")
}

/// The reason why a call of a cell failed. Any such error ends the run, however the program handles it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// There is no such set.
    #[error("the image has no set {name}")]
    NoSet {
        /// What was asked for.
        name: String,
    },
    /// There is no such phase.
    #[error("the image has no phase {name}")]
    NoPhase {
        /// What was asked for.
        name: String,
    },
    /// The image has step plans and no phases.
    #[error(
        "the sets of the image are compiled to steps, which have no phases such as {name}: exchange \
         whole sets, or compile to phases"
    )]
    OnlySteps {
        /// What was asked for.
        name: String,
    },
    /// No phase was instantiated yet.
    #[error("no phase is active")]
    NoActivePhase,
    /// The connection is not part of the active phase.
    #[error("{connection} is not in the active phase {phase}")]
    NotInPhase {
        /// The connection.
        connection: ConnectionId,
        /// The active phase.
        phase: String,
    },
    /// The cell is not that end of the connection.
    #[error("{cell} is not the {} of {connection}", end(.direction))]
    WrongEnd {
        /// The cell.
        cell: CellId,
        /// The connection.
        connection: ConnectionId,
        /// What the cell wanted to do.
        direction: Direction,
    },
    /// All words of the connection in this phase have been sent or received already.
    #[error("{connection} has {words} words in {phase}, and all were {}", done(.direction))]
    TooManyWords {
        /// The connection.
        connection: ConnectionId,
        /// Its words in the phase.
        words: u64,
        /// The active phase.
        phase: String,
        /// What the cell wanted to do.
        direction: Direction,
    },
    /// A buffer of an exchange has not the size of its connection, or there are too many or too
    /// few buffers (`connection` is then `None`).
    #[error("{} of {}: expected {expected}, found {found}", what(.connection), way(.direction))]
    Buffers {
        /// The connection whose buffer it is.
        connection: Option<ConnectionId>,
        /// Outgoing or incoming buffers.
        direction: Direction,
        /// Words, or buffers, expected.
        expected: usize,
        /// Words, or buffers, found.
        found: usize,
    },
    /// A vector is shorter than the lists of positions that it is exchanged by need.
    #[error("vector of the exchange of {set}: expected {expected} words or more, found {found}")]
    Vector {
        /// The set.
        set: String,
        /// Words needed.
        expected: usize,
        /// Words found.
        found: usize,
    },
    /// A message can only be sent and received while no phase is active.
    #[error(
        "messages are not sent or received in phase {phase}: all cells have to call \
         instantiate_messages first"
    )]
    NotMessages {
        /// The active phase.
        phase: String,
    },
    /// There is no such cell, or it is dead.
    #[error("there is no live cell {cell}")]
    NoCell {
        /// What was asked for.
        cell: CellId,
    },
    /// The message has not as many words as there is room for.
    #[error("message from {source_cell}: expected {expected} words, found {found}")]
    MessageWords {
        /// The cell that sent it.
        source_cell: CellId,
        /// Words there is room for.
        expected: usize,
        /// Words of the message.
        found: usize,
    },
    /// The words of an array are no whole number of blocks.
    #[error("an array of {words} words: expected a multiple of the block of {block} words")]
    Block {
        /// Words of the array.
        words: usize,
        /// Words of a block.
        block: usize,
    },
    /// A reduction cannot be performed in this way.
    #[error(
        "the reduction plan {plan} does not fit {live} live cells: expected radices of at least 2 with a \
         product of at most {live} and at least half of it"
    )]
    ReducePlan {
        /// The plan.
        plan: String,
        /// Number of live cells.
        live: usize,
    },
    /// The array of all cells at the root of a gather or scatter has another length than they need.
    #[error(
        "the array of all cells has {found} words: expected {expected}, for {live} live cells with \
         {words} words each"
    )]
    AllWords {
        /// Words of the array.
        found: usize,
        /// Words that it needs.
        expected: usize,
        /// Number of live cells.
        live: usize,
        /// Words of a cell.
        words: usize,
    },
    /// An epoch was used in a way it is not for.
    #[error(transparent)]
    Epoch(#[from] EpochUse),
    /// The image does not deliver every word of the set exactly once.
    #[error("the image of {set} is wrong: {kind}")]
    Image {
        /// The set.
        set: String,
        /// What is wrong.
        kind: FaultKind,
    },
    /// A call from another language found too little of the cell's stack left.
    #[error("{cell} has used {used} of {bytes} bytes of its stack; enlarge it (World::stack_size)")]
    Stack {
        /// The cell.
        cell: CellId,
        /// Bytes used.
        used: usize,
        /// Bytes of the stack.
        bytes: usize,
    },
    /// A plan was used in a way it is not for.
    #[error(transparent)]
    Plan(#[from] PlanUse),
    /// The program aborted the run ([`crate::Cell::abort`]).
    #[error("{message}")]
    Program {
        /// Why, in its own words.
        message: String,
    },
    /// The run has ended because of an error of another cell.
    #[error("the run has ended")]
    Aborted,
}

fn end(direction: &Direction) -> &'static str {
    match direction {
        Direction::Send => "source",
        Direction::Receive => "target",
    }
}

fn done(direction: &Direction) -> &'static str {
    match direction {
        Direction::Send => "sent",
        Direction::Receive => "received",
    }
}

fn way(direction: &Direction) -> &'static str {
    match direction {
        Direction::Send => "outgoing buffers",
        Direction::Receive => "incoming buffers",
    }
}

fn what(connection: &Option<ConnectionId>) -> String {
    connection.map_or("number".to_owned(), |x| format!("words of {x}"))
}
