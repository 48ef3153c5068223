//! Programs that do anything in any order: the run ends, and in the same way each time; what cells
//! do together between the halves of exchanges gives the same bits on every transport, those of a
//! model in which it is done one after the other.

use conset_runtime::ir::{CellId, Connection, ConnectionId, ConnectionSet, Duplex};
use conset_runtime::{
    Cell, CellError, Collectives, Layout, Op, Owned, Pending, PhaseName, Plan, World, tree_sets,
};
use proptest::prelude::*;

use crate::common::{build, from_left, own, threads};

/// What a cell does next; the number says which connection, phase or how long.
#[derive(Clone, Copy, Debug)]
enum Step {
    Switch(u32),
    Send(u32),
    Receive(u32),
    Exchange,
    Compute(u64),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0u32..2).prop_map(Step::Switch),
        6 => any::<u32>().prop_map(Step::Send),
        6 => any::<u32>().prop_map(Step::Receive),
        1 => Just(Step::Exchange),
        2 => (0u64..100).prop_map(Step::Compute),
        1 => Just(Step::End),
    ];
    prop::collection::vec(step, 0..12)
}

/// Executes the steps; returns a digest of what was received.
fn execute(cell: &mut Cell<'_>, steps: &[Step], careful: bool) -> Result<u64, CellError> {
    let (out, inn) = (cell.connections_out("s")?, cell.connections_in("s")?);
    let mut digest = 0u64;
    let pick = |ids: &[ConnectionId], n: u32| ids.get(n as usize % ids.len().max(1)).copied();
    for step in steps {
        match *step {
            Step::Switch(phase) => cell.instantiate_phase(PhaseName::new("s", phase))?,
            Step::Send(n) => {
                if let Some(x) = pick(out, n) {
                    let result = cell.send_element(x, digest ^ u64::from(n));
                    if careful {
                        result?;
                    }
                }
            }
            Step::Receive(n) => {
                if let Some(x) = pick(inn, n) {
                    digest = digest.rotate_left(7) ^ cell.receive_element::<u64>(x)?;
                }
            }
            Step::Exchange => {
                let set = &cell.image().sets()[0].set;
                let words = |x: &ConnectionId| vec![digest; set.get(*x).words as usize];
                let outgoing: Vec<Vec<u64>> = out.iter().map(words).collect();
                let mut incoming: Vec<Vec<u64>> = inn.iter().map(words).collect();
                cell.exchange("s", &outgoing, &mut incoming)?;
                digest = incoming.iter().flatten().fold(digest, |d, w| d.rotate_left(3) ^ w);
            }
            Step::Compute(clocks) => cell.compute(clocks)?,
            Step::End => break,
        }
    }
    Ok(digest)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn every_run_ends_and_repeats(
        pairs in prop::collection::vec((0u32..4, 0u32..4, 1u32..12), 1..8),
        common in steps(),
        own in prop::collection::vec(steps(), 4),
        depth in 1u32..4,
        half in any::<bool>(),
        alike in any::<bool>(),
    ) {
        let machine = build::machine("ring:4", |p| {
            p.channel_depth = depth;
            p.channels_per_cell = 4;
            if half {
                p.duplex = Duplex::Half;
            }
        });
        let world = World::new(build::build(&machine, build::set(&pairs))).trace(true);
        let run = || world.try_run(|cell| {
            let mut all = vec![Step::Switch(0)];
            all.extend(if alike { &common } else { &own[cell.id().index()] });
            execute(cell, &all, alike)
        });
        let first = run();
        if let Err(error) = &first {
            prop_assert!(!error.to_string().is_empty());
        }
        prop_assert_eq!(first, run());
    }
}

/// What all cells do.
#[derive(Clone, Copy, Debug)]
enum Together {
    /// Which plan; copies are combined in the order of the cells (the first plan only).
    Begin(bool, Op, bool),
    Exchange(bool, Op),
    Combine(Op),
    /// A word round a ring, by elements and by messages.
    Elements,
    Messages,
    Greatest,
}

/// What a cell does on its own; numbers pick one of the exchanges under way.
#[derive(Clone, Copy, Debug)]
enum Alone {
    Test(u8),
    TestUntilThere(u8),
    End(u8),
    Scale,
}

type Script = Vec<(Together, Vec<Vec<Alone>>)>;

const CELLS: usize = 5;

fn op() -> impl Strategy<Value = Op> {
    prop::sample::select(vec![Op::Copy, Op::Add, Op::Min, Op::Max])
}

fn scripts() -> impl Strategy<Value = Script> {
    let together = prop_oneof![
        8 => (any::<bool>(), op(), any::<bool>())
            .prop_map(|(second, op, shared)| Together::Begin(second, op, shared && !second)),
        2 => (any::<bool>(), op()).prop_map(|(second, op)| Together::Exchange(second, op)),
        1 => op().prop_map(Together::Combine),
        1 => Just(Together::Elements),
        1 => Just(Together::Messages),
        1 => Just(Together::Greatest),
    ];
    let alone = prop_oneof![
        1 => any::<u8>().prop_map(Alone::Test),
        1 => any::<u8>().prop_map(Alone::TestUntilThere),
        2 => any::<u8>().prop_map(Alone::End),
        1 => Just(Alone::Scale),
    ];
    let cell = prop::collection::vec(alone, 0..4);
    prop::collection::vec((together, prop::collection::vec(cell, CELLS)), 1..14)
}

