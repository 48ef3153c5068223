/** The page: reads the data, makes the views, and keeps them and the controls in step with the state. */

import { Comparison } from "./compare";
import { ALL, type Head, readHead } from "./data";
import { Details, find, highlight } from "./details";
import { byId, count, el, fill, number, perFrame } from "./dom";
import { showHeader } from "./header";
import { Legends } from "./legends";
import { type Highlight, MachineView } from "./machine";
import { MatrixView } from "./matrix";
import { CELLS, LINKS, type Measure, measure } from "./measures";
import { MeshView } from "./mesh";
import { type ConnectionSet, type Schedule, readSchedules } from "./model";
import { ProfileView, columnKind, columns } from "./profile";
import { ProfileTables } from "./profile_tables";
import { showRefused } from "./refused";
import { type Selection, type State, Store } from "./state";
import { Tables } from "./tables";
import { TimetableView } from "./timetable";

/** Seconds in which the player passes a phase or set. */
const PLAY_SECONDS = 15;

/** The states that are chosen from lists. */
const CHOICES = ["schedule", "set", "theme", "cells", "links", "rows", "path", "clocks", "order", "mesh"] as const;
type Choice = (typeof CHOICES)[number];

class App {
  readonly store = new Store();
  readonly timetable = new TimetableView(byId<HTMLCanvasElement>("timetable"));
  readonly matrix = new MatrixView(byId<HTMLCanvasElement>("matrix"));
  readonly clocks = new ProfileView(byId<HTMLCanvasElement>("clocks"));
  machine: MachineView;
  mesh: MeshView | null = null;
  private comparison: Comparison | null = null;
  private playing = false;
  private readonly refresh = perFrame(() => this.show());
  private shown: State | null = null;
  private highlight: Highlight = { streams: [], shared: [] };
  private controls!: {
    phase: HTMLInputElement;
    clock: HTMLInputElement;
    play: HTMLButtonElement;
    phaseText: HTMLOutputElement;
    clockText: HTMLOutputElement;
  };

