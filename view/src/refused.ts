/** The banner of schedules that the checker refuses: the violations, each of which selects its place. */

import { type Violation } from "./data";
import { byId, count, el, fill, number } from "./dom";
import { type Schedule } from "./model";
import { type Selection, type State } from "./state";

export function showRefused(schedules: Schedule[], change: (change: Partial<State>) => void): void {
  const refused = schedules.filter((schedule) => schedule.head.refused);
  const banner = byId("refused");
  banner.hidden = refused.length === 0;
  fill(
    byId("refused-text"),
    ...refused.flatMap((schedule) => {
      const { violations, total_violations: total } = schedule.head.refused!;
      const item = (violation: Violation) => el("li", {}, ...sentence(schedule, violation, change));
      const [first, ...others] = violations;
      const more = total - violations.length;
      return [
        el(
          "p",
          {},
          el("b", {}, schedule.head.name),
          `: ${count(total, "violation")}. Nothing executes it; what the page shows is what the file states.`,
        ),
        el("ul", {}, first ? item(first) : null),
        others.length > 0 &&
          el(
            "details",
            {},
            el("summary", {}, `${count(others.length, "further violation")}`),
            el("ul", {}, ...others.map(item), more > 0 && el("li", {}, `and ${number(more)} more`)),
          ),
      ];
    }),
  );
}

/** The rule, where it is violated, and what was expected. */
function sentence(
  schedule: Schedule,
  violation: Violation,
  change: (change: Partial<State>) => void,
): (Node | string)[] {
  const { rule, set, phase, step, cell, connection, message } = violation;
  const at = schedule.sets.findIndex((other) => other.name === set);
  const names = [
    set,
    phase === undefined ? null : `p${phase}`,
    step === undefined ? null : `s${step}`,
    cell === undefined ? null : `c${cell}`,
    connection === undefined ? null : `x${connection}`,
  ].filter((name) => name !== null && name !== "");
  const place = names.join(" ");
  if (at < 0 || names.length === 0) return [`${rule}: ${place ? `${place}: ` : ""}${message}`];
  let selection: Selection | null = null;
  if (connection !== undefined) selection = { kind: "connection", id: connection };
  else if (cell !== undefined) selection = { kind: "cell", id: cell };
  const select = () =>
    change({ schedule: schedule.number, set: at, clock: null, time: "", selection, phase: phase ?? step ?? -1 });
  return [`${rule}: `, el("button", { type: "button", class: "item", onclick: select }, place), `: ${message}`];
}
