/** The summary at the top of the page: machine, parts, sets and bounds, in the words of `conset show`. */

import { byId, count, el, fill, number } from "./dom";
import { type ConnectionSet, type Schedule } from "./model";

export function showHeader(schedule: Schedule, set: ConnectionSet | null): void {
  const { machine, head } = schedule;
  const facts: Node[] = [];
  const fact = (name: string, value: string, extra = "") =>
    facts.push(el("span", { "data-summary": name }, `${name} `, el("b", {}, value), extra));
  const m = machine.head.summary;
  fact(
    "machine",
    m.name,
    ` (${m.topology}): ${count(m.cells, "cell")}, ${count(m.links, "link")}, ${count(m.channels_per_cell, "channel")} per cell`,
  );
  if (head.parts)
    fact(
      "parts",
      number(head.parts.parts),
      `, ${count(head.parts.words, "word")} together, at most ${count(head.parts.max_degree, "neighbour")}`,
    );
  const s = set?.head.summary;
  if (s) {
    fact("connections", number(s.connections), `, ${count(s.words, "word")}`);
    if (s.phases !== undefined && s.bound_phases === undefined) fact("phases", number(s.phases));
    else if (s.phases !== undefined) {
      const at =
        s.phases === s.bound_phases ? "optimal" : `${(s.phases / (s.bound_phases || 1)).toFixed(2)} over bound`;
      fact("phases", number(s.phases), `, bound ${number(s.bound_phases!)} by ${s.bound_phases_by} (${at})`);
    }
    if (s.steps !== undefined) fact("steps", number(s.steps), `, ${count(s.messages!, "message")}`);
    if (s.predicted_clocks != null && s.bound_clocks !== undefined) {
      const at =
        s.predicted_clocks <= s.bound_clocks
          ? "optimal"
          : `${(s.predicted_clocks / (s.bound_clocks || 1)).toFixed(2)} over bound`;
      fact(
        "clocks",
        number(s.predicted_clocks),
        ` predicted, bound ${number(s.bound_clocks)} by ${s.bound_clocks_by} (${at})`,
      );
    }
    // The switches of a phase are on every critical path.
    const switches = set?.head.profile?.path.switch ?? 0;
    if (switches > 0)
      fact(
        "switches",
        number(switches),
        ` of these clocks are context switches (${((100 * switches) / (s.predicted_clocks || 1)).toFixed(1)} %)`,
      );
  } else fact("sets", "none");
  if (head.origin) fact("made by", head.origin.generator, `, ${head.origin.algorithm}, seed ${head.origin.seed}`);
  fill(byId("summary"), ...facts);
  byId("phase-word").textContent = schedule.phaseWord === "step" ? "Step" : "Phase";
  byId("phases-title").textContent = schedule.phaseWord === "step" ? "Steps and bounds" : "Phases and bounds";
}
