//! Exchanges of rows that are long enough to be messages of their own, beside all other ways to exchange
//! the same set, and runs that fail while such rows are under way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet, Image, NodeLists};
use conset_runtime::lists::{CellLists, Number, Positions};
use conset_runtime::mpi::Comm;
use conset_runtime::{By, Cell, CellError, Layout, Op, Plan, Transport, World};

use crate::build;

/// Longer rows of a connection that is alone between its cells are messages of their own.
const LIMIT: u32 = 1 << 14;

/// Places in the table of words at which rows begin.
const STARTS: u32 = 1009;

/// Bytes of an item of the vectors.
const ITEM: u32 = 32;

/// Ways to exchange a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Rows,
    Lists,
    Vectors,
    Requests,
    /// Each cell chooses one of those above, whose messages are the same.
    Mixed,
    RowsByMessages,
    VectorsByMessages,
}

/// The ways that have messages in common.
const WAYS: [&[Way]; 2] = [
    &[Way::Rows, Way::Lists, Way::Vectors, Way::Requests, Way::Mixed],
    &[Way::RowsByMessages, Way::VectorsByMessages],
];

/// Rows around the limit between all kinds of cells: to the next cells, to the cell itself, and two to
/// the same cell. The words of each connection have numbers of their own.
fn set(cells: u32, size: u32, is_ordered: bool) -> ConnectionSet {
    let (limit, item) = (LIMIT / size, ITEM / size);
    let steps = [(0, limit + item), (1, limit + item), (2, limit), (3, item), (4, 2 * limit)];
    let others = [(5, item), (5, limit + item), (6, limit - item), (7, limit + 2 * item)];
    let steps = steps.into_iter().chain(others);
    let steps: Vec<(u32, u32)> = steps.filter(|&(step, _)| step < cells).collect();
    let connections: Vec<Connection> = (0..cells)
        .flat_map(|cell| steps.iter().map(move |&(step, words)| (cell, step, words)))
        .map(|(cell, step, words)| {
            Connection::new(CellId(cell), CellId((cell + step) % cells), words)
        })
        .collect();
    let mut next = 0;
    let nodes = connections.iter().map(|connection| {
        let first = next;
        next += connection.words;
        (first..next).map(|word| word / item).collect::<Vec<u32>>()
    });
    let nodes: Vec<Vec<u32>> = nodes.collect();
    let nodes = NodeLists::from_lists(nodes.iter().map(|list| &list[..]));
    let each = steps.len() as u32;
    // What a cell sends itself before what it sends the next one.
    let order = (0..cells).map(|cell| (ConnectionId(each * cell), ConnectionId(each * cell + 1)));
    let set = ConnectionSet::new("s", connections).unwrap().with_nodes(nodes).unwrap();
    if is_ordered { set.with_order(order.collect()).unwrap() } else { set }
}

/// The connections of which a cell is an end, ascending.
fn own(set: &ConnectionSet, cell: CellId) -> impl Iterator<Item = (ConnectionId, &Connection)> {
    set.iter().filter(move |(_, connection)| [connection.source, connection.target].contains(&cell))
}

/// What one cell exchanges, and by which lists.
struct Exchanger<'p, 'c, 'w, W> {
    /// Any words; those of a connection begin at a place that depends on it and on the round.
    table: Vec<W>,
    cell: &'c mut Cell<'w>,
    set: Arc<ConnectionSet>,
    plan: &'p Plan,
    lists: CellLists,
    round: u32,
}

