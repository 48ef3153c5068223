//! Tests: wrong plans are dropped and counted, and are never the result.

use conset_ir::{CellId, Connection};
use conset_partition_route::bounds;

use super::*;

/// A half-duplex ring in which cell 0 both sends and receives.
fn case() -> (Arc<Machine>, Arc<ConnectionSet>) {
    let machine = Machine::from_spec("ring:4").unwrap();
    let parameters = conset_ir::Parameters::iwarp_fem();
    let machine = machine.with_parameters(parameters).unwrap();
    let ends = [(0, 1, 900), (0, 0, 500), (2, 0, 40), (3, 2, 7), (1, 3, 300)];
    let connect = |&(s, t, words): &(u32, u32, u32)| Connection::new(CellId(s), CellId(t), words);
    let set = ConnectionSet::new("s", ends.iter().map(connect).collect()).unwrap();
    (Arc::new(machine), Arc::new(set))
}

/// A plan in which all streams start at once, so that slots of an agent overlap.
fn with_overlapping_slots(mut plan: Routed) -> Routed {
    let starts = |routes: &conset_ir::PhaseRoutes| vec![0; routes.len()];
    plan.starts = Some(plan.routing.phases().iter().map(starts).collect());
    Routed { rounds: None, ..plan }
}

/// The plans of a planner, each preceded by a wrong one.
fn some_wrong(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let plans = planner::plans(task, planner, options, work)?;
    Ok(plans.into_iter().flat_map(|plan| [with_overlapping_slots(plan.clone()), plan]).collect())
}

/// Only wrong plans.
fn all_wrong(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let plans = planner::plans(task, planner, options, work)?;
    Ok(plans.into_iter().map(with_overlapping_slots).collect())
}

/// Plans with one slot fewer than routes, from which no timetable can be built.
fn misshapen(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    let mut plans = all_wrong(task, planner, options, work)?;
    for starts in plans.iter_mut().filter_map(|plan| plan.starts.as_mut()) {
        starts.iter_mut().for_each(|starts| starts.truncate(starts.len().saturating_sub(1)));
    }
    Ok(plans)
}

/// Plans of the round pathfinder in place of those of the slot pathfinder, annealed ones, and no others.
fn slots_and_annealed(
    task: &Task<'_>,
    planner: Planner,
    options: &planner::PlannerOptions,
    work: &mut Work,
) -> Result<Vec<Routed>, Infeasible> {
    match planner {
        Planner::SlotPathfinder => planner::plans(task, Planner::RoundPathfinder, options, work),
        Planner::LoadAnnealing => planner::plans(task, planner, options, work),
        _ => Ok(Vec::new()),
    }
}

/// The timetable that a search ends with, and its statistics.
fn searched(plans: PlanFn, stop_rule: StopRule) -> (Timetable, SearchStats) {
    searched_for(case(), plans, stop_rule)
}

fn searched_for(
    (machine, set): (Arc<Machine>, Arc<ConnectionSet>),
    plans: PlanFn,
    stop_rule: StopRule,
) -> (Timetable, SearchStats) {
    let options = CompileOptions::default();
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let mut search =
        PlanSearch::new(&machine, &set, bounds, &options, stop_rule, PlanChecks::Deferred);
    search.plans = plans;
    while !search.is_over() {
        search.next_wave().unwrap();
        if stop_rule == StopRule::Stopped && search.can_stop() {
            search.stop(StopReason::TimeLimit);
        }
    }
    let (timetable, prediction, stats) = search.finish().unwrap();
    conset_verify::check_timetable(&timetable).unwrap();
    assert!(prediction.clocks >= bounds.clocks);
    (timetable, stats)
}

#[test]
fn plans_that_are_wrong_are_counted_and_the_result_is_that_without_them() {
    let (right, stats) = searched(planner::plans, StopRule::Converged);
    assert_eq!(stats.candidates_refused, 0);
    let (timetable, stats) = searched(some_wrong, StopRule::Converged);
    assert!(stats.candidates_refused > 0, "{stats:?}");
    assert_eq!(timetable, right);
}

/// Load annealing after negotiated slots is not worth its time, which is no limit of work.
#[test]
fn a_large_set_with_slots_is_not_annealed() {
    let machine = Machine::from_spec("mesh:4x4").unwrap();
    let parameters = conset_ir::Parameters { timed_starts: 1, ..machine.parameters().clone() };
    let machine = Arc::new(machine.with_parameters(parameters).unwrap());
    let ends = (0..5 * 16 * 15u32).map(|x| (x % 16, (x % 16 + 1 + x / 16 % 15) % 16, 1 + x % 97));
    let connections = ends.map(|(s, t, words)| Connection::new(CellId(s), CellId(t), words));
    let set = Arc::new(ConnectionSet::new("s", connections.collect()).unwrap());
    assert!(set.len() > SEARCHED);
    let case = (machine, set);
    let (_, stats) = searched_for(case.clone(), slots_and_annealed, StopRule::Converged);
    let planners = |stats: &SearchStats| -> Vec<&str> {
        stats.trials.iter().map(|trial| trial.planner).collect()
    };
    assert_eq!(planners(&stats), ["slot-pathfinder", "ejection-search"]);
    assert_eq!(stats.stop_reason, StopReason::Converged);
    let (_, stats) = searched_for(case, slots_and_annealed, StopRule::MaxPlans(2));
    assert_eq!(planners(&stats), ["slot-pathfinder", "load-annealing"]);
}

