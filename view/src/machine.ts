/** The picture of the machine: cells and links on a canvas, with zoom, clicks and keys. */

import { diverging, isLight, palette, scale } from "./colour";
import { context, number, percent } from "./dom";
import { type Layout, cellAt, layout, linkAt, linkMiddle } from "./layout";
import { CELLS, LINKS, greatest, measure } from "./measures";
import { type ConnectionSet, type Machine } from "./model";
import { type Selection, type State } from "./state";
import { tips } from "./tip";
import { ZoomedCanvas } from "./zoomed";

/** What is highlighted: streams of the selection and those that share links with it. */
export interface Highlight {
  streams: number[];
  shared: number[];
}

/** The values of a picture, and the greatest ones, which have the last colour of the scale. */
export interface Values {
  cells: ArrayLike<number> | null;
  links: ArrayLike<number> | null;
  mostCells: number;
  mostLinks: number;
  /** Whether the values are differences, which may be negative. */
  isChange?: boolean;
}

/** Pixels around a link in which a click selects it. */
const REACH = 7;

export class MachineView extends ZoomedCanvas {
  readonly layout: Layout;
  private set: ConnectionSet | null = null;
  private state: State | null = null;
  private highlight: Highlight = { streams: [], shared: [] };
  private values: Values | null = null;
  /** The cell that the arrow keys have reached. */
  private focus = -1;

  constructor(
    canvas: HTMLCanvasElement,
    readonly machine: Machine,
  ) {
    super(canvas, [0.5, 60]);
    this.layout = layout(machine);
    tips(canvas, (x, y) => this.tip(x, y));
  }

  /** Ends its work for the canvas. */
  close(): void {
    this.set = null;
  }

  /** Shows a set by the measures of the state, or by other values. */
  show(set: ConnectionSet | null, state: State, highlight: Highlight, values: Values | null = null): void {
    this.set = set;
    this.state = state;
    this.highlight = highlight;
    this.values = values ?? (set && MachineView.values(set, state));
    this.redraw();
  }

  /** Factor and offset from units of the layout to pixels, before the zoom. */
  private fit(): [number, number, number] {
    const [x0, y0, x1, y1] = this.layout.box;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const k = Math.min(width / (x1 - x0), height / (y1 - y0), 130);
    return [k, (width - k * (x0 + x1)) / 2, (height - k * (y0 + y1)) / 2];
  }

  private toPixel(x: number, y: number): [number, number] {
    const [k, dx, dy] = this.fit();
    return this.transform.apply([k * x + dx, k * y + dy]);
  }

  /** Where a cell or the middle of a link is on the canvas, in CSS pixels. */
  place(selection: Selection): [number, number] | null {
    if (selection.kind === "cell") return this.toPixel(this.layout.x[selection.id], this.layout.y[selection.id]);
    return selection.kind === "link" ? this.toPixel(...linkMiddle(this.layout, selection.id)) : null;
  }

  /** The cell or link at a place of the canvas. */
  private at(px: number, py: number): Selection | null {
    const [k, dx, dy] = this.fit();
    const [ux, uy] = this.transform.invert([px, py]);
    const [x, y] = [(ux - dx) / k, (uy - dy) / k];
    const cell = cellAt(this.layout, x, y);
    if (cell >= 0) return { kind: "cell", id: cell };
    const link = linkAt(this.layout, this.machine.linkCount, x, y, REACH / (k * this.transform.k));
    return link >= 0 ? { kind: "link", id: link } : null;
  }

  protected click(event: MouseEvent): void {
    this.onSelect(this.at(event.offsetX, event.offsetY));
  }

  private tip(x: number, y: number): string | null {
    const found = this.at(x, y);
    if (!found || !this.state) return null;
    const { kind, id } = found;
    const name = kind === "cell" ? this.machine.cellName(id) : this.machine.linkName(id);
    const values = kind === "cell" ? this.values?.cells : this.values?.links;
    if (!values) return name;
    const of = kind === "cell" ? measure(CELLS, this.state.cells) : measure(LINKS, this.state.links);
    return `${name}\n${of.title}: ${of.unit === "%" ? percent(values[id]) : number(values[id])}`;
  }

