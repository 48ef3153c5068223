//! Ranks of methods, and how far a model agrees with the fabric.
//!
//! Methods with equal values have the same rank, one more than the number of those below. A model
//! ranks a pair of methods as the fabric does if it prefers the faster one; pairs that the fabric
//! finds equally fast are not counted, and a model that cannot tell the two apart is wrong about
//! them.

use conset_ir::convert::to_f64;
use serde::Serialize;

use super::{Measured, MethodRow, Model};

/// What a model says of a method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelValue {
    /// Clocks; units of communication in the C3 model.
    pub value: f64,
    /// One more than the number of methods with a lower value.
    pub rank: u32,
    /// The value in clocks, if there are measurements; in the C3 model after the fit.
    pub clocks: Option<f64>,
    /// Predicted minus measured clocks, in percent of the measured ones.
    pub error_percent: Option<f64>,
}

impl ModelValue {
    pub(super) fn new(value: f64) -> Self {
        Self { value, rank: 0, clocks: None, error_percent: None }
    }
}

/// How far a model agrees with the fabric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelSummary {
    /// The model.
    pub model: Model,
    /// Methods that have both a value and a measurement.
    pub methods: usize,
    /// The factor from units to clocks, fitted to the measurements of these methods: the geometric
    /// mean of their ratios. Only the C3 model has one.
    pub clocks_per_unit: Option<f64>,
    /// The median of the errors without their signs.
    pub median_error_percent: f64,
    /// The error with the greatest absolute value.
    pub worst_error_percent: f64,
    /// The method of the greatest error.
    pub worst_method: String,
    /// Pairs of methods that the fabric finds different.
    pub pairs: u64,
    /// The share of these pairs that the model ranks as the fabric does; `None` if there are none.
    pub pairs_alike_percent: Option<f64>,
    /// Measured clocks of the method that the model ranks first, divided by those of the fastest one;
    /// of several that it ranks first, of the slowest.
    pub choice_over_fastest: f64,
}

/// Sets the ranks, clocks and errors of all rows, and summarises each model that has measurements.
pub(crate) fn rank(rows: &mut [MethodRow], models: &[Model], measure: bool) -> Vec<ModelSummary> {
    let clocks: Vec<Option<f64>> =
        rows.iter().map(|row| row.measured.map(|m| to_f64(m.clocks))).collect();
    for (row, rank) in rows.iter_mut().zip(ranks(&clocks)) {
        row.measured = row.measured.zip(rank).map(|(m, rank)| Measured { rank, ..m });
    }
    let mut summaries = Vec::new();
    for &model in models {
        let values: Vec<Option<f64>> =
            rows.iter().map(|row| row.value(model).map(|value| value.value)).collect();
        let factor = match model {
            Model::C3 => fitted(&values, &clocks),
            Model::Paper | Model::Steps => Some(1.0),
        };
        for ((row, rank), measured) in rows.iter_mut().zip(ranks(&values)).zip(&clocks) {
            let Some(value) = row.value_mut(model) else { continue };
            value.rank = rank.unwrap_or(0);
            value.clocks = factor.filter(|_| measure).map(|factor| value.value * factor);
            value.error_percent = value
                .clocks
                .zip(*measured)
                .map(|(clocks, measured)| 100.0 * (clocks - measured) / measured.max(1.0));
        }
        let clocks_per_unit = factor.filter(|_| model == Model::C3);
        summaries.extend(summary(rows, model, clocks_per_unit));
    }
    summaries
}

/// Values with their ranks.
pub(crate) fn ranked(values: &[Option<f64>]) -> Vec<Option<ModelValue>> {
    let pairs = values.iter().zip(ranks(values));
    let value = |(value, rank): (&Option<f64>, Option<u32>)| {
        let (value, rank) = value.zip(rank)?;
        Some(ModelValue { rank, ..ModelValue::new(value) })
    };
    pairs.map(value).collect()
}

/// The rank of each value.
fn ranks(values: &[Option<f64>]) -> Vec<Option<u32>> {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |value: f64| {
        let lower = sorted.partition_point(|other| other.total_cmp(&value).is_lt());
        u32::try_from(lower + 1).unwrap_or(u32::MAX)
    };
    values.iter().map(|value| value.map(rank)).collect()
}

/// The factor from units to clocks with the least squares of the logarithms of its errors.
fn fitted(units: &[Option<f64>], clocks: &[Option<f64>]) -> Option<f64> {
    let pairs = units.iter().zip(clocks).filter_map(|(units, clocks)| units.zip(*clocks));
    let logs: Vec<f64> = pairs
        .filter(|&(units, clocks)| units > 0.0 && clocks > 0.0)
        .map(|(units, clocks)| (clocks / units).ln())
        .collect();
    let count = to_f64(conset_ir::convert::to_u64(logs.len()));
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / count).exp())
}

