/** What the page shows: kept in the hash of its address, so that a link restores a view. */

import { ALL } from "./data";

export type SelectionKind = "cell" | "link" | "connection" | "stream";

export interface Selection {
  kind: SelectionKind;
  id: number;
}

export interface State {
  schedule: number;
  set: number;
  /** A phase or step, or `ALL`. */
  phase: number;
  /** The clock of the player, from the start of the set; `null` if it is not shown. */
  clock: number | null;
  cells: string;
  links: string;
  selection: Selection | null;
  /** `auto`, `light` or `dark`. */
  theme: string;
  /** Rows of the timetable: `agents` or `links`. */
  rows: string;
  /** Whether the timetable marks the critical path: `on` or `off`. */
  path: string;
  /** Columns of the chart of clocks: `phases` or `cells`; empty for phases if there are several. */
  clocks: string;
  /** Their order: `number` or `idle`. */
  order: string;
  /** The filter of the timetable: names of cells. */
  filter: string;
  /** What colours the mesh: `part` or `cell`. */
  mesh: string;
  /** Zoom of the machine and of the timetable: x, y, factor. */
  zoom: string;
  time: string;
}

const DEFAULTS: State = {
  schedule: 0,
  set: 0,
  phase: ALL,
  clock: null,
  cells: "words",
  links: "words",
  selection: null,
  theme: "auto",
  rows: "agents",
  path: "on",
  clocks: "",
  order: "number",
  filter: "",
  mesh: "part",
  zoom: "",
  time: "",
};

const KINDS: SelectionKind[] = ["cell", "link", "connection", "stream"];

/** Reads a hash. What it does not say, or says wrongly, is the default. */
export function fromHash(hash: string): State {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  const whole = (name: string, least: number): number | null => {
    const text = fields.get(name);
    return text !== null && /^-?\d+$/.test(text) && Number(text) >= least ? Number(text) : null;
  };
  state.schedule = whole("schedule", 0) ?? 0;
  state.set = whole("set", 0) ?? 0;
  state.phase = whole("phase", ALL) ?? ALL;
  state.clock = whole("clock", 0);
  for (const name of [
    "cells",
    "links",
    "theme",
    "rows",
    "path",
    "clocks",
    "order",
    "filter",
    "mesh",
    "zoom",
    "time",
  ] as const) {
    const text = fields.get(name);
    if (text !== null) state[name] = text;
  }
  const [kind, id] = (fields.get("select") ?? "").split(":");
  if (KINDS.includes(kind as SelectionKind) && /^\d+$/.test(id ?? ""))
    state.selection = { kind: kind as SelectionKind, id: Number(id) };
  return state;
}

/** The hash of a state: only what differs from the default. */
export function toHash(state: State): string {
  const fields = new URLSearchParams();
  for (const name of Object.keys(DEFAULTS) as (keyof State)[]) {
    const value = state[name];
    if (name === "selection") {
      if (state.selection) fields.set("select", `${state.selection.kind}:${state.selection.id}`);
    } else if (value !== DEFAULTS[name]) {
      fields.set(name, String(typeof value === "number" ? Math.round(value) : value));
    }
  }
  const text = fields.toString();
  return text ? `#${text}` : "#";
}

/** The state and who is told of its changes. */
export class Store {
  state: State;
  private readonly listeners: ((state: State, before: State) => void)[] = [];
  private writing: number | undefined;

  constructor() {
    this.state = fromHash(location.hash);
    window.addEventListener("hashchange", () => {
      if (location.hash !== toHash(this.state) && location.hash + "#" !== toHash(this.state))
        this.replace(fromHash(location.hash));
    });
  }

  listen(listener: (state: State, before: State) => void): void {
    this.listeners.push(listener);
  }

  set(change: Partial<State>): void {
    this.replace({ ...this.state, ...change });
    // Browsers refuse addresses that change many times a second, as the player does.
    clearTimeout(this.writing);
    this.writing = window.setTimeout(() => history.replaceState(null, "", toHash(this.state)), 150);
  }

  private replace(next: State): void {
    const before = this.state;
    this.state = next;
    for (const listener of this.listeners) listener(next, before);
  }
}
