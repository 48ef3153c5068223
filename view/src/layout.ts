/**
 * Where cells and links are drawn: grids, rings, hypercubes, fat-trees by levels, clusters and graphs by forces.
 *
 * Neighbours are about one unit apart. The two directions of a connection between cells are separate
 * lines, each on the right-hand side of its direction.
 */

import { forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { type Machine, coordinates } from "./model";

/** A machine in the plane. */
export interface Layout {
  x: Float64Array;
  y: Float64Array;
  /** Half the width of a cell. */
  radius: number;
  /** The lines of a link: each a list of coordinates x, y, x, y, ... in the direction of the link. */
  lines: (link: number) => number[][];
  /** Whether there are too many links to draw all of them; only some are drawn then. */
  isLarge: boolean;
  /** Least x and y, greatest x and y. */
  box: [number, number, number, number];
}

/** Links above which only links with routes of the selection or the clock are drawn. */
const MOST_LINKS = 60000;
/** Cells of a graph above which they are on a circle. */
const MOST_FORCED = 1500;
/** Distance of a line from the line between the centres. */
const ASIDE = 0.07;
/** Length of the stubs of links that wrap around. */
const STUB = 0.62;

export function layout(machine: Machine): Layout {
  const { head } = machine;
  const count = head.cell_count;
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const dims = head.dims?.filter((size) => size > 1) ?? null;
  let curved = false;
  let isGrid = false;
  if (dims && dims.length <= 1 && head.wraps && count > 2) {
    circle(x, y);
  } else if (dims && dims.length <= 1) {
    for (let c = 0; c < count; c++) x[c] = c;
  } else if (dims && dims.length === 2) {
    isGrid = true;
    for (let c = 0; c < count; c++) [x[c], y[c]] = coordinates(c, dims);
  } else if (dims && dims.length === 3 && head.kind !== "hypercube") {
    isGrid = true;
    // Oblique projection: planes behind each other, each moved so that no cell hides another.
    const space = Math.max(2, 0.62 * dims[2]);
    for (let c = 0; c < count; c++) {
      const [i, j, k] = coordinates(c, dims);
      x[c] = space * (i + k / dims[2]);
      y[c] = space * (j + (0.7 * k) / dims[2]);
    }
  } else if (dims) {
    curved = true;
    // Dimensions alternate between x and y, with gaps between blocks.
    for (let c = 0; c < count; c++) {
      const at = coordinates(c, dims);
      const stride = [1, 1];
      const place = [0, 0];
      at.forEach((value, d) => {
        place[d % 2] += value * stride[d % 2];
        stride[d % 2] = stride[d % 2] * dims[d] + 0.35 * stride[d % 2];
      });
      [x[c], y[c]] = place;
    }
  } else if (head.kind === "fat-tree") {
    levels(head.levels, x, y);
  } else if (count <= MOST_FORCED) {
    forces(machine, x, y);
  } else {
    circle(x, y);
  }
  const wraps = (a: number, b: number) => (isGrid && head.wraps ? wrap(a, b, dims!) : null);
  const known: number[][][] = new Array(machine.linkCount);
  const lines = (link: number): number[][] => {
    if (known[link]) return known[link];
    const [a, b] = [machine.source[link], machine.target[link]];
    // Parallel links are beside each other.
    const nth = machine.outgoing(a).filter((other) => other < link && machine.target[other] === b).length;
    known[link] = linkLines(x, y, a, b, nth, curved, wraps(a, b), isGrid && dims!.length === 3);
    return known[link];
  };
  const box = bounds(x, y, isGrid && head.wraps ? STUB : 0.3);
  return { x, y, radius: 0.24, lines, isLarge: machine.linkCount > MOST_LINKS, box };
}

/** The direction (dimension and sign) of a link that wraps around, or `null`. */
function wrap(a: number, b: number, dims: number[]): { dimension: number; sign: number } | null {
  const [from, to] = [coordinates(a, dims), coordinates(b, dims)];
  for (let d = 0; d < dims.length; d++) {
    const step = to[d] - from[d];
    if (dims[d] > 2 && Math.abs(step) === dims[d] - 1) return { dimension: d, sign: -Math.sign(step) };
  }
  return null;
}

function linkLines(
  x: Float64Array,
  y: Float64Array,
  a: number,
  b: number,
  nth: number,
  curved: boolean,
  wraps: { dimension: number; sign: number } | null,
  oblique: boolean,
): number[][] {
  let [dx, dy] = [x[b] - x[a], y[b] - y[a]];
  const length = Math.hypot(dx, dy) || 1;
  [dx, dy] = [dx / length, dy / length];
  const aside = ASIDE * (1 + 1.4 * nth);
  if (wraps) {
    // The line leaves the picture and comes back on the other side: two stubs, backwards.
    [dx, dy] = [-dx, -dy];
    const [ox, oy] = [-dy * aside, dx * aside];
    const reach = oblique && wraps.dimension === 2 ? STUB * 0.7 : STUB;
    return [
      [x[a] + ox, y[a] + oy, x[a] + ox + dx * reach, y[a] + oy + dy * reach],
      [x[b] + ox - dx * reach, y[b] + oy - dy * reach, x[b] + ox, y[b] + oy],
    ];
  }
  const [ox, oy] = [-dy * aside, dx * aside];
  if (!curved || length < 1.3) return [[x[a] + ox, y[a] + oy, x[b] + ox, y[b] + oy]];
  // A quadratic curve beside the cells between the ends.
  const bend = 0.32 + 0.07 * length + aside;
  const [mx, my] = [(x[a] + x[b]) / 2 - dy * bend, (y[a] + y[b]) / 2 + dx * bend];
  const points: number[] = [];
  for (let i = 0; i <= 10; i++) {
    const t = i / 10;
    const [p, q, r] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t];
    points.push(p * x[a] + q * mx + r * x[b], p * y[a] + q * my + r * y[b]);
  }
  return [points];
}

