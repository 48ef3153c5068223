//! `conset why`: explaining the phase, route and start of a connection.

use std::io::{self, Write};
use std::sync::Arc;

use conset::step_views;
use conset::why::{
    self, BlockingSlot, Clocks, Explanation, Feasibility, FullCell, PartExplanation, PhaseChoice,
    RouteExplanation, StartExplanation, WaitCause,
};
use conset_ir::convert::to_u64;
use conset_ir::{At, CellId, ConnectionId, ConnectionSet, InputError};

use crate::args::WhyArgs;
use crate::commands::steps;
use crate::error::CliError;
use crate::load::{self, Either};
use crate::text::{self, Terminal};

pub(crate) fn run(args: &WhyArgs, terminal: &Terminal) -> Result<(), CliError> {
    let only = args.set_name.as_deref();
    let compiled = match load::any_compiled_file(&args.file, terminal)? {
        Either::Phases(compiled) => compiled,
        Either::Steps(compiled) => {
            let sets = compiled.schedule().sets();
            let names: Vec<_> = sets.iter().map(|set| set.steps.set()).collect();
            let (row, x) = find(&names, &args.connection, only)?;
            return steps::write_why(&step_views::why(&sets[row], x), terminal);
        }
    };
    let sets: Vec<_> =
        compiled.schedule().sets().iter().map(|s| s.timetable.routing().set()).collect();
    let (row, x) = find(&sets, &args.connection, only)?;
    let timetable = &compiled.schedule().sets()[row].timetable;
    let why = why::why(timetable, &compiled.sets()[row].prediction, x)
        .expect("the connection was found in the set");
    terminal.print(&why, |out| write_why(out, &why))
}

/// The set and the connection with a name, or with an id with or without `x`.
fn find(
    sets: &[&Arc<ConnectionSet>],
    word: &str,
    set_name: Option<&str>,
) -> Result<(usize, ConnectionId), InputError> {
    let wrong = |message: String| InputError::new("why", At::Path(word.to_owned()), message);
    let names = || sets.iter().map(|set| set.name()).collect::<Vec<_>>().join(", ");
    if set_name.is_some_and(|name| sets.iter().all(|set| set.name() != name)) {
        return Err(wrong(format!("no set is named `{}`", set_name.unwrap_or_default()))
            .help(format!("sets: {}", names())));
    }
    let id = word.strip_prefix(ConnectionId::PREFIX).unwrap_or(word).parse().ok();
    let mut found = Vec::new();
    for (row, set) in sets.iter().enumerate() {
        if set_name.is_some_and(|name| set.name() != name) {
            continue;
        }
        let named = set.iter().find(|(_, c)| c.name.as_deref() == Some(word)).map(|(x, _)| x);
        let counted = id.map(ConnectionId).filter(|x| x.index() < set.len());
        found.extend(named.or(counted).map(|x| (row, x)));
    }
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let sizes: Vec<String> = sets
                .iter()
                .map(|set| match set.len() {
                    0 => format!("set {} has no connections", set.name()),
                    n => format!("set {} has x0 to x{}", set.name(), n - 1),
                })
                .collect();
            let shown = if sizes.is_empty() { "no sets".to_owned() } else { sizes.join("; ") };
            Err(wrong("no connection has this id or name".to_owned())
                .help(format!("write an id, 12 or x12, or a name; {shown}")))
        }
        _ => Err(wrong("several sets have such a connection".to_owned())
            .help(format!("say which with --set: {}", names()))),
    }
}

fn write_why(out: &mut dyn Write, why: &Explanation) -> io::Result<()> {
    let name = why.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    writeln!(
        out,
        "{}{name} of set {}: {} -> {}, {}{}",
        why.connection,
        why.set,
        why.source,
        why.target,
        text::count(why.words.into(), "word"),
        if why.parts_total > 1 { format!(", in {} parts", why.parts_total) } else { String::new() },
    )?;
    for part in &why.parts {
        if why.parts_total > 1 {
            writeln!(out, "\npart with {}", text::count(part.words.into(), "word"))?;
        }
        write_phase(out, why, part)?;
        write_route(out, &part.route)?;
        write_start(out, &part.start, part.phase_clocks)?;
        write_choices(out, part)?;
    }
    match why.parts_total - why.parts.len() {
        0 => Ok(()),
        more => writeln!(out, "\n{} not shown", text::count(to_u64(more), "more part")),
    }
}

