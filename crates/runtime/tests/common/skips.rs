//! Programs of which one cell skips a collective call, or makes one twice, drawn from a seed. Words
//! say of which round they are, so that a program sees when others' come.

#![allow(dead_code, unreachable_pub, clippy::print_stderr)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conset_runtime::ir::Image;
use conset_runtime::{By, Cell, CellError, Layout, Op, Owned, Pending, PhaseName, Plan};

use super::build;

const LENGTH: usize = 12;

/// What a job says when a word of another round has come.
pub const WRONG: &str = "a word of another round came";

/// Numbers from a seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
        (self.0 >> 33) as usize % limit
    }
}

/// What all cells do, one after the other: in which way, and with which of the sets.
#[derive(Clone, Debug)]
pub struct Script(Vec<(usize, usize)>);

/// A cell that does one of the calls so many times: 0 or 2.
#[derive(Clone, Copy, Debug)]
pub struct Odd {
    pub cell: u32,
    at: usize,
    times: usize,
}

/// A script of so many of the ways, and the odd cell.
pub fn drawn(seed: u64, cells: u32, ways: usize) -> (Script, Odd) {
    let mut drawn = Drawn(seed);
    drawn.below(2);
    let script = (0..LENGTH).map(|_| (drawn.below(ways), drawn.below(2))).collect();
    let cell = drawn.below(cells as usize) as u32;
    let odd = Odd { cell, at: drawn.below(LENGTH), times: 2 * drawn.below(2) };
    (Script(script), odd)
}

/// How cells say where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Nothing,
    Place,
    Round,
}

/// Plans by which each cell gets an entry of the cell before it, and of the cell behind it.
pub fn plans(cells: u32) -> (Arc<Image>, [Plan; 2]) {
    let machine = build::machine(&format!("ring:{cells}"), |p| p.channels_per_cell = 12);
    let layouts = [cells - 1, 1].map(|step| {
        let part =
            |c: u32| Owned { owned: 1, ids: vec![u64::from(c), u64::from((c + step) % cells)] };
        Layout::from_owned(&(0..cells).map(part).collect::<Vec<_>>()).unwrap().forward
    });
    let names = ["one", "two"];
    let sets = [0, 1].map(|at| layouts[at].set(names[at], 1).unwrap());
    let image = build::build_all(&machine, sets);
    let [one, two] = layouts;
    let plan = |name: &str, layout| Plan::new(&image, name, layout, 1).unwrap();
    let plans = [plan("one", one), plan("two", two)];
    (image, plans)
}

/// One cell's program. Counts words of other rounds.
pub fn perform(
    cell: &mut Cell<'_>,
    plans: &[Plan; 2],
    (script, odd): &(Script, Odd),
    says: Says,
    wrong: &AtomicUsize,
) -> Result<(), CellError> {
    let (id, cells) = (cell.id().0, cell.cell_count() as u32);
    let mut begun: Option<(usize, usize, Pending, [f64; 2])> = None;
    let look = |index: usize, which: usize, found: f64| {
        let step = if which == 0 { cells - 1 } else { 1 };
        let expected = index as f64 * 1000.0 + f64::from((id + step) % cells);
        if found != expected {
            wrong.fetch_add(1, Ordering::Relaxed);
            if std::env::var_os("CONSET_MPI_CASE").is_some() {
                // The job may be ended before anybody counts.
                eprintln!("{WRONG}");
            }
        }
    };
    for (index, &(way, which)) in script.0.iter().enumerate() {
        match says {
            Says::Nothing => {}
            Says::Place => cell.set_place("script", index as u32 + 1),
            Says::Round => cell.set_round(index as u64 + 1),
        }
        let times = if (id, index) == (odd.cell, odd.at) { odd.times } else { 1 };
        for _ in 0..times {
            let own = index as f64 * 1000.0 + f64::from(id);
            let (plan, mut x) = (&plans[which], [own, -1.0]);
            match way {
                0 => cell.exchange_nodes(plan, Op::Copy, &mut x)?,
                1 => cell.exchange_many(plan, Op::Copy, &mut [&mut x])?,
                2 => {
                    if let Some((index, which, token, mut x)) = begun.take() {
                        cell.wait(&plans[which], token, &mut x)?;
                        look(index, which, x[1]);
                    }
                    begun = Some((index, which, cell.start(plan, Op::Copy, &x)?, x));
                    continue;
                }
                3 => {
                    cell.instantiate_phase(PhaseName::new(["one", "two"][which], 0))?;
                    let (out, inn) = (cell.connections_out(which)?, cell.connections_in(which)?);
                    for &connection in out {
                        cell.send_element(connection, own)?;
                    }
                    for &connection in inn {
                        x[1] = cell.receive_element(connection)?;
                    }
                }
                _ => cell.exchange_nodes_by(By::Messages, plan, Op::Copy, &mut x)?,
            }
            look(index, which, x[1]);
        }
    }
    if let Some((index, which, token, mut x)) = begun {
        cell.wait(&plans[which], token, &mut x)?;
        look(index, which, x[1]);
    }
    Ok(())
}