function circle(x: Float64Array, y: Float64Array): void {
  const radius = Math.max(1, (x.length * 1.05) / (2 * Math.PI));
  for (let c = 0; c < x.length; c++) {
    const angle = (2 * Math.PI * c) / x.length - Math.PI / 2;
    x[c] = radius * Math.cos(angle);
    y[c] = radius * Math.sin(angle);
  }
}

/** Levels of a fat-tree: the leaves below, each level above them as wide as the leaves. */
function levels(counts: number[], x: Float64Array, y: Float64Array): void {
  const width = Math.max(...counts);
  const height = Math.max(1.6, width / (1.4 * Math.max(1, counts.length - 1)));
  let cell = 0;
  counts.forEach((count, level) => {
    for (let i = 0; i < count; i++, cell++) {
      x[cell] = ((i + 0.5) * width) / count;
      y[cell] = -level * height;
    }
  });
}

function forces(machine: Machine, x: Float64Array, y: Float64Array): void {
  const nodes = Array.from(x, (_, index) => ({ index, x: NaN, y: NaN }));
  const links = [];
  for (let l = 0; l < machine.linkCount; l++) links.push({ source: machine.source[l], target: machine.target[l] });
  // d3-force starts from a spiral and has a random generator of its own: the picture is always the same.
  forceSimulation(nodes)
    .force("link", forceLink(links).distance(1).strength(0.7))
    .force("charge", forceManyBody().strength(-1.2))
    .force("x", forceX(0).strength(0.01))
    .force("y", forceY(0).strength(0.01))
    .stop()
    .tick(nodes.length > 400 ? 120 : 300);
  // The median distance of neighbours becomes 1.4 units: cells at the same switch need room.
  const lengths = links
    .map((_, l) => {
      const [a, b] = [nodes[machine.source[l]], nodes[machine.target[l]]];
      return Math.hypot(a.x - b.x, a.y - b.y);
    })
    .sort((a, b) => a - b);
  const unit = (lengths[lengths.length >> 1] || 1) / 1.4;
  for (const node of nodes) {
    x[node.index] = node.x / unit;
    y[node.index] = node.y / unit;
  }
}

function bounds(x: Float64Array, y: Float64Array, margin: number): Layout["box"] {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let c = 0; c < x.length; c++) {
    x0 = Math.min(x0, x[c]);
    x1 = Math.max(x1, x[c]);
    y0 = Math.min(y0, y[c]);
    y1 = Math.max(y1, y[c]);
  }
  return [x0 - margin - 0.3, y0 - margin - 0.3, x1 + margin + 0.3, y1 + margin + 0.3];
}

/** The cell at a point of the plane, or -1. */
export function cellAt(at: Layout, px: number, py: number): number {
  let best = -1;
  let least = (at.radius * 1.25) ** 2;
  for (let c = 0; c < at.x.length; c++) {
    const d = (at.x[c] - px) ** 2 + (at.y[c] - py) ** 2;
    if (d <= least) [best, least] = [c, d];
  }
  return best;
}

/** The link nearest to a point of the plane within `reach`, or -1. */
export function linkAt(at: Layout, links: number, px: number, py: number, reach: number): number {
  let best = -1;
  let least = reach * reach;
  for (let link = 0; link < links; link++)
    for (const line of at.lines(link))
      for (let i = 0; i + 3 < line.length; i += 2) {
        const [ax, ay, bx, by] = [line[i], line[i + 1], line[i + 2], line[i + 3]];
        const [dx, dy] = [bx - ax, by - ay];
        const t = Math.max(0, Math.min(1, ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy || 1)));
        const d = (ax + t * dx - px) ** 2 + (ay + t * dy - py) ** 2;
        if (d < least) [best, least] = [link, d];
      }
  return best;
}

/** A point in the middle of a link's first line. */
export function linkMiddle(at: Layout, link: number): [number, number] {
  const line = at.lines(link)[0];
  const i = 2 * Math.floor((line.length / 2 - 1) / 2);
  return [(line[i] + line[i + 2]) / 2, (line[i + 1] + line[i + 3]) / 2];
}
