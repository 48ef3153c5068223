//! The hand-written exchange in C that the bench `mpi` compares with (`shim/baseline.c`).

use std::ffi::c_int;

use conset_ir::convert::index;

use super::ffi::to_c_int;

#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn conset_baseline_new(
        neighbours: c_int,
        ranks: *const c_int,
        first: *const c_int,
        gather: *const u32,
        scatter: *const u32,
    ) -> *mut Raw;
    fn conset_baseline_start(baseline: *mut Raw, x: *const f64);
    fn conset_baseline_complete(baseline: *mut Raw, x: *mut f64);
    fn conset_baseline_naive(baseline: *mut Raw, x: *mut f64, rounds: c_int);
    fn conset_baseline_naive_float(baseline: *mut Raw, x: *mut f32, rounds: c_int);
    fn conset_baseline_persistent(baseline: *mut Raw, x: *mut f64, rounds: c_int);
    fn conset_baseline_alltoallv(
        baseline: *mut Raw,
        out: *const u64,
        out_counts: *const c_int,
        out_first: *const c_int,
        into: *mut u64,
        in_counts: *const c_int,
        in_first: *const c_int,
    );
    fn conset_baseline_tree_sum(
        baseline: *mut Raw,
        from: *const f64,
        out: *mut f64,
        scratch: *mut f64,
        words: c_int,
        rounds: c_int,
    );
    fn conset_baseline_allreduce(
        baseline: *mut Raw,
        from: *const f64,
        out: *mut f64,
        words: c_int,
        rounds: c_int,
    );
    fn conset_baseline_reduce(
        baseline: *mut Raw,
        from: *const f64,
        out: *mut f64,
        words: c_int,
        rounds: c_int,
    );
    fn conset_baseline_barrier(baseline: *mut Raw);
    fn conset_baseline_sleep(baseline: *mut Raw);
}

/// The exchange of a vector's entries over the world's communicator, written by hand in C.
/// Never freed.
#[derive(Debug)]
pub struct Baseline {
    raw: *mut Raw,
    words: usize,
}

impl Baseline {
    /// Sends the entries `gather` to each of `ranks`, as many as are added at `scatter`.
    /// Collective. MPI must have been initialised.
    ///
    /// # Panics
    /// Lists of different lengths.
    pub fn new(ranks: &[usize], gather: &[Vec<u32>], scatter: &[Vec<u32>]) -> Self {
        let mut first: Vec<c_int> = vec![0];
        for (out, inn) in gather.iter().zip(scatter) {
            assert_eq!(out.len(), inn.len());
            first.push(first[first.len() - 1] + to_c_int(out.len()));
        }
        assert!(ranks.len() == gather.len() && ranks.len() == scatter.len());
        let ranks: Vec<c_int> = ranks.iter().map(|&rank| to_c_int(rank)).collect();
        let (gather, scatter) = (gather.concat(), scatter.concat());
        let words = gather.iter().chain(&scatter).max().map_or(0, |&last| index(last) + 1);
        let (g, s, n) = (gather.as_ptr(), scatter.as_ptr(), to_c_int(ranks.len()));
        // SAFETY: the arrays are as long as `first` says, and are copied.
        let raw = unsafe { conset_baseline_new(n, ranks.as_ptr(), first.as_ptr(), g, s) };
        Self { raw, words }
    }

    /// Exchanges by `MPI_Irecv`, `MPI_Isend` and `MPI_Waitall`.
    pub fn naive(&self, x: &mut [f64], rounds: usize) {
        assert!(x.len() >= self.words);
        // SAFETY: all positions are in the vector.
        unsafe { conset_baseline_naive(self.raw, x.as_mut_ptr(), to_c_int(rounds)) };
    }

    /// The first half of [`Baseline::naive`]: all messages are started, and the program can compute.
    pub fn start(&self, x: &[f64]) {
        assert!(x.len() >= self.words);
        // SAFETY: all positions are in the vector; it is packed before this returns.
        unsafe { conset_baseline_start(self.raw, x.as_ptr()) };
    }

    /// The second half, after [`Baseline::start`].
    pub fn complete(&self, x: &mut [f64]) {
        assert!(x.len() >= self.words);
        // SAFETY: all positions are in the vector.
        unsafe { conset_baseline_complete(self.raw, x.as_mut_ptr()) };
    }

