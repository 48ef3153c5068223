/** The tables of a profile: the sums, the columns of its chart, and the critical path. */

import { PARTS, PART_TITLES, idle, total } from "./clocks";
import { ALL } from "./data";
import { type Change } from "./details";
import { count, el, number, table } from "./dom";
import { type ConnectionSet, type Schedule } from "./model";
import { type Column } from "./profile";
import { type State } from "./state";

/** Clocks as `conset show profile` prints means. */
const tenth = (clocks: number) => (Number.isInteger(clocks) ? number(clocks) : clocks.toFixed(1));

export class ProfileTables {
  constructor(
    readonly schedule: Schedule,
    readonly set: ConnectionSet,
    readonly state: State,
    readonly change: Change,
  ) {}

  /** The parts of all clocks: means over the ports, and their shares. */
  sums(): HTMLElement | null {
    const { profile } = this.set;
    if (!profile) return null;
    const phase = this.set.profilePhase(this.state.phase) ?? ALL;
    const sides = profile.head.sides.map(({ side, ports }, i) => {
      const clocks = profile.ofSide(phase, i);
      return { side, ports: ports || 1, clocks, all: total(clocks) || 1 };
    });
    const parts = profile.used.map((part) => ({
      name: part as string,
      title: PART_TITLES[part],
      of: PARTS.indexOf(part),
    }));
    const value = (clocks: number[], of: number) => (of < 0 ? total(clocks) : clocks[of]);
    const where = phase === ALL ? `all ${this.schedule.phaseWord}s` : `${this.schedule.phaseWord} ${phase}`;
    return table(
      `Clocks of a port on average, ${where}`,
      [
        { title: "part", text: ({ title }) => title, isText: true },
        ...sides.flatMap(({ side, ports, clocks, all }) => [
          { title: side, text: ({ of }: { of: number }) => tenth(value(clocks, of) / ports) },
          { title: "%", text: ({ of }: { of: number }) => ((100 * value(clocks, of)) / all).toFixed(1) },
        ]),
      ],
      [...parts, { name: "total", title: "total", of: -1 }],
      ({ name, of }) => ({ "data-part": name, "data-sums": sides.map(({ clocks }) => value(clocks, of)).join() }),
    );
  }

  /** The columns of the chart. */
  columns(columns: Column[]): HTMLElement {
    const { profile } = this.set;
    const sides = profile?.sides ?? [];
    const rows = columns.flatMap((column) => sides.map((side, i) => ({ column, side, clocks: column.sides[i] })));
    const button = ({ kind, id }: Column) =>
      el(
        "button",
        {
          type: "button",
          class: "item",
          onclick: () => this.change(kind === "phase" ? { phase: id } : { selection: { kind: "cell", id } }),
        },
        kind === "phase" ? `p${id}` : this.set.machine.cellName(id),
      );
    return table(
      columns[0]?.kind === "cell" ? "Clocks of each port" : "Clocks of a port on average",
      [
        { title: columns[0]?.kind ?? "phase", text: ({ column }) => button(column), isText: true },
        { title: "port", text: ({ side }) => side, isText: true },
        ...(profile?.used ?? []).map((part) => ({
          title: part as string,
          text: ({ clocks }: { clocks: number[] }) => tenth(clocks[PARTS.indexOf(part)]),
        })),
        { title: "idle", text: ({ clocks }) => tenth(idle(clocks)) },
        { title: "total", text: ({ clocks }) => tenth(total(clocks)) },
      ],
      rows,
      ({ column, side, clocks }) => ({ "data-column": column.id, "data-side": side, "data-clocks": clocks.join() }),
    );
  }

  /** The critical path in numbers, and its streams. */
  path(): (HTMLElement | null)[] {
    const { set } = this;
    const { profile, streams } = set;
    if (!profile) return [];
    const { path, slack } = profile.head;
    const one = this.schedule.streamWord;
    const parts = [
      ["switch", path.switch],
      [set.kind === "phases" ? "set-up" : "software", path.setup],
      ["words", path.words],
      ["link", path.link],
      ["start", path.start],
    ] as const;
    const sum = parts.filter(([, clocks]) => clocks > 0).map(([name, clocks]) => `${name} ${number(clocks)}`);
    const text = el(
      "p",
      {},
      `The chain of ${one}s${set.kind === "phases" ? " and switches" : ""} that decides the end: `,
      `${sum.join(" + ") || "nothing"} = ${number(profile.head.clocks)} clocks. `,
      `Of ${count(slack.streams, one)}, ${number(slack.zero)} ${slack.zero === 1 ? "has" : "have"} no slack; `,
      `quartiles ${number(slack.quarter)}, ${number(slack.median)}, ${number(slack.three_quarters)}; `,
      `greatest ${number(slack.greatest)} clocks. A ${one} was opened after the last one at a port, on a link, or in the order of the set.`,
    );
    const of = profile.path;
    if (!of || !streams) return [text, el("p", {}, `The page does not have its ${one}s.`)];
    const phase = set.kind === "phases" ? this.state.phase : ALL;
    const segments = Array.from(of.stream.keys()).filter((i) => phase === ALL || set.phaseOf(of.stream[i]) === phase);
    const button = (i: number) => {
      const x = streams.connection?.[of.stream[i]];
      const selection =
        x === undefined ? { kind: "stream" as const, id: of.stream[i] } : { kind: "connection" as const, id: x };
      return el(
        "button",
        { type: "button", class: "item", onclick: () => this.change({ selection }) },
        set.streamName(of.stream[i]),
      );
    };
    return [
      text,
      table(
        `${count(segments.length, one)}${phase === ALL ? "" : ` in phase ${phase}`}`,
        [
          { title: one, text: button, isText: true },
          { title: this.schedule.phaseWord, text: (i) => set.phaseOf(of.stream[i]) },
          { title: "after", text: (i) => profile.cause(i), isText: true },
          { title: "waited", text: (i) => of.waited[i] },
          { title: "open", text: (i) => of.from[i] },
          { title: "until", text: (i) => of.to[i] },
          { title: "words", text: (i) => streams.words[of.stream[i]] },
          { title: "slack", text: (i) => (profile.slack ? profile.slack[of.stream[i]] : "–") },
        ],
        segments,
        (i) => ({
          "data-segment": i,
          "data-stream": of.stream[i],
          "data-connection": streams.connection?.[of.stream[i]] ?? of.stream[i],
          "data-phase": set.kind === "phases" ? set.phaseOf(of.stream[i]) : 0,
          "data-from": of.from[i],
          "data-to": of.to[i],
          "data-waited": of.waited[i],
        }),
      ),
    ];
  }
}
