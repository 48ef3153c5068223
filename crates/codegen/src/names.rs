//! Identifiers of generated code for the sets and connections of a program.
//!
//! The names of sets and connections consist of letters, digits, `_`, `-` and `.`. A connection
//! without a name is named after its ends, `C3_TO_C4`. Characters other than letters and digits
//! become `_`, a name with a leading digit gets the prefix `N`, and a keyword the suffix `_`. Of
//! equal identifiers, the first in the order of ids is kept and the others get the suffixes `_2`,
//! `_3`, ...; connections with a name precede those without.
//!
//! The identifiers depend on the program only, so compiling it again does not change them.

use std::collections::{HashMap, HashSet};

use conset_ir::ConnectionSet;

/// Words that cannot be the name of a module: Rust's keywords, and names used by the emitted crate.
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
    // Crates and files of the emitted crate.
    "alloc",
    "bin",
    "conset_runtime",
    "core",
    "lib",
    "main",
    "std",
    "tables",
];

/// The identifiers of the connections of a set, as constants: one per connection, all different.
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

/// The identifiers of sets, as modules: one per set, all different.
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

/// The identifiers of sets to be used with a prefix, so that keywords need no suffix.
pub(crate) fn prefixed<'a>(sets: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut unique = Unique::default();
    sets.map(|name| unique.take(identifier(&name.to_ascii_lowercase(), 'n'))).collect()
}

/// A name with all characters replaced that are not permitted in an identifier.
fn identifier(name: &str, prefix: char) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut identifier: String = name.chars().map(legal).collect();
    let digit = identifier.starts_with(|c: char| c.is_ascii_digit());
    if digit || identifier.bytes().all(|b| b == b'_') {
        identifier.insert(0, prefix);
    }
    identifier
}

/// The identifiers in use.
#[derive(Default)]
pub(crate) struct Unique {
    taken: HashSet<String>,
    /// For each duplicate identifier, the next suffix to try.
    next: HashMap<String, u32>,
}

impl Unique {
    /// The identifier, with a suffix if it is in use.
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
