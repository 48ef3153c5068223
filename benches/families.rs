//! Families of connection sets: what the planners are measured on.
//!
//! A family makes a set for any machine of at least two cells with agents, in which every cell
//! takes part alike: random targets, permutations, the classical patterns of networks, stencils,
//! transforms, all-to-all. Random ones depend on their seed alone. Cells are numbered in the order
//! of the machine's live agents; patterns with a geometry use the machine's dimensions, or the
//! nearest thing to a square where it has none.

use conset_ir::{CellId, Connection, ConnectionSet, Machine};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The families, by name.
pub const FAMILIES: [&str; 26] = [
    "random-3",
    "random-12",
    "random-40",
    "uniform-6",
    "power-6",
    "permutation",
    "permutations-4",
    "transpose",
    "bit-reversal",
    "bit-complement",
    "tornado",
    "half-shift",
    "shuffle",
    "butterfly",
    "shift-3-2",
    "hot-spots",
    "all-to-one",
    "stencil-5",
    "stencil-9",
    "stencil-27",
    "fft-blocks",
    "fft-rows",
    "groups-8",
    "all-to-all",
    "a2av",
    "one-to-all",
];

/// The cells that take part, and how they lie.
struct Cells {
    ids: Vec<CellId>,
    dims: Vec<usize>,
}

impl Cells {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn coordinates(&self, mut cell: usize) -> Vec<usize> {
        self.dims
            .iter()
            .map(|&d| {
                let at = cell % d;
                cell /= d;
                at
            })
            .collect()
    }

    fn number(&self, at: &[usize]) -> usize {
        at.iter().zip(&self.dims).rev().fold(0, |sum, (&c, &d)| sum * d + c)
    }

    fn moved(&self, cell: usize, by: &[i64]) -> usize {
        let at = self
            .coordinates(cell)
            .iter()
            .zip(&self.dims)
            .zip(by)
            .map(|((&c, &d), &by)| (c as i64 + by).rem_euclid(d as i64) as usize)
            .collect::<Vec<_>>();
        self.number(&at)
    }

    /// Bits of a cell's number, where the number of cells is cut to a power of two.
    fn bits(&self) -> u32 {
        self.len().ilog2()
    }
}

fn dims(machine: &Machine, count: usize) -> Vec<usize> {
    if let Some(dims) = machine.topology().dims() {
        let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
        if dims.iter().product::<usize>() == count && dims.len() > 1 {
            return dims;
        }
    }
    let mut side = count.isqrt();
    while !count.is_multiple_of(side) {
        side -= 1;
    }
    vec![side, count / side]
}