impl<W: Number + TryFrom<u8>> Exchanger<'_, '_, '_, W> {
    /// A table for rows of so many words.
    fn table(longest: u32) -> Vec<W> {
        let word = |at: u32| (at.wrapping_mul(0x9e37_79b9) >> 16) as u8 % 59 + 1;
        let words = (0..longest + STARTS).map(word);
        words.map(|word| W::try_from(word).ok().expect("a small number")).collect()
    }

    /// The words of a connection in a round.
    fn words(&self, x: ConnectionId, round: u32) -> Vec<W> {
        let first = (x.0 * 31 + round * 7) % STARTS;
        self.table[first as usize..][..self.set.get(x).words as usize].to_vec()
    }

    /// The cell's vector, which has the words of each connection of the cell: those that it sends, and
    /// those that it receives if it has received them.
    fn vector(&self, round: u32, received: bool) -> Vec<W> {
        let (cell, mut vector) = (self.cell.id(), Vec::new());
        for (x, connection) in own(&self.set, cell) {
            let mut row = self.words(x, round);
            if connection.source != cell && !received {
                row.fill(W::from_bits(0));
            }
            if connection.source == connection.target && received {
                row.iter_mut().for_each(|word| *word = word.plus(*word));
            }
            vector.extend(row);
        }
        vector
    }

    /// An exchange of new words in one way, every one of which is compared.
    #[track_caller]
    fn exchange(&mut self, way: Way) -> Result<(), CellError> {
        self.round += 1;
        let round = self.round;
        let way = match way {
            Way::Mixed => WAYS[0][(round + self.cell.id().0) as usize % 4],
            way => way,
        };
        let by = match way {
            Way::RowsByMessages | Way::VectorsByMessages => By::Messages,
            _ => By::Phases,
        };
        if matches!(way, Way::Rows | Way::RowsByMessages) {
            let (out, inn) = (self.cell.connections_out(0)?, self.cell.connections_in(0)?);
            let row = |x: &ConnectionId| self.words(*x, round);
            let outgoing: Vec<Vec<W>> = out.iter().map(row).collect();
            let expected: Vec<Vec<W>> = inn.iter().map(row).collect();
            let nothing = |row: &Vec<W>| vec![W::from_bits(0); row.len()];
            let mut incoming: Vec<Vec<W>> = expected.iter().map(nothing).collect();
            self.cell.exchange_by(by, 0, &outgoing, &mut incoming)?;
            // Not `assert_eq`, which would print all words.
            assert!(incoming == expected, "{way:?} {round} {:?}", self.cell);
            return Ok(());
        }
        let mut vector: Vec<W> = self.vector(round, false);
        match way {
            Way::Lists => self.cell.exchange_lists(0, &self.lists, Op::Add, &mut vector)?,
            Way::Requests => {
                let token = self.cell.start(self.plan, Op::Add, &vector)?;
                while round.is_multiple_of(2) && !self.cell.test(&token)? {}
                self.cell.wait(self.plan, token, &mut vector)?;
            }
            _ => self.cell.exchange_many_by(by, self.plan, Op::Add, &mut [&mut vector])?,
        }
        assert!(vector == self.vector(round, true), "{way:?} {round} {:?}", self.cell);
        Ok(())
    }

    /// Two exchanges that are under way at the same time.
    fn overlap(&mut self) -> Result<(), CellError> {
        let rounds = [self.round + 1, self.round + 2];
        self.round += 2;
        let mut vectors: [Vec<W>; 2] = rounds.map(|round| self.vector(round, false));
        let tokens = [0, 1].map(|at| self.cell.start(self.plan, Op::Add, &vectors[at]));
        for (at, token) in tokens.into_iter().enumerate() {
            self.cell.wait(self.plan, token?, &mut vectors[at])?;
            assert!(vectors[at] == self.vector(rounds[at], true), "{at} {:?}", self.cell);
        }
        Ok(())
    }
}

/// Each way after each other, with words of so many bytes.
fn all_ways<W: Number + TryFrom<u8>>(comm: &Comm, cells: u32, is_ordered: bool) {
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 8);
    let set = set(cells, size_of::<W>() as u32, is_ordered);
    let image = build::build_all(&machine, [set]);
    let set = image.sets()[0].set.clone();
    let block = ITEM as usize / size_of::<W>();
    let ids = |cell| -> Vec<u64> {
        let nodes = set.nodes().expect("they were given");
        let nodes = own(&set, CellId(cell)).flat_map(|(x, _)| nodes.of(x).iter().step_by(block));
        nodes.map(|&id| u64::from(id)).collect()
    };
    let ids: Vec<Vec<u64>> = (0..cells).map(ids).collect();
    let layout = Layout::from_image(&image, 0, block, &ids).unwrap();
    let plan = Plan::new(&image, 0, layout, block).unwrap();
    let run = World::new(image).on(Transport::Mpi(comm.clone())).try_run(|cell| {
        let mut end = 0;
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        for (_, connection) in own(&set, cell.id()) {
            let first = end;
            end += connection.words / block as u32;
            for (at, lists) in [(connection.source, &mut send), (connection.target, &mut receive)] {
                if at == cell.id() {
                    lists.push((first..end).collect::<Vec<u32>>());
                }
            }
        }
        let lists = CellLists::new(Positions::new(send), Positions::new(receive), block);
        let table = Exchanger::<W>::table(set.connections().iter().map(|x| x.words).max().unwrap());
        let (set, plan) = (set.clone(), &plan);
        let mut exchanger = Exchanger { table, cell, set, plan, lists, round: 0 };
        for ways in WAYS {
            for (at, &first) in ways.iter().enumerate() {
                for &way in &ways[at..] {
                    // From one line, as cells that choose for themselves make the same call.
                    exchanger.exchange(first).and_then(|()| exchanger.exchange(way))?;
                }
                exchanger.overlap()?;
            }
            // After other ways, bodies arrive in the buffer once, and then in rows again.
            for _ in 0..2 {
                exchanger.exchange(ways[0])?;
            }
        }
        Ok(())
    });
    run.unwrap();
}

/// Every word arrives, however the cells exchange.
pub(super) fn in_all_ways(comm: &Comm) {
    let n = comm.size() as u32;
    all_ways::<u8>(comm, n + 1, false);
    all_ways::<u16>(comm, n + 1, true);
    all_ways::<f64>(comm, 2 * n, false);
}

/// The image of sets `s` and `t` of long rows to three other cells.
fn two_sets(cells: u32, words: u32) -> Arc<Image> {
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 8);
    let pairs = (0..cells).flat_map(|cell| {
        let steps = (1..cells.min(4)).map(move |step| (cell, (cell + step) % cells, words));
        steps.chain([(cell, cell, 9)])
    });
    let set = build::set(&pairs.collect::<Vec<_>>());
    let other = ConnectionSet::new("t", set.connections().to_vec()).unwrap();
    build::build_all(&machine, [set, other])
}