#[test]
fn if_every_plan_is_wrong_the_papers_algorithm_is_used() {
    let (machine, set) = case();
    let options = CompileOptions::default();
    let (paper, _) = paper_algorithm::plan(&machine, &set, &options, &mut |_| ()).unwrap();
    for plans in [all_wrong, misshapen] {
        for stop_rule in [StopRule::Converged, StopRule::MaxPlans(3), StopRule::Stopped] {
            let (timetable, stats) = searched(plans, stop_rule);
            assert_eq!(timetable, paper);
            assert!(stats.candidates_refused > 0, "{stats:?}");
            assert_eq!(stats.plans, 1);
        }
    }
}

#[test]
fn a_plan_that_the_fabric_did_not_run_is_checked_before_it_is_the_best() {
    let (machine, set) = case();
    let bounds = bounds::bounds(&machine, &set).unwrap().summary();
    let route = planner::PlannerOptions::default();
    let task = Task::new(&machine, &set, bounds);
    let mut work = Work::unlimited();
    let plans = planner::plans(&task, Planner::LoadAnnealing, &route, &mut work).unwrap();
    let right = price(plans[0].clone(), 0, Pricing::of(&machine, &set, WORK_LIMIT)).unwrap();
    let wrong = right.clone().with_empty_slots();
    let options = CompileOptions::default();
    let mut search = PlanSearch::new(
        &machine,
        &set,
        bounds,
        &options,
        StopRule::Converged,
        PlanChecks::Deferred,
    );
    let best = search.best_of(vec![Ok(wrong.clone()), Ok(right.clone())]).unwrap();
    assert_eq!((&best.timetable, search.refused), (&right.timetable, 1));
    // A candidate that is worse than the best plan is not checked.
    search.best = Some(best);
    let mut late = wrong.clone();
    late.clocks = u64::MAX;
    search.best_of(vec![Ok(late)]);
    assert_eq!(search.refused, 1);
    // Deferred checks do not check it either.
    let best = |checks| {
        let mut search =
            PlanSearch::new(&machine, &set, bounds, &options, StopRule::Converged, checks);
        search.checks &= checks == PlanChecks::Immediate;
        (search.best_of(vec![Ok(wrong.clone())]).is_some(), search.refused)
    };
    assert_eq!([best(PlanChecks::Deferred), best(PlanChecks::Immediate)], [(true, 0), (false, 1)]);
}

/// A plan of one phase on a line of four cells with timed starts, priced: two streams over the same
/// link and one over others, of so many words, with the given starts.
fn priced(words: u32, starts: [u64; 3]) -> Priced {
    let parameters = conset_ir::Parameters { timed_starts: 1, ..conset_ir::Parameters::iwarp() };
    let machine = Machine::from_spec("mesh:4x1").unwrap().with_parameters(parameters).unwrap();
    let machine = Arc::new(machine);
    let connect = |(s, t): (u32, u32)| Connection::new(CellId(s), CellId(t), words);
    let set = ConnectionSet::new("s", [(0, 2), (1, 3), (3, 0)].map(connect).to_vec()).unwrap();
    let set = Arc::new(set);
    let paths: [&[u32]; 3] = [&[0, 1, 2], &[1, 2, 3], &[3, 2, 1, 0]];
    let routes = |_| (0..).zip(paths).map(|(x, path)| (x, words, path));
    let routing = conset_partition_route::routing_of_paths(&machine, &set, 1, routes).unwrap();
    let plan = Routed { routing, rounds: None, starts: Some(vec![starts.to_vec()]) };
    price(plan, 0, Pricing::of(&machine, &set, WORK_LIMIT)).unwrap()
}

#[test]
fn starts_that_keep_streams_apart_are_given_up_where_sharing_links_takes_less() {
    // The first number of words is priced on the fabric, the second by the cost model.
    for words in [100, 200_000] {
        let each = 3 * u64::from(words);
        let [apart, late] = [[0, each, 0], [0, each, 8 * each]].map(|starts| priced(words, starts));
        let starts = |plan: &Priced| plan.timetable.phases()[0].slots.clone();
        assert!(late.clocks <= apart.clocks + apart.clocks / 4, "{words}: {}", late.clocks);
        assert_ne!(starts(&late)[2].start, 8 * each);
    }
}

#[test]
fn exact_starts_are_kept_where_sharing_links_gains_little() {
    let words = 200_000;
    let starts = [0, 2 * u64::from(words) + 60_000, 0];
    let plan = priced(words, starts);
    let found: Vec<u64> = plan.timetable.phases()[0].slots.iter().map(|slot| slot.start).collect();
    assert_eq!(found, starts);
}
