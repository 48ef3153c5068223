/** The surface of the mesh, coloured by part or by the cell's measure; three dimensions can be turned. */

import { palette, partHue, partHues, scale } from "./colour";
import { context, perFrame } from "./dom";
import { CELLS, greatest, measure } from "./measures";
import { type ConnectionSet, type Machine, type Mesh } from "./model";
import { type State } from "./state";

export class MeshView {
  private state: State | null = null;
  private set: ConnectionSet | null = null;
  private angle = { turn: -0.6, tilt: 0.5 };
  /** Points of the picture, and the order in which polygons are drawn. */
  private x = new Float32Array();
  private y = new Float32Array();
  private order: Uint32Array = new Uint32Array();
  private shade = new Float32Array();
  private readonly hues: Uint8Array;
  private drag: { x: number; y: number; moved: boolean } | null = null;
  readonly redraw = perFrame(() => this.draw());
  onPart: (part: number) => void = () => {};

  constructor(
    readonly canvas: HTMLCanvasElement,
    readonly mesh: Mesh,
    readonly machine: Machine,
  ) {
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.drag || mesh.head.dimension === 2) return;
      const [dx, dy] = [event.offsetX - this.drag.x, event.offsetY - this.drag.y];
      if (!this.drag.moved && Math.hypot(dx, dy) < 4) return;
      this.drag = { x: event.offsetX, y: event.offsetY, moved: true };
      this.turn(dx / 150, dy / 150);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.drag && !this.drag.moved) this.click(event);
      this.drag = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const turns: Record<string, [number, number]> = {
        ArrowLeft: [-0.15, 0],
        ArrowRight: [0.15, 0],
        ArrowUp: [0, -0.15],
        ArrowDown: [0, 0.15],
      };
      const turn = turns[event.key];
      if (!turn || mesh.head.dimension === 2) return;
      this.turn(...turn);
      event.preventDefault();
    });
    this.hues = hues(mesh, machine.partCell.length);
    this.project();
    new ResizeObserver(this.redraw).observe(canvas);
  }

  show(set: ConnectionSet | null, state: State): void {
    this.set = set;
    this.state = state;
    this.redraw();
  }

  private turn(turn: number, tilt: number): void {
    this.angle.turn += turn;
    this.angle.tilt = Math.max(-1.55, Math.min(1.55, this.angle.tilt + tilt));
    this.project();
    this.redraw();
  }

  /** Parallel projection, from far to near. */
  private project(): void {
    const { mesh } = this;
    const { least, greatest: most, dimension } = mesh.head;
    const lengths = least.map((low, axis) => most[axis] / 2 - low / 2);
    const longest = Math.max(...lengths) || 1;
    const factor = lengths.map((length) => length / longest / 65535);
    const count = mesh.x.length;
    this.x = new Float32Array(count);
    this.y = new Float32Array(count);
    const depth = new Float32Array(count);
    const flat = dimension === 2 ? lengths.findIndex((length) => length === 0) : -1;
    const axes = [0, 1, 2].filter((axis) => axis !== (flat < 0 && dimension === 2 ? 2 : flat));
    const columns = [mesh.x, mesh.y, mesh.z];
    const [sin, cos] = [Math.sin(this.angle.turn), Math.cos(this.angle.turn)];
    const [up, level] = [Math.sin(this.angle.tilt), Math.cos(this.angle.tilt)];
    for (let i = 0; i < count; i++) {
      if (dimension === 2) {
        this.x[i] = columns[axes[0]][i] * factor[axes[0]];
        this.y[i] = -columns[axes[1]][i] * factor[axes[1]];
        continue;
      }
      const px = (mesh.x[i] - 32768) * factor[0];
      const py = (mesh.y[i] - 32768) * factor[1];
      const pz = (mesh.z[i] - 32768) * factor[2];
      const [rx, ry] = [px * cos - py * sin, px * sin + py * cos];
      this.x[i] = rx;
      // Seen from above: what is higher is nearer.
      this.y[i] = -(pz * level + ry * up);
      depth[i] = ry * level - pz * up;
    }
    const polygons = mesh.part.length;
    const order = new Uint32Array(polygons);
    const key = new Float32Array(polygons);
    this.shade = new Float32Array(polygons).fill(1);
    for (let p = 0; p < polygons; p++) {
      order[p] = p;
      if (dimension === 2) continue;
      let sum = 0;
      for (let c = mesh.first[p]; c < mesh.first[p + 1]; c++) sum += depth[mesh.corner[c]];
      key[p] = sum / (mesh.first[p + 1] - mesh.first[p]);
      this.shade[p] = this.light(p, depth);
    }
    if (dimension === 3) order.sort((a, b) => key[b] - key[a]);
    this.order = order;
  }

  /** Between 0.55 and 1, by how much a polygon faces a lamp above and beside the eye. */
  private light(polygon: number, depth: Float32Array): number {
    const { first, corner } = this.mesh;
    if (first[polygon + 1] - first[polygon] < 3) return 1;
    const [a, b, c] = [0, 1, 2].map((i) => corner[first[polygon] + i]);
    const u = [this.x[b] - this.x[a], this.y[b] - this.y[a], depth[b] - depth[a]];
    const v = [this.x[c] - this.x[a], this.y[c] - this.y[a], depth[c] - depth[a]];
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    // Whichever side of the polygon faces the eye is seen.
    const side = n[2] < 0 ? 1 : -1;
    const lit = side * (-0.3 * n[0] - 0.75 * n[1] - 0.6 * n[2]);
    return 0.55 + (0.45 * Math.max(0, lit)) / (Math.hypot(...n) || 1);
  }

  private fit(): [number, number, number] {
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < this.x.length; i++) {
      x0 = Math.min(x0, this.x[i]);
      x1 = Math.max(x1, this.x[i]);
      y0 = Math.min(y0, this.y[i]);
      y1 = Math.max(y1, this.y[i]);
    }
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const k = 0.94 * Math.min(width / (x1 - x0 || 1), height / (y1 - y0 || 1));
    return [k, (width - k * (x0 + x1)) / 2, (height - k * (y0 + y1)) / 2];
  }

  private outline(ctx: CanvasRenderingContext2D | Path2D, polygon: number, [k, dx, dy]: number[]): void {
    const { first, corner } = this.mesh;
    for (let c = first[polygon]; c < first[polygon + 1]; c++) {
      const [x, y] = [this.x[corner[c]] * k + dx, this.y[corner[c]] * k + dy];
      if (c === first[polygon]) ctx.moveTo(x, y);
      else ctx.lineTo(x, y);
    }
    ctx.closePath();
  }

  private draw(): void {
    const { state, set, mesh } = this;
    if (!state || this.canvas.clientWidth === 0) return;
    const ctx = context(this.canvas);
    const colours = palette();
    const fit = this.fit();
    const values = state.mesh === "cell" && set ? measure(CELLS, state.cells).values(set, state.phase) : null;
    const most = greatest(values);
    const chosen = state.selection?.kind === "cell" ? state.selection.id : -1;
    const lines = mesh.part.length < 8000;
    ctx.lineWidth = lines ? 0.5 : 0.8;
    for (const p of this.order) {
      const cell = this.machine.partCell[mesh.part[p]];
      const value = values?.[cell] ?? 0;
      const colour =
        cell === chosen
          ? colours.selected
          : values
            ? value > 0
              ? scale(value / most)
              : colours.none
            : partHue(this.hues[mesh.part[p]]);
      ctx.fillStyle = shaded(colour, this.shade[p]);
      ctx.strokeStyle = lines ? colours.ink : ctx.fillStyle;
      ctx.beginPath();
      this.outline(ctx, p, fit);
      ctx.fill();
      ctx.globalAlpha = lines ? 0.35 : 1;
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
  }

  /** A point of the topmost polygon of a part that is seen there, in CSS pixels. */
  place(part: number): [number, number] | null {
    const fit = this.fit();
    const { first, corner } = this.mesh;
    for (let i = this.order.length - 1; i >= 0; i--) {
      const p = this.order[i];
      if (this.mesh.part[p] !== part) continue;
      const size = first[p + 1] - first[p];
      let [x, y] = [0, 0];
      for (let c = first[p]; c < first[p + 1]; c++) {
        x += (this.x[corner[c]] * fit[0] + fit[1]) / size;
        y += (this.y[corner[c]] * fit[0] + fit[2]) / size;
      }
      if (this.partAt(x, y) === part) return [x, y];
    }
    return null;
  }

  private partAt(x: number, y: number): number {
    const ctx = this.canvas.getContext("2d")!;
    const fit = this.fit();
    ctx.save();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    let found = -1;
    for (let i = this.order.length - 1; i >= 0 && found < 0; i--) {
      if (!this.mayContain(this.order[i], x, y, fit)) continue;
      const path = new Path2D();
      this.outline(path, this.order[i], fit);
      if (ctx.isPointInPath(path, x, y)) found = this.mesh.part[this.order[i]];
    }
    ctx.restore();
    return found;
  }

  private mayContain(polygon: number, x: number, y: number, [k, dx, dy]: number[]): boolean {
    const { first, corner } = this.mesh;
    let [left, right, above, below] = [false, false, false, false];
    for (let c = first[polygon]; c < first[polygon + 1]; c++) {
      const [px, py] = [this.x[corner[c]] * k + dx, this.y[corner[c]] * k + dy];
      left ||= px <= x;
      right ||= px >= x;
      above ||= py <= y;
      below ||= py >= y;
    }
    return left && right && above && below;
  }

  private click(event: PointerEvent): void {
    const part = this.partAt(event.offsetX, event.offsetY);
    if (part >= 0) this.onPart(part);
  }
}

/** Hues of parts: parts with a common point are neighbours. */
function hues(mesh: Mesh, parts: number): Uint8Array {
  const neighbours = Array.from({ length: parts }, () => new Set<number>());
  const at: number[][] = Array.from(mesh.x, () => []);
  for (let polygon = 0; polygon < mesh.part.length; polygon++) {
    const part = mesh.part[polygon];
    for (let c = mesh.first[polygon]; c < mesh.first[polygon + 1]; c++) {
      const here = at[mesh.corner[c]];
      if (here.includes(part)) continue;
      for (const other of here) {
        neighbours[part].add(other);
        neighbours[other].add(part);
      }
      here.push(part);
    }
  }
  return partHues(parts, (part) => neighbours[part]);
}

/** A colour in shadow. */
function shaded(colour: string, light: number): string {
  if (light >= 1) return colour;
  const hex = /^#([0-9a-f]{6})$/i.exec(colour);
  const numbers = hex
    ? [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16))
    : (colour.match(/\d+/g) ?? []).map(Number);
  return numbers.length < 3
    ? colour
    : `rgb(${numbers
        .slice(0, 3)
        .map((n) => Math.round(n * light))
        .join(",")})`;
}
