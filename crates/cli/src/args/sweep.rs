//! The options of `conset sweep`, and the values that it varies.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;

use super::{CompilerArgs, InputArgs, TableArgs};

/// The most values of one variable.
const VALUES_MAX: usize = 1 << 16;

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) compiler: CompilerArgs,
    /// Vary a machine parameter (channels_per_cell=8..32) or an option with a value
    /// (machine=torus:4x4,torus:8x8). VALUES are separated by commas; 8..32 is every whole number
    /// from 8 to 32, 8..32+4 every fourth and 8..512*2 every double. Every combination of the values of
    /// several --vary is compiled.
    #[arg(long, value_name = "NAME=VALUES", required = true, value_parser = variable)]
    pub(crate) vary: Vec<Variable>,
    /// Do not execute; the clocks are those that the cost model predicts.
    #[arg(long)]
    pub(crate) predict: bool,
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Output file: the table (.csv), or a page with a chart (.html); - for the
    /// table on standard output.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
}

/// A name with the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

/// Parses `NAME=VALUES`.
fn variable(text: &str) -> Result<Variable, String> {
    let expected = "expected NAME=VALUES, for example channels_per_cell=8..32 or words=1,64";
    let (name, list) = text.split_once('=').ok_or(expected)?;
    let name = name.trim().trim_start_matches('-');
    if name.is_empty() {
        return Err(expected.to_owned());
    }
    let mut values: Vec<String> = Vec::new();
    for part in list.split(',').map(str::trim) {
        if part.is_empty() {
            return Err(format!("a value is missing; {expected}"));
        }
        match range(part)? {
            Some(range) => values.extend(range),
            None => values.push(part.to_owned()),
        }
        if values.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values; expected fewer"));
        }
    }
    let mut seen = HashSet::new();
    if let Some(twice) = values.iter().find(|value| !seen.insert(*value)) {
        return Err(format!("{twice} is listed twice"));
    }
    Ok(Variable { name: name.to_owned(), values })
}

/// The values of `8..32`, `8..32+4` or `8..512*2`; `None` if the text is not a range of numbers.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let Some((first, rest)) = text.split_once("..") else { return Ok(None) };
    let Some(first) = number(first) else { return Ok(None) };
    let (last, step, is_factor) = match (rest.split_once('+'), rest.split_once('*')) {
        (Some((last, step)), _) => (last, step, false),
        (None, Some((last, factor))) => (last, factor, true),
        (None, None) => (rest, "1", false),
    };
    let (Some(last), Some(step)) = (number(last), number(step)) else {
        return Err(format!("`{text}` is not a range; expected 8..32, 8..32+4 or 8..512*2"));
    };
    if last < first {
        return Err(format!("`{text}` is empty; the first number must not exceed the last"));
    }
    if step <= u64::from(is_factor) || (is_factor && first == 0) {
        return Err(format!("`{text}` never ends; expected a greater step"));
    }
    let next = |now: &u64| match is_factor {
        true => now.checked_mul(step),
        false => now.checked_add(step),
    };
    let values = std::iter::successors(Some(first), next).take_while(|now| *now <= last);
    Ok(Some(values.take(VALUES_MAX + 1).map(|value| value.to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_become_values() {
        let values = |text: &str| variable(text).map(|variable| variable.values.join(" "));
        assert_eq!(values("streams=1,2").unwrap(), "1 2");
        assert_eq!(values("channels_per_cell=8..11").unwrap(), "8 9 10 11");
        assert_eq!(values("words=0..10+4").unwrap(), "0 4 8");
        assert_eq!(values("words=8..100*2,1000").unwrap(), "8 16 32 64 1000");
        assert_eq!(values("machine=torus:4x4,mesh:8x8").unwrap(), "torus:4x4 mesh:8x8");
        assert_eq!(variable("--words=1").unwrap().name, "words");
        // Up to the end of the numbers.
        assert_eq!(values("seed=18446744073709551614..18446744073709551615").unwrap().len(), 41);
    }

    #[test]
    fn wrong_lists_are_refused() {
        for (text, message) in [
            ("streams", "expected NAME=VALUES"),
            ("=1", "expected NAME=VALUES"),
            ("streams=1,,2", "a value is missing"),
            ("streams=", "a value is missing"),
            ("streams=2..1", "is empty"),
            ("streams=1..2+0", "never ends"),
            ("streams=1..2*1", "never ends"),
            ("streams=0..2*2", "never ends"),
            ("streams=1..x", "is not a range"),
            ("streams=1,1..3", "listed twice"),
            ("streams=1..1000000000", "more than"),
        ] {
            let error = variable(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
