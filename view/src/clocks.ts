/**
 * Where the clocks of ports went, and the critical path: the numbers of `conset show profile`, which
 * `crates/view/src/profile.rs` writes. Nothing is computed here but sums.
 *
 * A *port* is one direction of an agent, or both with half duplex. A step plan has one phase here, as
 * its steps are no barriers.
 */

import { ALL, type Columns, type Numbers, type ProfileHead } from "./data";

/** The parts of a port's clocks; they add up to all clocks. */
export const PARTS = [
  "switch",
  "setup",
  "software",
  "copying",
  "sending",
  "receiving",
  "partner",
  "link",
  "start",
  "end",
] as const;
export type Part = (typeof PARTS)[number];
/** The parts in which a port does nothing. */
const IDLE = PARTS.slice(6);

/** What each part is, for legends and tables. */
export const PART_TITLES: Record<Part, string> = {
  switch: "context switch",
  setup: "set-up of streams",
  software: "software of messages",
  copying: "copying",
  sending: "sending",
  receiving: "receiving",
  partner: "waits for the partner",
  link: "waits for links",
  start: "waits to start",
  end: "waits for the end",
};

/** What a stream of the critical path was opened after, by its number; 1 to 3 are the sides of a port. */
const CAUSES = ["begin", "send", "receive", "both", "order", "link"];

/** The streams of the critical path, in the order of time. */
export interface CriticalPath {
  stream: Numbers;
  /** From here to there the stream is on the path, in clocks from the end of the phase's switch. */
  from: Numbers;
  to: Numbers;
  /** Clocks between what it was opened after and its opening. */
  waited: Numbers;
  cause: Numbers;
  cell: Numbers;
}

export class Profile {
  readonly path: CriticalPath | null;

  constructor(
    readonly head: ProfileHead,
    private readonly phases: Columns,
    private readonly ports: Columns | null,
    private readonly phasePorts: Columns | null,
    path: Columns | null,
    /** The slack of each stream. */
    readonly slack: Numbers | null,
  ) {
    this.path = path && {
      stream: path.path_stream,
      from: path.path_from,
      to: path.path_to,
      waited: path.path_waited,
      cause: path.path_cause,
      cell: path.path_cell,
    };
  }

  /** The names of sides: `send` and `receive`, or `both`. */
  get sides(): string[] {
    return this.head.sides.map(({ side }) => side);
  }

  get phaseCount(): number {
    return this.phases.switch.length / (this.head.sides.length || 1);
  }

  /** The parts that any port has. */
  get used(): Part[] {
    return PARTS.filter((part) => this.head.sides.some(({ clocks }) => clocks[part] > 0));
  }

  /** The sums over the ports of a side, by part. */
  ofSide(phase: number, side: number): number[] {
    if (phase === ALL) return PARTS.map((part) => this.head.sides[side].clocks[part]);
    const row = phase * this.head.sides.length + side;
    return PARTS.map((part) => this.phases[part][row]);
  }

  /** The cells with an agent, in the order of their ports; `null` if the page does not have the ports. */
  get cells(): number[] | null {
    if (!this.ports) return null;
    const { port_cell: cells } = this.ports;
    const sides = this.head.sides.length;
    return Array.from({ length: cells.length / sides }, (_, i) => cells[i * sides]);
  }

  /** The columns of the ports in a phase and the row of the first one; `null` if the page does not have them. */
  private portsIn(phase: number): { columns: Columns; first: number } | null {
    if (!this.ports) return null;
    if (phase === ALL || this.phaseCount === 1) return { columns: this.ports, first: 0 };
    return this.phasePorts && { columns: this.phasePorts, first: phase * this.ports.port_cell.length };
  }

  hasPorts(phase: number): boolean {
    return this.portsIn(phase) !== null;
  }

  /** The clocks of a side of a cell by part; `place` is that of the cell in `cells`. */
  ofPort(phase: number, place: number, side: number): number[] {
    const ports = this.portsIn(phase);
    if (!ports) return [];
    const row = ports.first + place * this.head.sides.length + side;
    return PARTS.map((part) => ports.columns[part][row]);
  }

  /**
   * The clocks of each cell of the machine in some parts, both sides together; `null` if the page does not
   * have them.
   */
  ofCells(cellCount: number, phase: number, parts: readonly Part[]): Float64Array | null {
    const ports = this.portsIn(phase);
    if (!ports) return null;
    const sums = new Float64Array(cellCount);
    const { port_cell: cells } = this.ports!;
    for (const part of parts)
      for (let p = 0; p < cells.length; p++) sums[cells[p]] += ports.columns[part][ports.first + p];
    return sums;
  }

  idle(cellCount: number, phase: number): Float64Array | null {
    return this.ofCells(cellCount, phase, IDLE);
  }

  /** The share of clocks without switches in which the ports of each cell are busy. */
  busyShare(cellCount: number, phase: number): Float64Array | null {
    const idle = this.idle(cellCount, phase);
    const all = this.ofCells(cellCount, phase, PARTS.slice(1));
    return idle && all && idle.map((clocks, cell) => (all[cell] > 0 ? 1 - clocks / all[cell] : 0));
  }

  /** What a segment of the critical path was opened after, in the words of `conset show profile`. */
  cause(segment: number): string {
    const { cause, cell } = this.path!;
    const name = CAUSES[cause[segment]] ?? "";
    return cause[segment] >= 1 && cause[segment] <= 3 ? `c${cell[segment]} ${name}` : name;
  }
}

/** The sum of the parts. */
export function total(parts: number[]): number {
  return parts.reduce((sum, clocks) => sum + clocks, 0);
}

/** The parts in which a port does nothing. */
export function idle(parts: number[]): number {
  return total(parts.slice(PARTS.indexOf(IDLE[0])));
}