/// The set of a family; `None` for a name that is none.
pub fn family(name: &str, machine: &Machine, words: u32, seed: u64) -> Option<ConnectionSet> {
    let ids: Vec<CellId> = machine.endpoints().collect();
    let cells = Cells { dims: dims(machine, ids.len()), ids };
    let n = cells.len();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sends: Vec<(usize, usize, u32)> = Vec::new();
    let each = |sends: &mut Vec<(usize, usize, u32)>, to: &mut dyn FnMut(usize) -> usize| {
        for cell in 0..n {
            sends.push((cell, to(cell), words));
        }
    };
    let random = |sends: &mut Vec<(usize, usize, u32)>, rng: &mut ChaCha8Rng, count: usize| {
        for cell in 0..n {
            let mut targets: Vec<usize> = (0..n).filter(|&t| t != cell).collect();
            targets.shuffle(rng);
            targets.truncate(count);
            sends.extend(targets.into_iter().map(|t| (cell, t, words)));
        }
    };
    let bits = cells.bits();
    let pow = 1usize << bits;
    let in_pow = |cell: usize, to: usize| if cell < pow { to } else { cell };
    match name {
        "random-3" => random(&mut sends, &mut rng, 3),
        "random-12" => random(&mut sends, &mut rng, 12),
        "random-40" => random(&mut sends, &mut rng, 40),
        "uniform-6" | "power-6" => {
            random(&mut sends, &mut rng, 6);
            for send in &mut sends {
                let u: f64 = rng.random_range(0.0..1.0);
                send.2 = match name {
                    "uniform-6" => 1 + (u * f64::from(2 * words)) as u32,
                    // Pareto with exponent 1.5, its mean about `words`, cut at 20 times that.
                    _ => (f64::from(words) / 3.0 * (1.0 - u).powf(-1.0 / 1.5))
                        .clamp(1.0, 20.0 * f64::from(words)) as u32,
                };
            }
        }
        "permutation" | "permutations-4" => {
            for _ in 0..if name == "permutation" { 1 } else { 4 } {
                let mut targets: Vec<usize> = (0..n).collect();
                targets.shuffle(&mut rng);
                each(&mut sends, &mut |cell| targets[cell]);
            }
        }
        "transpose" => each(&mut sends, &mut |cell| {
            let mut at = cells.coordinates(cell);
            if cells.dims.iter().all(|&d| d == cells.dims[0]) {
                at.rotate_left(1);
                cells.number(&at)
            } else {
                // The matrix of a x b cells, read by columns.
                let (a, b) = (cells.dims[0], n / cells.dims[0]);
                (cell % a) * b + cell / a
            }
        }),
        "bit-reversal" => each(&mut sends, &mut |cell| {
            in_pow(
                cell,
                (0..bits).fold(0, |sum, bit| sum | ((cell >> bit & 1) << (bits - 1 - bit))),
            )
        }),
        "bit-complement" => each(&mut sends, &mut |cell| in_pow(cell, pow - 1 - cell % pow)),
        "tornado" => each(&mut sends, &mut |cell| {
            let by: Vec<i64> = cells.dims.iter().map(|&d| (d as i64 - 1) / 2).collect();
            cells.moved(cell, &by)
        }),
        "half-shift" => each(&mut sends, &mut |cell| {
            let by: Vec<i64> = cells.dims.iter().map(|&d| d as i64 / 2).collect();
            cells.moved(cell, &by)
        }),
        "shuffle" => each(&mut sends, &mut |cell| {
            in_pow(cell, (cell << 1 | cell >> bits.saturating_sub(1)) & (pow - 1))
        }),
        "butterfly" => {
            for bit in 0..bits {
                each(&mut sends, &mut |cell| in_pow(cell, cell ^ 1 << bit));
            }
        }
        "shift-3-2" => each(&mut sends, &mut |cell| {
            let by = [3, 2, 1, 0, 0, 0, 0, 0, 0, 0];
            cells.moved(cell, &by)
        }),
        "hot-spots" => {
            let spots: Vec<usize> = (0..4.min(n)).map(|_| rng.random_range(0..n)).collect();
            for cell in 0..n {
                for _ in 0..3 {
                    let to = if rng.random_range(0..4) == 0 {
                        spots[rng.random_range(0..spots.len())]
                    } else {
                        rng.random_range(0..n)
                    };
                    sends.push((cell, to, words));
                }
            }
        }
        "all-to-one" => each(&mut sends, &mut |_| 0),
        "one-to-all" => sends.extend((0..n).map(|to| (0, to, words))),
        "stencil-5" | "stencil-9" | "stencil-27" => {
            let around = if name == "stencil-5" { 1 } else { cells.dims.len() };
            let around = if name == "stencil-9" { around.min(2) } else { around };
            let d = cells.dims.len();
            for code in 0..3usize.pow(d as u32) {
                let by: Vec<i64> =
                    (0..d).map(|i| (code / 3usize.pow(i as u32) % 3) as i64 - 1).collect();
                let moved = by.iter().filter(|&&b| b != 0).count();
                if moved > 0 && moved <= around {
                    each(&mut sends, &mut |cell| cells.moved(cell, &by));
                }
            }
        }
        "fft-blocks" => {
            // Exchanges over distances of 1, 2, 4 ... in blocks of a row, all at once.
            for bit in 0..bits {
                each(&mut sends, &mut |cell| (cell + (1 << bit)) % n);
                each(&mut sends, &mut |cell| (cell + n - (1 << bit) % n) % n);
            }
        }
        "fft-rows" => {
            for cell in 0..n {
                let at = cells.coordinates(cell);
                for dim in 0..cells.dims.len() {
                    for to in 0..cells.dims[dim] {
                        let mut other = at.clone();
                        other[dim] = to;
                        sends.push((cell, cells.number(&other), words));
                    }
                }
            }
        }
        "groups-8" => {
            let mut order: Vec<usize> = (0..n).collect();
            order.shuffle(&mut rng);
            for group in order.chunks(8) {
                for &a in group {
                    sends.extend(group.iter().map(|&b| (a, b, words)));
                }
            }
        }
        "all-to-all" | "a2av" => {
            for a in 0..n {
                for b in 0..n {
                    let words =
                        if name == "a2av" { 1 + rng.random_range(0..2 * words) } else { words };
                    sends.push((a, b, words));
                }
            }
        }
        _ => return None,
    }
    let connections = sends
        .into_iter()
        .filter(|(a, b, _)| a != b)
        .map(|(a, b, words)| Connection::new(cells.ids[a], cells.ids[b], words))
        .collect();
    let set = ConnectionSet::new(name, connections).expect("families are small and valid");
    Some(set)
}