  constructor(
    readonly page: Head,
    readonly schedules: Schedule[],
  ) {
    this.clamp();
    this.machine = this.machineView();
    this.timetable.onSelect = (selection) => this.select(selection);
    this.timetable.onClock = (clock) => this.store.set({ clock });
    this.timetable.onZoom = (time) => this.store.set({ time });
    this.clocks.onColumn = ({ kind, id }) =>
      kind === "phase" ? this.store.set({ phase: id }) : this.select({ kind: "cell", id });
    this.matrix.onPair = (source, target) => this.find(`c${source} -> c${target}`);
    if (schedules.length > 1) {
      byId("compare").hidden = false;
      this.comparison = new Comparison(
        schedules,
        byId("compare-pictures"),
        byId("compare-text"),
        page.diff,
        (schedule, set, id) => this.store.set({ schedule, set, selection: { kind: "connection", id } }),
      );
    }
    this.makeControls();
    for (const id of ["machine-tables", "timetable-tables", "clocks-tables", "matrix-tables"])
      byId(id).addEventListener("toggle", () => this.refreshTables());
    this.store.listen(() => {
      this.clamp();
      this.refresh();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawAll());
    // Paper is light.
    matchMedia("print").addEventListener("change", () => this.redrawAll());
    this.show();
  }

  get state(): State {
    return this.store.state;
  }

  get schedule(): Schedule {
    return this.schedules[this.state.schedule];
  }

  get set(): ConnectionSet | null {
    return this.schedule.sets[this.state.set] ?? null;
  }

  /** A hash may come from another page: numbers out of range become the defaults. */
  private clamp(): void {
    const state = this.state;
    if (state.schedule >= this.schedules.length) state.schedule = 0;
    if (state.set >= this.schedule.sets.length) state.set = 0;
    const set = this.set;
    if (!set || state.phase >= set.phaseCount) state.phase = ALL;
    if (state.clock !== null && (!set || state.clock > set.end)) state.clock = null;
  }

  private machineView(): MachineView {
    const view = new MachineView(byId<HTMLCanvasElement>("machine"), this.schedule.machine);
    view.onSelect = (selection) => this.select(selection);
    view.onZoom = (zoom) => this.store.set({ zoom });
    return view;
  }

  select(selection: Selection | null): void {
    this.store.set({ selection });
  }

  find(text: string): void {
    const set = this.set;
    const answer = byId("find-answer");
    if (!set) {
      answer.textContent = "there are no sets";
      return;
    }
    const found = find(set, text);
    answer.textContent = typeof found === "string" ? found : "";
    if (typeof found === "string") return;
    if ("phase" in found) this.store.set({ phase: found.phase });
    else this.select(found);
  }

  /** What is read after the first picture. */
  async load(): Promise<void> {
    for (const schedule of this.schedules) {
      for (const set of schedule.sets) await set.load(this.page);
      await schedule.loadMesh(this.page);
    }
    this.show(true);
  }

  private makeControls(): void {
    const { page } = this;
    byId("title").textContent = page.title;
    showRefused(this.schedules, (change) => this.store.set(change));
    document.title = `${page.title} – conset`;
    if (page.left_out.length > 0) {
      const left = byId("left-out");
      left.hidden = false;
      fill(
        left,
        "Left out of this page: ",
        page.left_out.join("; "),
        ". A greater ",
        el("code", {}, "--size-limit"),
        " keeps it.",
      );
    }
    const choice = (label: string, name: Choice, options: [string, string][]) => {
      const select = el("select", {
        id: `choose-${name}`,
        onchange: () => {
          const value = select.value;
          const change = name === "schedule" || name === "set" ? Number(value) : value;
          const reset =
            name === "schedule" || name === "set" ? { selection: null, phase: ALL, clock: null, time: "" } : {};
          this.store.set({ ...reset, [name]: change });
        },
      });
      for (const [value, text] of options) select.append(el("option", { value }, text));
      return el("label", {}, label, select);
    };
    const several: Node[] = [];
    if (this.schedules.length > 1)
      several.push(
        choice(
          "Schedule",
          "schedule",
          this.schedules.map((s, i) => [String(i), s.head.name]),
        ),
      );
    several.push(
      choice(
        "Set",
        "set",
        this.schedule.sets.map((s, i) => [String(i), s.name]),
      ),
    );
    fill(
      byId("choices"),
      ...several,
      choice("Colours of the page", "theme", [
        ["auto", "as the system"],
        ["light", "light"],
        ["dark", "dark"],
      ]),
    );
    const list = (measures: Measure[]) => measures.map(({ id, title }): [string, string] => [id, title]);
    fill(byId("machine-controls"), choice("Cells by", "cells", list(CELLS)), choice("Links by", "links", list(LINKS)));
    const filter = el("input", {
      id: "filter",
      size: 12,
      placeholder: "c3 c4",
      oninput: () => this.store.set({ filter: filter.value, time: "" }),
    });
    fill(
      byId("timetable-controls"),
      choice("Rows", "rows", [
        ["agents", "agents (send, receive)"],
        ["links", "links"],
      ]),
      choice("Critical path", "path", [
        ["on", "framed"],
        ["off", "not marked"],
      ]),
      el("label", {}, "Only cells", filter),
    );
    fill(
      byId("clocks-controls"),
      choice("Columns", "clocks", [
        ["phases", "phases"],
        ["cells", "cells"],
      ]),
      choice("Order", "order", [
        ["number", "by number"],
        ["idle", "most idle first"],
      ]),
    );
    fill(
      byId("mesh-controls"),
      choice("Colours", "mesh", [
        ["part", "part"],
        ["cell", "measure of the cell"],
      ]),
    );
    const text = el("input", {
      id: "find-text",
      size: 18,
      placeholder: "c45 -> c37",
      "aria-label": "Connection, cell, link or phase",
    });
    const form = byId<HTMLFormElement>("find");
    fill(
      form,
      text,
      el("button", { type: "submit" }, "Find"),
      el("button", { type: "button", onclick: () => this.select(null) }, "Clear"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(text.value);
    });
    this.makePlayer();
    fill(
      byId("footer"),
      `Written by ${page.generator}. Numbers are those of the schedule and of the cost model. A link to this page with its hash restores this view.`,
    );
  }

  private makePlayer(): void {
    const phase = el("input", {
      type: "range",
      id: "phase",
      min: -1,
      step: 1,
      oninput: () => this.store.set({ phase: Number(phase.value) }),
    });
    const clock = el("input", {
      type: "range",
      id: "clock",
      min: 0,
      step: 1,
      oninput: () => this.store.set({ clock: Number(clock.value) }),
    });
    const play = el("button", { type: "button", id: "play", onclick: () => this.play(!this.playing) }, "Play");
    const phaseText = el("output", { for: "phase", id: "phase-text" });
    const clockText = el("output", { for: "clock", id: "clock-text" });
    this.controls = { phase, clock, play, phaseText, clockText };
    fill(
      byId("player"),
      el("label", {}, el("span", { id: "phase-word" }, "Phase"), phase, phaseText),
      el("label", {}, "Clock", clock, clockText),
      play,
      el(
        "button",
        {
          type: "button",
          id: "no-clock",
          onclick: () => {
            this.play(false);
            this.store.set({ clock: null });
          },
        },
        "No clock",
      ),
    );
  }

  private play(on: boolean): void {
    this.playing = on;
    this.controls.play.textContent = on ? "Pause" : "Play";
    this.controls.play.setAttribute("aria-pressed", String(on));
    if (!on) return;
    let before = performance.now();
    let at = -1;
    const step = (now: number) => {
      const set = this.set;
      if (!this.playing || !set) return;
      const [from, to] = set.span(this.state.phase);
      // The clock may have been set meanwhile; the player itself keeps fractions of clocks.
      const clock = this.state.clock;
      if (clock === null || clock < from || clock > to) at = from;
      else if (Math.round(at) !== clock) at = clock;
      at += ((to - from) * (now - before)) / 1000 / PLAY_SECONDS;
      before = now;
      if (at >= to) at = from;
      this.store.set({ clock: Math.round(at) });
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  private show(isNew = false): void {
    const { state, schedule, set } = this;
    const before = this.shown;
    this.shown = { ...state };
    const changed = (...names: (keyof State)[]) =>
      isNew || !before || names.some((name) => before[name] !== state[name]);
    if (changed("theme")) this.showTheme();
    if (before && before.schedule !== state.schedule) this.changeSchedule();
    if (changed("schedule", "set")) showHeader(schedule, set);
    for (const name of CHOICES) {
      const select = document.getElementById(`choose-${name}`) as HTMLSelectElement | null;
      const value = name === "clocks" && set ? columnKind(set, state) : state[name];
      if (select) select.value = String(value);
    }
    const filter = byId<HTMLInputElement>("filter");
    if (document.activeElement !== filter) filter.value = state.filter;
    this.showPlayer();
    this.machine.zoomTo(state.zoom);
    this.timetable.zoomTo(state.time);
    const shown = this.highlighted(set, changed("selection", "phase", "schedule", "set"));
    this.machine.show(set, state, shown);
    this.timetable.show(set, state, shown);
    this.matrix.show(set, state);
    this.comparison?.show(state);
    if (isNew && schedule.mesh && !this.mesh) this.makeMesh();
    this.mesh?.show(set, state);
    if (changed("schedule", "set", "phase", "clocks", "order")) this.showClocks();
    else this.clocks.show(set, state, this.clocks.columns);
    if (changed("phase", "cells", "links", "schedule", "set", "mesh", "theme", "rows", "path")) this.showLegends();
    if (changed("selection", "phase", "schedule", "set") && set)
      fill(byId("details"), ...new Details(schedule, set, state, (change) => this.store.set(change)).panel(shown));
    if (changed("schedule", "set")) this.showPhases();
    else if (changed("phase")) this.markPhase();
    if (changed("phase", "cells", "links", "clocks", "order", "schedule", "set", "filter")) this.refreshTables();
    this.showLabels();
  }

  /** The streams of the selection; they are not searched again while only the clock moves. */
  private highlighted(set: ConnectionSet | null, isNew: boolean): Highlight {
    if (isNew) this.highlight = set ? highlight(set, this.state) : { streams: [], shared: [] };
    return this.highlight;
  }

  private showTheme(): void {
    const { theme } = this.state;
    const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark && !matchMedia("print").matches ? "dark" : "light";
  }

  /** Draws all pictures in the colours of the page, before it is printed if that is why they change. */
  private redrawAll(): void {
    this.showTheme();
    const views = [
      this.machine,
      this.timetable,
      this.clocks,
      this.matrix,
      this.mesh,
      ...(this.comparison?.views ?? []),
    ];
    for (const view of views) view?.redraw.now();
  }

  /** The other schedule may have another machine and other sets. */
  private changeSchedule(): void {
    const canvas = byId<HTMLCanvasElement>("machine");
    this.machine.close();
    canvas.replaceWith(canvas.cloneNode());
    this.machine = this.machineView();
    const select = byId<HTMLSelectElement>("choose-set");
    fill(select, ...this.schedule.sets.map((set, i) => el("option", { value: i }, set.name)));
    this.mesh = null;
    const mesh = byId("mesh");
    mesh.replaceWith(mesh.cloneNode());
    byId("mesh-section").hidden = true;
    if (this.schedule.mesh) this.makeMesh();
  }

  private makeMesh(): void {
    byId("mesh-section").hidden = false;
    this.mesh = new MeshView(byId<HTMLCanvasElement>("mesh"), this.schedule.mesh!, this.schedule.machine);
    this.mesh.onPart = (part) => this.select({ kind: "cell", id: this.schedule.machine.partCell[part] });
  }

  private showPlayer(): void {
    const { state, set } = this;
    const { phase, clock, phaseText, clockText, play } = this.controls;
    const phases = set?.phaseCount ?? 0;
    phase.max = String(phases - 1);
    phase.value = String(state.phase);
    phase.disabled = phases === 0;
    const word = this.schedule.phaseWord;
    const name = state.phase === ALL ? `all of ${count(phases, word)}` : `${state.phase} of 0 to ${phases - 1}`;
    phaseText.textContent = name;
    phase.setAttribute("aria-valuetext", name);
    const [from, to] = set ? set.span(state.phase) : [0, 0];
    clock.min = String(Math.floor(Math.min(from, state.clock ?? from)));
    clock.max = String(Math.max(to, state.clock ?? 0));
    clock.value = String(state.clock ?? from);
    clock.disabled = play.disabled = to === 0;
    const open = state.clock === null || !set ? null : set.openAt(state.clock).length;
    clockText.textContent =
      state.clock === null ? "none" : `${number(state.clock)}: ${count(open!, this.schedule.streamWord)} open`;
    clockText.dataset.open = String(open ?? "");
    clock.setAttribute("aria-valuetext", clockText.textContent);
  }

  private showLegends(): void {
    const legends = new Legends(this.schedule, this.set, this.state);
    legends.machine(this.machine.layout.isLarge);
    legends.timetable();
    legends.clocks();
    legends.matrix(this.matrix.matrix);
    legends.mesh();
  }

  /** The chart of clocks, its sums and the critical path. */
  private showClocks(): void {
    const { set, state } = this;
    const found = set ? columns(set, state) : "There are no sets.";
    const isText = typeof found === "string";
    this.clocks.show(set, state, isText ? [] : found);
    const note = byId("clocks-note");
    note.hidden = !isText;
    note.textContent = isText ? found : "";
    byId("clocks").hidden = isText;
    const tables = set && new ProfileTables(this.schedule, set, state, (change) => this.store.set(change));
    fill(byId("clocks-sums"), tables?.sums());
    const path = tables?.path() ?? [];
    fill(byId("path"), path.length > 0 && el("h3", {}, "Critical path"), ...path);
  }

  private showPhases(): void {
    const { set } = this;
    fill(byId("bounds"), set ? this.tables(set).bounds() : el("p", {}, "There are no sets."));
    fill(byId("phases"), set && this.tables(set).phases());
    this.markPhase();
  }

  private tables(set: ConnectionSet): Tables {
    return new Tables(this.schedule, set, this.state, (change) => this.store.set(change));
  }

  private markPhase(): void {
    for (const row of document.querySelectorAll("#phases tr[data-phase]"))
      if (row.getAttribute("data-phase") === String(this.state.phase)) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
  }

  /** Tables of pictures, while they are open. */
  private refreshTables(): void {
    const { set } = this;
    const replace = (id: string, make: () => HTMLElement[]) => {
      const details = byId<HTMLDetailsElement>(id);
      while (details.children.length > 1) details.lastElementChild!.remove();
      if (details.open && set) details.append(...make());
    };
    replace("machine-tables", () => this.tables(set!).machine());
    replace("timetable-tables", () => [this.tables(set!).timetable()]);
    replace("clocks-tables", () => [
      new ProfileTables(this.schedule, set!, this.state, (change) => this.store.set(change)).columns(
        this.clocks.columns,
      ),
    ]);
    replace("matrix-tables", () => [this.tables(set!).matrix(this.matrix.matrix)]);
  }

  /** Texts of canvases for screen readers. */
  private showLabels(): void {
    const { state, set, schedule } = this;
    const where = state.phase === ALL ? `all ${schedule.phaseWord}s` : `${schedule.phaseWord} ${state.phase}`;
    const label = (id: string, text: string) => byId(id).setAttribute("aria-label", text);
    label(
      "machine",
      `${schedule.head.machine.summary.topology}, ${where}: cells by ${measure(CELLS, state.cells).title}, links by ${measure(LINKS, state.links).title}. Tables below the picture have the numbers.`,
    );
    label(
      "timetable",
      `Timetable, ${where}: ${count(this.timetable.rowCount, "row")}, ${count(set?.streams?.count ?? 0, schedule.streamWord)}. The table below the chart has the numbers.`,
    );
    label("clocks", this.clocks.label);
    label("matrix", "Matrix of words between cells. The table below has the numbers.");
    const mesh = schedule.head.mesh;
    if (mesh)
      label(
        "mesh",
        `Surface of the mesh: ${count(mesh.polygons, "polygon")}, coloured by ${state.mesh === "cell" ? "measure of the cell" : "part"}.`,
      );
  }
}

async function start(): Promise<void> {
  const root = document.documentElement;
  try {
    const page = readHead();
    const app = new App(page, await readSchedules(page));
    // For tests and for the console: the state, and where things are in the pictures.
    Object.assign(window, { conset: app });
    requestAnimationFrame(() => {
      root.dataset.state = "picture";
      root.dataset.picture = String(Math.round(performance.now()));
      setTimeout(() => {
        app.load().then(
          () => {
            root.dataset.state = "ready";
            root.dataset.ready = String(Math.round(performance.now()));
          },
          (error) => fail(error),
        );
      });
    });
  } catch (error) {
    fail(error);
  }
}

function fail(error: unknown): void {
  const problem = byId("problem");
  problem.hidden = false;
  problem.textContent = `The page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  document.documentElement.dataset.state = "failed";
}

void start();