fn write_phase(out: &mut dyn Write, why: &Explanation, part: &PartExplanation) -> io::Result<()> {
    writeln!(
        out,
        "phase    {} of {}: {} clocks of the set's {} (predicted)",
        part.part.phase,
        why.set_phases,
        text::number(part.phase_clocks),
        text::number(why.set_clocks),
    )?;
    let tried = &part.phase_choices.tried;
    if tried.is_empty() {
        return writeln!(out, "         there is no other phase");
    }
    let count = |verdict| tried.iter().filter(|choice| choice.verdict == verdict).count();
    let mut found = Vec::new();
    for (verdict, words) in [
        (Feasibility::Feasible, "with room"),
        (Feasibility::Full, "without free channels on the route"),
        (Feasibility::Order, "excluded by order"),
        (Feasibility::Contract, "excluded by a contract"),
        (Feasibility::Unpriced, "with room but too large to price"),
    ] {
        match count(verdict) {
            0 => {}
            n => found.push(format!("{n} {words}")),
        }
    }
    let left_out = match part.phase_choices.left_out {
        0 => String::new(),
        n => {
            let room = part.phase_choices.room_at_ends;
            format!(" ({n} not tried; of all, {room} have room at both ends)")
        }
    };
    writeln!(out, "         other phases: {}{left_out}", found.join(", "))?;
    let priced = tried.iter().filter_map(|choice| Some((choice.clocks?, choice.phase)));
    let Some((best, phase)) = priced.min_by_key(|(clocks, phase)| (clocks.set, *phase)) else {
        return Ok(());
    };
    writeln!(out, "         the cheapest move, to {phase}, {}", judged(best))
}

fn judged(clocks: Clocks) -> String {
    match clocks.change {
        0 => "would change nothing".to_owned(),
        n if n > 0 => format!("would cost {} more", text::count(n.unsigned_abs(), "clock")),
        n => format!("would save {}", text::count(n.unsigned_abs(), "clock")),
    }
}

fn write_route(out: &mut dyn Write, route: &RouteExplanation) -> io::Result<()> {
    let stops: Vec<String> =
        route.cells.iter().zip(&route.channels).map(|(c, ch)| format!("{c}/{ch}")).collect();
    writeln!(out, "route    {}", stops.join(" -> "))?;
    let hops = to_u64(route.links.len());
    let detour = hops.saturating_sub(route.shortest_hops.into());
    writeln!(
        out,
        "         {}, {}; at most {} on a cell, {} on a link",
        text::count(hops, "hop"),
        if detour == 0 { "the fewest".to_owned() } else { format!("{detour} more than needed") },
        text::count(route.max_channels.into(), "channel"),
        text::count(route.max_sharing.into(), "route"),
    )?;
    let shown = match (route.shortest_count, to_u64(route.examined)) {
        (all, looked) if all > looked => format!("{}, {looked} looked at", text::number(all)),
        (all, _) => text::number(all),
    };
    writeln!(out, "         shortest routes: {shown}, of these {} with room", route.with_room)?;
    let priced = route.others.iter().filter_map(|other| Some((other.clocks?, &other.cells)));
    match priced.min_by_key(|(clocks, _)| clocks.set) {
        None => Ok(()),
        Some((best, cells)) => {
            writeln!(out, "         the cheapest other, {}, {}", path(cells), judged(best))
        }
    }
}

fn path(cells: &[CellId]) -> String {
    let (head, tail) = match cells.len() {
        0..=12 => (cells, &cells[..0]),
        n => (&cells[..6], &cells[n - 5..]),
    };
    let join =
        |cells: &[CellId]| cells.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ");
    if tail.is_empty() { join(head) } else { format!("{} -> ... -> {}", join(head), join(tail)) }
}

