/**
 * The timetable as a chart: a row for each agent (send and receive) or link, streams as bars, context
 * switches as grey bands; what is empty is idle.
 *
 * Where streams are too many for bars they are counted per pixel, so the picture of a million streams
 * takes as long as that of a thousand.
 */

import { scaleLinear } from "d3-scale";
import { type Palette, palette } from "./colour";
import { context, number } from "./dom";
import { type Highlight } from "./machine";
import { ALL } from "./data";
import { type ConnectionSet } from "./model";
import { type State } from "./state";
import { tips } from "./tip";
import { ZoomedCanvas } from "./zoomed";

const LEFT = 92;
const TOP = 36;
/** Height of the scale of clocks; the names of phases are below it. */
const SCALE = 20;
/** Bars above which streams are drawn by pixels. */
const MOST_BARS = 30000;
/** Streams of the critical path above which their two ends are not joined by lines, which would hide the rest. */
const MOST_JOINED = 100;

/** A row: a cell that sends or receives, or a link. */
interface Row {
  kind: "send" | "receive" | "link";
  id: number;
}

export class TimetableView extends ZoomedCanvas {
  private set: ConnectionSet | null = null;
  private state: State | null = null;
  private highlight: Highlight = { streams: [], shared: [] };
  private rows: Row[] = [];
  private rowOf = new Map<string, number>();
  private pixels: { key: string; set: ConnectionSet; canvas: HTMLCanvasElement } | null = null;
  onClock: (clock: number) => void = () => {};

  constructor(canvas: HTMLCanvasElement) {
    super(canvas, [1, 5000]);
    tips(canvas, (x, y) => this.tip(x, y));
  }

  protected resized(behaviour: { translateExtent(extent: [[number, number], [number, number]]): unknown }): void {
    behaviour.translateExtent([
      [0, 0],
      [this.canvas.clientWidth, this.canvas.clientHeight],
    ]);
  }

  show(set: ConnectionSet | null, state: State, highlight: Highlight): void {
    const isOther = set !== this.set || state.rows !== this.state?.rows || state.filter !== this.state?.filter;
    this.set = set;
    this.state = state;
    this.highlight = highlight;
    if (set && (isOther || this.rows.length === 0)) this.makeRows(set, state);
    this.redraw();
  }

  /** Rows of the cells or links that have streams and pass the filter. */
  private makeRows(set: ConnectionSet, state: State): void {
    this.rows = [];
    this.rowOf.clear();
    const streams = set.streams;
    if (!streams) return;
    const cells = state.filter.match(/\d+/g)?.map(Number) ?? [];
    const passes = (...ends: number[]) => cells.length === 0 || ends.some((cell) => cells.includes(cell));
    const { machine } = set;
    const add = (kind: Row["kind"], id: number) => {
      this.rowOf.set(kind + id, this.rows.length);
      this.rows.push({ kind, id });
    };
    if (state.rows === "links") {
      const { words } = set.linkLoads(ALL)!;
      for (let l = 0; l < machine.linkCount; l++)
        if (words[l] > 0 && passes(machine.source[l], machine.target[l])) add("link", l);
      return;
    }
    const used = new Uint8Array(machine.head.cell_count);
    for (let s = 0; s < streams.count; s++) {
      used[streams.source[s]] |= 1;
      used[streams.target[s]] |= 2;
    }
    for (let c = 0; c < used.length; c++) {
      if (!passes(c)) continue;
      if (used[c] & 1) add("send", c);
      if (used[c] & 2) add("receive", c);
    }
  }

  get rowCount(): number {
    return this.rows.length;
  }

  private get size(): [number, number] {
    return [Math.max(50, this.canvas.clientWidth - LEFT), Math.max(20, this.canvas.clientHeight - TOP)];
  }

  /** The clocks that are drawn before the zoom: the phase, or the set. */
  private span(): [number, number] {
    const [from, to] = this.set!.span(this.state!.phase);
    return [from, Math.max(to, from + 1)];
  }

  private toX(clock: number): number {
    const [from, to] = this.span();
    return LEFT + this.transform.applyX(((clock - from) / (to - from)) * this.size[0]);
  }

