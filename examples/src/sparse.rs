//! Sparse matrices in compressed row format.
//!
//! A matrix is assembled from element matrices: first the pattern, from the nodes that share an
//! element, then the values in the order of elements. The order affects only the last bits.

/// A sparse square matrix; row `i` has the entries `first[i]..first[i + 1]`.
#[derive(Clone, Debug)]
pub struct Csr {
    /// Where each row begins; one more than there are rows.
    pub first: Vec<usize>,
    /// The column of each entry, ascending within a row.
    pub columns: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f64>,
}

impl Default for Csr {
    /// A matrix without rows.
    fn default() -> Self {
        Self { first: vec![0], columns: Vec::new(), values: Vec::new() }
    }
}

impl Csr {
    /// The zero matrix with an entry wherever two nodes share an element, `block` unknowns for
    /// each node: unknown `i` of node `n` has row `n * block + i`.
    pub fn pattern<'a>(
        nodes: usize,
        block: usize,
        elements: impl Iterator<Item = &'a [u32]>,
    ) -> Self {
        let mut pairs: Vec<(u32, u32)> =
            elements.flat_map(|e| e.iter().flat_map(|&a| e.iter().map(move |&b| (a, b)))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut this = Self::default();
        let mut rows = pairs.chunk_by(|a, b| a.0 == b.0).peekable();
        for node in 0..nodes as u32 {
            let row = rows.next_if(|row| row[0].0 == node).unwrap_or(&[]);
            for _ in 0..block {
                for &(_, neighbour) in row {
                    let column = neighbour * block as u32;
                    this.columns.extend(column..column + block as u32);
                }
                this.first.push(this.columns.len());
            }
        }
        this.values = vec![0.0; this.columns.len()];
        this
    }

    /// Adds to an entry of the pattern.
    ///
    /// # Panics
    /// There is no such entry.
    pub fn add(&mut self, row: usize, column: usize, value: f64) {
        let entries = self.first[row]..self.first[row + 1];
        let at = self.columns[entries.clone()].binary_search(&(column as u32));
        self.values[entries.start + at.expect("the pattern has all pairs of an element")] += value;
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of entries: a product takes twice as many operations.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The product with a vector.
    pub fn times(&self, x: &[f64], product: &mut [f64]) {
        product.iter_mut().enumerate().for_each(|(row, sum)| *sum = self.row_times(row, x));
    }

    /// Some rows of the product with a vector; how many operations that took.
    pub fn rows_times(&self, rows: &[usize], x: &[f64], product: &mut [f64]) -> usize {
        rows.iter().for_each(|&row| product[row] = self.row_times(row, x));
        rows.iter().map(|&row| 2 * (self.first[row + 1] - self.first[row])).sum()
    }

    fn row_times(&self, row: usize, x: &[f64]) -> f64 {
        let entries = self.first[row]..self.first[row + 1];
        let terms = self.columns[entries.clone()].iter().zip(&self.values[entries]);
        terms.map(|(&column, value)| value * x[column as usize]).sum()
    }

    /// The entries on the diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        let entry = |row: usize| {
            let entries = self.first[row]..self.first[row + 1];
            let at = self.columns[entries.clone()].binary_search(&(row as u32));
            at.map_or(0.0, |at| self.values[entries.start + at])
        };
        (0..self.rows()).map(entry).collect()
    }
}

/// The inner product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `y + factor * x`, in `y`.
pub fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * x);
}

/// The largest difference between two vectors; NaN where one has a NaN.
///
/// # Panics
/// Their lengths differ.
pub fn max_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    largest(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

/// The largest entry, without sign; NaN where there is one.
pub fn max_norm(a: &[f64]) -> f64 {
    largest(a.iter().map(|a| a.abs()))
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_add_up() {
        let elements: [&[u32]; 2] = [&[0, 1], &[1, 3]];
        let mut matrix = Csr::pattern(4, 2, elements.into_iter());
        assert_eq!((matrix.rows(), matrix.nonzeros()), (8, 4 * 7));
        matrix.add(2, 7, 3.0);
        matrix.add(2, 7, 1.0);
        matrix.add(2, 2, 5.0);
        let x: Vec<f64> = (0..8).map(f64::from).collect();
        let mut product = vec![9.0; 8];
        matrix.times(&x, &mut product);
        assert_eq!(product, [0.0, 0.0, 38.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(matrix.diagonal()[2], 5.0);
    }
}
