/**
 * Machines, sets and streams, and what is computed from them: loads of links and cells.
 *
 * A *stream* is a route of a phase, or a message of a step; a *phase* is a phase or a step. Clocks count
 * from the start of the set, with the context switches of phases.
 */

import { Profile } from "./clocks";
import { ALL, type Columns, type Head, type MachineHead, type MeshHead, type Numbers } from "./data";
import { type ScheduleHead, type SetHead, readBlock } from "./data";

/** A machine with its links. */
export class Machine {
  /** Live links that leave a cell: `outLinks[outFirst[c]..outFirst[c + 1]]`, ascending. */
  readonly outFirst: Uint32Array;
  readonly outLinks: Uint32Array;
  readonly isDead: Uint8Array;

  constructor(
    readonly head: MachineHead,
    readonly source: Numbers,
    readonly target: Numbers,
    readonly live: Numbers,
    readonly partCell: Numbers,
  ) {
    const first = new Uint32Array(head.cell_count + 1);
    for (let l = 0; l < source.length; l++) if (live[l]) first[source[l] + 1]++;
    for (let c = 0; c < head.cell_count; c++) first[c + 1] += first[c];
    const next = first.slice();
    const links = new Uint32Array(first[head.cell_count]);
    for (let l = 0; l < source.length; l++) if (live[l]) links[next[source[l]]++] = l;
    this.outFirst = first;
    this.outLinks = links;
    this.isDead = new Uint8Array(head.cell_count);
    for (const cell of head.dead_cells) this.isDead[cell] = 1;
  }

  get linkCount(): number {
    return this.source.length;
  }

  outgoing(cell: number): Uint32Array {
    return this.outLinks.subarray(this.outFirst[cell], this.outFirst[cell + 1]);
  }

  /** Live links into a cell. */
  incoming(cell: number): number[] {
    const found: number[] = [];
    for (let l = 0; l < this.linkCount; l++) if (this.live[l] && this.target[l] === cell) found.push(l);
    return found;
  }

  isSwitch(cell: number): boolean {
    return cell >= this.head.agents;
  }

  /** `c5 (5, 0)`: the cell with its coordinates, if it has any. */
  cellName(cell: number): string {
    const dims = this.head.dims;
    if (this.isSwitch(cell)) return `c${cell} (switch)`;
    if (!dims || dims.length < 2) return `c${cell}`;
    return `c${cell} (${coordinates(cell, dims).join(", ")})`;
  }

  linkName(link: number): string {
    return `l${link}: c${this.source[link]} → c${this.target[link]}`;
  }
}

/** The coordinates of a cell; the first one varies fastest. */
export function coordinates(cell: number, dims: number[]): number[] {
  let rest = cell;
  return dims.map((size) => {
    const at = rest % size;
    rest = Math.floor(rest / size);
    return at;
  });
}

/** The streams of a set, in the order of phases. */
export interface Streams {
  count: number;
  /** The connection; `null` for messages. */
  connection: Numbers | null;
  source: Numbers;
  target: Numbers;
  words: Numbers;
  /** First clock, relative to the end of the phase's switch, or to the start of the set for messages. */
  start: Numbers;
  duration: Numbers;
  /**
   * Of a message: clocks after its start at which it has been sent, and at which its target begins to receive it.
   * A stream is open at both ends at the same time.
   */
  sent: Numbers | null;
  receivedFrom: Numbers | null;
}

/** Routes: the links of each stream. */
export interface Routes {
  first: Uint32Array;
  links: Uint32Array;
}

/** Loads of all links. */
export interface LinkLoads {
  routes: Numbers;
  words: Numbers;
}

/** Loads of all cells. */
export interface CellLoads {
  sent: Float64Array;
  received: Float64Array;
  streams: Float64Array;
  /** Channels in use; of all phases the most in a phase. `null` without routes. */
  channels: Float64Array | null;
}

export interface Connections {
  source: Numbers;
  target: Numbers;
  words: Numbers;
}