  private toClock(x: number): number {
    const [from, to] = this.span();
    return from + (this.transform.invertX(x - LEFT) / this.size[0]) * (to - from);
  }

  private rowHeight(): number {
    return Math.min(22, this.size[1] / Math.max(1, this.rows.length)) * this.transform.k;
  }

  private toY(row: number): number {
    return TOP + this.transform.y + row * this.rowHeight();
  }

  /** Where the bar of a stream is on the canvas, in CSS pixels. */
  place(stream: number): [number, number] | null {
    const row = this.rowOf.get(`send${this.set?.streams?.source[stream]}`);
    if (row === undefined) return null;
    const [from, to] = this.set!.sendSpan(stream);
    return [this.toX(this.set!.baseOf(stream) + (from + to) / 2), this.toY(row + 0.5)];
  }

  /** What is at a place of the canvas: a row, and a stream of it. */
  private at(x: number, y: number): { row: Row; stream: number } | null {
    const row = y < TOP ? undefined : this.rows[Math.floor((y - this.toY(0)) / this.rowHeight())];
    return row ? { row, stream: x < LEFT ? -1 : this.streamAt(row, this.toClock(x)) } : null;
  }

  protected click(event: MouseEvent): void {
    if (!this.set || !this.state) return;
    const { offsetX: x, offsetY: y } = event;
    if (y < TOP) return this.onClock(Math.max(0, Math.round(this.toClock(x))));
    const found = this.at(x, y);
    if (found && x < LEFT)
      return this.onSelect({ kind: found.row.kind === "link" ? "link" : "cell", id: found.row.id });
    this.onSelect(found && found.stream >= 0 ? { kind: "stream", id: found.stream } : null);
  }

  private tip(x: number, y: number): string | null {
    const found = this.set && this.at(x, y);
    if (!found || found.stream < 0) return null;
    const { streams, profile } = this.set!;
    const { start, duration, words } = streams!;
    const s = found.stream;
    const slack = profile?.slack ? `, slack ${number(profile.slack[s])}` : "";
    return `${this.set!.streamName(s)}\n${number(words[s])} words, clocks ${number(start[s])} to ${number(start[s] + duration[s])}${slack}`;
  }

  private streamAt(row: Row, clock: number): number {
    const set = this.set!;
    const { source, target } = set.streams!;
    const within = (s: number, [from, to]: [number, number]) => {
      const at = clock - set.baseOf(s);
      return from <= at && at < to;
    };
    const found = set.openAt(clock).find((s) => {
      if (row.kind === "send") return source[s] === row.id && within(s, set.sendSpan(s));
      if (row.kind === "receive") return target[s] === row.id && within(s, set.receiveSpan(s));
      return set.linksOf(s).includes(row.id);
    });
    return found ?? -1;
  }

  /** Arrow keys move the chart. */
  protected arrow([x, y]: [number, number]): void {
    this.moveBy(-60 * x, -60 * y);
  }

