/** Words between cells as a matrix: rows send, columns receive. Large machines are shown in groups of cells. */

import { palette, scale } from "./colour";
import { context, perFrame } from "./dom";
import { type ConnectionSet } from "./model";
import { type State } from "./state";

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

export class MatrixView {
  private set: ConnectionSet | null = null;
  private state: State | null = null;
  matrix: Matrix | null = null;
  readonly redraw = perFrame(() => this.draw());
  onPair: (source: number, target: number) => void = () => {};

  constructor(readonly canvas: HTMLCanvasElement) {
    canvas.addEventListener("click", (event) => {
      const size = this.unit();
      if (!this.matrix || !size) return;
      const [row, column] = [Math.floor((event.offsetY - 14) / size), Math.floor((event.offsetX - 14) / size)];
      const { groups, cells } = this.matrix;
      if (row < 0 || column < 0 || row >= groups || column >= groups) return;
      this.onPair(Math.floor(row * cells), Math.floor(column * cells));
    });
    new ResizeObserver(this.redraw).observe(canvas);
  }

  show(set: ConnectionSet | null, state: State): void {
    if (set !== this.set || (set && !this.matrix)) this.matrix = set && matrix(set);
    this.set = set;
    this.state = state;
    this.redraw();
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
