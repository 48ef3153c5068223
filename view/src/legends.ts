/** The legends below the pictures: every colour is explained where it is used. */

import { PART_TITLES } from "./clocks";
import { partHue, partSwatch, scaleLegend, swatch } from "./colour";
import { byId, count, el, fill } from "./dom";
import { type Matrix } from "./matrix";
import { CELLS, LINKS, type Measure, greatest, measure } from "./measures";
import { type ConnectionSet, type Schedule } from "./model";
import { type State } from "./state";

const text = (text: string) => el("span", { class: "legend" }, text);
const marks = () => [swatch("selected", "selected"), swatch("shared", "shares links with it")];

export class Legends {
  constructor(
    readonly schedule: Schedule,
    readonly set: ConnectionSet | null,
    readonly state: State,
  ) {}

  private scale(name: string, of: Measure): HTMLElement {
    const values = this.set && of.values(this.set, this.state.phase);
    return values
      ? scaleLegend(`${name}: ${of.title}`, greatest(values), of.unit)
      : text(`${name}: ${of.title}: not in this page, or not for single ${this.schedule.phaseWord}s`);
  }

  machine(isLarge: boolean): void {
    const { head } = this.schedule;
    const dead = head.machine.dead_cells.length + head.machine.dead_links.length > 0;
    fill(
      byId("machine-legend"),
      this.scale("cells", measure(CELLS, this.state.cells)),
      this.scale("links", measure(LINKS, this.state.links)),
      swatch("open", "open at the clock"),
      ...marks(),
      dead && swatch("dead", "dead"),
      isLarge && text("of this many links only those of the selection and the clock are drawn"),
    );
  }

  timetable(): void {
    const { state, schedule, set } = this;
    fill(
      byId("timetable-legend"),
      swatch("send", state.rows === "links" ? "on the link" : "send"),
      state.rows === "links" ? null : swatch("receive", "receive"),
      schedule.head.kind === "phases" && swatch("switch", "context switch"),
      state.path === "on" && set?.profile?.path && swatch("path", "critical path (frame)"),
      ...marks(),
      text("empty: idle"),
    );
  }

  clocks(): void {
    const parts = this.set?.profile?.used ?? [];
    fill(byId("clocks-legend"), ...parts.map((part) => partSwatch(part, PART_TITLES[part])));
  }

  matrix(matrix: Matrix | null): void {
    fill(
      byId("matrix-legend"),
      matrix && scaleLegend("words", matrix.most, "words"),
      matrix && matrix.cells > 1 && text(`groups of ${Math.ceil(matrix.cells)} cells`),
    );
  }

  mesh(): void {
    const { state, schedule } = this;
    const mesh = schedule.head.mesh;
    const parts = schedule.machine.partCell.length;
    fill(
      byId("mesh-legend"),
      state.mesh === "cell"
        ? this.scale("parts by the cell's", measure(CELLS, state.cells))
        : el(
            "span",
            { class: "legend" },
            ...[0, 1, 2, 3].map((part) => hueSwatch(part)),
            ` ${count(parts, "part")}; parts that are not neighbours may have the same colour`,
          ),
      swatch("selected", "selected"),
      mesh && mesh.not_drawn > 0 && text(`${count(mesh.not_drawn, "element")} not drawn`),
    );
  }
}

function hueSwatch(part: number): HTMLElement {
  const canvas = el("canvas", { width: 12, height: 12, class: "swatch part", "aria-hidden": "true" });
  const ctx = canvas.getContext("2d")!;
  ctx.fillStyle = partHue(part);
  ctx.fillRect(0, 0, 12, 12);
  return canvas;
}
