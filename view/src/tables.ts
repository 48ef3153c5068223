/** The tables beside the pictures, which have all their numbers; and those of bounds and phases. */

import { type Change } from "./details";
import { el, number, table } from "./dom";
import { type Matrix, groupName } from "./matrix";
import { CELLS, LINKS, type Measure, greatest, measure } from "./measures";
import { ALL } from "./data";
import { type ConnectionSet, type Schedule } from "./model";
import { type Selection, type State } from "./state";

/** Entries of the matrix that its table has at most. */
const MOST_PAIRS = 5000;

export class Tables {
  constructor(
    readonly schedule: Schedule,
    readonly set: ConnectionSet,
    readonly state: State,
    readonly change: Change,
  ) {}

  private item(kind: Selection["kind"], id: number, text: string): HTMLElement {
    return el(
      "button",
      { type: "button", class: "item", onclick: () => this.change({ selection: { kind, id } }) },
      text,
    );
  }

  /** All lower bounds, and how far the set is from each. */
  bounds(): HTMLElement {
    const { set } = this;
    if (set.head.bounds.length === 0) return el("p", {}, "No bounds are stated.");
    const s = set.head.summary;
    const most = (of: string) => Math.max(...set.head.bounds.filter((b) => b.of === of).map((b) => b.value));
    // The bound of direct plans says nothing of plans in which cells pass words on.
    const reached = (of: string) =>
      (of === "phases" ? s.phases : of === "clocks" || s.direct ? s.predicted_clocks : null) ?? null;
    return table(
      "Lower bounds; the greatest one of each kind binds",
      [
        { title: "bound on", text: (b) => b.of, isText: true },
        { title: "by", text: (b) => b.by, isText: true },
        { title: "value", text: (b) => b.value },
        {
          title: "over bound",
          text: (b) => (reached(b.of) === null || b.value === 0 ? "–" : (reached(b.of)! / b.value).toFixed(2)),
        },
        {
          title: "binding",
          text: (b) => (b.value === most(b.of) && b.value > 0 && reached(b.of) !== null ? "binds" : ""),
          isText: true,
        },
        { title: "why", text: (b) => b.witness, isText: true },
      ],
      set.head.bounds,
      (b) => ({ "data-bound": `${b.of} ${b.by}`, "data-value": b.value }),
    );
  }

  /** Phases or steps in numbers. */
  phases(): HTMLElement {
    const { set, schedule } = this;
    const p = set.phases;
    const longest =
      set.kind === "phases"
        ? greatest(Float64Array.from({ length: set.phaseCount }, (_, i) => p.phase_switch[i] + p.phase_clocks[i]))
        : 0;
    const button = (phase: number) =>
      el(
        "button",
        { type: "button", class: "item", onclick: () => this.change({ phase }) },
        `${schedule.phaseWord === "step" ? "s" : "p"}${phase}`,
      );
    const isPhases = set.kind === "phases";
    // Of a refused schedule the clocks are those of its slots.
    const isPredicted = isPhases && set.head.profile !== undefined;
    return table(
      `${schedule.phaseWord === "step" ? "Steps" : "Phases"}: ${set.phaseCount}`,
      [
        { title: schedule.phaseWord, text: (i) => button(i), isText: true },
        { title: isPhases ? "routes" : "messages", text: (i) => p.phase_streams[i] },
        { title: "words", text: (i) => p.phase_words[i] },
        { title: "hops", text: (i) => p.phase_hops[i] },
        { title: isPhases ? "makespan" : "ends at", text: (i) => p.phase_makespan[i] },
        ...(isPhases
          ? [
              ...(isPredicted ? [{ title: "predicted", text: (i: number) => p.phase_clocks[i] }] : []),
              { title: "sharing", text: (i: number) => p.phase_sharing[i] },
              {
                title: "switch and clocks",
                text: (i: number) => bar(p.phase_switch[i], p.phase_clocks[i], longest),
                isText: true,
              },
            ]
          : []),
      ],
      Array.from({ length: set.phaseCount }, (_, i) => i),
      (i) => ({
        "data-phase": i,
        "data-routes": p.phase_streams[i],
        "data-words": p.phase_words[i],
        "data-hops": p.phase_hops[i],
        "data-makespan": p.phase_makespan[i],
        "data-predicted": isPredicted ? p.phase_clocks[i] : null,
        "data-max-sharing": isPhases ? p.phase_sharing[i] : null,
      }),
    );
  }

