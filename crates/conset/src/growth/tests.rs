//! The rules of growth against independent answers: union-find, breadth-first search, enumeration.

use proptest::prelude::*;

use super::ising;
use super::lee::{Maze, Obstacles, distance, manhattan, random_ends};
use super::random::Stream;
use super::wolff::{CRITICAL, Spins};
use super::*;

#[test]
fn candidates_survive_their_words() {
    for site in [0, 1, MAX_SIDE * MAX_SIDE - 1] {
        for level in [0, 1, MAX_SIDE * MAX_SIDE] {
            for heading in Heading::ALL {
                for up in [false, true] {
                    let candidate = Candidate { site, level, heading, up };
                    assert_eq!(Candidate::from_words(candidate.words()), candidate);
                }
            }
        }
    }
}

#[test]
fn wrong_stripes_are_refused() {
    assert!(Stripes::new(1, 1, 1).is_err() && Stripes::new(MAX_SIDE + 1, 1, 1).is_err());
    assert!(Stripes::new(8, 0, 1).is_err() && Stripes::new(8, 1, 0).is_err());
    assert!(Obstacles::Sites.blocked(8, 91, 1).is_err());
    let walls = vec![true; 64];
    assert!(random_ends(8, &walls, 1..=14, Stream::new(1, 1)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_site_has_one_place(side in 2_u32..20, cells in 1_u32..7, width in 1_u32..9) {
        let stripes = Stripes::new(side, cells, width).unwrap();
        let mut seen = 0;
        for rank in 0..cells {
            for (place, site) in stripes.sites_of(rank).enumerate() {
                prop_assert_eq!((stripes.owner(site), stripes.place(site)), (rank, place));
                seen += 1;
            }
        }
        prop_assert_eq!(seen, stripes.sites());
        if stripes.is_ring() {
            for site in 0..stripes.sites() {
                let east = stripes.neighbour(site, Heading::East, true).unwrap();
                let ahead = (stripes.owner(east) + cells - stripes.owner(site)) % cells;
                prop_assert!(ahead == 0 || ahead == 1 % cells);
            }
        }
    }

    /// A cluster is what the open bonds between equal spins connect with its first site.
    #[test]
    fn clusters_are_components_of_the_open_bonds(side in 2_u32..16, seed: u64, beta in 0.1_f64..0.8) {
        let mut spins = Spins::alone(side, beta, seed).unwrap();
        let stripes = *spins.stripes();
        for sweep in 1..6 {
            let before = spins.clone();
            let first = spins.start(sweep).unwrap();
            grow(&mut spins, first, |_| true);
            // The bond from a site to the east has number 2 site, to the south 2 site + 1.
            let random = Stream::new(seed, sweep);
            let open = |bond: u64| random.uniform(bond) < 1.0 - (-2.0 * beta).exp();
            let mut root: Vec<u32> = (0..stripes.sites()).collect();
            let find = |root: &[u32], mut site: u32| {
                while root[site as usize] != site {
                    site = root[site as usize];
                }
                site
            };
            for site in 0..stripes.sites() {
                for (heading, number) in [(Heading::East, 0), (Heading::South, 1)] {
                    let other = stripes.neighbour(site, heading, true).unwrap();
                    if before.is_up(site) == before.is_up(other) && open(2 * u64::from(site) + number) {
                        let (a, b) = (find(&root, site), find(&root, other));
                        root[a as usize] = b;
                    }
                }
            }
            for site in 0..stripes.sites() {
                let inside = find(&root, site) == find(&root, first.site);
                prop_assert_eq!(spins.is_up(site) != before.is_up(site), inside, "site {}", site);
            }
        }
    }

    #[test]
    fn routes_are_shortest_paths(side in 2_u32..24, percent in 0_u32..60, seed: u64, mean in 1_u32..4) {
        for obstacles in [Obstacles::Sites, Obstacles::Rectangles { mean }] {
            let blocked = obstacles.blocked(side, percent, seed).unwrap();
            let share = blocked.iter().filter(|blocked| **blocked).count() * 100;
            prop_assert!(share >= (side * side) as usize * percent as usize / 100 * 100);
            let ends = random_ends(side, &blocked, 1..=2 * side, Stream::new(seed, 1));
            let Ok([source, destination]) = ends else { continue };
            let stripes = Stripes::alone(side).unwrap();
            let distance = distance(side, &blocked, [source, destination]);
            let mut maze = Maze::new(stripes, 0, &blocked);
            let before = maze.clone();
            let first = maze.start(source).unwrap();
            let mut found = None;
            grow(&mut maze, first, |front| {
                found = found.or(front.iter().find(|c| c.site == destination).map(|c| c.level));
                true
            });
            prop_assert_eq!(found, distance);
            prop_assert_eq!(maze.is_reached(destination), distance.is_some());
            let mut path = vec![destination];
            while let Some(site) = path.last().copied().filter(|_| distance.is_some()) {
                prop_assert!(!blocked[site as usize]);
                let Some(before) = maze.trace_back(site) else { break };
                prop_assert_eq!(manhattan(side, [before, site]), 1);
                path.push(before);
            }
            maze.sweep();
            prop_assert!(maze.is_swept());
            let newly = maze.blocked().iter().zip(before.blocked()).filter(|(a, b)| a != b).count();
            match distance {
                Some(distance) => {
                    prop_assert_eq!(path.len() as u32, distance + 1);
                    prop_assert_eq!(path.last(), Some(&source));
                    prop_assert_eq!(newly, path.len());
                }
                None => prop_assert_eq!(newly, 0),
            }
        }
    }
}

/// Kaufman's energies are those of the sum over all states.
#[test]
fn energies_of_small_lattices_are_those_of_all_states() {
    for side in 2..=4_u32 {
        let stripes = Stripes::alone(side).unwrap();
        let neighbours: Vec<[usize; 2]> = (0..stripes.sites())
            .map(|site| {
                [Heading::East, Heading::South]
                    .map(|h| stripes.neighbour(site, h, true).unwrap() as usize)
            })
            .collect();
        for beta in [0.1, 0.3, CRITICAL, 0.5, 1.0] {
            let (mut weights, mut energies) = (0.0, 0.0);
            for state in 0..1_u32 << stripes.sites() {
                let spin = |site: usize| if state >> site & 1 == 1 { 1.0 } else { -1.0 };
                let bonds = neighbours.iter().enumerate();
                let energy: f64 =
                    bonds.map(|(site, near)| -spin(site) * (spin(near[0]) + spin(near[1]))).sum();
                let weight = (-beta * energy).exp();
                weights += weight;
                energies += weight * energy;
            }
            let mean = energies / weights / f64::from(stripes.sites());
            let ours = ising::energy(side, beta);
            assert!((mean - ours).abs() < 1e-8, "{side} {beta}: {mean} {ours}");
        }
    }
}

#[test]
fn energies_of_large_lattices_approach_the_infinite_one() {
    let critical = |side| ising::energy(side, CRITICAL) + std::f64::consts::SQRT_2;
    // The difference falls with the side.
    assert!(critical(1024).abs() < 1e-3 && critical(1024) < 0.0);
    assert!((critical(256) / critical(512) - 2.0).abs() < 1e-2);
    assert!((ising::magnetisation(0.5) - 0.9113).abs() < 1e-4);
    assert_eq!(ising::magnetisation(0.4), 0.0);
}

#[test]
fn blocks_tell_the_error_of_a_mean() {
    let random = Stream::new(1, 1);
    let numbers: Vec<f64> = (0..10_000).map(|at| random.uniform(at)).collect();
    let (mean, error) = ising::blocked(&numbers, 50);
    // The standard deviation of a uniform number is 1 / sqrt 12.
    assert!((mean - 0.5).abs() < 4.0 * error, "{mean} {error}");
    assert!((error * 100.0 * 12_f64.sqrt() - 1.0).abs() < 0.4, "{error}");
}
