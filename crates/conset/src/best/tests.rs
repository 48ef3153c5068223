//! Plans that are wrong are dropped and counted, and never the result.

use conset_ir::{CellId, Connection};
use conset_partition_route::bounds;

use super::*;

/// A half-duplex ring in which cell 0 sends and receives by turns.
fn case() -> (Arc<Machine>, Arc<ConnectionSet>) {
    let machine = Machine::from_spec("ring:4").unwrap();
    let parameters = conset_ir::Parameters::iwarp_fem();
    let machine = machine.with_parameters(parameters).unwrap();
    let ends = [(0, 1, 900), (0, 0, 500), (2, 0, 40), (3, 2, 7), (1, 3, 300)];
    let connect = |&(s, t, words): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), words);
    let set = ConnectionSet::new("s", ends.iter().map(connect).collect()).unwrap();
    (Arc::new(machine), Arc::new(set))
}

/// All streams at once: agents would be booked twice.
fn spoilt(mut plan: Routed) -> Routed {
    let starts = |routes: &conset_ir::PhaseRoutes| vec![0; routes.len()];
    plan.starts = Some(plan.routing.phases().iter().map(starts).collect());
    Routed { rounds: None, ..plan }
}

/// The plans of a way, each after one that is wrong.
fn some_wrong(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::Options,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let plans = planner::plans(task, planner, options, work)?;
    Ok(plans.into_iter().flat_map(|plan| [spoilt(plan.clone()), plan]).collect())
}

/// Nothing but plans that are wrong.
fn all_wrong(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::Options,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let plans = planner::plans(task, planner, options, work)?;
    Ok(plans.into_iter().map(spoilt).collect())
}

/// One slot fewer than routes, which no timetable can be made of.
fn misshapen(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::Options,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let mut plans = all_wrong(task, planner, options, work)?;
    for starts in plans.iter_mut().filter_map(|plan| plan.starts.as_mut()) {
        starts.iter_mut().for_each(|starts| starts.truncate(starts.len().saturating_sub(1)));
    }
    Ok(plans)
}

/// The accepted timetable that a search ends with, and its attempts.
fn searched(plans: Plans, until: Until) -> (Timetable, Attempts) {
    let (machine, set) = case();
    let options = Options::default();
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let mut search = Search::new(&machine, &set, bounds, &options, until, Care::Usual);
    search.plans = plans;
    while !search.is_over() {
        search.wave().unwrap();
        if until == Until::Stopped && search.can_stop() {
            search.stop();
        }
    }
    let (timetable, prediction, attempts) = search.finish().unwrap();
    conset_verify::check_timetable(&timetable).unwrap();
    assert!(prediction.clocks >= bounds.clocks);
    (timetable, attempts)
}

#[test]
fn plans_that_are_wrong_are_counted_and_the_result_is_that_without_them() {
    let (right, attempts) = searched(planner::plans, Until::Good);
    assert_eq!(attempts.candidates_refused, 0);
    let (timetable, attempts) = searched(some_wrong, Until::Good);
    assert!(attempts.candidates_refused > 0, "{attempts:?}");
    assert_eq!(timetable, right);
}

#[test]
fn where_every_plan_is_wrong_the_papers_is_taken() {
    let (machine, set) = case();
    let (paper, _) = paper(&machine, &set, &Options::default(), &mut |_| ()).unwrap();
    for plans in [all_wrong, misshapen] {
        for until in [Until::Good, Until::Attempts(3), Until::Stopped] {
            let (timetable, attempts) = searched(plans, until);
            assert_eq!(timetable, paper);
            assert!(attempts.candidates_refused > 0, "{attempts:?}");
            assert_eq!(attempts.made, 1);
        }
    }
}

#[test]
fn a_plan_that_the_fabric_did_not_run_is_checked_before_it_is_the_best() {
    let (machine, set) = case();
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let route = planner::Options::default();
    let task = Task::new(&machine, &set, bounds);
    let mut work = Work::unlimited();
    let plans = planner::plans(&task, Planner::LoadAnnealing, &route, &mut work).unwrap();
    let right = price(plans[0].clone(), 0, Pricing::of(&machine, &set, WORK)).unwrap();
    let wrong = right.clone().with_slots_of_nothing();
    let options = Options::default();
    let mut search = Search::new(&machine, &set, bounds, &options, Until::Good, Care::Usual);
    let best = search.best_of(vec![Ok(wrong.clone()), Ok(right.clone())]).unwrap();
    assert_eq!((&best.timetable, search.refused), (&right.timetable, 1));
    // Behind a better one it is not looked at.
    search.found = Some(best);
    let mut late = wrong.clone();
    late.clocks = u64::MAX;
    search.best_of(vec![Ok(late)]);
    assert_eq!(search.refused, 1);
    // Where checking has to wait it is not looked at either.
    let best = |care| {
        let mut search = Search::new(&machine, &set, bounds, &options, Until::Good, care);
        search.checks &= care == Care::Great;
        (search.best_of(vec![Ok(wrong.clone())]).is_some(), search.refused)
    };
    assert_eq!([best(Care::Usual), best(Care::Great)], [(true, 0), (false, 1)]);
}
