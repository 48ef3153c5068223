/** Two schedules side by side: their pictures with the same colours, and what `conset diff` says. */

import { el, fill, number, table } from "./dom";
import { highlight } from "./details";
import { type Highlight, MachineView } from "./machine";
import { ALL, type ConnectionSet, type Schedule } from "./model";
import { type State } from "./state";

interface Both<T> {
  a: T;
  b: T;
}

interface Change {
  what: string;
  a: string;
  b: string;
}

interface Part {
  phase: number;
  words: number;
  cells: number[];
  start: number;
  duration: number;
}

/** The parts of `conset diff --json` that are drawn. */
interface SetDiff {
  set: string;
  identical: boolean;
  removed: { total: number };
  added: { total: number };
  moved: number;
  rerouted: number;
  rechanneled: number;
  restarted: number;
  rebooked: number;
  placements: { total: number; first: { id: Both<number>; source: number; target: number; parts: Both<Part[]> }[] };
  entries: { stability: number; unchanged: number; changed: number; removed: number; added: number };
  [key: string]: unknown;
}

const NUMBERS: [string, string][] = [
  ["connections", "connections"],
  ["words", "words"],
  ["phases", "phases"],
  ["bound_phases", "bound on phases"],
  ["steps", "steps"],
  ["messages", "messages"],
  ["message_words", "words of messages"],
  ["predicted_clocks", "predicted clocks"],
  ["bound_clocks", "bound on clocks"],
];

export class Comparison {
  readonly views: MachineView[];
  private readonly captions: HTMLElement[];

  constructor(
    readonly schedules: Schedule[],
    pictures: HTMLElement,
    text: HTMLElement,
    diff: Record<string, unknown> | undefined,
    select: (schedule: number, set: number, connection: number) => void,
  ) {
    this.captions = schedules.map(() => el("figcaption"));
    const canvases = schedules.map((schedule) =>
      el("canvas", { role: "img", tabindex: 0, "aria-label": `Machine of ${schedule.head.name}` }),
    );
    fill(pictures, ...canvases.map((canvas, i) => el("figure", {}, this.captions[i], canvas)));
    this.views = schedules.map((schedule, i) => new MachineView(canvases[i], schedule.machine));
    // Both pictures move together.
    this.views.forEach((view, i) => {
      view.onZoom = (zoom) => this.views[1 - i].zoomTo(zoom);
    });
    fill(text, ...this.text(diff, select));
  }

  /** The set of the same name in each schedule. */
  private sets(name: string): (ConnectionSet | null)[] {
    return this.schedules.map((schedule) => schedule.sets.find((set) => set.name === name) ?? null);
  }

  show(state: State): void {
    const shown = this.schedules[state.schedule].sets[state.set];
    const sets = this.sets(shown?.name ?? "");
    const states = sets.map((set) => {
      const phase = set && state.phase < set.phaseCount ? state.phase : ALL;
      const clock = set && state.clock !== null && state.clock <= set.end ? state.clock : null;
      return { ...state, phase, clock, selection: null };
    });
    const scales = sets.map((set, i) => (set ? MachineView.scales(set, states[i]) : [0, 0]));
    const common: [number, number] = [
      Math.max(...scales.map((scale) => scale[0])),
      Math.max(...scales.map((scale) => scale[1])),
    ];
    sets.forEach((set, i) => {
      this.views[i].show(set, states[i], this.same(set, shown, state), common);
      const clocks = set?.head.summary.predicted_clocks;
      this.captions[i].textContent = set
        ? `${this.schedules[i].head.name}: ${set.phaseCount} ${this.schedules[i].phaseWord}s, ${clocks == null ? "?" : number(clocks)} clocks`
        : `${this.schedules[i].head.name}: no set ${shown?.name ?? ""}`;
    });
  }

  /** The routes of the selected connection: the one with the same ends in the other schedule. */
  private same(set: ConnectionSet | null, shown: ConnectionSet | undefined, state: State): Highlight {
    const none = { streams: [], shared: [] };
    const selection = state.selection;
    if (!set?.connections || !shown || !selection) return none;
    if (set === shown) return { ...highlight(set, state), shared: [] };
    let x = selection.kind === "connection" ? selection.id : -1;
    if (selection.kind === "stream") x = shown.streams?.connection?.[selection.id] ?? -1;
    if (x < 0 || !shown.connections || x >= shown.connections.words.length) return none;
    const [source, target] = [shown.connections.source[x], shown.connections.target[x]];
    const { source: from, target: to } = set.connections;
    for (let y = 0; y < from.length; y++)
      if (from[y] === source && to[y] === target) return { streams: set.streamsOf(y), shared: [] };
    return none;
  }