export class ConnectionSet {
  /** Streams before each phase; one more than phases. */
  readonly first: Uint32Array;
  /** The clock at which the switch of each phase begins; one more than phases. */
  readonly offset: Float64Array;
  connections: Connections | null = null;
  streams: Streams | null = null;
  routes: Routes | null = null;
  channels: Numbers | null = null;
  pieces: { first: Uint32Array; connection: Numbers; words: Numbers } | null = null;
  pairs: Numbers | null = null;
  /** Where the clocks went; `null` if nothing is predicted. */
  profile: Profile | null = null;
  private loads: Columns | null = null;
  private names: { first: Uint32Array; bytes: Uint8Array } | null = null;
  private readonly linkCache = new Map<number, LinkLoads>();
  private readonly cellCache = new Map<number, CellLoads>();

  constructor(
    readonly machine: Machine,
    readonly head: SetHead,
    readonly kind: "phases" | "steps",
    readonly phases: Columns,
    private readonly prefix: string,
  ) {
    const count = this.phaseCount;
    this.first = new Uint32Array(count + 1);
    this.offset = new Float64Array(count + 1);
    for (let p = 0; p < count; p++) {
      this.first[p + 1] = this.first[p] + phases.phase_streams[p];
      this.offset[p + 1] = kind === "steps" ? 0 : this.offset[p] + this.switchClocks(p) + this.length(p);
    }
  }

  get name(): string {
    return this.head.summary.set;
  }

  get phaseCount(): number {
    return this.phases.phase_streams.length;
  }

  /** Clocks of the context switch before a phase. */
  switchClocks(phase: number): number {
    return this.kind === "steps" ? 0 : this.phases.phase_switch[phase];
  }

  /**
   * Clocks of a phase from the end of its switch: predicted; of a step those from its first message to
   * the end of its last one.
   */
  clocks(phase: number): number {
    if (this.kind === "phases") return this.phases.phase_clocks[phase];
    const [from, to] = this.span(phase);
    return to - from;
  }

  /** The clocks that a phase is drawn with: at least its planned makespan. */
  private length(phase: number): number {
    return Math.max(this.phases.phase_clocks[phase], this.phases.phase_makespan[phase]);
  }

  /** The last clock of the set. */
  get end(): number {
    if (this.kind === "phases") return this.offset[this.phaseCount];
    let end = 0;
    for (const clock of this.phases.phase_makespan) end = Math.max(end, clock);
    return end;
  }

  /** The first and last clock of a phase, without its switch. */
  span(phase: number): [number, number] {
    if (phase === ALL) return [0, this.end];
    if (this.kind === "phases") {
      const from = this.offset[phase] + this.switchClocks(phase);
      return [from, from + this.length(phase)];
    }
    let from = Infinity;
    if (!this.streams) from = 0;
    else for (let s = this.first[phase]; s < this.first[phase + 1]; s++) from = Math.min(from, this.streams.start[s]);
    return [Number.isFinite(from) ? from : 0, this.phases.phase_makespan[phase]];
  }

  /** The phase whose switch or streams are at a clock. */
  phaseAt(clock: number): number {
    let low = 0;
    let high = this.phaseCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offset[middle] <= clock) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  phaseOf(stream: number): number {
    let low = 0;
    let high = this.phaseCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.first[middle] <= stream) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The clock from which the starts of a stream's phase count. */
  baseOf(stream: number): number {
    if (this.kind === "steps") return 0;
    const phase = this.phaseOf(stream);
    return this.offset[phase] + this.switchClocks(phase);
  }

  /** The first clock of a stream, counted from the start of the set. */
  startOf(stream: number): number {
    return this.baseOf(stream) + this.streams!.start[stream];
  }

  /** First and last clock of a stream at its source, as `start` counts. */
  sendSpan(stream: number): [number, number] {
    const { start, duration, sent } = this.streams!;
    return [start[stream], start[stream] + (sent ?? duration)[stream]];
  }

