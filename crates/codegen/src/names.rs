//! Names of a program made into names of Rust.
//!
//! The names of sets and connections are letters, digits, `_`, `-` and `.`; a connection may have
//! none and is then called after its ends, `C3_TO_C4`. Whatever is no letter or digit becomes
//! `_`, a leading digit gets an `N` before it, and a keyword an `_` behind it. Where two names
//! come out the same, the first in the order of ids keeps it and the others get `_2`, `_3`, ...;
//! names that were given go before names that were made up.
//!
//! The result depends on the program alone, so a program that is compiled again keeps its names.

use std::collections::{HashMap, HashSet};

use conset_ir::ConnectionSet;

/// Words that cannot name a module: Rust's keywords, and what the emitted crate uses itself.
const TAKEN: [&str; 59] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    // Crates and files.
    "alloc",
    "bin",
    "conset_runtime",
    "core",
    "lib",
    "main",
    "std",
    "tables",
];

/// The names of a set's connections, as constants; one per connection, all different.
pub fn connections(set: &ConnectionSet) -> Vec<String> {
    let mut names = vec![String::new(); set.len()];
    let mut unique = Unique::default();
    for (id, connection) in set.iter() {
        if let Some(name) = &connection.name {
            names[id.index()] = unique.take(identifier(&name.to_ascii_uppercase(), 'N'));
        }
    }
    for (id, connection) in set.iter() {
        if connection.name.is_none() {
            let (source, target) = (connection.source.0, connection.target.0);
            names[id.index()] = unique.take(format!("C{source}_TO_C{target}"));
        }
    }
    names
}

/// The names of sets, as modules; one per set, all different.
pub fn modules<'a>(sets: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut unique = Unique::default();
    sets.map(|name| {
        let mut name = identifier(&name.to_ascii_lowercase(), 'n');
        if TAKEN.contains(&name.as_str()) {
            name.push('_');
        }
        unique.take(name)
    })
    .collect()
}

/// The names of sets behind a prefix, where no keyword can be meant.
pub(crate) fn prefixed<'a>(sets: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut unique = Unique::default();
    sets.map(|name| unique.take(identifier(&name.to_ascii_lowercase(), 'n'))).collect()
}

/// A name with everything replaced that no identifier can hold.
fn identifier(name: &str, prefix: char) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut identifier: String = name.chars().map(legal).collect();
    let digit = identifier.starts_with(|c: char| c.is_ascii_digit());
    if digit || identifier.bytes().all(|b| b == b'_') {
        identifier.insert(0, prefix);
    }
    identifier
}

/// Names given out so far.
#[derive(Default)]
pub(crate) struct Unique {
    taken: HashSet<String>,
    /// The number that the next of several equal names tries first.
    next: HashMap<String, u32>,
}

impl Unique {
    /// The name, or what it becomes because it is taken.
    pub(crate) fn take(&mut self, name: String) -> String {
        if self.taken.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(name.clone()).or_insert(2);
        loop {
            let numbered = format!("{name}_{next}");
            *next += 1;
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conset_ir::{CellId, Connection};

    fn names(given: &[Option<&str>]) -> Vec<String> {
        let connection = |name: &Option<&str>| Connection {
            name: name.map(Into::into),
            ..Connection::new(CellId(3), CellId(4), 1)
        };
        connections(&ConnectionSet::new("s", given.iter().map(connection).collect()).unwrap())
    }

    #[test]
    fn connections_get_legal_and_different_names() {
        assert_eq!(
            names(&[None, Some("east-halo.1"), None, Some("2nd"), Some("--")]),
            ["C3_TO_C4", "EAST_HALO_1", "C3_TO_C4_2", "N2ND", "N__"]
        );
    }

    #[test]
    fn given_names_go_first_and_collisions_are_numbered() {
        assert_eq!(
            names(&[None, Some("C3_TO_C4"), Some("c3-to-c4"), Some("C3_TO_C4_2")]),
            ["C3_TO_C4_3", "C3_TO_C4", "C3_TO_C4_2", "C3_TO_C4_2_2"]
        );
    }

    #[test]
    fn modules_avoid_keywords_and_files() {
        let sets = ["Halo", "halo", "match", "match_", "lib", "self", "7", "a.b"];
        assert_eq!(
            modules(sets.into_iter()),
            ["halo", "halo_2", "match_", "match__2", "lib_", "self_", "n7", "a_b"]
        );
    }
}
