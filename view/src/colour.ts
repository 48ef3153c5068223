/**
 * Colours: one sequential scale for quantities and a few fixed colours, all of them safe for people
 * with colour blindness (the scale is cividis; the fixed colours are those of Okabe and Ito).
 */

import { PARTS, type Part } from "./clocks";
import { el, number } from "./dom";

/** Cividis (Nuñez, Anderton, Renslow, 2018), from few to many. */
const STOPS = [
  [0, 52, 110],
  [39, 65, 107],
  [72, 82, 108],
  [102, 101, 112],
  [131, 120, 116],
  [162, 140, 112],
  [194, 163, 99],
  [225, 187, 79],
  [253, 231, 55],
];

/** The scale at a share between 0 and 1. */
export function scale(share: number): string {
  const at = Math.max(0, Math.min(1, share)) * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(at));
  const t = at - low;
  const mix = (i: number) => Math.round(STOPS[low][i] + t * (STOPS[low + 1][i] - STOPS[low][i]));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

/** Whether dark text can be read on the scale at a share. */
export function isLight(share: number): boolean {
  return share > 0.55;
}

/** Less (blue) and more (orange), from light to strong: for differences between -1 and 1. */
export function diverging(share: number): string {
  const strength = 0.25 + 0.75 * Math.min(1, Math.abs(share));
  const strong = share < 0 ? [0, 114, 178] : [213, 94, 0];
  return `rgb(${strong.map((value) => Math.round(225 + strength * (value - 225))).join(",")})`;
}

/** Fixed colours of marks; `none` and `ink` depend on the theme. */
export interface Palette {
  background: string;
  ink: string;
  faint: string;
  none: string;
  send: string;
  receive: string;
  open: string;
  selected: string;
  shared: string;
  switch: string;
  dead: string;
  /** Frames of the critical path. */
  path: string;
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    background: colour("panel"),
    ink: colour("ink"),
    faint: colour("line"),
    none: colour("none"),
    send: colour("send"),
    receive: colour("receive"),
    open: colour("open"),
    selected: colour("selected"),
    shared: colour("shared"),
    switch: colour("switch"),
    dead: colour("dead"),
    path: colour("path"),
  };
}

/** Hues for parts; none is that of the selection. */
const HUES = ["#0072b2", "#e69f00", "#009e73", "#7b5ea7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c"];

/** The hue with a number. */
export function partHue(number: number): string {
  return HUES[number % HUES.length];
}

/** Numbers of hues for parts, so that neighbours differ as far as there are hues. */
export function partHues(count: number, neighbours: (part: number) => Iterable<number>): Uint8Array {
  const none = 255;
  const hues = new Uint8Array(count).fill(none);
  for (let part = 0; part < count; part++) {
    const used = new Set<number>();
    for (const other of neighbours(part)) used.add(hues[other]);
    let hue = part % HUES.length;
    for (let tries = 0; tries < HUES.length && used.has(hue); tries++) hue = (hue + 1) % HUES.length;
    hues[part] = hue;
  }
  return hues;
}

/** A value with its unit. */
function quantity(value: number, unit: string): string {
  return unit === "%" ? `${(100 * value).toFixed(1)} %` : `${number(value)} ${unit}`;
}

function gradient(colour: (share: number) => string): HTMLElement {
  const canvas = el("canvas", { width: 120, height: 10, class: "ramp", "aria-hidden": "true" });
  const ctx = canvas.getContext("2d")!;
  for (let i = 0; i < 120; i++) {
    ctx.fillStyle = colour(i / 119);
    ctx.fillRect(i, 0, 1, 10);
  }
  return canvas;
}

/** The legend of differences. */
export function changeLegend(title: string, most: number, unit: string): HTMLElement {
  const ends = [`less by ${quantity(most, unit)} `, ` more by ${quantity(most, unit)}; grey: the same`];
  return el(
    "span",
    { class: "legend" },
    `${title}: `,
    ends[0],
    gradient((share) => diverging(2 * share - 1)),
    ends[1],
  );
}

/** The legend of a scale: a gradient with its least and greatest value. */
export function scaleLegend(title: string, most: number, unit: string): HTMLElement {
  const canvas = gradient(scale);
  const end = quantity(most, unit);
  return el(
    "span",
    { class: "legend" },
    `${title}: `,
    el("span", { class: "swatch none" }),
    " none, 0 ",
    canvas,
    ` ${end}`,
  );
}

/** A legend entry of a fixed colour. */
export function swatch(colour: keyof Palette, text: string): HTMLElement {
  return el("span", { class: "legend" }, el("span", { class: `swatch ${colour}` }), ` ${text}`);
}

/** The colours of the parts of clocks, in their order. */
export function partColours(): string[] {
  const style = getComputedStyle(document.documentElement);
  return PARTS.map((part) => style.getPropertyValue(`--clocks-${part}`).trim());
}

/** A legend entry of a part of the clocks. */
export function partSwatch(part: Part, text: string): HTMLElement {
  const mark = el("span", { class: "swatch" });
  mark.style.background = `var(--clocks-${part})`;
  return el("span", { class: "legend" }, mark, ` ${text}`);
}
