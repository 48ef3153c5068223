/**
 * The chart of where every clock went: a column for each phase (the mean of a side's ports) or for each
 * cell, stacked by the parts of its clocks; the upper chart is the sending ports, the lower one the
 * receiving ports. Where columns would be narrower than a few pixels, each is the mean of several.
 */

import { scaleLinear } from "d3-scale";
import { PARTS, PART_TITLES, idle, total } from "./clocks";
import { palette, partColours } from "./colour";
import { context, count, number, perFrame } from "./dom";
import { type ConnectionSet } from "./model";
import { type State } from "./state";
import { tips } from "./tip";
import { ARROWS } from "./zoomed";

const LEFT = 76;
const TOP = 20;
const BOTTOM = 20;
/** Between the charts of two sides. */
const GAP = 26;
/** Least and greatest width of a column in pixels. */
const [NARROW, WIDE] = [3, 90];

/** A phase or a cell. */
export interface Column {
  kind: "phase" | "cell";
  id: number;
  /** For each side the clocks by part: of a phase their mean over the ports. */
  sides: number[][];
}

/** Whether the columns are phases or cells, if the state leaves it open. */
export function columnKind(set: ConnectionSet, state: State): "phases" | "cells" {
  if (state.clocks === "phases" || state.clocks === "cells") return state.clocks;
  return (set.profile?.phaseCount ?? 0) > 1 ? "phases" : "cells";
}

/** The columns of a set, or why there are none. */
export function columns(set: ConnectionSet, state: State): Column[] | string {
  const { profile } = set;
  if (!profile) return "The page does not have the clocks of ports: nothing is predicted for this schedule.";
  const sides = profile.sides.map((_, side) => side);
  let found: Column[];
  if (columnKind(set, state) === "phases") {
    const mean = (phase: number, side: number) => {
      const ports = profile.head.sides[side].ports || 1;
      return profile.ofSide(phase, side).map((clocks) => clocks / ports);
    };
    found = Array.from({ length: profile.phaseCount }, (_, id) => ({
      kind: "phase",
      id,
      sides: sides.map((side) => mean(id, side)),
    }));
  } else {
    // The steps of a plan are no barriers: its profile is that of all steps.
    const phase = set.profilePhase(state.phase) ?? -1;
    const cells = profile.cells;
    if (!cells || !profile.hasPorts(phase)) return "The page does not have the clocks of single cells in a phase.";
    found = cells.map((id, place) => ({
      kind: "cell",
      id,
      sides: sides.map((side) => profile.ofPort(phase, place, side)),
    }));
  }
  if (state.order === "idle") {
    const key = (column: Column) => column.sides.reduce((sum, side) => sum + idle(side), 0);
    found.sort((a, b) => key(b) - key(a) || a.id - b.id);
  }
  return found;
}

export class ProfileView {
  private set: ConnectionSet | null = null;
  private state: State | null = null;
  columns: Column[] = [];
  /** Columns that are drawn as one. */
  private each = 1;
  readonly redraw = perFrame(() => this.draw());
  onColumn: (column: Column) => void = () => {};

