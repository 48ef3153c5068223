/** The measures by which cells and links are coloured. */

import { PART_TITLES, type Profile } from "./clocks";
import { ALL } from "./data";
import { type ConnectionSet } from "./model";

export interface Measure {
  id: string;
  title: string;
  /** Unit of the legend: `%` for shares. */
  unit: string;
  /** The value of each cell or link, or `null` if the page does not have the data. */
  values: (set: ConnectionSet, phase: number) => ArrayLike<number> | null;
}

/** Clocks that shares and idle times refer to: those of the phase without its switch, or of the set. */
export function reference(set: ConnectionSet, phase: number): number {
  if (phase === ALL) return set.end;
  return set.clocks(phase);
}

function map(values: ArrayLike<number> | null | undefined, of: (value: number, row: number) => number) {
  return values ? Float64Array.from(values as ArrayLike<number>, of) : null;
}

/** Clocks of each cell's ports, in a phase that the profile has. */
function ofPorts(
  set: ConnectionSet,
  phase: number,
  of: (profile: Profile, cellCount: number, phase: number) => Float64Array | null,
) {
  const at = set.profilePhase(phase);
  return set.profile && at !== null ? of(set.profile, set.machine.head.cell_count, at) : null;
}

/** Clocks in which a link moves words. */
function linkBusy(set: ConnectionSet, phase: number): Float64Array | null {
  const perWord = set.machine.head.parameters.link_clocks_per_word;
  return map(set.linkLoads(phase)?.words, (words) => words * perWord);
}

export const LINKS: Measure[] = [
  { id: "words", title: "words", unit: "words", values: (set, phase) => set.linkLoads(phase)?.words ?? null },
  {
    id: "routes",
    title: "routes on the link",
    unit: "routes",
    values: (set, phase) => set.linkLoads(phase)?.routes ?? null,
  },
  {
    id: "busy",
    title: "busy share",
    unit: "%",
    values: (set, phase) => map(linkBusy(set, phase), (clocks) => clocks / (reference(set, phase) || 1)),
  },
  {
    id: "idle",
    title: "idle clocks",
    unit: "clocks",
    values: (set, phase) =>
      map(linkBusy(set, phase), (clocks, link) =>
        set.machine.live[link] ? Math.max(0, reference(set, phase) - clocks) : 0,
      ),
  },
];

export const CELLS: Measure[] = [
  {
    id: "words",
    title: "words sent and received",
    unit: "words",
    values: (set, phase) => {
      const loads = set.cellLoads(phase);
      return loads && map(loads.sent, (words, cell) => words + loads.received[cell]);
    },
  },
  {
    id: "channels",
    title: "channels in use",
    unit: "channels",
    values: (set, phase) => set.cellLoads(phase)?.channels ?? null,
  },
  {
    id: "streams",
    title: "streams that begin or end",
    unit: "streams",
    values: (set, phase) => set.cellLoads(phase)?.streams ?? null,
  },
  {
    id: "busy",
    title: "busy share of the ports",
    unit: "%",
    values: (set, phase) => ofPorts(set, phase, (profile, count, at) => profile.busyShare(count, at)),
  },
  {
    id: "idle",
    title: "idle clocks of the ports",
    unit: "clocks",
    values: (set, phase) => ofPorts(set, phase, (profile, count, at) => profile.idle(count, at)),
  },
  ...(["partner", "link", "start", "end"] as const).map((part) => ({
    id: part,
    title: `idle: ${PART_TITLES[part]}`,
    unit: "clocks",
    values: (set: ConnectionSet, phase: number) =>
      ofPorts(set, phase, (profile, count, at) => profile.ofCells(count, at, [part])),
  })),
];

export function measure(list: Measure[], id: string): Measure {
  return list.find((measure) => measure.id === id) ?? list[0];
}

export function greatest(values: ArrayLike<number> | null): number {
  let most = 0;
  for (let i = 0; i < (values?.length ?? 0); i++) if (values![i] > most) most = values![i];
  return most;
}