  /** The same at its target. */
  receiveSpan(stream: number): [number, number] {
    const { start, duration, receivedFrom } = this.streams!;
    return [start[stream] + (receivedFrom?.[stream] ?? 0), start[stream] + duration[stream]];
  }

  /** The phase of the profile; `null` for one of several steps, which are no barriers and have none. */
  profilePhase(phase: number): number | null {
    if (this.kind === "phases" || phase === ALL) return phase;
    return this.phaseCount === 1 ? ALL : null;
  }

  /** The streams of a phase: first and end. */
  range(phase: number): [number, number] {
    return phase === ALL ? [0, this.first[this.phaseCount]] : [this.first[phase], this.first[phase + 1]];
  }

  /** Streams that are open at a clock. */
  openAt(clock: number): number[] {
    const streams = this.streams;
    if (!streams || this.phaseCount === 0) return [];
    const open: number[] = [];
    let [from, to] = this.range(ALL);
    let base = 0;
    if (this.kind === "phases") {
      const phase = this.phaseAt(clock);
      [from, to] = this.range(phase);
      base = this.offset[phase] + this.switchClocks(phase);
    }
    const at = clock - base;
    for (let s = from; s < to; s++)
      if (streams.start[s] <= at && at < streams.start[s] + streams.duration[s]) open.push(s);
    return open;
  }

  /** The name of a connection: `x5`, or `x5 name`. */
  connectionName(x: number): string {
    if (!this.names) return `x${x}`;
    const bytes = this.names.bytes.subarray(this.names.first[x], this.names.first[x + 1]);
    const name = new TextDecoder().decode(bytes);
    return name ? `x${x} ${name}` : `x${x}`;
  }

  streamName(stream: number): string {
    const streams = this.streams!;
    const ends = `c${streams.source[stream]} → c${streams.target[stream]}`;
    return streams.connection
      ? `${this.connectionName(streams.connection[stream])}: ${ends}`
      : `message ${stream}: ${ends}`;
  }

  /** The links of a stream. */
  linksOf(stream: number): Uint32Array {
    const routes = this.routes;
    return routes ? routes.links.subarray(routes.first[stream], routes.first[stream + 1]) : new Uint32Array();
  }

  /** The cells of a stream's route, its ends included. */
  cellsOf(stream: number): number[] {
    const links = this.linksOf(stream);
    // A route that the checker refuses may begin elsewhere than at its source.
    const first = links.length > 0 ? this.machine.source[links[0]] : this.streams!.source[stream];
    return [first, ...Array.from(links, (link) => this.machine.target[link])];
  }

  /** The streams of a connection: its parts, or the messages that carry its pieces. */
  streamsOf(x: number): number[] {
    const found: number[] = [];
    if (this.streams?.connection) {
      const of = this.streams.connection;
      for (let s = 0; s < of.length; s++) if (of[s] === x) found.push(s);
    } else if (this.pieces) {
      const { first, connection } = this.pieces;
      for (let s = 0; s + 1 < first.length; s++)
        for (let p = first[s]; p < first[s + 1]; p++)
          if (connection[p] === x) {
            found.push(s);
            break;
          }
    }
    return found;
  }

  /** The streams of a phase over a link. */
  streamsOver(link: number, phase: number): number[] {
    const routes = this.routes;
    const found: number[] = [];
    if (!routes) return found;
    const [from, to] = this.range(phase);
    for (let s = from; s < to; s++)
      for (let h = routes.first[s]; h < routes.first[s + 1]; h++)
        if (routes.links[h] === link) {
          found.push(s);
          break;
        }
    return found;
  }

