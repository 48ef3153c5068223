//! Lee's maze routing, on cells that do not know who will need what.
//!
//! Each route is a wave of candidates from the source ([`crate::growth`]), the way back from the
//! destination, one cell at a time, which blocks the path, and a sweep of the labels, which needs
//! no communication. Routes follow each other in the same maze. The cells' paths are compared, site
//! by site, with those of one cell that has the whole maze, and their lengths with the distances of
//! a breadth-first search without labels.

use conset::growth::lee::{Maze, Obstacles, distance, manhattan, random_ends};
use conset::growth::random::Stream;
use conset::growth::{Stripes, grow};
use conset_runtime::{Cell, CellError};

use crate::Failure;
use crate::growth::{Peers, SchemeArg};
use crate::report::{Agreement, Report};
use crate::team::{Account, Meter, Team, TeamArgs};

/// The maze and how it is divided.
#[derive(clap::Args, Clone, Debug)]
pub struct LeeArgs {
    /// Rows and columns.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub side: u32,
    /// Percent of the sites that are blocked.
    #[arg(long, value_name = "PERCENT", default_value_t = 25)]
    pub blocked: u32,
    /// Block rectangles with sides of about so many sites, not single sites.
    #[arg(long, value_name = "SITES")]
    pub rectangles: Option<u32>,
    /// Routes in the same maze, one after the other.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub routes: u64,
    /// Columns of a stripe; stripes go to the cells by turns.
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub width: u32,
    /// What carries candidates to other cells.
    #[arg(long, value_enum, default_value_t)]
    pub scheme: SchemeArg,
}

/// The routes, beside those of the sequential run.
#[derive(Clone, Debug)]
pub struct Routes {
    /// What was routed.
    pub title: String,
    /// The distance of the two ends of each route, by the sequential run.
    pub distances: Vec<Option<u32>>,
    /// The sites of each path, from the destination.
    pub paths: Vec<Vec<u32>>,
    /// Routes that are not shortest paths through free sites, or differ on a cell from the
    /// sequential run's, or were left with labels.
    pub wrong: usize,
    /// What the run took.
    pub account: Account,
}

/// What a cell knows of a route.
#[derive(Clone, Debug)]
struct Part {
    found: bool,
    swept: bool,
    path: Vec<(u32, u32)>,
}

/// Routes on cells, and alone.
///
/// # Errors
/// Arguments that cannot be; a run that failed.
pub fn solve(team_args: &TeamArgs, args: &LeeArgs) -> Result<Routes, Failure> {
    let machine = team_args.machine()?;
    let cells: Vec<_> = machine.endpoints().collect();
    let stripes = Stripes::new(args.side, cells.len() as u32, args.width)?;
    let peers = Peers::new(args.scheme, cells, stripes)?;
    let obstacles = match args.rectangles {
        Some(mean) => Obstacles::Rectangles { mean },
        None => Obstacles::Sites,
    };
    let blocked = obstacles.blocked(args.side, args.blocked, team_args.seed)?;
    // The ends are of the maze without paths, so one may be blocked by an earlier route.
    let ends = |route| {
        let random = Stream::new(team_args.seed, route);
        random_ends(args.side, &blocked, 1..=2 * args.side, random)
    };
    let ends = (1..=args.routes).map(ends).collect::<Result<Vec<_>, _>>()?;
    let team = Team::without_sets(team_args, &machine)?;
    let (results, account) =
        team.run(|cell, meter| on_cell(cell, meter, &peers, &blocked, &ends))?;

    let (distances, paths, after, mut wrong) = alone(&stripes, &blocked, &ends);
    for (cell, (routes, blocked)) in team.own_cells().into_iter().zip(&results) {
        let rank = peers.rank(cell);
        for (route, part) in routes.iter().enumerate() {
            let own = (0..).zip(&paths[route]).map(|(place, &site)| (place, site));
            let own = own.filter(|&(_, site)| stripes.owner(site) == rank);
            let same =
                own.eq(part.path.iter().copied()) && part.found == distances[route].is_some();
            wrong += usize::from(!same || !part.swept);
        }
        let same =
            stripes.sites_of(rank).zip(blocked).all(|(site, now)| after[site as usize] == *now);
        wrong += usize::from(!same);
    }
    let title = format!(
        "{} routes on {side} x {side} sites, {} % blocked, in stripes of {} on {} cells, by {:?}",
        args.routes,
        args.blocked,
        args.width,
        stripes.cells(),
        args.scheme,
        side = args.side
    );
    Ok(Routes { title, distances, paths, wrong, account })
}

