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