  /** Loads of links in a phase, or `null` if the page does not have them. */
  linkLoads(phase: number): LinkLoads | null {
    if (phase === ALL) return { routes: this.phases.link_routes, words: this.phases.link_words };
    const cached = this.linkCache.get(phase);
    if (cached) return cached;
    const count = this.machine.linkCount;
    let loads: LinkLoads | null = null;
    if (this.routes && this.streams) {
      const routes = new Float64Array(count);
      const words = new Float64Array(count);
      const { first, links } = this.routes;
      for (let s = this.first[phase]; s < this.first[phase + 1]; s++)
        for (let h = first[s]; h < first[s + 1]; h++) {
          routes[links[h]]++;
          words[links[h]] += this.streams.words[s];
        }
      loads = { routes, words };
    } else if (this.loads) {
      const part = (column: Numbers) => column.subarray(phase * count, (phase + 1) * count);
      loads = { routes: part(this.loads.load_routes), words: part(this.loads.load_words) };
    }
    if (loads) remember(this.linkCache, phase, loads);
    return loads;
  }

  /** Loads of cells in a phase, or `null` if the page has no streams. */
  cellLoads(phase: number): CellLoads | null {
    const cached = this.cellCache.get(phase);
    if (cached) return cached;
    const streams = this.streams;
    if (!streams) return null;
    const count = this.machine.head.cell_count;
    const loads: CellLoads = {
      sent: new Float64Array(count),
      received: new Float64Array(count),
      streams: new Float64Array(count),
      channels: this.routes && this.kind === "phases" ? new Float64Array(count) : null,
    };
    const phases = phase === ALL ? Array.from({ length: this.phaseCount }, (_, p) => p) : [phase];
    for (const p of phases) {
      const [from, to] = this.range(p);
      for (let s = from; s < to; s++) {
        const [a, b] = [streams.source[s], streams.target[s]];
        loads.sent[a] += streams.words[s];
        loads.received[b] += streams.words[s];
        loads.streams[a]++;
        loads.streams[b]++;
      }
      if (loads.channels) this.addChannels(p, loads.channels);
    }
    remember(this.cellCache, phase, loads);
    return loads;
  }

  private addChannels(phase: number, most: Float64Array): void {
    const used = new Float64Array(most.length);
    const { first, links } = this.routes!;
    for (let s = this.first[phase]; s < this.first[phase + 1]; s++) {
      used[this.streams!.source[s]]++;
      for (let h = first[s]; h < first[s + 1]; h++) used[this.machine.target[links[h]]]++;
    }
    for (let c = 0; c < most.length; c++) most[c] = Math.max(most[c], used[c]);
  }

  /** The greatest number of routes on a link in a phase; of all phases the most in one. */
  sharing(phase: number): number {
    const phases = phase === ALL ? Array.from({ length: this.phaseCount }, (_, p) => p) : [phase];
    let most = 0;
    for (const p of phases) for (const routes of this.linkLoads(p)?.routes ?? []) if (routes > most) most = routes;
    return most;
  }

  /** Reads what is not needed for the first picture. */
  async load(page: Head): Promise<void> {
    const block = (name: string) => readBlock(page, `${this.prefix}.${name}`);
    const connections = await block("connections");
    if (connections)
      this.connections = {
        source: connections.source,
        target: connections.target,
        words: connections.words,
      };
    this.pairs = (await block("pairs"))?.pair_words ?? null;
    const names = await block("names");
    if (names) this.names = { first: starts(names.name_length), bytes: names.name_bytes as Uint8Array };
    const streams = await block("streams");
    if (streams) this.streams = this.makeStreams(streams);
    const routes = await block("routes");
    if (routes && this.streams) this.routes = this.makeRoutes(routes);
    this.loads = await block("loads");
    const details = await block("details");
    this.channels = details?.channel ?? null;
    if (details?.piece_count)
      this.pieces = {
        first: starts(details.piece_count),
        connection: details.piece_connection,
        words: details.piece_words,
      };
    const phases = await block("profile");
    if (this.head.profile && phases) {
      const slack = await block("slack");
      const [ports, ofPhases, path] = [await block("ports"), await block("phase-ports"), await block("path")];
      this.profile = new Profile(this.head.profile, phases, ports, ofPhases, path, slack?.stream_slack ?? null);
    }
    this.linkCache.clear();
    this.cellCache.clear();
  }

