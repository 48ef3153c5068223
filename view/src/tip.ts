/** The text that follows the pointer over a picture. Screen readers have the tables instead. */

import { el } from "./dom";

let box: HTMLElement | null = null;

/** Shows what `at` says of the place under the pointer, in CSS pixels of the canvas. */
export function tips(canvas: HTMLCanvasElement, at: (x: number, y: number) => string | null): void {
  canvas.addEventListener("pointermove", (event) => {
    // While the picture is dragged, the text would hide what moves.
    const text = event.buttons === 0 ? at(event.offsetX, event.offsetY) : null;
    canvas.style.cursor = text ? "pointer" : "";
    show(text, event.clientX, event.clientY);
  });
  for (const name of ["pointerleave", "pointerdown", "wheel"])
    canvas.addEventListener(name, () => show(null, 0, 0), { passive: true });
}

function show(text: string | null, x: number, y: number): void {
  if (!box) {
    if (!text) return;
    box = el("div", { class: "tip", "aria-hidden": "true" });
    document.body.append(box);
  }
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
}