    /// [`Baseline::naive`] with `MPI_FLOAT`.
    pub fn naive_float(&self, x: &mut [f32], rounds: usize) {
        assert!(x.len() >= self.words);
        // SAFETY: all positions are in the vector.
        unsafe { conset_baseline_naive_float(self.raw, x.as_mut_ptr(), to_c_int(rounds)) };
    }

    /// Exchanges by persistent requests.
    pub fn persistent(&self, x: &mut [f64], rounds: usize) {
        assert!(x.len() >= self.words);
        // SAFETY: all positions are in the vector.
        unsafe { conset_baseline_persistent(self.raw, x.as_mut_ptr(), to_c_int(rounds)) };
    }

    /// Exchanges words by `MPI_Alltoallv`: so many words to each rank, and so many from each, in the
    /// order of the ranks.
    ///
    /// # Panics
    /// Buffers of other lengths than the counts together.
    pub fn alltoallv(
        &self,
        (out, out_counts): (&[u64], &[usize]),
        (into, in_counts): (&mut [u64], &[usize]),
    ) {
        let first = |counts: &[usize]| -> Vec<c_int> {
            let ends = counts.iter().scan(0, |next, count| {
                let first = *next;
                *next += count;
                Some(to_c_int(first))
            });
            ends.collect()
        };
        let sizes =
            |counts: &[usize]| -> Vec<c_int> { counts.iter().map(|&n| to_c_int(n)).collect() };
        assert_eq!(out.len(), out_counts.iter().sum::<usize>());
        assert_eq!(into.len(), in_counts.iter().sum::<usize>());
        let (out_first, in_first) = (first(out_counts), first(in_counts));
        let (out_counts, in_counts) = (sizes(out_counts), sizes(in_counts));
        // SAFETY: the buffers have the words that the counts state, as was checked.
        unsafe {
            conset_baseline_alltoallv(
                self.raw,
                out.as_ptr(),
                out_counts.as_ptr(),
                out_first.as_ptr(),
                into.as_mut_ptr(),
                in_counts.as_ptr(),
                in_first.as_ptr(),
            );
        }
    }

    /// Sums arrays over all ranks, as often as `rounds` says, over the binomial tree of
    /// [`crate::tree_sets`] written by hand with `MPI_Send` and `MPI_Recv`.
    ///
    /// # Panics
    /// Arrays of different lengths.
    pub fn tree_sum(&self, from: &[f64], out: &mut [f64], scratch: &mut [f64], rounds: usize) {
        assert!(from.len() == out.len() && from.len() == scratch.len());
        let (words, rounds) = (to_c_int(from.len()), to_c_int(rounds));
        let (from, out, scratch) = (from.as_ptr(), out.as_mut_ptr(), scratch.as_mut_ptr());
        // SAFETY: the arrays have so many words.
        unsafe { conset_baseline_tree_sum(self.raw, from, out, scratch, words, rounds) };
    }

    /// The same by `MPI_Allreduce`, whose order of summation is the library's.
    ///
    /// # Panics
    /// Arrays of different lengths.
    pub fn allreduce(&self, from: &[f64], out: &mut [f64], rounds: usize) {
        assert_eq!(from.len(), out.len());
        let (words, rounds) = (to_c_int(from.len()), to_c_int(rounds));
        // SAFETY: as above.
        unsafe {
            conset_baseline_allreduce(self.raw, from.as_ptr(), out.as_mut_ptr(), words, rounds);
        }
    }

    /// The same by `MPI_Reduce`: rank 0 alone has the sums.
    ///
    /// # Panics
    /// Arrays of different lengths.
    pub fn reduce(&self, from: &[f64], out: &mut [f64], rounds: usize) {
        assert_eq!(from.len(), out.len());
        let (words, rounds) = (to_c_int(from.len()), to_c_int(rounds));
        // SAFETY: as above.
        unsafe {
            conset_baseline_reduce(self.raw, from.as_ptr(), out.as_mut_ptr(), words, rounds);
        }
    }

    /// `MPI_Barrier`.
    pub fn barrier(&self) {
        // SAFETY: the baseline is never freed.
        unsafe { conset_baseline_barrier(self.raw) };
    }

    /// A barrier in which nobody uses the core.
    pub fn sleep(&self) {
        // SAFETY: as above.
        unsafe { conset_baseline_sleep(self.raw) };
    }
}