  protected draw(): void {
    const { set, state } = this;
    if (!set || !state || this.canvas.clientWidth === 0) return;
    const ctx = context(this.canvas);
    const colours = palette();
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const h = this.rowHeight();
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT, TOP, width - LEFT, height - TOP);
    ctx.clip();
    ctx.strokeStyle = colours.faint;
    ctx.lineWidth = 0.5;
    if (h > 5)
      for (let row = this.firstRow(); row <= this.rows.length && this.toY(row) < height; row++) {
        ctx.beginPath();
        ctx.moveTo(LEFT, this.toY(row));
        ctx.lineTo(width, this.toY(row));
        ctx.stroke();
      }
    this.drawSwitches(ctx, colours);
    this.drawStreams(ctx, colours);
    if (state.path === "on") this.drawPath(ctx, colours);
    if (state.clock !== null) {
      ctx.strokeStyle = colours.selected;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(this.toX(state.clock), TOP);
      ctx.lineTo(this.toX(state.clock), height);
      ctx.stroke();
    }
    ctx.restore();
    this.drawAxes(ctx, colours);
    this.drawPhases(ctx, colours);
  }

  private firstRow(): number {
    return Math.max(0, Math.floor(-this.transform.y / this.rowHeight()));
  }

  private drawAxes(ctx: CanvasRenderingContext2D, colours: Palette): void {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const axis = scaleLinear([this.toClock(LEFT), this.toClock(width)], [LEFT, width]);
    ctx.fillStyle = colours.ink;
    ctx.strokeStyle = colours.faint;
    ctx.textAlign = "center";
    const widest = Math.max(...axis.domain().map((clock) => ctx.measureText(number(Math.round(clock))).width));
    for (const clock of axis.ticks(Math.max(2, width / Math.max(120, widest + 40)))) {
      if (!Number.isInteger(clock)) continue;
      const x = axis(clock);
      // A label that would be cut off at the right stands beside its place.
      const half = ctx.measureText(number(clock)).width / 2;
      ctx.fillText(number(clock), Math.min(x, width - half - 2), SCALE / 2);
      ctx.beginPath();
      ctx.moveTo(x, SCALE - 3);
      ctx.lineTo(x, SCALE);
      ctx.stroke();
    }
    ctx.textAlign = "right";
    ctx.fillText("clock", LEFT - 24, SCALE / 2);
    const h = this.rowHeight();
    const every = Math.max(1, Math.ceil(11 / h));
    for (let row = Math.ceil(this.firstRow() / every) * every; row < this.rows.length; row += every) {
      const y = this.toY(row + 0.5);
      if (y > height - 4) break;
      if (y < TOP) continue;
      const { kind, id } = this.rows[row];
      const { source, target } = this.set!.machine;
      ctx.fillText(kind === "link" ? `c${source[id]} → c${target[id]}` : `c${id} ${kind}`, LEFT - 8, y);
    }
  }

  private drawSwitches(ctx: CanvasRenderingContext2D, colours: Palette): void {
    const set = this.set!;
    if (set.kind === "steps") return;
    const height = this.canvas.clientHeight;
    const [from, to] = [set.phaseAt(this.toClock(LEFT)), set.phaseAt(this.toClock(this.canvas.clientWidth))];
    for (let p = from; p <= to && p < set.phaseCount; p++) {
      const begin = this.toX(set.offset[p]);
      const end = this.toX(set.offset[p] + set.switchClocks(p));
      ctx.fillStyle = colours.switch;
      ctx.fillRect(begin, TOP, Math.max(0.5, end - begin), height - TOP);
    }
  }

  /** Names of phases above the chart, as far as there is room. */
  private drawPhases(ctx: CanvasRenderingContext2D, colours: Palette): void {
    const set = this.set!;
    if (set.kind === "steps") return;
    const width = this.canvas.clientWidth;
    ctx.textAlign = "center";
    ctx.fillStyle = colours.ink;
    let free = LEFT;
    const to = set.phaseAt(this.toClock(width));
    for (let p = set.phaseAt(this.toClock(LEFT)); p <= to && p < set.phaseCount; p++) {
      const begin = Math.max(this.toX(set.offset[p]), LEFT);
      const end = Math.min(this.toX(set.offset[p + 1]), width);
      const half = ctx.measureText(`p${p}`).width / 2 + 3;
      const middle = (begin + end) / 2;
      if (middle - half < free || middle + half > width) continue;
      ctx.fillText(`p${p}`, middle, (SCALE + TOP) / 2);
      free = middle + half;
    }
  }

  /** The streams that may be visible: those of the phases in sight. */
  private visible(): [number, number] {
    const set = this.set!;
    if (set.kind === "steps" || set.phaseCount === 0) return set.range(ALL);
    const from = set.phaseAt(this.toClock(LEFT));
    const to = set.phaseAt(this.toClock(this.canvas.clientWidth));
    return [set.first[from], set.first[to + 1]];
  }

  private drawStreams(ctx: CanvasRenderingContext2D, colours: Palette): void {
    const set = this.set!;
    const streams = set.streams;
    if (!streams || this.rows.length === 0) return;
    const [from, to] = this.visible();
    const h = this.rowHeight();
    const marked = new Map<number, string>();
    for (const s of this.highlight.shared) marked.set(s, colours.shared);
    for (const s of this.highlight.streams) marked.set(s, colours.selected);
    const bar = (s: number, base: number, colour: string | null) => {
      for (const { row, own, from, to } of this.barsOf(s, colours)) {
        const [x0, x1] = [this.toX(base + from), this.toX(base + to)];
        const gap = x1 - x0 > 4 ? 0.75 : 0;
        const y = this.toY(row);
        const inset = h > 4 ? 1 : 0;
        ctx.fillStyle = colour ?? own;
        ctx.fillRect(x0, y + inset, Math.max(0.6, x1 - x0 - gap), Math.max(0.6, h - 2 * inset));
        const label = h > 10 && x1 - x0 > 60 ? this.label(s, own === colours.receive) : "";
        if (label) {
          ctx.fillStyle = "#000";
          ctx.textAlign = "left";
          ctx.fillText(label, Math.max(x0, LEFT) + 4, y + h / 2, x1 - x0 - 8);
        }
      }
    };
    if (to - from > MOST_BARS) this.drawPixels(ctx, colours, from, to);
    else this.forEach(from, to, (s, base) => bar(s, base, marked.get(s) ?? null));
    if (to - from > MOST_BARS) for (const [s, colour] of marked) bar(s, set.startOf(s) - streams.start[s], colour);
  }

  /** The bars of a stream: their rows, colours and clocks. Rows that the filter leaves out have none. */
  private barsOf(stream: number, colours: Palette): { row: number; own: string; from: number; to: number }[] {
    const set = this.set!;
    const { source, target, start, duration } = set.streams!;
    const bar = (key: string, own: string, [from, to]: [number, number]) => {
      const row = this.rowOf.get(key);
      return row === undefined ? [] : [{ row, own, from, to }];
    };
    if (this.state!.rows !== "links")
      return [
        ...bar(`send${source[stream]}`, colours.send, set.sendSpan(stream)),
        ...bar(`receive${target[stream]}`, colours.receive, set.receiveSpan(stream)),
      ];
    const whole: [number, number] = [start[stream], start[stream] + duration[stream]];
    return Array.from(set.linksOf(stream)).flatMap((link) => bar(`link${link}`, colours.send, whole));
  }

  /** Frames around the bars of the critical path, joined where a stream begins. */
  private drawPath(ctx: CanvasRenderingContext2D, colours: Palette): void {
    const set = this.set!;
    const { streams } = set;
    const path = set.profile?.path;
    if (!streams || !path || this.rows.length === 0) return;
    const [from, to] = this.visible();
    const h = this.rowHeight();
    ctx.strokeStyle = colours.path;
    ctx.lineWidth = Math.max(1.25, Math.min(2.5, h / 5));
    const inSight = path.stream.filter((s) => s >= from && s < to);
    for (const s of inSight) {
      const base = set.baseOf(s);
      const bars = this.barsOf(s, colours);
      for (const { row, from, to } of bars) {
        const x = this.toX(base + from);
        ctx.strokeRect(x, this.toY(row) + 0.5, Math.max(1, this.toX(base + to) - x), Math.max(1, h - 1));
      }
      // The chain goes from one end of a stream to the other.
      if (bars.length < 2 || inSight.length > MOST_JOINED) continue;
      const x = this.toX(base + Math.max(...bars.map((bar) => bar.from)));
      const rows = bars.map((bar) => bar.row);
      ctx.beginPath();
      ctx.moveTo(x, this.toY(Math.min(...rows) + 0.5));
      ctx.lineTo(x, this.toY(Math.max(...rows) + 0.5));
      ctx.stroke();
    }
  }

  private label(stream: number, received: boolean): string {
    const { source, target, words } = this.set!.streams!;
    const other = received ? `from c${source[stream]}` : `to c${target[stream]}`;
    return `${other}, ${words[stream]} words`;
  }

  /** Calls a function for streams with the clock that their starts count from. */
  private forEach(from: number, to: number, visit: (stream: number, base: number) => void): void {
    const set = this.set!;
    if (set.kind === "steps") {
      for (let s = from; s < to; s++) visit(s, 0);
      return;
    }
    for (let p = set.phaseOf(from); p < set.phaseCount && set.first[p] < to; p++) {
      const base = set.offset[p] + set.switchClocks(p);
      for (let s = Math.max(from, set.first[p]); s < Math.min(to, set.first[p + 1]); s++) visit(s, base);
    }
  }

  /** Draws the pixels of many streams; the picture is kept while only clock and selection change. */
  private drawPixels(ctx: CanvasRenderingContext2D, colours: Palette, from: number, to: number): void {
    const { rows, filter, phase } = this.state!;
    const { width, height } = this.canvas;
    const key = [rows, filter, phase, width, height, colours.send, this.transform, this.set!.head.summary.set].join();
    if (this.pixels?.key !== key || this.pixels.set !== this.set) {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [width, height];
      canvas.getContext("2d")!.putImageData(this.countPixels(colours, from, to), 0, 0);
      this.pixels = { key, set: this.set!, canvas };
    }
    ctx.save();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.drawImage(this.pixels.canvas, 0, 0);
    ctx.restore();
  }

  /** Where streams are: pixels of both directions alternate between their colours. */
  private countPixels(colours: Palette, from: number, to: number): ImageData {
    const set = this.set!;
    const streams = set.streams!;
    const { width, height } = this.canvas;
    const ratio = width / this.canvas.clientWidth;
    const busy = new Uint8Array(width * height);
    const sends = new Int32Array(set.machine.head.cell_count).fill(-1);
    const receives = sends.slice();
    const overLinks = new Int32Array(set.machine.linkCount).fill(-1);
    this.rows.forEach((row, place) => {
      (row.kind === "link" ? overLinks : row.kind === "send" ? sends : receives)[row.id] = place;
    });
    // Pixels of each row and of each clock, as differences are too slow to compute a million times.
    const h = this.rowHeight() * ratio;
    const top = this.toY(0) * ratio;
    const least = Math.ceil(TOP * ratio);
    const zero = this.toX(0) * ratio;
    const perClock = this.toX(1) * ratio - zero;
    const left = Math.floor(LEFT * ratio);
    const put = (row: number, x0: number, x1: number, mark: number) => {
      if (row < 0) return;
      const y0 = Math.max(least, Math.floor(top + row * h));
      const y1 = Math.min(height, Math.max(y0 + 1, Math.floor(top + (row + 1) * h)));
      for (let y = y0; y < y1; y++) for (let x = y * width + x0; x < y * width + x1; x++) busy[x] |= mark;
    };
    const isLinks = this.state!.rows === "links";
    const { start, duration, sent, receivedFrom } = streams;
    this.forEach(from, to, (s, base) => {
      const begin = zero + perClock * (base + start[s]);
      const end = begin + perClock * duration[s];
      const first = Math.max(left, Math.floor(begin));
      const last = Math.min(width, Math.max(first + 1, Math.floor(end)));
      if (isLinks) {
        for (const link of set.linksOf(s)) put(overLinks[link], first, last, 1);
        return;
      }
      const until = sent ? Math.min(width, Math.max(first + 1, Math.floor(begin + perClock * sent[s]))) : last;
      const since = receivedFrom ? Math.max(left, Math.floor(begin + perClock * receivedFrom[s])) : first;
      put(sends[streams.source[s]], first, until, 1);
      put(receives[streams.target[s]], since, Math.max(last, Math.min(width, since + 1)), 2);
    });
    const image = new ImageData(width, height);
    const [send, receive] = [bytes(colours.send), bytes(colours.receive)];
    for (let i = 0; i < busy.length; i++) {
      if (busy[i] === 0) continue;
      const both = busy[i] === 3 && (i + Math.floor(i / width)) % 2 === 0;
      image.data.set(busy[i] === 2 || both ? receive : send, 4 * i);
    }
    return image;
  }
}

/** The bytes of a colour `#rrggbb`, opaque. */
function bytes(colour: string): number[] {
  return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).concat(255);
}
