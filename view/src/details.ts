/** The panel of the selection: a link, a cell, a connection or a stream, in words and tables. */

import { PARTS, idle, total } from "./clocks";
import { type Column, count, el, number, percent, table } from "./dom";
import { type Highlight } from "./machine";
import { reference } from "./measures";
import { ALL } from "./data";
import { type ConnectionSet, type Schedule } from "./model";
import { type Selection, type State } from "./state";

/** Streams that share links with the selected ones, at most. */
const MOST_SHARED = 2000;

/** Changes what the page shows. */
export type Change = (change: Partial<State>) => void;

/** The streams that a selection highlights. */
export function highlight(set: ConnectionSet, state: State): Highlight {
  const selection = state.selection;
  const none: Highlight = { streams: [], shared: [] };
  if (!selection || !set.streams) return none;
  const { kind, id } = selection;
  if (kind === "link") return { streams: set.streamsOver(id, state.phase), shared: [] };
  if (kind === "cell") {
    const { source, target } = set.streams;
    const streams: number[] = [];
    const [from, to] = set.range(state.phase);
    for (let s = from; s < to; s++) if (source[s] === id || target[s] === id) streams.push(s);
    return { streams, shared: [] };
  }
  const streams = kind === "stream" ? (id < set.streams.count ? [id] : []) : set.streamsOf(id);
  return { streams, shared: sharing(set, streams) };
}

/** Streams of the same phases whose routes have a link with these streams in common. */
export function sharing(set: ConnectionSet, streams: number[]): number[] {
  const routes = set.routes;
  if (!routes) return [];
  const found = new Set<number>();
  for (const stream of streams) {
    const links = new Set(set.linksOf(stream));
    const [from, to] = set.range(set.phaseOf(stream));
    for (let s = from; s < to && found.size < MOST_SHARED; s++) {
      if (streams.includes(s)) continue;
      for (let h = routes.first[s]; h < routes.first[s + 1]; h++)
        if (links.has(routes.links[h])) {
          found.add(s);
          break;
        }
    }
  }
  return [...found];
}

export class Details {
  constructor(
    readonly schedule: Schedule,
    readonly set: ConnectionSet,
    readonly state: State,
    readonly change: Change,
  ) {}

  private cell(id: number): HTMLElement {
    return this.button("cell", id, this.set.machine.cellName(id));
  }

  private button(kind: Selection["kind"], id: number, text: string): HTMLElement {
    return el(
      "button",
      { type: "button", class: "item", onclick: () => this.change({ selection: { kind, id } }) },
      text,
    );
  }

  private get where(): string {
    const { phase } = this.state;
    return phase === ALL ? `all ${this.schedule.phaseWord}s` : `${this.schedule.phaseWord} ${phase}`;
  }

  /** The panel of the selection, or of nothing. */
  panel(shown: Highlight): HTMLElement[] {
    const selection = this.state.selection;
    const { machine, streams, connections } = this.set;
    if (!selection) return this.nothing();
    const { kind, id } = selection;
    if (kind === "link" && id < machine.linkCount) return this.ofLink(id, shown);
    if (kind === "cell" && id < machine.head.cell_count) return this.ofCell(id, shown);
    if (kind === "connection" && connections && id < connections.words.length) return this.ofConnection(id, shown);
    if (kind === "stream" && streams && id < streams.count) {
      if (streams.connection) return this.ofConnection(streams.connection[id], shown);
      return this.ofMessage(id, shown);
    }
    return this.nothing();
  }

  private nothing(): HTMLElement[] {
    return [
      el("h3", {}, "Nothing is selected"),
      el(
        "p",
        {},
        "Click a cell, a link or a bar of the timetable; or type a connection, such as ",
        el("code", {}, "c45 -> c37"),
        ", ",
        el("code", {}, "x12"),
        ", ",
        el("code", {}, "c5"),
        " or ",
        el("code", {}, "l148"),
        ".",
      ),
    ];
  }

  private facts(rows: [string, string | number | Node | null][]): HTMLElement {
    const list = el("dl");
    for (const [term, value] of rows) {
      if (value === null) continue;
      const text = typeof value === "number" ? number(value) : value;
      list.append(el("dt", {}, term), el("dd", { "data-fact": term }, text));
    }
    return list;
  }

