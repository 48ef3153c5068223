/** Small helpers for elements, numbers and canvases. Texts of the data are always set as text. */

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

/** Makes an element. Functions are listeners: `onclick`. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, ...children);
  return element;
}

export function append(parent: HTMLElement, ...children: Child[]): void {
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      parent.append(child instanceof Node ? child : String(child));
}

export function fill(parent: HTMLElement, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, ...children);
}

export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element as T;
}

/** Digits in groups of three, as the command prints them. */
export function number(value: number): string {
  if (!Number.isInteger(value)) return value.toFixed(2);
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** `1 phase`, `2 phases`. */
export function count(value: number, one: string): string {
  const plural =
    one.endsWith("s") || one.endsWith("ch") ? `${one}es` : one.endsWith("y") ? `${one.slice(0, -1)}ies` : `${one}s`;
  return `${number(value)} ${value === 1 ? one : plural}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** A canvas with as many pixels as the screen has, in units of CSS pixels. */
export function context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const ctx = canvas.getContext("2d")!;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

/** Calls a function at most once per frame; `now` calls it at once. */
export function perFrame(run: () => void): (() => void) & { now: () => void } {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  };
  return Object.assign(later, { now: run });
}

/** A column of a table: its title, and the text and the sort key of a row. */
export interface Column<T> {
  title: string;
  text: (row: T) => string | number | Node;
  isText?: boolean;
}

/** Rows that a table shows before the button for more. */
const ROWS = 100;

/** A table with a caption. Long tables show their first rows and a button for more. */
export function table<T>(
  caption: string,
  columns: Column<T>[],
  rows: T[],
  attributes: (row: T) => Attributes = () => ({}),
): HTMLElement {
  const body = el("tbody");
  let shown = 0;
  const more = el("button", { type: "button", class: "more", onclick: () => add(ROWS * 10) });
  const add = (n: number) => {
    const until = Math.min(rows.length, shown + n);
    for (; shown < until; shown++) {
      const row = rows[shown];
      const line = el("tr", attributes(row));
      columns.forEach((column, place) => {
        const text = column.text(row);
        const value = typeof text === "number" ? number(text) : text;
        line.append(
          place === 0 ? el("th", { scope: "row" }, value) : el("td", column.isText ? { class: "text" } : {}, value),
        );
      });
      body.append(line);
    }
    more.textContent = `${number(rows.length - shown)} more rows`;
    more.hidden = shown >= rows.length;
  };
  add(ROWS);
  const head = el(
    "tr",
    {},
    ...columns.map((column) => el("th", { scope: "col", class: column.isText ? "text" : null }, column.title)),
  );
  return el(
    "div",
    { class: "table", role: "group", "aria-label": caption, tabindex: 0 },
    el("table", {}, el("caption", {}, caption), el("thead", {}, head), body),
    more,
  );
}