/// Every route as this cell sees it, and which of its sites are blocked in the end.
fn on_cell(
    cell: &mut Cell<'_>,
    meter: &mut Meter,
    peers: &Peers,
    blocked: &[bool],
    ends: &[[u32; 2]],
) -> Result<(Vec<Part>, Vec<bool>), CellError> {
    let side = peers.stripes().side();
    let mut maze = Maze::new(peers.stripes(), peers.rank(cell.id()), blocked);
    let mut routes = Vec::new();
    for &[source, destination] in ends {
        let first = maze.start(source);
        let delta = (manhattan(side, [source, destination]) / 5).max(1);
        let grown = meter.exchange(cell, |cell| {
            peers.grow(cell, &mut maze, first, delta, |maze| maze.is_reached(destination))
        })?;
        let mut path = Vec::new();
        let mut epoch = cell.open::<[u32; 2]>();
        if maze.is_reached(destination) {
            epoch.send(peers.owner(destination), [0, destination])?;
        }
        epoch.settle(|_, [place, site], out| {
            path.push((place, site));
            if let Some(before) = maze.trace_back(site) {
                out.send(peers.owner(before), [place + 1, before]);
            }
        })?;
        drop(epoch);
        maze.sweep();
        routes.push(Part { found: grown.found, swept: maze.is_swept(), path });
    }
    Ok((routes, maze.blocked().to_vec()))
}

/// The distance of the ends of each route, its path on one cell, which sites are blocked in the
/// end, and how many paths are not as they should be.
type Alone = (Vec<Option<u32>>, Vec<Vec<u32>>, Vec<bool>, usize);

fn alone(stripes: &Stripes, blocked: &[bool], ends: &[[u32; 2]]) -> Alone {
    let (mut distances, mut paths, mut blocked, mut wrong) =
        (Vec::new(), Vec::new(), blocked.to_vec(), 0);
    for &ends in ends {
        let distance = distance(stripes.side(), &blocked, ends);
        let path = path(stripes.side(), &blocked, ends);
        wrong += usize::from(!is_shortest(stripes.side(), &blocked, &path, ends, distance));
        path.iter().for_each(|&site| blocked[site as usize] = true);
        distances.push(distance);
        paths.push(path);
    }
    (distances, paths, blocked, wrong)
}

/// The path on one cell, from the destination; empty if there is none.
fn path(side: u32, blocked: &[bool], [source, destination]: [u32; 2]) -> Vec<u32> {
    let Ok(whole) = Stripes::alone(side) else { return Vec::new() };
    let mut maze = Maze::new(whole, 0, blocked);
    if let Some(first) = maze.start(source) {
        grow(&mut maze, first, |_| true);
    }
    let mut next = maze.is_reached(destination).then_some(destination);
    let step = || {
        let site = next?;
        next = maze.trace_back(site);
        Some(site)
    };
    std::iter::from_fn(step).collect()
}

/// Whether a path leads from the destination to the source through free sites, as short as can be;
/// or there is none where none can be.
fn is_shortest(
    side: u32,
    blocked: &[bool],
    path: &[u32],
    [source, destination]: [u32; 2],
    distance: Option<u32>,
) -> bool {
    let Some(distance) = distance else { return path.is_empty() };
    path.len() as u32 == distance + 1
        && path.first() == Some(&destination)
        && path.last() == Some(&source)
        && path.iter().all(|&site| !blocked[site as usize])
        && path.windows(2).all(|pair| manhattan(side, [pair[0], pair[1]]) == 1)
}

impl Report for Routes {
    fn agreement(&self) -> Agreement {
        Agreement { difference: self.wrong as f64, scale: 1.0, allowed: 0.0 }
    }

    fn account(&self) -> &Account {
        &self.account
    }
}

impl std::fmt::Display for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        for (route, distance) in self.distances.iter().enumerate() {
            match distance {
                Some(distance) => writeln!(f, "route {}: a path of {distance} steps", route + 1)?,
                None => writeln!(f, "route {}: the destination cannot be reached", route + 1)?,
            }
        }
        writeln!(f, "{}", self.account)?;
        match self.wrong {
            0 => write!(f, "every path is a shortest one through free sites"),
            count => write!(f, "{count} routes ARE NOT shortest paths through free sites"),
        }
    }
}
