/** Words between cells as a matrix: rows send, columns receive. Large machines are shown in groups of cells. */

import { palette, scale } from "./colour";
import { context, count, perFrame } from "./dom";
import { type ConnectionSet } from "./model";
import { type State } from "./state";
import { tips } from "./tip";

/** Groups of cells in each direction. */
const MOST = 256;

/** Words between groups of cells. */
export interface Matrix {
  groups: number;
  /** Cells in a group; the last one may have fewer. */
  cells: number;
  words: Float64Array;
  most: number;
}

export function matrix(set: ConnectionSet): Matrix | null {
  const agents = set.machine.head.agents;
  const own = set.head.groups;
  if (set.pairs && own) {
    const words = Float64Array.from(set.pairs);
    return { groups: own, cells: agents / own, words, most: words.reduce((a, b) => Math.max(a, b), 0) };
  }
  const connections = set.connections;
  if (!connections) return null;
  const cells = Math.ceil(agents / MOST);
  const groups = Math.ceil(agents / cells);
  const words = new Float64Array(groups * groups);
  for (let x = 0; x < connections.words.length; x++) {
    const row = Math.floor(connections.source[x] / cells);
    words[row * groups + Math.floor(connections.target[x] / cells)] += connections.words[x];
  }
  let most = 0;
  for (const value of words) most = Math.max(most, value);
  return { groups, cells, words, most };
}

/** `c5`, or the first and last cell of a group. */
export function groupName(set: ConnectionSet, { cells }: Matrix, group: number): string {
  const first = Math.floor(group * cells);
  const end = Math.min(set.machine.head.agents, Math.floor((group + 1) * cells));
  return end - first <= 1 ? `c${first}` : `c${first} to c${end - 1}`;
}

export class MatrixView {
  private set: ConnectionSet | null = null;
  private state: State | null = null;
  matrix: Matrix | null = null;
  readonly redraw = perFrame(() => this.draw());
  onPair: (source: number, target: number) => void = () => {};

  constructor(readonly canvas: HTMLCanvasElement) {
    canvas.addEventListener("click", (event) => {
      const found = this.at(event.offsetX, event.offsetY);
      const cells = this.matrix?.cells ?? 1;
      if (found) this.onPair(Math.floor(found[0] * cells), Math.floor(found[1] * cells));
    });
    tips(canvas, (x, y) => this.tip(x, y));
    new ResizeObserver(this.redraw).observe(canvas);
  }

  show(set: ConnectionSet | null, state: State): void {
    if (set !== this.set || (set && !this.matrix)) this.matrix = set && matrix(set);
    this.set = set;
    this.state = state;
    this.redraw();
  }

  /** Row and column at a place of the canvas. */
  private at(x: number, y: number): [number, number] | null {
    const size = this.unit();
    if (!this.matrix || !size) return null;
    const [row, column] = [Math.floor((y - 14) / size), Math.floor((x - 14) / size)];
    const isInside = Math.min(row, column) >= 0 && Math.max(row, column) < this.matrix.groups;
    return isInside ? [row, column] : null;
  }

  private tip(x: number, y: number): string | null {
    const found = this.at(x, y);
    if (!found || !this.set) return null;
    const [row, column] = found;
    const [from, to] = found.map((group) => groupName(this.set!, this.matrix!, group));
    return `${from} → ${to}: ${count(this.matrix!.words[row * this.matrix!.groups + column], "word")}`;
  }

  private unit(): number {
    if (!this.matrix) return 0;
    return Math.min(this.canvas.clientWidth - 16, this.canvas.clientHeight - 16) / this.matrix.groups;
  }

  private draw(): void {
    if (!this.matrix || !this.state || this.canvas.clientWidth === 0) return;
    const ctx = context(this.canvas);
    const colours = palette();
    const { groups, words, most, cells } = this.matrix;
    const size = this.unit();
    ctx.translate(14, 14);
    ctx.fillStyle = colours.none;
    ctx.fillRect(0, 0, size * groups, size * groups);
    for (let row = 0; row < groups; row++)
      for (let column = 0; column < groups; column++) {
        const value = words[row * groups + column];
        if (value === 0) continue;
        ctx.fillStyle = scale(value / most);
        ctx.fillRect(column * size, row * size, Math.max(size, 0.7), Math.max(size, 0.7));
      }
    const selected = this.state.selection;
    const marked = selected && this.set ? ends(this.set, selected) : null;
    if (marked) {
      ctx.strokeStyle = colours.selected;
      ctx.lineWidth = 2;
      const [row, column] = [Math.floor(marked[0] / cells), Math.floor(marked[1] / cells)];
      ctx.strokeRect(column * size - 1, row * size - 1, size + 2, size + 2);
    }
    ctx.fillStyle = colours.ink;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "bottom";
    ctx.fillText("to →", 0, -1);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "right";
    ctx.fillText("← from", 0, -1);
  }
}

/** Source and target of a selected connection or stream. */
function ends(set: ConnectionSet, selection: { kind: string; id: number }): [number, number] | null {
  const of = selection.kind === "connection" ? set.connections : selection.kind === "stream" ? set.streams : null;
  if (!of || selection.id >= of.words.length) return null;
  return [of.source[selection.id], of.target[selection.id]];
}