  /** Links and cells with all measures. */
  machine(): HTMLElement[] {
    const { set, state } = this;
    const { machine } = set;
    const where = state.phase === ALL ? `all ${this.schedule.phaseWord}s` : `${this.schedule.phaseWord} ${state.phase}`;
    const columns = (measures: Measure[]) =>
      measures.flatMap((measure) => {
        const values = measure.values(set, state.phase);
        const text = (id: number) => (measure.unit === "%" ? `${(100 * values![id]).toFixed(1)} %` : values![id]);
        return values ? [{ title: measure.title, text }] : [];
      });
    const order = (length: number, measure: Measure) => {
      const values = measure.values(set, state.phase);
      const ids = Array.from({ length }, (_, id) => id);
      return values ? ids.filter((id) => values[id] > 0).sort((a, b) => values[b] - values[a]) : ids;
    };
    const loads = set.linkLoads(state.phase);
    const cells = set.cellLoads(state.phase);
    return [
      table(
        `Links, ${where}, by ${measure(LINKS, state.links).title}`,
        [{ title: "link", text: (l) => this.item("link", l, machine.linkName(l)), isText: true }, ...columns(LINKS)],
        order(machine.linkCount, measure(LINKS, state.links)),
        (l) => ({ "data-link": l, "data-routes": loads?.routes[l], "data-words": loads?.words[l] }),
      ),
      table(
        `Cells, ${where}, by ${measure(CELLS, state.cells).title}`,
        [{ title: "cell", text: (c) => this.item("cell", c, machine.cellName(c)), isText: true }, ...columns(CELLS)],
        order(machine.head.cell_count, measure(CELLS, state.cells)),
        (c) => ({
          "data-cell": c,
          "data-channels": cells?.channels?.[c],
          "data-sent": cells?.sent[c],
          "data-received": cells?.received[c],
        }),
      ),
    ];
  }

  /** The streams of the phase that pass the filter. */
  timetable(): HTMLElement {
    const { set } = this;
    const streams = set.streams;
    if (!streams) return el("p", {}, "The page does not have the times.");
    const { phase, filter } = this.state;
    const cells = filter.match(/\d+/g)?.map(Number) ?? [];
    const [from, to] = set.range(phase);
    const rows: number[] = [];
    for (let s = from; s < to; s++)
      if (cells.length === 0 || cells.includes(streams.source[s]) || cells.includes(streams.target[s])) rows.push(s);
    return table(
      `${this.schedule.streamWord === "message" ? "Messages" : "Streams"}: ${number(rows.length)}`,
      [
        {
          title: this.schedule.streamWord,
          text: (s) =>
            streams.connection
              ? this.item("connection", streams.connection[s], set.streamName(s))
              : this.item("stream", s, set.streamName(s)),
          isText: true,
        },
        { title: this.schedule.phaseWord, text: (s) => set.phaseOf(s) },
        { title: "start", text: (s) => streams.start[s] },
        { title: "end", text: (s) => streams.start[s] + streams.duration[s] },
        { title: "words", text: (s) => streams.words[s] },
      ],
      rows,
      (s) => ({
        "data-stream": s,
        "data-connection": streams.connection?.[s],
        "data-phase": set.phaseOf(s),
        "data-start": streams.start[s],
        "data-end": streams.start[s] + streams.duration[s],
        "data-words": streams.words[s],
      }),
    );
  }

  /** The greatest entries of the matrix. */
  matrix(matrix: Matrix | null): HTMLElement {
    const { set } = this;
    if (!matrix) return el("p", {}, "The page does not have the connections.");
    const { groups, words } = matrix;
    const rows = Array.from(words.keys()).filter((i) => words[i] > 0);
    rows.sort((a, b) => words[b] - words[a]);
    const name = (group: number) => groupName(set, matrix, group);
    return table(
      "Words between cells",
      [
        { title: "from", text: (i) => name(Math.floor(i / groups)), isText: true },
        { title: "to", text: (i) => name(i % groups), isText: true },
        { title: "words", text: (i) => words[i] },
      ],
      rows.slice(0, MOST_PAIRS),
      (i) => ({ "data-pair": i, "data-words": words[i] }),
    );
  }
}

/** Switch and clocks of a phase, as long as their share of the longest phase. */
function bar(switchClocks: number, clocks: number, longest: number): SVGSVGElement {
  const svg = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(svg, "svg");
  picture.setAttribute("class", "bar");
  picture.setAttribute("viewBox", "0 0 100 10");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  let x = 0;
  for (const [name, value] of [
    ["switch", switchClocks],
    ["clocks", clocks],
  ] as const) {
    const part = document.createElementNS(svg, "rect");
    const width = (100 * value) / (longest || 1);
    for (const [key, text] of Object.entries({ class: name, x, y: 0, width, height: 10 }))
      part.setAttribute(key, String(text));
    picture.append(part);
    x += width;
  }
  return picture;
}