/// Which of those under way a number picks.
fn pick(under_way: usize, number: u8) -> Option<usize> {
    (number as usize).checked_rem(under_way)
}

fn scale(x: &mut [f64]) {
    x.iter_mut().for_each(|x| *x *= 0.75);
}

/// An exchange that was begun, in the model.
struct Begun {
    second: bool,
    op: Op,
    shared: bool,
    /// What all cells had.
    x: Vec<Vec<f64>>,
}

/// The layouts of a program, and the ids of the first.
struct Model<'a> {
    ids: &'a [Vec<u64>],
    layouts: [&'a Layout; 2],
}

impl Model<'_> {
    /// What comes in at a cell meets what it has.
    fn end(&self, begun: &Begun, cell: usize, x: &mut [f64]) {
        if begun.shared {
            return self.combine(begun, cell, x);
        }
        let layout = self.layouts[usize::from(begun.second)];
        for connection in (0..layout.len() as u32).map(ConnectionId) {
            let (source, target) = layout.ends_of(connection);
            if target.index() == cell {
                let positions =
                    layout.send_of(connection).iter().zip(layout.receive_of(connection));
                for (&from, &to) in positions {
                    let there = &mut x[to as usize];
                    *there = begun.op.apply(*there, begun.x[source.index()][from as usize]);
                }
            }
        }
    }

    /// All copies in the order of the cells, the cell's own as it is now.
    fn combine(&self, begun: &Begun, cell: usize, x: &mut [f64]) {
        for (at, id) in self.ids[cell].iter().enumerate() {
            let copies = self.ids.iter().enumerate().filter_map(|(other, ids)| {
                let place = ids.iter().position(|there| there == id)?;
                Some(if other == cell { x[at] } else { begun.x[other][place] })
            });
            let combine = |a, b| if begun.op == Op::Copy { a } else { begun.op.apply(a, b) };
            x[at] = copies.reduce(combine).expect("the cell's own is one");
        }
    }

    /// The vectors of all cells after a script.
    fn run(&self, script: &Script, mut x: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        let cells = x.len();
        let mut begun: Vec<Begun> = Vec::new();
        let mut under_way = vec![Vec::new(); cells];
        for (together, alone) in script {
            self.together(*together, &mut x, &mut begun, &mut under_way);
            for cell in 0..cells {
                for &step in &alone[cell] {
                    match step {
                        Alone::End(number) => {
                            if let Some(row) = pick(under_way[cell].len(), number) {
                                let which: usize = under_way[cell].remove(row);
                                self.end(&begun[which], cell, &mut x[cell]);
                            }
                        }
                        Alone::Scale => scale(&mut x[cell]),
                        Alone::Test(_) | Alone::TestUntilThere(_) => {}
                    }
                }
            }
        }
        for cell in 0..cells {
            for which in under_way[cell].drain(..).rev() {
                self.end(&begun[which], cell, &mut x[cell]);
            }
        }
        x
    }

    fn together(
        &self,
        together: Together,
        x: &mut [Vec<f64>],
        begun: &mut Vec<Begun>,
        under_way: &mut [Vec<usize>],
    ) {
        let before = x.to_vec();
        let first = |cell: usize| before[cell].first().copied().unwrap_or(0.5);
        let now = |second, op, shared| Begun { second, op, shared, x: before.clone() };
        match together {
            Together::Begin(second, op, shared) => {
                begun.push(now(second, op, shared));
                under_way.iter_mut().for_each(|row| row.push(begun.len() - 1));
            }
            Together::Exchange(second, op) => {
                let begun = now(second, op, false);
                x.iter_mut().enumerate().for_each(|(cell, x)| self.end(&begun, cell, x));
            }
            Together::Combine(op) => {
                let begun = now(false, op, true);
                x.iter_mut().enumerate().for_each(|(cell, x)| self.end(&begun, cell, x));
            }
            Together::Elements | Together::Messages => {
                let cells = x.len();
                for (cell, x) in x.iter_mut().enumerate() {
                    x.iter_mut().take(1).for_each(|x| *x += first((cell + cells - 1) % cells));
                }
            }
            Together::Greatest => {
                let greatest = (0..x.len()).map(first).fold(f64::NEG_INFINITY, f64::max);
                x.iter_mut().for_each(|x| x.iter_mut().take(1).for_each(|x| *x = greatest));
            }
        }
    }
}