  private makeStreams(columns: Columns): Streams | null {
    const count = columns.stream_start.length;
    const { stream_start: start, stream_duration: duration } = columns;
    if (this.kind === "steps")
      return {
        count,
        connection: null,
        source: columns.stream_source,
        target: columns.stream_target,
        words: columns.stream_words,
        start,
        duration,
        sent: columns.stream_sent,
        receivedFrom: columns.stream_received_from,
      };
    const set = this.connections;
    if (!set) return null;
    const of = columns.stream_connection;
    const gather = (column: Numbers) => {
      const values = new Uint32Array(count);
      for (let s = 0; s < count; s++) values[s] = column[of[s]];
      return values;
    };
    return {
      count,
      connection: of,
      source: gather(set.source),
      target: gather(set.target),
      words: columns.stream_words ?? gather(set.words),
      start,
      duration,
      sent: null,
      receivedFrom: null,
    };
  }

  /**
   * Follows each route from its source: a route is stored by which of a cell's links it takes. A refused one is
   * stored by its links, as they need not follow each other.
   */
  private makeRoutes(columns: Columns): Routes {
    const first = starts(columns.stream_hops);
    if (columns.route_link) return { first, links: Uint32Array.from(columns.route_link) };
    const choice = columns.link_choice;
    const links = new Uint32Array(choice.length);
    const { outFirst, outLinks, target } = this.machine;
    const source = this.streams!.source;
    for (let s = 0; s + 1 < first.length; s++) {
      let cell = source[s];
      for (let h = first[s]; h < first[s + 1]; h++) {
        const link = outLinks[outFirst[cell] + choice[h]];
        links[h] = link;
        cell = target[link];
      }
    }
    return { first, links };
  }
}

/** Keeps a few results: a slider passes many phases. */
function remember<T>(cache: Map<number, T>, key: number, value: T): void {
  if (cache.size >= 16) cache.delete(cache.keys().next().value!);
  cache.set(key, value);
}

/** The sums before each count; one more than counts. */
function starts(counts: Numbers): Uint32Array {
  const first = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) first[i + 1] = first[i] + counts[i];
  return first;
}

/** The polygons of a mesh; coordinates are on a grid of 65536 steps in each direction. */
export interface Mesh {
  head: MeshHead;
  x: Numbers;
  y: Numbers;
  z: Numbers;
  part: Numbers;
  first: Uint32Array;
  corner: Numbers;
}

export class Schedule {
  mesh: Mesh | null = null;

  constructor(
    readonly head: ScheduleHead,
    readonly number: number,
    readonly machine: Machine,
    readonly sets: ConnectionSet[],
  ) {}

  /** What a stream is called. */
  get streamWord(): string {
    return this.head.kind === "steps" ? "message" : "stream";
  }

  get phaseWord(): string {
    return this.head.kind === "steps" ? "step" : "phase";
  }

  async loadMesh(page: Head): Promise<void> {
    const columns = this.head.mesh && (await readBlock(page, `${this.number}.mesh`));
    if (!columns) return;
    this.mesh = {
      head: this.head.mesh!,
      x: columns.point_x,
      y: columns.point_y,
      z: columns.point_z,
      part: columns.polygon_part,
      first: starts(columns.polygon_size),
      corner: columns.corner,
    };
  }
}

/** Reads what the first picture needs of all schedules. */
export async function readSchedules(page: Head): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  for (const [number, head] of page.schedules.entries()) {
    const links = await readBlock(page, `${number}.machine`);
    if (!links) throw new Error("the page has no links: write it again with `conset view`");
    const machine = new Machine(head.machine, links.link_source, links.link_target, links.live, links.part_cell);
    const sets: ConnectionSet[] = [];
    for (const [row, set] of head.sets.entries()) {
      const phases = await readBlock(page, `${number}.${row}.phases`);
      if (!phases) throw new Error("the page has no phases: write it again with `conset view`");
      sets.push(new ConnectionSet(machine, set, head.kind, phases, `${number}.${row}`));
    }
    schedules.push(new Schedule(head, number, machine, sets));
  }
  return schedules;
}