#[repr(C)]
struct RawHalo {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn conset_baseline_halo_new(
        neighbours: c_int,
        words: c_int,
        ranks: *const c_int,
        positions: *const u32,
        ghosts: usize,
    ) -> *mut RawHalo;
    fn conset_baseline_halo_doubles(halo: *mut RawHalo, x: *mut f64, rounds: c_int);
    fn conset_baseline_halo_floats(halo: *mut RawHalo, x: *mut f32, rounds: c_int);
}

/// A halo over the world's communicator, written by hand in C (`shim/baseline_halo.c`): as many words
/// for each neighbour. Never freed.
#[derive(Debug)]
pub struct BaselineHalo {
    raw: *mut RawHalo,
    room: usize,
}

impl BaselineHalo {
    /// Sends `words` entries to each rank, at `positions`; the ghosts begin at `ghosts`, neighbour by
    /// neighbour. Collective. MPI must have been initialised.
    ///
    /// # Panics
    /// Another number of positions.
    pub fn new(ranks: &[usize], words: usize, positions: &[u32], ghosts: usize) -> Self {
        assert_eq!(positions.len(), ranks.len() * words);
        let room = ghosts + positions.len();
        assert!(positions.iter().all(|&at| index(at) < room));
        let ranks: Vec<c_int> = ranks.iter().map(|&rank| to_c_int(rank)).collect();
        let (n, words) = (to_c_int(ranks.len()), to_c_int(words));
        // SAFETY: the arrays are as long as the numbers say, and are copied.
        let raw = unsafe {
            conset_baseline_halo_new(n, words, ranks.as_ptr(), positions.as_ptr(), ghosts)
        };
        Self { raw, room }
    }

    /// Exchanges by `MPI_Irecv`, `MPI_Isend` and `MPI_Waitall`.
    pub fn doubles(&self, x: &mut [f64], rounds: usize) {
        assert!(x.len() >= self.room);
        // SAFETY: all positions are in the vector.
        unsafe { conset_baseline_halo_doubles(self.raw, x.as_mut_ptr(), to_c_int(rounds)) };
    }

    /// The same with numbers of 4 bytes (`MPI_FLOAT`).
    pub fn floats(&self, x: &mut [f32], rounds: usize) {
        assert!(x.len() >= self.room);
        // SAFETY: as above.
        unsafe { conset_baseline_halo_floats(self.raw, x.as_mut_ptr(), to_c_int(rounds)) };
    }
}

type Unknown =
    unsafe extern "C" fn(c_int, *const c_int, c_int, *const u64, *mut u64, c_int) -> c_int;

unsafe extern "C" {
    fn conset_baseline_by_counts(
        count: c_int,
        targets: *const c_int,
        words: c_int,
        out: *const u64,
        into: *mut u64,
        room: c_int,
    ) -> c_int;
    fn conset_baseline_nbx(
        count: c_int,
        targets: *const c_int,
        words: c_int,
        out: *const u64,
        into: *mut u64,
        room: c_int,
    ) -> c_int;
}

/// An exchange with ranks that do not expect it, written by hand in C (`shim/baseline_unknown.c`).
#[derive(Clone, Copy, Debug)]
pub enum UnknownBy {
    /// The counts by `MPI_Alltoall` first.
    Counts,
    /// NBX: synchronous sends, probes, a nonblocking barrier.
    Nbx,
}

/// Sends so many words to each target, one after the other in `out`; how many words of `into` were
/// received. Collective. MPI must have been initialised.
///
/// # Panics
/// Words that are not as many as the targets need.
pub fn exchange_unknown(by: UnknownBy, targets: &[usize], out: &[u64], into: &mut [u64]) -> usize {
    let words = out.len().checked_div(targets.len()).unwrap_or(0);
    assert_eq!(words * targets.len(), out.len());
    let ranks: Vec<c_int> = targets.iter().map(|&rank| to_c_int(rank)).collect();
    let call: Unknown = match by {
        UnknownBy::Counts => conset_baseline_by_counts,
        UnknownBy::Nbx => conset_baseline_nbx,
    };
    let (count, words, room) = (to_c_int(ranks.len()), to_c_int(words), to_c_int(into.len()));
    // SAFETY: the arrays have as many elements as the numbers say.
    let found =
        unsafe { call(count, ranks.as_ptr(), words, out.as_ptr(), into.as_mut_ptr(), room) };
    conset_ir::convert::to_usize(found)
}