fn write_start(out: &mut dyn Write, start: &StartExplanation, phase_clocks: u64) -> io::Result<()> {
    writeln!(
        out,
        "start    clock {} of its phase, planned finish {}, predicted at the latest {}",
        text::number(start.start),
        text::number(start.end),
        text::number(phase_clocks.max(start.end)),
    )?;
    if start.start == 0 {
        return writeln!(out, "         nothing precedes it");
    }
    if start.kept {
        writeln!(out, "         its agents wait for this start: the machine has timed starts")?;
    }
    if start.earliest < start.start {
        writeln!(out, "         its agents are free from clock {}", text::number(start.earliest))?;
    }
    match start.waits_total - start.waits.len() {
        0 => {}
        n => writeln!(out, "         before it: {} and", text::count(to_u64(n), "earlier slot"))?,
    }
    for wait in &start.waits {
        writeln!(out, "         before it: {}", waited(wait))?;
    }
    for wait in &start.chain {
        writeln!(out, "         chain: after {}", waited(wait))?;
    }
    Ok(())
}

fn waited(wait: &BlockingSlot) -> String {
    let at = match wait.at {
        WaitCause::Source => "source busy",
        WaitCause::Target => "target busy",
        WaitCause::Both => "both ends busy",
        WaitCause::Order => "by order",
    };
    format!(
        "{} ({} -> {}), {} to {}, {at}",
        wait.connection,
        wait.source,
        wait.target,
        text::number(wait.start),
        text::number(wait.end),
    )
}

fn write_choices(out: &mut dyn Write, part: &PartExplanation) -> io::Result<()> {
    if !part.phase_choices.tried.is_empty() {
        writeln!(out, "\nin another phase")?;
        let mut table = text::table(
            &["phase", "verdict", "hops", "sharing", "phase_clocks", "set_clocks", "change", "why"],
            2,
        );
        left(&mut table, 7);
        for choice in &part.phase_choices.tried {
            let mut row = vec![choice.phase.to_string(), feasibility(choice.verdict).to_owned()];
            row.push(choice.hops.map_or(String::new(), |n| n.to_string()));
            row.push(choice.max_sharing.map_or(String::new(), |n| n.to_string()));
            row.extend(clocks(choice.clocks));
            row.push(why_not(choice));
            table.add_row(row);
        }
        text::write_table(out, &table)?;
    }
    if !part.route.others.is_empty() {
        writeln!(out, "\nother shortest routes in its phase")?;
        let mut table = text::table(
            &["cells", "verdict", "channels", "sharing", "phase_clocks", "set_clocks", "change"],
            2,
        );
        for other in &part.route.others {
            let mut row = vec![path(&other.cells), feasibility(other.verdict).to_owned()];
            row.push(other.max_channels.to_string());
            row.push(other.max_sharing.to_string());
            row.extend(clocks(other.clocks));
            table.add_row(row);
        }
        text::write_table(out, &table)?;
    }
    Ok(())
}

fn left(table: &mut comfy_table::Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
}

fn feasibility(verdict: Feasibility) -> &'static str {
    match verdict {
        Feasibility::Feasible => "room",
        Feasibility::Full => "full",
        Feasibility::Order => "order",
        Feasibility::Contract => "contract",
        Feasibility::Unpriced => "unpriced",
    }
}

fn clocks(clocks: Option<Clocks>) -> [String; 3] {
    clocks.map_or_else(Default::default, |clocks| {
        let sign = if clocks.change < 0 { "-" } else { "+" };
        [
            text::number(clocks.phase),
            text::number(clocks.set),
            format!("{sign}{}", text::number(clocks.change.unsigned_abs())),
        ]
    })
}

fn why_not(choice: &PhaseChoice) -> String {
    let ids = |ids: &[ConnectionId], shown: usize| {
        let names: Vec<String> = ids.iter().take(shown).map(ToString::to_string).collect();
        format!("{}{}", names.join(" "), if ids.len() > shown { " ..." } else { "" })
    };
    match choice.verdict {
        Feasibility::Feasible | Feasibility::Unpriced => String::new(),
        Feasibility::Order => format!("ordered against {}", ids(&choice.blocked_by, 4)),
        Feasibility::Contract => format!("would break {}", ids(&choice.blocked_by, 4)),
        Feasibility::Full => {
            let full = |f: &FullCell| format!("{} by {}", f.cell, ids(&f.connections, 3));
            let cells: Vec<String> = choice.full.iter().take(2).map(full).collect();
            let more = if choice.full.len() > 2 { ", ..." } else { "" };
            format!("{}{more}", cells.join(", "))
        }
    }
}