  private streamTable(caption: string, streams: number[]): HTMLElement {
    const { set } = this;
    const of = set.streams!;
    const columns: Column<number>[] = [
      {
        title: this.schedule.streamWord,
        text: (s) => {
          const x = of.connection?.[s];
          return x === undefined
            ? this.button("stream", s, set.streamName(s))
            : this.button("connection", x, set.streamName(s));
        },
        isText: true,
      },
      { title: this.schedule.phaseWord, text: (s) => set.phaseOf(s) },
      { title: "start", text: (s) => of.start[s] },
      { title: "end", text: (s) => of.start[s] + of.duration[s] },
      { title: "words", text: (s) => of.words[s] },
    ];
    return table(caption, columns, streams, (s) => ({ "data-stream": s }));
  }

  private ofLink(id: number, shown: Highlight): HTMLElement[] {
    const { set } = this;
    const { machine } = set;
    const loads = set.linkLoads(this.state.phase);
    const perWord = machine.head.parameters.link_clocks_per_word;
    const clocks = loads && loads.words[id] * perWord;
    const all = reference(set, this.state.phase);
    return [
      el("h3", {}, `Link ${machine.linkName(id)}`),
      this.facts([
        ["in", this.where],
        ["from", this.cell(machine.source[id])],
        ["to", this.cell(machine.target[id])],
        ["state", machine.live[id] ? null : "dead"],
        ["routes", loads && loads.routes[id]],
        ["words", loads && loads.words[id]],
        [
          "busy",
          clocks === null ? null : `${number(clocks)} of ${number(all)} clocks (${percent(clocks / (all || 1))})`,
        ],
      ]),
      set.routes
        ? this.streamTable(`${count(shown.streams.length, "route")} over this link`, shown.streams)
        : el("p", {}, "The page does not have the routes."),
    ];
  }

  private ofCell(id: number, shown: Highlight): HTMLElement[] {
    const { set, schedule } = this;
    const { machine } = set;
    const loads = set.cellLoads(this.state.phase);
    const parts = Array.from(machine.partCell.keys()).filter((part) => machine.partCell[part] === id);
    const channels = machine.head.summary.channels_per_cell;
    const loadsOfLinks = set.linkLoads(this.state.phase);
    const neighbours: { link: number; out: boolean }[] = [
      ...Array.from(machine.outgoing(id), (link) => ({ link, out: true })),
      ...machine.incoming(id).map((link) => ({ link, out: false })),
    ];
    const other = ({ link, out }: { link: number; out: boolean }) =>
      out ? machine.target[link] : machine.source[link];
    const panel: (HTMLElement | null)[] = [
      el("h3", {}, `Cell ${machine.cellName(id)}`),
      this.facts([
        ["in", this.where],
        ["state", machine.isDead[id] ? "dead" : null],
        ["part", parts.length > 0 ? parts.join(", ") : null],
        ["words sent", loads && loads.sent[id]],
        ["words received", loads && loads.received[id]],
        ["channels", loads?.channels ? `${number(loads.channels[id])} of ${number(channels)}` : null],
      ]),
      this.clocksOf(id),
      table(
        "Neighbours",
        [
          { title: "cell", text: (row) => this.cell(other(row)), isText: true },
          {
            title: "link",
            text: (row) => this.button("link", row.link, `l${row.link} ${row.out ? "to" : "from"}`),
            isText: true,
          },
          { title: "routes", text: ({ link }) => loadsOfLinks?.routes[link] ?? "–" },
          { title: "words", text: ({ link }) => loadsOfLinks?.words[link] ?? "–" },
        ],
        neighbours,
      ),
    ];
    if (set.streams)
      panel.push(this.streamTable(`Operations: ${count(shown.streams.length, schedule.streamWord)}`, shown.streams));
    if (set.streams && set.channels && this.state.phase !== ALL) panel.push(this.tables(id));
    return panel.filter((part) => part !== null);
  }

  /** Where the clocks of a cell's ports went. */
  private clocksOf(cell: number): HTMLElement | null {
    const { profile } = this.set;
    const phase = this.set.profilePhase(this.state.phase);
    const place = profile?.cells?.indexOf(cell) ?? -1;
    if (!profile || phase === null || place < 0 || !profile.hasPorts(phase)) return null;
    const sides = profile.sides.map((side, i) => ({ side, clocks: profile.ofPort(phase, place, i) }));
    const parts = profile.used.filter((part) => sides.some(({ clocks }) => clocks[PARTS.indexOf(part)] > 0));
    return table(
      "Clocks of its ports",
      [
        { title: "port", text: ({ side }) => side, isText: true },
        ...parts.map((part) => ({
          title: part as string,
          text: ({ clocks }: { clocks: number[] }) => clocks[PARTS.indexOf(part)],
        })),
        { title: "idle", text: ({ clocks }) => idle(clocks) },
        { title: "total", text: ({ clocks }) => total(clocks) },
      ],
      sides,
      ({ side, clocks }) => ({ "data-port": side, "data-clocks": clocks.join() }),
    );
  }

