/** Canvases that are moved and zoomed by pointer, wheel and keys. The zoom is a part of the page's state. */

import { select } from "d3-selection";
import { type ZoomTransform, zoom, zoomIdentity } from "d3-zoom";
import { perFrame } from "./dom";
import { type Selection } from "./state";

/** The directions of the arrow keys. */
export const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The factor of `+`. */
const FACTOR = 1.5;

export abstract class ZoomedCanvas {
  protected transform: ZoomTransform = zoomIdentity;
  readonly redraw = perFrame(() => this.draw());
  private readonly behaviour;
  onSelect: (selection: Selection | null) => void = () => {};
  onZoom: (zoom: string) => void = () => {};

  /** `factors` are the least and the greatest zoom. */
  constructor(
    readonly canvas: HTMLCanvasElement,
    factors: [number, number],
  ) {
    this.behaviour = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent(factors)
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.redraw();
        if (event.sourceEvent) this.onZoom(written(this.transform));
      });
    select(canvas).call(this.behaviour).on("dblclick.zoom", null);
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => {
      this.resized(this.behaviour);
      this.redraw();
    }).observe(canvas);
  }

  protected abstract draw(): void;
  protected abstract click(event: MouseEvent): void;
  /** An arrow key was pressed. */
  protected abstract arrow(direction: [number, number]): void;

  /** The canvas has another size. */
  protected resized(_behaviour: { translateExtent(extent: [[number, number], [number, number]]): unknown }): void {}

  /** Zooms as a hash says. */
  zoomTo(text: string): void {
    const transform = parsed(text);
    if (written(this.transform) !== written(transform)) select(this.canvas).call(this.behaviour.transform, transform);
  }

  /** Moves the picture by pixels. */
  protected moveBy(x: number, y: number): void {
    select(this.canvas).call(this.behaviour.translateBy, x / this.transform.k, y / this.transform.k);
    this.onZoom(written(this.transform));
  }

  /** `+`, `-` and `0` zoom, Escape ends the selection. */
  private key(event: KeyboardEvent): void {
    const canvas = select(this.canvas);
    if (ARROWS[event.key]) this.arrow(ARROWS[event.key]);
    else if (["+", "=", "-"].includes(event.key)) {
      canvas.call(this.behaviour.scaleBy, event.key === "-" ? 1 / FACTOR : FACTOR);
      this.onZoom(written(this.transform));
    } else if (event.key === "0") {
      canvas.call(this.behaviour.transform, zoomIdentity);
      this.onZoom("");
    } else if (event.key === "Escape") this.onSelect(null);
    else return;
    event.preventDefault();
  }
}

/** A zoom in a hash: `x,y,k`; empty if there is none. */
function written(transform: ZoomTransform): string {
  if (transform.k === 1 && transform.x === 0 && transform.y === 0) return "";
  return [transform.x.toFixed(0), transform.y.toFixed(0), transform.k.toFixed(3)].join(",");
}

function parsed(text: string): ZoomTransform {
  const [x, y, k] = text.split(",").map(Number);
  if (![x, y, k].every(Number.isFinite) || k <= 0) return zoomIdentity;
  return zoomIdentity.translate(x, y).scale(k);
}
