/**
 * The data of the page: the head in JSON, and blocks of columns.
 *
 * `crates/view/src/head.rs` and `crates/view/src/columns.rs` write them; names of fields are those of
 * `conset show --json`.
 */

/** A column of whole numbers. Values above 2^53 are rounded. */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Number of all phases together, where a function takes a phase. */
export const ALL = -1;

export interface Head {
  format: string;
  version: number;
  generator: string;
  title: string;
  schedules: ScheduleHead[];
  diff?: { kind: "phases" | "steps" } & Record<string, unknown>;
  blocks: Record<string, Directory>;
  left_out: string[];
}

export interface ScheduleHead {
  name: string;
  kind: "phases" | "steps";
  origin?: { generator: string; algorithm: string; seed: number };
  machine: MachineHead;
  parts?: {
    parts: number;
    items_per_part?: [number, number];
    words_per_part: [number, number];
    max_degree: number;
    words: number;
  };
  sets: SetHead[];
  /** Why the checker refused it. */
  refused?: { violations: Violation[]; total_violations: number };
  mesh?: MeshHead;
}

/** A rule of the checker that is violated, and where. */
export interface Violation {
  rule: string;
  set: string;
  phase?: number;
  step?: number;
  cell?: number;
  connection?: number;
  message: string;
}

export interface MachineHead {
  summary: {
    name: string;
    topology: string;
    cells: number;
    links: number;
    channels_per_cell: number;
  };
  kind: "torus" | "mesh" | "ring" | "hypercube" | "fat-tree" | "cluster" | "graph";
  dims: number[] | null;
  wraps: boolean;
  levels: number[];
  cell_count: number;
  agents: number;
  dead_cells: number[];
  dead_links: [number, number][];
  parameters: Record<string, number>;
  duplex: "full" | "half";
  protocol: string;
}

export interface SetHead {
  summary: {
    set: string;
    connections: number;
    words: number;
    /** Nothing is predicted of a refused schedule, and it has no bounds. */
    predicted_clocks?: number | null;
    bound_clocks?: number;
    bound_clocks_by?: string;
    phases?: number;
    bound_phases?: number;
    bound_phases_by?: string;
    bound_ratio?: number;
    max_channels?: number;
    max_sharing?: number;
    hops?: number;
    steps?: number;
    messages?: number;
    message_words?: number;
    direct?: boolean;
    direct_bound_clocks?: number;
  };
  bounds: { of: string; by: string; value: number; witness: string }[];
  profile?: ProfileHead;
  whole: boolean;
  groups?: number;
}

/** The sums of a profile, as in `conset show profile --json`. */
export interface ProfileHead {
  clocks: number;
  sides: { side: "send" | "receive" | "both"; ports: number; clocks: Record<string, number> }[];
  path: { switch: number; setup: number; words: number; link: number; start: number };
  slack: {
    streams: number;
    zero: number;
    quarter: number;
    median: number;
    three_quarters: number;
    greatest: number;
  };
}

export interface MeshHead {
  dimension: 2 | 3;
  polygons: number;
  not_drawn: number;
  least: [number, number, number];
  greatest: [number, number, number];
}

interface Directory {
  bytes: number;
  columns: {
    name: string;
    count: number;
    width: number;
    coding: "plain" | "delta";
    offset: number;
  }[];
}

/** The version of head and blocks that this program reads. */
const VERSION = 1;

/** Columns of a block by name. */
export type Columns = Record<string, Numbers>;

/** Reads the head. */
export function readHead(): Head {
  const text = document.getElementById("head")?.textContent;
  if (!text) throw new Error("the page has no data: write it with `conset view FILE -o page.html`");
  const head = JSON.parse(text) as Head;
  if (head.format !== "conset-view" || head.version !== VERSION) {
    throw new Error(`data of version ${head.version}, expected ${VERSION}: write the page again with \`conset view\``);
  }
  return head;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** An array whose elements hold `width` bytes. */
function allocate(count: number, width: number): Numbers {
  if (width <= 1) return new Uint8Array(count);
  if (width === 2) return new Uint16Array(count);
  return width <= 4 ? new Uint32Array(count) : new Float64Array(count);
}

function decode(bytes: Uint8Array, column: Directory["columns"][number]): Numbers {
  const { count, width, offset } = column;
  const plane = (index: number) => bytes.subarray(offset + index * count, offset + (index + 1) * count);
  if (column.coding === "plain") {
    if (width === 1) return plane(0);
    const values = allocate(count, width);
    let factor = 1;
    for (let p = 0; p < width; p++, factor *= 256) {
      const part = plane(p);
      for (let i = 0; i < count; i++) values[i] += part[i] * factor;
    }
    return values;
  }
  // Differences may be wider than the values themselves, so they are summed as floats.
  const sums = new Float64Array(count);
  let factor = 1;
  for (let p = 0; p < width; p++, factor *= 256) {
    const part = plane(p);
    for (let i = 0; i < count; i++) sums[i] += part[i] * factor;
  }
  let value = 0;
  let greatest = 0;
  for (let i = 0; i < count; i++) {
    const zigzag = sums[i];
    value += zigzag % 2 === 1 ? -(zigzag + 1) / 2 : zigzag / 2;
    sums[i] = value;
    if (value > greatest) greatest = value;
  }
  return greatest < 2 ** 32 ? Uint32Array.from(sums) : sums;
}

/** Reads a block; `null` if the page does not have it. The text of the block is released. */
export async function readBlock(head: Head, name: string): Promise<Columns | null> {
  const element = document.getElementById(`block-${name}`);
  const directory = head.blocks[name];
  if (!element || !directory) return null;
  const compressed = fromBase64(element.textContent ?? "");
  element.remove();
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length !== directory.bytes) throw new Error(`block ${name} is damaged: write the page again`);
  const columns: Columns = {};
  for (const column of directory.columns) columns[column.name] = decode(bytes, column);
  return columns;
}