/// The script as a cell's program.
fn perform(
    cell: &mut Cell<'_>,
    plans: &[Plan; 2],
    trees: &Collectives,
    script: &Script,
    mut x: Vec<f64>,
) -> Result<Vec<f64>, CellError> {
    let (id, cells) = (cell.id().0, cell.cell_count() as u32);
    let mut under_way: Vec<(&Plan, Pending)> = Vec::new();
    for (together, alone) in script {
        let first = x.first().copied().unwrap_or(0.5);
        let come = match *together {
            Together::Begin(second, op, shared) => {
                let plan = &plans[usize::from(second)];
                let begin = if shared { Cell::begin_shared } else { Cell::begin };
                under_way.push((plan, begin(cell, plan, op, &x)?));
                None
            }
            Together::Exchange(second, op) => {
                cell.exchange_nodes(&plans[usize::from(second)], op, &mut x)?;
                None
            }
            Together::Combine(op) => {
                cell.combine_shared(&plans[0], op, &mut x)?;
                None
            }
            Together::Elements => {
                cell.instantiate_phase("ring/p0")?;
                cell.send_element(own(cell), first)?;
                Some(cell.receive_element::<f64>(from_left(cell))?)
            }
            Together::Messages => {
                let mut come = [first];
                if cells > 1 {
                    cell.instantiate_messages()?;
                    cell.msg_send(CellId((id + 1) % cells), &come)?;
                    cell.msg_receive(CellId((id + cells - 1) % cells), &mut come)?;
                }
                Some(come[0])
            }
            Together::Greatest => {
                let mut greatest = [first];
                cell.allreduce(trees, Op::Max, &mut greatest)?;
                x.iter_mut().take(1).for_each(|x| *x = greatest[0]);
                None
            }
        };
        if let Some(come) = come {
            x.iter_mut().take(1).for_each(|x| *x += come);
        }
        for &step in &alone[id as usize] {
            match step {
                Alone::Test(number) => {
                    if let Some(row) = pick(under_way.len(), number) {
                        cell.test(&under_way[row].1)?;
                    }
                }
                Alone::TestUntilThere(number) => {
                    if let Some(row) = pick(under_way.len(), number) {
                        while !cell.test(&under_way[row].1)? {}
                    }
                }
                Alone::End(number) => {
                    if let Some(row) = pick(under_way.len(), number) {
                        let (plan, token) = under_way.remove(row);
                        cell.wait(plan, token, &mut x)?;
                    }
                }
                Alone::Scale => scale(&mut x),
            }
        }
    }
    for (plan, token) in under_way.into_iter().rev() {
        cell.wait(plan, token, &mut x)?;
    }
    Ok(x)
}

/// The same ids, of which each is owned by one of its holders.
fn owned(ids: &[Vec<u64>]) -> Vec<Owned> {
    let owner = |id: u64| (0..ids.len()).filter(|&c| ids[c].contains(&id)).max();
    let part = |(cell, list): (usize, &Vec<u64>)| {
        let (own, ghosts): (Vec<u64>, Vec<u64>) =
            list.iter().partition(|&&id| owner(id) == Some(cell));
        Owned { owned: own.len(), ids: [own, ghosts].concat() }
    };
    ids.iter().enumerate().map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) })]

    #[test]
    fn halves_of_exchanges_may_lie_anywhere(
        ids in prop::collection::vec(prop::collection::btree_set(0u64..8, 0..7), 1..=CELLS),
        script in scripts(),
        workers in 1usize..=CELLS,
        channels in prop::sample::select(vec![3u32, 12]),
    ) {
        let ids: Vec<Vec<u64>> = ids.into_iter().map(|ids| ids.into_iter().collect()).collect();
        let cells = ids.len() as u32;
        let shared = Layout::from_shared_ids(&ids).unwrap();
        let forward = Layout::from_owned(&owned(&ids)).unwrap().forward;
        let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = channels);
        let round = |c| Connection::new(CellId(c), CellId((c + 1) % cells), 1);
        let mut sets = vec![
            shared.set("shared", 1).unwrap(),
            forward.set("forward", 1).unwrap(),
            ConnectionSet::new("ring", (0..cells).map(round).collect()).unwrap(),
        ];
        sets.extend(tree_sets(&machine, 1).unwrap());
        let image = build::build_all(&machine, sets);
        let plans = [
            Plan::new(&image, "shared", shared.clone(), 1).unwrap(),
            Plan::new(&image, "forward", forward.clone(), 1).unwrap(),
        ];
        let trees = Collectives::new(&image).unwrap();
        let value = |cell: usize, at: usize| ((cell * 7 + at) as f64 + 0.3).sqrt();
        let x: Vec<Vec<f64>> = ids
            .iter()
            .enumerate()
            .map(|(cell, ids)| (0..ids.len()).map(|at| value(cell, at)).collect())
            .collect();
        let expected = Model { ids: &ids, layouts: [&shared, &forward] }.run(&script, x.clone());
        let bits = |x: &[Vec<f64>]| -> Vec<Vec<u64>> {
            x.iter().map(|x| x.iter().map(|x| x.to_bits()).collect()).collect()
        };
        for world in [World::new(image.clone()), threads(image, workers)] {
            let (found, _) = world
                .try_run(|cell| {
                    let x = x[cell.id().index()].clone();
                    perform(cell, &plans, &trees, &script, x)
                })
                .unwrap();
            prop_assert_eq!(bits(&found), bits(&expected), "{:?}", world);
        }
    }
}
