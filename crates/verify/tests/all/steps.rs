//! Step plans: accepted ones, and for each rule a corruption that only this rule finds.

use std::sync::Arc;

use crate::common::{machine, set};
use conset_ir::*;
use conset_verify::{
    Rejection, Rule, Violation, check_set_steps, check_step_lists, check_step_schedule, check_steps,
};

/// A message: source, target, and pieces as connection, first word and number of words.
type Draft<'a> = (u32, u32, &'a [(u32, u32, u32)]);

fn plan(set: ConnectionSet, messages: &[Draft<'_>]) -> Steps {
    plan_on(machine("ring:4", &[]), set, messages)
}

/// Each message is a step.
fn plan_on(machine: Arc<Machine>, set: ConnectionSet, messages: &[Draft<'_>]) -> Steps {
    let mut steps = StepMessages::new();
    for (source, target, pieces) in messages {
        let piece = |&(x, first_word, words): &(u32, u32, u32)| Piece {
            connection: ConnectionId(x),
            first_word,
            words,
        };
        let pieces: Vec<Piece> = pieces.iter().map(piece).collect();
        steps.push(CellId(*source), CellId(*target), &pieces).unwrap();
        steps.end_step().unwrap();
    }
    Steps::new(machine, Arc::new(set), steps).unwrap()
}

/// Each connection in a message of its own, from its source to its target.
fn direct(machine: Arc<Machine>, connections: &[(u32, u32, u32)]) -> Steps {
    let pieces: Vec<[(u32, u32, u32); 1]> =
        connections.iter().zip(0..).map(|(&(_, _, words), x)| [(x, 0, words)]).collect();
    let messages = connections.iter().zip(&pieces);
    let messages: Vec<Draft<'_>> = messages.map(|(&(from, to, _), p)| (from, to, &p[..])).collect();
    plan_on(machine, set(connections), &messages)
}

fn rules(steps: &Steps) -> Vec<Rule> {
    check_steps(steps).err().map_or(Vec::new(), |rejection| rejection.rules())
}

/// The rules that the claims of a set violate.
fn rules_of_claims(steps: Steps, bounds: StepBounds, predicted: u64) -> Vec<Rule> {
    let set = SetSteps { steps, bounds, predicted_clocks: Some(predicted) };
    check_set_steps(&set).err().map_or(Vec::new(), |rejection| rejection.rules())
}

fn lists(of: &[&[u32]]) -> Lists<u32> {
    Lists::from_rows(of.iter().copied())
}

fn rules_of_lists(steps: &Steps, lists: &Lists<u32>) -> Vec<Rule> {
    check_step_lists(steps, lists).err().map_or(Vec::new(), |rejection| rejection.rules())
}

/// From c0 to c2 and c3, both over c2; x1 in two pieces; a connection of a cell to itself.
fn sent() -> ConnectionSet {
    set(&[(0, 2, 8), (0, 3, 6), (1, 1, 5)])
}

#[test]
fn pieces_are_followed_from_cell_to_cell() {
    let both: &[(u32, u32, u32)] = &[(0, 0, 8), (1, 0, 6)];
    let report = check_steps(&plan(sent(), &[(0, 2, both), (2, 3, &[(1, 0, 6)])])).unwrap();
    assert_eq!((report.messages, report.pieces, report.steps, report.words), (2, 3, 2, 19));
    assert_eq!((report.sets, report.connections, report.orders), (1, 3, 0));
    assert!(report.to_string().contains("3 pieces of 2 messages in 2 steps"), "{report}");
    // In parts over different cells, and in another order than they are cut.
    let parts: &[Draft<'_>] = &[
        (0, 1, &[(1, 4, 2)]),
        (0, 2, &[(1, 0, 4), (0, 0, 8)]),
        (1, 2, &[(1, 4, 2)]),
        (2, 3, &[(1, 1, 5)]),
        (2, 3, &[(1, 0, 1)]),
    ];
    assert_eq!(rules(&plan(sent(), parts)), []);
}

#[test]
fn every_rule_has_a_corruption_that_it_alone_finds() {
    let (x0, x1): (&[_], &[_]) = (&[(0, 0, 8)], &[(1, 0, 6)]);
    let cases: &[(Rule, &[Draft<'_>])] = &[
        // c2 never got x1; c2 sends it before it has it; c2 has only a part of it.
        (Rule::Holding, &[(0, 2, x0), (2, 3, x1)]),
        (Rule::Holding, &[(0, 2, x0), (2, 3, x1), (0, 3, x1)]),
        (Rule::Holding, &[(0, 2, x0), (0, 2, &[(1, 0, 5)]), (2, 3, x1)]),
        // It has passed it on already.
        (Rule::Holding, &[(0, 2, x0), (0, 3, x1), (0, 3, x1)]),
        // x1 stays at c2; a word of it stays at c0; x0 is taken away again.
        (Rule::Coverage, &[(0, 2, x0), (0, 2, x1)]),
        (Rule::Coverage, &[(0, 2, x0), (0, 3, &[(1, 0, 5)])]),
        (Rule::Coverage, &[(0, 2, x0), (0, 3, x1), (2, 0, x0)]),
        (Rule::Ends, &[(0, 2, x0), (0, 3, x1), (2, 2, x0)]),
        (Rule::Words, &[(0, 2, &[(0, 0, 9)]), (0, 3, x1)]),
        (Rule::Words, &[(0, 2, x0), (0, 3, x1), (2, 3, &[(0, 3, 0)])]),
        (Rule::Words, &[(0, 2, &[(0, u32::MAX, u32::MAX)]), (0, 3, x1)]),
    ];
    for (rule, messages) in cases {
        assert_eq!(rules(&plan(sent(), messages)), [*rule], "{messages:?}");
    }
}

#[test]
fn ordered_connections_are_in_different_messages() {
    let order = vec![(ConnectionId(0), ConnectionId(1))];
    let ordered = || sent().with_order(order.clone()).unwrap();
    let (x0, x1): (&[_], &[_]) = (&[(0, 0, 8)], &[(1, 0, 6)]);
    assert_eq!(check_steps(&plan(ordered(), &[(0, 2, x0), (0, 3, x1)])).unwrap().orders, 1);
    for wrong in [
        &[(0, 3, x1), (0, 2, x0)][..],
        &[(0, 2, &[(0, 0, 8), (1, 0, 6)]), (2, 3, x1)],
        &[(0, 2, &[(0, 0, 4)]), (0, 3, x1), (0, 2, &[(0, 4, 4)])],
    ] {
        assert_eq!(rules(&plan(ordered(), wrong)), [Rule::Order], "{wrong:?}");
    }
}

#[test]
fn given_lists_are_paired_and_have_no_cycle() {
    let set = set(&[(0, 1, 1), (0, 1, 2), (1, 0, 3)]);
    let messages: &[Draft<'_>] =
        &[(0, 1, &[(0, 0, 1)]), (0, 1, &[(1, 0, 2)]), (1, 0, &[(2, 0, 3)])];
    let steps = plan(set, messages);
    let none: &[u32] = &[];
    let of = |a: &[u32], b: &[u32]| rules_of_lists(&steps, &lists(&[a, b, none, none]));
    assert_eq!(of(&[0, 1, 2], &[0, 1, 2]), []);
    assert_eq!(of(&[2, 0, 1], &[2, 0, 1]), []);
    // Missing, unknown, twice, in another order than sent; at another cell; too few lists.
    for (a, b) in [
        (&[0, 1, 2][..], &[0, 2][..]),
        (&[0, 1, 2, 3], &[0, 1, 2]),
        (&[0, 0, 1, 2], &[0, 1, 2]),
        (&[1, 0, 2], &[0, 1, 2]),
    ] {
        assert_eq!(of(a, b), [Rule::Pairing], "{a:?} {b:?}");
    }
    let elsewhere = lists(&[&[0, 1, 2], &[0, 1, 2], &[0], none]);
    assert_eq!(rules_of_lists(&steps, &elsewhere), [Rule::Pairing]);
    assert_eq!(rules_of_lists(&steps, &lists(&[&[0, 1, 2]])), [Rule::Pairing]);
    // c0 sends first and receives then, c1 too.
    assert_eq!(of(&[0, 1, 2], &[2, 0, 1]), [Rule::Deadlock]);
}

#[test]
fn violations_name_the_step_the_cell_and_the_message() {
    let first = |rejection: Rejection| rejection.violations()[0].clone();
    let at = |violation: &Violation| (violation.step, violation.cell);
    // In one of five steps, c2 sends words that it does not have.
    for wrong in 0..5 {
        let pieces: Vec<[(u32, u32, u32); 1]> = (0..5).map(|x| [(x, 0, 1)]).collect();
        let source = |row: u32| if row == wrong { 2 } else { 0 };
        let messages = pieces.iter().zip(0..).map(|(piece, row)| (source(row), 1, &piece[..]));
        let steps = plan(set(&[(0, 1, 1); 5]), &messages.collect::<Vec<Draft<'_>>>());
        let violation = first(check_steps(&steps).unwrap_err());
        assert_eq!(violation.rule, Rule::Holding);
        assert_eq!(at(&violation), (Some(StepId(wrong)), Some(CellId(2))));
    }
    // A message is missing at its source, or at its target.
    let one = plan(set(&[(0, 1, 1)]), &[(0, 1, &[(0, 0, 1)])]);
    let none: &[u32] = &[];
    for (cell, lists) in
        [(0, lists(&[none, &[0], none, none])), (1, lists(&[&[0], none, none, none]))]
    {
        let violation = first(check_step_lists(&one, &lists).unwrap_err());
        assert_eq!((violation.rule, at(&violation)), (Rule::Pairing, (None, Some(CellId(cell)))));
    }
    // Messages 2 and 3 wait for each other, message 1 waits for both; 0 and 4 are complete.
    let ends = [(2, 3), (1, 3), (0, 1), (1, 0), (2, 1)];
    let steps = direct(machine("ring:4", &[]), &ends.map(|(from, to)| (from, to, 1)));
    let lists = lists(&[&[2, 3], &[4, 3, 2, 1], &[0, 4], &[0, 1]]);
    let violation = first(check_step_lists(&steps, &lists).unwrap_err());
    assert_eq!(
        (violation.rule, at(&violation)),
        (Rule::Deadlock, (Some(StepId(2)), Some(CellId(0))))
    );
    assert!(violation.message.contains("message 2 from c0 to c1 waits"), "{violation}");
}

#[test]
fn pieces_follow_given_lists() {
    let messages: &[Draft<'_>] = &[(0, 1, &[(0, 0, 4)]), (1, 2, &[(0, 0, 4)])];
    let steps = plan(set(&[(0, 2, 4)]), messages);
    let none: &[u32] = &[];
    assert_eq!(rules_of_lists(&steps, &lists(&[&[0], &[0, 1], &[1], none])), []);
    assert_eq!(
        rules_of_lists(&steps, &lists(&[&[0], &[1, 0], &[1], none])),
        [Rule::Coverage, Rule::Holding]
    );
}

#[test]
fn times_beyond_the_limit_are_refused() {
    let slow = [("access_clocks_per_word", "1000000000"), ("link_clocks_per_word", "1000000000")];
    let words = 1 << 29;
    let bounce: &[(u32, u32, u32)] = &[(0, 0, words)];
    let messages = |count: usize| {
        let turns: [Draft<'_>; 2] = [(0, 1, bounce), (1, 0, bounce)];
        (0..count).map(|turn| turns[turn % 2]).collect::<Vec<_>>()
    };
    let of =
        |count| rules(&plan_on(machine("ring:4", &slow), set(&[(0, 1, words)]), &messages(count)));
    assert_eq!(of(1), []);
    assert_eq!(of(11), [Rule::Duration]);
    // Four messages take 7 x 2^31 clocks beside their words, of which each takes 2^31: 2^62 in all.
    let exact = |c_send: u32| {
        let (clocks, c_send) = ((1u32 << 29).to_string(), c_send.to_string());
        let machine = machine(
            "ring:4",
            &[
                ("access_clocks_per_word", &clocks),
                ("link_clocks_per_word", &clocks),
                ("copy_clocks_per_word", &clocks),
                ("c_send", &c_send),
                ("c_receive", "0"),
                ("message_extra_words", "0"),
            ],
        );
        let words = [1 << 29, 1 << 29, 1 << 29, (1 << 29) - 7];
        rules(&direct(machine, &words.map(|words| (0, 1, words))))
    };
    assert_eq!(exact(1 << 29), []);
    assert_eq!(exact((1 << 29) + 1), [Rule::Duration]);
}

/// A direct exchange of c0 with c1 and c2, on a machine with easy numbers.
fn compiled(change: impl FnOnce(&mut SetSteps)) -> Vec<Rule> {
    let numbers = [("c_send", "100"), ("c_receive", "50"), ("message_extra_words", "0")];
    let machine = machine("ring:4", &numbers);
    let messages: &[Draft<'_>] = &[(0, 1, &[(0, 0, 30)]), (0, 2, &[(1, 0, 40)])];
    let steps = plan_on(machine.clone(), set(&[(0, 1, 30), (0, 2, 40)]), messages);
    let bounds = StepBounds {
        // Software and words of c0: one message at least, or two.
        clocks: 100 + 70 * 2,
        clocks_by: Binding::AgentLoad,
        clocks_witness: None,
        direct_clocks: 2 * 100 + 70 * 2,
    };
    let mut set = SetSteps { steps, bounds, predicted_clocks: Some(500) };
    change(&mut set);
    let alone = check_set_steps(&set).err().map(|rejection| rejection.rules());
    let schedule = StepSchedule::new(machine, vec![set], None).unwrap();
    let rules = check_step_schedule(&schedule).err().map(|rejection| rejection.rules());
    assert_eq!(alone, rules);
    rules.unwrap_or_default()
}

#[test]
fn claims_are_proved() {
    assert_eq!(compiled(|_| ()), []);
    assert_eq!(compiled(|set| set.predicted_clocks = None), []);
    assert_eq!(compiled(|set| set.bounds = StepBounds::default()), []);
    let average = |clocks| {
        move |set: &mut SetSteps| {
            set.bounds.clocks_by = Binding::AverageLink;
            set.bounds.clocks_witness = Some(Witness::Hops);
            set.bounds.clocks = clocks;
        }
    };
    // 30 words over one link and 40 over two, on 8 links.
    assert_eq!(compiled(average((30 + 2 * 40) * 2_u64.div_ceil(8))), [Rule::Claim]);
    assert_eq!(compiled(average(((30 + 2 * 40) * 2_u64).div_ceil(8))), []);
    for change in [
        (|set| set.bounds.clocks += 1) as fn(&mut SetSteps),
        |set| set.bounds.direct_clocks += 1,
        |set| set.bounds.clocks_by = Binding::Bisection,
        |set| set.bounds.clocks_witness = Some(Witness::Hops),
        |set| set.predicted_clocks = Some(339),
        |set| set.predicted_clocks = Some(1_000_000),
        |set| set.predicted_clocks = Some(u64::MAX),
        |set| set.bounds.clocks = u64::MAX,
    ] {
        assert_eq!(compiled(change), [Rule::Claim]);
    }
}

#[test]
fn predictions_are_between_the_busiest_cell_and_all_messages_in_a_row() {
    let numbers = [
        ("c_send", "100"),
        ("c_receive", "50"),
        ("message_extra_words", "3"),
        ("access_clocks_per_word", "5"),
        ("link_clocks_per_word", "7"),
        ("copy_clocks_per_word", "11"),
        ("network_overhead", "13"),
    ];
    let messages: &[Draft<'_>] = &[(0, 1, &[(0, 0, 30)]), (0, 2, &[(1, 0, 40)])];
    let of = |predicted| {
        let machine = machine("ring:4", &numbers);
        let steps = plan_on(machine, set(&[(0, 1, 30), (0, 2, 40)]), messages);
        rules_of_claims(steps, StepBounds::default(), predicted)
    };
    // c0 sends two messages; only the last word of each need not cross the link.
    let least = 2 * 100 + (30 + 40 + 2 * 3 - 2) * 7 + 2 * 5;
    assert_eq!((of(least), of(least - 1)), (vec![], vec![Rule::Claim]));
    // Software at both ends, over as many links as cells, two accesses, and words: accessed, twice
    // over a link and copied.
    let most = 2 * (100 + 50 + 2 * 13 + 4 * 7 + 2 * 5) + (30 + 40 + 2 * 3) * (5 + 2 * 7 + 11);
    assert_eq!((of(most), of(most + 1)), (vec![], vec![Rule::Claim]));
}

#[test]
fn bounds_by_links_may_exceed_those_of_agents_but_not_the_prediction() {
    let numbers = [("c_send", "0"), ("c_receive", "0"), ("message_extra_words", "0")];
    let messages: &[Draft<'_>] = &[(0, 2, &[(0, 0, 40)]), (1, 3, &[(1, 0, 40)])];
    // All 80 words cross the link from c1 to c2; c0 and c1 send 40 each.
    let clocks = 80 * 2;
    let of = |claimed, direct_clocks, predicted| {
        let steps = plan_on(machine("mesh:4", &numbers), set(&[(0, 2, 40), (1, 3, 40)]), messages);
        let bounds = StepBounds {
            clocks: claimed,
            clocks_by: Binding::Bisection,
            clocks_witness: Some(Witness::Cut(vec![(CellId(0), CellId(1))])),
            direct_clocks,
        };
        rules_of_claims(steps, bounds, predicted)
    };
    assert_eq!(of(clocks, 0, clocks), []);
    // Direct plans are other plans, too: what holds for all of them needs no proof of its own.
    assert_eq!(of(clocks, clocks, clocks), []);
    assert_eq!(of(clocks, clocks + 1, clocks), [Rule::Claim]);
    assert_eq!(of(clocks + 1, 0, clocks + 1), [Rule::Claim]);
    assert_eq!(of(clocks, 0, clocks - 1), [Rule::Claim]);
}

#[test]
fn clocks_of_all_sets_together_are_limited() {
    let violation = |of: [(u64, u64, u64); 2]| {
        let machine = machine("ring:4", &[]);
        let sets = of.iter().zip(0..).map(|(&(clocks, direct_clocks, predicted), row)| {
            let rows = set(&[(0, 1, 3)]).connections().to_vec();
            let named = ConnectionSet::new(format!("s{row}"), rows).unwrap();
            let steps = plan_on(machine.clone(), named, &[(0, 1, &[(0, 0, 3)])]);
            let bounds = StepBounds { clocks, direct_clocks, ..StepBounds::default() };
            SetSteps { steps, bounds, predicted_clocks: Some(predicted) }
        });
        let schedule = StepSchedule::new(machine.clone(), sets.collect(), None).unwrap();
        let rejection = check_step_schedule(&schedule).unwrap_err();
        assert_eq!(rejection.rules(), [Rule::Claim]);
        let violation = &rejection.violations()[0];
        (violation.set.clone(), violation.message.contains("sets before it"))
    };
    let time = limits::TIME;
    // Within the limit, the claims of each set are refused, the first one first.
    let second = ("s1".to_owned(), true);
    assert_eq!(violation([(0, 0, time - 5), (0, 0, 5)]), ("s0".to_owned(), false));
    assert_eq!(violation([(0, 0, time - 5), (0, 0, 6)]), second);
    assert_eq!(violation([(time - 5, 0, 0), (6, 0, 0)]), second);
    assert_eq!(violation([(5, time - 5, 0), (6, 0, 0)]), second);
}

#[test]
fn words_of_a_program_one_after_the_other_are_limited() {
    let machine = machine("ring:4", &[("access_clocks_per_word", "1000000000")]);
    let words = 1 << 30;
    let steps = direct(machine.clone(), &[(0, 1, words); 3]);
    let set = SetSteps { steps, bounds: StepBounds::default(), predicted_clocks: None };
    assert!(check_set_steps(&set).is_ok());
    let schedule = StepSchedule::new(machine, vec![set], None).unwrap();
    let rejection = check_step_schedule(&schedule).unwrap_err();
    assert_eq!((rejection.total(), rejection.rules()), (1, vec![Rule::Duration]));
    assert_eq!(rejection.violations()[0].set, "program");
}

#[test]
fn a_digest_is_that_of_the_program() {
    let machine = machine("ring:4", &[]);
    let steps = plan_on(machine.clone(), set(&[(0, 1, 3)]), &[(0, 1, &[(0, 0, 3)])]);
    let set = SetSteps { steps, bounds: StepBounds::default(), predicted_clocks: None };
    let schedule = StepSchedule::new(machine, vec![set], None).unwrap().with_digest();
    assert!(check_step_schedule(&schedule).is_ok());
    let wrong = schedule.digest().map(|digest| digest ^ 1);
    let rejection = check_step_schedule(&schedule.with_stated_digest(wrong)).unwrap_err();
    assert_eq!(rejection.rules(), [Rule::Digest]);
}