  constructor(readonly canvas: HTMLCanvasElement) {
    canvas.addEventListener("click", (event) => {
      const first = this.at(event.offsetX)[0];
      if (first) this.onColumn(first);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    tips(canvas, (x, y) => this.tip(x, y));
    new ResizeObserver(this.redraw).observe(canvas);
  }

  show(set: ConnectionSet | null, state: State, columns: Column[]): void {
    this.set = set;
    this.state = state;
    this.columns = columns;
    this.redraw();
  }

  /** How many columns of the data one column of the picture is the mean of. */
  get together(): number {
    return Math.max(1, Math.ceil((this.columns.length * NARROW) / Math.max(1, this.canvas.clientWidth - LEFT)));
  }

  private get width(): number {
    const drawn = Math.ceil(this.columns.length / this.each);
    return Math.min(WIDE, (this.canvas.clientWidth - LEFT) / Math.max(1, drawn));
  }

  /** The columns of the data at a place of the picture. */
  private at(x: number): Column[] {
    const drawn = Math.floor((x - LEFT) / this.width);
    return x < LEFT ? [] : this.columns.slice(drawn * this.each, (drawn + 1) * this.each);
  }

  /** Where the column of a phase or cell is on the canvas, in CSS pixels. */
  place(id: number): [number, number] | null {
    const column = this.columns.findIndex((column) => column.id === id);
    if (column < 0) return null;
    return [LEFT + (Math.floor(column / this.each) + 0.5) * this.width, TOP + this.height / 2];
  }

  private isSelected(column: Column): boolean {
    if (column.kind === "phase") return this.state?.phase === column.id;
    const selection = this.state?.selection;
    return selection?.kind === "cell" && selection.id === column.id;
  }

  private key(event: KeyboardEvent): void {
    const direction = ARROWS[event.key]?.[0] ?? 0;
    if (direction === 0 || this.columns.length === 0) return;
    const from = this.columns.findIndex((column) => this.isSelected(column));
    const next = from < 0 ? 0 : Math.max(0, Math.min(this.columns.length - 1, from + direction));
    this.onColumn(this.columns[next]);
    event.preventDefault();
  }

  private sideAt(y: number): number {
    const side = Math.floor((y - TOP + GAP / 2) / (this.height + GAP));
    return Math.max(0, Math.min(this.sides.length - 1, side));
  }

  private get sides(): string[] {
    return this.set?.profile?.sides ?? [];
  }

  /** The height of the chart of one side. */
  private get height(): number {
    const sides = Math.max(1, this.sides.length);
    return Math.max(10, (this.canvas.clientHeight - TOP - BOTTOM - GAP * (sides - 1)) / sides);
  }

  private name(columns: Column[]): string {
    const letter = columns[0].kind === "phase" ? "p" : "c";
    if (columns.length === 1) return `${letter}${columns[0].id}`;
    const last = columns[columns.length - 1];
    return `${letter}${columns[0].id} to ${letter}${last.id}, mean of ${columns.length}`;
  }

  private tip(x: number, y: number): string | null {
    const columns = this.at(x);
    if (columns.length === 0) return null;
    const side = this.sideAt(y);
    const clocks = mean(columns, side);
    const lines = PARTS.flatMap((part, i) => (clocks[i] > 0 ? [`${PART_TITLES[part]}: ${number(clocks[i])}`] : []));
    return [`${this.name(columns)}, ${this.sides[side]}`, ...lines, `total: ${number(total(clocks))}`].join("\n");
  }

  private draw(): void {
    if (!this.set || !this.state || this.canvas.clientWidth === 0) return;
    const ctx = context(this.canvas);
    this.each = this.together;
    ctx.font = "11px system-ui, sans-serif";
    this.sides.forEach((_, side) => this.drawSide(ctx, side));
    this.drawNames(ctx);
  }

  private drawSide(ctx: CanvasRenderingContext2D, side: number): void {
    const colours = palette();
    const fills = partColours();
    const { width, height } = this;
    const top = TOP + side * (height + GAP);
    const most = this.columns.reduce((most, column) => Math.max(most, ...column.sides.map(total)), 0) || 1;
    const axis = scaleLinear([0, most], [top + height, top]);
    const right = LEFT + width * Math.ceil(this.columns.length / this.each);
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    ctx.strokeStyle = colours.faint;
    ctx.lineWidth = 0.5;
    for (const clock of axis.ticks(Math.max(2, height / 40))) {
      ctx.fillStyle = colours.ink;
      ctx.fillText(number(clock), LEFT - 8, axis(clock));
      ctx.beginPath();
      ctx.moveTo(LEFT - 4, axis(clock));
      ctx.lineTo(right, axis(clock));
      ctx.stroke();
    }
    ctx.textAlign = "left";
    ctx.fillStyle = colours.ink;
    const title = this.sides[side] === "both" ? "send and receive" : this.sides[side];
    const what = this.columns[0]?.kind === "phase" ? ", clocks of a port on average" : ", clocks";
    ctx.fillText(`${title}${what}`, LEFT, top - 10);
    const gap = width > 5 ? 1 : 0;
    for (let first = 0; first < this.columns.length; first += this.each) {
      const group = this.columns.slice(first, first + this.each);
      const x = LEFT + (first / this.each) * width;
      let y = top + height;
      mean(group, side).forEach((clocks, part) => {
        const tall = (clocks / most) * height;
        if (tall <= 0) return;
        y -= tall;
        ctx.fillStyle = fills[part];
        // A line between parts tells them apart where their colours are alike.
        ctx.fillRect(x, y + (tall > 3 ? 0.5 : 0), width - gap, tall - (tall > 3 ? 0.5 : 0));
      });
      if (!group.some((column) => this.isSelected(column))) continue;
      ctx.strokeStyle = colours.selected;
      ctx.lineWidth = 2;
      ctx.strokeRect(x - 0.5, top - 1, width, height + 2);
    }
  }

  /** The names of columns below the charts, as far as there is room. */
  private drawNames(ctx: CanvasRenderingContext2D): void {
    const { width } = this;
    ctx.fillStyle = palette().ink;
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    const name = ({ kind, id }: Column) => `${kind === "phase" ? "p" : "c"}${id}`;
    const longest = this.columns.reduce((most, column) => Math.max(most, ctx.measureText(name(column)).width), 1);
    const step = this.each * Math.ceil((longest + 8) / width);
    for (let first = 0; first < this.columns.length; first += step) {
      const x = LEFT + (first / this.each + 0.5) * width;
      ctx.fillText(name(this.columns[first]), x, this.canvas.clientHeight - 5);
    }
  }

  /** What the picture shows, in words. */
  get label(): string {
    const kind = this.columns[0]?.kind ?? "phase";
    const each = this.together > 1 ? `, ${count(this.together, kind)} together` : "";
    return `Where every clock went: ${count(this.columns.length, kind)}${each}. The tables below have the numbers.`;
  }
}

/** The mean of columns by part. */
function mean(columns: Column[], side: number): number[] {
  return PARTS.map((_, part) => columns.reduce((sum, column) => sum + column.sides[side][part], 0) / columns.length);
}