  /** The forwarding table of a cell in the phase. */
  private tables(cell: number): HTMLElement {
    const { set } = this;
    const { machine } = set;
    const entries: { channel: number; from: string; to: string; stream: number }[] = [];
    const [first, last] = set.range(this.state.phase);
    let channelAt = 0;
    // A route has one channel more than links.
    for (let s = 0; s < first; s++) channelAt += set.routes!.first[s + 1] - set.routes!.first[s] + 1;
    for (let s = first; s < last; s++) {
      const links = set.linksOf(s);
      set.cellsOf(s).forEach((at, place, cells) => {
        if (at === cell)
          entries.push({
            channel: set.channels![channelAt + place],
            from: place === 0 ? "gate" : `c${machine.source[links[place - 1]]}`,
            to: place + 1 === cells.length ? "gate" : `c${machine.target[links[place]]}`,
            stream: s,
          });
      });
      channelAt += links.length + 1;
    }
    entries.sort((a, b) => a.channel - b.channel);
    return table(
      `Forwarding table in phase ${this.state.phase}`,
      [
        { title: "channel", text: (entry) => `ch${entry.channel}` },
        { title: "from", text: (entry) => entry.from, isText: true },
        { title: "to", text: (entry) => entry.to, isText: true },
        {
          title: "connection",
          text: (entry) => {
            const x = set.streams!.connection![entry.stream];
            return this.button("connection", x, set.connectionName(x));
          },
          isText: true,
        },
      ],
      entries,
    );
  }

  /** The cells of a stream's route. */
  private route(stream: number): HTMLElement {
    const list = el("ol", { class: "route" });
    for (const cell of this.set.cellsOf(stream)) list.append(el("li", {}, this.cell(cell)));
    return list;
  }

  private ofConnection(x: number, shown: Highlight): HTMLElement[] {
    const { set, schedule } = this;
    const { source, target, words } = set.connections!;
    const panel = [
      el("h3", {}, `Connection ${set.connectionName(x)}: c${source[x]} → c${target[x]}`),
      this.facts([
        ["from", this.cell(source[x])],
        ["to", this.cell(target[x])],
        ["words", words[x]],
        [schedule.streamWord === "stream" ? "parts" : "messages", shown.streams.length],
      ]),
    ];
    for (const stream of shown.streams.slice(0, 8)) panel.push(...this.ofStream(stream));
    if (set.routes) panel.push(this.streamTable(`Share links with it in the same ${schedule.phaseWord}`, shown.shared));
    if (!schedule.head.refused)
      panel.push(
        el(
          "p",
          { class: "hint" },
          "Alternatives and their cost: ",
          el("code", {}, `conset why ${schedule.head.name} ${x}`),
        ),
      );
    return panel;
  }

  private ofStream(stream: number): HTMLElement[] {
    const { set, schedule } = this;
    const { start, duration, words } = set.streams!;
    const phase = set.phaseOf(stream);
    const facts = this.facts([
      [
        schedule.phaseWord,
        el("button", { type: "button", class: "item", onclick: () => this.change({ phase }) }, number(phase)),
      ],
      ["words", words[stream]],
      ["start", start[stream]],
      ["end", start[stream] + duration[stream]],
      [
        "from the start of the set",
        `${number(set.startOf(stream))} to ${number(set.startOf(stream) + duration[stream])}`,
      ],
      ["starts after", this.before(stream)],
      ["slack", this.slack(stream)],
      ["hops", set.routes ? set.linksOf(stream).length : null],
    ]);
    return [facts, set.routes ? this.route(stream) : el("p", {}, "The page does not have the routes.")];
  }

  /** By how much a stream can be later, and whether it is on the critical path. */
  private slack(stream: number): string | null {
    const { profile } = this.set;
    const slack = profile?.slack?.[stream];
    const isCritical = profile?.path?.stream.includes(stream) ?? false;
    if (slack === undefined) return isCritical ? "on the critical path" : null;
    return `${count(slack, "clock")}${isCritical ? ", on the critical path" : ""}`;
  }