fn summary(rows: &[MethodRow], model: Model, clocks_per_unit: Option<f64>) -> Option<ModelSummary> {
    /// A method with a prediction and a measurement.
    struct Both<'a> {
        method: &'a str,
        value: f64,
        error: f64,
        clocks: u64,
    }
    let both: Vec<Both<'_>> = rows
        .iter()
        .filter_map(|row| {
            let value = row.value(model)?;
            let (error, clocks) = (value.error_percent?, row.measured?.clocks);
            Some(Both { method: &row.method, value: value.value, error, clocks })
        })
        .collect();
    // Of equal errors the first one.
    let worst = both.iter().rev().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))?;
    let mut errors: Vec<f64> = both.iter().map(|row| row.error.abs()).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let (mut pairs, mut alike) = (0u64, 0u64);
    for (at, one) in both.iter().enumerate() {
        for other in both[at + 1..].iter().filter(|other| other.clocks != one.clocks) {
            pairs += 1;
            let predicted = one.value.total_cmp(&other.value);
            alike += u64::from(predicted == one.clocks.cmp(&other.clocks));
        }
    }
    let least = both.iter().map(|row| row.value).fold(f64::INFINITY, f64::min);
    let chosen = both.iter().filter(|row| row.value <= least).map(|row| row.clocks).max()?;
    let fastest = both.iter().map(|row| row.clocks).min()?;
    Some(ModelSummary {
        model,
        methods: both.len(),
        clocks_per_unit,
        median_error_percent: median(&errors),
        worst_error_percent: worst.error,
        worst_method: worst.method.to_owned(),
        pairs,
        pairs_alike_percent: (pairs > 0).then(|| 100.0 * to_f64(alike) / to_f64(pairs)),
        choice_over_fastest: crate::bound_ratio(chosen, fastest),
    })
}

/// The median of sorted numbers; 0 of none.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(half)) {
        (_, None) => 0.0,
        (1, Some(&middle)) => middle,
        (_, Some(&upper)) => f64::midpoint(sorted[half - 1], upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str, units: f64, clocks: u64) -> MethodRow {
        MethodRow {
            method: method.to_owned(),
            c3: Some(ModelValue::new(units)),
            measured: Some(Measured { clocks, rank: 0 }),
            ..MethodRow::default()
        }
    }

    #[test]
    fn ranks_errors_and_pairs_follow_from_the_values() {
        let mut rows = vec![
            row("a", 10.0, 100),
            row("b", 20.0, 800),
            row("c", 20.0, 800),
            row("d", 5.0, 200),
            MethodRow::default(),
        ];
        let summaries = rank(&mut rows, &Model::ALL, true);
        let [summary] = &summaries[..] else { panic!("{summaries:?}") };
        // (10 * 40 * 40 * 40) to the power of 1/4.
        let factor = 640_000f64.powf(0.25);
        assert!((summary.clocks_per_unit.unwrap() - factor).abs() < 1e-9);
        let ranks = |f: fn(&MethodRow) -> Option<u32>| rows.iter().map(f).collect::<Vec<_>>();
        assert_eq!(ranks(|r| r.c3.map(|v| v.rank)), [Some(2), Some(3), Some(3), Some(1), None]);
        assert_eq!(
            ranks(|r| r.measured.map(|m| m.rank)),
            [Some(1), Some(3), Some(3), Some(2), None]
        );
        let error = rows[0].c3.unwrap().error_percent.unwrap();
        assert!((error - 100.0 * (factor / 10.0 - 1.0)).abs() < 1e-9);
        assert_eq!((summary.worst_method.as_str(), summary.methods), ("a", 4));
        // Of b and c the fabric says nothing; of a and d the model says the opposite.
        assert_eq!((summary.pairs, summary.pairs_alike_percent), (5, Some(80.0)));
        assert_eq!(summary.choice_over_fastest, 2.0);
    }

    #[test]
    fn nothing_measured_is_no_summary_and_zeros_are_equal() {
        let mut rows = vec![row("a", 0.0, 0), row("b", 0.0, 0)];
        let summaries = rank(&mut rows, &[Model::C3], true);
        // Without units there is no factor, so there are no errors either.
        assert!(summaries.is_empty());
        assert_eq!(rows[1].c3.unwrap().rank, 1);
        assert!(rank(&mut [], &Model::ALL, true).is_empty());
        assert_eq!((median(&[]), median(&[1.0, 2.0]), median(&[1.0, 2.0, 9.0])), (0.0, 1.5, 2.0));
    }
}