/// Exchanges rows and compares the words. If the run fails, the rows that came in are changed and kept:
/// nobody may write them any more.
#[track_caller]
fn exchange_rows(
    cell: &mut Cell<'_>,
    set: &str,
    round: u64,
    kept: &Mutex<Vec<Vec<u64>>>,
) -> Result<(), CellError> {
    let row = |connection: ConnectionId, words: u32| -> Vec<u64> {
        (0..u64::from(words))
            .map(|word| round << 40 | u64::from(connection.0) << 20 | word)
            .collect()
    };
    let rows = |cell: &Cell<'_>, connections: Vec<ConnectionId>| -> Vec<Vec<u64>> {
        let set = &cell.image().sets()[0].set;
        connections.into_iter().map(|x| row(x, set.get(x).words)).collect()
    };
    let (out, inn) = (cell.connections_out(set)?.to_vec(), cell.connections_in(set)?.to_vec());
    let (mut outgoing, expected) = (rows(cell, out), rows(cell, inn));
    let mut incoming: Vec<Vec<u64>> = expected.iter().map(|row| vec![0; row.len()]).collect();
    let result = cell.exchange(set, &outgoing, &mut incoming);
    if result.is_ok() {
        assert!(incoming == expected, "{round} {cell:?}");
    } else {
        incoming.iter_mut().chain(&mut outgoing).for_each(|row| row.fill(u64::MAX));
        kept.lock().unwrap_or_else(PoisonError::into_inner).append(&mut incoming);
    }
    result
}

/// Exchanges rows of other words.
fn exchange_other_words(cell: &mut Cell<'_>) -> Result<(), CellError> {
    let rows = |cell: &Cell<'_>, connections: &[ConnectionId]| -> Vec<Vec<f32>> {
        let set = &cell.image().sets()[0].set;
        connections.iter().map(|&x| vec![1.0; set.get(x).words as usize]).collect()
    };
    let (out, inn) = (cell.connections_out("s")?.to_vec(), cell.connections_in("s")?.to_vec());
    let (outgoing, mut incoming) = (rows(cell, &out), rows(cell, &inn));
    cell.exchange("s", &outgoing, &mut incoming)
}

/// Runs fail while long rows are under way in the memory of programs: each ends with an error on all
/// ranks and leaves the memory alone, and the next one delivers.
pub(super) fn of_failed_runs(comm: &Comm) {
    let n = comm.size() as u32;
    for cells in [n, 2 * n + 1] {
        let world = World::new(two_sets(cells, 20_000)).on(Transport::Mpi(comm.clone()));
        for way in 0..8 {
            let kept = Mutex::default();
            let failed = world.try_run(|cell| {
                let fails = cell.id() == CellId(1);
                // Words that come when their receivers have learned of the failure.
                if way == 7 && cell.id() == CellId(2) {
                    std::thread::sleep(Duration::from_millis(300));
                }
                // Cells are in the middle of a program, or at its beginning.
                if way % 2 == 1 && way < 7 {
                    exchange_rows(cell, "s", 1, &kept)?;
                }
                match way {
                    0 | 1 | 7 if fails => panic!("it has not come"),
                    2 if fails => {
                        std::thread::sleep(Duration::from_millis(1500));
                        panic!("it comes late")
                    }
                    // Another call; other words; another set.
                    3 if fails => exchange_rows(cell, "s", 2, &kept)?,
                    4 if fails => exchange_other_words(cell)?,
                    5 if fails => exchange_rows(cell, "t", 2, &kept)?,
                    _ => exchange_rows(cell, "s", 2, &kept)?,
                }
                if way == 6 && fails {
                    return Err(cell.abort("it goes away"));
                }
                // Those that have not failed go on to where they wait for the one that does.
                exchange_rows(cell, "s", 3, &kept)
            });
            println!("failed: {}", failed.expect_err("the run must fail"));
            let run = world.try_run(|cell| {
                exchange_rows(cell, "s", 4, &Mutex::default())?;
                exchange_rows(cell, "t", 5, &Mutex::default())
            });
            run.unwrap();
            let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
            assert!(kept.iter().flatten().all(|&word| word == u64::MAX), "{way}");
        }
    }
}

/// A cell waits, and says so, until another one comes for a row that is not copied.
pub(super) fn slow_target(comm: &Comm) {
    let comm = &comm.clone().report_after(Duration::from_millis(300));
    let machine = build::machine("ring:4", |_| ());
    let image = build::build(&machine, build::set(&[(2, 3, 20_000)]));
    let run = World::new(image).on(Transport::Mpi(comm.clone())).try_run(|cell| {
        if cell.id() == CellId(3) {
            std::thread::sleep(Duration::from_secs(2));
        }
        exchange_rows(cell, "s", 1, &Mutex::default())
    });
    run.unwrap();
}