  /** The streams of its two agents that end last before it starts. */
  private before(stream: number): HTMLElement {
    const { set } = this;
    const { source, target, start, duration } = set.streams!;
    const [from, to] = set.kind === "steps" ? set.range(ALL) : set.range(set.phaseOf(stream));
    const last = (ends: ArrayLike<number>, cell: number) => {
      let best = -1;
      for (let s = from; s < to; s++) {
        const end = start[s] + duration[s];
        if (s !== stream && ends[s] === cell && end <= start[stream])
          if (best < 0 || end > start[best] + duration[best]) best = s;
      }
      return best;
    };
    const found = [last(source, source[stream]), last(target, target[stream])].filter((s) => s >= 0);
    if (found.length === 0) return el("span", {}, "nothing at its agents");
    const list = el("span");
    for (const s of new Set(found)) {
      const end = start[s] + duration[s];
      const wait = start[stream] - end;
      const x = set.streams!.connection?.[s];
      const name = set.streamName(s);
      list.append(
        x === undefined ? this.button("stream", s, name) : this.button("connection", x, name),
        ` ends at ${number(end)}${wait > 0 ? `, ${count(wait, "clock")} earlier` : ""} `,
      );
    }
    return list;
  }

  private ofMessage(stream: number, shown: Highlight): HTMLElement[] {
    const { set } = this;
    const { source, target } = set.streams!;
    const panel = [
      el("h3", {}, `Message ${stream}: c${source[stream]} → c${target[stream]}`),
      this.facts([
        ["from", this.cell(source[stream])],
        ["to", this.cell(target[stream])],
      ]),
      ...this.ofStream(stream),
    ];
    if (set.pieces) {
      const { first, connection, words } = set.pieces;
      const pieces = Array.from({ length: first[stream + 1] - first[stream] }, (_, i) => first[stream] + i);
      panel.push(
        table(
          "Pieces",
          [
            {
              title: "connection",
              text: (p) => {
                const x = connection[p];
                const { source: from, target: to } = set.connections!;
                return this.button("connection", x, `${set.connectionName(x)}: c${from[x]} → c${to[x]}`);
              },
              isText: true,
            },
            { title: "words", text: (p) => words[p] },
          ],
          set.connections ? pieces : [],
        ),
      );
    }
    panel.push(this.streamTable("Share links with it in the same step", shown.shared));
    return panel;
  }
}

/**
 * What a text names: `c45 -> c37` (the first connection between two cells), `x12`, `c5`, `l148`, `p3` or
 * the name of a connection; `null` if nothing has that name.
 */
export function find(set: ConnectionSet, text: string): Selection | { phase: number } | string {
  const words = text.trim();
  const pair = /^c?(\d+)\s*(?:->|→|-|to|,|\s)\s*c?(\d+)$/.exec(words);
  const { machine, connections } = set;
  if (pair) {
    const [source, target] = [Number(pair[1]), Number(pair[2])];
    if (!connections) return "the page does not have the connections";
    for (let x = 0; x < connections.words.length; x++)
      if (connections.source[x] === source && connections.target[x] === target) return { kind: "connection", id: x };
    for (let s = 0; s < (set.streams?.count ?? 0); s++)
      if (set.streams!.source[s] === source && set.streams!.target[s] === target) return { kind: "stream", id: s };
    return `no connection from c${source} to c${target}`;
  }
  const id = /^([cxlp])(\d+)$/.exec(words);
  if (id) {
    const at = Number(id[2]);
    const within = (length: number, kind: Selection["kind"], what: string): Selection | string =>
      at < length ? { kind, id: at } : `the ${what} are ${id[1]}0 to ${id[1]}${length - 1}`;
    if (id[1] === "c") return within(machine.head.cell_count, "cell", "cells");
    if (id[1] === "l") return within(machine.linkCount, "link", "links");
    if (id[1] === "x") return within(connections?.words.length ?? 0, "connection", "connections");
    return at < set.phaseCount ? { phase: at } : `the phases are p0 to p${set.phaseCount - 1}`;
  }
  if (connections && words)
    for (let x = 0; x < connections.words.length; x++)
      if (set.connectionName(x) === `x${x} ${words}`) return { kind: "connection", id: x };
  return "expected for example c45 -> c37, x12, c5, l148, p3 or the name of a connection";
}
