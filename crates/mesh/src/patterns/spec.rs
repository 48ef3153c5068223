//! Parser of the specifications of patterns and generated meshes.
//!
//! A specification is `name` or `name:item,item,...`, where an item is `key=value` or a value without
//! key. Values without key are assigned to the parameters that have no item with their key, in the
//! order of declaration: `ring-shift:3` is `ring-shift:k=3`. Unknown keys, surplus values and repeated
//! parameters are errors.

use std::fmt::Display;
use std::str::FromStr;

use conset_ir::{At, InputError, Result, limits};

/// A parsed specification, from which the items are taken one by one.
pub(crate) struct Spec<'a> {
    /// What the specification describes, for errors: `pattern`, `mesh`.
    what: &'static str,
    text: &'a str,
    name: &'a str,
    items: Vec<SpecItem<'a>>,
    /// The parameters queried so far, for errors.
    known: Vec<&'static str>,
}

#[derive(Clone, Copy)]
struct SpecItem<'a> {
    key: Option<&'a str>,
    value: &'a str,
}

impl<'a> Spec<'a> {
    /// Parses a specification; `what` is what it describes, for errors.
    pub(crate) fn parse(what: &'static str, text: &'a str) -> Result<Self> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let mut this = Self { what, text, name, items: Vec::new(), known: Vec::new() };
        for item in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = match item.split_once('=') {
                Some((key, value)) => (Some(key.trim()), value.trim()),
                None => (None, item.trim()),
            };
            if value.is_empty() || key == Some("") {
                return Err(this
                    .error(format!("`{}` has an empty parameter", shorten(text)))
                    .help("write name:value,value or name:key=value,key=value"));
            }
            this.items.push(SpecItem { key, value });
        }
        Ok(this)
    }

    /// The name before the colon.
    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// The specification as a valid name (letters, digits, `_`, `-`, `.`).
    pub(crate) fn identifier(&self) -> String {
        let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let legalised = self.text.chars().map(|c| if legal(c) { c } else { '-' });
        legalised.take(limits::NAME).collect()
    }

    /// An error about this specification.
    pub(crate) fn error(&self, message: impl Into<String>) -> InputError {
        let file = format!("<{}>", self.what);
        InputError::new(file, At::Path(shorten(self.text)), message)
    }

    /// The error for a name that is not in `names`, with a suggestion and the list of names.
    pub(crate) fn unknown_name(&self, names: &[&str]) -> InputError {
        let error = self.error(format!("unknown {} `{}`", self.what, shorten(self.name)));
        match closest(self.name, names) {
            Some(name) => {
                error.help(format!("did you mean {name}? known names: {}", names.join(", ")))
            }
            None => error.help(format!("known names: {}", names.join(", "))),
        }
    }

    /// Takes the text of a parameter: the item with its key, else the first value without key.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let named = self.items.iter().position(|item| item.key == Some(key));
        let at = named.or_else(|| self.items.iter().position(|item| item.key.is_none()))?;
        Some(self.items.remove(at).value)
    }

    /// Takes a number from `least` to `most`, or `default` if it is not given.
    pub(crate) fn number<T>(
        &mut self,
        key: &'static str,
        default: T,
        least: T,
        most: T,
    ) -> Result<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        match self.text(key) {
            None => Ok(default),
            Some(text) => self.parse_number(key, text, least, most),
        }
    }

    /// Takes all remaining values without key, as numbers.
    pub(crate) fn numbers<T>(&mut self, key: &'static str, least: T, most: T) -> Result<Vec<T>>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let mut numbers = Vec::new();
        while let Some(text) = self.text(key) {
            numbers.push(self.parse_number(key, text, least, most)?);
        }
        Ok(numbers)
    }

    /// Takes sizes in the form `8x8`, each from 1 to `most`; `None` if they are not given.
    pub(crate) fn sizes(&mut self, key: &'static str, most: u32) -> Result<Option<Vec<u32>>> {
        match self.text(key) {
            None => Ok(None),
            Some(text) => {
                let sizes: Result<Vec<u32>> =
                    text.split('x').map(|part| self.parse_number(key, part, 1, most)).collect();
                sizes.map(Some)
            }
        }
    }

    /// Parses a number that [`Spec::text`] returned.
    pub(crate) fn parse_number<T>(&self, key: &str, text: &str, least: T, most: T) -> Result<T>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let number = text.parse::<T>().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| {
            let text = shorten(text);
            self.error(format!("{key}: `{text}` is not a number from {least} to {most}"))
        })
    }

    /// Checks that every item was taken.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some(item) = self.items.first() else { return Ok(()) };
        let known = match self.known.as_slice() {
            [] => format!("{} takes no parameters", self.name),
            known => format!("parameters of {}: {}", self.name, known.join(", ")),
        };
        let message = match item.key {
            Some(key) if self.known.contains(&key) => format!("`{}` is given twice", shorten(key)),
            Some(key) => format!("`{}` is not a parameter of {}", shorten(key), self.name),
            None => format!("surplus value `{}`", shorten(item.value)),
        };
        Err(self.error(message).help(known))
    }
}

/// A user's text for an error message: without control characters and of limited length.
fn shorten(text: &str) -> String {
    text.escape_debug().take(60).collect()
}

/// The name with the smallest edit distance to `wrong`, if that is at most half of its length.
fn closest<'n>(wrong: &str, names: &[&'n str]) -> Option<&'n str> {
    // All names are short; a long text resembles none of them.
    if wrong.len() > 40 {
        return None;
    }
    let wrong = wrong.to_ascii_lowercase();
    let best = names.iter().map(|name| (edit_distance(&wrong, name), *name)).min()?;
    (best.0 * 2 <= wrong.len().max(best.1.len())).then_some(best.1)
}

/// The number of insertions, deletions and replacements of bytes that convert `a` to `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_priority_over_order() {
        let mut spec = Spec::parse("pattern", "random:seed=7,0.5").unwrap();
        assert_eq!(spec.number("density", 0.1, 0.0, 1.0).unwrap(), 0.5);
        assert_eq!(spec.number("seed", 1u64, 0, u64::MAX).unwrap(), 7);
        spec.finish().unwrap();
    }

    #[test]
    fn invalid_items_are_errors() {
        for (text, word) in [
            ("a:k=1,k=2", "twice"),
            ("a:j=1", "not a parameter"),
            ("a:1,2", "surplus"),
            ("a:k=x", "not a number"),
            ("a:k=99", "from 0 to 9"),
        ] {
            let mut spec = Spec::parse("pattern", text).unwrap();
            let result = spec.number("k", 0u32, 0, 9).and_then(|_| spec.finish());
            assert!(result.unwrap_err().message.contains(word), "{text}");
        }
        for text in ["a:", "a:,", "a:k=", "a:=3"] {
            assert!(Spec::parse("pattern", text).is_err(), "{text}");
        }
    }

    #[test]
    fn misspelt_names_are_recognised() {
        let names = ["ring-shift", "all-to-all", "torus"];
        assert_eq!(closest("ring_shift", &names), Some("ring-shift"));
        assert_eq!(closest("TORUS", &names), Some("torus"));
        assert_eq!(closest("alltoall", &names), Some("all-to-all"));
        assert_eq!(closest("halo", &names), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
