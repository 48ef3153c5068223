//! Checking whether a schedule or image was compiled from a given program.
//!
//! A valid schedule can still belong to another mesh, another partition or an earlier set. This
//! module compares its contents with the program: the machine (except for its name), the sets by
//! position and name, and for each set every connection by its id (ends, words, required bandwidth
//! and latency, nodes) and the order. Ids matter, because the runtime addresses words by connection
//! id: connections in another order are another program. Names of connections do not matter.
//!
//! The digest of a schedule gives the same answer in one number, but not the place.

use conset_ir::{Connection, ConnectionId, ConnectionSet, Machine};

use crate::schedule_diff::machine_changes;

/// Describes the first difference between the contents of a file and those of an input; `None` if
/// there is none. Linear in the sets.
pub fn first_difference<'a>(
    file: (&Machine, &[&'a ConnectionSet]),
    input: (&Machine, &[&'a ConnectionSet]),
) -> Option<String> {
    let changed = machine_changes(file.0, input.0).into_iter().find(|change| change.what != "name");
    if let Some(change) = changed {
        let (what, a, b) = (change.what, change.a, change.b);
        return Some(format!("the machine's {what} is {a} in the file, {b} in the input"));
    }
    for (a, b) in file.1.iter().zip(input.1) {
        if a.name() != b.name() {
            return Some(format!(
                "set `{}` of the file is set `{}` in the input",
                a.name(),
                b.name()
            ));
        }
        if let Some(difference) = between_sets(a, b) {
            return Some(format!("set `{}`: {difference}", a.name()));
        }
    }
    let (a, b) = (file.1.len(), input.1.len());
    let next = |sets: &[&ConnectionSet], at: usize| sets[at].name().to_owned();
    match a.cmp(&b) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => {
            Some(format!("the file ends before set `{}` of the input", next(input.1, a)))
        }
        std::cmp::Ordering::Greater => {
            Some(format!("set `{}` of the file is not in the input", next(file.1, b)))
        }
    }
}

fn between_sets(a: &ConnectionSet, b: &ConnectionSet) -> Option<String> {
    for (id, _) in a.iter().take(b.len()) {
        let (in_file, in_input) = (row(a, id), row(b, id));
        if in_file != in_input {
            let [from, to] = [in_file, in_input].map(|row| in_words(&row.0));
            return Some(match from == to {
                true => format!("{id} has other nodes in the file than in the input"),
                false => format!("{id} is {from} in the file, {to} in the input"),
            });
        }
    }
    if a.len() != b.len() {
        let (more, less) = if a.len() > b.len() { (a, "input") } else { (b, "file") };
        let first = ConnectionId::from_index(a.len().min(b.len()));
        return Some(format!(
            "{} connections in the file, {} in the input; the {less} has no {first}, {}",
            a.len(),
            b.len(),
            in_words(more.get(first)),
        ));
    }
    let order = |set: &ConnectionSet, other: &ConnectionSet| {
        set.order().iter().find(|pair| other.order().binary_search(pair).is_err()).copied()
    };
    if let Some((before, after)) = order(a, b) {
        return Some(format!("{before} comes before {after} in the file, not in the input"));
    }
    let (before, after) = order(b, a)?;
    Some(format!("{before} comes before {after} in the input, not in the file"))
}

/// The properties of a connection that are compared: ends, words, requirements, nodes.
fn row(set: &ConnectionSet, id: ConnectionId) -> (Connection, Option<&[u32]>) {
    let connection = Connection { name: None, ..set.get(id).clone() };
    (connection, set.nodes().map(|nodes| nodes.of(id)))
}

fn in_words(connection: &Connection) -> String {
    let Connection { source, target, words, min_bandwidth, max_latency, .. } = connection;
    let contract = |name: &str, value: &Option<u32>| {
        value.map_or(String::new(), |value| format!(" {name} {value}"))
    };
    let (rate, latency) =
        (contract("min_bandwidth", min_bandwidth), contract("max_latency", max_latency));
    format!("{source} -> {target} words {words}{rate}{latency}")
}

#[cfg(test)]
mod tests {
    use conset_ir::{CellId, NodeLists};

    use super::*;

    fn set(name: &str, rows: &[(u32, u32, u32)]) -> ConnectionSet {
        let row = |&(s, t, w): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), w);
        ConnectionSet::new(name, rows.iter().map(row).collect()).unwrap()
    }

    #[test]
    fn the_first_difference_is_named() {
        let machine = |spec: &str| Machine::from_spec(spec).unwrap();
        let (ring, other) = (machine("ring:4"), machine("ring:5"));
        let halo = set("halo", &[(0, 1, 5), (1, 2, 6)]);
        let says = |input: &[&ConnectionSet]| {
            first_difference((&ring, &[&halo]), (&ring, input)).unwrap_or_default()
        };
        assert_eq!(says(&[&halo]), "");
        assert!(
            first_difference((&ring, &[&halo]), (&other, &[&halo]))
                .unwrap()
                .starts_with("the machine's topology is ring:4 (4 cells")
        );
        assert_eq!(
            says(&[&set("halo", &[(0, 1, 5), (2, 1, 6)])]),
            "set `halo`: x1 is c1 -> c2 words 6 in the file, c2 -> c1 words 6 in the input"
        );
        let more = set("halo", &[(0, 1, 5), (1, 2, 6), (3, 0, 9)]);
        assert_eq!(
            says(&[&more]),
            "set `halo`: 2 connections in the file, 3 in the input; the file has no x2, \
             c3 -> c0 words 9"
        );
        let x = ConnectionId;
        let ordered = halo.clone().with_order(vec![(x(1), x(0))]).unwrap();
        assert_eq!(
            says(&[&ordered]),
            "set `halo`: x1 comes before x0 in the input, not in the file"
        );
        let nodes: Vec<u32> = (0..6).collect();
        let nodes = NodeLists::from_lists([&nodes[..5], &nodes[..]]);
        let noded = halo.clone().with_nodes(nodes).unwrap();
        assert_eq!(says(&[&noded]), "set `halo`: x0 has other nodes in the file than in the input");
        let flux = set("flux", &[]);
        assert_eq!(says(&[&flux]), "set `halo` of the file is set `flux` in the input");
        assert_eq!(says(&[&halo, &flux]), "the file ends before set `flux` of the input");
        assert_eq!(says(&[]), "set `halo` of the file is not in the input");
    }
}
