/** Two schedules side by side: their pictures with the same colours, and what `conset diff` says. */

import { el, fill, number, table } from "./dom";
import { highlight } from "./details";
import { changeLegend, scaleLegend } from "./colour";
import { type Highlight, MachineView, type Values } from "./machine";
import { CELLS, LINKS, greatest, measure } from "./measures";
import { ALL } from "./data";
import { type ConnectionSet, type Machine, type Schedule } from "./model";
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
  /** The pictures of both schedules, and of the change if they have the same machine. */
  readonly views: MachineView[];
  private readonly captions: HTMLElement[];
  private readonly legend = el("div", { class: "legends" });

  constructor(
    readonly schedules: Schedule[],
    pictures: HTMLElement,
    text: HTMLElement,
    diff: Record<string, unknown> | undefined,
    select: (schedule: number, set: number, connection: number) => void,
  ) {
    const machines = schedules.map((schedule) => schedule.machine);
    const names = schedules.map((schedule) => `Machine of ${schedule.head.name}`);
    if (haveSameLinks(machines[0], machines[1])) {
      machines.push(machines[1]);
      names.push("Change between the schedules");
    }
    this.captions = machines.map(() => el("figcaption"));
    const canvases = names.map((name) => el("canvas", { role: "img", tabindex: 0, "aria-label": name }));
    fill(pictures, ...canvases.map((canvas, i) => el("figure", {}, this.captions[i], canvas)));
    this.views = machines.map((machine, i) => new MachineView(canvases[i], machine));
    // All pictures move together.
    for (const view of this.views)
      view.onZoom = (zoom) => this.views.filter((other) => other !== view).forEach((other) => other.zoomTo(zoom));
    pictures.after(this.legend);
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
    const values = sets.map((set, i) => set && MachineView.values(set, states[i]));
    const common = {
      mostCells: Math.max(...values.map((value) => value?.mostCells ?? 0)),
      mostLinks: Math.max(...values.map((value) => value?.mostLinks ?? 0)),
    };
    sets.forEach((set, i) => {
      this.views[i].show(set, states[i], this.same(set, shown, state), values[i] && { ...values[i], ...common });
      const clocks = set?.head.summary.predicted_clocks;
      this.captions[i].textContent = set
        ? `${"ab"[i]}: ${this.schedules[i].head.name}, ${set.phaseCount} ${this.schedules[i].phaseWord}s, ${clocks == null ? "?" : number(clocks)} clocks`
        : `${"ab"[i]}: ${this.schedules[i].head.name}, no set ${shown?.name ?? ""}`;
    });
    const [cells, links] = [measure(CELLS, state.cells), measure(LINKS, state.links)];
    const legends = [
      scaleLegend(`cells: ${cells.title}`, common.mostCells, cells.unit),
      scaleLegend(`links: ${links.title}`, common.mostLinks, links.unit),
    ];
    const changed = this.views[2] && values[0] && values[1] ? change(values[0], values[1]) : null;
    if (this.views[2]) {
      this.captions[2].textContent = changed ? "Change from a to b" : "No set of that name in both";
      const still = { ...states[1], clock: null };
      this.views[2].show(changed ? sets[1] : null, still, { streams: [], shared: [] }, changed);
    }
    if (changed)
      legends.push(
        changeLegend("change of cells", changed.mostCells, cells.unit),
        changeLegend("change of links", changed.mostLinks, links.unit),
      );
    fill(this.legend, ...legends);
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

function haveSameLinks(a: Machine, b: Machine): boolean {
  const same = (x: ArrayLike<number>, y: ArrayLike<number>) =>
    x.length === y.length && Array.prototype.every.call(x, (value, i) => value === y[i]);
  return a.head.cell_count === b.head.cell_count && same(a.source, b.source) && same(a.target, b.target);
}

/** The values of b minus those of a. */
function change(a: Values, b: Values): Values {
  const minus = (x: ArrayLike<number> | null, y: ArrayLike<number> | null) =>
    x && y ? Float64Array.from(y as ArrayLike<number>, (value, i) => value - x[i]) : null;
  const magnitude = (values: Float64Array | null) => greatest(values && values.map(Math.abs));
  const [cells, links] = [minus(a.cells, b.cells), minus(a.links, b.links)];
  return { cells, links, mostCells: magnitude(cells), mostLinks: magnitude(links), isChange: true };
}