  private text(
    diff: Record<string, unknown> | undefined,
    select: (schedule: number, set: number, connection: number) => void,
  ): HTMLElement[] {
    if (!diff) return [el("p", {}, "One schedule has phases, the other one steps: only the pictures are compared.")];
    const found: HTMLElement[] = [];
    if (diff.identical) found.push(el("p", {}, "The two schedules are identical."));
    const changes = [...((diff.machine as Change[]) ?? []), ...((diff.origin as Change[]) ?? [])];
    if (changes.length > 0)
      found.push(
        table(
          "Machine and origin",
          [
            { title: "what", text: (row) => row.what, isText: true },
            { title: "a", text: (row) => row.a, isText: true },
            { title: "b", text: (row) => row.b, isText: true },
          ],
          changes,
        ),
      );
    for (const [key, word] of [
      ["removed", "only in a"],
      ["added", "only in b"],
    ])
      for (const name of (diff[key] as string[]) ?? []) found.push(el("p", {}, `Set ${name}: ${word}`));
    for (const set of (diff.sets as SetDiff[]) ?? []) found.push(...this.ofSet(set, select));
    return found;
  }

  private ofSet(diff: SetDiff, select: (schedule: number, set: number, connection: number) => void): HTMLElement[] {
    const rows = NUMBERS.flatMap(([key, title]) => {
      const value = diff[key] as Both<number> | [number, number] | undefined;
      if (value === undefined || typeof value !== "object" || value === null) return [];
      const [a, b] = Array.isArray(value) ? value : [value.a, value.b];
      return typeof a === "number" && typeof b === "number" ? [{ title, key, a, b }] : [];
    });
    const found: HTMLElement[] = [
      table(
        `Set ${diff.set}${diff.identical ? ": identical" : ""}`,
        [
          { title: "number", text: (row) => row.title, isText: true },
          { title: "a", text: (row) => row.a },
          { title: "b", text: (row) => row.b },
          {
            title: "change",
            text: (row) => (row.a === row.b ? "=" : `${row.b > row.a ? "+" : "−"}${number(Math.abs(row.b - row.a))}`),
          },
        ],
        rows,
        (row) => ({ "data-diff": row.key, "data-a": row.a, "data-b": row.b }),
      ),
    ];
    if (diff.identical || !diff.placements) return found;
    found.push(
      el(
        "p",
        {},
        `Connections: ${number(diff.moved)} in another phase, ${number(diff.rerouted)} on another route, ` +
          `${number(diff.rechanneled)} on other channels, ${number(diff.restarted)} at another start, ` +
          `${number(diff.rebooked)} with another duration; ${number(diff.removed.total)} removed, ` +
          `${number(diff.added.total)} added. ` +
          `Forwarding entries: ${(100 * diff.entries.stability).toFixed(1)} % unchanged.`,
      ),
    );
    const numbers = this.schedules.map((schedule) => schedule.sets.findIndex((set) => set.name === diff.set));
    const part = (parts: Part[]) =>
      parts
        .map((p) => `phase ${p.phase}, clock ${number(p.start)}: ${p.cells.map((c) => `c${c}`).join(" → ")}`)
        .join("; ");
    const { first, total } = diff.placements;
    found.push(
      table(
        `Connections that are placed differently${total > first.length ? ` (the first ${first.length} of ${number(total)})` : ""}`,
        [
          {
            title: "connection",
            text: (row) =>
              el(
                "button",
                { type: "button", class: "item", onclick: () => select(1, numbers[1], row.id.b) },
                `x${row.id.b}: c${row.source} → c${row.target}`,
              ),
            isText: true,
          },
          { title: "a", text: (row) => part(row.parts.a), isText: true },
          { title: "b", text: (row) => part(row.parts.b), isText: true },
        ],
        first,
      ),
    );
    return found;
  }
}