  /** Arrow keys move between cells. */
  protected arrow(direction: [number, number]): void {
    const from = this.focus < 0 && this.state?.selection?.kind === "cell" ? this.state.selection.id : this.focus;
    this.focus = this.next(from, direction);
    this.onSelect({ kind: "cell", id: this.focus });
  }

  /** The nearest cell in a direction. */
  private next(from: number, [dx, dy]: [number, number]): number {
    if (from < 0) return 0;
    const { x, y } = this.layout;
    let best = from;
    let least = Infinity;
    for (let c = 0; c < x.length; c++) {
      const [ax, ay] = [x[c] - x[from], y[c] - y[from]];
      const along = ax * dx + ay * dy;
      const across = Math.abs(ax * dy - ay * dx);
      if (along <= 1e-6 || across > along * 1.5) continue;
      const cost = along + 2 * across;
      if (cost < least) [best, least] = [c, cost];
    }
    return best;
  }

  /** The values of cells and links by the measures of a state. */
  static values(set: ConnectionSet, state: State): Values {
    const cells = measure(CELLS, state.cells).values(set, state.phase);
    const links = measure(LINKS, state.links).values(set, state.phase);
    return { cells, links, mostCells: greatest(cells), mostLinks: greatest(links) };
  }

  protected draw(): void {
    const { set, state, layout: at, machine } = this;
    if (!set || !state || !this.values || this.canvas.clientWidth === 0) return;
    const ctx = context(this.canvas);
    const colours = palette();
    const [k, dx, dy] = this.fit();
    const zoomed = k * this.transform.k;
    ctx.save();
    ctx.translate(this.transform.x, this.transform.y);
    ctx.scale(this.transform.k, this.transform.k);
    ctx.translate(dx, dy);
    ctx.scale(k, k);
    const px = 1 / zoomed;
    const { cells, links, mostCells, mostLinks, isChange } = this.values!;
    const colour = (value: number, most: number) =>
      value === 0 ? colours.none : isChange ? diverging(value / most) : scale(value / most);
    const open = state.clock === null ? null : set.openAt(state.clock);
    const dimmed = open !== null || this.highlight.streams.length > 0;
    const width = Math.max(1.2 * px * (at.isLarge ? 1.5 : 1), Math.min(0.085, 5 * px));
    ctx.lineCap = "round";
    ctx.globalAlpha = dimmed ? 0.35 : 1;
    for (let l = 0; l < machine.linkCount && !at.isLarge; l++) {
      const value = links?.[l] ?? 0;
      ctx.strokeStyle = machine.live[l] ? colour(value, mostLinks) : colours.dead;
      ctx.lineWidth = value === 0 ? width * 0.5 : width;
      if (!machine.live[l]) ctx.setLineDash([3 * px, 4 * px]);
      this.stroke(ctx, l);
      if (!machine.live[l]) ctx.setLineDash([]);
    }
    ctx.globalAlpha = 1;
    if (open) this.strokeStreams(ctx, open, colours.open, width * 1.3);
    this.strokeStreams(ctx, this.highlight.shared, colours.shared, width * 0.9);
    this.strokeStreams(ctx, this.highlight.streams, colours.selected, width * 1.7, true);
    if (state.selection?.kind === "link" && state.selection.id < machine.linkCount) {
      ctx.strokeStyle = colours.selected;
      ctx.lineWidth = width * 2;
      this.stroke(ctx, state.selection.id);
    }
    const senders = new Set(open?.flatMap((s) => [set.streams!.source[s], set.streams!.target[s]]));
    const r = at.radius;
    const isNamed = zoomed * r > 8.5;
    // The leaves of a fat-tree are too small for their names, but there is room below them.
    const isUpright = machine.head.kind === "fat-tree" && !isNamed && zoomed > 11;
    ctx.textBaseline = "middle";
    for (let c = 0; c < at.x.length; c++) {
      const value = cells?.[c] ?? 0;
      const share = value / (mostCells || 1);
      const hasDarkText = isChange ? Math.abs(share) < 0.6 : isLight(share);
      const lit = senders.has(c);
      ctx.fillStyle = machine.isDead[c] ? colours.background : lit ? colours.open : colour(value, mostCells);
      ctx.strokeStyle = machine.isDead[c] ? colours.dead : colours.ink;
      ctx.lineWidth = Math.min(0.02, px);
      ctx.beginPath();
      if (machine.isSwitch(c)) ctx.arc(at.x[c], at.y[c], r * 0.6, 0, 2 * Math.PI);
      else ctx.rect(at.x[c] - r, at.y[c] - r, 2 * r, 2 * r);
      ctx.fill();
      if (zoomed > 12) ctx.stroke();
      if (state.selection?.kind === "cell" && state.selection.id === c) {
        ctx.strokeStyle = colours.selected;
        ctx.lineWidth = 4 * px;
        ctx.stroke();
      }
      if (isUpright && !machine.isSwitch(c)) {
        ctx.fillStyle = colours.ink;
        ctx.font = `${11 * px}px system-ui, sans-serif`;
        ctx.textAlign = "right";
        ctx.save();
        ctx.translate(at.x[c], at.y[c] + r + 4 * px);
        ctx.rotate(-Math.PI / 2);
        ctx.fillText(`c${c}`, 0, 0);
        ctx.restore();
      } else if (isNamed && !machine.isSwitch(c)) {
        ctx.textAlign = "center";
        ctx.fillStyle = lit || (value !== 0 && hasDarkText) ? "#000" : value !== 0 ? "#fff" : colours.ink;
        if (machine.isDead[c]) ctx.fillStyle = colours.ink;
        ctx.font = `${r * (c > 999 ? 0.62 : 0.78)}px system-ui, sans-serif`;
        ctx.fillText(`c${c}`, at.x[c], at.y[c]);
      }
    }
    ctx.restore();
  }

