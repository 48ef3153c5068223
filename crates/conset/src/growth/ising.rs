//! Exact values of the Ising model on the square lattice.
//!
//! The partition function of a finite periodic lattice is B. Kaufman's (1949), in the form of
//! A. E. Ferdinand and M. E. Fisher (1969); the energy is its logarithmic derivative. The
//! magnetisation of the infinite lattice below the critical temperature is C. N. Yang's (1952).

use conset_ir::convert::{to_f64, to_u64};

/// The magnetisation of a site of the infinite lattice, (1 - sinh^-4 2 beta)^(1/8); 0 up to the
/// critical inverse temperature.
#[must_use]
pub fn magnetisation(beta: f64) -> f64 {
    (1.0 - (2.0 * beta).sinh().powi(-4)).max(0.0).powf(0.125)
}

/// The mean energy of a site of the periodic lattice with so many rows and columns, in units of the
/// coupling; between -2 and 0. For beta above 0.
#[must_use]
pub fn energy(side: u32, beta: f64) -> f64 {
    // The derivative is taken as a difference: at the critical temperature the analytic one is
    // a sum of terms without limit. The error is about side * STEP^2 / 6.
    const STEP: f64 = 1e-5;
    let change = log_partition(side, beta + STEP) - log_partition(side, beta - STEP);
    -change / (2.0 * STEP)
}

/// The logarithm of the partition function for each site.
fn log_partition(side: u32, beta: f64) -> f64 {
    let n = f64::from(side);
    let (sinh, cosh) = ((2.0 * beta).sinh(), (2.0 * beta).cosh());
    // cosh gamma_l = cosh 2 beta coth 2 beta - cos(pi l / n); gamma_0 changes its sign at the
    // critical temperature.
    let gamma = |l: u32| match l {
        0 => 2.0 * beta + beta.tanh().ln(),
        _ => (cosh * cosh / sinh - (std::f64::consts::PI * f64::from(l) / n).cos()).acosh(),
    };
    // The four products of 2 cosh or 2 sinh (n gamma_l / 2) over odd or even l: logarithm and sign.
    let product = |first: u32, sign: f64| {
        let halves = (0..side).map(|r| 0.5 * n * gamma(2 * r + first));
        halves.fold((0.0, 1.0), |(log, total), half: f64| {
            // 2 cosh x = e^|x| (1 + e^(-2|x|)), and 2 sinh |x| with the other sign.
            let rest = 1.0 + sign * (-2.0 * half.abs()).exp();
            let odd = if sign < 0.0 { half.signum() } else { 1.0 };
            (log + half.abs() + rest.ln(), total * odd)
        })
    };
    let products = [product(1, 1.0), product(1, -1.0), product(0, 1.0), product(0, -1.0)];
    let most = products.iter().map(|(log, _)| *log).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = products.iter().map(|(log, sign)| sign * (log - most).exp()).sum();
    let sites = n * n;
    0.5 * (2.0 * sinh).ln() + (most + sum.ln() - 2_f64.ln()) / sites
}

/// Mean and standard error of numbers that follow each other in a chain and are correlated over
/// less than a block of them: the error is that of the means of `blocks` blocks.
#[must_use]
pub fn blocked(numbers: &[f64], blocks: usize) -> (f64, f64) {
    let length = (numbers.len() / blocks.max(1)).max(1);
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / to_f64(to_u64(numbers.len().max(1)));
    let means: Vec<f64> = numbers.chunks_exact(length).map(mean).collect();
    let (count, whole) = (to_f64(to_u64(means.len())), mean(&means));
    let squares: f64 = means.iter().map(|mean| (mean - whole).powi(2)).sum();
    (whole, (squares / (count * (count - 1.0)).max(1.0)).sqrt())
}