  private stroke(ctx: CanvasRenderingContext2D, link: number): void {
    ctx.beginPath();
    for (const line of this.layout.lines(link)) {
      ctx.moveTo(line[0], line[1]);
      for (let i = 2; i < line.length; i += 2) ctx.lineTo(line[i], line[i + 1]);
    }
    ctx.stroke();
  }

  private strokeStreams(
    ctx: CanvasRenderingContext2D,
    streams: number[],
    colour: string,
    width: number,
    arrows = false,
  ): void {
    if (!this.set || streams.length === 0) return;
    ctx.strokeStyle = colour;
    ctx.fillStyle = colour;
    ctx.lineWidth = width;
    const links = new Set<number>();
    for (const stream of streams) for (const link of this.set.linksOf(stream)) links.add(link);
    for (const link of links) {
      this.stroke(ctx, link);
      const line = arrows ? this.layout.lines(link)[0] : undefined;
      if (line) this.arrowHead(ctx, line);
    }
  }

  /** The head of an arrow in the middle of a line. */
  private arrowHead(ctx: CanvasRenderingContext2D, line: number[]): void {
    const i = line.length === 4 ? 0 : 2 * Math.floor(line.length / 4);
    const [ax, ay, bx, by] = [line[i], line[i + 1], line[i + 2] ?? line[i], line[i + 3] ?? line[i + 1]];
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const [ux, uy] = [(bx - ax) / length, (by - ay) / length];
    const [mx, my] = [(ax + bx) / 2 + ux * 0.1, (ay + by) / 2 + uy * 0.1];
    ctx.beginPath();
    ctx.moveTo(mx, my);
    ctx.lineTo(mx - ux * 0.2 - uy * 0.1, my - uy * 0.2 + ux * 0.1);
    ctx.lineTo(mx - ux * 0.2 + uy * 0.1, my - uy * 0.2 - ux * 0.1);
    ctx.fill();
  }
}
